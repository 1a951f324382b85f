//! Catalog entry of an operator: the content of `config/package.yaml`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use olmkit_base::files::{self, Directory};
use olmkit_base::limits;

/// A link on the operator's page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A person or group to contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maintainer {
    /// Name of a person or group.
    pub name: String,
    /// Address.
    pub email: String,
}

/// Namespaces that an operator can be configured to watch. OLM compares them with the OperatorGroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum InstallMode {
    /// The namespace it runs in.
    OwnNamespace,
    /// One other namespace.
    SingleNamespace,
    /// Several namespaces.
    MultiNamespace,
    /// All namespaces.
    AllNamespaces,
}

impl InstallMode {
    /// All modes, in the order in which a ClusterServiceVersion lists them.
    pub const ALL: [Self; 4] = [
        Self::OwnNamespace,
        Self::SingleNamespace,
        Self::MultiNamespace,
        Self::AllNamespaces,
    ];

    /// The name as OLM spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
            Self::MultiNamespace => "MultiNamespace",
            Self::AllNamespaces => "AllNamespaces",
        }
    }
}

/// From which versions a version is an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Upgrade {
    /// Version (`0.0.1`) or full name (`memcached-operator.v0.0.1`) of the one it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Versions or names that it may follow directly and that should no longer be installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// A range of versions, such as `>=0.1.0 <0.2.0`, that it may follow directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}

/// Catalog entry of an operator, and its requirements for OLM. Every field except `displayName` and `description` is
/// optional.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Package {
    /// Name on the operator's page.
    pub display_name: String,
    /// Description in Markdown.
    pub description: String,
    /// One line for the tile in the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Image file, relative to the settings file: SVG, PNG, JPEG or GIF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// The icon's content, read by [`Package::load`].
    #[serde(skip)]
    pub(crate) icon_content: Option<Vec<u8>>,
    /// Publisher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Link>,
    /// Contacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Categories of OperatorHub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// Capability level: `Basic Install`, `Seamless Upgrades`, `Full Lifecycle`, `Deep Insights`, `Auto Pilot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<String>,
    /// `alpha`, `beta`, `stable` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maturity: Option<String>,
    /// Oldest Kubernetes version it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_kube_version: Option<String>,
    /// Links on its page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// URL of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Provider of support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<String>,
    /// The namespace that a console suggests for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_namespace: Option<String>,
    /// Supported install modes. Defaults to all.
    #[serde(default = "all_modes")]
    pub install_modes: Vec<InstallMode>,
    /// From which versions this one is an upgrade.
    #[serde(default)]
    pub upgrade: Upgrade,
    /// Annotations of the ClusterServiceVersion, in addition to those from the fields above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the ClusterServiceVersion, for example `operatorframework.io/arch.amd64: supported`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

fn all_modes() -> Vec<InstallMode> {
    InstallMode::ALL.to_vec()
}

impl Package {
    /// Parses settings. Does not read the icon. [`Package::load`] does.
    ///
    /// # Errors
    /// If the input is not YAML, a key is unknown or a required field is missing.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(olmkit_yaml::from_slice(text.as_bytes())?)
    }

    /// Reads a settings file and the icon it names.
    ///
    /// # Errors
    /// When one of the files cannot be read, or the settings are wrong.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::read(path, |path| limits::read_named(path, &limits::SETTINGS_FILE))
    }

    /// As [`Package::load`], for a settings file in a directory from an untrusted author: neither file may be a link that leads out
    /// of the directory, a pipe or a device. `path` is relative to the directory.
    ///
    /// # Errors
    /// As of [`Package::load`].
    pub fn load_below(directory: &Directory, path: &Path) -> Result<Self, Error> {
        let root = directory.path();
        Self::read(&root.join(path), |path| {
            // A directory resolves no `..`.
            let relative = files::join(Path::new(""), path.strip_prefix(root).unwrap_or(path));
            directory.read(&relative, &limits::SETTINGS_FILE)
        })
    }

    fn read(path: &Path, read: impl Fn(&Path) -> io::Result<Vec<u8>>) -> Result<Self, Error> {
        let read = |path: &Path| {
            read(path).map_err(|source| Error::Io {
                path: path.to_owned(),
                source,
            })
        };
        let text = read(path)?;
        let mut package: Self = olmkit_yaml::from_slice(&text).map_err(|source| Error::Setting {
            setting: path.display().to_string(),
            reason: source.to_string(),
        })?;
        if let Some(icon) = &package.icon {
            if media_type(icon).is_none() {
                return Err(Error::Setting {
                    setting: format!("{}: icon", path.display()),
                    reason: format!("{icon} must end in .svg, .png, .jpg, .jpeg or .gif"),
                });
            }
            package.icon_content = Some(read(&path.parent().unwrap_or(Path::new("")).join(icon))?);
        }
        Ok(package)
    }

    /// Reads an icon from a file.
    ///
    /// # Errors
    /// When the file cannot be read or its name has no known ending.
    pub fn set_icon(&mut self, path: &Path) -> Result<(), Error> {
        let name = path.display().to_string();
        if media_type(&name).is_none() {
            return Err(Error::Setting {
                setting: "icon".into(),
                reason: format!("{name} must end in .svg, .png, .jpg, .jpeg or .gif"),
            });
        }
        let content = limits::read_named(path, &limits::SETTINGS_FILE).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
        self.icon = Some(name);
        self.icon_content = Some(content);
        Ok(())
    }

    /// The icon's media type and content, when there is one.
    pub(crate) fn icon(&self) -> Option<(&'static str, &[u8])> {
        Some((media_type(self.icon.as_deref()?)?, self.icon_content.as_deref()?))
    }
}

fn media_type(file: &str) -> Option<&'static str> {
    Some(
        match Path::new(file).extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            _ => return None,
        },
    )
}
