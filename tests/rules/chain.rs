//! The journal's chain of hashes: what is hashed is fixed, and what does not fit is named.

use onefold::core::chain::{Content, Found, Head, Link, Tip, Walk};
use onefold::core::time::Timestamp;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn said(note: Option<&str>) -> Content {
    vec![("actor", Some("ada".to_owned())), ("note", note.map(str::to_owned))]
}

/// A chain of as many entries, each with its place.
fn chain(name: &str, entries: usize) -> Vec<Link> {
    let mut tip = Tip::begin(name.to_owned());
    (0..entries)
        .map(|i| {
            let link = tip.next(&said(Some(&i.to_string())));
            tip = link.clone().into();
            link
        })
        .collect()
}

fn found(seq: i64, link: &Link, is_end: bool) -> Found {
    let (at, actor) = (Some(at(0)), "ada".to_owned());
    Found { seq, link: link.clone(), computed: link.hash.clone(), is_end, at, actor }
}

/// The reasons that a walk over one chain gives; `head` says what it ended with.
fn walked(entries: &[Found], head: Option<&Head>) -> Vec<String> {
    let mut walk = Walk::default();
    entries.iter().for_each(|entry| walk.entry(entry.clone()));
    walk.close(head);
    walk.verified.misfits.into_iter().map(|misfit| misfit.why).collect()
}

#[test]
fn what_is_hashed_never_changes() {
    // Computed by hand from the algorithm, not by this code.
    let link = Tip::begin("RUN-1.1".to_owned()).next(&said(None));
    assert_eq!(link.hash, "643db2f519cc96e7d87668a09f9a513712f7a0b97cee879f000370c96b683fbb");
    let link = Tip::begin("RUN-1.1".to_owned()).next(&said(Some("")));
    assert_eq!(link.hash, "3cde20cee3a2e3109ba2f87415168474f00102fa090e3cfb9e19de7583c99ed8");
    let head = Head::after(
        None,
        &Tip { chain: "RUN-1.1".to_owned(), position: 3, hash: "ab".to_owned() },
        at(7),
        "ada",
    );
    assert_eq!(head.hash, "3ed518a2d2324452699c1b15b56ad80917131d170a8f8799d724655eff341239");
    assert_eq!(head.position, 1);
}

#[test]
fn entries_and_heads_that_follow_each_other_fit() {
    let links = chain("a", 3);
    let entries: Vec<_> = links.iter().zip(1..).map(|(link, seq)| found(seq, link, seq == 3)).collect();
    let head = Head::after(None, &links[2].clone().into(), at(0), "ada");
    assert_eq!(walked(&entries, Some(&head)), [""; 0]);
    let mut walk = Walk::default();
    let next = Head::after(Some(&head), &chain("b", 1)[0].clone().into(), at(0), "ada");
    walk.head(head);
    walk.head(next);
    assert!(walk.verified.fits());
    assert_eq!(walk.verified.heads, 2);
}

#[test]
fn the_first_that_does_not_fit_is_named_and_only_once_a_chain() {
    let links = chain("a", 5);
    let all: Vec<_> = links.iter().zip(1..).map(|(link, seq)| found(seq, link, false)).collect();
    let without = |gone: usize| {
        let mut entries = all.clone();
        entries.remove(gone);
        entries
    };
    assert_eq!(walked(&without(2), None), ["the entry at position 3 is missing"]);
    let mut changed = all.clone();
    changed[1].computed = "other".to_owned();
    changed[3].computed = "other".to_owned();
    assert_eq!(walked(&changed, None), ["what it says does not fit its hash"]);
    let mut renumbered = all.clone();
    (renumbered[2].seq, renumbered[3].seq) = (4, 3);
    assert_eq!(walked(&renumbered, None), ["its number is not above 4, that of the entry before it"]);
    let mut wild = all.clone();
    wild[0].link.position = i64::MIN;
    assert_eq!(walked(&wild, None), ["its position is not 1"]);
    wild[0].link.position = i64::MAX;
    assert_eq!(walked(&wild, None).len(), 1);
}

#[test]
fn a_head_says_where_its_chain_ended() {
    let links = chain("a", 4);
    let all: Vec<_> = links.iter().zip(1..).map(|(link, seq)| found(seq, link, seq == 4)).collect();
    let head = Head::after(None, &links[3].clone().into(), at(0), "ada");
    assert!(walked(&all[..2], Some(&head))[0].starts_with("its tail is missing: head 1 says"));
    let early = Head::after(None, &links[1].clone().into(), at(0), "ada");
    assert_eq!(walked(&all, Some(&early)), ["head 1 says that the run ended at position 2"]);
    let other = Head::after(None, &Tip { hash: "x".to_owned(), ..links[3].clone().into() }, at(0), "ada");
    assert_eq!(walked(&all, Some(&other)), ["it is not the entry that head 1 says the run ended with"]);
    assert_eq!(walked(&all, None), ["its run has ended, and the head that says so is missing"]);
    assert_eq!(walked(&all[..3], None), [""; 0], "a run that was killed is no misfit");
}
