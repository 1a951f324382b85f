//! BND: the bundle as a whole.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use serde_json::Value;

use super::checked::{Checked, Subject};
use super::context::{Context, Csv, field, items};
use super::options::Profile;
use crate::bundle::load::Entry;
use crate::bundle::{Bundle, Object};
use crate::diagnostics::{Origin, Severity, define_rules};
use crate::object::Reference;
use olmkit_go::strconv::quote;

define_rules! {
    BND_1 = {
        id: "BND-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "Each API version must be defined once.",
        why: "One definition would overwrite the other in the API server.",
        bad: "widgets.v1.yaml and widgets.v1beta1.yaml, both with version v1",
        good: "one CustomResourceDefinition with all versions",
        since: "0.1.0",
    }
    BND_2 = {
        id: "BND-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "Each owned API must have a CustomResourceDefinition in the bundle, with the same group, version and kind.",
        why: "OLM waits for each owned API's definition and fails the installation without it.",
        bad: "owned:\n- name: widgets.example.com\n  version: v2\n  kind: Widget   # the CRD has v1 only",
        good: "owned:\n- name: widgets.example.com\n  version: v1\n  kind: Widget",
        since: "0.1.0",
    }
    BND_3 = {
        id: "BND-3",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "At least one version of each CustomResourceDefinition in the bundle must be owned.",
        why: "OLM installs the definition without knowing that this operator serves it.",
        bad: "owned: []",
        good: "owned:\n- name: widgets.example.com\n  version: v1\n  kind: Widget",
        since: "0.1.0",
    }
    BND_4 = {
        id: "BND-4",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "A ServiceAccount in the bundle must not have the same name as a deployment's service account.",
        why: "OLM creates the service account itself. A second one with the same name collides with it.",
        bad: "kind: ServiceAccount\nmetadata: {name: manager}   # also serviceAccountName: manager",
        good: "remove the ServiceAccount: OLM creates it",
        since: "0.1.0",
    }
    BND_5 = {
        id: "BND-5",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "The bundle, with each file compressed and base64-encoded separately, must be at most 1 MiB.",
        why: "OLM unpacks the bundle into one ConfigMap, which cannot be larger than 1 MiB.",
        bad: "a CRD with descriptions of 10 MB",
        good: "controller-gen crd:maxDescLen=0",
        since: "0.1.0",
    }
    BND_6 = {
        id: "BND-6",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("bundle"),
        summary: "The bundle should be smaller than 85 % of the limit.",
        why: "The next version, with one more field in a schema, may no longer fit.",
        bad: "900 kB",
        good: "500 kB",
        since: "0.1.0",
    }
    BND_7 = {
        id: "BND-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "With `spec.release`, the name must be `<package>-v<version>-<release>` (profile api-0.45).",
        why: "A version's releases need different names, and opm accepts only this form.",
        bad: "name: demo.v1.0.0",
        good: "name: demo-v1.0.0-1",
        since: "0.1.0",
    }
    BND_8 = {
        id: "BND-8",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "Each related image must name an image (profile api-0.45).",
        why: "An entry without an image cannot be mirrored.",
        bad: "relatedImages:\n- name: a",
        good: "relatedImages:\n- name: a\n  image: quay.io/x/a:1",
        since: "0.1.0",
    }
    BND_9 = {
        id: "BND-9",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle"),
        summary: "Each related image must be a valid reference (profile api-0.45).",
        why: "Mirroring tools cannot pull an image by an invalid reference.",
        bad: "image: https://quay.io/x/a",
        good: "image: quay.io/x/a:1",
        since: "0.1.0",
    }
}

/// Maximum bytes of a bundle, compressed file by file and in base64, as OLM stores it in a ConfigMap.
pub const MOST_COMPRESSED_BYTES: u64 = 1 << 20;

/// Group, version and kind of one served API.
type Key = (String, String, String);

/// Checks the bundle.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = owned_crds(context.bundle, &csv);
    findings.extend(service_accounts(context.bundle, &csv));
    findings.extend(size(context.bundle));
    if context.options.profile == Profile::Api045 {
        findings.extend(release(context.bundle, &csv));
        findings.extend(related_images(&csv));
    }
    findings
}

/// A group, version and kind as Go prints them.
pub(super) fn show(key: &Key) -> String {
    format!("{}/{}, Kind={}", key.0, key.1, key.2)
}

/// The group of an owned CRD: the part after the first dot of its name.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, group)| group)
}

