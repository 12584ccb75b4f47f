//! Where a report goes. A file is written under another name beside its own, and has its name when it is
//! whole; one that is there is not written over, for it may be evidence.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::over::{Kind, must_be_free};
use crate::error::{Error, Result};

/// A file to be, or stdout.
pub enum Target {
    File { file: BufWriter<NamedTempFile>, path: PathBuf, over: Option<Kind> },
    Stdout(BufWriter<io::Stdout>),
}

impl Target {
    /// `over` is what it may be written over.
    ///
    /// # Errors
    /// Usage, where something else is there, or there is no folder for it.
    pub fn new(path: Option<&Path>, over: Option<Kind>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(BufWriter::new(io::stdout()))) };
        must_be_free(path, over.as_ref())?;
        let file =
            NamedTempFile::with_prefix_in(".onefold-", folder(path)).map_err(|e| cannot_write(path, &e))?;
        Ok(Self::File { file: BufWriter::new(file), path: path.to_owned(), over })
    }

    /// What is written so far gets its name.
    ///
    /// # Errors
    /// Usage, where somebody else was faster; failure, where it cannot be written.
    pub fn end(self) -> Result<()> {
        match self {
            // A reader that has gone away is no failure.
            Self::Stdout(mut out) => match out.flush() {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                    Err(Error::failure(format!("cannot print the report: {e}")))
                }
                _ => Ok(()),
            },
            Self::File { file, path, over } => {
                let file = file.into_inner().map_err(|e| cannot_write(&path, e.error()))?;
                file.as_file().sync_all().map_err(|e| cannot_write(&path, &e))?;
                // It may have come in the meantime.
                must_be_free(&path, over.as_ref())?;
                let named = if over.is_some() { file.persist(&path) } else { file.persist_noclobber(&path) };
                named.map(drop).map_err(|e| match e.error.kind() {
                    io::ErrorKind::AlreadyExists => is_there(&path),
                    _ => cannot_write(&path, &e.error),
                })
            }
        }
    }

    /// What went wrong with writing, for a person; nothing where only the reader has gone away.
    pub fn failed(&self, error: &io::Error) -> Error {
        match self {
            Self::File { path, .. } => cannot_write(path, error),
            Self::Stdout(_) => Error::failure(format!("cannot print the report: {error}")),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.write(bytes),
            Self::Stdout(out) => match out.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
                other => other,
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.flush(),
            Self::Stdout(out) => match out.flush() {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other,
            },
        }
    }
}

pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn is_there(path: &Path) -> Error {
    Error::usage(format!("{} is there already", path.display()))
        .hint("name another with --output, or write over it with --force")
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Error {
    Error::failure(format!("cannot write {}: {error}", path.display()))
        .hint("name another place with --output")
}

/// Gives a finished folder its name. One that is there holds nothing but files of
/// the same names, which are replaced.
pub(super) fn name_folder(from: &Path, to: &Path, over: Option<&Kind>) -> Result<()> {
    must_be_free(to, over)?;
    if !to.exists() {
        return fs::rename(from, to).map_err(|e| cannot_write(to, &e));
    }
    for entry in fs::read_dir(from).map_err(|e| cannot_write(to, &e))? {
        let entry = entry.map_err(|e| cannot_write(to, &e))?;
        fs::rename(entry.path(), to.join(entry.file_name())).map_err(|e| cannot_write(to, &e))?;
    }
    Ok(())
}
