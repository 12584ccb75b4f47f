//! The page, as a browser shows it: its numbers, its width, and that nothing in it breaks out.

use std::fs;
use std::path::Path;
use std::process::Command;

use onefold::core::dossier::Dossier;
use onefold::core::plan::Outcome;
use onefold::report::export::{Html, Limits, Written};
use serde_json::Value;

use crate::scene::{HOSTILE, Scene, finish, hostile, journal, target, temporary};

fn page(dossier: &Dossier<'_>, limits: Limits, notes: &[&'static str]) -> (String, Written) {
    let (_dir, folder) = temporary();
    let path = folder.join("report.html");
    let written = finish(Html::begin(dossier, target(&path), limits).unwrap(), dossier, &journal(notes));
    (fs::read_to_string(path).unwrap(), written)
}

/// Before everything else in a page: what goes wrong in it is kept.
const LISTEN: &str = "<script>window.wrong=[];addEventListener('error',e=>wrong.push(e.message));
addEventListener('securitypolicyviolation',e=>wrong.push(e.violatedDirective+' '+e.blockedURI));
for(const f of ['error','warn'])console[f]=(...a)=>wrong.push(a.join(' '));window.alert=t=>wrong.push('alert '+t);</script>";

/// After everything else: what a person would see is told to the page around.
const TELL: &str = "<script>addEventListener('load',()=>{
const all=q=>[...document.querySelectorAll(q)];const text=e=>e.textContent.trim();
const wide=()=>all('body *').filter(e=>{const r=e.getBoundingClientRect();return r.width>0&&(r.right>innerWidth+1||r.left<-1)})
  .map(e=>e.tagName+'.'+(e.className.baseVal??e.className)).slice(0,5);
const told={name:location.pathname.split('/').pop(),width:innerWidth,folded:wide(),
  scroll:document.documentElement.scrollWidth,
  money:all('#money tbody tr').map(r=>[...r.cells].map(text)),stock:all('#stock tbody tr').length,
  intents:all('details.intent').length,waiting:all('#person li').length,journal:all('#journal li').length,
  commands:all('#person .cmd').map(text),chart:{...document.querySelector('.chart')?.dataset},
  bars:all('.plot rect').length,marks:all('.plot .mark').map(text),images:all('img').length,
  notes:all('#journal li').map(text)};
all('details').forEach(d=>d.open=true);
told.steps=all('table.steps tbody tr').length;told.unfolded=wide();told.scrollOpen=document.documentElement.scrollWidth;
const input=document.querySelector('.tools input');input.value='O-20146';input.dispatchEvent(new Event('input'));
told.found=all('details.intent').filter(d=>!d.hidden).length;told.shown=text(document.querySelector('#shown'));
const th=document.querySelector('details.intent:not([hidden]) table.rows th');if(th){th.click();told.sorted=th.getAttribute('aria-sort')}
told.wrong=window.wrong;parent.postMessage(JSON.stringify(told),'*')});</script>";

