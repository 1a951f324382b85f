//! `catalog validate --crd-safety`: checks if OLM v1 would allow each upgrade of a catalog. For every edge it compares
//! the CRDs of the two bundles (rule V1-13). The CRDs come from the catalog's inline manifests or from bundle
//! directories.
//!
//! A repository of thousands of bundles has gigabytes of CRDs. Packages are therefore compared one after the other, and of a package
//! each distinct CRD is kept once, compressed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rayon::prelude::*;
use serde_json::Value;
use sha2::Digest as _;

use super::olm_v1::{V1_13, hint_to_change_back};
use crate::bundle::load::{Limits, Tree};
use crate::catalog::model::PROPERTY_GVK;
use crate::catalog::{Bundle, Catalog, ChannelEntry, objects, property};
use crate::crd::upgrade::{self, Problem, Side};
use crate::diagnostics::{Finding, counted, json_path};
use crate::object::{Version, VersionRange};
use crate::olmv1::{self, ComparedValues, Object};
use crate::yaml::Position;

/// The rule of all findings.
pub const RULE: &str = V1_13.id;

/// A bundle directory in addition to the catalog. Its CRDs are read when its package is compared.
#[derive(Debug, Clone)]
pub struct Given {
    /// The directory.
    pub folder: String,
    /// The package of the bundle.
    pub package: String,
    /// The name of the bundle's ClusterServiceVersion.
    pub name: String,
}

/// The CRD changes in the upgrades of a catalog.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Safety {
    /// The changes that OLM v1 rejects. Edges of a package with the same change share a finding.
    pub findings: Vec<Finding>,
    /// Number of compared upgrade edges.
    pub compared: usize,
    /// The edges that were not compared, by package.
    pub not_compared: Vec<NotCompared>,
}

/// Upgrade edges of a package that were not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCompared {
    /// The package.
    pub package: String,
    /// Number of the package's edges that were not compared.
    pub edges: usize,
    /// Each reason with the number of its edges.
    pub reasons: BTreeMap<String, usize>,
}

/// An upgrade edge: the names of the earlier and the later bundle.
type Edge<'c> = (&'c str, &'c str);

/// Compares the CRDs of the bundles at both ends of each edge of a catalog.
#[must_use]
pub fn check(catalog: &Catalog, given: &[Given]) -> Safety {
    let bundles = Bundles::new(catalog, given);
    let mut safety = Safety::default();
    for (package, edges) in edges(catalog) {
        let compared = Package::read(package, &edges, &bundles);
        compared.compare(&edges, &bundles, &mut safety);
    }
    safety
}

/// The upgrade edges of each package, each edge once.
fn edges(catalog: &Catalog) -> BTreeMap<&str, BTreeSet<Edge<'_>>> {
    let mut versions: BTreeMap<&str, Vec<(&str, Version)>> = BTreeMap::new();
    for bundle in &catalog.bundles {
        if let Some(version) = version_of(bundle) {
            versions
                .entry(&bundle.package)
                .or_default()
                .push((&bundle.name, version));
        }
    }
    let mut edges: BTreeMap<&str, BTreeSet<Edge<'_>>> = BTreeMap::new();
    for channel in &catalog.channels {
        let known = versions.get(channel.package.as_str());
        let of_package = edges.entry(&channel.package).or_default();
        for entry in channel.entries() {
            for from in earlier(entry, known.map_or(&[], Vec::as_slice)) {
                of_package.insert((from, &entry.name));
            }
        }
    }
    edges
}

/// The bundles that can be upgraded to an entry.
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
    given: HashMap<(&'c str, &'c str), &'c Given>,
    listed: HashMap<(&'c str, &'c str), &'c Bundle>,
}

impl<'c> Bundles<'c> {
    fn new(catalog: &'c Catalog, given: &'c [Given]) -> Self {
        // The last of equal keys wins.
        let given = given.iter().rev();
        let listed = catalog.bundles.iter().rev();
        Self {
            given: given
                .map(|given| ((given.package.as_str(), given.name.as_str()), given))
                .collect(),
            listed: listed
                .map(|bundle| ((bundle.package.as_str(), bundle.name.as_str()), bundle))
                .collect(),
        }
    }

    /// The CRDs of a bundle, or the reason why they are unknown.
    fn definitions(&self, package: &str, name: &str) -> Result<Vec<Object>, String> {
        if let Some(given) = self.given.get(&(package, name)) {
            return given.definitions();
        }
        let bundle = self.listed.get(&(package, name));
        inline_definitions(bundle.ok_or_else(|| format!("{name} is not in the catalog"))?)
    }

    /// The position of the blob with a bundle's CRDs, unless they are files.
    fn blob(&self, package: &str, name: &str) -> Option<Position> {
        if self.given.contains_key(&(package, name)) {
            return None;
        }
        let bundle = self.listed.get(&(package, name))?;
        Some(Position {
            line: u32::try_from(bundle.origin.line).unwrap_or(u32::MAX),
            column: 1,
        })
    }
}

