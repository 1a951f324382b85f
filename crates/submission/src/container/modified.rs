//! Finds package files that layers changed, as preflight's HasModifiedFiles does.
//!
//! The files of each layer are compared with the packages in the RPM database of that layer. Changes by rpm itself are
//! allowed, and so are files that no Red Hat package owns. preflight's inaccuracies are reproduced: it reads databases
//! only below `/var/lib/rpm`, and its excluded directories also exclude names with the same prefix.

use std::collections::BTreeMap;

use super::packages::Package;

/// The bits of a mode that let a program run as its owner or group.
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// Flags of files that are not compared: configuration, documentation, may be missing, ghost, license, readme,
/// artifact.
const FREE_FLAGS: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 12;

/// Paths that are never compared, and those that begin so.
const EXCLUDED: [&str; 6] = [
    "etc",
    "var",
    "run",
    "usr/lib/.build-id",
    "usr/tmp",
    "usr/share/openstack-dashboard",
];

/// The distribution of an image that does not name it.
const UNKNOWN: &str = "unknown";

/// The packages of an RPM database, and the package of each file.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    /// By name, version, release and architecture.
    packages: BTreeMap<String, Package>,
    files: BTreeMap<String, String>,
}

impl Owners {
    fn new(packages: Vec<Package>) -> Self {
        let mut owners = Self::default();
        for mut package in packages {
            let id = package.id();
            for (path, flags) in std::mem::take(&mut package.files) {
                let path = path.trim_start_matches('/').to_owned();
                let is_cache = path.starts_with("usr/") && path.ends_with(".cache");
                if flags & FREE_FLAGS != 0 || is_cache || EXCLUDED.iter().any(|start| path.starts_with(start)) {
                    continue;
                }
                let is_other_architecture = |id: &String| package.differs_in_architecture_only(id);
                if !owners.files.get(&path).is_some_and(is_other_architecture) {
                    owners.files.insert(path, id.clone());
                }
            }
            owners.packages.insert(id, package);
        }
        owners
    }
}

/// A changed file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Modified {
    /// The file, without the first slash.
    pub path: String,
    /// The violation.
    pub reason: &'static str,
    /// The number of the layer, from 1.
    pub layer: usize,
}

/// Compares the layers of an image, added from the lowest to the highest.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    distribution: String,
    /// Modes by path of each layer.
    files: Vec<BTreeMap<String, u32>>,
    owners: Owners,
    modified: Vec<Modified>,
}

/// Change of a path in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A regular file with its mode.
    File(u32),
    /// A directory.
    Directory,
    /// A link and where it leads.
    Link(u32, &'a str),
}

/// The files of a layer that is being read.
#[derive(Debug, Clone, Default)]
pub struct LayerFiles {
    files: BTreeMap<String, u32>,
    targets: Vec<String>,
}

impl LayerFiles {
    /// Adds an entry of the layer. The caller omits files with capabilities, as preflight does.
    pub fn add(&mut self, path: &str, change: Change<'_>) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let removed = name.strip_prefix(".wh.");
        let of_removed = || match directory {
            "" => removed.unwrap_or(name).to_owned(),
            directory => format!("{directory}/{}", removed.unwrap_or(name)),
        };
        match change {
            Change::File(mode) => _ = self.files.insert(of_removed(), mode),
            Change::Directory if removed.is_some() => _ = self.files.insert(of_removed(), 0),
            Change::Directory => {}
            Change::Link(mode, target) => {
                self.files.insert(path.to_owned(), mode);
                self.targets.push(target.trim_start_matches('/').to_owned());
            }
        }
    }
}

impl Layers {
    /// No layers yet of an image with a distribution. See [`distribution`].
    pub fn new(distribution: Option<String>) -> Self {
        Self {
            distribution: distribution.unwrap_or_else(|| UNKNOWN.to_owned()),
            ..Self::default()
        }
    }

