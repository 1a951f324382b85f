//! Updates `ci.yaml` with a mapping from templates to catalogs and keeps everything else.

use olmkit::fix::Document;
use serde_json::{Map, Value, json};

use super::Mapping;

/// The file with the mapping, and without `updateGraph`, which the pipeline rejects in combination. `None` if it cannot
/// be changed in place.
pub(super) fn with_mapping(text: &str, mapping: &[Mapping]) -> Option<String> {
    let mapping = serde_json::to_value(mapping).ok()?;
    if olmkit_yaml::parse(text.as_bytes()).is_ok_and(|node| node.is_null()) {
        let start = if text.is_empty() { "---\n" } else { text };
        let end = if start.ends_with('\n') { "" } else { "\n" };
        let block = olmkit_yaml::to_string(&json!({"fbc": {"enabled": true, "catalog_mapping": mapping}})).ok()?;
        return Some(format!("{start}{end}{block}"));
    }
    let mut document = Document::read(text.as_bytes())?;
    let old = document.value().get("fbc").cloned();
    match old.as_ref().and_then(Value::as_object) {
        None => {
            // A null, or nothing.
            let fresh = json!({"enabled": true, "catalog_mapping": mapping});
            if old.is_none() {
                document.add("", "fbc", &fresh)?;
            } else {
                replace(&mut document, "", "fbc", &fresh)?;
            }
        }
        Some(fbc) => {
            let mut changed = document.clone();
            if within(&mut changed, fbc, &mapping).is_some() {
                document = changed;
            } else {
                let mut fresh = fbc.clone();
                fresh.insert("enabled".to_owned(), true.into());
                fresh.insert("catalog_mapping".to_owned(), mapping);
                replace(&mut document, "", "fbc", &fresh.into())?;
            }
        }
    }
    if document.value().get("updateGraph").is_some() {
        document.remove("", "updateGraph")?;
    }
    Some(document.text().to_owned())
}

/// Changes only the two keys.
fn within(document: &mut Document, fbc: &Map<String, Value>, mapping: &Value) -> Option<()> {
    if fbc.get("enabled") != Some(&Value::Bool(true)) {
        match fbc.get("enabled") {
            None => document.add("/fbc", "enabled", &true.into())?,
            Some(_) => replace(document, "/fbc", "enabled", &true.into())?,
        }
    }
    match fbc.get("catalog_mapping") {
        None => document.add("/fbc", "catalog_mapping", mapping),
        Some(known) if known == mapping => Some(()),
        Some(_) => replace(document, "/fbc", "catalog_mapping", mapping),
    }
}

/// Gives a key another value.
fn replace(document: &mut Document, pointer: &str, key: &str, value: &Value) -> Option<()> {
    document.remove(pointer, key)?;
    document.add(pointer, key, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_comments_stay() {
        let mapping = Mapping {
            template_name: "basic.yaml".to_owned(),
            catalog_names: vec!["v4.20".to_owned()],
            kind: "olm.template.basic",
        };
        let block = "  catalog_mapping:\n  - catalog_names:\n    - v4.20\n    template_name: basic.yaml\n    type: olm.template.basic\n";
        let fresh = format!("fbc:\n{block}  enabled: true\n");
        for (text, wanted) in [
            ("", format!("---\n{fresh}")),
            ("---\n# nothing yet", format!("---\n# nothing yet\n{fresh}")),
            (
                "---\n# how\nupdateGraph: semver-mode # old\n# who\nreviewers:\n  - a # first\nmerge: false\n",
                format!("---\n# how\n# who\nreviewers:\n  - a # first\nmerge: false\n{fresh}"),
            ),
            (
                "fbc:\n  # careful\n  version_promotion_strategy: never\n  enabled: false\nmerge: true\n",
                format!(
                    "fbc:\n  # careful\n  version_promotion_strategy: never\n  enabled: true\n{block}merge: true\n"
                ),
            ),
            (
                "# license\n#\n\n---\n# how\nupdateGraph: semver-mode\nreviewers:\n  - a\n",
                format!("# license\n#\n\n---\n# how\nreviewers:\n  - a\n{fresh}"),
            ),
            (
                "# license\n---\nreviewers: [a]\n",
                format!("# license\n---\nreviewers: [a]\n{fresh}"),
            ),
            (
                "reviewers: [a]\nfbc: {enabled: true, version_promotion_strategy: always}\n",
                "reviewers: [a]\nfbc: {enabled: true, version_promotion_strategy: always, \"catalog_mapping\": \
                 [{\"catalog_names\":[\"v4.20\"],\"template_name\":\"basic.yaml\",\"type\":\"olm.template.basic\"}]}\n"
                    .to_owned(),
            ),
        ] {
            let own = with_mapping(text, std::slice::from_ref(&mapping));
            assert_eq!(own.as_deref(), Some(wanted.as_str()), "{text}");
            let again = with_mapping(&wanted, std::slice::from_ref(&mapping));
            assert_eq!(again, own, "a second time nothing changes");
        }
        for other in ["[a]\n", "# a\n---\na: 1\n---\nb: 1\n", "a: 1\n---\nb: 1\n"] {
            assert_eq!(with_mapping(other, std::slice::from_ref(&mapping)), None, "{other}");
        }
    }
}
