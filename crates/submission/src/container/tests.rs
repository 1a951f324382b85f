//! A fixture for each rule, both ways.

use super::*;

fn sound() -> Container {
    let labels = [
        "name",
        "vendor",
        "version",
        "release",
        "summary",
        "description",
        "maintainer",
    ];
    Container {
        name: "quay.io/example/hello:v1".to_owned(),
        repository: Some("quay.io/example/hello".to_owned()),
        tag: Some("v1".to_owned()),
        labels: labels
            .map(|label| (label.to_owned(), "Hello for Red Hat OpenShift".to_owned()))
            .into(),
        user: "65532".to_owned(),
        layers: 40,
        licenses: Some(vec![0, 10]),
        packages: Some(Ok(vec!["bash".to_owned(), "kernel-headers".to_owned()])),
        modified: Compared::Modified(Vec::new()),
    }
}

fn failed(policy: Policy, change: impl FnOnce(&mut Container)) -> Vec<&'static str> {
    let mut image = sound();
    change(&mut image);
    let outcome = check_container(&image, policy);
    outcome.found.iter().map(|checked| checked.check).collect()
}

#[test]
fn the_sound_image_passes_and_what_was_not_checked_is_named() {
    let outcome = check_container(&sound(), Policy::Container);
    assert!(outcome.found.is_empty(), "{:#?}", outcome.found);
    assert_eq!(outcome.checked.len(), 9);
    assert_eq!(outcome.not_checked.len(), 1);
    assert!(outcome.not_checked[0].contains("BasedOnUbi"));
}

#[test]
fn each_rule_finds_its_defect_and_nothing_else() {
    type Change = fn(&mut Container);
    let cases: [(&str, Change, &[&str]); 16] = [
        ("no licenses", |image| image.licenses = None, &["HasLicense"]),
        (
            "empty licenses",
            |image| image.licenses = Some(vec![0]),
            &["HasLicense"],
        ),
        (
            "Latest",
            |image| image.tag = Some("Latest".to_owned()),
            &["HasUniqueTag"],
        ),
        ("41 layers", |image| image.layers = 41, &["LayerCountAcceptable"]),
        (
            "a kernel",
            |image| image.packages = Some(Ok(vec!["kernel-core".to_owned()])),
            &["HasNoProhibitedPackages"],
        ),
        (
            "a patch",
            |image| image.packages = Some(Ok(vec!["kpatch-dnf".to_owned()])),
            &["HasNoProhibitedPackages"],
        ),
        (
            "no database",
            |image| image.packages = None,
            &["HasNoProhibitedPackages"],
        ),
        (
            "an empty label",
            |image| _ = image.labels.insert("release".to_owned(), String::new()),
            &["HasRequiredLabel"],
        ),
        (
            "a trademark",
            |image| _ = image.labels.insert("vendor".to_owned(), "Red-Hat".to_owned()),
            &["HasNoProhibitedLabels"],
        ),
        (
            "a trademark elsewhere",
            |image| _ = image.labels.insert("summary".to_owned(), "Red Hat".to_owned()),
            &[],
        ),
        (
            "a changed file",
            |image| {
                let (path, reason) = ("usr/bin/su".to_owned(), "it was changed without rpm");
                image.modified = Compared::Modified(vec![Modified { path, reason, layer: 2 }]);
            },
            &["HasModifiedFiles"],
        ),
        (
            "no os-release",
            |image| image.modified = Compared::Failed("no os-release".to_owned()),
            &["HasModifiedFiles"],
        ),
        ("no user", |image| image.user = String::new(), &["RunAsNonRoot"]),
        ("root", |image| image.user = "root".to_owned(), &["RunAsNonRoot"]),
        ("a number", |image| image.user = "1001:0".to_owned(), &[]),
        (
            "a name",
            |image| image.repository = Some("quay.io/example/my-redhat".to_owned()),
            &["HasProhibitedContainerName"],
        ),
    ];
    for (name, change, wanted) in cases {
        assert_eq!(failed(Policy::Container, change), wanted, "{name}");
    }
}

#[test]
fn policies_leave_rules_out() {
    let bare = |image: &mut Container| {
        image.user = String::new();
        image.packages = None;
        image.modified = Compared::Failed(String::new());
        image.repository = Some("redhat".to_owned());
    };
    assert_eq!(
        failed(Policy::Container, bare),
        [
            "HasNoProhibitedPackages",
            "RunAsNonRoot",
            "HasModifiedFiles",
            "HasProhibitedContainerName"
        ]
    );
    assert_eq!(
        failed(Policy::Root, bare),
        [
            "HasNoProhibitedPackages",
            "HasModifiedFiles",
            "HasProhibitedContainerName"
        ]
    );
    assert_eq!(
        failed(Policy::ScratchNonroot, bare),
        ["RunAsNonRoot", "HasProhibitedContainerName"]
    );
    assert_eq!(failed(Policy::ScratchRoot, bare), ["HasProhibitedContainerName"]);
    assert_eq!(
        failed(Policy::Konflux, bare),
        ["HasNoProhibitedPackages", "RunAsNonRoot", "HasModifiedFiles"]
    );
}

#[test]
fn images_without_tag_or_repository_leave_two_checks_open() {
    for tag in [None, Some("latest".to_owned())] {
        let image = Container {
            tag,
            repository: None,
            ..sound()
        };
        let outcome = check_container(&image, Policy::ScratchNonroot);
        assert!(outcome.found.is_empty());
        assert_eq!(outcome.not_checked.len(), 2, "{:?}", outcome.not_checked);
    }
}

#[test]
fn the_trademark_is_allowed_once_after_for() {
    for text in ["", "hello", "Hello for Red Hat", "hello-for-redhat", "hired hats"] {
        let wanted = text == "hired hats";
        assert_eq!(violates_trademark(text), wanted, "{text}");
    }
    for text in [
        "Red Hat",
        "red_hat hello",
        "Hello Red Hat",
        "Hello for Red Hat by Red Hat",
        " RedHat for Red Hat",
    ] {
        assert!(violates_trademark(text), "{text}");
    }
}
