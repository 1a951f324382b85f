//! Rules of catalogs: one small valid catalog, changed in one way at a time. Each change must break exactly the listed
//! rules.

use std::collections::BTreeSet;

use olmkit::catalog::validate::{self, Verdict};
use olmkit::rules::{self, Origin};

/// A part of the catalog, its replacement (if the part is empty, the replacement is appended), and the broken rules.
pub type Change = (&'static str, &'static str, &'static [&'static str]);

const CATALOG: &str = "\
schema: olm.package
name: demo
defaultChannel: stable
---
schema: olm.channel
package: demo
name: stable
entries:
- name: demo.v1.0.0
- name: demo.v1.1.0
  replaces: demo.v1.0.0
- name: demo.v1.2.0
  replaces: demo.v1.1.0
---
schema: olm.channel
package: demo
name: fast
entries:
- name: demo.v1.2.0
---
schema: olm.bundle
package: demo
name: demo.v1.0.0
image: quay.io/example/demo-bundle@sha256:0000000000000000000000000000000000000000000000000000000000000000
properties:
- type: olm.package
  value: {packageName: demo, version: 1.0.0}
- type: olm.csv.metadata
  value: {}
---
schema: olm.bundle
package: demo
name: demo.v1.1.0
image: quay.io/example/demo-bundle@sha256:1111111111111111111111111111111111111111111111111111111111111111
properties:
- type: olm.package
  value: {packageName: demo, version: 1.1.0}
- type: olm.csv.metadata
  value: {}
---
schema: olm.bundle
package: demo
name: demo.v1.2.0
image: quay.io/example/demo-bundle@sha256:2222222222222222222222222222222222222222222222222222222222222222
properties:
- type: olm.package
  value: {packageName: demo, version: 1.2.0}
- type: olm.csv.metadata
  value: {}
---
schema: olm.deprecations
package: demo
entries:
- reference: {schema: olm.bundle, name: demo.v1.0.0}
  message: use demo.v1.2.0
";

/// A base64-encoded ConfigMap.
const INLINE: &str = "\
- type: olm.bundle.object
  value: {data: eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiQ29uZmlnTWFwIiwibWV0YWRhdGEiOnsibmFtZSI6ImEifX0=}
- type: olm.csv.metadata";

const FIRST_IMAGE: &str = "@sha256:0000000000000000000000000000000000000000000000000000000000000000";

