//! The validation at the end of `generate bundle`: operator-sdk's rules for the CSV that it generates.

use anyhow::bail;
use olmkit::bundle::generate::Generated;
use olmkit::diagnostics::Severity;
use olmkit::validate::{self, Options};

/// Runs the ClusterServiceVersion rules. The other rules of `bundle validate` need files that may not exist yet.
///
/// # Errors
/// When the CSV is invalid. Nothing must be written then.
pub fn csv(generated: &Generated, package: &str) -> anyhow::Result<()> {
    let reading = generated.reading(package)?;
    let outcome = validate::validate(&reading, &Options::default());
    let mut invalid = 0;
    for finding in outcome.findings().filter(|finding| finding.rule.starts_with("CSV-")) {
        let error = finding.severity == Severity::Error;
        invalid += usize::from(error);
        let level = if error { "error" } else { "warning" };
        let hint = finding
            .hint
            .as_ref()
            .map(|hint| format!("\n  {hint}"))
            .unwrap_or_default();
        eprintln!("{level}: ClusterServiceVersion: {}{hint}", finding.message);
    }
    if invalid > 0 {
        bail!("the generated ClusterServiceVersion is invalid; nothing was written");
    }
    Ok(())
}