    /// Adds the next layer with its number, from 0, and the packages of its RPM database, if it has one that can be read.
    pub fn push(&mut self, number: usize, files: LayerFiles, packages: Option<Vec<Package>>) {
        let LayerFiles { mut files, targets } = files;
        for target in targets {
            files.remove(&target);
        }
        let new = packages.map(Owners::new);
        if !self.files.is_empty() {
            let mut modified = Vec::new();
            for (path, mode) in &files {
                if let Some(reason) = self.problem_with(new.as_ref(), path, *mode) {
                    let (path, layer) = (path.clone(), number + 1);
                    modified.push(Modified { path, reason, layer });
                }
            }
            self.modified.extend(modified);
        }
        self.owners = new.unwrap_or_else(|| std::mem::take(&mut self.owners));
        self.files.push(files);
    }

    /// The files that were changed otherwise than by rpm.
    pub fn modified(self) -> Vec<Modified> {
        self.modified
    }

    /// The violation for a file of the next layer, which may have a new database.
    fn problem_with(&self, new: Option<&Owners>, path: &str, mode: u32) -> Option<&'static str> {
        let owners = new.unwrap_or(&self.owners);
        let id = owners.files.get(path)?;
        let old_id = self.owners.files.get(path);
        if old_id.is_none() && new.is_some() {
            return None;
        }
        let nobody = Package::default();
        let package = owners.packages.get(id).unwrap_or(&nobody);
        let old = old_id.and_then(|id| self.owners.packages.get(id)).unwrap_or(&nobody);
        let is_of_system = |package: &Package| package.release.contains(&self.distribution);
        if old_id != Some(id) {
            return if is_of_system(old) && !is_of_system(package) {
                Some("its package is now one for another release of the system")
            } else if old.architecture != package.architecture {
                Some("its package is now one for another architecture")
            } else {
                None
            };
        }
        let last_mode = self.files.iter().rev().find_map(|files| files.get(path)).copied();
        let is_removed = |bit: u32| last_mode.unwrap_or(0) & bit != 0 && mode & bit == 0;
        let is_red_hat = |package: &Package| package.vendor == "Red Hat, Inc.";
        let is_allowed = is_removed(SET_USER)
            || is_removed(SET_GROUP)
            || (!is_of_system(package) && self.distribution != UNKNOWN)
            || (!is_red_hat(package) && !is_red_hat(old))
            || package.installed > old.installed;
        (!is_allowed).then_some("it was changed without rpm")
    }
}

