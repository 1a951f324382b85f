//! Findings of many inputs: each rule once, with how often it was broken and a few places.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{Finding, Report, Rule, Severity, counted};
use crate::object::UntrustedText;

/// Places that are shown of a rule.
const SHOWN: usize = 3;
/// Longest message that is shown whole.
const LONGEST: usize = 200;

/// A finding with the input it is about.
type Found<'r> = (&'r str, &'r Finding);

/// Writes the rules that were broken, the worst and most frequent first. Below each stand messages with a place each; equal messages
/// count as one. The findings come by input, such as a bundle, for which `noun` stands; `rules` says what the rules ask for.
///
/// # Errors
///
/// What the writer gives.
pub fn write_grouped(inputs: &[(&str, Report)], noun: &str, rules: &[&Rule], out: &mut dyn Write) -> io::Result<()> {
    let mut broken: BTreeMap<(Severity, &str), Vec<Found<'_>>> = BTreeMap::new();
    for (input, report) in inputs {
        for finding in &report.findings {
            let found = broken.entry((finding.severity, finding.rule)).or_default();
            found.push((input, finding));
        }
    }
    let mut groups: Vec<_> = broken.into_iter().collect();
    groups.sort_by_key(|((severity, _), findings)| (*severity, std::cmp::Reverse(findings.len())));
    for ((severity, rule), findings) in groups {
        let summary = rules.iter().find(|known| known.id == rule).map(|rule| rule.summary);
        group((severity, rule, summary.unwrap_or_default()), &findings, noun, out)?;
    }
    Ok(())
}

fn group(
    (severity, rule, summary): (Severity, &str, &str),
    findings: &[Found<'_>],
    noun: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let inputs: BTreeSet<&str> = findings.iter().map(|(input, _)| *input).collect();
    let color = match severity {
        Severity::Error => AnsiColor::BrightRed,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Info => AnsiColor::BrightGreen,
    };
    let style = Style::new().bold().fg_color(Some(color.into()));
    writeln!(
        out,
        "{style}{severity}[{rule}]{style:#}: {}",
        UntrustedText::new(summary)
    )?;
    writeln!(
        out,
        "  {} in {}",
        counted(findings.len(), "finding"),
        counted(inputs.len(), noun)
    )?;
    let mut messages: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for (_, finding) in findings {
        messages.entry(&finding.message).or_default().push(finding);
    }
    let mut messages: Vec<_> = messages.into_iter().collect();
    messages.sort_by_key(|(_, findings)| std::cmp::Reverse(findings.len()));
    for (message, findings) in messages.iter().take(SHOWN) {
        writeln!(out, "  - {}{}", shortened(message), place(findings))?;
    }
    if let Some(rest) = messages.len().checked_sub(SHOWN).filter(|rest| *rest > 0) {
        writeln!(out, "  - {rest} more")?;
    }
    Ok(())
}

/// Where the first of some equal findings is, and how many there are.
fn place(findings: &[&Finding]) -> String {
    let Some(first) = findings.first() else {
        return String::new();
    };
    let others = match findings.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!("\n    {}{others}", first.place().unwrap_or_default())
}

fn shortened(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(LONGEST).collect();
    if shown.len() < message.len() {
        shown.push('…');
    }
    UntrustedText::new(&shown).to_string()
}
