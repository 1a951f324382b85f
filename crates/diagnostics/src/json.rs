//! Findings for scripts. `docs/report.schema.json` describes the shape.

use std::io::{self, Write};

use serde::Serialize;

use super::{Finding, Report, Severity, Suppressed, Verdict};

/// Version of the format. Incremented if a field changes its meaning or is removed.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Json<'r> {
    version: u32,
    passed: bool,
    errors: usize,
    warnings: usize,
    findings: &'r [Finding],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    suppressed: &'r [Suppressed],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    inputs: &'r [Verdict],
}

/// Writes the report as one JSON object, indented, with a line end.
///
/// # Errors
///
/// The writer's error.
pub fn write_json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let report = &*report.shown();
    let json = Json {
        version: VERSION,
        passed: !report.has_errors(),
        errors: report.count(Severity::Error),
        warnings: report.count(Severity::Warning),
        findings: &report.findings,
        suppressed: &report.suppressed,
        inputs: &report.inputs,
    };
    serde_json::to_writer_pretty(&mut *out, &json)?;
    writeln!(out)
}
