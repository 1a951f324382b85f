//! A fixture for each rule, both ways.

use olmkit::diagnostics::Severity;

use crate::Suite;
use crate::checks::fixture::{ANNOTATIONS, CSV, Edit, checks, found};

#[test]
fn the_sound_operator_has_no_finding() {
    let all = found(Suite::Preflight, &[]);
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn each_rule_finds_its_defect_and_nothing_else() {
    use Severity::{Error, Info, Warning};
    let image = "image: quay.io/example/hello@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n                env";
    let related = "  relatedImages:\n  - {name: hello, image: \"quay.io/example/hello@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\n";
    let disconnected = "features.operators.openshift.io/disconnected: \"true\"";
    let legacy = "features.operators.openshift.io/disconnected: \"false\"\n    operators.openshift.io/infrastructure-features: '[\"Disconnected\"]'";
    const RESTRICTED: &str = "FollowsRestrictedNetworkEnablementGuidelines";
    let cases: Vec<(&str, Vec<Edit<'_>>, Severity, Vec<&str>)> = vec![
        (
            "an error of a validator",
            vec![(CSV, "email: ann@example.com", "email: ann")],
            Error,
            vec!["ValidateOperatorBundle"],
        ),
        (
            "not a range",
            vec![(ANNOTATIONS, "versions: v4.20", "versions: v4.20-")],
            Error,
            vec!["ValidateOperatorBundle"],
        ),
        (
            "a range",
            vec![(ANNOTATIONS, "versions: v4.20", "versions: v4.12-v4.20")],
            Error,
            vec![],
        ),
        (
            "missing feature",
            vec![(CSV, "openshift.io/proxy-aware", "openshift.io/proxy")],
            Error,
            vec!["RequiredAnnotations"],
        ),
        (
            "wrong value",
            vec![(CSV, "io/tls-profiles: \"false\"", "io/tls-profiles: \"False\"")],
            Error,
            vec!["RequiredAnnotations"],
        ),
        (
            "wrong value of an optional one",
            vec![(
                CSV,
                "io/tls-profiles: \"false\"",
                "io/tls-profiles: \"false\"\n    features.operators.openshift.io/cnf: yes",
            )],
            Error,
            vec!["RequiredAnnotations"],
        ),
        (
            "an optional one",
            vec![(
                CSV,
                "io/tls-profiles: \"false\"",
                "io/tls-profiles: \"false\"\n    features.operators.openshift.io/cnf: \"true\"",
            )],
            Error,
            vec![],
        ),
        (
            "one constraint",
            vec![(CSV, "resourceNames: []", "resourceNames: [a]")],
            Info,
            vec!["SecurityContextConstraintsInCSV"],
        ),
        (
            "two constraints",
            vec![(CSV, "resourceNames: []", "resourceNames: [a, b]")],
            Warning,
            vec!["SecurityContextConstraintsInCSV"],
        ),
        (
            "other resource",
            vec![
                (CSV, "resourceNames: []", "resourceNames: [a, b]"),
                (CSV, "[securitycontextconstraints]", "[others]"),
            ],
            Warning,
            vec![],
        ),
        (
            "an image without a digest",
            vec![(CSV, image, "image: quay.io/example/hello:v1\n                env")],
            Warning,
            vec!["AllImageRefsInRelatedImages", "BundleImageRefsAreCertified"],
        ),
        (
            "no related images",
            vec![(CSV, related, "")],
            Warning,
            vec!["AllImageRefsInRelatedImages", RESTRICTED],
        ),
        (
            "no such variable",
            vec![(CSV, "RELATED_IMAGE_HELLO", "HELLO")],
            Warning,
            vec![RESTRICTED],
        ),
        (
            "not claimed",
            vec![(
                CSV,
                disconnected,
                "features.operators.openshift.io/disconnected: \"false\"",
            )],
            Warning,
            vec![RESTRICTED],
        ),
        ("claimed as before", vec![(CSV, disconnected, legacy)], Warning, vec![]),
    ];
    for (name, edits, severity, wanted) in cases {
        let all = found(Suite::Preflight, &edits);
        assert_eq!(checks(&all, severity), wanted, "{name}: {all:#?}");
    }
}

#[test]
fn a_check_that_stops_says_what_preflight_does() {
    let variable = "- name: RELATED_IMAGE_HELLO\n                  value: quay";
    let all = found(
        Suite::Preflight,
        &[(
            CSV,
            variable,
            "- name: RELATED_IMAGE_HELLO\n                  valueFrom: {}\n                  other: quay",
        )],
    );
    let hint = all
        .iter()
        .find(|checked| checked.is_traceback)
        .and_then(|checked| checked.finding.hint.clone());
    assert!(
        hint.is_some_and(|hint| hint.contains("preflight counts it as an error")),
        "{all:#?}"
    );
}
