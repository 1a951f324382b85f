//! The functions of CEL and of the Kubernetes API server, with the versions that introduced them.

mod convert;
pub(crate) mod declarations;
mod formats;
mod lists;
mod objects;
mod print;
pub(crate) mod run;
pub(crate) mod signature;
mod strings;
mod times;
mod urls;

use std::fmt;

use crate::runtime::Outcome;

/// Result of a call in a group of functions. `None` if the function is not in the group.
type Found = Option<Outcome>;

/// A group of functions or a part of the language that one version of Kubernetes introduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Library {
    /// The language and its standard functions.
    Standard,
    /// Functions that Kubernetes had from the beginning.
    Core,
    Optional,
    Quantity,
    StringFormat,
    Sets,
    Ip,
    Format,
    Keywords,
    TwoVariables,
    Semver,
    Lists,
}

/// A minor version of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    /// 1.
    pub major: u16,
    /// 29 in 1.29.
    pub minor: u16,
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Library {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Standard,
        Self::Core,
        Self::Optional,
        Self::Quantity,
        Self::StringFormat,
        Self::Sets,
        Self::Ip,
        Self::Format,
        Self::Keywords,
        Self::TwoVariables,
        Self::Semver,
        Self::Lists,
    ];

    /// The first version whose API server accepts new CustomResourceDefinitions with this library, in its default
    /// configuration. A server supports a library one version earlier for existing definitions, so that a cluster can
    /// be rolled back.
    pub fn since(self) -> KubernetesVersion {
        let minor = match self {
            Self::Standard | Self::Core => 25,
            Self::Optional | Self::Quantity => 29,
            Self::StringFormat | Self::Sets => 30,
            Self::Ip => 31,
            Self::Format | Self::Keywords => 32,
            Self::TwoVariables => 33,
            Self::Semver => 34,
            Self::Lists => 35,
        };
        KubernetesVersion { major: 1, minor }
    }

    /// The usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "the standard functions",
            Self::Core => "the string, list, URL and regex libraries",
            Self::Optional => "optional types",
            Self::Quantity => "the quantity library",
            Self::StringFormat => "format and strings.quote",
            Self::Sets => "the sets library",
            Self::Ip => "the IP and CIDR library",
            Self::Format => "the format library",
            Self::Keywords => "fields that have the name of a keyword",
            Self::TwoVariables => "macros with two variables",
            Self::Semver => "the semver library",
            Self::Lists => "the list library",
        }
    }
}
