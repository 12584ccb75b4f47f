//! Many processes on one key.

use super::scene::*;
use crate::common::site::Site;
use crate::on_each_database;

on_each_database![fifty_processes_on_one_key_run_it_once];

fn fifty_processes_on_one_key_run_it_once(site: &Site) {
    site.run(&["init"]).ends(0);
    let keys = if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 200 } else { 1 };
    for at in 0..keys {
        let key = format!("key-{at}");
        let then = format!("echo x >> ran-{at}; sleep 0.3; echo \"result of $ONEFOLD_KEY\"; exit 3");
        let line = ["once", "--key", &key, "--wait", "2m", "--", "sh", "-c", &then];
        let ends: Vec<_> = std::thread::scope(|scope| {
            let processes: Vec<_> = (0..50).map(|_| scope.spawn(|| site.run(&line))).collect();
            processes.into_iter().map(|process| process.join().unwrap()).collect()
        });
        for ran in ends {
            let ran = ran.ends(3);
            assert_eq!((&*ran.stdout, &*ran.stderr), (&*format!("result of {key}\n"), ""), "{ran}");
        }
        let ran = std::fs::read_to_string(site.folder().join(format!("ran-{at}"))).unwrap();
        assert_eq!(ran, "x\n");
    }
    let keys = site.json(&["once", "list", "--state", "FAILED"])["keys"].clone();
    assert!(keys.as_array().unwrap().iter().all(|key| key["attempts"] == 1 && key["token"] == 1), "{keys:#}");
    assert_eq!(runs(site), [""; 0]);
}
