//! Releases, renewals and one-time tokens on a real Redis.

use redis::Commands as _;
use serde_json::Value;

use crate::common::site::{Ran, program, run};

fn url() -> String {
    std::env::var("ONEFOLD_TEST_REDIS_URL").unwrap_or_else(|_| {
        panic!("ONEFOLD_TEST_REDIS_URL is not set: run the tests by tests/run.sh, which provides the server")
    })
}

fn check(rest: &[&str]) -> Ran {
    let line = [&["locks", "check-script"], rest].concat();
    run(program().env("ONEFOLD_REDIS_URL", url()).args(&line), &line)
}

fn wrong(json: &Value) -> Vec<String> {
    let trials = json["trials"].as_array().unwrap();
    let is_wrong = |t: &&Value| t["holds"] == false;
    trials.iter().filter(is_wrong).map(|t| format!("{} of {}", t["act"], t["on"]).replace('"', "")).collect()
}

/// Keys of trials that are there.
fn left_behind() -> Vec<String> {
    let mut redis = redis::Client::open(url()).unwrap().get_connection().unwrap();
    redis.scan_match("onefold:trial*").unwrap().map(Result::unwrap).collect()
}

const SAFE_RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const SAFE_RENEWAL: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

#[test]
fn a_script_is_told_from_one_that_robs_the_next_holder() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).to_str().unwrap().to_owned()
    };
    let (release, renew) = (file("release.lua", SAFE_RELEASE), file("renew.lua", SAFE_RENEWAL));
    let safe = check(&["--release", &release, "--renew", &renew, "--json"]).ends(0).json();
    assert_eq!((wrong(&safe), safe["trials"].as_array().unwrap().len()), (vec![], 6));

    let bare = file("bare.lua", "return redis.call('DEL', KEYS[1])");
    check(&["--release", &bare])
        .ends(5)
        .prints("it is gone, as by a bare DEL")
        .prints("redis.call('GET', KEYS[1])");
    let nothing = file("nothing.lua", "return 0");
    let json = check(&["--release", &nothing, "--renew", &nothing, "--json"]).ends(5).json();
    assert_eq!(wrong(&json), ["release of its own lock", "renewal of its own lock"]);
    let broken = file("broken.lua", "return redis.call('DEL', ARGV[9])");
    check(&["--release", &broken]).fails(1, &["the script", "KEYS[1] is the lock's key"]);
}

#[test]
fn one_command_is_told_in_the_same_way() {
    for (command, expected) in [
        ("DEL {key}", "release of the next holder's lock"),
        ("UNLINK {key}", "release of the next holder's lock"),
        ("GETDEL {key}", "release of the next holder's lock"),
    ] {
        let json = check(&["--release-command", command, "--json"]).ends(5).json();
        assert_eq!(wrong(&json), [expected], "{command}");
    }
    for (command, expected) in [
        ("PEXPIRE {key} {lease_ms}", &["renewal of the next holder's lock"][..]),
        ("SET {key} {value} PX {lease_ms}", &["renewal of the next holder's lock", "renewal of no lock"]),
        ("SET {key} {value} XX PX {lease_ms}", &["renewal of the next holder's lock"]),
    ] {
        let json = check(&["--renew-command", command, "--json"]).ends(5).json();
        assert_eq!(wrong(&json), expected, "{command}");
    }
    // What could touch another key than the trial's is not run.
    for command in ["FLUSHALL", "DEL", "DEL {key} stock:H-88", "SET stock:H-88 1", "DEL stock:{key}"] {
        check(&["--release-command", command]).fails(2, &[command]);
    }
    check(&[]).fails(2, &["nothing is named"]);
}

