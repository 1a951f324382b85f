//! Software bills of materials for Rust programs: `Cargo.lock` becomes an SPDX 2.3 document.
//!
//! `Cargo.lock` does not distinguish dependencies of the program from those of its tests and build scripts, so the document
//! may list more than the binary contains, never less.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::build::timestamp;
use super::digest;
use super::error::Error;
use super::read::read_limited;

/// Dependencies of all packages together. The largest public programs have some 10,000.
const MOST_DEPENDENCIES: usize = 100_000;

/// Tables of a lock file.
const MOST_TABLES: usize = 100_000;

/// The largest `[[package]]` table, in bytes. The TOML parser needs about 30 times the size of a table.
const PACKAGE_BYTES: usize = 1 << 20;

/// A `Cargo.lock`.
struct Lock {
    package: Vec<Package>,
}

impl Lock {
    /// Parses a lock file table by table. Parsing the whole file at once would take 30 times its size.
    fn parse(text: &str) -> Result<Self, String> {
        let mut lock = Self { package: Vec::new() };
        let mut dependencies = 0;
        for (number, table) in tables(text).enumerate() {
            if number >= MOST_TABLES {
                return Err(format!("it has more than {MOST_TABLES} tables"));
            }
            if table.text.len() > PACKAGE_BYTES {
                return Err(format!(
                    "the table in line {} has more than {PACKAGE_BYTES} bytes",
                    table.line
                ));
            }
            let parsed: Table = toml::from_str(table.text)
                .map_err(|error| format!("the table in line {} is invalid: {}", table.line, error.message()))?;
            for package in parsed.package {
                dependencies += package.dependencies.len();
                if dependencies > MOST_DEPENDENCIES {
                    return Err(format!("its packages have more than {MOST_DEPENDENCIES} dependencies"));
                }
                lock.package.push(package);
            }
        }
        Ok(lock)
    }
}

/// One table of a `Cargo.lock`: a package, or a table without one.
#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    package: Vec<Package>,
}

/// The text of a table.
struct TableText<'t> {
    /// The line of its header.
    line: usize,
    text: &'t str,
}

/// Splits a lock file before each line that begins with a table header. Cargo writes no multi-line strings and indents the items
/// of arrays, so other lines do not begin with an opening bracket.
fn tables(text: &str) -> impl Iterator<Item = TableText<'_>> {
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    let mut at = 0;
    std::iter::from_fn(move || {
        let (number, first) = lines.next()?;
        let start = at;
        at += first.len();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim_start().starts_with('[')) {
            at += line.len();
        }
        Some(TableText {
            line: number + 1,
            text: text.get(start..at)?,
        })
    })
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Package {
    fn key(&self) -> (String, String) {
        (self.name.clone(), self.version.clone())
    }

    fn id(&self) -> String {
        let clean = |text: &str| -> String {
            text.chars()
                .map(|letter| {
                    if letter.is_ascii_alphanumeric() || letter == '.' {
                        letter
                    } else {
                        '-'
                    }
                })
                .collect()
        };
        format!("SPDXRef-{}-{}", clean(&self.name), clean(&self.version))
    }

    fn spdx(&self) -> Value {
        let from_registry = self
            .source
            .as_deref()
            .is_some_and(|source| source.starts_with("registry+"));
        let download = match &self.source {
            Some(_) if from_registry => format!(
                "https://crates.io/api/v1/crates/{}/{}/download",
                self.name, self.version
            ),
            Some(source) => source.clone(),
            None => "NOASSERTION".to_owned(),
        };
        let mut package = json!({
            "SPDXID": self.id(),
            "name": self.name,
            "versionInfo": self.version,
            "downloadLocation": download,
            "filesAnalyzed": false,
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": format!("pkg:cargo/{}@{}", self.name, self.version),
            }],
        });
        if let (Some(checksum), Some(object)) = (&self.checksum, package.as_object_mut()) {
            let checksums = json!([{"algorithm": "SHA256", "checksumValue": checksum}]);
            object.insert("checksums".to_owned(), checksums);
        }
        package
    }
}

/// The SPDX document for a package of a `Cargo.lock` and everything it depends on. `time` is in seconds since 1970.
pub fn spdx(lock: &Path, package: &str, time: u64) -> Result<Vec<u8>, Error> {
    let bytes = read_limited(lock, super::limits::LOCK_FILE_BYTES)?;
    let refused = |reason: String| Error::Refused {
        what: lock.display().to_string(),
        reason,
    };
    let text = std::str::from_utf8(&bytes).map_err(|error| refused(error.to_string()))?;
    let document = Lock::parse(text).map_err(refused)?;
    let root = document
        .package
        .iter()
        .find(|candidate| candidate.name == package && candidate.source.is_none())
        .or_else(|| document.package.iter().find(|candidate| candidate.name == package))
        .ok_or_else(|| refused(format!("it has no package {package:?}")))?;
    let (packages, edges) = reachable(&document, root).map_err(refused)?;
    let relationships: Vec<Value> = std::iter::once(relation("SPDXRef-DOCUMENT", "DESCRIBES", &root.id()))
        .chain(edges.iter().map(|(from, to)| relation(from, "DEPENDS_ON", to)))
        .collect();
    let spdx = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{}-{}", root.name, root.version),
        // Must be unique for each content, and must not change with anything else.
        "documentNamespace": format!("https://spdx.org/spdxdocs/{}-{}-{}", root.name, root.version, digest::sha256(&bytes).hex()),
        "creationInfo": {"created": timestamp(time)?, "creators": [concat!("Tool: olmkit-", env!("CARGO_PKG_VERSION"))]},
        "packages": packages.values().map(|package| package.spdx()).collect::<Vec<_>>(),
        "relationships": relationships,
    });
    serde_json::to_vec(&spdx).map_err(Error::document("SPDX document"))
}

