//! The Go packages below a directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olmkit::limits;

use super::source::{self, Source, Type};
use super::{Error, marker};

/// Directories below the one that is read.
const MOST_LEVELS: usize = 32;
/// Files in all packages.
const MOST_FILES: usize = 20_000;

/// A package: the files of one directory.
#[derive(Debug)]
pub(super) struct Package {
    /// The path with which others import it.
    pub import_path: String,
    pub name: String,
    pub sources: Vec<Source>,
    /// API group and version from the markers of the package.
    pub group_version: Option<(String, String)>,
}

impl Package {
    /// A type with the file that declares it.
    pub fn find(&self, name: &str) -> Option<(&Source, &Type)> {
        let mut all = self
            .sources
            .iter()
            .flat_map(|source| source.types.iter().map(move |found| (source, found)));
        all.find(|(_, found)| found.name == name)
    }
}

/// Reads the packages as `go list DIRECTORY/...` selects them.
pub(super) fn load(directory: &Path) -> Result<Vec<Package>, Error> {
    let mut directories = Vec::new();
    let mut files = 0;
    collect(directory, 0, &mut files, &mut directories)?;
    let module = module(directory);
    let mut packages = Vec::new();
    for (path, files) in directories {
        let mut by_name: BTreeMap<String, Vec<Source>> = BTreeMap::new();
        for file in files {
            let text = read(&file)?;
            if let Some(source) = source::parse(&file, &text)? {
                by_name.entry(source.package.clone()).or_default().push(source);
            }
        }
        for (name, sources) in by_name {
            packages.push(package(&module, &path, name, sources)?);
        }
    }
    packages.sort_by(|one, other| one.import_path.cmp(&other.import_path));
    // operator-sdk reads no package after one that is skipped.
    let skipped = packages.iter().position(|package| {
        let mut all = package.sources.iter().flat_map(|source| &source.markers);
        all.any(|(_, text)| marker::is(text, "kubebuilder:skip"))
    });
    packages.truncate(skipped.unwrap_or(packages.len()));
    Ok(packages)
}

fn package(
    module: &Option<(PathBuf, String)>,
    path: &Path,
    name: String,
    sources: Vec<Source>,
) -> Result<Package, Error> {
    let mut group = None;
    let mut version = None;
    for source in &sources {
        for (line, text) in &source.markers {
            for (key, into) in [("groupName", &mut group), ("versionName", &mut version)] {
                let Some(value) = marker::value(text, key) else {
                    continue;
                };
                let value = value.map_err(|reason| Error::Marker {
                    path: source.path.clone(),
                    line: line + 1,
                    marker: text.clone(),
                    reason,
                })?;
                into.get_or_insert(value);
            }
        }
    }
    Ok(Package {
        import_path: import_path(module, path),
        group_version: group.map(|group| (group, version.unwrap_or_else(|| name.clone()))),
        name,
        sources,
    })
}

fn import_path(module: &Option<(PathBuf, String)>, path: &Path) -> String {
    let Some((root, name)) = module else {
        return path.display().to_string();
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match path.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => name.clone(),
        Ok(rest) => format!("{name}/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

/// The directory and name of the module that contains a directory.
fn module(directory: &Path) -> Option<(PathBuf, String)> {
    let directory = std::path::absolute(directory).ok()?;
    directory.ancestors().find_map(|ancestor| {
        let text = read(&ancestor.join("go.mod")).ok()?;
        let name = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
        let name = name.split("//").next().unwrap_or(name).trim().trim_matches('"');
        Some((ancestor.to_owned(), name.to_owned()))
    })
}

/// Directories with their Go files. Tests, and directories that the go command ignores, are left out.
fn collect(
    directory: &Path,
    level: usize,
    count: &mut usize,
    into: &mut Vec<(PathBuf, Vec<PathBuf>)>,
) -> Result<(), Error> {
    let too_much = || Error::TooMuch {
        path: directory.to_owned(),
    };
    if level > MOST_LEVELS {
        return Err(too_much());
    }
    let fail = |reason| Error::Io {
        path: directory.to_owned(),
        reason,
    };
    let mut files = Vec::new();
    let mut inner = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = name.starts_with(['.', '_']);
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            let is_other_module = entry.path().join("go.mod").exists();
            if !is_hidden && name != "testdata" && name != "vendor" && !is_other_module {
                inner.push(entry.path());
            }
        } else if name.ends_with(".go") && !is_hidden && !name.ends_with("_test.go") && is_for_linux(&name) {
            *count += 1;
            if *count > MOST_FILES {
                return Err(too_much());
            }
            files.push(entry.path());
        }
    }
    files.sort();
    inner.sort();
    if !files.is_empty() {
        into.push((directory.to_owned(), files));
    }
    inner.iter().try_for_each(|path| collect(path, level + 1, count, into))
}

/// Returns true if the name of a file selects it for `linux/amd64`.
fn is_for_linux(name: &str) -> bool {
    const SYSTEMS: [&str; 8] = [
        "darwin", "windows", "freebsd", "netbsd", "openbsd", "solaris", "js", "plan9",
    ];
    const PROCESSORS: [&str; 8] = ["386", "arm", "arm64", "ppc64le", "s390x", "riscv64", "wasm", "mips64"];
    let stem = name.trim_end_matches(".go");
    let mut parts = stem.split('_').skip(1);
    !parts.any(|part| SYSTEMS.contains(&part) || PROCESSORS.contains(&part))
}

fn read(path: &Path) -> Result<String, Error> {
    let bytes = limits::read_file(path, &limits::GENERATE_INPUT).map_err(|reason| Error::Io {
        path: path.to_owned(),
        reason,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
