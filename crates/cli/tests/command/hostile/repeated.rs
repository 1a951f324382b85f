//! Names of a megabyte appear once in the input. Messages about it do not repeat them completely. No output is larger
//! than four times its input, in any format.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_support::demo_bundle;

use super::exhaust::{bounded, write};

/// A name of a megabyte. With spaces it is not one word.
fn long(with_blanks: bool) -> String {
    if with_blanks { "x y " } else { "xxxx" }.repeat(1 << 18)
}

/// Bytes of all files below a directory.
fn size(directory: &Path) -> usize {
    let files = walkdir::WalkDir::new(directory).into_iter().flatten();
    let bytes = files.filter_map(|entry| entry.metadata().ok().filter(fs::Metadata::is_file));
    bytes.map(|metadata| usize::try_from(metadata.len()).unwrap()).sum()
}

fn within_four_times(directory: &Path, arguments: &str) -> String {
    let said = bounded(directory, arguments);
    let input = size(directory);
    assert!(said.len() > 20, "{arguments}: {said}");
    assert!(said.len() < 4 * input, "{arguments}: {} bytes of {input}", said.len());
    said
}

fn blobs(directory: &Path, name: &str, blobs: &[Value]) {
    let text: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
    write(directory, &format!("{name}/catalog.json"), &text);
}

/// A channel of entries that each have something wrong, and bundles that each are wrong.
fn catalog(package: &str, channel: &str, entries: usize) -> Vec<Value> {
    let mut catalog = vec![json!({"schema": "olm.package", "name": package, "defaultChannel": "nosuch"})];
    let listed: Vec<Value> = (0..entries)
        .map(|at| json!({"name": format!("p.v{at}"), "skipRange": "no range", "replaces": format!("p.v{at}")}))
        .collect();
    catalog.push(json!({"schema": "olm.channel", "package": package, "name": channel, "entries": listed}));
    for at in 0..entries / 2 {
        let value = json!({"packageName": "other", "version": "no version"});
        let properties = json!([{"type": "olm.package", "value": value}]);
        catalog.push(
            json!({"schema": "olm.bundle", "package": package, "name": format!("p.v{at}"), "properties": properties}),
        );
    }
    catalog
}

#[test]
fn long_names_in_a_catalog() {
    for with_blanks in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let long = long(with_blanks);
        blobs(directory.path(), "channel", &catalog("p", &long, 200));
        for output in [
            "text", "json", "sarif", "github", "concise", "junit", "opm-json", "opm-yaml",
        ] {
            within_four_times(directory.path(), &format!("catalog validate channel -o {output}"));
        }
        within_four_times(directory.path(), "opm validate channel");
        blobs(
            directory.path(),
            "empty",
            &[json!({"schema": "olm.package", "name": "p", "defaultChannel": "c"})],
        );
        within_four_times(directory.path(), "catalog diff empty channel");
        let raised = "catalog validate channel -o json --limit quoted-text=1GiB,message=1GiB";
        let whole = bounded(directory.path(), raised);
        assert!(whole.contains(&long), "{}", whole.len());
    }
}

#[test]
fn long_names_of_a_valid_catalog() {
    let directory = tempfile::tempdir().unwrap();
    let long = long(false);
    let entries = 200;
    let bundle = |at: usize| {
        let value = json!({"packageName": "p", "version": format!("{at}.0.0")});
        json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{at}"), "image": "r.io/p",
            "properties": [{"type": "olm.package", "value": value}]})
    };
    let valid = |from: usize| {
        let listed: Vec<Value> = (from..entries + from)
            .map(|at| {
                let skips: Vec<String> = if at > from {
                    vec![format!("p.v{}", at - 1)]
                } else {
                    Vec::new()
                };
                json!({"name": format!("p.v{at}"), "skipRange": format!("<{at}.0.0"), "skips": skips})
            })
            .collect();
        let mut catalog = vec![
            json!({"schema": "olm.package", "name": "p", "defaultChannel": long}),
            json!({"schema": "olm.channel", "package": "p", "name": long, "entries": listed}),
        ];
        catalog.extend((from..entries + from).map(bundle));
        catalog
    };
    blobs(directory.path(), "one", &valid(0));
    blobs(directory.path(), "two", &valid(1));
    for arguments in [
        "catalog list channels one",
        "catalog list bundles one",
        "catalog diff one two",
        "catalog diff one two -o json",
        "catalog resolve --olmv1 p one",
        "catalog resolve --olmv1 p one --installed p.v7 -o json",
        "catalog path one --from p.v0",
        "catalog path one --from nosuch",
        "catalog path one --package nosuch --from p.v0",
        "catalog validate one",
    ] {
        within_four_times(directory.path(), arguments);
    }
}

#[test]
fn long_names_in_a_bundle() {
    let long = long(false);
    let directory = tempfile::tempdir().unwrap();
    // A kind that nothing serves, a name that no object may have, an image that is none, a key of many values.
    let object = |at: usize| format!("---\napiVersion: v1\nkind: Odd{at}\nmetadata: {{name: *long}}\n");
    let objects: String = (0..100).map(object).collect();
    demo_bundle::copy(directory.path(), "names", &[]);
    write(
        directory.path(),
        "names/manifests/odd.yaml",
        &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {long}}}\ndata: {{a: 1, b: 2}}\n"),
    );
    for at in 0..10 {
        write(
            directory.path(),
            &format!("names/manifests/{at}.yaml"),
            &objects.replace("*long", &long[..1 << 15]),
        );
    }
    demo_bundle::copy(
        directory.path(),
        "csv",
        &[(demo_bundle::CSV, "demo.v0.1.0", &long[..1 << 16])],
    );
    for bundle in ["names", "csv"] {
        for output in ["text", "json", "sarif", "github", "concise", "junit", "json-alpha1"] {
            within_four_times(directory.path(), &format!("bundle validate {bundle} -o {output}"));
        }
        within_four_times(
            directory.path(),
            &format!("bundle validate {bundle} --profile olmv1 -o json"),
        );
        within_four_times(directory.path(), &format!("bundle diff {bundle} names"));
        within_four_times(directory.path(), &format!("scorecard {bundle} --built-in -o findings"));
    }
}

