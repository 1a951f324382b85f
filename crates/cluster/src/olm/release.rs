//! The manifests of an OLM release, as its release page has them.

use std::fs;

use olmkit::temporary::Directory;
use olmkit_oci::registry::{DownloadError, download};
use olmkit_oci::sha256;

use crate::base::error::Error;

/// The release that is installed by default: the newest one that this project's tests run.
pub const DEFAULT_VERSION: &str = "0.46.0";

/// The releases of OLM. Below it is `download/VERSION/FILE`.
pub const RELEASES: &str = "https://github.com/operator-framework/operator-lifecycle-manager/releases";

/// A downloaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloaded {
    /// The address of the file.
    pub url: String,
    /// The checksum of the content, in hexadecimal digits.
    pub sha256: String,
}

/// The URLs of the two files of a release. `latest` is the newest one.
///
/// # Errors
/// [`Error::Usage`] if the string cannot be a version.
fn addresses(releases: &str, version: &str) -> Result<[(&'static str, String); 2], Error> {
    let is_version = !version.is_empty()
        && version
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || ".+-".contains(letter))
        && !version.contains("..");
    if !is_version {
        return Err(Error::Usage(format!(
            "{version:?} is not a version of OLM; use one such as {DEFAULT_VERSION}, or latest"
        )));
    }
    let releases = releases.trim_end_matches('/');
    let number = version.trim_start_matches('v');
    let directory = match semver::Version::parse(number) {
        _ if version == "latest" => format!("{releases}/latest/download"),
        // Tags have a v from 0.17 on.
        Ok(number) if number < semver::Version::new(0, 17, 0) => format!("{releases}/download/{number}"),
        Ok(number) => format!("{releases}/download/v{number}"),
        Err(_) => format!("{releases}/download/{version}"),
    };
    Ok(["crds.yaml", "olm.yaml"].map(|file| (file, format!("{directory}/{file}"))))
}

/// Downloads a release into a directory that [`super::source::read`] reads.
///
/// # Errors
/// [`Error::Download`] if a file cannot be downloaded, [`Error::Usage`] if it cannot be stored.
pub async fn fetch(releases: &str, version: &str) -> Result<(Directory, Vec<Downloaded>), Error> {
    let directory = Directory::new("olm").map_err(|error| Error::Usage(error.to_string()))?;
    let mut downloaded = Vec::new();
    for (file, url) in addresses(releases, version)? {
        let limit = olmkit::limits::OLM_MANIFESTS.count();
        let content = download(&url, limit).await?;
        let path = directory.path().join(file);
        fs::write(&path, &content)
            .map_err(|error| Error::Usage(format!("cannot write {}: {error}", path.display())))?;
        let sha256 = sha256(&content).to_string();
        downloaded.push(Downloaded {
            url,
            sha256: sha256.trim_start_matches("sha256:").to_owned(),
        });
    }
    Ok((directory, downloaded))
}

impl From<DownloadError> for Error {
    fn from(error: DownloadError) -> Self {
        Self::Download(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_release_page() {
        let of = |version| addresses("https://r.test/olm/", version).map(|[(_, crds), (_, olm)]| [crds, olm]);
        let below = |folder: &str| [format!("{folder}/crds.yaml"), format!("{folder}/olm.yaml")];
        for (version, folder) in [
            ("0.46.0", "https://r.test/olm/download/v0.46.0"),
            ("v0.46.0", "https://r.test/olm/download/v0.46.0"),
            ("0.17.0", "https://r.test/olm/download/v0.17.0"),
            ("0.16.1", "https://r.test/olm/download/0.16.1"),
            ("latest", "https://r.test/olm/latest/download"),
        ] {
            assert_eq!(of(version).unwrap(), below(folder), "{version}");
        }
        for wrong in ["", "../../x", "1.0/2", "a b", "a?b"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_default_is_the_version_that_the_tests_run() {
        let modules = include_str!("../../../../dev/tools/cluster/go.mod");
        let line = format!("operator-lifecycle-manager v{DEFAULT_VERSION} ");
        assert!(
            modules.contains(&line),
            "dev/tools/cluster/go.mod builds another OLM than {DEFAULT_VERSION}"
        );
    }
}
