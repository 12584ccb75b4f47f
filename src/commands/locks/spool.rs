//! The findings of a history, kept where there may be more of them than memory holds.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write as _};

use crate::core::locks::Found;
use crate::error::{Error, Result};

/// Every finding, a JSON object a line, in a file that is gone when it is closed.
#[derive(Debug)]
pub struct Spool(BufWriter<File>);

impl Spool {
    pub fn new() -> Result<Self> {
        tempfile::tempfile().map(|file| Self(BufWriter::new(file))).map_err(|e| failed(&e))
    }

    pub fn add(&mut self, found: &Found) -> Result<()> {
        serde_json::to_writer(&mut self.0, found).map_err(|e| failed(&e.into()))?;
        self.0.write_all(b"\n").map_err(|e| failed(&e))
    }

    /// Gives every finding again, in the order in which they were found.
    ///
    /// # Errors
    /// What `put` fails with, and failure where they cannot be read.
    pub fn each(&self, mut put: impl FnMut(Found) -> Result<()>) -> Result<()> {
        let mut file = self.0.get_ref().try_clone().map_err(|e| failed(&e))?;
        file.rewind().map_err(|e| failed(&e))?;
        let all = BufReader::new(file).chain(self.0.buffer());
        for line in all.lines() {
            let line = line.map_err(|e| failed(&e))?;
            put(serde_json::from_str(&line).map_err(|e| failed(&e.into()))?)?;
        }
        Ok(())
    }

    /// All of them are written; nothing is added after this.
    pub fn end(&mut self) -> Result<()> {
        self.0.flush().map_err(|e| failed(&e))
    }
}

fn failed(error: &io::Error) -> Error {
    Error::failure(format!("cannot keep the findings in a temporary file: {error}"))
        .hint("TMPDIR names a folder with room for them")
}
