//! Catalogs made, checked, compared and turned into templates.

use super::{Desk, NEW, OLD, SOURCE, TEMPLATE, copy};

#[test]
fn a_catalog_is_made_checked_and_looked_at() {
    let desk = Desk::with_catalog();
    let findings = desk.run(&["catalog", "validate", "catalog"]).ok();
    assert!(findings.contains("info[catalog-image-by-tag]"), "{findings}");
    assert!(findings.contains(&format!("--> {SOURCE}:")), "{findings}");
    assert_eq!(
        desk.run(&["catalog", "validate", "-q", "catalog"]).ok().lines().count(),
        0
    );
    let verdict = desk.run(&["catalog", "validate", "catalog", "-o", "opm-json"]).ok();
    assert_eq!(verdict.split_whitespace().collect::<String>(), "{\"passed\":true}");

    let report: serde_json::Value =
        serde_json::from_str(&desk.run(&["catalog", "validate", "catalog", "-o", "json"]).ok()).unwrap();
    assert_eq!(
        (&report["passed"], &report["errors"]),
        (&true.into(), &0.into()),
        "{report}"
    );
    let quiet = desk.run(&["catalog", "validate", "catalog", "-q", "-o", "json"]).ok();
    assert!(quiet.contains("\"findings\": []"), "{quiet}");
    let sarif = desk.run(&["catalog", "validate", "catalog", "-o", "sarif"]).ok();
    assert!(sarif.contains("catalog-image-by-tag"), "{sarif}");
    desk.run(&[
        "image",
        "build",
        "catalog",
        "catalog",
        "--binary",
        "server",
        "--tag",
        "c:v1",
        "--output",
        "oci:layout",
    ])
    .ok();
    let image = desk.run(&["catalog", "validate", "oci:layout"]).ok();
    assert!(image.contains("--> memcached-operator/catalog.yaml:"), "{image}");

    let bundles = desk.run(&["catalog", "list", "bundles", "catalog"]).ok();
    let rows: Vec<Vec<&str>> = bundles.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[2][..4], ["memcached-operator", "alpha", NEW, OLD]);
    let channels = desk.run(&["catalog", "list", "channels", "catalog"]).ok();
    assert!(channels.lines().nth(1).unwrap().ends_with(NEW), "{channels}");
    assert!(
        desk.run(&["catalog", "list", "packages", "catalog"])
            .ok()
            .contains("memcached-operator")
    );

    let steps = desk.run(&["catalog", "path", "catalog", "--from", OLD]).ok();
    let question = "Subscription to memcached-operator, channel alpha (default):";
    assert_eq!(steps, format!("{question}\n{OLD} -> {NEW} (replaces)\n"));
    desk.run(&["catalog", "path", "catalog", "--from", "9.9"])
        .refused("cannot find \"9.9\": no bundle or channel entry of the package has or names it");
    let images = desk.run(&["catalog", "images", "catalog"]).ok();
    assert!(
        images
            .lines()
            .any(|image| image == "quay.io/example/memcached-operator-bundle:v0.0.1"),
        "{images}"
    );
    assert!(
        images
            .lines()
            .any(|image| image.starts_with("docker.io/library/memcached:")),
        "{images}"
    );
}