#[test]
fn a_program_is_given_key_and_value_on_its_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unlock");
    let url = url::Url::parse(&url()).unwrap();
    let (host, port) = (url.host_str().unwrap(), url.port().unwrap_or(6379));
    // What Redis is told is simple enough for a shell.
    let login = url.password().map_or(String::new(), |password| {
        let password = percent_encoding::percent_decode_str(password).decode_utf8().unwrap();
        format!("printf 'AUTH %s\\r\\n' '{password}' >&3\nread -r _ <&3\n")
    });
    let text = format!(
        "#!/bin/bash\nread -r line || true\nkey=$(sed -E 's/.*\"key\":\"([^\"]*)\".*/\\1/' <<<\"$line\")\n\
         exec 3<>/dev/tcp/{host}/{port}\n{login}printf 'DEL %s\\r\\n' \"$key\" >&3\nread -r _ <&3\n"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ran = check(&["--release-program", path.to_str().unwrap()]).ends(5);
    ran.prints("it is gone, as by a bare DEL").prints("A program that looks first");
    check(&["--release-program", "/nowhere/unlock"]).fails(1, &["cannot be run"]);
}

#[test]
fn a_token_is_taken_once_by_what_del_answers_and_more_than_once_by_a_look_before() {
    let line = ["token", "drill", "--rounds", "50", "--requests", "8", "--json"];
    let json = run(program().env("ONEFOLD_REDIS_URL", url()).args(line), &line).ends(0).json();
    let way = |name: &str| {
        let ways = json["ways"].as_array().unwrap();
        ways.iter().find(|w| w["way"] == name).unwrap()["counts"].clone()
    };
    let del = way("del");
    assert_eq!((&del["accepted"], &del["doubled"], &del["most"]), (&50.into(), &0.into(), &1.into()));
    // Eight requests look before the first of them deletes, in some round of fifty at the least.
    let look = way("get_then_del");
    assert!(look["doubled"].as_u64().unwrap() > 0 && look["most"].as_u64().unwrap() > 1, "{json:#}");
    assert_eq!((&json["retried"]["refused"], &json["retried"]["doubled"]), (&50.into(), &50.into()));
    assert_eq!((&json["redelivered"]["doubled"], &json["redelivered"]["most"]), (&50.into(), &2.into()));
    let line = ["token", "drill", "--rounds", "3"];
    let told = run(program().env("ONEFOLD_REDIS_URL", url()).args(line), &line).ends(0);
    told.prints("WHAT A TOKEN DOES NOT COVER").prints("GET, then DEL");
}

#[test]
fn a_password_is_never_typed_and_never_printed() {
    let typed = ["token", "drill", "--redis", "redis://:s3cret@127.0.0.1:1"];
    run(program().args(typed), &typed).fails(2, &["in the list of processes"]).does_not_print("s3cret");
    let line = ["token", "drill"];
    run(program().args(line), &line).fails(2, &["no Redis is named", "ONEFOLD_REDIS_URL"]);
    let of_variable = |url: &str| run(program().env("ONEFOLD_REDIS_URL", url).args(line), &line);
    of_variable("redis://:s3cret@127.0.0.1:1").fails(1, &["redis 127.0.0.1:1"]).does_not_print("s3cret");
    of_variable("mysql://:s3cret@127.0.0.1").fails(2, &["none of Redis"]).does_not_print("s3cret");
}

#[test]
fn no_key_of_a_trial_is_left_and_none_of_others_is_touched() {
    let mut redis = redis::Client::open(url()).unwrap().get_connection().unwrap();
    let theirs = format!("onefold-test-{}", std::process::id());
    let _: () = redis.set_ex(&theirs, "theirs", 60).unwrap();
    check(&["--release-command", "DEL {key}"]).ends(5);
    let line = ["token", "drill", "--rounds", "3"];
    run(program().env("ONEFOLD_REDIS_URL", url()).args(line), &line).ends(0);
    assert_eq!(redis.get::<_, String>(&theirs).unwrap(), "theirs");
    let _: () = redis.del(&theirs).unwrap();
    // Tests beside this one have keys there for moments: in the end there is none.
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        left_behind().is_empty()
    });
    assert!(gone, "{:?}", left_behind());
}
