//! The picture of the incident: orders by the second and by who wrote them, captures below them, and when
//! onefold froze and carried out.

use std::fmt::Write as _;

use super::esc;
use crate::core::dossier::Dossier;
use crate::core::dossier::timeline::{Picture, Timeline};

/// At most as many bars.
const BARS: usize = 300;
/// Of the picture's height, what the orders take; captures take the rest.
const ORDERS: f64 = 74.0;
const GAP: f64 = 2.0;

pub(super) fn section(dossier: &Dossier<'_>) -> String {
    let head = "<section id=\"incident\">\n<h2>The incident</h2>\n";
    let Some(picture) = dossier.timeline.picture(BARS) else {
        return format!("{head}<p>The scope has no order and no capture to draw.</p>\n</section>\n");
    };
    let per = match picture.bucket {
        1 => "second".to_owned(),
        n => format!("{n} seconds"),
    };
    let totals = picture.totals();
    let peak = totals.iter().copied().max().unwrap_or(0);
    let orders: u64 = totals.iter().sum();
    let captures: u64 = picture.captures.iter().sum();
    let lead = format!(
        "Orders per {per} by who wrote them, and captures below; at most {peak} orders in one bar. Read again from the \
         ledgers at {}, over the scope's own rows: {orders} orders, {captures} captures.",
        dossier.read_at
    );
    let marks = marks(&dossier.timeline, &picture);
    format!(
        "{head}<p>{lead}</p>\n<div class=\"chart\" data-orders=\"{orders}\" data-captures=\"{captures}\">\n{legend}\
         <div class=\"plot m{lines}\">\n{svg}{labels}</div>\n{axis}</div>\n</section>\n",
        legend = legend(&picture),
        lines = marks.len(),
        svg = svg(&picture, &marks, &lead),
        labels = labels(&marks),
        axis = axis(&picture),
    )
}

/// A line in the picture: where it is drawn in percent, and what it says.
struct Line {
    at: f64,
    what: String,
}

fn marks(timeline: &Timeline, picture: &Picture) -> Vec<Line> {
    let marks = timeline.marks.iter().map(|mark| {
        let place = picture.place(mark.at);
        let time = mark.at.to_string();
        let time = if (0.0..=1.0).contains(&place) { time[11..19].to_owned() } else { time[..19].to_owned() };
        let what = match place {
            p if p < 0.0 => format!("← {} {time}", mark.what),
            p if p > 1.0 => format!("{} {time} →", mark.what),
            _ => format!("{} {time}", mark.what),
        };
        Line { at: (place * 100.0).clamp(0.0, 100.0), what }
    });
    marks.collect()
}

fn svg(picture: &Picture, marks: &[Line], label: &str) -> String {
    let bars = picture.captures.len() as f64;
    let width = 100.0 / bars;
    let peak = picture.totals().into_iter().max().unwrap_or(0).max(1) as f64;
    let most = picture.captures.iter().copied().max().unwrap_or(0).max(1) as f64;
    let mut svg = format!(
        "<svg viewBox=\"0 0 100 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">\n",
        esc(label)
    );
    let mut floor = vec![ORDERS; picture.captures.len()];
    for (i, (_, counts)) in picture.orders.iter().enumerate() {
        let _ = write!(svg, "<g fill=\"var(--s{})\">", i.min(5));
        for (at, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let height = *n as f64 / peak * ORDERS;
            floor[at] -= height;
            let _ = write!(
                svg,
                "<rect x=\"{:.3}\" y=\"{:.3}\" width=\"{:.3}\" height=\"{height:.3}\"/>",
                at as f64 * width,
                floor[at],
                width * 0.86
            );
        }
        svg.push_str("</g>\n");
    }
    svg.push_str("<g fill=\"var(--cap)\" opacity=\".55\">");
    let room = 100.0 - ORDERS - GAP;
    for (at, n) in picture.captures.iter().enumerate().filter(|(_, n)| **n > 0) {
        let _ = write!(
            svg,
            "<rect x=\"{:.3}\" y=\"{:.3}\" width=\"{:.3}\" height=\"{:.3}\"/>",
            at as f64 * width,
            ORDERS + GAP,
            width * 0.86,
            *n as f64 / most * room
        );
    }
    let line = "stroke=\"currentColor\" vector-effect=\"non-scaling-stroke\"";
    let _ = writeln!(
        svg,
        "</g>\n<line x1=\"0\" x2=\"100\" y1=\"{y}\" y2=\"{y}\" {line} opacity=\".25\"/>",
        y = ORDERS + GAP / 2.0
    );
    for mark in marks {
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.3}\" x2=\"{x:.3}\" y1=\"0\" y2=\"100\" {line} stroke-dasharray=\"4 3\" opacity=\".8\"/>",
            x = mark.at
        );
    }
    svg + "</svg>\n"
}

/// Each on a line of its own, so that none lies over another.
fn labels(marks: &[Line]) -> String {
    let rows = ["", " two", " three"];
    let labels = marks.iter().enumerate().map(|(i, mark)| {
        let side = match mark.at {
            at if at < 25.0 => " l",
            at if at > 75.0 => " r",
            _ => "",
        };
        let row = rows[(marks.len() - 1 - i).min(2)];
        format!("<span class=\"mark{side}{row}\" style=\"left:{:.3}%\">{}</span>\n", mark.at, esc(&mark.what))
    });
    labels.collect()
}

fn legend(picture: &Picture) -> String {
    let sources = picture.orders.iter().enumerate().map(|(i, (name, counts))| {
        let name = if name.is_empty() { "no source" } else { name };
        let n: u64 = counts.iter().sum();
        format!("<span><i style=\"background:var(--s{})\"></i>{} {n}</span>", i.min(5), esc(name))
    });
    let captures: u64 = picture.captures.iter().sum();
    format!(
        "<div class=\"legend\">{}<span><i style=\"background:var(--cap);opacity:.55\"></i>captures {captures}</span></div>\n",
        sources.collect::<String>()
    )
}

fn axis(picture: &Picture) -> String {
    const TICKS: i64 = 4;
    let (begins, ends) = (picture.begins.micros(), picture.ends().micros());
    let is_one_day = picture.begins.to_string()[..10] == picture.ends().to_string()[..10];
    let ticks = (0..=TICKS).map(|i| {
        let at = begins + (ends - begins) / TICKS * i;
        let time = crate::core::time::Timestamp::from_micros(at).to_string();
        let time = if is_one_day && i > 0 { time[11..19].to_owned() } else { time[..19].replace('T', " ") };
        format!("<span>{time}</span>")
    });
    format!("<div class=\"axis\">{}</div>\n", ticks.collect::<String>())
}