pub const CHANGES: &[Change] = &[
    ("schema: olm.package", "schema: [olm.package]", &["catalog-load"]),
    // The package has no channels either.
    (
        "",
        "---\nschema: olm.package\nname: Other_1\n",
        &["catalog-package-name", "catalog-default-channel", "catalog-no-channel"],
    ),
    (
        "",
        "---\nschema: olm.package\nname: demo\n",
        &["catalog-package-duplicate"],
    ),
    (
        "",
        "---\nschema: olm.channel\npackage: other\nname: stable\n",
        &["catalog-unknown-package"],
    ),
    (
        "",
        "---\nschema: olm.channel\npackage: demo\n",
        &["catalog-channel-name"],
    ),
    (
        "",
        "---\nschema: olm.channel\npackage: demo\nname: fast\n",
        &["catalog-channel-duplicate"],
    ),
    (
        "- name: demo.v1.0.0\n",
        "- name: demo.v1.0.0\n- name: demo.v1.0.0\n",
        &["catalog-entry-duplicate"],
    ),
    (
        "entries:\n- name: demo.v1.2.0\n",
        "entries:\n- name: demo.v1.2.0\n- name: demo.v1.3.0\n  replaces: demo.v1.2.0\n",
        &["catalog-entry-without-bundle"],
    ),
    (
        "",
        "---\nschema: olm.bundle\nname: demo.v1.3.0\n",
        &["catalog-bundle-package"],
    ),
    (
        "",
        "---\nschema: olm.bundle\npackage: demo\nname: demo.v1.2.0\n",
        &["catalog-bundle-duplicate"],
    ),
    (
        "- name: demo.v1.0.0\n- name: demo.v1.1.0\n",
        "- name: demo.v1.1.0\n",
        &["catalog-bundle-without-channel"],
    ),
    (
        "properties:\n",
        "properties:\n- type: olm.gvk\n  value: widgets\n",
        &["catalog-property"],
    ),
    ("packageName: demo", "packageName: other", &["catalog-package-property"]),
    ("image: quay.io", "image: https://quay.io", &["catalog-image"]),
    ("version: 1.0.0", "version: v1", &["catalog-version"]),
    (
        "olm.bundle, name: demo.v1.0.0",
        "olm.bundle, name: demo.v0.1.0",
        &["catalog-deprecation"],
    ),
    ("  message: use demo.v1.2.0\n", "", &["catalog-deprecation-message"]),
    ("defaultChannel: stable\n", "", &["catalog-default-channel"]),
    ("version: 1.1.0", "version: 1.0.0", &["catalog-version-duplicate"]),
    (
        "defaultChannel: stable",
        "defaultChannel: slow",
        &["catalog-channel-empty"],
    ),
    ("  replaces: demo.v1.1.0\n", "", &["catalog-head"]),
    (
        "- name: demo.v1.0.0\n",
        "- name: demo.v1.0.0\n  replaces: demo.v1.1.0\n",
        &["catalog-cycle", "catalog-version-falls"],
    ),
    ("replaces: demo.v1.1.0", "skips: [demo.v1.1.0]", &["catalog-stranded"]),
    // No bundle has an empty name either.
    (
        "",
        "---\nschema: olm.channel\npackage: demo\nname: slow\nentries:\n- replaces: demo.v0.9.0\n",
        &["catalog-entry-name", "catalog-entry-without-bundle"],
    ),
    (
        "  replaces: demo.v1.1.0\n",
        "  replaces: demo.v1.1.0\n  skips: ['']\n",
        &["catalog-skip-empty"],
    ),
    (
        "  replaces: demo.v1.0.0\n",
        "  replaces: demo.v1.0.0\n  skipRange: ~1.0\n",
        &["catalog-skip-range"],
    ),
    (
        "version: 1.1.0",
        "version: 1.1.0, release: '1'",
        &["catalog-release-name"],
    ),
    (
        "version: 1.1.0",
        "version: 1.1.0+b, release: '1'",
        &["catalog-release-name", "catalog-release-build"],
    ),
    // Without an image nothing installs it, OLM v1 least of all.
    (
        "image: quay.io/example/demo-bundle@sha256:0000000000000000000000000000000000000000000000000000000000000000\n",
        "",
        &["catalog-no-image", "catalog-inline"],
    ),
    ("- type: olm.csv.metadata\n  value: {}\n", "", &["catalog-no-metadata"]),
    ("- type: olm.csv.metadata", INLINE, &["catalog-inline"]),
    (FIRST_IMAGE, ":v1.0.0", &["catalog-image-by-tag"]),
    ("version: 1.0.0", "version: 1.5.0", &["catalog-version-falls"]),
    (
        "replaces: demo.v1.1.0",
        "replaces: demo.v1.1.0\n  skips: [demo.v1.0.0]",
        &["catalog-ignored-edge"],
    ),
    // demo.v1.1.0 is dropped, and with it the only edge from demo.v1.0.0.
    (
        "- name: demo.v1.1.0\n  replaces: demo.v1.0.0\n- name: demo.v1.2.0\n  replaces: demo.v1.1.0",
        "- name: demo.v1.1.0\n  skips: [demo.v1.0.0]\n- name: demo.v1.2.0\n  skips: [demo.v1.1.0]",
        &["catalog-no-upgrade"],
    ),
    (
        "  replaces: demo.v1.0.0\n",
        "  replaces: demo.v1.0.0\n  skipRange: '>1.1.0'\n",
        &["catalog-upgrade-cycle", "catalog-skip-range-reach"],
    ),
    (
        "  replaces: demo.v1.0.0\n",
        "  replaces: demo.v1.0.0\n  skipRange: '<=1.1.0'\n",
        &["catalog-skip-range-reach"],
    ),
    (
        "  replaces: demo.v1.1.0\n",
        "  replaces: demo.v1.1.0\n  skipRange: '<1.2.0'\n",
        &["catalog-entries-differ"],
    ),
    (
        "",
        "---\nschema: olm.chanel\npackage: demo\nname: slow\nentries: []\n",
        &["catalog-unknown-schema"],
    ),
    (
        "",
        "---\nschema: olm.catalog.deprecation\npackage: demo\n",
        &["catalog-unknown-schema"],
    ),
    (
        "",
        "---\nschema: example.com/lifecycle\npackage: demo\nanything: 1\n",
        &[],
    ),
    (
        "  replaces: demo.v1.1.0\n",
        "  replaces: demo.v1.1.0\n  skip: [demo.v1.1.0]\n",
        &["catalog-unknown-key"],
    ),
    (
        "  message: use demo.v1.2.0\n",
        "  message: use demo.v1.2.0\n  reason: old\n",
        &["catalog-unknown-key"],
    ),
    (
        "properties:\n",
        "relatedImages:\n- {name: proxy, image: ''}\nproperties:\n",
        &["catalog-related-image"],
    ),
    (
        "properties:\n",
        "relatedImages:\n- {name: '', image: quay.io/example/proxy:v1}\nproperties:\n",
        &[],
    ),
];

fn verdict(text: &str) -> Verdict {
    let folder = tempfile::tempdir().expect("temporary directory");
    std::fs::write(folder.path().join("catalog.yaml"), text).expect("catalog");
    validate::directory(folder.path())
}

fn ids(verdict: &Verdict) -> BTreeSet<&'static str> {
    verdict.problems.iter().map(|problem| problem.rule.id).collect()
}

#[test]
fn the_unchanged_catalog_has_no_findings() {
    let verdict = verdict(CATALOG);
    assert!(
        verdict.passed() && verdict.problems.is_empty(),
        "{:?}",
        verdict.problems
    );
}

#[test]
fn each_change_of_the_catalog_breaks_its_rules_and_no_others() {
    let mut wrong = Vec::new();
    for (from, to, expected) in CHANGES {
        assert!(CATALOG.contains(from), "the catalog has no {from:?}");
        let text = match *from {
            "" => format!("{CATALOG}{to}"),
            from => CATALOG.replacen(from, to, 1),
        };
        let verdict = verdict(&text);
        let broken = ids(&verdict);
        if broken != expected.iter().copied().collect() {
            wrong.push(format!("{from:?} -> {to:?}: {broken:?} instead of {expected:?}"));
        }
        let lint = |id: &&str| rules::find(id).is_some_and(|rule| rule.origin == Origin::Lint);
        if broken.iter().all(lint) != verdict.passed() {
            wrong.push(format!("{from:?} -> {to:?}: passed: {}", verdict.passed()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
