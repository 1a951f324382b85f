//! The permissions of a bundle, expanded to single verbs and resources, and folded to lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::list;
use crate::read::Bundle;
use olmkit_base::limits::{self, Limit};

/// A bundle whose permissions are too many to be compared one by one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the rules of {csv} grant {count} {}; at most {} are compared{}",
    if *in_bytes { "bytes of permissions, written one by one" } else { "permissions, counted by verb, resource, group and name" },
    limit(*in_bytes).shown(),
    limit(*in_bytes).way_out()
)]
pub struct TooManyPermissions {
    /// The ClusterServiceVersion.
    pub csv: String,
    /// Their number.
    pub count: u64,
    /// True if their bytes are counted.
    pub in_bytes: bool,
}

fn limit(in_bytes: bool) -> &'static Limit {
    match in_bytes {
        true => &limits::COMPARED_PERMISSION_BYTES,
        false => &limits::COMPARED_PERMISSIONS,
    }
}

/// One verb on one resource, or on a URL, whose group is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission<'a> {
    scope: &'static str,
    group: Option<&'a str>,
    resource: &'a str,
    /// The names that it is limited to.
    names: Vec<&'a str>,
    verb: &'a str,
}

fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    let items = rule.get(field).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).collect()
}

/// Size of a rule after expansion to single permissions, including its names.
fn size(rule: &Value) -> u64 {
    let count = |field: &str| texts(rule, field).len() as u64;
    let subjects = count("apiGroups").saturating_mul(count("resources"));
    subjects
        .saturating_add(count("nonResourceURLs"))
        .saturating_mul(count("verbs"))
        .saturating_mul(count("resourceNames").max(1))
}

/// The bytes of a rule after expansion to single permissions.
fn bytes(rule: &Value) -> u64 {
    let of = |field: &str| {
        let texts = texts(rule, field);
        let sum = texts
            .iter()
            .fold(0, |sum: u64, text| sum.saturating_add(text.len() as u64 + 1));
        (texts.len() as u64, sum)
    };
    let [groups, resources, urls, names, verbs] =
        ["apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs"].map(of);
    let product = |one: (u64, u64), other: (u64, u64)| {
        let bytes = one
            .1
            .saturating_mul(other.0)
            .saturating_add(other.1.saturating_mul(one.0));
        (one.0.saturating_mul(other.0), bytes)
    };
    let subjects = product(groups, resources);
    let subjects = (subjects.0.saturating_add(urls.0), subjects.1.saturating_add(urls.1));
    let all = product(subjects, verbs);
    all.1.saturating_add(all.0.saturating_mul(names.1))
}

/// The permissions of a bundle, one by one.
///
/// # Errors
/// They are too many.
pub fn permissions(bundle: &Bundle) -> Result<BTreeSet<Permission<'_>>, TooManyPermissions> {
    let places = [("permissions", "watched namespaces"), ("clusterPermissions", "cluster")];
    let rules = places.into_iter().flat_map(|(place, scope)| {
        let entries = list(&bundle.csv.value, &format!("/spec/install/spec/{place}")).iter();
        entries.flat_map(move |entry| list(entry, "/rules").iter().map(move |rule| (scope, rule)))
    });
    let rules: Vec<(&str, &Value)> = rules.collect();
    let count = rules
        .iter()
        .fold(0, |sum: u64, (_, rule)| sum.saturating_add(size(rule)));
    let bytes = rules
        .iter()
        .fold(0, |sum: u64, (_, rule)| sum.saturating_add(bytes(rule)));
    for (count, in_bytes) in [(count, false), (bytes, true)] {
        if count > limit(in_bytes).get() {
            return Err(TooManyPermissions {
                csv: bundle.csv.name().to_owned(),
                count,
                in_bytes,
            });
        }
    }
    let mut permissions = BTreeSet::new();
    for (scope, rule) in rules {
        let mut names = texts(rule, "resourceNames");
        names.sort_unstable();
        let verbs = texts(rule, "verbs");
        let resources = texts(rule, "resources");
        let subjects = texts(rule, "apiGroups")
            .into_iter()
            .flat_map(|group| resources.iter().map(move |resource| (Some(group), *resource)));
        let urls = texts(rule, "nonResourceURLs").into_iter().map(|url| (None, url));
        for (group, resource) in subjects.chain(urls) {
            let names = if group.is_some() { names.clone() } else { Vec::new() };
            permissions.extend(verbs.iter().copied().map(|verb| Permission {
                scope,
                group,
                resource,
                names: names.clone(),
                verb,
            }));
        }
    }
    Ok(permissions)
}

/// The permissions with those that differ in one part only on one line: verbs, then resources, then groups.
pub fn lines<'a>(permissions: impl Iterator<Item = &'a Permission<'a>>) -> Vec<String> {
    type Names<'a> = &'a [&'a str];
    let mut verbs: BTreeMap<(&str, Option<&str>, Names<'_>, &str), BTreeSet<&str>> = BTreeMap::new();
    for one in permissions {
        let key = (one.scope, one.group, one.names.as_slice(), one.resource);
        verbs.entry(key).or_default().insert(one.verb);
    }
    type Key<'a> = (&'a str, Option<&'a str>, Names<'a>, BTreeSet<&'a str>);
    let mut resources: BTreeMap<Key<'_>, BTreeSet<&str>> = BTreeMap::new();
    for ((scope, group, names, resource), verbs) in verbs {
        resources
            .entry((scope, group, names, verbs))
            .or_default()
            .insert(resource);
    }
    let mut groups: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let mut lines = Vec::new();
    let joined = |texts: &BTreeSet<&str>| texts.iter().copied().collect::<Vec<_>>().join(", ");
    for ((scope, group, names, verbs), resources) in resources {
        match group {
            Some(group) => {
                let group = if group.is_empty() { "the core group" } else { group };
                groups
                    .entry((scope, names, verbs, resources))
                    .or_default()
                    .insert(group);
            }
            None => lines.push(format!("{scope}: {} URL {}", joined(&verbs), joined(&resources))),
        }
    }
    for ((scope, names, verbs, resources), groups) in groups {
        let only = if names.is_empty() {
            String::new()
        } else {
            format!(" named {}", names.join(", "))
        };
        let (verbs, resources, groups) = (joined(&verbs), joined(&resources), joined(&groups));
        lines.push(format!("{scope}: {verbs} {resources} of {groups}{only}"));
    }
    lines.sort();
    lines
}
