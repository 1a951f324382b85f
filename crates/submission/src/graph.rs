//! The order of an operator's bundles and its upgrade graph, as the hosted pipeline computes them.
//!
//! This is no model of OLM's graph. `repo check` must pass and fail the same pull requests as the pipeline, whose
//! `Operator.update_graph` (`operatorcert/operator_repo/core.py` of
//! <https://github.com/redhat-openshift-ecosystem/operator-pipelines>, read at 422dfd6e of 2026-08-20) differs from OLM's resolver:
//!
//! - An edge goes from a bundle to each bundle that replaces or skips it. Skipped bundles keep their edges.
//! - Names are reduced to the part after the first dot, so only versions are compared. Names of absent bundles are dropped.
//! - `olm.skipRange` is an npm range, not one of blang/semver. A range that does not parse is ignored.
//! - `semver-mode` joins each bundle with the next higher version.
//!
//! All other parts of this crate use `olmkit_catalog`: `repo onboard` its index, `repo release` its editor, check and summary.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::bundle::Bundle;
use crate::python::text::{quoted, shown};
use crate::python::{NONE, Node, Raise, RaiseKind, Value};
use crate::repository::Operator;
use crate::versions::{NpmError, NpmRange, Semantic};

/// Edges from a bundle to those that replace it, by version.
pub(crate) type Graph<'a> = BTreeMap<&'a str, Vec<&'a Bundle>>;

/// The order of two bundles: by operator name, then by version, lexically unless both are semantic.
fn order(a: &Bundle, b: &Bundle) -> Result<Ordering, Raise> {
    let (a, b) = (a.name()?, b.name()?);
    Ok(a.operator
        .cmp(&b.operator)
        .then_with(|| match (&a.semantic, &b.semantic) {
            (Ok(a), Ok(b)) => a.order(b),
            _ => a.version.cmp(&b.version),
        }))
}

/// Returns true if two bundles are the same to the pipeline: name and version are equal, build included.
pub(crate) fn same(a: &Bundle, b: &Bundle) -> Result<bool, Raise> {
    let (a, b) = (a.name()?, b.name()?);
    Ok(a.operator == b.operator
        && match (&a.semantic, &b.semantic) {
            (Ok(a), Ok(b)) => a == b,
            _ => a.version == b.version,
        })
}

/// The bundles in a channel, oldest first.
pub(crate) fn channel_bundles<'a>(operator: &'a Operator, channel: &str) -> Result<Vec<&'a Bundle>, Raise> {
    let mut sorted: Vec<&Bundle> = Vec::new();
    // Lexical and semantic order do not go together, so this need not be an order at all: the library's sort must not see it.
    for bundle in operator.in_channel(channel)? {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let Some(other) = sorted.get(middle) else { break };
            if order(bundle, other)? == Ordering::Less {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        sorted.insert(low, bundle);
    }
    Ok(sorted)
}

/// The update graph of a channel.
pub(crate) fn update_graph<'a>(operator: &'a Operator, channel: &str) -> Result<Graph<'a>, Raise> {
    let bundles = channel_bundles(operator, channel)?;
    let config = operator.config()?.view();
    static REPLACES_MODE: std::sync::LazyLock<Node> =
        std::sync::LazyLock::new(|| Node::new(Value::Str("replaces-mode".to_owned())));
    let mode = config.get_or("updateGraph", &REPLACES_MODE)?;
    match mode.node.as_str() {
        Some("semver-mode") => Ok(bundles
            .iter()
            .zip(bundles.iter().skip(1))
            .map(|(old, new)| (old.version.as_str(), vec![*new]))
            .collect()),
        Some("replaces-mode") => replaces_graph(&bundles),
        _ => {
            let problem = format!(
                "Operator({}): unsupported updateGraph value: {}",
                operator.name,
                shown(mode.node)
            );
            Err(Raise::new(RaiseKind::NotImplemented, problem)
                .in_file(config.file)
                .at(mode.at))
        }
    }
}

