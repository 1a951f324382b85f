//! Findings for many inputs as text: a failing input is printed immediately, and each broken rule once at the end.

use std::io::Write as _;

use olmkit::diagnostics::{Finding, Grouped, Rule, Severity, counted};
use olmkit::object::UntrustedText;

use crate::terminal;

/// The findings of more bundles are shown so.
pub const MANY: usize = 10;

/// Data of the inputs that is kept.
#[derive(Default)]
pub struct Many {
    grouped: Grouped,
    has_failed: bool,
    has_findings: bool,
}

impl Many {
    /// Names the next input, if it fails, and counts its findings.
    pub fn add(&mut self, name: &str, findings: &[Finding], fails: bool) -> anyhow::Result<()> {
        self.grouped.add(findings);
        self.has_findings |= !findings.is_empty();
        if !fails {
            return Ok(());
        }
        let out = &mut terminal::styled_output();
        if !self.has_failed {
            writeln!(out, "Failed:")?;
        }
        self.has_failed = true;
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Ok(writeln!(
            out,
            "  {} ({}, {})",
            UntrustedText::new(name),
            counted(count(Severity::Error), "error"),
            counted(count(Severity::Warning), "warning")
        )?)
    }

    /// Prints each broken rule with a few positions. `noun` is the word for an input.
    pub fn end(&self, noun: &str, rules: &[&Rule]) -> anyhow::Result<()> {
        let out = &mut terminal::styled_output();
        if self.has_failed {
            writeln!(out)?;
        }
        self.grouped.write(noun, rules, out)?;
        if self.has_findings {
            writeln!(out)?;
        }
        Ok(())
    }
}
