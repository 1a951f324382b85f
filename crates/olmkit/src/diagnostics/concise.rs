//! Findings one line each, for editors, `grep` and `sort`.

use std::io::{self, Write};

use super::Report;
use crate::object::UntrustedText;

/// Writes `FILE:LINE:COLUMN: RULE message` for each finding; what is not known of the place is left out.
///
/// # Errors
///
/// What the writer gives.
pub fn write_concise(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for finding in &report.findings {
        let file = finding.file.as_deref().map(|file| file.to_string_lossy());
        let place = match (file, finding.position) {
            (Some(file), Some(position)) => format!("{}:{position}: ", UntrustedText::new(&file)),
            (Some(file), None) => format!("{}: ", UntrustedText::new(&file)),
            (None, _) => String::new(),
        };
        let message = UntrustedText::new(&finding.message);
        writeln!(out, "{place}{} {message}", finding.rule)?;
    }
    Ok(())
}
