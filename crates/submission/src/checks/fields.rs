//! The fields that OperatorHub shows.

use std::sync::LazyLock;

use olmkit::diagnostics::{Finding, Rule, Severity};
use regex::Regex;

use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::python::text::shown;
use crate::python::{Node, Raise, Value, View, is_iso_8601};
use crate::versions::is_semver;

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Community, &FIELDS, Run::Bundle(fields))];

static FIELDS: Rule = rule(
    "pipeline/check_required_fields",
    Severity::Error,
    "community",
    "The ClusterServiceVersion must have the fields that OperatorHub shows",
)
.because(
    "The operator's page would lack its description, icon, links or maintainers.",
    "0.1.0",
)
.example(
    "metadata:\n  annotations:\n    capabilities: Basic",
    "metadata:\n  annotations:\n    capabilities: Basic Install",
);

/// A field, its condition, and the severity if it fails.
struct Field {
    path: &'static str,
    severity: Severity,
    is_valid: fn(&View<'_>) -> Result<bool, Raise>,
    /// The expected form, for the hint.
    wanted: &'static str,
}

const fn field(
    path: &'static str,
    severity: Severity,
    is_valid: fn(&View<'_>) -> Result<bool, Raise>,
    wanted: &'static str,
) -> Field {
    Field {
        path,
        severity,
        is_valid,
        wanted,
    }
}

static REQUIRED: &[Field] = &[
    field(
        "metadata.annotations.capabilities",
        Severity::Warning,
        capabilities,
        "one of Basic Install, Seamless Upgrades, Full Lifecycle, Deep Insights, Auto Pilot",
    ),
    field(
        "metadata.annotations.categories",
        Severity::Warning,
        categories,
        "a comma-separated list of categories such as Database, Monitoring",
    ),
    field(
        "metadata.annotations.containerImage",
        Severity::Warning,
        |value| Ok(matches(&IMAGE, value)),
        "an image with registry and tag, such as quay.io/example/operator:v1.0.0",
    ),
    field(
        "metadata.annotations.createdAt",
        Severity::Warning,
        |value| Ok(timestamp(value)),
        "a date such as 2026-08-22T10:00:00Z",
    ),
    field(
        "metadata.annotations.repository",
        Severity::Warning,
        |value| Ok(matches(&URL, value)),
        "a URL that starts with https://",
    ),
    field(
        "metadata.annotations.support",
        Severity::Warning,
        |value| Ok(matches(&THREE, value)),
        "the support provider, three characters or more",
    ),
    field(
        "metadata.annotations.description",
        Severity::Warning,
        |value| Ok(matches(&TEN, value)),
        "ten characters or more",
    ),
    field(
        "spec.displayName",
        Severity::Error,
        |value| Ok(matches(&THREE_ON_A_LINE, value)),
        "three characters or more",
    ),
    field(
        "spec.description",
        Severity::Error,
        |value| Ok(matches(&TWENTY, value)),
        "twenty characters or more",
    ),
    field(
        "spec.icon",
        Severity::Error,
        icon,
        "a list of icons, each with base64data and mediatype image/png, image/jpeg, image/gif or image/svg+xml",
    ),
    field(
        "spec.version",
        Severity::Error,
        |value| Ok(value.node.as_str().is_some_and(is_semver)),
        "a semantic version such as 1.0.0",
    ),
    field(
        "spec.maintainers",
        Severity::Error,
        |value| Ok(list_of(value.node, ["name", "email"])),
        "a list of maintainers, each with name and email",
    ),
    field(
        "spec.provider.name",
        Severity::Error,
        |value| Ok(matches(&THREE_ON_A_LINE, value)),
        "three characters or more",
    ),
    field(
        "spec.links",
        Severity::Error,
        |value| Ok(list_of(value.node, ["name", "url"])),
        "a list of links, each with name and url",
    ),
    field(
        "spec.keywords",
        Severity::Warning,
        |value| Ok(keywords(value)),
        "a list of words",
    ),
];

/// A pattern that matches at the start of a string.
type Pattern = LazyLock<Option<Regex>>;

fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

static IMAGE: Pattern = LazyLock::new(|| pattern("^([^/]+/)+[^/:]+:."));
static URL: Pattern = LazyLock::new(|| pattern("^https?://."));
static THREE: Pattern = LazyLock::new(|| pattern("(?s)^.{3}"));
static TEN: Pattern = LazyLock::new(|| pattern("(?s)^.{10}"));
static TWENTY: Pattern = LazyLock::new(|| pattern("(?s)^.{20}"));
static THREE_ON_A_LINE: Pattern = LazyLock::new(|| pattern("^.{3}"));

fn matches(pattern: &Pattern, value: &View<'_>) -> bool {
    let pattern = pattern.as_ref();
    pattern.is_some_and(|pattern| pattern.is_match(&shown(value.node)))
}

fn fields(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let csv = context.csv()?;
    for field in REQUIRED {
        let value = csv.lookup(field.path)?;
        let message = if value.is_none() {
            format!("CSV does not define {}", field.path)
        } else if (field.is_valid)(&value)? {
            continue;
        } else {
            format!("CSV contains an invalid value for {}", field.path)
        };
        let finding = Finding::new(&FIELDS, field.severity, message).path(field.path);
        found.push(at(finding, value).hint(format!("it must be {}", field.wanted)));
    }
    if !context.options.strict_compat {
        long_name(csv, found)?;
    }
    Ok(())
}

/// The limit that the pipeline writes down and does not enforce.
fn long_name(csv: View<'_>, found: &mut Findings) -> Result<(), Raise> {
    let name = csv.lookup("spec.displayName")?;
    let length = name.node.as_str().unwrap_or_default().chars().count();
    if length > 50 {
        let message = format!(
            "spec.displayName has {length} characters, the documented limit is 50 (differs from the hosted pipeline, which does not enforce it)"
        );
        let finding = Finding::new(&FIELDS, Severity::Warning, message).path("spec.displayName");
        found.push(at(finding, name).hint("shorten the name: the tiles of OperatorHub cut it"));
    }
    Ok(())
}

fn capabilities(value: &View<'_>) -> Result<bool, Raise> {
    let levels = [
        "Basic Install",
        "Seamless Upgrades",
        "Full Lifecycle",
        "Deep Insights",
        "Auto Pilot",
    ];
    Ok(value.node.as_str().is_some_and(|level| levels.contains(&level)))
}

fn categories(value: &View<'_>) -> Result<bool, Raise> {
    let known = [
        "AI/Machine Learning",
        "Application Runtime",
        "Big Data",
        "Cloud Provider",
        "Developer Tools",
        "Database",
        "Drivers and plugins",
        "Integration & Delivery",
        "Logging & Tracing",
        "Modernization & Migration",
        "Monitoring",
        "Networking",
        "OpenShift Optional",
        "Security",
        "Storage",
        "Streaming & Messaging",
    ];
    Ok(shown(value.node)
        .split(',')
        .all(|category| known.contains(&category.trim())))
}

fn timestamp(value: &View<'_>) -> bool {
    match &value.node.value {
        Value::Date(date) if date.has_time() => true,
        _ => is_iso_8601(&shown(value.node)),
    }
}

/// Returns true if a list has items, all of them mappings with strings at these keys.
fn list_of(node: &Node, keys: [&str; 2]) -> bool {
    match &node.value {
        Value::List(items) => {
            !items.is_empty()
                && items.iter().all(|item| {
                    keys.iter()
                        .all(|key| item.get(key).is_some_and(|value| value.as_str().is_some()))
                })
        }
        _ => false,
    }
}

fn keywords(value: &View<'_>) -> bool {
    match &value.node.value {
        Value::List(items) => !items.is_empty() && items.iter().all(|item| item.as_str().is_some()),
        _ => false,
    }
}

fn icon(value: &View<'_>) -> Result<bool, Raise> {
    if !list_of(value.node, ["base64data", "mediatype"]) {
        return Ok(false);
    }
    for icon in value.iterate()? {
        let icon = value.inside(&icon);
        let text = |key: &str| icon.node.get(key).and_then(Node::as_str).unwrap_or_default();
        let data: String = text("base64data")
            .chars()
            .filter(|character| !matches!(character, ' ' | '\t'..='\r'))
            .collect();
        if data.chars().count() < 4 {
            return Ok(false);
        }
        if !data.is_ascii() {
            return Err(icon.raise("base64data of the icon has characters outside of ASCII"));
        }
        let types = ["image/png", "image/jpeg", "image/gif", "image/svg+xml"];
        if !is_base64(&data) || !types.contains(&text("mediatype")) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Input that Python 3.11 decodes with `validate=True`: padding may be longer than needed.
fn is_base64(data: &str) -> bool {
    let bare = data.trim_end_matches('=');
    let padding = data.len() - bare.len();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let needed = match bare.len() % 4 {
        0 => 0,
        2 => 2,
        3 => 1,
        _ => return false,
    };
    padding <= 2 && padding >= needed && bare.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::is_base64;

    #[test]
    fn padding_may_be_too_long_but_not_too_short() {
        for data in ["AAAA", "AAAA==", "AA==", "AAA=", "AAA=="] {
            assert!(is_base64(data), "{data}");
        }
        for data in ["AAAAA", "AA=", "AAA", "====", "AA=A", "A-AA", "A==="] {
            assert!(!is_base64(data), "{data}");
        }
    }
}
