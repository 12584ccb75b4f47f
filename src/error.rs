//! One error type: what went wrong, what kind of end that is, and what to type next.

use std::fmt;

/// How a command ended. The numbers are documented in `--help` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// Something failed that is not the caller's fault.
    Failure = 1,
    /// Usage, configuration or bad input.
    Usage = 2,
    /// `--detailed-exitcode`: steps are planned.
    StepsPlanned = 3,
    /// A row moved since it was read: plan again.
    Stale = 4,
    /// The ledgers break a rule that they should hold.
    Violations = 5,
    /// A person or the provider must decide first.
    Undecided = 6,
    /// Refused: freeze missing, lost or held by another, or a safety limit.
    Refused = 7,
    /// `once`: the key is being processed, or what was begun is known not to have happened: run it again.
    TryAgain = 75,
}

impl Exit {
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What kind of end it is, for programs.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failure => "failure",
            Self::Usage => "usage",
            Self::StepsPlanned => "steps-planned",
            Self::Stale => "stale",
            Self::Violations => "violations",
            Self::Undecided => "undecided",
            Self::Refused => "refused",
            Self::TryAgain => "try-again",
        }
    }

    /// Of two ends that both fit, the one to report: 7, then 4, 6, 5, 3; 75 comes with none of them.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        const BY_WEIGHT: [Exit; 9] = [
            Exit::Refused,
            Exit::Stale,
            Exit::Undecided,
            Exit::Violations,
            Exit::StepsPlanned,
            Exit::TryAgain,
            Exit::Usage,
            Exit::Failure,
            Exit::Done,
        ];
        BY_WEIGHT.into_iter().find(|e| *e == self || *e == other).unwrap_or(self)
    }
}

/// An error that a person reads: a lower-case sentence, and a hint that says what to type next.
#[derive(Debug)]
pub struct Error {
    pub exit: Exit,
    pub message: String,
    pub hint: Option<String>,
    is_clash: bool,
    /// The same for programs, where there is more to tell than a sentence.
    pub details: Option<serde_json::Value>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, details: None, is_clash: false }
    }

    pub fn failure(message: impl Into<String>) -> Self {
        Self::new(Exit::Failure, message)
    }

    /// Somebody else was faster, and all that was begun is undone: the same, done again, may succeed.
    pub fn clash(message: impl Into<String>) -> Self {
        Self { is_clash: true, ..Self::failure(message) }
    }

    pub const fn is_clash(&self) -> bool {
        self.is_clash
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn stale(message: impl Into<String>) -> Self {
        Self::new(Exit::Stale, message)
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Exit::Refused, message)
    }

    /// What to type next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same for programs.
    #[must_use]
    pub fn details(mut self, details: &impl serde::Serialize) -> Self {
        self.details = serde_json::to_value(details).ok();
        self
    }

    /// Says before the message what was being done.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_several_ends_fit_the_gravest_is_reported() {
        assert_eq!(Exit::Stale.or(Exit::Refused), Exit::Refused);
        assert_eq!(Exit::Undecided.or(Exit::Stale), Exit::Stale);
        assert_eq!(Exit::Violations.or(Exit::Undecided), Exit::Undecided);
        assert_eq!(Exit::StepsPlanned.or(Exit::Violations), Exit::Violations);
        assert_eq!(Exit::Done.or(Exit::StepsPlanned), Exit::StepsPlanned);
        assert_eq!(Exit::Done.or(Exit::Done), Exit::Done);
    }
}
