//! Findings as SARIF 2.1.0, which code scanning services read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Finding, Report, Rule, Severity, Suppressed, Suppression};

/// Writes the report as a SARIF log with one run. `rules` describes the rules that occur. Others are omitted.
///
/// # Errors
///
/// The writer's error.
pub fn write_sarif(report: &Report, rules: &[&Rule], out: &mut dyn Write) -> io::Result<()> {
    let report = &*report.shown();
    let suppressed = report.suppressed.iter().map(|suppressed| &suppressed.finding);
    let used: BTreeSet<&str> = report
        .findings
        .iter()
        .chain(suppressed)
        .map(|finding| finding.rule)
        .collect();
    let ids: Vec<&str> = used.iter().copied().collect();
    let descriptions: Vec<Value> = ids
        .iter()
        .map(|id| match rules.iter().find(|rule| rule.id == *id) {
            Some(rule) => json!({
                "id": id,
                "shortDescription": {"text": rule.summary},
                "fullDescription": {"text": format!("{} {}", rule.summary, rule.why)},
                "defaultConfiguration": {"level": level(rule.severity)},
                "help": help(rule),
                "helpUri": rule.page(),
            }),
            None => json!({"id": id}),
        })
        .collect();
    let mut seen = BTreeMap::new();
    let mut results: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| result(finding, &ids, &mut seen))
        .collect();
    for Suppressed { finding, by } in &report.suppressed {
        let mut result = result(finding, &ids, &mut seen);
        if let Some(fields) = result.as_object_mut() {
            fields.insert("suppressions".to_owned(), json!([suppression(by)]));
        }
        results.push(result);
    }
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "olmkit",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": descriptions,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

/// SARIF's name for a severity.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// The documentation of a rule, as plain text and as Markdown.
fn help(rule: &Rule) -> Value {
    let mut text = rule.why.to_owned();
    let mut markdown = rule.why.to_owned();
    for (title, example) in [("Bad", rule.bad), ("Good", rule.good)] {
        if !example.is_empty() {
            text.push_str(&format!("\n\n{title}:\n{example}"));
            markdown.push_str(&format!("\n\n**{title}:**\n\n```yaml\n{example}\n```"));
        }
    }
    let more = format!("\n\n`olmkit explain {}`", rule.id);
    json!({"text": text + &more, "markdown": markdown + &more})
}

/// Comments are in the source. Settings and baselines are not.
fn suppression(by: &Suppression) -> Value {
    let kind = match by {
        Suppression::Comment(_) => "inSource",
        _ => "external",
    };
    json!({"kind": kind, "justification": by.to_string()})
}

/// A fingerprint that does not change when lines or directories move: rule, file name, object, path and message, and a
/// counter for equal ones.
fn fingerprint(finding: &Finding, seen: &mut BTreeMap<String, usize>) -> String {
    let mut hash = Sha256::new();
    let file = finding
        .file
        .as_deref()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let texts = [
        finding.rule,
        &file,
        finding.object.as_deref().unwrap_or_default(),
        finding.path.as_deref().unwrap_or_default(),
        &finding.message,
    ];
    for text in texts {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let hex: String = hash
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let count = seen.entry(hex.clone()).or_default();
    *count += 1;
    format!("{hex}:{count}")
}

fn result(finding: &Finding, ids: &[&str], seen: &mut BTreeMap<String, usize>) -> Value {
    let text = match &finding.hint {
        Some(hint) => format!("{}\n{hint}", finding.message),
        None => finding.message.clone(),
    };
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": ids.iter().position(|id| *id == finding.rule),
        "level": level(finding.severity),
        "message": {"text": text},
        "partialFingerprints": {"olmkit/v1": fingerprint(finding, seen)},
    });
    if let Some(location) = location(finding)
        && let Some(fields) = result.as_object_mut()
    {
        fields.insert("locations".to_owned(), json!([location]));
    }
    result
}

fn location(finding: &Finding) -> Option<Value> {
    let mut location = serde_json::Map::new();
    if let Some(file) = &finding.file {
        let mut physical = json!({"artifactLocation": {"uri": uri(&file.to_string_lossy())}});
        if let (Some(start), Some(fields)) = (finding.position, physical.as_object_mut()) {
            let mut region = json!({"startLine": start.line, "startColumn": start.column});
            if let (Some(end), Some(region)) = (finding.end.filter(|end| *end > start), region.as_object_mut()) {
                region.insert("endLine".to_owned(), end.line.into());
                region.insert("endColumn".to_owned(), end.column.into());
            }
            fields.insert("region".to_owned(), region);
        }
        location.insert("physicalLocation".to_owned(), physical);
    }
    let name = match (&finding.object, &finding.path) {
        (Some(object), Some(path)) => Some(format!("{object}: {path}")),
        (Some(name), None) | (None, Some(name)) => Some(name.clone()),
        (None, None) => None,
    };
    if let Some(name) = name {
        location.insert("logicalLocations".to_owned(), json!([{"fullyQualifiedName": name}]));
    }
    (!location.is_empty()).then_some(Value::Object(location))
}

/// A path as a relative URI reference: forward slashes, and everything else that a URI does not allow escaped.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.replace('\\', "/").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
