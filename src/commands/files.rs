//! Ledgers from CSV files, as flags name them.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::flags::ZoneFlag;
use super::progress::Progress;
use crate::config::Config;
use crate::core::ledger::{Ledgers, Rows};
use crate::core::plain::Basis;
use crate::core::status::Ledger;
use crate::error::{Error, Result};
use crate::files::{
    Amounts, ColumnMap, Encoding, Faults, LedgerFiles, Note, Origin, Portions, ReadOptions, Sifted,
    StatusMap, check, read, sift,
};
use crate::report::print_note;

/// How files differ from what the contract has.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Files")]
pub struct FileFlags {
    /// How characters stand in the files: auto, utf-8, utf-16, utf-16le, utf-16be or
    /// gb18030 [default: auto, which never guesses]
    #[arg(long, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// How amounts stand there: minor (1234), decimal (1,234.56) or decimal-comma (1.234,56) [default: minor]
    #[arg(long, value_name = "FORM")]
    amounts: Option<Amounts>,
    /// A column's name in a file and ours, such as order_no=order_id or orders.no=order_id; may be repeated
    #[arg(long, value_name = "THEIRS=OURS")]
    map: Vec<ColumnMap>,
    /// A status in a file and ours, such as orders.10=PAID; may be repeated
    #[arg(long, value_name = "LEDGER.THEIRS=OURS")]
    status_map: Vec<StatusMap>,
    /// Drop blanks around ids, for an export that pads them
    #[arg(long)]
    trim_ids: bool,
    /// Take ids as they are that look rounded (15 digits followed by zeros), read like null or like
    /// a date
    #[arg(long)]
    accept_ids: bool,
}

impl FileFlags {
    pub fn encoding(&self) -> Encoding {
        self.encoding.unwrap_or_default()
    }

    /// Whether ids are taken as they are that a tool seems to have changed.
    pub fn accepts_ids(&self) -> bool {
        self.accept_ids
    }

    /// # Errors
    /// Usage, where one status of the files is to be two of ours.
    pub fn options(&self, zone: ZoneFlag) -> Result<ReadOptions> {
        for (i, map) in self.status_map.iter().enumerate() {
            let same = |other: &&StatusMap| (other.ledger, &other.theirs) == (map.ledger, &map.theirs);
            if let Some(other) = self.status_map[..i].iter().find(same).filter(|o| o.ours != map.ours) {
                return Err(Error::usage(format!("--status-map says both {other} and {map}"))
                    .hint("leave one of the two out"));
            }
        }
        Ok(ReadOptions {
            encoding: self.encoding(),
            timezone: zone.timezone,
            amounts: self.amounts.unwrap_or_default(),
            trim_ids: self.trim_ids,
            accept_ids: self.accept_ids,
            map: self.map.clone(),
            status_map: self.status_map.clone(),
            from_database: false,
        })
    }
}

/// Reads the four files; what was detected or assumed is told on stderr.
pub fn load(config: &Config, files: &LedgerFiles, options: &ReadOptions) -> Result<Ledgers> {
    noting(config, |progress| read(files, options, progress))
}

/// As [`load`], but of files that can be read twice the rows are not kept: they are read again when they are wanted.
pub fn rows_of(config: &Config, files: LedgerFiles, options: ReadOptions) -> Result<Box<dyn Rows>> {
    if Ledger::ALL.into_iter().all(|ledger| files.path(ledger).is_file()) {
        return Ok(Box::new(noting(config, |progress| check(files, options, progress))?));
    }
    // A pipe, say; or one that is not there, which is told.
    Ok(Box::new(load(config, &files, &options)?))
}

/// Tells how far the reading of files is, and then what was detected or assumed.
fn noting<T>(
    config: &Config,
    reading: impl FnOnce(&mut dyn FnMut(Ledger, u64, u64)) -> Result<(T, Vec<Note>), Faults>,
) -> Result<T> {
    let progress = Progress::new(config, "reading files");
    let (read, notes) = reading(&mut |ledger, _, rows| progress.rows(ledger, rows))?;
    progress.end();
    if !config.quiet {
        notes.iter().for_each(|note| print_note(&format!("note: {note}")));
    }
    Ok(read)
}

