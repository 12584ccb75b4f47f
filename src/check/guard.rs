//! Reads the SQL of a move with a real parser: what it would do, and whether its first statement
//! can change any row but the one that is meant.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, InTarget, Insert, OnConflictAction, OnInsert, Query, Select,
    SqliteOnConflict, Statement, Update, Value, Visit, visit_expressions, visit_statements,
};

use super::source::{column_name, columns_in, literal, parsed, plain_select, tables_of};
use crate::store::Dialect;
use crate::store::sql::{alternatives, parameters, statements};

/// What a move's file has to be measured by.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    pub dialect: Dialect,
    /// What may be bound in it.
    pub parameters: &'a [&'static str],
    /// The tenant of every row, where the ledger's SQL gives always the same.
    pub only_tenant: Option<&'a str>,
    /// Whether it serves moves to several statuses.
    pub is_general: bool,
}

/// Something that is not as it must be in a move's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whether it would do harm; else it is only not proven.
    pub is_harm: bool,
    /// Whether it hides what it does, which might be anything, a commit included.
    pub is_hidden: bool,
    /// `statement 2`, `alternative 2, statement 1`; empty where the file is meant.
    pub at: String,
    pub message: String,
    pub hint: Option<&'static str>,
}

const GUARD: &str =
    "write WHERE tenant = :tenant_id AND id = :id AND status IN (:from), in your column names";
const ALLOWED: &str =
    "write it as an UPDATE, an INSERT … SELECT … WHERE, or leave it out; no row is ever deleted";
const TENANT: &str = "where all rows are of one tenant, add AND :tenant_id = '…' with its name";

/// Verbs that have no place in a move, also where the parser does not follow the rest.
const HARMFUL: [&str; 9] =
    ["DELETE", "TRUNCATE", "DROP", "ALTER", "GRANT", "REVOKE", "CREATE", "REPLACE", "MERGE"];

/// Everything that is wrong or unproven about a move's file; nothing where it is proven.
pub fn judge(text: &str, expected: &Expected<'_>) -> Vec<Fault> {
    let mut faults = unknown_parameters(text, expected);
    let alternatives = alternatives(text);
    let several = alternatives.len() > 1;
    for (a, alternative) in alternatives.iter().enumerate() {
        let before = if several { format!("alternative {}", a + 1) } else { String::new() };
        let statements = statements(alternative);
        if statements.is_empty() {
            faults.push(harm("holds no statement", GUARD).at(&before));
        }
        if expected.is_general && !statements.is_empty() && !parameters(alternative).contains(&"to") {
            let what = "serves moves to several statuses and never names :to: each would end the same";
            faults.push(harm(what, "set the status to :to, or write a file for each move").at(&before));
        }
        for (s, sql) in statements.iter().enumerate() {
            let comma = if several { ", " } else { "" };
            let at = format!("{before}{comma}statement {}", s + 1);
            let found = statement(sql, s == 0, expected);
            faults.extend(found.into_iter().map(|fault| fault.at(&at)));
        }
    }
    faults
}

fn harm(message: impl Into<String>, hint: &'static str) -> Fault {
    Fault { is_harm: true, is_hidden: false, at: String::new(), message: message.into(), hint: Some(hint) }
}

fn unproven(message: impl Into<String>) -> Fault {
    Fault { is_harm: false, is_hidden: false, at: String::new(), message: message.into(), hint: None }
}

fn hidden(message: impl Into<String>) -> Fault {
    Fault { is_hidden: true, ..unproven(message) }
}

impl Fault {
    fn at(self, at: &str) -> Self {
        Self { at: at.to_owned(), ..self }
    }
}

fn unknown_parameters(text: &str, expected: &Expected<'_>) -> Vec<Fault> {
    let unknown = parameters(text).into_iter().filter(|name| !expected.parameters.contains(name));
    unknown
        .map(|name| {
            let known = expected.parameters.join(", :");
            let message = format!("names :{name}, which is none of its parameters: :{known}");
            harm(message, "take one of these; `onefold queries export` writes files that document them")
        })
        .collect()
}