/// The distribution that an `os-release` file names.
pub fn distribution(os_release: &str) -> Option<String> {
    os_release.lines().find_map(|line| {
        let (_, rest) = line.split_once("PLATFORM_ID=\"platform:")?;
        let end = rest.find(|character: char| !character.is_ascii_alphanumeric())?;
        let name = rest.get(..end).filter(|name| !name.is_empty())?;
        rest.get(end..)?.starts_with('"').then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str, release: &str, files: &[(&str, u32)]) -> Package {
        Package {
            name: "base".to_owned(),
            version: version.to_owned(),
            release: release.to_owned(),
            architecture: "x86_64".to_owned(),
            vendor: "Red Hat, Inc.".to_owned(),
            installed: 100,
            files: files.iter().map(|(path, flags)| ((*path).to_owned(), *flags)).collect(),
        }
    }

    const FILES: [(&str, u32); 5] = [
        ("/usr/bin/su", 0),
        ("/usr/bin/app", 0),
        ("/etc/app.conf", 0),
        ("/usr/share/doc/app", 1 << 1),
        ("/usr/lib/app.cache", 0),
    ];

    fn base() -> Package {
        package("1.0", "1.el9", &FILES)
    }

    /// A base layer with a package, and another layer above it.
    fn image(files: &[(&str, Change<'_>)], packages: Option<Vec<Package>>) -> Layers {
        let mut layers = Layers::new(Some("el9".to_owned()));
        let mut first = LayerFiles::default();
        for (path, mode) in [("usr/bin/su", 0o4755), ("usr/bin/app", 0o755)] {
            first.add(path, Change::File(mode));
        }
        layers.push(0, first, Some(vec![base()]));
        let mut second = LayerFiles::default();
        for (path, change) in files {
            second.add(path, *change);
        }
        layers.push(1, second, packages);
        layers
    }

    fn found(files: &[(&str, Change<'_>)], packages: Option<Vec<Package>>) -> Vec<String> {
        let modified = image(files, packages).modified();
        modified.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn files_of_packages_that_a_layer_changes_or_removes_are_found() {
        assert_eq!(found(&[("usr/bin/app", Change::File(0o755))], None), ["usr/bin/app"]);
        assert_eq!(found(&[("usr/bin/.wh.app", Change::File(0))], None), ["usr/bin/app"]);
        assert_eq!(found(&[("usr/bin/.wh.app", Change::Directory)], None), ["usr/bin/app"]);
        assert_eq!(
            found(&[("usr/bin/app", Change::Link(0o777, "/bin/sh"))], None),
            ["usr/bin/app"]
        );
        // The database was written, but the package is the same.
        let again = Some(vec![base()]);
        assert_eq!(found(&[("usr/bin/app", Change::File(0o755))], again), ["usr/bin/app"]);
    }

    #[test]
    fn files_that_may_change_are_not() {
        let free = [
            ("opt/app", Change::File(0o755)),
            ("etc/app.conf", Change::File(0o644)),
            ("usr/share/doc/app", Change::File(0o644)),
            ("usr/lib/app.cache", Change::File(0o644)),
            ("usr/bin", Change::Directory),
            ("usr/bin/su", Change::File(0o755)),
        ];
        assert_eq!(found(&free, None), Vec::<String>::new());
        // The target of a link counts as the same file.
        let linked = [
            ("usr/bin/app", Change::File(0o755)),
            ("usr/bin/other", Change::Link(0o777, "/usr/bin/app")),
        ];
        assert_eq!(found(&linked, None), Vec::<String>::new());
    }

    #[test]
    fn package_updates_are_no_modifications() {
        let change = [("usr/bin/app", Change::File(0o755))];
        let update = package("2.0", "1.el9", &FILES);
        assert_eq!(found(&change, Some(vec![update])), Vec::<String>::new());
        let again = Package {
            installed: 200,
            ..base()
        };
        assert_eq!(found(&change, Some(vec![again])), Vec::<String>::new());
        assert_eq!(
            found(&change, Some(Vec::new())),
            Vec::<String>::new(),
            "the package was removed"
        );
        let new = Package {
            name: "new".to_owned(),
            ..package("1.0", "1.el9", &[("/usr/bin/new", 0)])
        };
        let with_new = Some(vec![base(), new]);
        assert_eq!(
            found(&[("usr/bin/new", Change::File(0o755))], with_new),
            Vec::<String>::new()
        );
    }

    #[test]
    fn packages_of_others_may_not_take_the_place_of_red_hats() {
        let change = [("usr/bin/app", Change::File(0o755))];
        let reasons = |package: Package| {
            let modified = image(&change, Some(vec![package])).modified();
            modified
                .into_iter()
                .map(|one| (one.reason, one.layer))
                .collect::<Vec<_>>()
        };
        let other_release = reasons(package("2.0", "1.el8", &FILES));
        assert_eq!(
            other_release,
            [("its package is now one for another release of the system", 2)]
        );
        let other = Package {
            architecture: "s390x".to_owned(),
            ..package("2.0", "1.el9", &FILES)
        };
        assert_eq!(reasons(other), [("its package is now one for another architecture", 2)]);
    }

    #[test]
    fn packages_of_nobody_are_free() {
        let mut layers = Layers::new(None);
        let free = Package {
            vendor: "Example".to_owned(),
            ..base()
        };
        let mut files = LayerFiles::default();
        files.add("usr/bin/app", Change::File(0o755));
        layers.push(0, files.clone(), Some(vec![free]));
        layers.push(1, files.clone(), None);
        assert_eq!(layers.modified(), Vec::new());
        // Nor is anything known of an image without a database.
        let mut layers = Layers::new(None);
        layers.push(0, files.clone(), None);
        layers.push(1, files, None);
        assert_eq!(layers.modified(), Vec::new());
    }

    #[test]
    fn the_distribution_is_that_of_the_platform() {
        let text = "NAME=\"Red Hat Enterprise Linux\"\nPLATFORM_ID=\"platform:el9\"\n";
        assert_eq!(distribution(text).as_deref(), Some("el9"));
        for text in [
            "",
            "PLATFORM_ID=\"platform:\"",
            "PLATFORM_ID=\"platform:el 9\"",
            "PLATFORM_ID=platform:el9",
        ] {
            assert_eq!(distribution(text), None, "{text}");
        }
    }
}