/// The APIs of one CRD with the position of each version's name.
pub(super) fn crd_keys(object: &Object) -> Vec<(Key, String)> {
    let Some(crd) = &object.typed else { return Vec::new() };
    let text = |pointer: &str| {
        crd.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    };
    let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
    let versions = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if versions.is_empty() && object.version() == "v1beta1" {
        return vec![((group, text("/spec/version"), kind), "/spec/version".to_string())];
    }
    let key = |version: &Value| (group.clone(), field(version, "name").to_string(), kind.clone());
    versions
        .iter()
        .enumerate()
        .map(|(at, version)| (key(version), format!("/spec/versions/{at}/name")))
        .collect()
}

fn owned_crds(bundle: &Bundle, csv: &Csv<'_>) -> Vec<Checked> {
    let error =
        |detail: String, key: &Key, rule| Checked::shared(rule, Severity::Error, &Subject::Value(show(key)), detail);
    let mut findings = Vec::new();
    let mut keys: Vec<(Key, &Object, String)> = Vec::new();
    let mut first_of: HashMap<Key, &Object> = HashMap::new();
    // The v1 CRDs come first.
    for version in ["v1", "v1beta1"] {
        for crd in bundle.crds().filter(|crd| crd.version() == version) {
            for (key, pointer) in crd_keys(crd) {
                if let Some(first) = first_of.get(&key) {
                    let detail = format!("duplicate CRD {} in bundle {}", quote(&show(&key)), quote(&bundle.name));
                    let hint = if first.path == crd.path {
                        "list each version once".to_string()
                    } else {
                        format!("{} defines it too: remove one of the two files", first.path)
                    };
                    findings.push(error(detail, &key, &BND_1).at(crd, &pointer).hint(hint));
                } else {
                    first_of.insert(key.clone(), crd);
                    keys.push((key, crd, pointer));
                }
            }
        }
    }
    let nearest = Nearest::new(keys.iter().map(|(key, _, _)| key));
    let mut owned_kinds = BTreeSet::new();
    let mut left: BTreeSet<Key> = keys.iter().map(|(key, _, _)| key.clone()).collect();
    for (at, owned) in csv.list("/spec/customresourcedefinitions/owned").iter().enumerate() {
        let key = (
            group_of(field(owned, "name")).to_string(),
            field(owned, "version").to_string(),
            field(owned, "kind").to_string(),
        );
        if left.remove(&key) {
            owned_kinds.insert((key.0, key.2));
            continue;
        }
        let detail = format!(
            "owned CRD {} not found in bundle {}",
            quote(&show(&key)),
            quote(&bundle.name)
        );
        let pointer = format!("/spec/customresourcedefinitions/owned/{at}");
        findings.push(
            error(detail, &key, &BND_2)
                .at(csv.object, &pointer)
                .hint(missing_owned_hint(&key, nearest.find(&key).and_then(|at| keys.get(at)))),
        );
    }
    left.retain(|key| !owned_kinds.contains(&(key.0.clone(), key.2.clone())));
    for (key, crd, pointer) in keys.iter().filter(|(key, _, _)| left.contains(key)) {
        let detail = format!(
            "CRD {} is present in bundle {} but not defined in CSV",
            quote(&show(key)),
            quote(&bundle.name)
        );
        let hint =
            "list it under spec.customresourcedefinitions.owned of the ClusterServiceVersion, or leave the file out";
        findings.push(error(detail, key, &BND_3).at(crd, pointer).hint(hint));
    }
    findings
}

/// Finds the API that differs least from another one.
struct Nearest<'k> {
    /// The last API with some equal parts. Parts that may differ are `None`.
    by_parts: HashMap<[Option<&'k str>; 3], usize>,
}

/// The parts of group, version and kind that must be equal: as many as possible.
const EQUAL: [[bool; 3]; 8] = [
    [true, true, true],
    [true, true, false],
    [true, false, true],
    [false, true, true],
    [true, false, false],
    [false, true, false],
    [false, false, true],
    [false, false, false],
];