fn statement(sql: &str, is_guard: bool, expected: &Expected<'_>) -> Vec<Fault> {
    let parsed = match parsed(sql, expected.dialect) {
        Ok(mut statements) if statements.len() == 1 => statements.remove(0),
        Ok(_) => return vec![hidden("is not one statement")],
        Err(problem) => {
            return match verb_in_code(sql) {
                Some(verb) => vec![harm(format!("{verb} has no place in a move"), ALLOWED)],
                None => vec![hidden(format!("the parser does not follow it: {problem}"))],
            };
        }
    };
    if let Some(verb) = forbidden(&parsed) {
        return vec![harm(format!("{verb} has no place in a move"), ALLOWED)];
    }
    match &parsed {
        Statement::Update(update) => self::update(update, is_guard, expected),
        Statement::Insert(insert) => self::insert(insert, is_guard, expected),
        Statement::Query(query) => self::query(query, is_guard),
        _ => vec![hidden("calls a procedure: what it changes, and under which guard, is not seen")],
    }
}

/// The verb of a statement, or of one within it, that is none of those that a move may use.
fn forbidden(parsed: &Statement) -> Option<String> {
    let mut found = None;
    let _ = visit_statements(parsed, |statement| {
        let may_be = match statement {
            Statement::Update(_) | Statement::Query(_) | Statement::Call(_) => true,
            Statement::Insert(insert) => !replaces(insert),
            _ => false,
        };
        if may_be {
            return ControlFlow::Continue(());
        }
        let text = statement.to_string();
        found = match statement {
            Statement::Insert(_) => Some("REPLACE".to_owned()),
            _ => text.split_whitespace().next().map(str::to_uppercase),
        };
        ControlFlow::Break(())
    });
    found
}

/// The first harmful verb that stands as a word in the code of a text which cannot be parsed.
fn verb_in_code(sql: &str) -> Option<&'static str> {
    let code: String = sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let first = code.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty())?;
    HARMFUL.into_iter().find(|verb| verb.eq_ignore_ascii_case(first))
}

fn replaces(insert: &Insert) -> bool {
    insert.replace_into || insert.overwrite || matches!(insert.or, Some(SqliteOnConflict::Replace))
}

fn update(update: &Update, is_guard: bool, expected: &Expected<'_>) -> Vec<Fault> {
    if matches!(update.or, Some(SqliteOnConflict::Replace)) {
        return vec![harm("UPDATE OR REPLACE removes the rows in its way", ALLOWED)];
    }
    let Some(condition) = &update.selection else {
        return vec![harm("an UPDATE without WHERE changes every row", GUARD)];
    };
    let held = Held::by(condition);
    if !is_guard {
        return followed(&held, condition, expected);
    }
    let mut faults = guarded(&held, condition, expected);
    for column in assigned(update).intersection(&held.ids) {
        faults.push(harm(
            format!("sets {column}, by which it finds the row: an id never changes"),
            "leave it out of SET",
        ));
    }
    faults
}

