//! Tables that fit the terminal. Ids, times and money are never wrapped or cut; what is prose may
//! be wrapped; and where not even that helps, each row becomes a small list.

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table as Drawn, Width, presets,
};

use super::{Style, on_one_line};

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

/// No wrapped column is narrower than its longest word, but for words longer than this.
const LONGEST_WORD: usize = 24;

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

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn render(&self, style: Style) -> String {
        let least: usize = (0..self.columns.len()).map(|i| self.least_width(i) + 2).sum();
        if least > style.width + 2 { self.as_lists(style.width) } else { self.as_table(style) }
    }

    fn least_width(&self, column: usize) -> usize {
        let title = width(&self.columns[column].title);
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        match self.columns[column].setting {
            Setting::Prose => {
                let words = cells.flat_map(|t| t.split_whitespace()).map(width).max();
                title.max(words.unwrap_or(0).min(LONGEST_WORD))
            }
            Setting::Exact | Setting::Number => title.max(cells.map(|t| width(t)).max().unwrap_or(0)),
        }
    }

    fn as_table(&self, style: Style) -> String {
        let mut drawn = Drawn::new();
        drawn.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        drawn.set_width(u16::try_from(style.width).unwrap_or(u16::MAX));
        if style.colour {
            drawn.enforce_styling();
        } else {
            drawn.force_no_tty();
        }
        drawn.set_header(self.columns.iter().map(|c| {
            let cell = Cell::new(&c.title);
            if style.colour { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
        for row in &self.rows {
            drawn.add_row(row);
        }
        for (i, column) in self.columns.iter().enumerate() {
            let least = self.least_width(i);
            let Some(drawn) = drawn.column_mut(i) else { continue };
            drawn.set_padding((0, 2));
            match column.setting {
                Setting::Exact => drawn.set_constraint(ColumnConstraint::ContentWidth),
                Setting::Number => {
                    drawn.set_cell_alignment(CellAlignment::Right);
                    drawn.set_constraint(ColumnConstraint::ContentWidth)
                }
                Setting::Prose => {
                    let least = u16::try_from(least + 2).unwrap_or(u16::MAX);
                    drawn.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)))
                }
            };
        }
        drawn.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
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
                            super::wrapped(cell, width_of_all.saturating_sub(title + 2).max(LONGEST_WORD))
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

    fn style(width: usize) -> Style {
        Style { json: false, colour: false, width }
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