/// Nested maps: the path of the innermost value is as long as all keys together, and each level can have a finding.
fn nested(levels: usize, key: &str, innermost: &str) -> String {
    let open: String = (0..levels)
        .map(|level| format!("{{\"wrong{level}\": null, \"{key}\": "))
        .collect();
    format!("{open}{innermost}{}", "}".repeat(levels))
}

/// Paths in an object that is not a CRD: deep, and with long keys.
#[test]
fn long_paths() {
    let directory = tempfile::tempdir().unwrap();
    for (name, levels, key) in [("deep", 90, "k".repeat(2_000)), ("long", 2, "k".repeat(1 << 20))] {
        let deep = nested(levels, &key, "[]");
        demo_bundle::copy(
            directory.path(),
            name,
            &[(
                demo_bundle::CSV,
                "  provider:\n",
                &format!("  relatedImages: {deep}\n  unknown: {deep}\n  provider:\n"),
            )],
        );
        let object = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: odd}}\nspec: {deep}\n");
        write(directory.path(), &format!("{name}/manifests/service.yaml"), &object);
        let properties = json!({"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "r.io/p", "properties": [
            {"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}},
            {"type": "olm.gvk", "value": serde_json::from_str::<Value>(&deep).unwrap()},
            {"type": "olm.csv.metadata", "value": serde_json::from_str::<Value>(&deep).unwrap()},
        ]});
        let channel =
            json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": [{"name": "p.v1"}], "other": 1});
        let package = json!({"schema": "olm.package", "name": "p", "defaultChannel": "c"});
        blobs(
            directory.path(),
            &format!("catalog-{name}"),
            &[package, channel, properties],
        );
        write(
            directory.path(),
            &format!("operators/{name}/0.0.1/manifests/a.clusterserviceversion.yaml"),
            &format!("metadata: {{name: a.v0.0.1}}\nspec: {{version: 0.0.1, install: {deep}}}\n"),
        );
        write(
            directory.path(),
            &format!("operators/{name}/0.0.1/metadata/annotations.yaml"),
            &format!("annotations: {deep}\n"),
        );
        write(
            directory.path(),
            &format!("operators/{name}/ci.yaml"),
            &format!("updateGraph: {deep}\nfbc: {deep}\n"),
        );
        for output in ["text", "json", "sarif", "github", "concise", "junit"] {
            within_four_times(directory.path(), &format!("bundle validate {name} -o {output}"));
            within_four_times(
                directory.path(),
                &format!("catalog validate catalog-{name} -o {output}"),
            );
            within_four_times(directory.path(), &format!("repo check --operator {name} -o {output}"));
        }
        within_four_times(directory.path(), &format!("bundle validate {name} --profile olmv1"));
        within_four_times(directory.path(), &format!("bundle render --olmv1 {name} -n demo"));
        within_four_times(directory.path(), &format!("bundle diff {name} {name}"));
        within_four_times(directory.path(), &format!("catalog list bundles catalog-{name}"));
        within_four_times(
            directory.path(),
            &format!("generate bundle --input-dir {name} --package demo --version 0.1.0 --stdout"),
        );
    }
}

/// The path of each invalid item of an example begins with sixty keys of YAML's maximum length.
#[test]
fn long_paths_in_examples() {
    let directory = tempfile::tempdir().unwrap();
    let (mut value, mut schema) = (
        json!(vec![1; 300]),
        json!({"type": "array", "items": {"type": "string"}}),
    );
    for _ in 0..60 {
        value = json!({"k".repeat(1_000): value});
        schema = json!({"type": "object", "additionalProperties": schema});
    }
    let example = json!([{"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
        "spec": {"size": 1, "maps": value}}]);
    let before = r#"'[{"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}]'"#;
    let size = "              size:\n                type: integer\n";
    demo_bundle::copy(
        directory.path(),
        "bundle",
        &[
            (demo_bundle::CSV, before, &format!("'{example}'")),
            (demo_bundle::CRD, size, &format!("{size}              maps: {schema}\n")),
        ],
    );
    for output in ["text", "json", "sarif", "github", "concise", "junit", "json-alpha1"] {
        let said = within_four_times(directory.path(), &format!("bundle validate bundle -o {output}"));
        assert!(
            output == "json-alpha1" || said.contains("bytes left out"),
            "{output}: {said:.2000}"
        );
    }
    within_four_times(directory.path(), "scorecard bundle --built-in -o findings");
}

/// A long list of short names is not shortened.
#[test]
fn lists_of_short_names_stay_whole() {
    let directory = tempfile::tempdir().unwrap();
    let skips: Vec<String> = (0..200).map(|minor| format!("cache-operator.v0.{minor}.0")).collect();
    let entries = json!([{"name": "p.v1", "skips": skips}]);
    let value = json!({"packageName": "p", "version": "1.0.0"});
    let catalog = [
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "c"}),
        json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": entries}),
        json!({"schema": "olm.bundle", "package": "p", "name": "p.v1", "image": "r.io/p",
            "properties": [{"type": "olm.package", "value": value}]}),
    ];
    blobs(directory.path(), "catalog", &catalog);
    let said = bounded(directory.path(), "catalog list bundles catalog");
    assert!(said.contains(&skips.join(",")), "{said}");
}
