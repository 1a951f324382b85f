//! Keeps compiled dependencies between checkouts.
//!
//! A fresh checkout has an empty target directory, and cargo then compiles all dependencies again. The hosted workflow
//! keeps them with a cache action. Here they are hard links in a directory of the user's cache. Only crates of a registry are
//! kept: cargo identifies these by version and flags, not by the time of their files or by the path of the checkout.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// The directories below a profile's directory that cargo reads compiled crates from.
const FINGERPRINTS: &str = ".fingerprint";
const BUILD: &str = "build";
const DEPENDENCIES: &str = "deps";

/// A target directory and its copy in the cache.
pub struct Compiled {
    target: PathBuf,
    cache: PathBuf,
    /// Names the lock files and the compiler. Copies of other keys are of no use.
    key: String,
    /// Names of packages that no registry has.
    own: BTreeSet<String>,
}

impl Compiled {
    /// The compiled dependencies of the workspaces in these directories.
    pub fn new(target: &Path, cache: &Path, workspaces: &[PathBuf]) -> anyhow::Result<Compiled> {
        let mut own = BTreeSet::new();
        let mut hasher = DefaultHasher::new();
        run("rustc", &["-vV"], Path::new("."))?.hash(&mut hasher);
        for workspace in workspaces {
            fs::read(workspace.join("Cargo.lock"))?.hash(&mut hasher);
            own.extend(members(workspace)?);
        }
        Ok(Compiled {
            target: target.to_owned(),
            cache: cache.to_owned(),
            key: format!("{:016x}", hasher.finish()),
            own,
        })
    }

    /// Links the crates that the cache has into the target directory. Returns their number.
    pub fn restore(&self) -> anyhow::Result<usize> {
        self.link(&self.cache.join(&self.key), &self.target)
    }

    /// Links the crates that the cache lacks into it, and removes crates of other keys. Returns the number of new ones.
    pub fn save(&self) -> anyhow::Result<usize> {
        let new = self.link(&self.target, &self.cache.join(&self.key))?;
        for other in entries(&self.cache)?.into_iter().filter(|name| *name != self.key) {
            fs::remove_dir_all(self.cache.join(other))?;
        }
        Ok(new)
    }

    /// Links the crates below `from` that `to` lacks.
    fn link(&self, from: &Path, to: &Path) -> anyhow::Result<usize> {
        let mut linked = 0;
        for profile in profiles(from)? {
            let (from, to) = (from.join(&profile), to.join(&profile));
            let names: Vec<String> = entries(&from.join(FINGERPRINTS))?
                .into_iter()
                .filter(|name| !self.is_own(name) && !to.join(FINGERPRINTS).join(name).exists())
                .collect();
            let hashes: BTreeSet<&str> = names.iter().filter_map(|name| Some(name.rsplit_once('-')?.1)).collect();
            for name in &names {
                // Cargo takes a crate whose fingerprint exists for compiled. It is linked last.
                tree(&from.join(BUILD).join(name), &to.join(BUILD).join(name))?;
            }
            for file in entries(&from.join(DEPENDENCIES))? {
                let stem = file.split('.').next().unwrap_or_default();
                if stem.rsplit_once('-').is_some_and(|(_, hash)| hashes.contains(hash)) {
                    tree(&from.join(DEPENDENCIES).join(&file), &to.join(DEPENDENCIES).join(&file))?;
                }
            }
            for name in &names {
                tree(&from.join(FINGERPRINTS).join(name), &to.join(FINGERPRINTS).join(name))?;
            }
            linked += names.len();
        }
        Ok(linked)
    }

    /// Returns true for `name-0123456789abcdef` if `name` is a package of ours.
    fn is_own(&self, fingerprint: &str) -> bool {
        fingerprint
            .rsplit_once('-')
            .is_none_or(|(name, _)| self.own.contains(name))
    }
}

/// The names of a workspace's packages that no registry has.
fn members(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let output = run("cargo", &["metadata", "--locked", "--format-version=1"], workspace)?;
    let metadata: Value = serde_json::from_str(&output).context("cargo metadata printed no JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    let own = packages.filter(|package| package.get("source").is_none_or(Value::is_null));
    Ok(own
        .filter_map(|package| package.get("name")?.as_str().map(str::to_owned))
        .collect())
}

/// The output of a command.
fn run(program: &str, arguments: &[&str], directory: &Path) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).current_dir(directory).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {errors}", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// The directories below a target directory that have fingerprints, as relative paths: `debug`, `HOST/debug` and the same below
/// directories of other workspaces.
fn profiles(target: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(relative) = waiting.pop() {
        if target.join(&relative).join(FINGERPRINTS).is_dir() {
            found.push(relative);
        } else if relative.components().count() < 3 {
            for name in entries(&target.join(&relative))? {
                let below = relative.join(name);
                if target.join(&below).is_dir() {
                    waiting.push(below);
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The names in a directory, sorted. None if it does not exist.
fn entries(directory: &Path) -> anyhow::Result<Vec<String>> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

/// Links a file, or all files of a directory. Copies them if the file systems differ. Does nothing for a path that does not
/// exist.
fn tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for name in entries(from)? {
            tree(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    if !from.exists() || to.exists() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if fs::hard_link(from, to).is_err() {
        let modified = fs::metadata(from)?.modified()?;
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        fs::File::options().write(true).open(to)?.set_modified(modified)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_crates_of_a_registry_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("one");
        let hash = "0123456789abcdef";
        for file in [
            format!("host/debug/.fingerprint/serde-{hash}/lib-serde"),
            format!("host/debug/build/serde-{hash}/out/code.rs"),
            format!("host/debug/deps/libserde-{hash}.rlib"),
            format!("host/debug/deps/serde-{hash}.d"),
            "host/debug/.fingerprint/ours-fedcba9876543210/lib-ours".to_owned(),
            "host/debug/deps/libours-fedcba9876543210.rlib".to_owned(),
            "host/debug/ours".to_owned(),
            format!("tool/debug/.fingerprint/toml-{hash}/lib-toml"),
            format!("tool/debug/deps/libtoml-{hash}.rmeta"),
        ] {
            let path = target.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "content").unwrap();
        }
        let compiled = |target: &str, key: &str| Compiled {
            target: directory.path().join(target),
            cache: directory.path().join("cache"),
            key: key.to_owned(),
            own: BTreeSet::from(["ours".to_owned()]),
        };
        assert_eq!(compiled("one", "old").save().unwrap(), 2);
        assert_eq!(compiled("one", "new").save().unwrap(), 2);
        assert_eq!(compiled("one", "new").save().unwrap(), 0, "the cache has them");
        assert_eq!(entries(&directory.path().join("cache")).unwrap(), ["new"]);

        assert_eq!(compiled("two", "new").restore().unwrap(), 2);
        let two = directory.path().join("two");
        assert!(two.join(format!("host/debug/build/serde-{hash}/out/code.rs")).exists());
        assert_eq!(
            entries(&two.join("host/debug/deps")).unwrap(),
            [format!("libserde-{hash}.rlib"), format!("serde-{hash}.d")]
        );
        assert_eq!(
            entries(&two.join("host/debug/.fingerprint")).unwrap(),
            [format!("serde-{hash}")]
        );
        assert!(two.join(format!("tool/debug/deps/libtoml-{hash}.rmeta")).exists());
        assert_eq!(compiled("three", "other").restore().unwrap(), 0);
    }
}
