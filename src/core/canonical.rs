//! Canonical JSON: members sorted by name, no whitespace. The same value is always the same text.

use serde_json::Value;

/// Appends the canonical text of `value`.
pub fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(list) => {
            out.push('[');
            for (i, element) in list.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(element, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            out.push('{');
            for (i, name) in names.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(&members[name], out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_sorted_at_every_depth_and_nothing_is_spaced() {
        let value = serde_json::json!({"b": [1, {"z": null, "a\"": "é\n"}], "a": true});
        let mut text = String::new();
        write(&value, &mut text);
        assert_eq!(text, r#"{"a":true,"b":[1,{"a\"":"é\n","z":null}]}"#);
    }
}
