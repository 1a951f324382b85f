//! `catalog validate --crd-safety`: whether OLM v1 lets the definitions of a catalog's bundles be upgraded along its edges.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::Value;

use super::olm_v1::{V1_13, hint_to_change_back};
use crate::catalog::model::PROPERTY_GVK;
use crate::catalog::{Bundle, Catalog, ChannelEntry, objects, property};
use crate::crd::upgrade::{self, Problem, Side};
use crate::diagnostics::{Finding, json_path};
use crate::object::{Version, VersionRange};
use crate::olmv1::{self, Object};
use crate::yaml::Position;

/// A bundle that was given beside the catalog.
#[derive(Debug)]
pub struct Given {
    /// Where it is; files are named below it.
    pub folder: String,
    /// The bundle.
    pub bundle: olmv1::Bundle,
}

/// An upgrade, by the names of the bundles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Upgrade {
    /// The package.
    pub package: String,
    /// The earlier bundle.
    pub from: String,
    /// The later bundle.
    pub to: String,
}

/// What the upgrades of a catalog do to definitions.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Safety {
    /// What OLM v1 blocks.
    pub findings: Vec<Finding>,
    /// How many upgrades were compared.
    pub compared: usize,
    /// Those that could not be, with the reason.
    pub not_compared: Vec<(Upgrade, String)>,
}

/// The definitions of a bundle.
#[derive(Debug)]
struct Definitions {
    objects: Vec<Object>,
    /// The blob of the catalog that holds them; none if they are files.
    blob: Option<Position>,
}

/// Compares the definitions of the bundles at both ends of each edge of a catalog.
#[must_use]
pub fn check(catalog: &Catalog, given: &[Given]) -> Safety {
    let upgrades = upgrades(catalog);
    let mut wanted: BTreeSet<(&str, &str)> = BTreeSet::new();
    for upgrade in &upgrades {
        wanted.insert((&upgrade.package, &upgrade.from));
        wanted.insert((&upgrade.package, &upgrade.to));
    }
    let bundles = Bundles::of(catalog, given);
    let found: Vec<(&str, &str, Result<Definitions, String>)> = wanted
        .into_par_iter()
        .map(|(package, name)| (package, name, bundles.definitions(package, name)))
        .collect();
    let mut definitions: BTreeMap<&str, BTreeMap<&str, &Result<Definitions, String>>> = BTreeMap::new();
    for (package, name, found) in &found {
        definitions.entry(package).or_default().insert(name, found);
    }
    let mut safety = Safety::default();
    let mut ends = Vec::new();
    for upgrade in &upgrades {
        let end = |name: &String| {
            let found = definitions.get(upgrade.package.as_str())?.get(name.as_str())?;
            Some(found.as_ref())
        };
        match (end(&upgrade.from), end(&upgrade.to)) {
            (Some(Ok(old)), Some(Ok(new))) => ends.push((upgrade, old, new)),
            (Some(Err(reason)), _) | (_, Some(Err(reason))) => {
                safety.not_compared.push((upgrade.clone(), reason.clone()));
            }
            _ => {}
        }
    }
    safety.compared = ends.len();
    safety.findings = findings(&ends);
    safety
}

/// The upgrades for which the channels have edges, each once.
fn upgrades(catalog: &Catalog) -> BTreeSet<Upgrade> {
    let mut versions: BTreeMap<&str, Vec<(&str, Version)>> = BTreeMap::new();
    for bundle in &catalog.bundles {
        if let Some(version) = version_of(bundle) {
            versions
                .entry(&bundle.package)
                .or_default()
                .push((&bundle.name, version));
        }
    }
    let mut upgrades = BTreeSet::new();
    for channel in &catalog.channels {
        let known = versions.get(channel.package.as_str());
        for entry in channel.entries() {
            for from in earlier(entry, known.map_or(&[], Vec::as_slice)) {
                upgrades.insert(Upgrade {
                    package: channel.package.clone(),
                    from: from.to_owned(),
                    to: entry.name.clone(),
                });
            }
        }
    }
    upgrades
}

