//! `catalog validate --crd-safety` over a package in which most upgrades have the same countless changes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::exhaust::{bounded_in, write};

const VERSIONS: usize = 40;
const PROPERTIES: usize = 1_000;

/// A CRD of which every second version has the same properties. The description makes each version different.
fn definition(version: usize) -> Value {
    let name = |number| format!("p{}x{number}", version % 2);
    let properties: serde_json::Map<String, Value> = (0..PROPERTIES)
        .map(|number| (name(number), json!({"type": "string"})))
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "versions": [{
            "name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "description": format!("Version {version}."), "properties": properties}},
        }]},
    })
}

#[test]
fn changes_that_upgrades_share_are_reported_once_and_take_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let name = |version| format!("p.v1.0.{version}");
    let entries: Vec<Value> = (0..VERSIONS)
        .map(|version| json!({"name": name(version), "skips": (0..version).map(name).collect::<Vec<_>>()}))
        .collect();
    let mut blobs = vec![
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "c"}),
        json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": entries}),
    ];
    blobs.extend((0..VERSIONS).map(|version| {
        let data = STANDARD.encode(definition(version).to_string());
        json!({"schema": "olm.bundle", "package": "p", "name": name(version), "image": format!("r.io/p:{version}"), "properties": [
            {"type": "olm.package", "value": {"packageName": "p", "version": format!("1.0.{version}")}},
            {"type": "olm.bundle.object", "value": {"data": data}},
        ]})
    }));
    let catalog: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
    write(directory.path(), "catalog/catalog.json", &catalog);

    let said = bounded_in(512 << 10, directory.path(), "catalog validate catalog --crd-safety");
    assert!(said.contains("compared along 780 of 780 upgrades"), "{said:.300}");
    // An upgrade between two versions of the other kind removes one list of properties and adds another one.
    for (list, upgrades) in [(0, 210), (1, 190)] {
        let removed = format!("removed field : v1.^.p{list}x");
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(&removed)).collect();
        assert_eq!(lines.len(), PROPERTIES);
        let counted = format!("({upgrades} upgrades in p, first ");
        assert!(lines.iter().all(|line| line.contains(&counted)), "{}", lines[0]);
    }
}
