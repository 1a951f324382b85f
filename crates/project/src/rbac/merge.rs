//! Merges equal rules, in a defined order, without changing the permissions.

use std::collections::BTreeMap;

use super::PolicyRule;

/// Merges rules without changing the permissions, and sorts them.
///
/// Rules for the same resources collect their verbs; then rules with the same verbs in the same group collect their
/// resources. `*` among verbs, resources or groups absorbs the others in its list. The result does not depend on the
/// order of the input.
///
/// ```
/// use olmkit_project::rbac::{PolicyRule, merge};
/// let rule = |resource: &str, verbs: &[&str]| PolicyRule {
///     api_groups: vec!["apps".into()],
///     resources: vec![resource.into()],
///     verbs: verbs.iter().map(|verb| verb.to_string()).collect(),
///     ..PolicyRule::default()
/// };
/// let merged = merge(vec![rule("deployments", &["get"]), rule("daemonsets", &["get", "list"]), rule("deployments", &["list"])]);
/// assert_eq!(merged.len(), 1);
/// assert_eq!(merged[0].resources, ["daemonsets", "deployments"]);
/// ```
#[must_use]
pub fn merge(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    // A rule with several resources grants the product of its lists. One rule for each pair makes equal pairs visible.
    let mut verbs_of: BTreeMap<Target, Vec<String>> = BTreeMap::new();
    for rule in rules {
        for target in targets(&rule) {
            verbs_of.entry(target).or_default().extend(rule.verbs.iter().cloned());
        }
    }
    // Verbs on all resources of a group are not merged with those for one of them: only exact targets are joined, so
    // that the reader of a role still finds each requested resource.
    let mut resources_of: BTreeMap<(Vec<String>, Kind), Vec<String>> = BTreeMap::new();
    for (target, verbs) in verbs_of {
        let verbs = set(verbs);
        resources_of
            .entry((verbs, target.kind))
            .or_default()
            .push(target.resource);
    }
    let mut merged: Vec<PolicyRule> = resources_of
        .into_iter()
        .map(|((verbs, kind), resources)| {
            let resources = set(resources);
            match kind {
                Kind::Url => PolicyRule {
                    non_resource_urls: resources,
                    verbs,
                    ..PolicyRule::default()
                },
                Kind::Resource { group, names } => PolicyRule {
                    api_groups: vec![group],
                    resources,
                    resource_names: names,
                    verbs,
                    non_resource_urls: Vec::new(),
                },
            }
        })
        .collect();
    merged.sort();
    merged
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    kind: Kind,
    resource: String,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Resource { group: String, names: Vec<String> },
    Url,
}

fn targets(rule: &PolicyRule) -> Vec<Target> {
    let mut found: Vec<Target> = rule
        .non_resource_urls
        .iter()
        .map(|url| Target {
            kind: Kind::Url,
            resource: url.clone(),
        })
        .collect();
    let names = set(rule.resource_names.clone());
    for group in &rule.api_groups {
        for resource in &rule.resources {
            found.push(Target {
                kind: Kind::Resource {
                    group: group.clone(),
                    names: names.clone(),
                },
                resource: resource.clone(),
            });
        }
    }
    found
}

/// Sorted and unique. `*` replaces all others.
fn set(mut list: Vec<String>) -> Vec<String> {
    if list.iter().any(|member| member == "*") {
        return vec!["*".to_owned()];
    }
    list.sort();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect();
        PolicyRule {
            api_groups: list(groups),
            resources: list(resources),
            verbs: list(verbs),
            ..PolicyRule::default()
        }
    }

    #[test]
    fn names_keep_rules_apart() {
        let mut named = rule(&[""], &["secrets"], &["get"]);
        named.resource_names = vec!["tls".into()];
        let merged = merge(vec![named.clone(), rule(&[""], &["secrets"], &["list"])]);
        assert_eq!(merged, [rule(&[""], &["secrets"], &["list"]), named]);
    }

    #[test]
    fn urls_and_resources_stay_apart() {
        let url = PolicyRule {
            non_resource_urls: vec!["/metrics".into()],
            verbs: vec!["get".into()],
            ..PolicyRule::default()
        };
        assert_eq!(merge(vec![url.clone(), url.clone()]), [url]);
    }

    fn allowed(rules: &[PolicyRule], group: &str, resource: &str, verb: &str) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|member| member == wanted || member == "*");
        rules
            .iter()
            .any(|rule| has(&rule.api_groups, group) && has(&rule.resources, resource) && has(&rule.verbs, verb))
    }

    proptest! {
        /// The permissions do not change, and the order of the input has no effect.
        #[test]
        fn merging_changes_no_permission(
            seed in proptest::collection::vec((0..3usize, proptest::collection::vec(0..4usize, 1..3), proptest::collection::vec(0..4usize, 1..3)), 0..8)
        ) {
            const GROUPS: [&str; 3] = ["", "apps", "*"];
            const RESOURCES: [&str; 4] = ["pods", "services", "deployments", "*"];
            const VERBS: [&str; 4] = ["get", "list", "watch", "*"];
            let rules: Vec<_> = seed.iter().map(|(group, resources, verbs)| rule(
                &[GROUPS[*group]],
                &resources.iter().map(|at| RESOURCES[*at]).collect::<Vec<_>>(),
                &verbs.iter().map(|at| VERBS[*at]).collect::<Vec<_>>(),
            )).collect();
            let merged = merge(rules.clone());
            for group in GROUPS { for resource in RESOURCES { for verb in VERBS {
                prop_assert_eq!(allowed(&rules, group, resource, verb), allowed(&merged, group, resource, verb));
            } } }
            let mut backwards = rules;
            backwards.reverse();
            prop_assert_eq!(merge(backwards), merged);
        }
    }
}
