//! Templates that accept a bundle.

use super::*;

fn bundle() -> Bundle {
    Bundle {
        name: "hello.v0.0.2".to_owned(),
        image: "r.io/hello:2".to_owned(),
        ..Bundle::default()
    }
}

fn with(kind: &str, channels: &str, rest: &str) -> (Value, Value) {
    let text = format!("{{template_name: a.yaml, channels: [{channels}]{rest}}}");
    let ci = format!("fbc:\n  catalog_mapping:\n  - {{template_name: a.yaml, catalog_names: [v4.20], type: {kind}}}\n");
    let read = |text: &str| olmkit_yaml::parse(text.as_bytes()).unwrap().to_json().unwrap();
    (read(&text), read(&ci))
}

#[test]
fn a_basic_template_takes_the_bundle_and_keeps_its_comments() {
    let text = "---\nschema: olm.template.basic\nentries:\n- schema: olm.package\n  name: hello\n  defaultChannel: stable\n\
                # ours\n- schema: olm.channel\n  name: stable\n  package: hello\n  entries:\n  - name: hello.v0.0.1 # first\n\
                - schema: olm.bundle\n  image: r.io/hello:1\n";
    let (entry, ci) = with("olm.template.basic", "stable, beta", ", replaces: hello.v0.0.1");
    let wanted = wanted(&entry, &ci, "r", "c").unwrap();
    let own = amended(text.as_bytes(), &wanted, "hello", &bundle()).unwrap();
    let expected = text.replace(
        "# first\n",
        "# first\n  - name: hello.v0.0.2\n    replaces: hello.v0.0.1\n",
    ) + "- entries:\n  - name: hello.v0.0.2\n    replaces: hello.v0.0.1\n  name: beta\n  package: hello\n  schema: olm.channel\n\
           - image: r.io/hello:2\n  schema: olm.bundle\n";
    assert_eq!(own, expected);
    assert_eq!(amended(own.as_bytes(), &wanted, "hello", &bundle()), Some(own));
}

#[test]
fn a_semver_template_takes_the_image() {
    let text =
        "Schema: olm.semver\nGenerateMajorChannels: true\nStable:\n  Bundles:\n  - Image: r.io/hello:1 # first\n";
    let (entry, ci) = with("olm.semver", "Stable, Fast", "");
    let wanted = wanted(&entry, &ci, "r", "c").unwrap();
    let own = amended(text.as_bytes(), &wanted, "hello", &bundle()).unwrap();
    assert_eq!(
        own,
        format!("{text}  - Image: r.io/hello:2\nFast:\n  Bundles:\n  - Image: r.io/hello:2\n")
    );
    let fresh = created(&wanted, "hello", &bundle()).unwrap();
    assert!(
        fresh.contains(
            "GenerateMinorChannels: true\nSchema: olm.semver\nStable:\n  Bundles:\n  - Image: r.io/hello:2\n"
        )
    );
}

#[test]
fn mismatched_templates_name_their_file() {
    for (kind, channels, rest, wrong) in [
        (
            "olm.template.basic",
            "stable",
            ", defaultChannel: beta",
            "r: defaultChannel beta",
        ),
        ("olm.template.basic", "", "", "r: a.yaml has no channels"),
        ("olm.composite", "stable", "", "c: the type of a.yaml"),
    ] {
        let (entry, ci) = with(kind, channels, rest);
        let error = wanted(&entry, &ci, "r", "c").err().map(|error| error.to_string());
        assert!(
            error.as_ref().is_some_and(|error| error.starts_with(wrong)),
            "{error:?}"
        );
    }
    let (entry, _) = with("olm.semver", "Stable", "");
    assert!(wanted(&entry, &json!({}), "r", "c").is_err_and(|error| error.to_string().contains("no template a.yaml")));
}

/// Output of `dev/submission/templates.py`, which documents how to run it.
#[test]
#[ignore = "needs the answers of operator-pipelines: run dev/submission/templates.py"]
fn templates_of_the_pipeline_say_the_same() {
    let path = std::env::var("SUBMISSION_TEMPLATES").expect("SUBMISSION_TEMPLATES names the file");
    let (mut equal, mut refused, mut different) = (0, Vec::new(), Vec::new());
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| case[key].as_str().unwrap_or_default();
        let ci = json!({"fbc": {"catalog_mapping": [case["mapping"]]}});
        // The pipeline's schema rejects such an entry earlier.
        let wanted = match wanted(&case["entry"], &ci, "r", "c") {
            Ok(wanted) => wanted,
            Err(error) => {
                refused.push(format!("{} {}: {error}", text("operator"), text("name")));
                continue;
            }
        };
        let new = Bundle {
            name: text("name").to_owned(),
            image: text("image").to_owned(),
            ..Bundle::default()
        };
        let own = match case["template"].as_str() {
            None => created(&wanted, text("operator"), &new).ok(),
            Some(template) => amended(template.as_bytes(), &wanted, text("operator"), &new),
        };
        let own = own.map(|own| olmkit_yaml::parse(own.as_bytes()).unwrap().to_json().unwrap());
        if own.as_ref() == Some(&case["expected"]) || (own.is_none() && case["expected"].is_null()) {
            equal += 1;
        } else {
            different.push(format!("{} {}: {own:?}", text("operator"), text("name")));
        }
    }
    eprintln!(
        "{equal} templates say the same, {} do not; refused: {refused:#?}",
        different.len()
    );
    let names: Vec<&String> = different.iter().take(5).collect();
    assert!(different.is_empty(), "{names:#?}");
}