fn insert(insert: &Insert, is_guard: bool, expected: &Expected<'_>) -> Vec<Fault> {
    let updates = match &insert.on {
        None => false,
        Some(OnInsert::OnConflict(on)) => !matches!(on.action, OnConflictAction::DoNothing),
        Some(_) => true,
    };
    if updates {
        let what = "an INSERT that updates the row in its way has no guard for that row";
        return vec![harm(what, "write the UPDATE as a statement of its own, with its WHERE")];
    }
    if !is_guard {
        let named = parameters_in(insert);
        let missing = ["id", "tenant_id"].into_iter().filter(|name| !named.contains(*name));
        let missing = missing.filter(|name| *name == "id" || expected.only_tenant.is_none());
        return missing
            .map(|name| unproven(format!("does not name :{name}: whose row it adds is not seen")))
            .collect();
    }
    let select = insert.source.as_deref().map(plain_select);
    match select {
        Some(Some(Select { selection: Some(condition), from, .. })) if !from.is_empty() => {
            guarded(&Held::by(condition), condition, expected)
        }
        Some(Some(_)) => vec![harm("an INSERT … SELECT without FROM and WHERE guards nothing", GUARD)],
        Some(None) if insert.source.as_deref().is_some_and(is_union) => {
            vec![unproven("an INSERT of a union as guard is not followed")]
        }
        _ => vec![harm(
            "an INSERT of VALUES adds a row whatever the ledger says: it guards nothing",
            "write INSERT … SELECT … FROM the ledger's table WHERE … as guard, or let an UPDATE stand first",
        )],
    }
}

fn is_union(query: &Query) -> bool {
    matches!(query.body.as_ref(), sqlparser::ast::SetExpr::SetOperation { .. })
}

fn query(query: &Query, is_guard: bool) -> Vec<Fault> {
    let writes = |query: &Query| {
        let mut found = false;
        let _ = visit_statements(query, |_| {
            found = true;
            ControlFlow::<()>::Break(())
        });
        found
    };
    if writes(query) {
        return vec![hidden("hides what it changes behind WITH: its guard is not followed")];
    }
    if is_guard {
        return vec![harm("a SELECT changes no row: it guards nothing", GUARD)];
    }
    if plain_select(query).is_some_and(|select| select.into.is_some()) {
        return vec![harm("SELECT … INTO writes", ALLOWED)];
    }
    let mut called = None;
    let _ = visit_expressions(query, |expr| match expr {
        Expr::Function(function) => {
            called = Some(function.name.to_string());
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    called.map(|name| hidden(format!("calls {name}: what that does is not seen"))).into_iter().collect()
}

/// Whether a guard holds on to tenant, id and from-status.
fn guarded(held: &Held, condition: &Expr, expected: &Expected<'_>) -> Vec<Fault> {
    let named = parameters_in(condition);
    let judge = |name: &'static str| {
        let hint = if name == "tenant_id" { TENANT } else { GUARD };
        match held.firm.get(name) {
            Some(Hold::Column) => None,
            Some(Hold::Literal(text)) if name == "tenant_id" => match expected.only_tenant {
                Some(only) if only == text => None,
                _ => Some(unproven(format!(
                    "compares :tenant_id with '{text}' and no column, and the ledger's SQL does not give \
                     '{text}' for every row"
                ))),
            },
            Some(Hold::Literal(text)) if name == "from" => Some(unproven(format!(
                "compares :from with '{text}' and no column: that the rest of its WHERE means {text} is not seen"
            ))),
            Some(Hold::Mixed) => Some(unproven(format!(
                "compares :{name} with columns on both sides: whether that narrows is not seen"
            ))),
            Some(Hold::Literal(_)) => Some(harm(format!("compares :{name} with no column"), hint)),
            None if named.contains(name) => Some(harm(
                format!(
                    "names :{name} where it does not narrow: under OR or NOT, beside other values, or in no comparison by ="
                ),
                hint,
            )),
            None if name == "tenant_id" && expected.only_tenant.is_some() => Some(Fault {
                hint: Some(TENANT),
                ..unproven("its WHERE does not name :tenant_id: that there is one tenant only is not seen")
            }),
            None => Some(harm(format!("its WHERE does not name :{name}"), hint)),
        }
    };
    ["tenant_id", "id", "from"].into_iter().filter_map(judge).collect()
}

/// Whether an UPDATE after the guard holds on to tenant and id.
fn followed(held: &Held, condition: &Expr, expected: &Expected<'_>) -> Vec<Fault> {
    let named = parameters_in(condition);
    let open = ["tenant_id", "id"].into_iter().filter(|name| match held.firm.get(*name) {
        Some(Hold::Column) => false,
        _ => *name == "id" || expected.only_tenant.is_none(),
    });
    open.map(|name| match named.contains(name) {
        true => {
            unproven(format!("names :{name} where it does not narrow: which rows it changes is not seen"))
        }
        false => unproven(format!("its WHERE does not name :{name}: which rows it changes is not seen")),
    })
    .collect()
}

fn assigned(update: &Update) -> BTreeSet<String> {
    let targets = update.assignments.iter().flat_map(|assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
        AssignmentTarget::Tuple(names) => names.as_slice(),
    });
    targets.filter_map(|name| name.0.last()?.as_ident().map(|i| i.value.clone())).collect()
}

/// How a condition holds on to a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hold {
    /// Something of the row is equal to it.
    Column,
    /// It is equal to this text, whatever the row says.
    Literal(String),
    /// It stands beside columns, on the same side of the comparison.
    Mixed,
}

