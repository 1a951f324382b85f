//! The result of preflight in the shape of its `results.json`.

use olmkit::diagnostics::{Rule, Severity};
use serde::Serialize;

use crate::checked::Checked;
use crate::checks::{CHECKS, Suite, name_of};

/// preflight's `results.json`. It omits checks that did not run.
#[derive(Debug, Clone, Serialize)]
pub struct PreflightResults {
    image: String,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    certification_hash: Option<String>,
    test_library: Library,
    results: Results,
}

#[derive(Debug, Clone, Serialize)]
struct Library {
    name: &'static str,
    version: &'static str,
    commit: &'static str,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Results {
    passed: Vec<Entry>,
    failed: Vec<Entry>,
    errors: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize)]
struct Entry {
    name: &'static str,
    /// Always 0: the same input has the same output.
    elapsed_time: u32,
    description: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    help: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    suggestion: String,
}

/// The rules of preflight's operator policy that count and that are checked here, in its order.
pub fn preflight_operator_rules() -> Vec<&'static Rule> {
    let checks = CHECKS.iter().copied().flatten();
    let of_preflight = checks.filter(|check| check.suite == Suite::Preflight && check.rule.severity == Severity::Error);
    of_preflight.map(|check| check.rule).collect()
}

impl PreflightResults {
    /// The results of rules that were checked on `image`, a bundle or a container.
    pub fn new(image: &str, checked: &[&'static Rule], found: &[Checked]) -> Self {
        let mut results = Results::default();
        for rule in checked {
            let name = name_of(rule.id);
            let of_rule = |one: &&Checked| one.check == name && one.finding.severity == Severity::Error;
            let mut own = found.iter().filter(of_rule).peekable();
            let mut entry = Entry {
                name,
                elapsed_time: 0,
                description: rule.summary,
                help: String::new(),
                suggestion: String::new(),
            };
            let Some(first) = own.peek() else {
                results.passed.push(entry);
                continue;
            };
            let is_error = first.is_traceback;
            entry.suggestion = first.finding.hint.clone().unwrap_or_default();
            let messages: Vec<&str> = own.map(|one| one.finding.message.as_str()).collect();
            entry.help = messages.join("; ");
            if is_error {
                entry.suggestion.clear();
                results.errors.push(entry);
            } else {
                results.failed.push(entry);
            }
        }
        Self {
            image: image.to_owned(),
            passed: results.failed.is_empty() && results.errors.is_empty(),
            certification_hash: None,
            test_library: Library {
                name: "olmkit",
                version: env!("CARGO_PKG_VERSION"),
                commit: "unknown",
            },
            results,
        }
    }

    /// With the hash of the bundle that was checked. That of a container has none.
    #[must_use]
    pub fn with_certification_hash(mut self, hash: String) -> Self {
        self.certification_hash = Some(hash);
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::{Container, Policy, PreflightResults, check_container};

    #[test]
    fn the_shape_is_that_of_preflight() {
        let image = Container {
            user: "1".to_owned(),
            licenses: Some(vec![1]),
            ..Container::default()
        };
        let outcome = check_container(&image, Policy::Konflux);
        let results = PreflightResults::new("a", &outcome.checked, &outcome.found);
        let json = serde_json::to_value(&results).expect("it is plain data");
        let names = |key: &str| -> Vec<String> {
            let entries = json["results"][key].as_array().into_iter().flatten();
            entries
                .filter_map(|entry| Some(entry["name"].as_str()?.to_owned()))
                .collect()
        };
        assert_eq!(
            (json["image"].as_str(), json["passed"].as_bool()),
            (Some("a"), Some(false))
        );
        assert_eq!(names("passed"), ["HasLicense", "LayerCountAcceptable", "RunAsNonRoot"]);
        assert_eq!(names("failed"), ["HasRequiredLabel"]);
        assert_eq!(names("errors"), ["HasNoProhibitedPackages"]);
        assert!(json["results"]["failed"][0]["suggestion"].is_string());
        assert!(json["results"]["passed"][0].get("help").is_none());
    }
}
