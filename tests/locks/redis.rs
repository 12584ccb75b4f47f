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
    // One that asks whose the lock is unless it is about to end.
    let short = "if redis.call('PTTL', KEYS[1]) < 5000 or redis.call('GET', KEYS[1]) == ARGV[1]";
    for (flag, done) in [
        ("--release", "return redis.call('DEL', KEYS[1])"),
        ("--renew", "return redis.call('PEXPIRE', KEYS[1], ARGV[2])"),
    ] {
        let file = file("short.lua", &format!("{short} then {done} end return 0"));
        check(&[flag, &file]).ends(5).prints("with 2s left");
    }
    // A release may let the lock end, and need not delete it.
    for (ms, code) in [(1, 0), (300, 0), (5000, 5)] {
        let end = SAFE_RELEASE.replace("'DEL', KEYS[1]", &format!("'PEXPIRE', KEYS[1], {ms}"));
        check(&["--release", &file("end.lua", &end)]).ends(code);
    }
    // One that knows that the lock is not its own may say so by an error.
    let strict = SAFE_RELEASE.replace("return 0", "return redis.error_reply('NOTOWNER not yours')");
    check(&["--release", &file("strict.lua", &strict)]).ends(0);
    // Also by one whose code is one of Redis's own.
    for code in ["BUSY the lock is another's", "READONLY for you", "LOADING no"] {
        let busy = strict.replace("NOTOWNER not yours", &code.replace('\'', "\\'"));
        check(&["--release", &file("busy.lua", &busy)]).ends(0);
        let always = format!("return redis.error_reply('{}')", code.replace('\'', "\\'"));
        let of_code = code.split(' ').next().unwrap();
        check(&["--release", &file("always.lua", &always)]).fails(2, &["always.lua: ", of_code]);
    }
}

#[test]
fn the_next_holders_lease_is_its_own_too() {
    let folder = tempfile::tempdir().unwrap();
    let afterwards = |flag: &str, text: &str| {
        let path = folder.path().join("unlock.lua");
        std::fs::write(&path, text).unwrap();
        let json = check(&[flag, path.to_str().unwrap(), "--json"]).ends(5).json();
        let trials = json["trials"].as_array().unwrap();
        let wrong = trials.iter().filter(|t| t["holds"] == false);
        wrong.map(|t| format!("{}: {}", t["on"], t["found"]).replace('"', "")).collect::<Vec<_>>()
    };
    let otherwise = |what: &str| SAFE_RELEASE.replace("return 0", what);
    for (what, found) in [
        ("return redis.call('PERSIST', KEYS[1]) * 0", "it does not expire any more"),
        ("return redis.call('PEXPIRE', KEYS[1], ARGV[2]) * 0", "its lease is shorter, as by a bare PEXPIRE"),
        ("return redis.call('PEXPIRE', KEYS[1], 60000) * 0", "its lease is longer, as by a bare PEXPIRE"),
        (
            "redis.call('SET', KEYS[1], ARGV[1], 'XX', 'KEEPTTL') return 0",
            "it holds another value: the next holder is robbed",
        ),
        (
            "if redis.call('DEL', KEYS[1]) == 1 then redis.call('RPUSH', KEYS[1], 1) end return 0",
            "it holds another value: the next holder is robbed",
        ),
        (
            "if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end return 0",
            "it is untouched, but the code is told that it was released",
        ),
    ] {
        let found = format!("the next holder's lock: {found}");
        assert_eq!(afterwards("--release", &otherwise(what)), [found], "{what}");
    }
    let untold = ["the next holder's lock: it is untouched, but", "no lock: there is none, but"];
    let untold = untold.map(|told| format!("{told} the code is told that it was released"));
    assert_eq!(afterwards("--release", &otherwise("return 'OK'")), untold);

    // Words of its own and tables say the same in vain as when it was done, or something else.
    for answer in ["'released'", "{1, 'x'}", "{'lock', 'gone'}", "{ok='FINE'}", "'7'"] {
        let own = SAFE_RELEASE
            .replace("return redis.call", "redis.call")
            .replace(") end", &format!(") return {answer} end"));
        assert_eq!(
            afterwards("--release", &own.replace("return 0", &format!("return {answer}"))),
            untold,
            "{answer}"
        );
        std::fs::write(folder.path().join("own.lua"), own.replace("return 0", "return {'not', 'mine'}"))
            .unwrap();
        check(&["--release", folder.path().join("own.lua").to_str().unwrap()]).ends(0);
    }

    let renewal = |what: &str| SAFE_RENEWAL.replace("'PEXPIRE', KEYS[1], ARGV[2]", what);
    for (what, found) in [
        ("'EXPIRE', KEYS[1], ARGV[2]", "its lease is 8h20m, where 30s was asked for"),
        ("'PEXPIRE', KEYS[1], ARGV[2] / 10", "its lease is 3s, where 30s was asked for"),
        ("'PERSIST', KEYS[1]", "it does not expire any more"),
        ("'EXISTS', KEYS[1]", "its lease is as it was"),
        ("'DEL', KEYS[1]", "it is gone"),
        ("'SET', KEYS[1], 'x', 'PX', ARGV[2]", "it holds another value"),
    ] {
        assert_eq!(afterwards("--renew", &renewal(what)), [format!("its own lock: {found}")], "{what}");
    }
    // Seconds are no worse than milliseconds, if they are seconds.
    check(&["--renew-command", "PEXPIRE {key} 30900"]).ends(5).prints("its lease is as asked");
}

