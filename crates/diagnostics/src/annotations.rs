//! Findings as workflow commands, which GitHub shows next to the lines of a pull request.

use std::io::{self, Write};

use super::{Report, Severity};
use olmkit_base::object::UntrustedText;

/// Writes one workflow command for each finding: `::error file=…,line=…,col=…,title=…::message`.
///
/// # Errors
///
/// The writer's error.
pub fn write_github(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let report = &*report.shown();
    for finding in &report.findings {
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let mut properties = Vec::new();
        if let Some(file) = &finding.file {
            properties.push(format!("file={}", property(&file.to_string_lossy())));
        }
        if let Some(position) = finding.position {
            properties.push(format!("line={}", position.line));
            properties.push(format!("col={}", position.column));
        }
        if let Some(end) = finding.end {
            properties.push(format!("endLine={}", end.line));
        }
        properties.push(format!("title={}", property(finding.rule)));
        let mut message = finding.message.clone();
        if let Some(hint) = &finding.hint {
            message = format!("{message}\nhelp: {hint}");
        }
        writeln!(out, "::{command} {}::{}", properties.join(","), data(&message))?;
    }
    Ok(())
}

/// The content of a command: line ends and percent signs are escaped, so that no input can start another command.
/// Terminal control characters are displayed as escapes.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    UntrustedText::new(&text).to_string()
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