/// The bundles from which an entry can be reached.
fn earlier<'e>(entry: &'e ChannelEntry, versions: &[(&'e str, Version)]) -> Vec<&'e str> {
    let range = VersionRange::parse(&entry.skip_range).ok();
    let in_range = versions.iter().filter_map(|(name, version)| {
        let inside = range.as_ref().is_some_and(|range| range.contains(version));
        inside.then_some(*name)
    });
    let named = entry.skips.iter().map(String::as_str).chain([entry.replaces.as_str()]);
    named
        .chain(in_range)
        .filter(|name| !name.is_empty() && *name != entry.name)
        .collect()
}

fn version_of(bundle: &Bundle) -> Option<Version> {
    let packages = property::parse(bundle).ok()?;
    Version::parse(&packages.first()?.version).ok()
}

/// The bundles by package and name, the first of each.
struct Bundles<'c> {
    given: BTreeMap<(&'c str, &'c str), &'c Given>,
    listed: BTreeMap<(&'c str, &'c str), &'c Bundle>,
}

impl<'c> Bundles<'c> {
    fn of(catalog: &'c Catalog, given: &'c [Given]) -> Self {
        // The last of equal keys stays.
        let given = given.iter().rev();
        let listed = catalog.bundles.iter().rev();
        Self {
            given: given
                .map(|given| ((given.bundle.package.as_str(), given.bundle.csv.name()), given))
                .collect(),
            listed: listed
                .map(|bundle| ((bundle.package.as_str(), bundle.name.as_str()), bundle))
                .collect(),
        }
    }

    /// The definitions of a bundle, or why they are not known.
    fn definitions(&self, package: &str, name: &str) -> Result<Definitions, String> {
        if let Some(given) = self.given.get(&(package, name)) {
            return Ok(given.definitions());
        }
        let bundle = self.listed.get(&(package, name));
        inline_definitions(bundle.ok_or_else(|| format!("{name} is not in the catalog"))?)
    }
}

impl Given {
    fn definitions(&self) -> Definitions {
        let below = |object: &Object| {
            let mut object = object.clone();
            object.path = format!("{}/{}", self.folder.trim_end_matches('/'), object.path);
            object
        };
        Definitions {
            objects: self.bundle.definitions.iter().map(below).collect(),
            blob: None,
        }
    }
}

/// The definitions among the manifests that the catalog has of a bundle.
fn inline_definitions(bundle: &Bundle) -> Result<Definitions, String> {
    let name = &bundle.name;
    let texts = objects::of(bundle);
    let provides_api = bundle.properties.iter().any(|property| property.kind == PROPERTY_GVK);
    if texts.is_empty() && provides_api {
        return Err(format!("the catalog has {name} without its CRDs"));
    }
    let file = bundle.origin.file.as_deref().map(|file| file.display().to_string());
    let file = file.unwrap_or_default();
    let mut definitions = Vec::new();
    for text in texts.iter().filter(|text| text.contains("CustomResourceDefinition")) {
        let read = olmv1::definitions(&file, text.as_bytes());
        definitions.extend(read.map_err(|error| format!("a CRD of {name} cannot be read: {}", error.message))?);
    }
    Ok(Definitions {
        objects: definitions,
        blob: Some(Position {
            line: u32::try_from(bundle.origin.line).unwrap_or(u32::MAX),
            column: 1,
        }),
    })
}

/// Two definitions of the same name, each with the number of its content.
type Pair = (usize, usize);

/// What makes a finding: package, later bundle, definition and problem.
type Key<'u> = (&'u str, &'u str, &'u str, String);

/// What blocks upgrades. Definitions of the same content are compared once, and a problem that several upgrades to a bundle share is one
/// finding.
fn findings(ends: &[(&Upgrade, &Definitions, &Definitions)]) -> Vec<Finding> {
    let mut contents: BTreeMap<String, usize> = BTreeMap::new();
    let mut numbers: BTreeMap<*const Object, usize> = BTreeMap::new();
    let mut number = |object: &Object| {
        *numbers.entry(std::ptr::from_ref(object)).or_insert_with(|| {
            let next = contents.len();
            *contents.entry(object.value.to_string()).or_insert(next)
        })
    };
    let mut pairs: BTreeMap<Pair, (&Value, &Value)> = BTreeMap::new();
    let mut changed = Vec::new();
    for (upgrade, old, new) in ends {
        for object in &new.objects {
            let Some(before) = old.objects.iter().find(|before| before.name() == object.name()) else {
                continue;
            };
            let pair = (number(before), number(object));
            if pair.0 != pair.1 {
                pairs.entry(pair).or_insert((&before.value, &object.value));
                changed.push((pair, *upgrade, (before, old.blob), (object, new.blob)));
            }
        }
    }
    let problems: BTreeMap<Pair, Vec<Problem>> = pairs
        .into_par_iter()
        .map(|(pair, (old, new))| (pair, upgrade::check(old, new, &upgrade::stored_versions(old))))
        .collect();
    let mut found: BTreeMap<Key<'_>, (Finding, Vec<&str>)> = BTreeMap::new();
    for (pair, upgrade, old, new) in changed {
        for problem in problems.get(&pair).into_iter().flatten() {
            let key = (
                upgrade.package.as_str(),
                upgrade.to.as_str(),
                new.0.name(),
                problem.to_string(),
            );
            let (_, from) = found
                .entry(key)
                .or_insert_with(|| (finding(problem, upgrade, old, new), Vec::new()));
            from.push(&upgrade.from);
        }
    }
    let named = found.into_values().map(|(mut finding, from)| {
        finding.message = format!("{} (upgrade from {})", finding.message, from.join(", "));
        finding
    });
    named.collect()
}

