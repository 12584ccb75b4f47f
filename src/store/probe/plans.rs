//! What a database says about how it would run a statement.

/// How a statement reaches a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub table: String,
    /// By what an index narrows it: column names, or conditions; an empty text where an index could
    /// and the table is too small to use it; nothing where all of it is read.
    pub by: Vec<String>,
}

pub(super) fn sqlite_access(detail: &str) -> Option<Access> {
    let (how, rest) = detail.split_once(' ')?;
    let table = rest.split(' ').next()?.to_owned();
    let terms = rest.rsplit_once('(').map(|(_, terms)| terms.trim_end_matches(')'));
    match (how, terms) {
        ("SCAN", _) if table == "ledger" || table == "CONSTANT" => None,
        ("SEARCH", Some(terms)) if !rest.contains("AUTOMATIC") => {
            let names = terms.split(" AND ").map(|term| term.split(['=', '<', '>']).next().unwrap_or(term));
            Some(Access { table, by: names.map(str::to_owned).collect() })
        }
        ("SCAN" | "SEARCH", _) => Some(Access { table, by: Vec::new() }),
        _ => None,
    }
}

/// How PostgreSQL calls reaching a table.
const TABLE_SCANS: [&str; 4] = ["Seq Scan ", "Index Scan ", "Index Only Scan ", "Bitmap Heap Scan "];

pub(super) fn postgres_accesses(lines: &[String]) -> Vec<Access> {
    let mut accesses: Vec<Access> = Vec::new();
    for line in lines {
        let line = line.trim().trim_start_matches("->").trim();
        let after = |what: &str| {
            line.split_once(what).and_then(|(_, rest)| rest.split(' ').next()).map(str::to_owned)
        };
        if let Some(condition) = line.strip_prefix("Index Cond: ") {
            if let Some(access) = accesses.last_mut() {
                access.by.push(condition.to_owned());
            }
        } else if TABLE_SCANS.iter().any(|scan| line.starts_with(scan)) {
            // A bitmap's index comes after its table; what narrows the one narrows the other.
            accesses.push(Access { table: after(" on ").unwrap_or_default(), by: Vec::new() });
        }
    }
    accesses
}

pub(super) fn mysql_accesses(plan: &serde_json::Value) -> Vec<Access> {
    let mut accesses = Vec::new();
    walk(plan, &mut |table| {
        let text = |name: &str| table.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let list = |name: &str| -> Vec<String> {
            let list = table.get(name).and_then(serde_json::Value::as_array);
            list.into_iter().flatten().filter_map(|v| Some(v.as_str()?.to_owned())).collect()
        };
        let name = text("table_name");
        if name.is_empty() || name.starts_with('<') {
            return;
        }
        let by = match text("access_type") {
            "ALL" | "index" => list("possible_keys").first().map(|_| String::new()).into_iter().collect(),
            _ => list("used_key_parts"),
        };
        accesses.push(Access { table: name.to_owned(), by });
    });
    accesses
}

/// Visits every table in a plan.
pub(super) fn walk(
    plan: &serde_json::Value,
    visit: &mut impl FnMut(&serde_json::Map<String, serde_json::Value>),
) {
    match plan {
        serde_json::Value::Object(members) => {
            if members.contains_key("access_type") {
                visit(members);
            }
            members.values().for_each(|member| walk(member, visit));
        }
        serde_json::Value::Array(list) => list.iter().for_each(|member| walk(member, visit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_say_how_a_table_is_reached() {
        let by = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let access = |table: &str, names: &[&str]| Access { table: table.into(), by: by(names) };
        assert_eq!(
            sqlite_access("SEARCH orders USING INDEX x (tenant_id=? AND created_at_us>?)"),
            Some(access("orders", &["tenant_id", "created_at_us"]))
        );
        assert_eq!(sqlite_access("SCAN o USING COVERING INDEX x"), Some(access("o", &[])));
        assert_eq!(sqlite_access("SCAN ledger"), None);
        let lines = [
            "Nested Loop  (cost=1..2 rows=1 width=8)",
            "  ->  Subquery Scan on \"*SELECT* 1\"  (cost=1..2 rows=1 width=8)",
            "  ->  Seq Scan on payments p  (cost=1..2 rows=1 width=8)",
            "  ->  Bitmap Heap Scan on orders o  (cost=1..2 rows=1 width=8)",
            "        ->  Bitmap Index Scan on x  (cost=1..2 rows=1 width=8)",
            "              Index Cond: (show_id = 'a'::text)",
        ];
        let lines = lines.map(str::to_owned);
        let expected = vec![access("payments", &[]), access("orders", &["(show_id = 'a'::text)"])];
        assert_eq!(postgres_accesses(&lines), expected);
        let plan = serde_json::json!({"query_block": {"nested_loop": [
            {"table": {"table_name": "o", "access_type": "ALL"}},
            {"table": {"table_name": "p", "access_type": "ref", "used_key_parts": ["a", "b"]}},
        ]}});
        assert_eq!(mysql_accesses(&plan), [access("o", &[]), access("p", &["a", "b"])]);
    }
}
