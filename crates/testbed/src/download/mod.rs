//! Downloads etcd, kube-apiserver and kubectl: the same archives as `setup-envtest`, from the releases of
//! controller-tools. Each archive is compared with a digest before anything of it is unpacked.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha512};

use crate::tools;

mod digests;

/// The version that is downloaded unless another is named.
pub const NEWEST: &str = digests::NEWEST;

/// Download address of the archives.
const RELEASES: &str = "https://github.com/kubernetes-sigs/controller-tools/releases/download";
/// The programs that an archive must have, and may have.
const NEEDED: [&str; 2] = ["etcd", "kube-apiserver"];
const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kubectl"];
/// Bytes of an archive, and of the programs in it. Those of 1.36 have 74 and 240 MB.
const ARCHIVE_LIMIT: u64 = 512 << 20;
const UNPACKED_LIMIT: u64 = 2 << 30;
/// Timeout for a server that sends nothing.
const SILENCE: Duration = Duration::from_secs(60);

/// Programs to download.
#[derive(Debug, Clone)]
pub struct Download {
    version: String,
    from: String,
    sha512: Option<String>,
    directory: Option<PathBuf>,
}

/// Why programs cannot be downloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownloadError {
    /// No digest is known for a version.
    #[error(
        "no digest of version {version} for {system}/{processor} is known; known versions are {known}; pass its SHA-512 for another"
    )]
    UnknownVersion {
        /// The version.
        version: String,
        /// The system, as Go spells it.
        system: &'static str,
        /// The processor, as Go spells it.
        processor: &'static str,
        /// The versions with digests.
        known: String,
    },
    /// No directory for the programs is known.
    #[error("found no cache directory: set KUBE_TESTBED_ASSETS, XDG_CACHE_HOME or HOME")]
    NoFolder,
    /// The archive cannot be received.
    #[error("cannot download {url}: {reason}")]
    Request {
        /// Its address.
        url: String,
        /// The error.
        reason: String,
    },
    /// The archive is not the expected one.
    #[error("{url} has the SHA-512 {found}, expected {expected}; nothing was unpacked")]
    Digest {
        /// Its address.
        url: String,
        /// The digest of the received data.
        found: String,
        /// The digest that it must have.
        expected: String,
    },
    /// The archive cannot be used.
    #[error("{url}: {reason}")]
    Archive {
        /// Its address.
        url: String,
        /// The error.
        reason: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Default for Download {
    fn default() -> Self {
        Self {
            version: NEWEST.to_owned(),
            from: RELEASES.to_owned(),
            sha512: None,
            directory: None,
        }
    }
}

impl Download {
    /// Another version of Kubernetes, such as `1.34.1`.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version
            .strip_prefix('v')
            .unwrap_or(version)
            .clone_into(&mut self.version);
        self
    }

    /// A mirror with the archives below `envtest-vVERSION/`.
    #[must_use]
    pub fn from(mut self, url: &str) -> Self {
        url.trim_end_matches('/').clone_into(&mut self.from);
        self
    }

    /// The digest of the archive, in hexadecimal digits, instead of the known one.
    #[must_use]
    pub fn sha512(mut self, digest: &str) -> Self {
        self.sha512 = Some(digest.to_ascii_lowercase());
        self
    }

    /// The directory in which to create the version's directory, instead of [`tools::assets`].
    #[must_use]
    pub fn into(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// Downloads the programs, unless they exist, and returns their directory.
    ///
    /// # Errors
    /// See [`DownloadError`]. Leaves no files then.
    pub async fn run(&self) -> Result<PathBuf, DownloadError> {
        let (system, processor) = tools::platform();
        let version = &self.version;
        let parent = self
            .directory
            .clone()
            .or_else(tools::assets)
            .ok_or(DownloadError::NoFolder)?;
        let directory = parent.join(format!("{version}-{system}-{processor}"));
        if NEEDED.iter().all(|name| directory.join(name).is_file()) {
            return Ok(directory);
        }
        let known = || digests::find(version, system, processor).map(str::to_owned);
        let expected = self
            .sha512
            .clone()
            .or_else(known)
            .ok_or_else(|| DownloadError::UnknownVersion {
                version: version.clone(),
                system,
                processor,
                known: digests::versions().join(", "),
            })?;
        let url = format!(
            "{}/envtest-v{version}/envtest-v{version}-{system}-{processor}.tar.gz",
            self.from
        );
        let write = |path: &Path| {
            let path = path.to_owned();
            move |source| DownloadError::Io { path, source }
        };
        fs::create_dir_all(&parent).map_err(write(&parent))?;
        // In the same file system, so that the finished directory can be moved to its destination.
        let work = tempfile::Builder::new()
            .prefix(".download-")
            .tempdir_in(&parent)
            .map_err(write(&parent))?;
        let archive = work.path().join("archive");
        let found = receive(&url, &archive).await?;
        if found != expected {
            return Err(DownloadError::Digest { url, found, expected });
        }
        let programs = work.path().join("programs");
        fs::create_dir(&programs).map_err(write(&programs))?;
        unpack(&archive, &programs).map_err(|reason| DownloadError::Archive { url, reason })?;
        match fs::rename(&programs, &directory) {
            // Another process was faster.
            Err(_) if NEEDED.iter().all(|name| directory.join(name).is_file()) => Ok(directory),
            moved => moved.map(|()| directory.clone()).map_err(write(&directory)),
        }
    }
}

/// Receives a file, and returns its digest.
async fn receive(url: &str, path: &Path) -> Result<String, DownloadError> {
    let failed = |error: &dyn std::fmt::Display| DownloadError::Request {
        url: url.to_owned(),
        reason: error.to_string(),
    };
    // Several TLS providers may be linked in. An error means that one was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
        .build()
        .map_err(|error| failed(&error))?;
    let answer = client.get(url).send().await.map_err(|error| failed(&chain(&error)))?;
    if !answer.status().is_success() {
        return Err(failed(&answer.status()));
    }
    let mut answer = answer;
    let mut file = File::create(path).map_err(|error| failed(&error))?;
    let (mut hasher, mut size) = (Sha512::new(), 0);
    while let Some(part) = answer.chunk().await.map_err(|error| failed(&chain(&error)))? {
        size += part.len() as u64;
        if size > ARCHIVE_LIMIT {
            return Err(failed(&format!("it is larger than {} MiB", ARCHIVE_LIMIT >> 20)));
        }
        hasher.update(&part);
        file.write_all(&part).map_err(|error| failed(&error))?;
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// An error with its causes, which are more specific.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Unpacks the programs of an archive, wherever in it they are, and nothing else.
fn unpack(archive: &Path, directory: &Path) -> Result<(), String> {
    let file = File::open(archive).map_err(|error| error.to_string())?;
    let bounded = io::Read::take(GzDecoder::new(file), UNPACKED_LIMIT);
    let mut archive = tar::Archive::new(bounded);
    let mut missing: BTreeSet<&str> = NEEDED.into();
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let path = entry.path().map_err(|error| error.to_string())?;
        let name = path.file_name().and_then(|name| name.to_str());
        let program = PROGRAMS.into_iter().find(|program| name == Some(program));
        let Some(program) = program.filter(|_| entry.header().entry_type().is_file()) else {
            continue;
        };
        let at = directory.join(program);
        let mut out = File::create(&at).map_err(|error| error.to_string())?;
        io::copy(&mut entry, &mut out).map_err(|error| format!("{program}: {error}"))?;
        #[cfg(unix)]
        {
            let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
            out.set_permissions(mode).map_err(|error| error.to_string())?;
        }
        missing.remove(program);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = missing.into_iter().collect();
    Err(format!("the archive has no {}", missing.join(", ")))
}
