//! The registry: every rule of olmkit. `olmkit explain`, the tables of the documentation and the metadata of SARIF
//! files are generated from it.
//!
//! A rule is defined next to its check, by `define_rules!`. Each file of checks is listed here, once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub use crate::diagnostics::{Origin, Proof, Rule, Witness};
use crate::{bundle, catalog, scorecard, validate};

/// One line for each file of checks of this crate.
static FILES: &[&[&Rule]] = &[
    validate::format::RULES,
    validate::dependencies::RULES,
    validate::objects::RULES,
    validate::bundle::RULES,
    validate::csv::RULES,
    validate::examples::RULES,
    validate::crds::RULES,
    validate::hub::RULES,
    validate::standard::RULES,
    validate::removed_apis::RULES,
    validate::community::RULES,
    validate::good_practices::RULES,
    validate::multiarch::RULES,
    validate::external::RULES,
    validate::lints::admission::RULES,
    validate::lints::permissions::accounts::RULES,
    validate::lints::permissions::needs::RULES,
    validate::lints::permissions::scope::RULES,
    validate::lints::permissions::excess::RULES,
    validate::lints::webhooks::RULES,
    validate::lints::certificates::RULES,
    validate::lints::images::RULES,
    validate::lints::files::RULES,
    validate::lints::fields::RULES,
    validate::lints::placeholders::RULES,
    validate::lints::release::RULES,
    validate::lints::dependencies::RULES,
    validate::lints::icon::RULES,
    validate::lints::upgrade::RULES,
    validate::lints::olm_v1::RULES,
    validate::olm_v1::RULES,
    validate::lints::pods::RULES,
    validate::lints::pod_security::RULES,
    validate::lints::schemas::RULES,
    validate::lints::descriptors::RULES,
    validate::lints::examples::RULES,
    validate::lints::features::RULES,
    scorecard::rules::RULES,
];

/// The rules of all crates. Reports follow this order.
static CRATES: [&[&[&Rule]]; 3] = [bundle::RULES, FILES, catalog::RULES];

static ALL: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    let mut all: Vec<&Rule> = CRATES.iter().copied().flatten().copied().flatten().copied().collect();
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in &all {
        let next = families.len();
        families.entry(family(rule)).or_insert(next);
    }
    all.sort_by_cached_key(|rule| {
        let of_catalogs = is_of_catalogs(rule);
        (
            of_catalogs,
            part(rule.origin),
            families.get(family(rule)).copied(),
            number(rule),
        )
    });
    all
});

/// All rules, in the order of the documentation: those of bundles first, by origin, family and number.
pub fn all() -> &'static [&'static Rule] {
    &ALL
}

/// The rule with an id, in any case.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().iter().copied().find(|rule| rule.id.eq_ignore_ascii_case(id))
}

/// Returns true if a rule is about catalogs. The others are about bundles.
pub fn is_of_catalogs(rule: &Rule) -> bool {
    family(rule) == "catalog"
}

/// `CSV` of `CSV-17`.
fn family(rule: &Rule) -> &'static str {
    rule.id.split('-').next().unwrap_or_default()
}

/// 17 for `CSV-17`; 0 for an id with words instead of a number: such rules keep the order of their files.
fn number(rule: &Rule) -> u32 {
    let number = rule.id.split('-').nth(1).and_then(|number| number.parse().ok());
    number.unwrap_or_default()
}

fn part(origin: Origin) -> usize {
    match origin {
        Origin::OperatorSdk(_) => 0,
        Origin::OptionalValidator(_) => 1,
        Origin::Scorecard(_) => 2,
        Origin::Opm => 3,
        Origin::Pipeline(_) => 5,
        Origin::Lint => 4,
    }
}

#[cfg(test)]
mod tests;
