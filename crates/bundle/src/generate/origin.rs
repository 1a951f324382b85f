//! Positions of documents.

use std::fmt;
use std::path::PathBuf;

/// Position of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The file. None for standard input.
    pub file: Option<PathBuf>,
    /// The line on which it begins, counted from 1; 0 when unknown.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(out, "{}", file.display())?,
            None => out.write_str("standard input")?,
        }
        if self.line > 0 {
            write!(out, ":{}", self.line)
        } else {
            Ok(())
        }
    }
}