fn parts<'k>(key: &'k Key, equal: [bool; 3]) -> [Option<&'k str>; 3] {
    let parts: [&'k str; 3] = [&key.0, &key.1, &key.2];
    std::array::from_fn(|at| {
        equal
            .get(at)
            .copied()
            .unwrap_or_default()
            .then(|| parts.get(at).copied().unwrap_or_default())
    })
}

impl<'k> Nearest<'k> {
    fn new(keys: impl IntoIterator<Item = &'k Key>) -> Self {
        let mut by_parts = HashMap::new();
        for (at, key) in keys.into_iter().enumerate() {
            for equal in EQUAL {
                by_parts.insert(parts(key, equal), at);
            }
        }
        Self { by_parts }
    }

    /// The last one of those with the most equal parts.
    fn find(&self, key: &Key) -> Option<usize> {
        let found = EQUAL.into_iter().filter_map(|equal| {
            let at = *self.by_parts.get(&parts(key, equal))?;
            Some((equal.into_iter().filter(|equal| *equal).count(), at))
        });
        found.max().map(|(_, at)| at)
    }
}

/// Names the part of group, version and kind that differs from the bundle's CRDs.
fn missing_owned_hint(key: &Key, nearest: Option<&(Key, &Object, String)>) -> String {
    let Some((known, crd, _)) = nearest else {
        return "the bundle contains no CustomResourceDefinition: add the file of this one".to_string();
    };
    if known == key {
        return "the entry is there twice: remove one".to_string();
    }
    let mut differences = Vec::new();
    for (what, wanted, have) in [
        ("group", &key.0, &known.0),
        ("version", &key.1, &known.1),
        ("kind", &key.2, &known.2),
    ] {
        if wanted != have {
            differences.push(format!("{what} {have:?} instead of {wanted:?}"));
        }
    }
    format!("the nearest one, in {}, has {}", crd.path, differences.join(" and "))
}

fn service_accounts(bundle: &Bundle, csv: &Csv<'_>) -> Vec<Checked> {
    let used: BTreeSet<&str> = csv
        .deployments()
        .iter()
        .map(|deployment| {
            deployment
                .pointer("/spec/template/spec/serviceAccountName")
                .and_then(Value::as_str)
                .unwrap_or_default()
        })
        .collect();
    let accounts = bundle
        .objects
        .iter()
        .filter(|object| object.kind() == "ServiceAccount" && object.api_version() == "v1");
    accounts
        .filter(|account| used.contains(account.name()))
        .map(|account| {
            let name = account.name();
            let detail = format!(
                "invalid service account found in bundle. This service account {name} in your bundle is not valid, because a service \
                 account with the same name was already specified in your CSV. If this was unintentional, please remove the service \
                 account manifest from your bundle. If it was intentional to specify a separate service account, please rename the SA \
                 in either the bundle manifest or the CSV."
            );
            let subject = Subject::Value(name.to_string());
            Checked::shared(&BND_4, Severity::Error, &subject, detail)
                .at(account, "/metadata/name")
                .hint("OLM makes the service accounts that the deployments name: remove this file")
        })
        .collect()
}

fn size(bundle: &Bundle) -> Vec<Checked> {
    let files: Vec<(String, &[u8])> = bundle
        .tree
        .walk(&bundle.manifests_dir)
        .filter_map(|(path, entry)| match entry {
            Entry::File(bytes) => Some((path, bytes.as_slice())),
            _ => None,
        })
        .collect();
    let uncompressed: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let warn_above = MOST_COMPRESSED_BYTES * 85 / 100;
    // Compression cannot add more than a few bytes, so that small bundles need none.
    let bound: u64 = files
        .iter()
        .map(|(_, bytes)| in_base64(bytes.len() as u64 + bytes.len() as u64 / 1000 + 64))
        .sum();
    if bound <= warn_above {
        return Vec::new();
    }
    // Nor can the default level do worse than the fastest, which is several times as quick.
    if compressed_size(&files, Compression::fast()) <= warn_above {
        return Vec::new();
    }
    // About the size that Go's compressor writes: it differs by about 1 %.
    let compressed = compressed_size(&files, Compression::default());
    let sizes = format!(
        "size=~{} , max={}. Bundle uncompressed size is {}",
        in_units(compressed),
        in_units(MOST_COMPRESSED_BYTES),
        in_units(uncompressed)
    );
    let subject = Subject::Value(bundle.name.clone());
    let largest = files
        .iter()
        .max_by_key(|(_, bytes)| bytes.len())
        .map(|(path, bytes)| (path, bytes.len() as u64));
    let hint = largest.map_or_else(String::new, |(path, size)| {
        format!(
            "the largest file is {path} with {}; descriptions can be left out of CustomResourceDefinitions",
            in_units(size)
        )
    });
    let checked = if compressed > MOST_COMPRESSED_BYTES {
        let detail = format!("maximum bundle compressed size with gzip size exceeded: {sizes}");
        Checked::shared(&BND_5, Severity::Error, &subject, detail)
    } else if compressed as f64 > MOST_COMPRESSED_BYTES as f64 * 0.85 {
        Checked::shared(
            &BND_6,
            Severity::Warning,
            &subject,
            format!("nearing maximum bundle compressed size with gzip: {sizes}"),
        )
    } else {
        return Vec::new();
    };
    vec![checked.in_file(&bundle.manifests_dir).hint(hint)]
}

/// Bytes of the files, each compressed separately and encoded in base64.
fn compressed_size(files: &[(String, &[u8])], level: Compression) -> u64 {
    files
        .par_iter()
        .map(|(_, bytes)| in_base64(gzip_size(bytes, level)))
        .sum()
}

fn in_base64(bytes: u64) -> u64 {
    bytes.div_ceil(3) * 4
}

fn gzip_size(bytes: &[u8], level: Compression) -> u64 {
    let mut encoder = GzEncoder::new(Counter(0), level);
    // Counting never fails.
    let _ = encoder.write_all(bytes);
    encoder.finish().map_or(0, |counter| counter.0)
}

/// Counts the written bytes.
struct Counter(u64);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A number of bytes in decimal units with one digit after the point.
pub(super) fn in_units(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut units = ["kB", "MB", "GB", "TB"].iter();
    let mut unit = units.next().copied().unwrap_or_default();
    let mut rest = bytes / 1000;
    for next in units {
        if rest < 1000 {
            break;
        }
        rest /= 1000;
        value /= 1000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

fn release(bundle: &Bundle, csv: &Csv<'_>) -> Option<Checked> {
    let release = csv
        .object
        .value
        .pointer("/spec/release")
        .and_then(Value::as_str)
        .filter(|release| !release.is_empty())?;
    // The package is not known where the rule runs, so every bundle with a release fails it.
    let expected = format!("-v{}-{release}", csv.text("/spec/version"));
    if bundle.name == expected {
        return None;
    }
    let detail = format!(
        "bundle name with release versioning {} does not match expected name {}",
        quote(&bundle.name),
        quote(&expected)
    );
    let subject = Subject::Value(bundle.name.clone());
    Some(Checked::shared(&BND_7, Severity::Error, &subject, detail).at(csv.object, "/spec/release"))
}

fn related_images(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for (at, related) in items(csv.get("/spec"), "relatedImages").iter().enumerate() {
        let image = field(related, "image");
        let pointer = format!("/spec/relatedImages/{at}/image");
        let subject = Subject::Value(format!("spec.relatedImages[{at}].image"));
        if image.is_empty() {
            let detail = format!("relatedImages[{at}] has an empty image field");
            findings.push(Checked::shared(&BND_8, Severity::Error, &subject, detail).at(csv.object, &pointer));
        } else if let Err(reason) = Reference::parse_normalized(image) {
            let detail = format!(
                "relatedImages[{at}] has an invalid image pullspec {}: {reason}",
                quote(image)
            );
            findings.push(Checked::shared(&BND_9, Severity::Error, &subject, detail).at(csv.object, &pointer));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_decimal_units() {
        assert_eq!(in_units(999), "999 B");
        assert_eq!(in_units(1 << 20), "1.0 MB");
        assert_eq!(in_units(922_700), "922.7 kB");
    }

    #[test]
    fn the_nearest_api_has_the_most_equal_parts() {
        let key = |number: usize| -> Key {
            let part = |divisor: usize| (number / divisor % 3).to_string();
            (part(1), part(3), part(9))
        };
        let equal = |one: &Key, other: &Key| {
            usize::from(one.0 == other.0) + usize::from(one.1 == other.1) + usize::from(one.2 == other.2)
        };
        for step in 1..27 {
            let keys: Vec<Key> = (0..27).step_by(step).map(|number| key(number * 7)).collect();
            let nearest = Nearest::new(&keys);
            for wanted in (0..27).map(key) {
                let expected = keys.iter().enumerate().max_by_key(|(_, known)| equal(known, &wanted));
                assert_eq!(nearest.find(&wanted), expected.map(|(at, _)| at));
            }
        }
        assert_eq!(Nearest::new([]).find(&key(0)), None);
    }
}
