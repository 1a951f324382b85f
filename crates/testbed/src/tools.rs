//! Search path of the programs.
//!
//! 1. `KUBEBUILDER_ASSETS`, as with other operator test kits;
//! 2. installed by `kube-testbed download` in [`assets`], the newest version;
//! 3. installed by `setup-envtest`, the newest version;
//! 4. built by `dev/tools/build.sh` of olmkit's repository in [`cache`]. Only this directory has
//!    kube-controller-manager and OLM;
//! 5. `PATH`.
//!
//! The first three have etcd, kube-apiserver and kubectl: start with
//! [`Options::without_controllers`](crate::Options::without_controllers).

use std::path::{Path, PathBuf};

use crate::Error;

/// The paths of all programs that a control plane runs.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub kube_controller_manager: Option<PathBuf>,
    #[cfg(feature = "olm")]
    pub olm: Option<Olm>,
}

/// OLM's programs and definitions.
#[cfg(feature = "olm")]
#[derive(Debug, Clone)]
pub(crate) struct Olm {
    pub olm: PathBuf,
    pub catalog: PathBuf,
    pub crds: PathBuf,
}

/// The directory that a variable names.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// A directory in the user's cache. `None` if neither `XDG_CACHE_HOME` nor `HOME` is set.
fn cached(name: &str) -> Option<PathBuf> {
    variable("XDG_CACHE_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join(name))
}

/// The directory of downloaded programs, with a directory for each version, system and processor:
/// `KUBE_TESTBED_ASSETS`, else `kube-testbed` in `XDG_CACHE_HOME` or `~/.cache`. `None` if none of the variables nor
/// `HOME` is set.
pub fn assets() -> Option<PathBuf> {
    variable("KUBE_TESTBED_ASSETS").or_else(|| cached("kube-testbed"))
}

/// The directory of the programs that olmkit's repository builds: `OLMKIT_DEV_CACHE`, else `olmkit` in `XDG_CACHE_HOME`
/// or `~/.cache`. `None` if none of the variables nor `HOME` is set.
pub fn cache() -> Option<PathBuf> {
    variable("OLMKIT_DEV_CACHE").or_else(|| cached("olmkit"))
}

/// The download directory of `setup-envtest`.
fn setup_envtest() -> Option<PathBuf> {
    let home = || variable("HOME");
    let data = if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Application Support/io.kubebuilder.envtest"))
    } else {
        variable("XDG_DATA_HOME")
            .or_else(|| home().map(|home| home.join(".local/share")))
            .map(|data| data.join("kubebuilder-envtest"))
    };
    data.map(|data| data.join("k8s"))
}

/// The system and processor in names of archives and directories, as Go spells them.
pub(crate) fn platform() -> (&'static str, &'static str) {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    (system, processor)
}

/// The directory `VERSION-SYSTEM-PROCESSOR` of the newest version for this machine.
fn newest(directory: &Path) -> Option<PathBuf> {
    let (system, processor) = platform();
    let ending = format!("-{system}-{processor}");
    let version = |name: &str| -> Option<Vec<u32>> {
        let version = name.strip_suffix(&ending)?;
        version.split('.').map(|part| part.parse().ok()).collect()
    };
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let known = entries.filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())));
    known.max().map(|(_, path)| path)
}

/// A program by its name: `kube-apiserver`, `kubectl`, …
///
/// # Errors
/// If it is missing, with the command that installs it.
pub fn program(name: &'static str) -> Result<PathBuf, Error> {
    let folders = folders(variable("KUBEBUILDER_ASSETS"), [assets(), setup_envtest()], cache());
    let in_path = variable("PATH");
    let in_path: Vec<PathBuf> = in_path.iter().flat_map(std::env::split_paths).collect();
    first(name, &folders, &in_path)
}

/// Directories that may contain programs, in addition to `PATH`, in this order.
fn folders(named: Option<PathBuf>, downloads: [Option<PathBuf>; 2], cache: Option<PathBuf>) -> Vec<PathBuf> {
    let downloads = downloads
        .into_iter()
        .flatten()
        .filter_map(|directory| newest(&directory));
    let built = cache.map(|cache| cache.join("bin"));
    named.into_iter().chain(downloads).chain(built).collect()
}

/// The first binary of this name in the given directories and `PATH`.
fn first(name: &'static str, folders: &[PathBuf], in_path: &[PathBuf]) -> Result<PathBuf, Error> {
    folders
        .iter()
        .chain(in_path)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| Error::MissingProgram {
            program: name,
            looked_in: folders
                .iter()
                .map(|directory| directory.display().to_string())
                .collect(),
        })
}

impl Programs {
    pub(crate) fn locate(options: &crate::Options) -> Result<Self, Error> {
        let manager = options.controllers.then(|| program("kube-controller-manager"));
        Ok(Self {
            etcd: program("etcd")?,
            kube_apiserver: program("kube-apiserver")?,
            kube_controller_manager: manager.transpose()?,
            #[cfg(feature = "olm")]
            olm: if options.olm { Some(Olm::locate()?) } else { None },
        })
    }
}

#[cfg(feature = "olm")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_download_for_this_machine_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (system, processor) = platform();
        for name in ["1.9.3", "1.36.0", "1.36.2"] {
            std::fs::create_dir(directory.path().join(format!("{name}-{system}-{processor}"))).unwrap();
        }
        for name in ["1.40.0-plan9-mips", "notes"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let wanted = directory.path().join(format!("1.36.2-{system}-{processor}"));
        assert_eq!(newest(directory.path()), Some(wanted));
        assert_eq!(newest(&directory.path().join("nowhere")), None);
    }

    #[test]
    fn the_first_place_that_has_a_program_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let (system, processor) = platform();
        let version = format!("1.36.2-{system}-{processor}");
        let [named, downloaded, envtest, built, in_path] = [
            "named".to_owned(),
            format!("downloaded/{version}"),
            format!("envtest/{version}"),
            "built/bin".to_owned(),
            "path".to_owned(),
        ]
        .map(|name| root.path().join(name));
        let places = [&named, &downloaded, &envtest, &built, &in_path];
        for place in places {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join("etcd"), "").unwrap();
        }
        let find = || {
            let downloads = ["downloaded", "envtest"].map(|name| Some(root.path().join(name)));
            let folders = folders(Some(named.clone()), downloads, Some(root.path().join("built")));
            first("etcd", &folders, std::slice::from_ref(&in_path))
        };
        for place in places {
            assert_eq!(find().unwrap(), place.join("etcd"));
            std::fs::remove_file(place.join("etcd")).unwrap();
        }
        let error = find().unwrap_err().to_string();
        let named = named.display();
        assert!(error.starts_with(&format!("etcd not found in {named}, ")), "{error}");
        assert!(error.contains("KUBEBUILDER_ASSETS"), "{error}");
    }
}
