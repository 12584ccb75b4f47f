//! A playbook: the steps of a night, in a file that is read and tried in quiet times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::core::time::Span;
use crate::error::{Error, Result};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Playbook {
    pub name: String,
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub name: String,
    /// A command line without the program's name; `{freeze}` and `{plan}` are those of the steps before.
    run: Option<Vec<String>>,
    /// Wait for so long at most until the plan has the approval that it needs.
    wait_for_approval: Option<String>,
    /// Exit codes besides 0 with which the playbook goes on.
    #[serde(default)]
    pub accept: Vec<u8>,
}

/// What a step does.
#[derive(Debug)]
pub enum Doing<'p> {
    Line(&'p [String]),
    WaitForApproval(Span),
}

/// What a line may name of the steps before it.
pub const NAMES: [&str; 2] = ["freeze", "plan"];

/// Verbs that make no sense in a playbook.
const NOT_IN_ONE: [&str; 3] = ["run", "demo", "watch"];

impl Step {
    pub fn doing(&self) -> Result<Doing<'_>> {
        match (&self.run, &self.wait_for_approval) {
            (Some(line), None) => match line.first() {
                Some(verb) if NOT_IN_ONE.contains(&verb.as_str()) => {
                    Err(Error::usage(format!("step {}: `{verb}` is not for a playbook", self.name))
                        .hint("leave it out"))
                }
                Some(_) => Ok(Doing::Line(line)),
                None => Err(Error::usage(format!("step {}: run is empty", self.name))
                    .hint("run = [\"plan\", \"--show\", \"S-204\"]")),
            },
            (None, Some(span)) => span.parse().map(Doing::WaitForApproval).map_err(|e| {
                Error::usage(format!("step {}: wait_for_approval {span:?}: {e}", self.name)).hint("\"30m\"")
            }),
            _ => Err(Error::usage(format!(
                "step {} says neither run nor wait_for_approval, or both",
                self.name
            ))
            .hint("one of: run = [\"converge\"], wait_for_approval = \"30m\"")),
        }
    }
}

impl Playbook {
    /// # Errors
    /// Usage, naming file and line, for a file that is not as it must be.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Error::usage(format!("cannot read the playbook {}: {e}", path.display()))
                .hint("onefold run PLAYBOOK.toml; the README shows one")
        })?;
        let book: Self = toml::from_str(&text).map_err(|e| {
            let at = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Error::usage(format!("{}: line {at}: {}", path.display(), e.message()))
                .hint("a playbook has a name and steps: [[step]] name = \"plan\", run = [\"plan\"]")
        })?;
        let mut names = BTreeSet::new();
        for step in &book.steps {
            if step.name.is_empty() || !names.insert(&step.name) {
                return Err(Error::usage(format!("{}: two steps go by {:?}", path.display(), step.name))
                    .hint("each has a name of its own, for --from"));
            }
            step.doing().map_err(|e| e.context(path.display()))?;
        }
        if book.steps.is_empty() {
            return Err(Error::usage(format!("{} has no step", path.display())).hint("add a [[step]]"));
        }
        Ok(book)
    }

    /// The steps from one on.
    pub fn from(&self, name: Option<&str>) -> Result<&[Step]> {
        let Some(name) = name else { return Ok(&self.steps) };
        let at = self.steps.iter().position(|step| step.name == name);
        at.map(|at| &self.steps[at..]).ok_or_else(|| {
            let names: Vec<_> = self.steps.iter().map(|step| step.name.as_str()).collect();
            Error::usage(format!("the playbook has no step {name}"))
                .hint(format!("one of {}", names.join(", ")))
        })
    }
}

/// A line with what it names of the steps before filled in.
///
/// # Errors
/// The first name of which nothing is known.
pub fn filled(line: &[String], known: &BTreeMap<&'static str, String>) -> Result<Vec<String>, &'static str> {
    let fill = |word: &String| {
        NAMES.into_iter().try_fold(word.clone(), |word, name| {
            let piece = format!("{{{name}}}");
            if !word.contains(&piece) {
                return Ok(word);
            }
            known.get(name).map(|value| word.replace(&piece, value)).ok_or(name)
        })
    };
    line.iter().map(fill).collect()
}
