//! OLM v1's choice.

use serde_json::Value;

use super::{Desk, NEW, OLD, copy};

#[test]
fn the_choice_of_olm_v1_and_why_not_the_others() {
    let desk = Desk::with_catalog();
    let resolve = |more: &[&str]| {
        let arguments = ["catalog", "resolve", "--olmv1", "memcached-operator"];
        desk.run(&[&arguments, more].concat())
    };
    assert_eq!(
        resolve(&["catalog"]).ok(),
        format!("{NEW} (0.1.0)\n    not {OLD} (0.0.1): {NEW} is newer\n")
    );
    let upgrade = resolve(&["catalog", "--installed", "0.0.1", "--channels", "alpha", "-o", "json"]).ok();
    let answer: Value = serde_json::from_str(&upgrade).unwrap();
    assert_eq!(answer["chosen"]["bundle"], NEW);
    assert_eq!(
        answer["chosen"]["reasons"][0],
        format!("it replaces {OLD} in channel alpha")
    );
    assert_eq!(answer["candidates"][1]["outcome"], "behind");

    let stuck = resolve(&["catalog", "--installed", NEW, "--version", "<0.1"]);
    assert!(
        stuck
            .out
            .contains(&format!("    not {OLD} (0.0.1): no edge leads from {NEW} to it\n"))
    );
    stuck.refused(
        "OLM v1 installs nothing: error upgrading from currently installed version \"0.1.0\": no bundles found for package \
         \"memcached-operator\" matching version \"<0.1\"",
    );
    let back = [
        "catalog",
        "--installed",
        NEW,
        "--version",
        "<0.1",
        "--policy",
        "SelfCertified",
    ];
    assert!(resolve(&back).ok().starts_with(OLD));

    copy(&desk.path("catalog"), &desk.path("ours"));
    resolve(&["catalog", "ours"]).refused("in multiple catalogs with the same priority [catalog ours]");
    let ours = resolve(&["catalog", "ours", "--priority", "ours=1"]).ok();
    assert!(ours.starts_with(&format!("{NEW} (0.1.0) from ours\n")), "{ours}");
    assert!(
        ours.contains("from catalog: its catalog has the lower priority 0"),
        "{ours}"
    );
}

#[test]
fn wrong_requests_say_what_to_write() {
    let desk = Desk::with_catalog();
    let resolve = |more: &[&str]| {
        let arguments = ["catalog", "resolve", "--olmv1", "memcached-operator", "catalog"];
        desk.run(&[&arguments, more].concat())
    };
    resolve(&["--version", ">>1"]).refused("invalid --version \">>1\"; write a version or a range");
    resolve(&["--installed", "nobody"]).refused("write NAME@VERSION");
    resolve(&["--priority", "other=1"]).refused("not one of the catalogs: catalog");
    let narrow = resolve(&["--version", "0.0.1 - 0.1.0"]);
    assert!(narrow.err.contains("the API server rejects"), "{}", narrow.err);
    assert!(narrow.ok().starts_with(NEW));
    let unknown = resolve(&["--installed", "0.0.9"]);
    assert!(
        unknown.err.contains("only a skipRange can upgrade it"),
        "{}",
        unknown.err
    );
    unknown.refused("no bundles found");
    desk.run(&["catalog", "resolve", "--olmv1", "nosuch", "catalog"])
        .refused("no bundles found for package \"nosuch\"");
}
