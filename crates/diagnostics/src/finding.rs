//! One finding.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::Rule;
use olmkit_base::limits;
use olmkit_base::object::UntrustedText;
use olmkit_yaml::{Node, Position};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The object will be rejected, or will not work.
    Error,
    /// It works, but not as well or not as long as its author expects.
    Warning,
    /// Worth knowing. Never fails a run.
    Info,
}

impl Severity {
    /// The printed form: `error`, `warning`, `info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A finding of a check about an input.
///
/// ```
/// use olmkit_diagnostics::{Finding, Origin, Rule, Severity};
///
/// static NAME: Rule = Rule::of_tool("CSV-1", Severity::Error, Origin::Opm, "A CSV must have a name.");
/// let finding = Finding::new(&NAME, Severity::Error, "metadata.name is empty")
///     .object("ClusterServiceVersion/")
///     .path("metadata.name")
///     .hint("name it <package>.v<version>");
/// assert_eq!(finding.rule, "CSV-1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Id of the rule, for `rules::find`.
    pub rule: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The message, one sentence or operator-sdk's own message.
    pub message: String,
    /// The object concerned, as `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Path of the value inside the object: `spec.versions[0].schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The file, as the user named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Start of the value in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// End of the value. The caret underlines from start to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Position>,
    /// How to fix it.
    #[serde(rename = "help", skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    /// Creates a finding without a position. Long names in the message are shortened, because thousands of findings may
    /// repeat them.
    pub fn new(rule: &'static Rule, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            rule: rule.id,
            severity,
            message: limits::message(message),
            object: None,
            path: None,
            file: None,
            position: None,
            end: None,
            hint: None,
        }
    }

    /// Makes a finding of the rule's own severity.
    pub fn from_rule(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self::new(rule, rule.severity, message)
    }

    /// Names the object.
    #[must_use]
    pub fn object(mut self, object: impl Into<String>) -> Self {
        self.object = Some(limits::name(object));
        self
    }

    /// Names the path inside the object.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(limits::path(path));
        self
    }

    /// Names the file.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Sets the position.
    #[must_use]
    pub fn at(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// Sets the position of a node.
    #[must_use]
    pub fn at_node(mut self, node: &Node) -> Self {
        self.position = Some(node.start);
        self.end = Some(node.end);
        self
    }

    /// Shortens parts that were added after construction.
    pub(super) fn shorten(&mut self) {
        self.message = limits::message(std::mem::take(&mut self.message));
        self.hint = self.hint.take().map(limits::message);
        self.object = self.object.take().map(limits::name);
        self.path = self.path.take().map(limits::path);
    }

    /// Returns true if it contains a string that is longer than a message may be.
    pub(super) fn is_long(&self) -> bool {
        let longest = limits::QUOTED_TEXT.count().min(limits::MESSAGE.count());
        let texts = [&self.hint, &self.object, &self.path];
        let texts = texts.into_iter().flatten().chain([&self.message]);
        texts.into_iter().any(|text| text.len() > longest)
    }

    /// The known part of the position, printed as `FILE:LINE:COLUMN` without control characters.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?.to_string_lossy();
        let position = self.position.map(|position| format!(":{position}")).unwrap_or_default();
        Some(format!("{}{position}", UntrustedText::new(&file)))
    }

    /// Sets the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(limits::message(hint));
        self
    }
}

/// A count with its noun: `1 error`, `2 errors`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A JSON pointer in the form people write: `spec.versions[0].name`.
pub fn json_path(pointer: &str) -> String {
    let mut out = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&format!("[{part}]"));
        } else if part.contains(['.', '/', ' ', '[']) {
            out.push_str(&format!("[{part:?}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&part);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_people_write_them() {
        assert_eq!(json_path("/spec/versions/0/name"), "spec.versions[0].name");
        assert_eq!(
            json_path("/metadata/annotations/olm.skipRange"),
            "metadata.annotations[\"olm.skipRange\"]"
        );
    }
}
