//! Expands rules to single permissions, which shows those that another one includes.

use std::collections::BTreeSet;

use super::rule;
use olmkit_project::rbac::PolicyRule;

/// The bytes of a rule after expansion: its strings, and a constant for each permission.
pub(super) fn size(rule: &PolicyRule) -> u64 {
    const EACH: u64 = 32;
    /// Number, and their bytes.
    type Sum = (u64, u64);
    let number = |size: usize| u64::try_from(size).unwrap_or(u64::MAX);
    let sum = |texts: &[String]| -> Sum { (number(texts.len()), number(texts.iter().map(String::len).sum())) };
    let times = |a: Sum, b: Sum| -> Sum {
        let bytes = a.1.saturating_mul(b.0).saturating_add(b.1.saturating_mul(a.0));
        (a.0.saturating_mul(b.0), bytes)
    };
    let names = match rule.resource_names.as_slice() {
        [] => (1, 0),
        names => sum(names),
    };
    let verbs = sum(&rule.verbs);
    let of_objects = times(times(verbs, sum(&rule.api_groups)), times(sum(&rule.resources), names));
    let of_urls = times(verbs, sum(&rule.non_resource_urls));
    [of_objects, of_urls].iter().fold(0, |all: u64, (count, bytes)| {
        all.saturating_add(bytes.saturating_add(count.saturating_mul(EACH)))
    })
}

/// One verb on one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right<'r> {
    verb: &'r str,
    on: On<'r>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum On<'r> {
    Url(&'r str),
    Objects {
        group: &'r str,
        resource: &'r str,
        /// The only object. None for all.
        name: Option<&'r str>,
    },
}

impl<'r> Right<'r> {
    /// The permissions that include this one, and itself: each part may be `*`, and the name may be omitted.
    fn wider(self) -> impl Iterator<Item = Self> {
        let on: Vec<On<'r>> = match self.on {
            On::Url(url) => [url, "*"].map(On::Url).to_vec(),
            On::Objects { group, resource, name } => {
                let objects = |(group, resource, name)| On::Objects { group, resource, name };
                let all = [(group, resource), (group, "*"), ("*", resource), ("*", "*")];
                let named = |(group, resource)| [(group, resource, name), (group, resource, None)];
                all.into_iter().flat_map(named).map(objects).collect()
            }
        };
        let verbs = [self.verb, "*"];
        on.into_iter().flat_map(move |on| verbs.map(|verb| Self { verb, on }))
    }

    fn rule(self) -> PolicyRule {
        match self.on {
            On::Url(url) => PolicyRule {
                non_resource_urls: vec![url.to_owned()],
                verbs: vec![self.verb.to_owned()],
                ..PolicyRule::default()
            },
            On::Objects { group, resource, name } => rule(group, resource, &[self.verb], name),
        }
    }
}

/// Expands rules to single permissions. [`size`] has bounded their number.
pub(super) fn singles(rules: &[PolicyRule]) -> BTreeSet<Right<'_>> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for verb in &rule.verbs {
            let of = |on| Right { verb, on };
            all.extend(rule.non_resource_urls.iter().map(|url| of(On::Url(url))));
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    let of = |name| of(On::Objects { group, resource, name });
                    if rule.resource_names.is_empty() {
                        all.insert(of(None));
                    }
                    all.extend(rule.resource_names.iter().map(|name| of(Some(name.as_str()))));
                }
            }
        }
    }
    all
}

/// The single permissions, without those that another permission, of the same scope or wider, includes.
pub(super) fn without_covered(rules: &[PolicyRule], wider: &BTreeSet<Right<'_>>) -> Vec<PolicyRule> {
    let own = singles(rules);
    let covered = |one: Right<'_>| {
        let includes = |other: Right<'_>| wider.contains(&other) || (other != one && own.contains(&other));
        one.wider().any(includes)
    };
    own.iter().filter(|one| !covered(**one)).map(|one| one.rule()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comparison of each right with each other, which [`Right::wider`] spares.
    fn covers(wide: Right<'_>, narrow: Right<'_>) -> bool {
        let has = |wide: &str, narrow: &str| wide == narrow || wide == "*";
        let on = match (wide.on, narrow.on) {
            (On::Url(wide), On::Url(narrow)) => has(wide, narrow),
            (
                On::Objects { group, resource, name },
                On::Objects {
                    group: narrow_group,
                    resource: narrow_resource,
                    name: narrow_name,
                },
            ) => has(group, narrow_group) && has(resource, narrow_resource) && (name.is_none() || name == narrow_name),
            _ => false,
        };
        on && has(wide.verb, narrow.verb)
    }

    #[test]
    fn the_wider_rights_of_a_right_are_those_that_include_it() {
        let texts = ["a", "b", "*"];
        let mut all = Vec::new();
        for verb in texts {
            for first in texts {
                all.push(Right {
                    verb,
                    on: On::Url(first),
                });
                for resource in texts {
                    for name in [None, Some("a"), Some("b")] {
                        let on = On::Objects {
                            group: first,
                            resource,
                            name,
                        };
                        all.push(Right { verb, on });
                    }
                }
            }
        }
        for one in &all {
            let by_pairs: BTreeSet<_> = all.iter().filter(|other| covers(**other, *one)).collect();
            let wider: Vec<_> = one.wider().collect();
            assert_eq!(wider.iter().collect::<BTreeSet<_>>(), by_pairs, "{one:?}");
        }
    }

    #[test]
    fn a_rule_is_as_large_as_its_rights() {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rule = PolicyRule {
            verbs: texts(&["get", "list"]),
            api_groups: texts(&["", "apps"]),
            resources: texts(&["pods"]),
            resource_names: texts(&["a", "bc"]),
            non_resource_urls: texts(&["/metrics"]),
        };
        let of = |right: &Right<'_>| {
            let on = match right.on {
                On::Url(url) => url.len(),
                On::Objects { group, resource, name } => group.len() + resource.len() + name.unwrap_or_default().len(),
            };
            right.verb.len() + on + 32
        };
        let rules = [rule];
        let all: usize = singles(&rules).iter().map(of).sum();
        assert_eq!(size(&rules[0]), u64::try_from(all).unwrap());
        let many = PolicyRule {
            verbs: vec!["v".to_owned(); 1 << 17],
            api_groups: vec!["g".to_owned(); 1 << 17],
            resources: vec!["r".to_owned(); 1 << 17],
            resource_names: vec!["n".to_owned(); 1 << 17],
            ..PolicyRule::default()
        };
        assert_eq!(size(&many), u64::MAX);
    }
}
