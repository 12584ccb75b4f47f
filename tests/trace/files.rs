//! Access logs as files.

use onefold::core::trace::access::AccessLine;
use onefold::files::{AccessOptions, Faults, read_access};

const HEADER: &str = "at,request_id,source";

fn read_as(text: &str, options: &AccessOptions) -> Result<(Vec<AccessLine>, Vec<String>), Faults> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    std::fs::write(&path, text).unwrap();
    let mut lines = Vec::new();
    let notes = read_access(&path, options, &mut |line| lines.push(line), &mut |_| ())?;
    Ok((lines, notes))
}

fn read(text: &str) -> Result<(Vec<AccessLine>, Vec<String>), Faults> {
    read_as(text, &AccessOptions::default())
}

/// Line, column, value and problem.
type Told = (Option<u64>, Option<String>, Option<String>, String);

fn faults(text: &str) -> Vec<Told> {
    let faults = read(text).unwrap_err();
    faults.iter().map(|f| (f.line, f.column.clone(), f.value.clone(), f.problem.clone())).collect()
}

#[test]
fn csv_and_json_lines_say_the_same() {
    let csv = "source,at,request_id,attempt,status,latency_ms,trace_id,idempotency_key,user_id,show_id,order_id,more\n\
               gateway,2026-11-11T20:14:03.020+08:00,r1,2,,3000,tr,k,u,s,,x\n\
               client,2026-11-11T12:14:05Z,r2,,201,418,,,,,O-1,\n";
    let json = "{\"source\":\"gateway\",\"at\":\"2026-11-11T20:14:03.020+08:00\",\"request_id\":\"r1\",\"attempt\":2,\
                \"status\":null,\"latency_ms\":3000,\"trace_id\":\"tr\",\"idempotency_key\":\"k\",\"user_id\":\"u\",\
                \"show_id\":\"s\"}\n\n{\"at\":\"2026-11-11T12:14:05Z\",\"request_id\":\"r2\",\"source\":\"client\",\
                \"status\":201,\"latency_ms\":418,\"order_id\":\"O-1\",\"bytes\":{\"in\":1}}\n";
    let (lines, notes) = read(csv).unwrap();
    let (same, of_json) = read(json).unwrap();
    assert_eq!(lines, same);
    assert_eq!(
        notes,
        ["unknown columns are ignored: \"more\"", "columns that are not in the file: tenant_id"]
    );
    assert_eq!(
        of_json,
        ["unknown members are ignored: \"bytes\"", "members that are not in the file: tenant_id"]
    );
    let [first, second] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(first.at.to_string(), "2026-11-11T12:14:03.020Z");
    assert_eq!((first.attempt, first.status, first.tenant_id.as_str()), (2, None, "default"));
    assert_eq!(first.lost_at().unwrap().to_string(), "2026-11-11T12:14:06.020Z");
    assert_eq!((second.attempt, second.status, second.is_lost()), (1, Some(201), false));
}

#[test]
fn their_names_are_mapped_in_both_forms() {
    let map = ["ts=at", "id=request_id", "upstream=source"].map(|m| m.parse().unwrap()).to_vec();
    let options = AccessOptions { map, ..AccessOptions::default() };
    let csv = read_as("ts;id;upstream\n2026-11-11T12:14:05Z;r;kong\n", &options).unwrap().0;
    let json = "{\"ts\":\"2026-11-11T12:14:05Z\",\"id\":\"r\",\"upstream\":\"kong\"}";
    assert_eq!(csv, read_as(json, &options).unwrap().0);
    for bad in ["ts", "=at", "ts=when"] {
        assert!(bad.parse::<onefold::files::AccessMap>().is_err(), "{bad}");
    }
}

#[test]
fn every_fault_is_told_with_its_place_and_value() {
    let at = "2026-11-11T12:14:05Z";
    let text = format!(
        "{HEADER},attempt,status,latency_ms,user_id\n\
         {at},r1,client,1,200,5,u\n\
         noon,,client,0,OK,-1,1.23457E+17\n\
         {at},r2,client,1,200,5\n"
    );
    let some = |text: &str| Some(text.to_owned());
    let found = faults(&text);
    let places: Vec<_> =
        found.iter().map(|(line, column, value, _)| (*line, column.clone(), value.clone())).collect();
    assert_eq!(
        places,
        [
            (Some(3), some("at"), some("noon")),
            (Some(3), some("request_id"), some("")),
            (Some(3), some("attempt"), some("0")),
            (Some(3), some("status"), some("OK")),
            (Some(3), some("latency_ms"), some("-1")),
            (Some(3), some("user_id"), some("1.23457E+17")),
            (Some(4), None, some(&format!("{at},r2,client,1,200,5"))),
        ]
    );
    assert!(found[0].3.contains("not a time"), "{found:?}");

    let json = format!("{{\"at\":\"{at}\",\"request_id\":\"r\"}}\n{{\"at\":1}}\n[]\n{{\"at\"\n");
    let found = faults(&json);
    let places: Vec<_> = found.iter().map(|(line, column, ..)| (*line, column.clone())).collect();
    assert_eq!(places[0], (Some(1), some("source")), "{found:?}");
    assert!(
        places.contains(&(Some(2), some("at"))) && places.contains(&(Some(2), some("request_id"))),
        "{found:?}"
    );
    assert!(found.iter().any(|(line, _, value, problem)| *line == Some(3)
        && value.as_deref() == Some("[]")
        && problem.contains("not one JSON object")));
    assert!(places.contains(&(Some(4), None)));
}

#[test]
fn a_header_that_is_not_one_is_told_before_any_line() {
    assert!(faults("")[0].3.contains("empty"));
    let found = faults("at,source\nx,y\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1.as_deref()), (Some(1), Some("request_id")));
    assert!(faults(&format!("{HEADER},at\n"))[0].3.contains("twice"));
    let options = AccessOptions {
        map: ["a=at", "b=at"].map(|m| m.parse().unwrap()).to_vec(),
        ..AccessOptions::default()
    };
    let error = read_as("a,b,request_id,source\n", &options).unwrap_err().to_string();
    assert!(error.contains("names at twice"), "{error}");
}

#[test]
fn a_time_without_an_offset_needs_a_zone() {
    let text = format!("{HEADER}\n2026-11-11 20:14:05,r,client\n");
    assert!(faults(&text)[0].3.contains("without an offset"));
    let options = AccessOptions { timezone: Some(chrono_tz::Asia::Shanghai), ..AccessOptions::default() };
    assert_eq!(read_as(&text, &options).unwrap().0[0].at.to_string(), "2026-11-11T12:14:05Z");
}
