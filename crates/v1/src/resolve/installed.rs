//! The installed bundle, and versions with the release that OLM v1 reads from their build metadata.

use std::cmp::Ordering;

use olmkit_base::object::{PreRelease, Version};
use olmkit_catalog::model::PROPERTY_PACKAGE;
use olmkit_catalog::{Bundle, property};

use super::Source;

/// Maximum bytes of a release.
const LONGEST_RELEASE: usize = 20;

/// A version with its release: `1.2.0+3` is release 3 of version 1.2.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionRelease {
    pub version: Version,
    release: Vec<PreRelease>,
}

impl VersionRelease {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut version = Version::parse(text).map_err(|error| error.to_string())?;
        let build = version.build.join(".");
        let parts = version.build.iter().map(|part| PreRelease::parse(part));
        let release: Vec<PreRelease> = match parts.collect() {
            Ok(release) if build.len() <= LONGEST_RELEASE => release,
            _ => Vec::new(),
        };
        if !release.is_empty() {
            version.build.clear();
        }
        Ok(Self { version, release })
    }

    /// That of a bundle: the first property `olm.package`.
    pub(super) fn from_bundle(bundle: &Bundle) -> Result<Self, String> {
        Self::parse(&written(bundle)?)
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.version
            .cmp(&other.version)
            .then_with(|| self.release.cmp(&other.release))
    }
}

/// The version as a bundle's first property `olm.package` has it.
pub(super) fn written(bundle: &Bundle) -> Result<String, String> {
    let mut properties = bundle.properties.iter().enumerate();
    let (at, property) = properties
        .find(|(_, property)| property.kind == PROPERTY_PACKAGE)
        .ok_or_else(|| format!("it has no property {PROPERTY_PACKAGE}"))?;
    let wanted = ["packageName", "version", "release"];
    let [_, version, _] = property::read_strings(property, at, "property.Package", wanted)?;
    Ok(version)
}

/// The bundle that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    name: String,
    text: String,
    pub(super) version: VersionRelease,
}

/// Why the installed bundle is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstalledError {
    /// The version cannot be parsed.
    #[error("invalid version {given:?} of the installed bundle: {reason}")]
    Version {
        /// The input.
        given: String,
        /// The error.
        reason: String,
    },
    /// A name that no catalog has.
    #[error(
        "no bundle {given:?} of package {package:?} in the catalogs, and it is not a version; write NAME@VERSION, as in the status of the ClusterExtension"
    )]
    Unknown {
        /// The input.
        given: String,
        /// The package.
        package: String,
    },
}

impl Installed {
    /// A bundle by name and version, as in `status.install.bundle` of a ClusterExtension.
    ///
    /// # Errors
    /// The version cannot be parsed.
    pub fn new(name: &str, version: &str) -> Result<Self, InstalledError> {
        let parsed = VersionRelease::parse(version).map_err(|reason| InstalledError::Version {
            given: version.to_owned(),
            reason,
        })?;
        Ok(Self {
            name: name.to_owned(),
            text: version.to_owned(),
            version: parsed,
        })
    }

    /// Looks a bundle up: `NAME`, `VERSION` or `NAME@VERSION`. A version that is in no catalog gives a bundle without a
    /// name, which only an entry with a `skipRange` can upgrade.
    ///
    /// # Errors
    /// See [`InstalledError`].
    pub fn find(text: &str, package: &str, sources: &[Source]) -> Result<Self, InstalledError> {
        if let Some((name, version)) = text.split_once('@') {
            return Self::new(name, version);
        }
        let bundles = || {
            let all = sources.iter().flat_map(|source| &source.catalog.bundles);
            all.filter(|bundle| bundle.package == package)
                .filter_map(|bundle| Some((bundle, VersionRelease::from_bundle(bundle).ok()?)))
        };
        let version = VersionRelease::parse(text);
        let mut bundles = bundles();
        let found = match &version {
            Ok(wanted) => bundles.find(|(_, version)| version.compare(wanted) == Ordering::Equal),
            Err(_) => bundles.find(|(bundle, _)| bundle.name == text),
        };
        match (found, version) {
            (Some((bundle, version)), _) => Ok(Self {
                name: bundle.name.clone(),
                text: version.text(),
                version,
            }),
            (None, Ok(_)) => Self::new("", text),
            (None, Err(_)) => Err(InstalledError::Unknown {
                given: text.to_owned(),
                package: package.to_owned(),
            }),
        }
    }

    /// Its name. Empty if it is not known.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.text
    }

    /// The version as ranges of catalogs compare it.
    pub(super) fn plain(&self) -> &Version {
        &self.version.version
    }
}

impl VersionRelease {
    fn text(&self) -> String {
        let release: Vec<String> = self.release.iter().map(PreRelease::to_string).collect();
        if release.is_empty() {
            self.version.to_string()
        } else {
            format!("{}+{}", self.version, release.join("."))
        }
    }
}
