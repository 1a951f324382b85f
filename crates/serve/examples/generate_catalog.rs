//! Writes a large file-based catalog with the variety of real ones, for benchmarks:
//! `generate_catalog DIRECTORY PACKAGES SEED`.
//!
//! Varies, with the proportions of public catalogs: bundles per package (median 6, at most 85), bytes per bundle (3 kB
//! to 400 kB, median about 20 kB), channels (mostly a few, at most 14) with all versions or those up to one, graph
//! shapes (chains, skips, skip ranges), icons (none to 100 kB), descriptors, related images, and packages with complete
//! manifests or only `olm.csv.metadata`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, packages, seed] = arguments.as_slice() else {
        return Err("usage: generate_catalog DIRECTORY PACKAGES SEED".into());
    };
    let mut random = StdRng::seed_from_u64(seed.parse()?);
    let (mut bytes, mut bundles) = (0, 0);
    for number in 0..packages.parse::<usize>()? {
        let name = format!("{}-operator-{number}", word(&mut random));
        let (text, count) = package(&mut random, &name)?;
        bytes += text.len();
        bundles += count;
        let folder = Path::new(directory).join(&name);
        std::fs::create_dir_all(&folder)?;
        std::fs::File::create(folder.join("catalog.yaml"))?.write_all(text.as_bytes())?;
    }
    println!("packages {packages}, bundles {bundles}, bytes {bytes}, seed {seed}");
    Ok(())
}

const WORDS: &[&str] = &[
    "cache", "queue", "mesh", "vault", "ledger", "stream", "metric", "tracer", "router", "shard", "beacon", "forge",
    "harbor", "anchor", "ember", "quartz", "falcon", "meadow", "signal", "cipher",
];

fn word(random: &mut StdRng) -> &'static str {
    WORDS
        .get(random.random_range(0..WORDS.len()))
        .copied()
        .unwrap_or("word")
}

fn sentence(random: &mut StdRng, words: usize) -> String {
    let words: Vec<&str> = (0..words).map(|_| word(random)).collect();
    let mut text = words.join(" ");
    text.push('.');
    text
}

