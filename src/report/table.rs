//! Tables that fit the terminal. Ids, times and money are never wrapped or cut; what is prose may
//! be wrapped; and where not even that helps, each row becomes a small list.

use super::{Style, on_one_line, words, wrapped};

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    /// Never wrapped.
    Exact,
    /// Never wrapped, to the right.
    Number,
    /// Wrapped between words.
    Prose,
}

#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    setting: Setting,
}

impl Column {
    /// Of ids, times and other words that must stay whole.
    pub fn exact(title: &str) -> Self {
        Self { title: title.to_owned(), setting: Setting::Exact }
    }

    /// Of counts and money.
    pub fn number(title: &str) -> Self {
        Self { title: title.to_owned(), setting: Setting::Number }
    }

    /// Of text that may be wrapped.
    pub fn prose(title: &str) -> Self {
        Self { title: title.to_owned(), setting: Setting::Prose }
    }
}

#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Blanks between two columns.
const GAP: usize = 2;
/// No prose of a list is narrower than this.
const LEAST_PROSE: usize = 24;

impl Table {
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().map(|c| on_one_line(&c)).collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    pub(super) fn in_other_words(&mut self, put: &dyn Fn(&str) -> String) {
        self.rows.iter_mut().flatten().for_each(|cell| *cell = put(cell));
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn render(&self, style: Style) -> String {
        let gaps = GAP * self.columns.len().saturating_sub(1);
        let least: Vec<_> = (0..self.columns.len()).map(|i| self.least_width(i)).collect();
        match style.width.checked_sub(gaps + least.iter().sum::<usize>()) {
            Some(spare) => self.as_table(&self.widths(least, spare), style),
            None => self.as_lists(style.width),
        }
    }

    /// A column is never narrower than its longest word: an id in prose stays whole, too.
    fn least_width(&self, column: usize) -> usize {
        let title = width(&self.columns[column].title);
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let longest = match self.columns[column].setting {
            Setting::Prose => cells.flat_map(|t| words(t)).map(|word| width(word.word)).max(),
            Setting::Exact | Setting::Number => cells.map(|t| width(t)).max(),
        };
        title.max(longest.unwrap_or(0))
    }

    /// The least widths, and what is to spare given to the narrowest prose that still wants some.
    fn widths(&self, mut widths: Vec<usize>, spare: usize) -> Vec<usize> {
        let wanted = |i: usize| self.rows.iter().filter_map(|row| row.get(i)).map(|t| width(t)).max();
        let wanted: Vec<_> = (0..widths.len()).map(|i| wanted(i).unwrap_or(0)).collect();
        for _ in 0..spare {
            let wants = (0..widths.len()).filter(|i| widths[*i] < wanted[*i]);
            let Some(narrowest) = wants.min_by_key(|i| widths[*i]) else { break };
            widths[narrowest] += 1;
        }
        widths
    }

    fn as_table(&self, widths: &[usize], style: Style) -> String {
        let titles: Vec<_> = self.columns.iter().map(|c| c.title.clone()).collect();
        let mut lines = self.drawn(&titles, widths);
        if style.colour {
            lines.iter_mut().for_each(|line| *line = format!("\x1b[1m{line}\x1b[0m"));
        }
        lines.extend(self.rows.iter().flat_map(|row| self.drawn(row, widths)));
        lines.join("\n")
    }

    /// One row, on as many lines as its longest prose takes.
    fn drawn(&self, row: &[String], widths: &[usize]) -> Vec<String> {
        let cells = self.columns.iter().zip(row).zip(widths).map(|((column, cell), of_column)| {
            let cell = match column.setting {
                Setting::Prose => wrapped(cell, *of_column),
                Setting::Exact | Setting::Number => cell.clone(),
            };
            cell.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        let cells: Vec<_> = cells.collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let line = |i: usize| {
            let parts = cells.iter().zip(&self.columns).zip(widths).map(|((cell, column), of_column)| {
                let text = cell.get(i).map_or("", String::as_str);
                let pad = " ".repeat(of_column.saturating_sub(width(text)));
                if column.setting == Setting::Number { pad + text } else { text.to_owned() + &pad }
            });
            parts.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// A blank line before each list and after the last.
    fn as_lists(&self, width_of_all: usize) -> String {
        let title = self.columns.iter().map(|c| width(&c.title)).max().unwrap_or(0);
        let lists = self.rows.iter().map(|row| {
            let lines =
                self.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty()).map(|(column, cell)| {
                    let pad = " ".repeat(title - width(&column.title));
                    let indent = format!("\n{}", " ".repeat(title + 2));
                    let cell = match column.setting {
                        Setting::Prose => {
                            wrapped(cell, width_of_all.saturating_sub(title + GAP).max(LEAST_PROSE))
                        }
                        Setting::Exact | Setting::Number => cell.clone(),
                    };
                    format!("{}{pad}  {}", column.title, cell.replace('\n', &indent))
                });
            format!("\n{}\n", lines.collect::<Vec<_>>().join("\n"))
        });
        lists.collect::<String>()
    }
}

/// Columns that a line takes on a terminal.
fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Format;

    fn style(width: usize) -> Style {
        Style { format: Format::Table, colour: false, width, screen: None }
    }

    fn table(id: &str, why: &str) -> Table {
        let mut table = Table::new([Column::exact("ORDER"), Column::number("AMOUNT"), Column::prose("WHY")]);
        table.row([id.to_owned(), "12.00 CNY".to_owned(), why.to_owned()]);
        table
    }

    #[test]
    fn prose_is_wrapped_and_ids_are_not() {
        let why = "paid first and backed by stock that was confirmed before the other taps were written down";
        let text = table("O-0123456789", why).render(style(60));
        assert!(text.lines().all(|l| l.len() <= 60), "{text}");
        assert!(text.contains("O-0123456789"), "{text}");
        assert!(text.lines().count() > 2, "{text}");
    }

    #[test]
    fn an_id_in_prose_stays_whole() {
        let id = "9f3e1b2c-1e10-4c1d-9e55-3d3f6a7b8c9d";
        for why in [format!("show {id}: retries double it"), format!("重试风暴 show {id}/2026，订单翻倍")]
        {
            for width in [40, 60, 80, 200] {
                let text = table("O-1", &why).render(style(width));
                assert!(text.contains(id), "{width}: {text}");
            }
            let text = table("O-1", &why).render(style(80));
            assert!(text.lines().all(|l| super::width(l) <= 80), "{text}");
        }
        let longer = "x".repeat(100);
        assert!(table("O-1", &format!("because of {longer} it is")).render(style(80)).contains(&longer));
    }

    #[test]
    fn colour_takes_no_room() {
        let plain = table("O-1", "why it is so").render(style(80));
        let bold = table("O-1", "why it is so").render(Style { colour: true, ..style(80) });
        assert_ne!(plain, bold);
        assert_eq!(bold.replace("\x1b[1m", "").replace("\x1b[0m", ""), plain);
    }

    #[test]
    fn a_row_that_cannot_fit_becomes_a_list() {
        let id = "O-".to_owned() + &"9".repeat(100);
        let text = table(&id, &"why ".repeat(40)).render(style(80));
        assert!(text.contains(&format!("ORDER   {id}\n")), "{text}");
        assert!(text.lines().filter(|l| !l.contains(&id)).all(|l| l.len() <= 80), "{text}");
    }

    #[test]
    fn control_characters_of_a_ledger_do_not_reach_the_terminal() {
        let text = table("O-\x1b[31m1", "why").render(style(80));
        assert!(!text.contains('\x1b'), "{text}");
    }
}
