//! Catalogs made, checked, compared and turned into templates.

use super::{Desk, NEW, OLD, SOURCE, TEMPLATE, copy};

#[test]
fn a_catalog_is_made_checked_and_looked_at() {
    let desk = Desk::with_catalog();
    let findings = desk.run(&["catalog", "validate", "catalog"]).ok();
    assert!(findings.contains("note[catalog-image-by-tag]"), "{findings}");
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
    desk.run(&["catalog", "deprecate", "other", "-m", "x"])
        .refused("olmkit catalog init other");
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
    assert!(diff.out.contains("deprecation of bundle"), "{}", diff.out);
    let json = desk.run(&["catalog", "diff", "before", "catalog", "-o", "json"]).out;
    assert!(json.trim_start().starts_with('['), "{json}");
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
    // Two files: an entry or a blob could come to stand twice.
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
    assert_eq!(desk.text(SOURCE), before);
    // What jumps over the head has to skip it.
    add(&[
        "--channel",
        "alpha,beta",
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
    let missing =
        format!("    not {OLD} -> {NEW}: the catalog has {OLD} without its CRDs; name its directory with --bundles");
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
    let expected = format!("error[V1-13]: scope: scope changed : \"Namespaced\" -> \"Cluster\" (upgrade from {OLD})");
    assert!(blocked.out.contains(&expected), "{}", blocked.out);
    assert!(
        blocked
            .out
            .contains("--> bundles/new/manifests/cache.example.com_memcacheds.yaml:"),
        "{}",
        blocked.out
    );
    assert_eq!(blocked.code, 1);
    let report = validate(&["--bundles", "bundles", "-o", "json"]).out;
    assert!(report.contains("\"rule\": \"V1-13\""), "{report}");
    validate(&["--bundles", "catalog"]).refused("no bundle below catalog");
    validate(&["-o", "opm-json"]).refused("opm has no --crd-safety");
}