/// Reads the four files for a dry run, and keeps only what is not plain in full; nothing where the files must be
/// read with [`load`], which says why.
pub fn sifted<'a>(
    config: &Config,
    files: &LedgerFiles,
    options: &'a ReadOptions,
    basis: &'a Basis,
) -> Option<Sifted<'a>> {
    let progress = Progress::new(config, "reading files");
    let sifted = sift(Origin::Files(files), options, basis, Portions::default(), &|ledger, rows| {
        progress.more_rows(ledger, rows)
    });
    progress.end();
    if let Some(sifted) = sifted.as_ref().filter(|_| !config.quiet) {
        sifted.notes.iter().for_each(|note| print_note(&format!("note: {note}")));
    }
    sifted
}

/// Refuses, before anything is done, a file that is there or that could not be made.
pub fn must_be_new(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|dir| !dir.is_dir()) {
        return Err(Error::usage(format!("there is no folder {}", folder.display()))
            .hint("make it, or name a file in another folder"));
    }
    // A link that leads nowhere is there, too.
    if path.symlink_metadata().is_ok() { Err(is_there(path)) } else { Ok(()) }
}

/// Refuses, before either is written, two outputs of one run of which one is the other or lies in it, however they are
/// spelled.
pub fn must_lie_apart(flags: [&str; 2], paths: [&Path; 2]) -> Result<()> {
    let [a, b] = paths.map(resolved);
    if a.starts_with(&b) || b.starts_with(&a) {
        let [flag, other] = flags;
        return Err(Error::usage(format!("{flag} {} is the same place as {other}", paths[0].display()))
            .hint(format!("name another file with {flag}")));
    }
    Ok(())
}

/// The file itself, without links and dots, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = path.canonicalize() {
        return path;
    }
    let folder = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    path.file_name().map_or(folder.clone(), |name| folder.join(name))
}

fn is_there(path: &Path) -> Error {
    Error::usage(format!("{} is there already", path.display()))
        .hint("name another file; nothing is written over")
}

/// Writes a new file; one that is there is not written over.
pub fn write_new(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    let mut file = create_new(path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| not_written(path, &e))
}

/// As [`write_new`], of a value as JSON for people: it is written as it goes and held nowhere as a whole.
pub fn write_new_json(path: &Path, value: &impl Serialize) -> Result<()> {
    use std::io::Write as _;
    let mut file = BufWriter::new(create_new(path)?);
    let written = serde_json::to_writer_pretty(&mut file, value).map_err(std::io::Error::from);
    let ended = written.and_then(|()| file.write_all(b"\n")).and_then(|()| file.flush());
    ended.and_then(|()| file.get_ref().sync_all()).map_err(|e| not_written(path, &e))
}

/// A new file that nobody else may read: it holds who bought what. One that is there is not written over.
pub fn create_new(path: &Path) -> Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => is_there(path),
        _ => not_written(path, &e),
    })
}

fn not_written(path: &Path, error: &std::io::Error) -> Error {
    Error::failure(format!("cannot write {}: {error}", path.display())).hint("name another file")
}

/// The four files that flags name one by one, or those of a folder.
pub fn ledger_files(dir: Option<&Path>, each: [Option<&PathBuf>; 4]) -> Result<LedgerFiles> {
    match (dir, each) {
        (Some(dir), [None, None, None, None]) => LedgerFiles::in_dir(dir),
        (None, [Some(orders), Some(payments), Some(inventory), Some(messages)]) => Ok(LedgerFiles {
            orders: orders.clone(),
            payments: payments.clone(),
            inventory: inventory.clone(),
            messages: messages.clone(),
        }),
        _ => Err(Error::usage("name a folder, or all four files").hint(
            "onefold import DIR, or onefold import --orders F --payments F --inventory F --messages F",
        )),
    }
}