fn noise(random: &mut StdRng, length: usize) -> String {
    let bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn digest(random: &mut StdRng) -> String {
    (0..32).map(|_| format!("{:02x}", random.random::<u8>())).collect()
}

/// Relative size of a package's metadata: most differ by some factor, few by ten.
#[derive(Clone, Copy)]
struct Scale(f64);

impl Scale {
    fn any(random: &mut StdRng) -> Self {
        let (least, most) = (0.1_f64.ln(), 4.0_f64.ln());
        Scale((least + (most - least) * random.random::<f64>()).exp())
    }

    /// A number up to `most` for a package of middle size, at least 1.
    fn up_to(self, random: &mut StdRng, most: usize) -> usize {
        1 + (self.0 * random.random_range(0..most) as f64) as usize
    }
}

/// One package as YAML, and its number of bundles.
fn package(random: &mut StdRng, name: &str) -> Result<(String, usize), olmkit::yaml::Error> {
    // Skewed as in reality: most have a few bundles, some have dozens.
    let skew: f64 = random.random();
    let count = (1.0 + 78.0 * skew.powi(8)) as usize + random.random_range(0..7);
    let scale = Scale::any(random);
    let mut blobs = Vec::new();
    let mut package = json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"});
    if random.random_bool(0.85) {
        let size = (500.0 + 75_000.0 * random.random::<f64>().powi(3)) as usize;
        set(
            &mut package,
            "icon",
            json!({"base64data": noise(random, size), "mediatype": "image/png"}),
        );
    }
    if random.random_bool(0.2) {
        set(&mut package, "description", sentence(random, 40).into());
    }
    blobs.push(package);
    let versions: Vec<String> = (0..count)
        .map(|index| format!("{}.{}.{}", 1 + index / 20, index / 4 % 5, index % 4))
        .collect();
    let bundle_name = |version: &str| format!("{name}.v{version}");
    let shape = random.random_range(0..3);
    let entries = |versions: &[String]| -> Vec<Value> {
        let entry = |(index, version): (usize, &String)| {
            let mut entry = json!({"name": bundle_name(version)});
            let last = index.checked_sub(1).and_then(|last| versions.get(last));
            if let Some(last) = last {
                set(&mut entry, "replaces", bundle_name(last).into());
                if shape == 2 {
                    set(&mut entry, "skipRange", format!(">=1.0.0 <{version}").into());
                }
            }
            if shape == 1 && index + 1 == versions.len() && index > 2 {
                let skips: Vec<String> = versions
                    .iter()
                    .take(index - 1)
                    .map(|version| bundle_name(version))
                    .collect();
                set(&mut entry, "skips", skips.into());
            }
            entry
        };
        versions.iter().enumerate().map(entry).collect()
    };
    let channels = 1 + (14.0 * random.random::<f64>().powi(4)) as usize;
    for number in 0..channels {
        // The first channel has all versions. The others often end at an earlier one, as channels of minor versions do.
        let (channel, held) = match number {
            0 => ("stable".to_owned(), count),
            1 => ("candidate".to_owned(), count),
            number => (format!("v1.{number}"), random.random_range(1..=count)),
        };
        let entries = entries(&versions[..held]);
        blobs.push(json!({"schema": "olm.channel", "package": name, "name": channel, "entries": entries}));
    }
    let whole = random.random_bool(0.25);
    for version in &versions {
        blobs.push(bundle(random, scale, name, &bundle_name(version), version, whole));
    }
    let mut text = String::new();
    for blob in &blobs {
        text.push_str("---\n");
        text.push_str(&olmkit::yaml::to_string(blob)?);
    }
    Ok((text, count))
}

fn set(value: &mut Value, key: &str, inner: Value) {
    if let Some(map) = value.as_object_mut() {
        map.insert(key.to_owned(), inner);
    }
}

fn bundle(random: &mut StdRng, scale: Scale, package: &str, name: &str, version: &str, whole: bool) -> Value {
    let kinds = random.random_range(1..6);
    let gvk = |index: usize| json!({"group": format!("{package}.example.com"), "kind": format!("Kind{index}"), "version": "v1"});
    let mut properties: Vec<Value> = (0..kinds)
        .map(|index| json!({"type": "olm.gvk", "value": gvk(index)}))
        .collect();
    properties.push(json!({"type": "olm.package", "value": {"packageName": package, "version": version}}));
    let metadata = metadata(random, scale, package, kinds);
    if whole {
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": name, "annotations": metadata["annotations"]},
            "spec": {"version": version, "displayName": metadata["displayName"], "description": metadata["description"],
                "customresourcedefinitions": metadata["crdDescriptions"], "provider": metadata["provider"],
                "install": {"strategy": "deployment", "spec": {"deployments": []}}},
        });
        let mut objects = vec![csv];
        for index in 0..kinds {
            let fields: serde_json::Map<String, Value> = (0..scale.up_to(random, 140))
                .map(|field| {
                    (
                        format!("{}{field}", word(random)),
                        json!({"type": "string", "description": sentence(random, 12)}),
                    )
                })
                .collect();
            objects.push(json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("kind{index}s.{package}.example.com")},
                "spec": {"group": format!("{package}.example.com"), "names": {"kind": format!("Kind{index}"), "plural": format!("kind{index}s")},
                    "scope": "Namespaced", "versions": [{"name": "v1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}}}]},
            }));
        }
        for object in objects {
            let data = base64::engine::general_purpose::STANDARD.encode(object.to_string());
            properties.push(json!({"type": "olm.bundle.object", "value": {"data": data}}));
        }
    } else {
        properties.push(json!({"type": "olm.csv.metadata", "value": metadata}));
    }
    let image =
        |random: &mut StdRng, what: &str| format!("registry.example.com/{package}/{what}@sha256:{}", digest(random));
    let related: Vec<Value> = (0..scale.up_to(random, 20))
        .map(|index| json!({"name": format!("part-{index}"), "image": image(random, &format!("part-{index}"))}))
        .collect();
    json!({"schema": "olm.bundle", "package": package, "name": name, "image": image(random, "bundle"),
        "properties": properties, "relatedImages": related})
}

fn metadata(random: &mut StdRng, scale: Scale, package: &str, kinds: usize) -> Value {
    let mut examples = Vec::new();
    let owned: Vec<Value> = (0..kinds)
        .map(|index| {
            examples.push(json!({"apiVersion": format!("{package}.example.com/v1"), "kind": format!("Kind{index}"),
                "metadata": {"name": "example"}, "spec": {"size": index, "note": sentence(random, 20)}}));
            let descriptors: Vec<Value> = (0..scale.up_to(random, 22))
                .map(|field| json!({"path": format!("spec.{}{field}", word(random)), "displayName": sentence(random, 3),
                    "description": sentence(random, 15), "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:text"]}))
                .collect();
            json!({"name": format!("kind{index}s.{package}.example.com"), "version": "v1", "kind": format!("Kind{index}"),
                "displayName": sentence(random, 2), "description": sentence(random, 10), "specDescriptors": descriptors})
        })
        .collect();
    let description: Vec<String> = (0..scale.up_to(random, 45)).map(|_| sentence(random, 25)).collect();
    json!({
        "annotations": {"alm-examples": serde_json::to_string_pretty(&examples).unwrap_or_default(), "capabilities": "Full Lifecycle",
            "categories": "Database", "createdAt": "2024-05-01T10:00:00Z", "support": "Example"},
        "apiServiceDefinitions": {}, "crdDescriptions": {"owned": owned},
        "description": format!("## {}\n\n{}\n", sentence(random, 3), description.join("\n\n")),
        "displayName": sentence(random, 3), "maturity": "stable", "minKubeVersion": "1.25.0",
        "installModes": [{"type": "OwnNamespace", "supported": true}, {"type": "AllNamespaces", "supported": true}],
        "keywords": [word(random), word(random)], "provider": {"name": "Example", "url": "https://example.com"},
        "links": [{"name": "Documentation", "url": "https://example.com/docs"}],
        "maintainers": [{"name": "A", "email": "a@example.com"}],
    })
}