fn relation(from: &str, kind: &str, to: &str) -> Value {
    json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to})
}

type Packages<'l> = BTreeMap<(String, String), &'l Package>;

/// The packages that the root needs, and their dependencies.
fn reachable<'l>(lock: &'l Lock, root: &'l Package) -> Result<(Packages<'l>, BTreeSet<(String, String)>), String> {
    let mut by_name: BTreeMap<&str, Vec<&Package>> = BTreeMap::new();
    for package in &lock.package {
        by_name.entry(&package.name).or_default().push(package);
    }
    let mut found = BTreeMap::from([(root.key(), root)]);
    let mut edges = BTreeSet::new();
    let mut pending = vec![root];
    while let Some(package) = pending.pop() {
        for dependency in &package.dependencies {
            // "name", or "name version" where several versions are in the file.
            let mut words = dependency.split(' ');
            let (name, version) = (words.next().unwrap_or_default(), words.next());
            let candidates = by_name.get(name).into_iter().flatten();
            for &needed in candidates.filter(|needed| version.is_none_or(|version| needed.version == version)) {
                edges.insert((package.id(), needed.id()));
                if edges.len() > MOST_DEPENDENCIES {
                    return Err(format!("its packages have more than {MOST_DEPENDENCIES} dependencies"));
                }
                if found.insert(needed.key(), needed).is_none() {
                    pending.push(needed);
                }
            }
        }
    }
    Ok((found, edges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_package_needs_is_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Cargo.lock");
        let lock = r#"
            version = 4
            [[package]]
            name = "operator"
            version = "0.1.0"
            dependencies = ["serde 1.0.2", "own"]
            [[package]]
            name = "own"
            version = "0.1.0"
            [[package]]
            name = "serde"
            version = "1.0.1"
            source = "registry+https://github.com/rust-lang/crates.io-index"
            [[package]]
            name = "serde"
            version = "1.0.2"
            source = "registry+https://github.com/rust-lang/crates.io-index"
            checksum = "ab"
            [[package]]
            name = "other"
            version = "2.0.0"
        "#;
        std::fs::write(&path, lock).unwrap();
        let document: Value = serde_json::from_slice(&spdx(&path, "operator", 0).unwrap()).unwrap();
        let names: Vec<String> = document["packages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|package| {
                format!(
                    "{} {}",
                    package["name"].as_str().unwrap(),
                    package["versionInfo"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(names, ["operator 0.1.0", "own 0.1.0", "serde 1.0.2"]);
        assert_eq!(
            document["packages"][2]["externalRefs"][0]["referenceLocator"],
            "pkg:cargo/serde@1.0.2"
        );
        assert_eq!(document["relationships"].as_array().unwrap().len(), 3);
        assert!(spdx(&path, "absent", 0).is_err());
    }

    #[test]
    fn a_lock_file_is_parsed_table_by_table() {
        let error = |text: &str| Lock::parse(text).map(|lock| lock.package.len()).unwrap_err();
        let package = |number: usize, dependencies: usize| {
            let dependencies = " \"a\",\n".repeat(dependencies);
            format!("[[package]]\nname = \"p{number}\"\nversion = \"1.0.0\"\ndependencies = [\n{dependencies}]\n\n")
        };
        // Everything after the limit is unread: the last table is not TOML.
        let many: String = (0..200).map(|number| package(number, 1000)).collect();
        assert_eq!(
            error(&(many + "[[package")),
            "its packages have more than 100000 dependencies"
        );
        assert_eq!(
            error(&format!("version = 4\n\n{}", package(1, 300_000))),
            "the table in line 3 has more than 1048576 bytes"
        );
        assert_eq!(error(&"[a]\n".repeat(200_000)), "it has more than 100000 tables");
        let broken = format!("version = 4\n\n{}[[package]]\nname = 3\n", package(1, 1));
        assert!(
            error(&broken).starts_with("the table in line 10 is invalid: "),
            "{}",
            error(&broken)
        );
        // Earlier versions of the format end with other tables.
        let earlier = format!(
            "[root]\nname = \"a\"\nversion = \"1.0.0\"\n\n{}[metadata]\n\"checksum a\" = \"b\"\n",
            package(1, 1)
        );
        assert_eq!(Lock::parse(&earlier).unwrap().package.len(), 1);
        assert_eq!(Lock::parse("").unwrap().package.len(), 0);
    }
}