impl Given {
    fn definitions(&self) -> Result<Vec<Object>, String> {
        let failed = |error: String| format!("{} cannot be read: {error}", self.folder);
        let tree =
            Tree::from_dir(Path::new(&self.folder), Limits::default()).map_err(|error| failed(error.to_string()))?;
        let bundle = olmv1::Bundle::read_to_compare(&tree).map_err(|error| failed(error.message))?;
        let mut definitions = bundle.definitions;
        for object in &mut definitions {
            object.path = format!("{}/{}", self.folder.trim_end_matches('/'), object.path);
        }
        Ok(definitions)
    }
}

/// The CRDs among the inline manifests of a bundle.
fn inline_definitions(bundle: &Bundle) -> Result<Vec<Object>, String> {
    let name = &bundle.name;
    let texts = objects::inline(bundle);
    let provides_api = bundle.properties.iter().any(|property| property.kind == PROPERTY_GVK);
    if texts.is_empty() && provides_api {
        return Err(format!("the catalog has {name} without its CRDs"));
    }
    let file = bundle.origin.file.as_deref().map(|file| file.display().to_string());
    let file = file.unwrap_or_default();
    let (mut definitions, values) = (Vec::new(), ComparedValues::default());
    for text in texts.iter().filter(|text| text.contains("CustomResourceDefinition")) {
        let read = olmv1::definitions(&file, text.as_bytes(), &values);
        definitions.extend(read.map_err(|error| format!("a CRD of {name} cannot be read: {}", error.message))?);
    }
    Ok(definitions)
}

/// The number of a distinct CRD within a package.
type Number = usize;

/// The distinct CRDs of a package, compressed: an average one of 300 KB takes 15 KB.
#[derive(Default)]
struct Store {
    numbers: HashMap<[u8; 32], Number>,
    texts: Vec<Vec<u8>>,
}

impl Store {
    /// The number of a CRD, which is stored if it is new.
    fn number(store: &Mutex<Store>, value: &Value) -> Number {
        let text = value.to_string();
        let digest: [u8; 32] = sha2::Sha256::digest(&text).into();
        let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = lock().numbers.get(&digest) {
            return *number;
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        let mut store = lock();
        let next = store.texts.len();
        match store.numbers.entry(digest) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(next);
                store.texts.push(written.unwrap_or_default());
                next
            }
        }
    }

    fn value(&self, number: Number) -> Value {
        let stored = self.texts.get(number).map(Vec::as_slice).unwrap_or_default();
        serde_json::from_reader(DeflateDecoder::new(stored)).unwrap_or_default()
    }
}

/// The CRDs of a package.
struct Package<'c> {
    name: &'c str,
    /// The CRDs of each bundle by name.
    bundles: BTreeMap<&'c str, Result<BTreeMap<String, Number>, String>>,
    store: Store,
}

/// Edges with the same change to the same CRD.
struct Change<'c> {
    problem: Problem,
    edges: usize,
    /// The first edge.
    first: Edge<'c>,
}

