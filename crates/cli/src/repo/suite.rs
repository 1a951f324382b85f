//! Kinds of repositories, their suites of checks, and the versions of OpenShift.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use olmkit::files::Directory;
use olmkit::limits;
use olmkit_submission::{Change, Checked, Platforms, Repository, Suite};

/// A kind of repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// community-operators-prod
    Community,
    /// certified-operators
    Certified,
    /// redhat-marketplace-operators
    Marketplace,
    /// operatorhub.io: k8s-operatorhub/community-operators
    Operatorhub,
    /// preflight's operator policy, or with --image a container policy
    Preflight,
}

/// Checks that need services, clusters or people.
const NOT_CHECKED: &[&str] = &[
    "operator-name-reservation (is the package name reserved for another owner)",
    "certification-project-status (certified operators)",
    "certified-image-references (are all images certified)",
    "github-permissions (may the author change this operator)",
    "bundle-image-build and index-image (builds on the platforms)",
    "preflight DeployableByOLM (installs the operator on a cluster)",
];
const NOT_CHECKED_BY_HUB: &[&str] = &[
    "kiwi, lemon and orange (install and upgrade the operator on a cluster)",
    "containerImage (can the image be pulled)",
    "title and labels of the pull request",
    "file-based catalogs (proposed for operatorhub.io in July 2026, not in use)",
];
const NOT_CHECKED_BY_PREFLIGHT: &[&str] = &[
    "preflight DeployableByOLM (installs the operator on a cluster)",
    "preflight BundleImageRefsAreCertified (needs a hosted service with the certified digests)",
];

impl Kind {
    /// The kind of a repository, by its files.
    pub fn new(repository: &Repository) -> Self {
        if repository.is_operator_hub() {
            return Self::Operatorhub;
        }
        match repository.organization().as_deref() {
            Some("certified-operators") => Self::Certified,
            Some("redhat-marketplace") => Self::Marketplace,
            _ => Self::Community,
        }
    }

    /// The rules on a change as a whole.
    pub fn check_change(self, head: &Repository, base: &Repository, files: &[String]) -> Vec<Checked> {
        let change = Change::detect(head, base, files);
        match self {
            Self::Operatorhub => change.check_operator_hub(head, base, files),
            Self::Preflight => Vec::new(),
            Self::Community | Self::Certified | Self::Marketplace => change.check(head, base),
        }
    }

    /// The suites of checks that run on it.
    pub fn suites(self) -> Vec<Suite> {
        match self {
            Self::Community => vec![Suite::Community, Suite::Common],
            Self::Certified | Self::Marketplace => vec![Suite::Isv, Suite::Common],
            Self::Operatorhub => vec![Suite::OperatorHub],
            Self::Preflight => vec![Suite::Preflight],
        }
    }

    /// Checks that a run omits.
    pub fn not_checked(self) -> Vec<String> {
        let names = match self {
            Self::Community | Self::Certified | Self::Marketplace => NOT_CHECKED,
            Self::Operatorhub => NOT_CHECKED_BY_HUB,
            Self::Preflight => NOT_CHECKED_BY_PREFLIGHT,
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// Flags for the supported OpenShift versions.
#[derive(clap::Args)]
pub struct OpenShiftFlags {
    /// OpenShift versions to treat as supported, such as 4.14-4.22
    #[arg(long, value_name = "RANGE")]
    ocp_versions: Option<String>,
    /// JSON file with OpenShift versions, instead of the built-in table
    #[arg(long, value_name = "FILE")]
    platforms: Option<PathBuf>,
}

impl OpenShiftFlags {
    /// The table after applying the flags. Without flags, a repository may have catalogs for a newer version.
    pub fn platforms(&self, repository: Option<&Path>) -> Result<Platforms, String> {
        let mut platforms = match &self.platforms {
            None => {
                let mut platforms = Platforms::default();
                // A link that leads out of the repository is not followed.
                let root = repository.and_then(|root| Directory::open(root).ok());
                let catalogs = root.and_then(|root| root.names(Path::new("catalogs")).ok());
                for name in catalogs.into_iter().flatten() {
                    platforms.add_catalogs(&name.to_string_lossy());
                }
                platforms
            }
            Some(path) => {
                let text = limits::read_named(path, &limits::SETTINGS_FILE)
                    .map_err(|error| format!("--platforms {}: {error}", path.display()))?;
                Platforms::parse(&String::from_utf8_lossy(&text))
                    .map_err(|error| format!("--platforms {}: {error}", path.display()))?
            }
        };
        if let Some(range) = &self.ocp_versions {
            platforms
                .select(range)
                .map_err(|error| format!("--ocp-versions: {error}"))?;
        }
        Ok(platforms)
    }
}
