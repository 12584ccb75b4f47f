//! What the SQL of a ledger says about itself: which columns it gives, and out of what.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Query, Select, SelectItem, SetExpr, Statement, TableFactor, Value, Visit, visit_relations,
};
use sqlparser::dialect::{Dialect as Grammar, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;

use crate::core::status::Ledger;
use crate::store::sql::alternatives;
use crate::store::{Dialect, Queries};

/// A column that the contract wants of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub name: String,
    pub is_number: bool,
}

/// What the contract wants of a ledger: our own SQL says it.
pub fn wanted(ledger: Ledger) -> Vec<Wanted> {
    let ours = Queries::default();
    let text = ours.find(&format!("ledgers/{ledger}")).unwrap_or_default();
    let names = Source::read(text, Dialect::Sqlite).map(|source| source.names).unwrap_or_default();
    let is_number = |name: &str| {
        name.ends_with("_us") || name.ends_with("_minor") || ["quantity", "attempts"].contains(&name)
    };
    names.into_iter().map(|name| Wanted { is_number: is_number(&name), name }).collect()
}

/// The SQL of a ledger, as far as it is one plain SELECT.
#[derive(Debug, Default)]
pub struct Source {
    /// The names of its columns, in their order.
    names: Vec<String>,
    /// Out of what each column is made.
    columns: BTreeMap<String, Expr>,
    /// The tables that it reads, each by the name that its columns carry, the first of FROM first.
    tables: Vec<(String, String)>,
}

impl Source {
    /// `None` where it is not one SELECT that the parser understands.
    pub fn read(text: &str, dialect: Dialect) -> Option<Self> {
        let statements = parsed(text, dialect).ok()?;
        let [Statement::Query(query)] = statements.as_slice() else { return None };
        let select = plain_select(query)?;
        let mut source = Self { tables: tables_of(select), ..Self::default() };
        for item in &select.projection {
            let (name, expr) = match item {
                SelectItem::ExprWithAlias { expr, alias } => (alias.value.clone(), expr),
                SelectItem::UnnamedExpr(expr) => (column_name(expr)?, expr),
                _ => return None,
            };
            source.names.push(name.clone());
            source.columns.insert(name, expr.clone());
        }
        Some(source)
    }

    /// The text that a column always is; `None` where it is made of something else.
    pub fn constant(&self, column: &str) -> Option<String> {
        literal(self.columns.get(column)?)
    }

    /// The name of the one column of theirs that a column of ours is, without its table.
    pub fn plain_column(&self, column: &str) -> Option<String> {
        column_name(self.columns.get(column)?)
    }

    /// The table that is called so; the name itself where it is none of the SELECT's.
    pub fn called<'n>(&'n self, name: &'n str) -> &'n str {
        let known = self.tables.iter().find(|(called, table)| called == name && !table.is_empty());
        known.map_or(name, |(_, table)| table)
    }

    /// What an index must hold to find rows by these columns: the table, and the columns or
    /// expressions in it. `None` where they are not of one table.
    pub fn index(&self, columns: &[&str]) -> Option<(String, Vec<String>)> {
        let (mut table, mut parts) = (None, Vec::new());
        for column in columns {
            let expr = self.columns.get(*column)?;
            if literal(expr).is_some() {
                continue;
            }
            let of = self.table_of(expr)?;
            if *table.get_or_insert(of) != of {
                return None;
            }
            parts.push(match column_name(expr) {
                Some(name) => name,
                None => format!("({})", unqualified(expr)),
            });
        }
        Some((table?.to_owned(), parts))
    }

    /// The table of all columns in an expression.
    fn table_of(&self, expr: &Expr) -> Option<&str> {
        let mut found: Option<&str> = None;
        for part in columns_in(expr) {
            let table = match &part {
                Expr::CompoundIdentifier(parts) if parts.len() > 1 => {
                    let alias = &parts[parts.len() - 2].value;
                    self.tables.iter().find(|(name, _)| name == alias).map(|(_, table)| table.as_str())?
                }
                _ if self.tables.len() == 1 => &self.tables[0].1,
                _ => return None,
            };
            if *found.get_or_insert(table) != table {
                return None;
            }
        }
        found
    }
}

