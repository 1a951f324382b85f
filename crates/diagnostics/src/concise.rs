//! Findings one line each, for editors, `grep` and `sort`.

use std::io::{self, Write};

use super::Report;
use olmkit_base::object::UntrustedText;

/// Writes `FILE:LINE:COLUMN: SEVERITY[RULE] message` for each finding. Unknown parts of the position are omitted.
///
/// # Errors
///
/// The writer's error.
pub fn write_concise(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let report = &*report.shown();
    for finding in &report.findings {
        let place = finding.place().map(|place| place + ": ").unwrap_or_default();
        let message = UntrustedText::new(&finding.message);
        writeln!(out, "{place}{}[{}] {message}", finding.severity, finding.rule)?;
    }
    Ok(())
}
