//! The protocol with one of its guards taken out, to show that the hunt sees what each is for. A mutant is
//! data: other SQL, another teller at the bank, other keys in a plan. The program knows nothing of it.

use onefold::core::hash::FieldHash;
use onefold::core::plan::Decided;
use onefold::store::Queries;

#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    pub name: &'static str,
    /// SQL in the place of ours: its name, and what is replaced by what.
    sql: &'static [(&'static str, &'static [(&'static str, &'static str)])],
    pub hasty: bool,
    keys_of_plans: bool,
}

impl Mutant {
    /// The protocol as it is.
    pub const NONE: Self = Self { name: "none", sql: &[], hasty: false, keys_of_plans: false };

    pub const ALL: [Self; 5] = [
        Self {
            name: "no fence: whoever was taken over still completes",
            sql: &[
                ("steps/finish", &[(" AND owner = :owner AND token = :token", "")]),
                (
                    "freezes/fence",
                    &[(" AND token = :token", ""), ("SET token = :token", "SET token = token")],
                ),
            ],
            ..Self::NONE
        },
        Self { name: "UNKNOWN is taken for FAILED", hasty: true, ..Self::NONE },
        // By itself it is not seen: of two plans the older is fenced off. So that is taken out, too.
        Self {
            name: "keys that belong to the plan, and a plan that goes on though a newer one is there",
            keys_of_plans: true,
            sql: &[("plans/fence", &[(" AND state <> 'SUPERSEDED'", "")])],
            ..Self::NONE
        },
        Self {
            name: "moves that compare neither status nor version",
            sql: &[
                ("moves/order", &[(" AND status IN (:from) AND version = :version", "")]),
                ("moves/payment", &[(" AND status IN (:from) AND version = :version", "")]),
                ("moves/hold", &[(" AND status IN (:from) AND version = :version", "")]),
                ("moves/message", &[(" AND status IN (:from) AND version = :version", "")]),
                ("together/order", &[(" AND status IN (:from) AND version = :version", "")]),
                ("together/hold", &[(" AND status IN (:from) AND version = :version", "")]),
                ("together/message", &[(" AND status IN (:from) AND version = :version", "")]),
            ],
            ..Self::NONE
        },
        Self {
            name: "DONE before it is done",
            sql: &[(
                "steps/insert",
                &[(
                    "VALUES :rows",
                    "SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, \
                     column11, column12, column13, CASE column14 WHEN 'PROCESSING' THEN 'DONE' ELSE column14 END, \
                     column15, column16, column17, column18, column19, column20, column21, column22, column23, \
                     column24, column25, column26, column27 FROM (VALUES :rows)",
                )],
            )],
            ..Self::NONE
        },
    ];

    /// Whether it is the protocol as it is.
    pub const fn is_none(&self) -> bool {
        self.sql.is_empty() && !self.hasty && !self.keys_of_plans
    }

    /// Whether its plans are others than ours.
    pub const fn is_of_plan(&self) -> bool {
        self.keys_of_plans
    }

    pub fn queries(&self) -> Queries {
        self.sql.iter().fold(Queries::default(), |queries, (name, changes)| {
            let ours = queries.find(name).unwrap().to_owned();
            let text = changes.iter().fold(ours, |text, (was, is)| {
                assert!(text.contains(was), "{name}.sql has no {was:?}");
                text.replace(was, is)
            });
            queries.with(name, &text)
        })
    }

    /// The same decision, with the plan's name in each of its keys.
    pub fn rekeyed(&self, mut decided: Decided, plan_id: &str) -> Decided {
        if self.keys_of_plans {
            let rekey = |key: &mut String| *key = FieldHash::new().text(plan_id).text(key).hex();
            for step in decided.intents.iter_mut().flat_map(|i| &mut i.steps) {
                rekey(&mut step.step_key);
                step.provider_key.iter_mut().for_each(rekey);
            }
        }
        decided
    }
}
