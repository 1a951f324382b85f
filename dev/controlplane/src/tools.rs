//! Where the programs are.
//!
//! 1. `KUBEBUILDER_ASSETS`, for etcd and kube-apiserver, as with other operator test kits. What `setup-envtest` downloads
//!    has these two and no controllers: start it with [`Options::without_controllers`](crate::Options::without_controllers);
//! 2. `bin/` in the cache folder: `OLMKIT_DEV_CACHE`, else `XDG_CACHE_HOME/olmkit`, else `~/.cache/olmkit`;
//! 3. `PATH`, for etcd only (distributions package it; any 3.4 or newer will do).

use std::path::{Path, PathBuf};

use crate::Error;

/// The paths of all programs that a control plane runs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: Option<PathBuf>,
    pub olm: Option<Olm>,
}

/// OLM's programs and definitions.
#[derive(Debug, Clone)]
pub(crate) struct Olm {
    pub olm: PathBuf,
    pub catalog: PathBuf,
    pub crds: PathBuf,
}

/// The cache folder for development tools. `None` when neither of its variables nor `HOME` is set.
pub fn cache() -> Option<PathBuf> {
    let folder = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    folder("OLMKIT_DEV_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("olmkit")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/olmkit")))
}

/// A program that `dev/tools/build.sh` builds, for tests that run one: `kubectl`, `opm`, `operator-sdk`, …
///
/// # Errors
/// When it is not there, with the command that builds it.
pub fn program(name: &'static str) -> Result<PathBuf, Error> {
    let mut folders = Vec::new();
    if matches!(name, "etcd" | "kube-apiserver") {
        folders.extend(std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from));
    }
    folders.extend(cache().map(|cache| cache.join("bin")));
    if name == "etcd" {
        folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    }
    folders
        .iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| Error::MissingProgram {
            program: name,
            looked_in: folders.iter().map(|folder| folder.display().to_string()).collect(),
        })
}

impl Programs {
    pub(crate) fn locate(controllers: bool, olm: bool) -> Result<Self, Error> {
        Ok(Self {
            etcd: program("etcd")?,
            kube_apiserver: program("kube-apiserver")?,
            kube_controller_manager: controllers.then(|| program("kube-controller-manager")).transpose()?,
            olm: if olm { Some(Olm::locate()?) } else { None },
        })
    }
}

impl Olm {
    fn locate() -> Result<Self, Error> {
        let crds = cache()
            .unwrap_or_else(|| Path::new(".cache").to_owned())
            .join("olm/crds");
        if !crds.is_dir() {
            return Err(Error::MissingCrds(crds));
        }
        Ok(Self {
            olm: program("olm")?,
            catalog: program("catalog")?,
            crds,
        })
    }
}