#[test]
fn invalid_additions_are_refused_and_change_nothing() {
    let desk = Desk::with_catalog();
    let before = desk.text(SOURCE);
    desk.run(&["catalog", "add", "new", "--channel", "alpha"])
        .refused("already exists in the catalog");
    desk.run(&["catalog", "add", "nowhere", "--channel", "alpha"])
        .refused("no such file or directory: nowhere");
    let other = desk.run(&["catalog", "deprecate", "other", "-m", "x"]);
    assert!(!other.err.contains("init"), "{}", other.err);
    other.refused("catalog has no package other; it has memcached-operator");
    desk.run(&["catalog", "deprecate", "other", "-m", "x", "--in", SOURCE])
        .refused("has no package other; it has memcached-operator");
    let nowhere = desk.run(&["catalog", "deprecate", "other", "-m", "x", "--in", "nowhere"]);
    assert!(!nowhere.err.contains("init"), "{}", nowhere.err);
    nowhere.refused("no catalog at nowhere");
    desk.run(&[
        "catalog",
        "deprecate",
        "memcached-operator",
        "-m",
        "x",
        "--channel",
        "none",
    ])
    .refused("none");
    desk.run(&["catalog", "validate", "nowhere"]).refused("nowhere");
    let list = |what| ["catalog", "list", what, "catalog", "nosuch"];
    desk.run(&list("bundles")).refused("package \"nosuch\" not found");
    desk.run(&list("channels")).refused("package \"nosuch\" not found");
    // A difference ends with 1.
    let unread = desk.run(&["catalog", "diff", "catalog", "nowhere"]);
    assert_eq!((unread.code, unread.out.as_str()), (2, ""), "{}", unread.err);
    assert!(
        unread.err.contains("no such file or directory: nowhere"),
        "{}",
        unread.err
    );
    desk.run(&["catalog", "render", "nowhere"])
        .refused("no such file or directory: nowhere");
    assert_eq!(desk.text(SOURCE), before);
}

