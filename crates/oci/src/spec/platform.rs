//! Platforms of images, and their variants.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::null_as_default;

/// The platform of an image, written `linux/amd64` or `linux/arm/v7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// Processor architecture in Go's spelling: `amd64`, `arm64`, `ppc64le`, `s390x`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub architecture: String,
    /// Operating system in Go's spelling.
    #[serde(default, deserialize_with = "null_as_default")]
    pub os: String,
    /// Version of the operating system, as Windows images have it.
    #[serde(rename = "os.version", default, skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
    /// Features of the operating system that the image needs.
    #[serde(
        rename = "os.features",
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub os_features: Vec<String>,
    /// Variant of the architecture, such as `v7`.
    #[serde(default, skip_serializing_if = "no_text")]
    pub variant: Option<String>,
}

/// An empty variant means none.
fn no_text(text: &Option<String>) -> bool {
    text.as_ref().is_none_or(String::is_empty)
}

impl Platform {
    /// Linux on this machine's architecture.
    pub fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self::new("linux", architecture, None)
    }

    /// A platform without a version of its operating system.
    pub fn new(os: &str, architecture: &str, variant: Option<String>) -> Self {
        Self {
            architecture: architecture.to_owned(),
            os: os.to_owned(),
            os_version: None,
            os_features: Vec::new(),
            variant,
        }
    }

    fn variant(&self) -> Option<&str> {
        self.variant.as_deref().filter(|variant| !variant.is_empty())
    }

    /// The platform with the names that containerd uses for systems, architectures and variants.
    fn normalized(&self) -> Self {
        let lower = |text: &str| text.to_ascii_lowercase();
        let variant = self.variant().map(lower);
        let (architecture, variant) = match lower(&self.architecture).as_str() {
            "x86_64" | "x86-64" => ("amd64".to_owned(), variant),
            "i386" => ("386".to_owned(), None),
            "aarch64" => ("arm64".to_owned(), variant),
            "armhf" => ("arm".to_owned(), Some("v7".to_owned())),
            "armel" => ("arm".to_owned(), Some("v6".to_owned())),
            other => (other.to_owned(), variant),
        };
        let is_numbered = matches!(architecture.as_str(), "amd64" | "arm" | "arm64");
        let variant = variant.map(|variant| match variant.as_bytes().first() {
            Some(b'0'..=b'9') if is_numbered => format!("v{variant}"),
            _ => variant,
        });
        let os = match lower(&self.os).as_str() {
            "macos" => "darwin".to_owned(),
            other => other.to_owned(),
        };
        Self {
            os,
            architecture,
            variant,
            ..self.clone()
        }
    }

    /// Returns true if an image has the requested version of the operating system: exactly, or in more detail.
    fn accepts_version(&self, other: &Self) -> bool {
        let Some(wanted) = &self.os_version else { return true };
        let rest = other
            .os_version
            .as_ref()
            .and_then(|have| have.strip_prefix(wanted.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// How well an image for `other` serves a request for this platform. 0 is the best, `None` means that it cannot run.
    /// The exact variant comes first, then an image without a variant, then the lower variants that the processor runs.
    pub fn preference(&self, other: &Self) -> Option<u32> {
        let (wanted, other) = (self.normalized(), other.normalized());
        if wanted.os != other.os || wanted.architecture != other.architecture || !wanted.accepts_version(&other) {
            return None;
        }
        let (wanted, have) = match (wanted.variant(), other.variant()) {
            (wanted, have) if wanted == have => return Some(0),
            (_, None) => return Some(1),
            (None, Some(have)) if IMPLIED.contains(&(other.architecture.as_str(), have)) => return Some(2),
            // The implied variant of an image without one.
            (None, Some(have)) => match (other.architecture.as_str(), level(have)?) {
                // 32-bit programs of version 8 come last: most 32-bit processors are of version 7.
                ("arm", (8, 0)) => return Some(10_000),
                ("arm", have) => ((7, 0), have),
                _ => return None,
            },
            (Some(wanted), Some(have)) => (level(wanted)?, level(have)?),
        };
        let distance = match other.architecture.as_str() {
            "amd64" | "arm" => (wanted.0.checked_sub(have.0)?, wanted.1.checked_sub(have.1)?),
            // ARMv9.0 has all of ARMv8.5, ARMv9.1 all of ARMv8.6, and so on.
            "arm64" if (wanted.0, have.0) == (9, 8) => (1, wanted.1.saturating_add(5).checked_sub(have.1)?),
            "arm64" if wanted.0 == have.0 => (0, wanted.1.checked_sub(have.1)?),
            _ => return None,
        };
        let distance = distance.0.saturating_mul(100).saturating_add(distance.1);
        Some(distance.saturating_add(2))
    }
}

/// The variants that an image without one has.
const IMPLIED: [(&str, &str); 9] = [
    ("amd64", "v1"),
    ("arm64", "v8"),
    ("ppc64", "power8"),
    ("ppc64le", "power8"),
    ("riscv64", "rva20u64"),
    ("mips", "hardfloat"),
    ("mipsle", "hardfloat"),
    ("mips64", "hardfloat"),
    ("mips64le", "hardfloat"),
];

/// The numbers of a variant: 8 and 2 of `v8.2`.
fn level(variant: &str) -> Option<(u32, u32)> {
    let number = variant.strip_prefix('v').unwrap_or(variant);
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        if let Some(variant) = self.variant() {
            write!(formatter, "/{variant}")?;
        }
        match &self.os_version {
            Some(version) => write!(formatter, ":{version}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (names, version) = match text.split_once(':') {
            Some((names, version)) => (names, Some(version.to_owned())),
            None => (text, None),
        };
        let mut parts = names.split('/').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), variant, None)
                if !os.is_empty() && !architecture.is_empty() && version.as_deref() != Some("") =>
            {
                let platform = Self::new(&os, &architecture, variant).normalized();
                Ok(Self {
                    os_version: version,
                    ..platform
                })
            }
            _ => Err(format!("{text:?} is not a platform: write linux/amd64 or linux/arm/v7")),
        }
    }
}
