//! Reports that leave: the workbook read by another program than wrote it, the page in a browser, JSON
//! against its schema, hostile ids in every format, pseudonyms, and a plan of many intents.

mod common;

#[path = "report/csv.rs"]
mod csv_files;
#[path = "report/decides.rs"]
mod decides;
#[path = "report/json.rs"]
mod json;
#[path = "report/memory.rs"]
mod memory;
#[path = "report/page.rs"]
mod page;
#[path = "report/redacted.rs"]
mod redacted;
#[path = "report/scene.rs"]
mod scene;
#[path = "report/sheets.rs"]
mod sheets;
#[path = "report/workbook.rs"]
mod workbook;