#[test]
fn two_catalogs_are_compared_and_deprecations_are_shown() {
    let desk = Desk::with_catalog();
    copy(&desk.path("catalog"), &desk.path("before"));
    assert_eq!(desk.run(&["catalog", "diff", "before", "catalog"]).ok(), "");
    desk.run(&[
        "catalog",
        "deprecate",
        "memcached-operator",
        "-m",
        "use v0.1: it is better",
        "--bundle",
        OLD,
    ])
    .ok();
    assert!(
        desk.text(SOURCE)
            .starts_with(&desk.text("before/memcached-operator/catalog.yaml"))
    );
    let diff = desk.run(&["catalog", "diff", "before", "catalog"]);
    assert_eq!(diff.code, 1);
    assert_eq!(
        diff.out,
        format!("~ memcached-operator\n    deprecated bundle {OLD}: use v0.1: it is better\n")
    );
    let json = desk.run(&["catalog", "diff", "before", "catalog", "-o", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["deprecations"][0]["message"], "use v0.1: it is better");
    let full = desk.run(&["catalog", "diff", "before", "catalog", "-o", "full"]).out;
    assert_eq!(full, format!("+ memcached-operator: deprecation of bundle {OLD}\n"));
    let unknown = desk.run(&["catalog", "diff", "before", "catalog", "-p", "memcached"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""), "{}", unknown.err);
    assert!(
        unknown.err.contains("no package memcached; it has memcached-operator"),
        "{}",
        unknown.err
    );
    std::fs::create_dir_all(desk.path("catalog/other")).unwrap();
    let other = desk
        .run(&["catalog", "init", "other", "-c", "stable", "-o", "yaml"])
        .ok();
    std::fs::write(desk.path("catalog/other/catalog.yaml"), other).unwrap();
    let (both, one) = (
        desk.run(&["catalog", "diff", "before", "catalog"]).out,
        desk.run(&["catalog", "diff", "before", "catalog", "-p", "memcached-operator"])
            .out,
    );
    assert_eq!(one, diff.out);
    assert!(both.starts_with(&one) && both.contains("+ other"), "{both}");
    let other = desk
        .run(&["catalog", "diff", "before", "catalog", "-p", "other", "-o", "full"])
        .out;
    assert!(other.contains("+ other") && !other.contains("memcached"), "{other}");
    std::fs::remove_dir_all(desk.path("catalog/other")).unwrap();
    assert!(
        desk.run(&["catalog", "graph", "catalog"])
            .ok()
            .starts_with("graph LR\n")
    );
    let dot = desk.run(&["catalog", "graph", "catalog", "-o", "dot"]).ok();
    assert!(
        dot.contains(&format!("label=\"{OLD}\", style=filled, fillcolor=\"orange\"")),
        "{dot}"
    );
    let svg = desk.run(&["catalog", "graph", "catalog", "-o", "svg"]).ok();
    assert!(
        svg.starts_with("<?xml") && svg.contains(NEW) && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
}

#[test]
fn a_catalog_is_written_anew_and_turned_into_a_template_and_back() {
    let desk = Desk::with_catalog();
    desk.run(&["catalog", "migrate", "catalog", "anew", "-o", "yaml"]).ok();
    assert_eq!(desk.run(&["catalog", "diff", "catalog", "anew"]).ok(), "");
    let again = desk.run(&["catalog", "migrate", "catalog", "anew"]);
    assert_eq!(again.err.matches("must be empty").count(), 1, "{}", again.err);
    let template = desk
        .run(&["catalog", "template", "convert", "basic", SOURCE, "-o", "yaml"])
        .ok();
    // Bundle references may be directories.
    let local = template
        .replace(
            "image: quay.io/example/memcached-operator-bundle:v0.0.1",
            "image: ./old",
        )
        .replace(
            "image: quay.io/example/memcached-operator-bundle:v0.1.0",
            "image: ./new",
        );
    std::fs::write(desk.path("template.yaml"), local).unwrap();
    let rendered = desk
        .run(&["catalog", "template", "render", "template.yaml", "-o", "yaml"])
        .ok();
    assert_eq!(rendered.matches("schema: olm.bundle\n").count(), 2, "{rendered}");
    desk.run(&["catalog", "dockerfile", "catalog"]).ok();
    assert!(desk.text("catalog.Dockerfile").contains("index.configs.v1=/configs"));
    desk.run(&["catalog", "dockerfile", "catalog"])
        .refused("never overwritten");
}

#[test]
fn the_file_of_a_package_is_found_whatever_its_name() {
    let desk = Desk::with_catalog();
    std::fs::create_dir_all(desk.path("flat/parts")).unwrap();
    std::fs::rename(desk.path(SOURCE), desk.path("flat/parts/all.yaml")).unwrap();
    std::fs::write(desk.path("flat/broken.yaml"), "schema: [\n").unwrap();
    let deprecate = [
        "catalog",
        "deprecate",
        "memcached-operator",
        "-m",
        "gone",
        "--in",
        "flat",
    ];
    desk.run(&deprecate).ok();
    assert!(
        desk.text("flat/parts/all.yaml")
            .ends_with("package: memcached-operator\nschema: olm.deprecations\n")
    );
    // Two files: an entry or a blob could be duplicated.
    std::fs::write(
        desk.path("flat/more.yaml"),
        "schema: olm.channel\npackage: memcached-operator\nname: beta\nentries: []\n",
    )
    .unwrap();
    let before = desk.text("flat/parts/all.yaml");
    desk.run(&deprecate)
        .refused("is spread over flat/more.yaml, flat/parts/all.yaml");
    assert_eq!(desk.text("flat/parts/all.yaml"), before);
    desk.run(&["catalog", "add", "new", "--channel", "alpha", "--to", "nowhere"])
        .refused("no catalog at nowhere");
}

#[test]
fn pictures_show_ranges_and_what_the_channel_lacks() {
    let desk = Desk::with_catalog();
    let source = desk.text(SOURCE);
    let changed = source.replace(
        &format!("  replaces: {OLD}\n"),
        &format!("  replaces: {OLD}\n  skipRange: '<0.1.0'\n  skips:\n  - memcached-operator.v0.0.9\n"),
    );
    assert_ne!(changed, source);
    std::fs::write(desk.path(SOURCE), changed).unwrap();
    let dot = desk.run(&["catalog", "graph", "catalog", "-o", "dot"]).ok();
    assert!(dot.contains(&format!("label=\"{NEW}\\n<0.1.0\"")), "{dot}");
    assert!(
        dot.contains("label=\"memcached-operator.v0.0.9\\n(not in the channel)\", style=dashed"),
        "{dot}"
    );
    let svg = desk.run(&["catalog", "graph", "catalog", "-o", "svg"]).ok();
    for text in [">&lt;0.1.0<", ">(not in the channel)<", ">memcached-operator.v0.0.9<"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}

#[test]
fn versions_name_bundles_of_the_path() {
    let desk = Desk::with_catalog();
    let steps = desk
        .run(&["catalog", "path", "catalog", "--from", "0.0.1", "--to", "v0.1.0"])
        .ok();
    assert!(steps.ends_with(&format!(":\n{OLD} -> {NEW} (replaces)\n")), "{steps}");
    desk.run(&["catalog", "path", "catalog", "--from", "0.0.1", "-c", "beta"])
        .refused("has no channel \"beta\"; it has: alpha");
}

#[test]
fn errors_stand_where_they_come_from() {
    let desk = Desk::with_catalog();
    let source = desk.text(SOURCE);
    let line = source.lines().count() + 5;
    let deprecation = "---\nschema: olm.deprecations\npackage: memcached-operator\nentries:\n- reference:\n    \
                       schema: olm.package\n  message: ''\n";
    std::fs::write(desk.path(SOURCE), format!("{source}{deprecation}")).unwrap();
    let findings = desk.run(&["catalog", "validate", "catalog"]);
    assert_eq!(findings.code, 1);
    let words: Vec<&str> = findings.out.split_whitespace().collect();
    let place = format!("invalid deprecation: message must be set --> {SOURCE}:{line}:");
    assert!(words.join(" ").contains(&place), "{}", findings.out);
    std::fs::write(desk.path(SOURCE), "Schema: 1.5\nname: p\n").unwrap();
    let wanted = "expected value for key \"Schema\" to be a string, got %!t(float64=1.5): 1.5";
    desk.run(&["opm", "validate", "catalog"]).refused(wanted);
}

#[test]
fn an_addition_leaves_a_catalog_that_olm_takes() {
    let desk = Desk::with_catalog();
    copy(&desk.path("new"), &desk.path("newer"));
    let csv = "newer/manifests/memcached-operator.clusterserviceversion.yaml";
    let text = desk.text(csv).replace("0.1.0", "0.2.0");
    std::fs::write(desk.path(csv), text).unwrap();
    let before = desk.text(SOURCE);
    let add = |more: &[&str]| {
        let first = ["catalog", "add", "newer", "--image-ref-template", TEMPLATE];
        desk.run(&[&first[..], more].concat())
    };
    add(&["--channel", "alhpa"])
        .refused("package memcached-operator has no channel alhpa, only alpha; --create-channel creates it");
    add(&["--channel", "alpha", "--replaces", "memcached-operator.v0.0.9"])
        .refused("the channel has no entry memcached-operator.v0.0.9; use --replaces memcached-operator.v0.1.0");
    add(&["--channel", "alpha", "--replaces", OLD]).refused("would have two heads");
    add(&["--channel", "alpha", "--skip-range", "none"])
        .refused("cannot add memcached-operator.v0.2.0: the catalog would be invalid: invalid skipRange \"none\"");
    let both = add(&["--channel", "alpha", "--semver", "--skips", OLD]);
    assert_eq!(both.code, 2, "{}", both.err);
    // A second bundle with the version of the first, and an image reference that does not exist.
    let renamed = desk
        .text(csv)
        .replace("memcached-operator.v0.2.0", "memcached-operator.hotfix")
        .replace("version: 0.2.0", "version: 0.1.0");
    let original = desk.text(csv);
    std::fs::write(desk.path(csv), renamed).unwrap();
    add(&["--channel", "alpha"]).refused("duplicate versions found in bundles");
    std::fs::write(desk.path(csv), original.replace("version: 0.2.0", "version: 0.2.0+1")).unwrap();
    add(&["--channel", "alpha"]).refused("invalid image pull spec");
    std::fs::write(desk.path(csv), original).unwrap();
    assert_eq!(desk.text(SOURCE), before);
    desk.run(&["catalog", "deprecate", "memcached-operator", "-m", ""])
        .refused("cannot deprecate memcached-operator: the catalog would be invalid: invalid deprecation: message must be set");
    assert_eq!(desk.text(SOURCE), before);
    // Line ends are kept.
    std::fs::write(desk.path(SOURCE), before.replace('\n', "\r\n")).unwrap();
    add(&["--channel", "alpha"]).ok();
    desk.run(&["catalog", "deprecate", "memcached-operator", "-m", "x", "--bundle", OLD])
        .ok();
    let text = desk.text(SOURCE);
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    desk.run(&["catalog", "validate", "catalog"]).ok();
    std::fs::write(desk.path(SOURCE), &before).unwrap();
    // An entry that bypasses the head must skip it.
    add(&[
        "--channel",
        "alpha,beta,alpha",
        "--create-channel",
        "--replaces",
        OLD,
        "--skips",
        NEW,
    ])
    .ok();
    desk.run(&["catalog", "validate", "catalog"]).ok();
    let channels = desk.run(&["catalog", "list", "channels", "catalog"]).ok();
    assert_eq!(channels.matches("memcached-operator.v0.2.0").count(), 2, "{channels}");
}

/// A channel entry has its own edges. The user learns which edges of the ClusterServiceVersion are not among them.
#[test]
fn edges_of_the_csv_that_the_channel_lacks_are_noted() {
    let desk = Desk::with_catalog();
    copy(&desk.path("new"), &desk.path("newer"));
    let csv = "newer/manifests/memcached-operator.clusterserviceversion.yaml";
    let text = desk.text(csv).replace("0.1.0", "0.2.0");
    let edges = "  skips:\n  - memcached-operator.v0.1.1\n  - memcached-operator.v0.1.2\n";
    let text = text.replacen("spec:\n", &format!("spec:\n{edges}"), 1);
    let text = text.replacen(
        "  annotations:\n",
        "  annotations:\n    olm.skipRange: '>=0.0.1 <0.2.0'\n",
        1,
    );
    std::fs::write(desk.path(csv), text).unwrap();
    let before = desk.text(SOURCE);
    let add = |more: &[&str]| {
        std::fs::write(desk.path(SOURCE), &before).unwrap();
        let first = [
            "catalog",
            "add",
            "newer",
            "--channel",
            "alpha",
            "--image-ref-template",
            TEMPLATE,
        ];
        let said = desk.run(&[&first[..], more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.err
    };
    let skips = "--skips memcached-operator.v0.1.1,memcached-operator.v0.1.2";
    for flags in [&[][..], &["--migrate-level=bundle-object-to-csv-metadata"]] {
        let said = add(flags);
        assert!(
            said.contains(skips) && said.contains("--skip-range '>=0.0.1 <0.2.0'"),
            "{said}"
        );
    }
    let said = add(&[
        "--skips=memcached-operator.v0.1.1",
        "--skip-range=<0.2.0",
        "--replaces=memcached-operator.v0.1.0",
    ]);
    assert!(!said.contains("not used"), "{said}");
    // Edges that are computed from versions have nothing to do with those of the ClusterServiceVersion.
    assert!(!add(&["--semver"]).contains("not used"));
}

#[test]
fn crds_are_compared_along_the_edges() {
    let desk = Desk::with_catalog();
    let validate =
        |more: &[&str]| desk.run(&[&["catalog", "validate", "-q", "catalog", "--crd-safety"], more].concat());
    let nothing = validate(&[]);
    assert!(
        nothing.err.contains("CRDs compared along 0 of 1 upgrades"),
        "{}",
        nothing.err
    );
    let missing = format!(
        "not compared: 1 upgrade of 1 package; name the directories of their bundles with --bundles\n    \
         memcached-operator: 1 upgrade: the catalog has {OLD} without its CRDs\n"
    );
    assert!(nothing.err.contains(&missing), "{}", nothing.err);
    nothing.ok();

    std::fs::create_dir(desk.path("bundles")).unwrap();
    copy(&desk.path("old"), &desk.path("bundles/old"));
    copy(&desk.path("new"), &desk.path("bundles/new"));
    let definition = desk.path("bundles/new/manifests/cache.example.com_memcacheds.yaml");
    let text = std::fs::read_to_string(&definition).unwrap();
    std::fs::write(&definition, text.replace("scope: Namespaced", "scope: Cluster")).unwrap();
    let blocked = validate(&["--bundles", "bundles"]);
    assert!(
        blocked.err.contains("CRDs compared along 1 of 1 upgrades"),
        "{}",
        blocked.err
    );
    // The new bundle also adds CEL rules, which OLM v1 reports. Findings are short lines then.
    let expected = format!(
        "bundles/new/manifests/cache.example.com_memcacheds.yaml:15:10: error[V1-13] scope: scope changed : \"Namespaced\" -> \
         \"Cluster\" (upgrade from {OLD} to {NEW})"
    );
    assert!(blocked.out.contains(&expected), "{}", blocked.out);
    assert!(
        blocked.out.contains("error[V1-13] v1alpha1: ^.spec.size: unhandled"),
        "{}",
        blocked.out
    );
    assert_eq!(blocked.code, 1);
    let report = validate(&["--bundles", "bundles", "-o", "json"]).out;
    assert!(report.contains("\"rule\": \"V1-13\""), "{report}");
    validate(&["--bundles", "catalog"]).refused("no bundle below catalog");
    validate(&["-o", "opm-json"]).refused("opm has no --crd-safety");
}

/// A file-based catalog of small bundles.
fn small_catalog(desk: &Desk, text: &str) {
    std::fs::create_dir_all(desk.path("small")).unwrap();
    std::fs::write(desk.path("small/catalog.yaml"), text).unwrap();
}

fn small_bundle(version: &str, more: &str) -> String {
    format!(
        "---\nschema: olm.bundle\npackage: shop\nname: shop.v{version}\nimage: r.example.com/shop:v{version}\nproperties:\n\
         - type: olm.package\n  value: {{packageName: shop, version: {version}}}\n{more}"
    )
}

#[test]
fn an_older_bundle_goes_below_the_head_and_a_downgrade_is_named() {
    let desk = Desk::new();
    copy(&desk.path("new"), &desk.path("patch"));
    let csv = "patch/manifests/memcached-operator.clusterserviceversion.yaml";
    let text = desk.text(csv).replace("0.1.0", "1.1.1");
    std::fs::write(desk.path(csv), text).unwrap();
    let bundles: String = ["1.0.0", "1.1.0", "2.0.0"]
        .map(|version| small_bundle(version, "").replace("shop", "memcached-operator"))
        .concat();
    let source = |stable: &str| {
        format!(
            "schema: olm.package\nname: memcached-operator\ndefaultChannel: stable\n---\nschema: olm.channel\n\
             package: memcached-operator\nname: stable\nentries:\n- name: memcached-operator.v1.0.0\n\
             - name: memcached-operator.v1.1.0\n  replaces: memcached-operator.v1.0.0\n\
             - name: memcached-operator.v2.0.0\n{stable}{bundles}"
        )
    };
    let add = |more: &[&str]| {
        let first = ["catalog", "add", "patch", "--to", "small", "--channel", "stable"];
        let template = ["--image-ref-template", TEMPLATE];
        desk.run(&[&first[..], &template, more].concat())
    };
    let heads = || desk.run(&["catalog", "list", "channels", "small"]).ok();

    for more in [&[][..], &["--semver"], &["--replaces", "memcached-operator.v1.1.0"]] {
        small_catalog(&desk, &source("  replaces: memcached-operator.v1.1.0 # reviewed\n"));
        let said = add(more);
        assert!(
            said.err
                .contains("channel stable: memcached-operator.v2.0.0 now replaces memcached-operator.v1.1.1"),
            "{}",
            said.err
        );
        said.ok();
        assert!(heads().contains("memcached-operator.v2.0.0"), "{}", heads());
        let text = desk.text("small/catalog.yaml");
        assert!(
            text.contains("  replaces: memcached-operator.v1.1.1 # reviewed\n"),
            "{text}"
        );
        desk.run(&[
            "catalog",
            "validate",
            "small",
            "--fail-on",
            "warning",
            "--ignore",
            "catalog-no-metadata",
        ])
        .ok();
    }

    let skipping = source("  replaces: memcached-operator.v1.0.0\n  skips: [memcached-operator.v1.1.0]\n");
    small_catalog(&desk, &skipping);
    add(&[]).refused("add it to `skips` of memcached-operator.v2.0.0 and repeat the command");
    assert_eq!(desk.text("small/catalog.yaml"), skipping);
    // The advice works.
    small_catalog(
        &desk,
        &skipping.replace(
            "[memcached-operator.v1.1.0]",
            "[memcached-operator.v1.1.0, memcached-operator.v1.1.1]",
        ),
    );
    add(&[]).ok();
    desk.run(&["catalog", "validate", "small"]).ok();

    small_catalog(&desk, &source("  replaces: memcached-operator.v1.1.0\n"));
    let lowered = add(&["--replaces", "memcached-operator.v2.0.0"]);
    assert!(
        lowered.err.contains(
            "warning: memcached-operator.v1.1.1 becomes the head of channel stable although memcached-operator.v2.0.0 is newer"
        ),
        "{}",
        lowered.err
    );
    lowered.ok();
}

#[test]
fn unknown_packages_and_channels_are_errors() {
    let desk = Desk::with_catalog();
    let wanted = "the catalog has no package memcached; it has memcached-operator";
    desk.run(&["catalog", "images", "catalog", "-p", "memcached"])
        .refused(wanted);
    for form in ["mermaid", "dot", "svg"] {
        desk.run(&["catalog", "graph", "catalog", "-p", "memcached", "-o", form])
            .refused(wanted);
    }
    desk.run(&["catalog", "graph", "catalog", "-p", "memcached-operator", "-c", "beta"])
        .refused("package memcached-operator has no channel beta");
    // opm draws an empty graph.
    let drawn = desk
        .run(&["opm", "alpha", "render-graph", "catalog", "-p", "memcached"])
        .ok();
    assert!(!drawn.contains(OLD), "{drawn}");
}

const CHANNEL: &str = "schema: olm.package\nname: shop\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: shop\n\
                       name: stable\nentries:\n- name: shop.v1.0.0\n";

#[test]
fn equal_findings_are_a_group_and_the_last_line_counts_them() {
    let desk = Desk::new();
    let versions: Vec<String> = (0..50).map(|minor| format!("1.{minor}.0")).collect();
    let entries: String = versions
        .windows(2)
        .map(|pair| format!("- name: shop.v{}\n  replaces: shop.v{}\n", pair[1], pair[0]))
        .collect();
    let bundles: String = versions.iter().map(|version| small_bundle(version, "")).collect();
    small_catalog(&desk, &format!("{CHANNEL}{entries}{bundles}"));
    let text = desk.run(&["catalog", "validate", "small"]).ok();
    assert!(text.contains("warning[catalog-no-metadata]: "), "{text}");
    assert!(text.contains("  50 findings in 1 file\n"), "{text}");
    assert!(
        text.ends_with("small: 0 errors, 50 warnings, 50 infos; -o full or concise prints each finding\n"),
        "{text}"
    );
    assert!(text.lines().count() < 30, "{text}");
    let full = desk.run(&["catalog", "validate", "small", "-o", "full"]).ok();
    assert_eq!(full.matches("warning[catalog-no-metadata]").count(), 50, "{full}");
    let concise = desk.run(&["catalog", "validate", "small", "-o", "concise"]).ok();
    let mut lines = concise.lines();
    assert!(
        lines.any(|line| line.contains(": warning[catalog-no-metadata] bundle shop.v1.0.0 ")),
        "{concise}"
    );
    assert!(!concise.contains("errors"), "{concise}");
}

#[test]
fn findings_on_edges_name_their_channel() {
    let desk = Desk::new();
    let beta = "---\nschema: olm.channel\npackage: shop\nname: beta\nentries:\n- name: shop.v1.1.0\n\
                - name: shop.v1.0.0\n  replaces: shop.v1.1.0\n";
    let stable = "- name: shop.v1.1.0\n  replaces: shop.v1.0.0\n  skipRange: '<2.0.0'\n";
    let bundles = small_bundle("1.0.0", "") + &small_bundle("1.1.0", "");
    small_catalog(&desk, &format!("{CHANNEL}{stable}{beta}{bundles}"));
    let concise = desk.run(&["catalog", "validate", "small", "-o", "concise"]).ok();
    assert!(
        concise
            .contains("warning[catalog-version-falls] channel beta: shop.v1.0.0 (1.0.0) replaces shop.v1.1.0 (1.1.0)"),
        "{concise}"
    );
    assert!(
        concise.contains("info[catalog-skip-range-reach] channel stable: the skipRange"),
        "{concise}"
    );
    let wrong = stable.replace("<2.0.0", "~2");
    small_catalog(&desk, &format!("{CHANNEL}{wrong}{bundles}"));
    let text = desk.run(&["catalog", "validate", "small"]).out;
    assert!(
        text.contains("in: shop/stable: shop.v1.1.0, entries[1].skipRange"),
        "{text}"
    );
}

#[test]
fn unknown_schemas_and_keys_and_empty_images_are_reported() {
    let desk = Desk::new();
    let bundle = small_bundle("1.0.0", "relatedImages:\n- name: proxy\n  image: ''\n- image: r.io/a\n");
    let entries = "- {name: shop.v1.1.0, replaces: shop.v1.0.0, skip: [shop.v1.0.0]}\n";
    let rest = "---\nschema: olm.chanel\npackage: shop\nname: beta\nentries: []\n---\nschema: olm.catalog.deprecation\npackage: shop\n\
                ---\nschema: example.com/custom\npackage: shop\nanything: 1\n";
    small_catalog(
        &desk,
        &format!("{CHANNEL}{entries}{bundle}{}{rest}", small_bundle("1.1.0", "")),
    );
    let concise = desk.run(&["catalog", "validate", "small", "-o", "concise"]).ok();
    let found: Vec<&str> = concise
        .lines()
        .filter(|line| line.contains("-unknown-") || line.contains("-related-image"))
        .collect();
    assert_eq!(
        found,
        [
            "small/catalog.yaml:10:52: warning[catalog-unknown-key] OLM ignores the key \"skip\": olm.channel has no such key at this \
             place",
            "small/catalog.yaml:20:3: warning[catalog-related-image] bundle shop.v1.0.0: no image for related image \"proxy\"",
            "small/catalog.yaml:32:9: warning[catalog-unknown-schema] OLM ignores the blob: it does not know the schema \"olm.chanel\"",
            "small/catalog.yaml:37:9: warning[catalog-unknown-schema] OLM ignores the blob: it does not know the schema \
             \"olm.catalog.deprecation\"",
        ],
        "{concise}"
    );
    let text = desk.run(&["catalog", "validate", "small"]).ok();
    assert!(
        text.contains("help: did you mean \"skips\"?") && text.contains("help: did you mean olm.channel?"),
        "{text}"
    );
}

#[test]
fn a_blob_without_a_schema_is_named_without_its_icon() {
    let desk = Desk::new();
    let icon = "iVBORw0KGgo".repeat(300);
    small_catalog(
        &desk,
        &format!("name: shop\nicon:\n  base64data: {icon}\n  mediatype: image/png\n"),
    );
    let said = desk.run(&["catalog", "validate", "small"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("is missing root schema field"), "{}", said.out);
    assert!(said.out.contains("help: add `schema`: olm.package"), "{}", said.out);
    assert!(said.out.len() < 1000, "{}", said.out);
    let rendered = desk.run(&["catalog", "render", "small"]);
    assert!(rendered.err.len() < 500, "{}", rendered.err);
}

#[test]
fn catalogs_for_older_openshift_keep_inline_manifests() {
    let desk = Desk::new();
    let inline = "- type: olm.bundle.object\n  value: {data: e30=}\n";
    for (directory, found) in [("catalogs/v4.16", 0), ("catalogs/v4.17", 1), ("catalogs/mine", 1)] {
        std::fs::create_dir_all(desk.path(directory)).unwrap();
        let path = format!("{directory}/catalog.yaml");
        std::fs::write(desk.path(&path), format!("{CHANNEL}{}", small_bundle("1.0.0", inline))).unwrap();
        let text = desk.run(&["catalog", "validate", directory]).ok();
        assert_eq!(text.matches("catalog-inline").count(), found, "{text}");
        let advice = "unless it is for OpenShift 4.12 to 4.16";
        assert_eq!(text.contains(advice), found == 1, "{text}");
    }
}