fn replaces_graph<'a>(bundles: &[&'a Bundle]) -> Result<Graph<'a>, Raise> {
    let mut by_version: BTreeMap<&str, &'a Bundle> = BTreeMap::new();
    for bundle in bundles {
        by_version.insert(bundle.name()?.version.as_str(), bundle);
    }
    let versions: Versions<'_> = by_version
        .iter()
        .map(|(version, bundle)| (*bundle, Semantic::parse(version)))
        .collect();
    // For each bundle the positions of those that replace it, first by range, then by name. Both ascend, so a repeated one is
    // the last one or found by a binary search.
    let mut edges: BTreeMap<&str, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (at, bundle) in bundles.iter().enumerate() {
        for old in skipped(bundle, &versions)? {
            let (by_range, _) = edges.entry(old.version.as_str()).or_default();
            if by_range.last() != Some(&at) {
                by_range.push(at);
            }
        }
    }
    for (at, bundle) in bundles.iter().enumerate() {
        for name in replaced(bundle)? {
            let Some((_, version)) = name.text.split_once('.') else {
                let problem = format!("{bundle} has invalid 'replaces' field: {}", one_quoted(&name.text));
                return Err(Raise::value(problem).in_file(&name.file).at(name.at));
            };
            if let Some(old) = by_version.get(version.trim_start_matches('v')) {
                let (by_range, by_name) = edges.entry(old.version.as_str()).or_default();
                if by_range.binary_search(&at).is_err() && by_name.last() != Some(&at) {
                    by_name.push(at);
                }
            }
        }
    }
    let newer = |(by_range, by_name): (Vec<usize>, Vec<usize>)| {
        let positions = by_range.into_iter().chain(by_name);
        positions.filter_map(|at| bundles.get(at).copied()).collect()
    };
    Ok(edges.into_iter().map(|(old, edges)| (old, newer(edges))).collect())
}

/// Bundles with their versions, or why one is not semantic.
type Versions<'a> = Vec<(&'a Bundle, Result<Semantic, String>)>;

/// A string in single quotes, as the pipeline prints names.
fn one_quoted(text: &str) -> String {
    format!("'{text}'")
}

/// The bundles in the bundle's `olm.skipRange`.
fn skipped<'a>(bundle: &Bundle, versions: &Versions<'a>) -> Result<Vec<&'a Bundle>, Raise> {
    let facts = bundle.facts();
    let document = facts.skip_range.as_ref().map_err(Clone::clone)?;
    let view = document.view();
    if !view.is_true() {
        return Ok(Vec::new());
    }
    let range = match NpmRange::parse(view.text()?) {
        Ok(range) => range,
        Err(NpmError::Refused) => return Ok(Vec::new()),
        Err(NpmError::Crash) => return Err(view.raise("olm.skipRange is not a range")),
    };
    let mut found = Vec::new();
    for (old, semantic) in versions {
        let semantic = semantic
            .as_ref()
            .map_err(|problem| Raise::value(problem.clone()).in_file(view.file).at(view.at))?;
        if range.contains(semantic) {
            found.push(*old);
        }
    }
    Ok(found)
}

/// A name in `replaces` or `skips`.
struct Name {
    text: String,
    file: String,
    at: olmkit_yaml::Position,
}

fn replaced(bundle: &Bundle) -> Result<Vec<Name>, Raise> {
    let facts = bundle.facts();
    let replaces = facts.replaces.as_ref().map_err(Clone::clone)?.view();
    let skips = facts.skips.as_ref().map_err(Clone::clone)?.view();
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    let items = skips.iterate()?;
    for node in items.iter().map(AsRef::as_ref).chain([replaces.node]) {
        let view = crate::python::View {
            at: node.start,
            node,
            ..skips
        };
        if !node.is_hashable() {
            return Err(view.raise(format!("a name is needed, found {}", node.kind())));
        }
        if node.value == NONE.value {
            continue;
        }
        let text = view.text()?.to_owned();
        if seen.insert(text.clone()) {
            names.push(Name {
                text,
                file: view.file.to_owned(),
                at: node.start,
            });
        }
    }
    Ok(names)
}

/// An edge that closes a loop.
pub(crate) fn back_edge<'a>(graph: &Graph<'a>, bundles: &[&'a Bundle]) -> Option<(&'a Bundle, &'a Bundle)> {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in bundles
        .iter()
        .filter(|bundle| graph.contains_key(bundle.version.as_str()))
    {
        if done.contains(start.version.as_str()) {
            continue;
        }
        // Bundles on the way here, each with how many of its edges were followed.
        let mut path: Vec<(&'a Bundle, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&str> = BTreeSet::from([start.version.as_str()]);
        done.insert(&start.version);
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            let next = graph
                .get(node.version.as_str())
                .and_then(|newer| newer.get(*followed))
                .copied();
            *followed += 1;
            let Some(next) = next else {
                path.pop();
                on_path.remove(node.version.as_str());
                continue;
            };
            if done.insert(&next.version) {
                path.push((next, 0));
                on_path.insert(&next.version);
            } else if on_path.contains(next.version.as_str()) {
                return Some((node, next));
            }
        }
    }
    None
}

/// `{Bundle(a/1), Bundle(a/2)}`.
pub(crate) fn set(bundles: &[&Bundle]) -> String {
    let names: Vec<String> = bundles.iter().map(ToString::to_string).collect();
    format!("{{{}}}", names.join(", "))
}

/// `{'a', 'b'}`.
pub(crate) fn set_of_texts(texts: &BTreeSet<String>) -> String {
    let names: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("{{{}}}", names.join(", "))
}
