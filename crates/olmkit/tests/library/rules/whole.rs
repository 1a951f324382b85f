//! Properties of all rules together, and of the bundle of this repository.

use std::collections::BTreeSet;

use olmkit::bundle::load::{Limits, Tree};
use olmkit::rules;

use super::changes::{SUITE, bundle, ids, options, outcome};
use super::{catalog_rules, optional_rules, own_rules, reference_rules};

/// Rules that other tests break, because they need more than a changed file.
const ELSEWHERE: &[(&str, &str)] = &[
    ("BND-5", "sizes"),
    ("BND-6", "sizes"),
    ("SIZE-1", "sizes"),
    ("SIZE-2", "sizes"),
    ("BND-7", "reference_rules: profile"),
    ("BND-8", "reference_rules: profile"),
    ("BND-9", "reference_rules: profile"),
    ("CSV-14", "reference_rules: conversion"),
    ("CRD-18", "reference_rules: group"),
    ("HUB-0", "optional_rules"),
    ("CAT-2", "optional_rules"),
    ("API-1", "optional_rules"),
    ("API-2", "optional_rules"),
    ("COM-1", "optional_rules"),
    ("COM-2", "optional_rules"),
    ("MA-0", "multiarch"),
    ("MA-1", "multiarch"),
    ("MA-2", "multiarch"),
    ("MA-3", "multiarch"),
    ("MA-4", "multiarch"),
    ("MA-5", "multiarch"),
    ("MA-6", "multiarch"),
    ("EXT-1", "command"),
    ("FMT-2", "command"),
    ("FMT-3", "command"),
    ("FMT-4", "command"),
    ("FMT-5", "command"),
    ("LOC-7", "command"),
    ("META-3", "outputs: images"),
    ("OPM-1", "own_details"),
    ("UPG-4", "against"),
    ("UPG-5", "against"),
    ("UPG-6", "against"),
    ("CRD-31", "against"),
    ("CRD-32", "against"),
    ("CRD-33", "against"),
    ("CRD-34", "against"),
    ("CRD-35", "against"),
    ("CRD-36", "against"),
    ("EX-4", "against"),
    ("SC-1", "scorecard"),
    ("SC-2", "scorecard"),
    ("SC-3", "scorecard"),
    ("SC-4", "scorecard"),
    ("SC-5", "scorecard"),
    ("SC-6", "scorecard"),
    ("SC-7", "scorecard"),
    ("SC-8", "scorecard"),
    ("SC-9", "scorecard"),
    ("V1-4", "olmv1: profile"),
    ("V1-5", "olmv1: profile"),
    ("V1-6", "olmv1: profile"),
    ("V1-7", "olmv1: profile"),
    ("V1-8", "olmv1: profile"),
    ("V1-9", "olmv1: profile"),
    ("V1-10", "olmv1: profile"),
    ("V1-11", "olmv1: profile"),
    ("V1-12", "olmv1: profile"),
    ("V1-13", "olmv1: profile"),
    ("V1-14", "olmv1: profile"),
    ("V1-15", "olmv1: profile"),
    ("V1-16", "olmv1: profile"),
];

/// Rules that no test breaks. HUB-11 repeats CSV-16 and CSV-17, which are shown instead. CSV-22: only its kind makes a
/// file a ClusterServiceVersion. CRD-21 is for errors of the API server that belong to no field of the other CRD rules.
/// No known CRD causes one.
const UNREACHABLE: &[&str] = &["CSV-22", "CRD-21", "HUB-11"];

#[test]
fn every_rule_is_broken_somewhere() {
    let tables = [
        own_rules::CHANGES,
        reference_rules::FILES,
        reference_rules::MANIFESTS,
        optional_rules::CHANGES,
    ];
    let mut broken: BTreeSet<&str> = tables
        .into_iter()
        .flatten()
        .flat_map(|(_, _, _, ids)| ids.iter().copied())
        .collect();
    broken.extend(
        catalog_rules::CHANGES
            .iter()
            .flat_map(|(_, _, ids)| ids.iter().copied()),
    );
    broken.extend(reference_rules::DEPENDENCIES.iter().map(|(_, rule)| *rule));
    broken.extend(ELSEWHERE.iter().map(|(rule, _)| *rule));
    broken.extend(UNREACHABLE);
    // The committed bundle has no icon.
    broken.insert("HUB-7");
    let missing: Vec<&str> = rules::all()
        .iter()
        .map(|rule| rule.id)
        .filter(|id| !broken.contains(id))
        .collect();
    assert!(missing.is_empty(), "no test breaks {missing:?}");
}

#[test]
fn the_unchanged_bundle_only_lacks_an_icon() {
    let outcome = outcome(bundle(), &options(SUITE));
    assert_eq!((ids(&outcome), outcome.passed()), (BTreeSet::from(["HUB-7"]), true));
}

/// The committed bundle names its images by tag, because the digest is known only after they are pushed. Its contacts are examples.
#[test]
fn the_bundle_of_this_repository_only_uses_tags_and_example_contacts() {
    let tree = Tree::from_dir(&test_support::repository("bundle"), Limits::default()).expect("the bundle");
    let outcome = outcome(tree, &options(""));
    let others: Vec<String> = outcome
        .findings()
        .filter(|finding| !["IMG-1", "META-5"].contains(&finding.rule))
        .map(|finding| format!("{}: {}", finding.rule, finding.message))
        .collect();
    assert!(others.is_empty() && outcome.passed(), "{others:?}");
}
