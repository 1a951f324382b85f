//! Findings for people.

use std::io::{self, Write};

use super::{Finding, Report};

/// How findings are shown to people.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Whether source lines are left out.
    pub short: bool,
}

/// Writes every finding with its place and hint.
///
/// # Errors
///
/// What the writer gives.
pub fn write_text(report: &Report, _options: TextOptions, out: &mut dyn Write) -> io::Result<()> {
    report
        .findings
        .iter()
        .try_for_each(|finding| write_finding(finding, out))
}

fn write_finding(finding: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}[{}]: {}", finding.severity, finding.rule, finding.message)?;
    if let Some(file) = &finding.file {
        match finding.position {
            Some(position) => writeln!(out, "  --> {}:{position}", file.display())?,
            None => writeln!(out, "  --> {}", file.display())?,
        }
    }
    if let Some(object) = &finding.object {
        let path = finding
            .path
            .as_deref()
            .map(|path| format!(", {path}"))
            .unwrap_or_default();
        writeln!(out, "  object: {object}{path}")?;
    }
    if let Some(hint) = &finding.hint {
        writeln!(out, "  help: {hint}")?;
    }
    Ok(())
}