impl<'c> Package<'c> {
    fn read(name: &'c str, edges: &BTreeSet<Edge<'c>>, bundles: &Bundles<'_>) -> Self {
        let wanted: BTreeSet<&str> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
        let store = Mutex::new(Store::default());
        let read = wanted.into_par_iter().map(|bundle| {
            let numbered = |definitions: Vec<Object>| {
                // Only the first CRD of a name counts, as for OLM.
                let mut numbers = BTreeMap::new();
                for object in definitions {
                    if let Entry::Vacant(place) = numbers.entry(object.name().to_owned()) {
                        place.insert(Store::number(&store, &object.value));
                    }
                }
                numbers
            };
            (bundle, bundles.definitions(name, bundle).map(numbered))
        });
        let bundles = read.collect();
        Package {
            name,
            bundles,
            store: store.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn compare(&self, edges: &BTreeSet<Edge<'c>>, bundles: &Bundles<'_>, safety: &mut Safety) {
        let mut not_compared = NotCompared {
            package: self.name.to_owned(),
            edges: 0,
            reasons: BTreeMap::new(),
        };
        // Later content, CRD and earlier content, with the number of edges and the first one.
        type Pairs<'a, 'c> = BTreeMap<(&'a str, Number), (usize, Edge<'c>)>;
        let mut pairs: BTreeMap<Number, Pairs<'_, 'c>> = BTreeMap::new();
        for (from, to) in edges {
            let (old, new) = match (self.bundles.get(from), self.bundles.get(to)) {
                (Some(Ok(old)), Some(Ok(new))) => (old, new),
                (Some(Err(reason)), _) | (_, Some(Err(reason))) => {
                    not_compared.edges += 1;
                    *not_compared.reasons.entry(reason.clone()).or_default() += 1;
                    continue;
                }
                _ => continue,
            };
            safety.compared += 1;
            for (crd, later) in new {
                if let Some(earlier) = old.get(crd).filter(|earlier| *earlier != later) {
                    let pairs = pairs.entry(*later).or_default();
                    pairs.entry((crd.as_str(), *earlier)).or_insert((0, (*from, *to))).0 += 1;
                }
            }
        }
        if not_compared.edges > 0 {
            safety.not_compared.push(not_compared);
        }
        let changes: Mutex<BTreeMap<(&str, String), Change<'c>>> = Mutex::default();
        pairs.into_par_iter().for_each(|(later, earlier)| {
            let new = self.store.value(later);
            for ((crd, earlier), (count, first)) in earlier {
                let old = self.store.value(earlier);
                let problems = upgrade::check(&old, &new, &upgrade::stored_versions(&old));
                let problems = problems.unwrap_or_else(|error| vec![error.problem()]);
                for problem in problems {
                    let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
                    match changes.entry((crd, problem.to_string())) {
                        Entry::Vacant(place) => {
                            let edges = count;
                            place.insert(Change { problem, edges, first });
                        }
                        Entry::Occupied(mut known) => {
                            let known = known.get_mut();
                            known.edges += count;
                            // The result must not depend on the order of the threads.
                            if first < known.first {
                                (known.first, known.problem) = (first, problem);
                            }
                        }
                    }
                }
            }
        });
        let changes = changes.into_inner().unwrap_or_else(PoisonError::into_inner);
        safety.findings.extend(self.findings(changes, bundles));
    }

    /// A finding for each change. The places are looked up in the files again, one bundle at a time.
    fn findings(&self, changes: BTreeMap<(&str, String), Change<'c>>, bundles: &Bundles<'_>) -> Vec<Finding> {
        let mut by_bundle: BTreeMap<&str, Vec<(&str, Change<'c>)>> = BTreeMap::new();
        for ((crd, _), change) in changes {
            let place = match change.problem.side {
                Side::Old => change.first.0,
                Side::New => change.first.1,
            };
            by_bundle.entry(place).or_default().push((crd, change));
        }
        let mut findings = Vec::new();
        for (bundle, changes) in by_bundle {
            let definitions = bundles.definitions(self.name, bundle).unwrap_or_default();
            let blob = bundles.blob(self.name, bundle);
            for (crd, change) in changes {
                let object = definitions.iter().find(|object| object.name() == crd);
                findings.push(self.finding(crd, &change, object, blob));
            }
        }
        findings
    }

    fn finding(&self, crd: &str, change: &Change<'_>, object: Option<&Object>, blob: Option<Position>) -> Finding {
        let Change { problem, edges, first } = change;
        let (from, to) = first;
        let upgrades = match edges {
            1 => format!("upgrade from {from} to {to}"),
            more => format!("{} in {}, first {from} to {to}", counted(*more, "upgrade"), self.name),
        };
        let mut finding = Finding::new(&V1_13, V1_13.severity, format!("{problem} ({upgrades})"))
            .object(format!("{}: CustomResourceDefinition/{crd}", self.name))
            .path(json_path(&problem.pointer))
            .hint(hint_to_change_back(from));
        if let Some(object) = object {
            let place = object.place(&problem.pointer);
            if !place.file.is_empty() {
                finding = finding.file(&place.file);
            }
            finding.position = blob.or(place.position);
        }
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn edges_of_a_package_that_make_the_same_change_are_one_finding() {
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
                "v1: ^.size: maximum: maximum decreased : 9 -> 5 (2 upgrades in p, first p.v1 to p.v3)"
            )],
            "{safety:#?}"
        );
        assert_eq!(safety.compared, 4);
        assert_eq!(
            safety.not_compared,
            [NotCompared {
                package: "p".to_owned(),
                edges: 1,
                reasons: BTreeMap::from([("p.v0 is not in the catalog".to_owned(), 1)]),
            }]
        );
    }

    #[test]
    fn bundles_of_directories_stand_for_definitions_that_the_catalog_lacks() {
        let bundles = [bundle(1, Some(9)), bundle(2, None)];
        let catalog = catalog(r#"[{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1"}]"#, &bundles);
        let safety = check(&catalog, &[]);
        assert_eq!((safety.compared, safety.findings.len()), (0, 0));
        assert_eq!(
            safety.not_compared[0].reasons,
            BTreeMap::from([("the catalog has p.v2 without its CRDs".to_owned(), 1)])
        );

        let directory = tempfile::tempdir().unwrap();
        let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: p\n";
        let csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: p.v2}\n";
        for (path, text) in [
            ("metadata/annotations.yaml", annotations),
            ("manifests/csv.yaml", csv),
            ("manifests/crd.yaml", &definition(5)),
        ] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let given = Given {
            folder: format!("{}/", directory.path().display()),
            package: "p".to_owned(),
            name: "p.v2".to_owned(),
        };
        let safety = check(&catalog, &[given]);
        assert_eq!((safety.compared, safety.not_compared.len()), (1, 0));
        let [finding] = safety.findings.as_slice() else {
            panic!("{safety:#?}")
        };
        assert_eq!(
            finding.message,
            "v1: ^.size: maximum: maximum decreased : 9 -> 5 (upgrade from p.v1 to p.v2)"
        );
        assert_eq!(
            finding.file.as_deref(),
            Some(directory.path().join("manifests/crd.yaml").as_path())
        );
        assert_eq!(finding.position.unwrap().line, 16);
    }
}