fn finding(
    problem: &Problem,
    upgrade: &Upgrade,
    old: (&Object, Option<Position>),
    new: (&Object, Option<Position>),
) -> Finding {
    let (object, blob) = match problem.side {
        Side::New => new,
        Side::Old => old,
    };
    let place = object.place(&problem.pointer);
    let mut finding = Finding::new(&V1_13, V1_13.severity, problem.to_string())
        .object(format!("{}: CustomResourceDefinition/{}", upgrade.to, new.0.name()))
        .path(json_path(&problem.pointer))
        .hint(hint_to_change_back(&upgrade.from));
    if !place.file.is_empty() {
        finding = finding.file(&place.file);
    }
    finding.position = blob.or(place.position);
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::load::Tree;
    use crate::catalog::load;

    fn definition(maximum: u32) -> String {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.example.com}}\n\
             spec:\n  group: example.com\n  names: {{kind: A, plural: as}}\n  scope: Namespaced\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
             size: {{type: integer, maximum: {maximum}}}\n"
        )
    }

    /// A bundle of package p, with its definition or without.
    fn bundle(number: u32, maximum: Option<u32>) -> String {
        let object = maximum.map(|maximum| {
            let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, definition(maximum));
            format!(",{{\"type\":\"olm.bundle.object\",\"value\":{{\"data\":\"{encoded}\"}}}}")
        });
        format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v{number}\",\"image\":\"r.io/p:v{number}\",\"properties\":[\
             {{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"{number}.0.0\"}}}},\
             {{\"type\":\"olm.gvk\",\"value\":{{\"group\":\"example.com\",\"kind\":\"A\",\"version\":\"v1\"}}}}{}]}}",
            object.unwrap_or_default()
        )
    }

    fn catalog(entries: &str, bundles: &[String]) -> Catalog {
        let head = format!(
            "{{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}}\
             {{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":{entries}}}"
        );
        let text = head + &bundles.concat();
        load::text(&text).unwrap().into_iter().collect()
    }

    const ENTRIES: &str = r#"[{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1"},
        {"name":"p.v3","replaces":"p.v2","skipRange":"<3.0.0"},{"name":"p.v4","replaces":"p.v3","skips":["p.v0"]}]"#;

    #[test]
    fn each_edge_is_compared_and_a_problem_of_several_is_one_finding() {
        let bundles = [
            bundle(1, Some(9)),
            bundle(2, Some(9)),
            bundle(3, Some(5)),
            bundle(4, Some(7)),
        ];
        let safety = check(&catalog(ENTRIES, &bundles), &[]);
        let found: Vec<(&str, &str)> = safety
            .findings
            .iter()
            .map(|finding| (finding.rule, finding.message.as_str()))
            .collect();
        assert_eq!(
            found,
            [(
                "V1-13",
                "v1: ^.size: maximum: maximum decreased : 9 -> 5 (upgrade from p.v1, p.v2)"
            )],
            "{safety:#?}"
        );
        assert_eq!(safety.compared, 4);
        let missing: Vec<String> = safety
            .not_compared
            .iter()
            .map(|(upgrade, reason)| format!("{} -> {}: {reason}", upgrade.from, upgrade.to))
            .collect();
        assert_eq!(missing, ["p.v0 -> p.v4: p.v0 is not in the catalog"]);
    }

    #[test]
    fn bundles_of_directories_stand_for_definitions_that_the_catalog_lacks() {
        let bundles = [bundle(1, Some(9)), bundle(2, None)];
        let catalog = catalog(r#"[{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1"}]"#, &bundles);
        let safety = check(&catalog, &[]);
        assert_eq!((safety.compared, safety.findings.len()), (0, 0));
        assert_eq!(safety.not_compared[0].1, "the catalog has p.v2 without its CRDs");

        let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: p\n";
        let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: p.v2}\n";
        let tree = Tree::from_files([
            ("metadata/annotations.yaml", annotations.as_bytes().to_vec()),
            ("manifests/csv.yaml", csv.as_bytes().to_vec()),
            ("manifests/crd.yaml", definition(5).into_bytes()),
        ]);
        let given = Given {
            folder: "bundles/v2/".to_owned(),
            bundle: olmv1::Bundle::read(&tree).unwrap(),
        };
        let safety = check(&catalog, &[given]);
        assert_eq!((safety.compared, safety.not_compared.len()), (1, 0));
        let [finding] = safety.findings.as_slice() else {
            panic!("{safety:#?}")
        };
        assert_eq!(
            finding.file.as_deref(),
            Some(std::path::Path::new("bundles/v2/manifests/crd.yaml"))
        );
        assert_eq!(finding.position.unwrap().line, 16);
    }
}