/// The statements of a text in a dialect's grammar, or where it does not follow it.
pub fn parsed(text: &str, dialect: Dialect) -> Result<Vec<Statement>, String> {
    let grammar: &dyn Grammar = match dialect {
        Dialect::Sqlite => &SQLiteDialect {},
        Dialect::Postgres => &PostgreSqlDialect {},
        Dialect::Mysql => &MySqlDialect {},
    };
    Parser::parse_sql(grammar, text).map_err(|e| e.to_string().replace("sql parser error: ", ""))
}

/// The tables that a text names, as it names them; `None` where it cannot be parsed.
pub fn tables_named(text: &str, dialect: Dialect) -> Option<Vec<String>> {
    let mut statements = Vec::new();
    for alternative in alternatives(text) {
        statements.extend(parsed(&alternative, dialect).ok()?);
    }
    let mut tables = Vec::new();
    let _ = visit_relations(&statements, |name| {
        let parts: Vec<_> =
            name.0.iter().filter_map(|part| part.as_ident()).map(|i| i.value.clone()).collect();
        let name = parts.join(".");
        if !tables.contains(&name) {
            tables.push(name);
        }
        ControlFlow::<()>::Continue(())
    });
    Some(tables)
}

/// The SELECT that a query is, where it is no union and no VALUES.
pub fn plain_select(query: &Query) -> Option<&Select> {
    match query.body.as_ref() {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => plain_select(query),
        _ => None,
    }
}

/// The columns that an expression names, each as often as it does.
pub fn columns_in(of: &impl Visit) -> Vec<Expr> {
    let mut columns = Vec::new();
    let _ = sqlparser::ast::visit_expressions(of, |expr| {
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            columns.push(expr.clone());
        }
        ControlFlow::<()>::Continue(())
    });
    columns
}

/// The name of the column that an expression is, without its table.
pub fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.clone()),
        Expr::Nested(inner) => column_name(inner),
        _ => None,
    }
}

/// The text of a literal, cast or not.
pub fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => literal(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            Value::Number(number, _) => Some(number.to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// An expression without the names of its tables, as an index wants it.
fn unqualified(expr: &Expr) -> String {
    let mut expr = expr.clone();
    let _ = sqlparser::ast::visit_expressions_mut(&mut expr, |part| {
        if let Expr::CompoundIdentifier(parts) = part
            && let Some(last) = parts.last().cloned()
        {
            *part = Expr::Identifier(last);
        }
        ControlFlow::<()>::Continue(())
    });
    expr.to_string()
}

/// The tables of a SELECT by the names under which its columns carry them.
pub fn tables_of(select: &Select) -> Vec<(String, String)> {
    let factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    factors
        .filter_map(|factor| match factor {
            TableFactor::Table { name, alias, .. } => {
                let table = name.to_string();
                let called = alias.as_ref().map_or_else(
                    || name.0.last().and_then(|p| p.as_ident()).map(|i| i.value.clone()).unwrap_or_default(),
                    |alias| alias.name.value.clone(),
                );
                Some((called, table))
            }
            TableFactor::Derived { alias, .. } => {
                let alias = alias.as_ref()?.name.value.clone();
                Some((alias, String::new()))
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_s_columns_are_those_of_our_own_files() {
        for (ledger, count) in Ledger::ALL.into_iter().zip([15, 15, 12, 13]) {
            assert_eq!(wanted(ledger).len(), count, "{ledger}");
        }
        let numbers: Vec<_> = wanted(Ledger::Payments).into_iter().filter(|w| w.is_number).collect();
        let names: Vec<_> = numbers.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["amount_minor", "refunded_minor", "created_at_us", "captured_at_us"]);
    }

    #[test]
    fn an_index_is_named_by_their_columns() {
        let text = "SELECT o.code AS order_id, CAST(o.event AS TEXT) AS show_id, 'shop' AS tenant_id, \
                    c.name AS currency FROM shop_orders o LEFT JOIN currencies c ON c.id = o.currency_id";
        let source = Source::read(text, Dialect::Postgres).unwrap();
        assert_eq!(source.constant("tenant_id").as_deref(), Some("shop"));
        assert_eq!(
            source.index(&["tenant_id", "order_id"]),
            Some(("shop_orders".into(), vec!["code".into()]))
        );
        let (table, parts) = source.index(&["show_id"]).unwrap();
        assert_eq!((table.as_str(), parts[0].as_str()), ("shop_orders", "(CAST(event AS TEXT))"));
        assert_eq!(source.index(&["order_id", "currency"]), None);
    }
}