#[test]
fn code_that_looks_at_the_lease_or_at_a_part_of_the_value_robs_the_next_holder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock.lua");
    let on_next = |flag: &str, text: &str| {
        std::fs::write(&path, text).unwrap();
        let json = check(&[flag, path.to_str().unwrap(), "--json"]).ends(5).json();
        let trial = json["trials"].as_array().unwrap().iter().find(|t| t["holds"] == false).unwrap().clone();
        assert_eq!(trial["on"], "the next holder's lock", "{text}");
        trial["found"].as_str().unwrap().to_owned()
    };
    for command in ["PEXPIRE {key} {lease_ms} GT", "EXPIRE {key} 30 GT", "PEXPIRE {key} {lease_ms} XX"] {
        let json = check(&["--renew-command", command, "--json"]).ends(5).json();
        assert!(
            wrong(&json).contains(&"renewal of the next holder's lock".to_owned()),
            "{command}: {json:#}"
        );
    }
    let left = "local left = redis.call('PTTL', KEYS[1])\n";
    for (when, then) in [("left <= ARGV[2] / 2", "15s"), ("left < 13000", "12s")] {
        let is_it = format!("redis.call('GET', KEYS[1]) == ARGV[1] or left > 0 and {when}");
        let code = |what: &str| format!("{left}if {is_it} then return redis.call({what}) end return 0");
        let longer = format!("its lease is longer, as by a bare PEXPIRE, with {then} left");
        assert_eq!(on_next("--renew", &code("'PEXPIRE', KEYS[1], ARGV[2]")), longer, "{when}");
        let gone = format!("it is gone, as by a bare DEL: the next holder is robbed, with {then} left");
        assert_eq!(on_next("--release", &code("'DEL', KEYS[1]")), gone, "{when}");
    }
    for (compared, how) in [
        ("string.match(v, '^[^:]+') == string.match(ARGV[1], '^[^:]+')", ""),
        ("#v == #ARGV[1]", ""),
        ("string.sub(v, 1, -2) == string.sub(ARGV[1], 1, -2)", ""),
        (
            "string.sub(v, 2) == string.sub(ARGV[1], 2)",
            ", where its value differs in its first letter only, a capital one",
        ),
        (
            "string.lower(v) == string.lower(ARGV[1])",
            ", where its value differs in its first letter only, a capital one",
        ),
        (
            "string.sub(v, -1) == string.sub(ARGV[1], -1)",
            ", where its value differs in its first letter only, a capital one",
        ),
        ("string.sub(v, 1, #ARGV[1]) == ARGV[1]", ", where its value begins as the first holder's does"),
        ("string.sub(ARGV[1], 1, #v) == v", ", where the first holder's value begins as its does"),
    ] {
        let release = format!(
            "local v = redis.call('GET', KEYS[1])\nif v and ({compared}) then return redis.call('DEL', KEYS[1]) end return 0"
        );
        let gone = format!("it is gone, as by a bare DEL: the next holder is robbed{how}");
        assert_eq!(on_next("--release", &release), gone, "{compared}");
    }
}

#[test]
fn code_that_cannot_run_is_named_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let script = |text: &str| {
        std::fs::write(folder.path().join("unlock.lua"), text).unwrap();
        let line = ["locks", "check-script", "--release", "unlock.lua"];
        run(program().current_dir(folder.path()).env("ONEFOLD_REDIS_URL", url()).args(line), &line)
    };
    script("local a = 1\nif then").fails(2, &["unlock.lua:2: ", "KEYS[1] is the lock's key"]);
    script("local a = 1\nreturn redis.call('DEL', ARGV[9])").fails(2, &["unlock.lua:2: "]);
    script("return nobody()").fails(2, &["unlock.lua:1: ", "nobody"]);
    script("return redis.error_reply('MINE no')").fails(2, &["unlock.lua: ", "MINE"]);
    check(&["--release-command", "EXPIRE {key} soon"]).fails(2, &["EXPIRE {key} soon", "{lease_ms}"]);
}