/// What must be so for every row that a condition lets through.
#[derive(Clone, Debug, Default)]
struct Held {
    firm: BTreeMap<String, Hold>,
    /// The columns that are compared with `:id` and `:tenant_id`.
    ids: BTreeSet<String>,
}

impl Held {
    fn by(condition: &Expr) -> Self {
        match condition {
            Expr::Nested(inner) => Self::by(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => Self::by(left).and(Self::by(right)),
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => Self::by(left).or(Self::by(right)),
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::Spaceship, right }
            | Expr::IsNotDistinctFrom(left, right)
            | Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => Self::equal(left, right),
            Expr::In { expr, target, negated: false, .. } => match target {
                // One of several would do, where another may be anything.
                InTarget::List(list) if list.len() == 1 => Self::equal(expr, &list[0]),
                InTarget::Subquery(query) if !columns_in(expr.as_ref()).is_empty() => Self::within(query),
                _ => Self::default(),
            },
            Expr::Exists { subquery, negated: false } if is_correlated(subquery) => Self::within(subquery),
            _ => Self::default(),
        }
    }

    fn equal(left: &Expr, right: &Expr) -> Self {
        for (side, other) in [(left, right), (right, left)] {
            if let Expr::Subquery(query) = side
                && !columns_in(other).is_empty()
            {
                return Self::within(query);
            }
        }
        let mut held = Self::default();
        for (side, other) in [(left, right), (right, left)] {
            let beside = !columns_in(side).is_empty();
            let hold = match (columns_in(other).is_empty(), literal(other)) {
                (false, _) if beside => Hold::Mixed,
                (false, _) => Hold::Column,
                (true, Some(text)) if !beside => Hold::Literal(text),
                (true, _) => continue,
            };
            for name in parameters_in(side) {
                if ["id", "tenant_id"].contains(&name.as_str()) {
                    held.ids.extend(column_name(other));
                }
                held.firm.insert(name, hold.clone());
            }
        }
        held
    }

    fn within(query: &Query) -> Self {
        plain_select(query).and_then(|select| select.selection.as_ref()).map(Self::by).unwrap_or_default()
    }

    fn and(mut self, other: Self) -> Self {
        for (name, hold) in other.firm {
            if self.firm.get(&name) != Some(&Hold::Column) {
                self.firm.insert(name, hold);
            }
        }
        self.ids.extend(other.ids);
        self
    }

    fn or(mut self, other: Self) -> Self {
        self.firm.retain(|name, hold| match other.firm.get(name) {
            Some(Hold::Column) => true,
            Some(also) => {
                *hold = also.clone();
                true
            }
            None => false,
        });
        self.ids.extend(other.ids);
        self
    }
}