/// Shows each page in a frame as wide as it says; what they tell of themselves, in the same order.
fn shown(pages: &[(&str, &str, u32)]) -> Vec<Value> {
    let (_dir, folder) = temporary();
    let mut frames = String::new();
    for (name, html, width) in pages {
        let html =
            html.replace("<head>", &format!("<head>{LISTEN}")).replace("</body>", &format!("{TELL}</body>"));
        // The catcher must come before the page's own policy, which allows inline scripts.
        fs::write(folder.join(name), html).unwrap();
        frames += &format!(
            "<iframe src=\"{name}\" width=\"{width}\" height=\"900\" style=\"border:0\"></iframe>\n"
        );
    }
    let around = format!(
        "<!doctype html><meta charset=utf-8><title>all</title><pre id=told></pre><script>\
         addEventListener('message',e=>{{told.append(e.data+'\\n')}});</script>\n{frames}"
    );
    fs::write(folder.join("all.html"), around).unwrap();
    let dom = browse(&folder, &folder.join("all.html"));
    let told = dom.split_once("<pre id=\"told\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let told = told.unwrap_or_else(|| panic!("{dom}")).0;
    let told =
        told.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&nbsp;", "\u{a0}");
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| told.iter().find(|t| t["name"] == name).cloned();
    pages.iter().map(|(name, ..)| of(name).unwrap_or_else(|| panic!("{name} tells nothing: {dom}"))).collect()
}

/// What a page has become when its scripts have run.
fn browse(folder: &Path, page: &Path) -> String {
    let browsers = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let Some(browser) = browsers.into_iter().find(|b| crate::common::is_installed(b)) else {
        panic!(
            "missing: Chromium, to look at the page (Debian: apt-get install chromium); tests/run.sh installs it"
        );
    };
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args([
            "--disable-dev-shm-usage",
            "--window-size=1600,1200",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_browser_shows_the_sums_and_every_purchase_and_nothing_is_wider_than_the_page() {
    let (incident, hostile) = (Scene::incident(), hostile());
    let (before, after) = (incident.before(), incident.after());
    let (planned, _) = page(&before, Limits::default(), &[]);
    let (done, _) = page(&after, Limits::default(), &["first", "second"]);
    let harmful = hostile.after();
    let (harmful, _) = page(&harmful, Limits::default(), &HOSTILE);
    let pages = [
        ("planned-1280", planned.as_str(), 1280),
        ("planned-390", &planned, 390),
        ("done-1280", &done, 1280),
        ("done-390", &done, 390),
        ("harmful-1280", &harmful, 1280),
        ("harmful-390", &harmful, 390),
    ]
    .map(|(name, html, width)| (format!("{name}.html"), html, width));
    let pages: Vec<_> = pages.iter().map(|(name, html, width)| (name.as_str(), *html, *width)).collect();
    let told = shown(&pages);
    for (told, (name, _, width)) in told.iter().zip(&pages) {
        assert_eq!(told["wrong"], serde_json::json!([]), "{name}: {told:#}");
        assert_eq!(told["width"], *width, "{name}");
        for when in ["folded", "unfolded"] {
            assert_eq!(told[when], serde_json::json!([]), "{name}, {when}");
        }
        assert!(told["scroll"].as_u64().unwrap() <= u64::from(*width), "{name}: {}", told["scroll"]);
        assert!(told["scrollOpen"].as_u64().unwrap() <= u64::from(*width), "{name}: {}", told["scrollOpen"]);
        assert_eq!(told["images"], 0, "{name}");
    }
    let plan = &incident.plan;
    let waits = |o| matches!(o, Outcome::Review | Outcome::Unsettled);
    for told in &told[..4] {
        assert_eq!(told["intents"], plan.intents.len());
        assert_eq!(told["waiting"], plan.intents.iter().filter(|i| waits(i.outcome)).count());
        assert_eq!(told["steps"], plan.intents.iter().map(|i| i.steps.len()).sum::<usize>());
        let money = told["money"].as_array().unwrap();
        assert_eq!(money.len(), plan.sums.money.len());
        for (row, sum) in money.iter().zip(&plan.sums.money) {
            let cells: Vec<&str> = row.as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
            assert_eq!(cells[1], sum.currency.code());
            for (cell, part) in cells[2..].iter().zip(sum.parts()) {
                assert_eq!(*cell, sum.currency.show_bare(part), "{cells:?}");
            }
            assert_eq!(cells[9], "yes");
        }
        assert_eq!(told["stock"], plan.sums.stock.len());
        let orders = incident.ledgers.orders.iter().filter(|o| o.show_id.as_str() == "S-204").count();
        assert_eq!(told["chart"]["orders"], orders.to_string());
        assert!(told["bars"].as_u64().unwrap() > 200, "{}", told["bars"]);
        assert_eq!((&told["found"], &told["shown"]), (&1.into(), &"1".into()));
        assert_eq!(told["sorted"], "ascending");
        let commands = told["commands"].as_array().unwrap();
        assert!(commands.iter().any(|c| c == "onefold converge --plan PL-0123456789"), "{commands:?}");
    }
    assert_eq!(told[0]["marks"].as_array().unwrap().len(), 1);
    assert_eq!(told[2]["marks"].as_array().unwrap().len(), 3);
    assert_eq!((&told[0]["journal"], &told[2]["journal"]), (&0.into(), &2.into()));
    let notes = told[4]["notes"].to_string();
    assert!(notes.contains("</script><script>alert(1)</script>") && notes.contains("订单🎟️"), "{notes}");
    assert!(
        notes.contains("u{202e}gnp.exe"),
        "what turns the writing around is shown as what it is: {notes}"
    );
}

#[test]
fn a_page_needs_nothing_else_and_says_what_it_leaves_out() {
    let scene = Scene::incident();
    let limits = Limits { waiting: 4, others: 10, journal: 1 };
    let (html, written) = page(&scene.after(), limits, &["first", "second", "third"]);
    for part in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!html.contains(part), "{part}");
    }
    assert_eq!(html.matches("<details class=\"intent").count(), 14);
    assert!(html.contains("the first 10 others. The rest is in the workbook"), "it says so");
    assert!(html.contains("… and 2 more entries") && html.contains("more purchases</li>"));
    assert_eq!(written.rows[0], ("Intents", 14));
    assert!(
        written.notes[0].starts_with(&format!("the page shows 14 of {} purchases", scene.plan.intents.len()))
    );
}