/// A Redis of its own: nobody else waits while a script does not end. It is stopped when this is dropped.
struct OwnRedis(std::process::Child, String);

impl OwnRedis {
    fn start(folder: &std::path::Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = std::process::Command::new("redis-server");
        command.current_dir(folder).arg("--port").arg(port.to_string());
        command.args(["--bind", "127.0.0.1", "--save", "", "--lua-time-limit", "100"]);
        let child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let redis = Self(child, format!("redis://127.0.0.1:{port}"));
        let answers = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            redis.connection().is_some()
        });
        assert!(answers, "{}", redis.1);
        redis
    }

    fn connection(&self) -> Option<redis::Connection> {
        redis::Client::open(self.1.as_str()).unwrap().get_connection().ok()
    }
}

impl Drop for OwnRedis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_script_that_does_not_end_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let redis = OwnRedis::start(folder.path());
    let check = |text: &str| {
        std::fs::write(folder.path().join("loop.lua"), text).unwrap();
        let line = ["locks", "check-script", "--redis", &redis.1, "--renew", "loop.lua"];
        run(program().current_dir(folder.path()).args(line), &line)
    };
    check("while true do end").fails(2, &["loop.lua: the script did not end", "SCRIPT KILL"]);
    let mut others = redis.connection().expect("others are served again");
    assert_eq!(others.scan::<String>().unwrap().count(), 0);
    // What has written cannot be stopped, and that is said.
    check("redis.call('SET', KEYS[1], 'x') while true do end")
        .fails(2, &["loop.lua: the script did not end", "cannot be stopped", "SHUTDOWN NOSAVE"]);
    let busy = ["token", "drill", "--redis", &redis.1];
    run(program().args(busy), &busy).fails(1, &["BUSY", "SCRIPT KILL"]);
}

#[test]
fn whoever_interrupts_a_trial_leaves_neither_a_script_that_runs_nor_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let redis = OwnRedis::start(folder.path());
    std::fs::write(folder.path().join("loop.lua"), "while true do end").unwrap();
    let line = ["locks", "check-script", "--redis", &redis.1, "--release", "loop.lua"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_onefold"));
    command.current_dir(folder.path()).args(line).stdout(std::process::Stdio::null());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("interrupted; ") && said.contains("SCRIPT KILL"), "{said}");
    let mut others = redis.connection().expect("others are served again");
    assert_eq!(others.scan::<String>().unwrap().count(), 0);
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
    let json = check(&["--release-program", path.to_str().unwrap(), "--json"]).ends(5).json();
    assert!(json["caveat"].as_str().unwrap().starts_with("A program that looks first"), "{json:#}");
    let script = check(&["--release-command", "DEL {key}", "--json"]).ends(5).json();
    assert_eq!(script["caveat"], Value::Null);
    check(&["--release-program", "/nowhere/unlock"]).fails(2, &["/nowhere/unlock: cannot be run"]);
    std::fs::write(&path, "#!/bin/sh\nexit 3\n").unwrap();
    let ran = check(&["--release-program", path.to_str().unwrap()])
        .fails(1, &["unlock: ended with exit status: 3"]);
    assert!(ran.stderr.contains("exit status: 3\n"), "{ran}");
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
    for (url, why) in [
        ("mysql://:s3cret@127.0.0.1", "neither redis:// nor rediss://"),
        ("redis://:s3cret@127.0.0.1:port", "invalid port number"),
        ("redis://:s3cret@127.0.0.1:70000", "invalid port number"),
        ("redis://127.0.0.1/?password=s3cret", "its query"),
        ("redis://:s3cret@127.0.0.1/main", "no number of a database"),
    ] {
        of_variable(url).fails(2, &["none of Redis", why]).does_not_print("s3cret");
    }
    for query in ["password=s3cret", "pass=s3cret"] {
        let url = format!("redis://127.0.0.1:1/?{query}");
        let typed = ["token", "drill", "--redis", &url];
        run(program().args(typed), &typed).fails(2, &["in the list of processes"]).does_not_print("s3cret");
    }
    let far = format!("{}/4711", url());
    of_variable(&far).fails(1, &["DB index", "0 to 15"]);
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
