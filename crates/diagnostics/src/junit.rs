//! Findings as JUnit XML, which CI servers show as tests.

use std::io::{self, Write};

use super::{Finding, Report, Severity, Suppressed};

/// Writes one test suite with a test case for each finding: errors and warnings are failures, infos pass, suppressed
/// findings are skipped. A report without findings has one test case that passes.
///
/// # Errors
///
/// The writer's error.
pub fn write_junit(report: &Report, suite: &str, out: &mut dyn Write) -> io::Result<()> {
    let report = &*report.shown();
    let failures = report.count(Severity::Error) + report.count(Severity::Warning);
    let cases = report.findings.len() + report.suppressed.len();
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<testsuites><testsuite name="{}" tests="{}" failures="{failures}" skipped="{}">"#,
        escaped(suite),
        cases.max(1),
        report.suppressed.len()
    )?;
    for finding in &report.findings {
        let content = match finding.severity {
            Severity::Info => format!("<system-out>{}</system-out>", escaped(&text(finding))),
            severity => format!(
                r#"<failure type="{severity}" message="{}">{}</failure>"#,
                escaped(&finding.message),
                escaped(&text(finding))
            ),
        };
        case(finding, &content, out)?;
    }
    for Suppressed { finding, by } in &report.suppressed {
        case(
            finding,
            &format!(r#"<skipped message="{}"/>"#, escaped(&by.to_string())),
            out,
        )?;
    }
    if cases == 0 {
        writeln!(out, r#"  <testcase classname="olmkit" name="no findings"/>"#)?;
    }
    writeln!(out, "</testsuite></testsuites>")
}

fn case(finding: &Finding, content: &str, out: &mut dyn Write) -> io::Result<()> {
    let file = finding.file.as_deref().map(|file| file.to_string_lossy().into_owned());
    let name = match (&finding.object, &finding.path) {
        (Some(object), Some(path)) => format!("{}: {object}, {path}", finding.rule),
        (Some(name), None) | (None, Some(name)) => format!("{}: {name}", finding.rule),
        (None, None) => finding.rule.to_owned(),
    };
    writeln!(
        out,
        r#"  <testcase classname="{}" name="{}">{content}</testcase>"#,
        escaped(file.as_deref().unwrap_or("olmkit")),
        escaped(&name)
    )
}

/// The finding as text: position, message, hint.
fn text(finding: &Finding) -> String {
    let place = finding.place().map(|place| place + ": ").unwrap_or_default();
    let hint = finding
        .hint
        .as_ref()
        .map(|hint| format!("\nhelp: {hint}"))
        .unwrap_or_default();
    format!("{place}{} {}{hint}", finding.rule, finding.message)
}

/// Text and attributes of XML. Characters that XML 1.0 does not have become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}
