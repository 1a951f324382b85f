//! CAP and CAT: the annotations `capabilities` and `categories`.

use super::checked::Checked;
use super::context::{Context, Csv};
use crate::diagnostics::{Origin, Severity, define_rules};
use crate::limits;
use olmkit_go::strconv::quote;
use olmkit_go::structs::decode::decode;

define_rules! {
    CAP_1 = {
        id: "CAP-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("capabilities"),
        summary: "The capability level must be a defined one.",
        why: "OperatorHub.io and consoles filter by these five levels.",
        bad: "capabilities: Level 3",
        good: "capabilities: Full Lifecycle",
        since: "0.1.0",
    }
    CAT_1 = {
        id: "CAT-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("categories"),
        summary: "Each category must be a known one.",
        why: "OperatorHub.io and consoles group operators by these categories.",
        bad: "categories: database",
        good: "categories: Database",
        since: "0.1.0",
    }
    CAT_2 = {
        id: "CAT-2",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("categories"),
        summary: "The file with custom categories must be readable.",
        why: "Without the file operator-sdk does not know which categories are allowed.",
        bad: "OPERATOR_BUNDLE_CATEGORIES=missing.json",
        good: "{\"categories\": [\"Own\"]}",
        since: "0.1.0",
    }
}

/// The capability levels.
pub const CAPABILITIES: [&str; 5] = [
    "Basic Install",
    "Seamless Upgrades",
    "Full Lifecycle",
    "Deep Insights",
    "Auto Pilot",
];

/// The categories of OperatorHub.io.
pub const CATEGORIES: [&str; 16] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Developer Tools",
    "Database",
    "Integration & Delivery",
    "Logging & Tracing",
    "Monitoring",
    "Modernization & Migration",
    "Networking",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
    "Observability",
];

/// Environment variable that names a JSON file with other categories.
pub const CATEGORIES_FILE: &str = "OPERATOR_BUNDLE_CATEGORIES";

/// The validator `capabilities`.
pub fn capabilities(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let Some(level) = csv.annotation("capabilities") else {
        return Vec::new();
    };
    if CAPABILITIES.contains(&level) {
        return Vec::new();
    }
    let detail = format!(
        "csv.Metadata.Annotations.Capabilities {} is not a valid capabilities level",
        quote(level)
    );
    let hint = format!("use one of: {}", CAPABILITIES.join(", "));
    vec![
        csv.error(&CAP_1, "/metadata/annotations/capabilities", detail)
            .hint(hint),
    ]
}

/// The validator `categories`.
pub fn categories(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let Some(list) = csv.annotation("categories") else {
        return Vec::new();
    };
    match context
        .options
        .categories_file
        .as_deref()
        .filter(|path| !path.is_empty())
    {
        None => unknown(&csv, list, "standard", |category| CATEGORIES.contains(&category)),
        Some(path) => match custom_categories(path) {
            Ok(known) => unknown(&csv, list, "custom", |category| {
                known.iter().any(|other| other == category)
            }),
            Err(reason) => {
                let detail = format!(
                    "could not extract custom categories from categories map[string]struct {{}}(nil): {reason}"
                );
                let hint = format!("{CATEGORIES_FILE} must name a JSON file with {{\"categories\": [\"…\"]}}");
                vec![csv.error(&CAT_2, "/metadata/annotations/categories", detail).hint(hint)]
            }
        },
    }
}

fn unknown(csv: &Csv<'_>, list: &str, set: &str, known: impl Fn(&str) -> bool) -> Vec<Checked> {
    let finding = |category: &str| {
        let detail = format!(
            "csv.Metadata.Annotations[\"categories\"] value {} is not in the set of {set} categories",
            quote(category)
        );
        let checked = csv.error(&CAT_1, "/metadata/annotations/categories", detail);
        if set == "standard" {
            checked.hint(format!("use one of: {}", CATEGORIES.join(", ")))
        } else {
            checked
        }
    };
    list.split(',')
        .filter(|category| !known(category.trim()))
        .map(finding)
        .collect()
}

fn custom_categories(path: &str) -> Result<Vec<String>, String> {
    let shown = std::path::absolute(path).map_or_else(|_| path.to_string(), |path| path.display().to_string());
    let text = limits::read_named(path.as_ref(), &limits::SETTINGS_FILE)
        .and_then(limits::text)
        .map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "no such file or directory".to_string(),
                _ => error.to_string(),
            };
            format!("reading category file: open {shown}: {reason}")
        })?;
    let refused = |reason: String| format!("unmarshaling category file: {reason}");
    let value: serde_json::Value = match olmkit_go::json::check(&text) {
        Ok(()) => serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?,
        Err(error) => return Err(refused(error.message)),
    };
    let decoded = decode(&value, "CategoriesFile", false).map_err(|error| refused(error.message))?;
    Ok(super::context::strings(&decoded, "categories")
        .map(str::to_string)
        .collect())
}