/// Whether a subquery compares a column of its own with one of the row around it.
fn is_correlated(query: &Query) -> bool {
    let Some(select) = plain_select(query) else { return false };
    let own: Vec<_> = tables_of(select).into_iter().map(|(name, _)| name).collect();
    let mut correlated = false;
    if let Some(condition) = &select.selection {
        for part in conjuncts(condition) {
            if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part
                && let (Some(left), Some(right)) = (table_named(left), table_named(right))
            {
                correlated |= own.contains(&left) != own.contains(&right);
            }
        }
    }
    correlated
}

fn conjuncts(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::Nested(inner) => conjuncts(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            [conjuncts(left), conjuncts(right)].concat()
        }
        other => vec![other],
    }
}

/// The table that a column is qualified with.
fn table_named(expr: &Expr) -> Option<String> {
    match expr {
        Expr::CompoundIdentifier(parts) => {
            parts.len().checked_sub(2).map(|before_last| parts[before_last].value.clone())
        }
        _ => None,
    }
}

/// The parameters that something parsed names.
fn parameters_in(of: &impl Visit) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let _ = visit_expressions(of, |expr| {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(name) = name.strip_prefix(':')
        {
            names.insert(name.to_owned());
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["tenant_id", "id", "from", "to", "version", "now_us"];

    fn faults(text: &str, dialect: Dialect, only_tenant: Option<&str>) -> Vec<String> {
        let expected = Expected { dialect, parameters: &KNOWN, only_tenant, is_general: true };
        let faults = judge(text, &expected);
        faults
            .into_iter()
            .map(|f| format!("{} {}: {}", if f.is_harm { "harm" } else { "unproven" }, f.at, f.message))
            .collect()
    }

    fn assert_proven(text: &str) {
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
            assert_eq!(faults(text, dialect, None), [] as [String; 0], "{dialect:?}: {text}");
        }
    }

    #[track_caller]
    fn assert_fault(text: &str, what: &str) {
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::Mysql] {
            let faults = faults(text, dialect, None);
            assert!(faults.iter().any(|f| f.contains(what)), "{dialect:?}: {text}\nsays {faults:#?}");
        }
    }

    #[test]
    fn a_guard_that_holds_on_to_the_row_is_proven() {
        for guard in [
            "tenant_id = :tenant_id AND id = :id AND status IN (:from)",
            ":id = id AND (status = :from AND tenant = :tenant_id) AND version = :version",
            "tenant = :tenant_id AND id = CAST(:id AS DECIMAL) AND CASE WHEN paid THEN 'PAID' ELSE 'NEW' END IN (:from)",
            "key = CONCAT(:tenant_id, '/', :id) AND (status IN (:from) OR status = :from)",
            "t = :tenant_id AND id = :id AND EXISTS (SELECT 1 FROM states s WHERE s.order_id = o.id AND s.name IN (:from))",
            "t = :tenant_id AND id IN (SELECT order_id FROM codes WHERE code = :id) AND status IN (:from)",
        ] {
            assert_proven(&format!("UPDATE o SET status = :to WHERE {guard}"));
        }
        assert_proven(
            "INSERT INTO refunds (payment_id, state) SELECT p.id, :to FROM payments p \
             WHERE p.tenant = :tenant_id AND p.id = :id AND p.state IN (:from); \
             UPDATE log SET n = n + 1 WHERE tenant = :tenant_id AND id = :id",
        );
    }

    #[test]
    fn a_guard_that_lets_others_through_is_refused() {
        let all = [
            ("tenant = :tenant_id AND status IN (:from)", "WHERE does not name :id"),
            ("id = :id AND status IN (:from)", "WHERE does not name :tenant_id"),
            ("tenant = :tenant_id AND id = :id", "WHERE does not name :from"),
            ("tenant = :tenant_id AND id = :id OR status IN (:from)", "names :id where it does not narrow"),
            ("tenant = :tenant_id AND id = :id AND NOT status IN (:from)", "names :from where it does"),
            ("tenant = :tenant_id AND id = :id AND status NOT IN (:from)", "names :from where it does"),
            ("tenant = :tenant_id AND id = :id AND status <> :from", "names :from where it does"),
            ("tenant = :tenant_id AND id = :id AND status IN (:from, 'X')", "names :from where it does"),
            ("tenant = :tenant_id AND id = :id AND :from = :from", "names :from where it does"),
            ("tenant = :tenant_id AND :id = '1' AND status IN (:from)", "compares :id with no column"),
            (
                "tenant = :tenant_id AND EXISTS (SELECT 1 FROM o x WHERE x.id = :id) AND status IN (:from)",
                "names :id where it does not narrow",
            ),
        ];
        for (guard, what) in all {
            assert_fault(&format!("UPDATE o SET status = :to WHERE {guard}"), what);
        }
        assert_fault("UPDATE o SET status = :to", "without WHERE");
        assert_fault("INSERT INTO o (id, s) VALUES (:id, :to)", "adds a row whatever");
        assert_fault("SELECT :to", "guards nothing");
        assert_fault("-- nothing", "holds no statement");
    }

    #[test]
    fn what_removes_or_changes_tables_is_refused_wherever_it_stands() {
        let guard = "UPDATE o SET s = :to WHERE t = :tenant_id AND id = :id AND s IN (:from)";
        for verb in ["DELETE FROM o WHERE id = :id", "DROP TABLE o", "ALTER TABLE o ADD x INT", "COMMIT"] {
            let first = verb.split(' ').next().unwrap();
            assert_fault(&format!("{guard}; {verb}"), &format!("harm statement 2: {first} has no place"));
            assert_fault(&format!("{guard}\n-- or\n{verb}"), "harm alternative 2, statement 1: ");
        }
        assert_fault(&format!("{guard}; GRANT SELECT ON o TO x"), "GRANT has no place");
        assert_fault(&format!("{guard}; REPLACE INTO o (id) VALUES (:id)"), "REPLACE");
    }

    #[test]
    fn an_id_is_never_set_and_parameters_are_known() {
        let where_ = "WHERE t = :tenant_id AND o.id = :id AND s IN (:from)";
        assert_fault(&format!("UPDATE o SET s = :to, id = 'x' {where_}"), "sets id, by which it finds");
        assert_fault(&format!("UPDATE o SET s = :to, n = :sold {where_}"), "names :sold, which is none of");
        assert_fault(&format!("UPDATE o SET s = 'GONE' {where_}"), "never names :to");
    }

    #[test]
    fn what_cannot_be_followed_is_unproven() {
        let guard = "UPDATE o SET s = :to WHERE t = :tenant_id AND id = :id AND s IN (:from)";
        assert_fault(
            &format!("{guard}; UPDATE q SET n = :to WHERE t = :tenant_id"),
            "unproven statement 2: its WHERE",
        );
        assert_fault(&format!("{guard}; SELECT cancel_order(:id)"), "calls cancel_order");
        let call = "CALL move_order(:tenant_id, :id, :from, :to)";
        let found = faults(call, Dialect::Mysql, None);
        assert!(found[0].starts_with("unproven statement 1: calls a procedure"), "{found:?}");
        assert_fault(
            "UPDATE o SET s = :to WHERE t = :tenant_id AND id = :id AND 'PAID' IN (:from) AND paid",
            "unproven",
        );
        assert_fault("UPDATE o SET s = :to WHERE ((", "unproven");
    }

    #[test]
    fn one_tenant_is_enough_where_the_ledger_knows_one() {
        let of = |tenant: &str| format!("UPDATE o SET s = :to WHERE id = :id AND s IN (:from){tenant}");
        let found = |text: &str| faults(text, Dialect::Sqlite, Some("shop"));
        assert!(found(&of(""))[0].starts_with("unproven"), "{:?}", found(&of("")));
        assert_eq!(found(&of(" AND :tenant_id = 'shop'")), [] as [String; 0]);
        assert!(found(&of(" AND :tenant_id = 'other'"))[0].starts_with("unproven"));
    }
}
