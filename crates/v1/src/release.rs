//! Releases of OLM v1 and their features.

use std::fmt;
use std::str::FromStr;

use super::provider::Gates;

/// A release of operator-controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    minor: u64,
}

/// A string that names no release with known rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown release of OLM v1 {given:?}; name one from 1.{} to 1.{}, such as 1.11",
    Release::OLDEST,
    Release::NEXT
)]
#[non_exhaustive]
pub struct UnknownRelease {
    /// The input.
    pub given: String,
}

impl Release {
    const OLDEST: u64 = 5;
    const NEWEST: u64 = 11;
    /// The release that is being developed.
    const NEXT: u64 = 12;

    /// Features that a release with its standard manifests does not support.
    #[must_use]
    pub fn gates(self) -> Gates {
        Gates {
            webhooks: self.minor >= 6,
            // The only release with this gate open.
            single_own_namespace: self.minor == 8,
            // operator-controller#2885, merged after 1.11.
            api_services: self.minor >= 12,
            minor: self.minor,
            ..Gates::default()
        }
    }
}

impl Release {
    /// Returns true if the ClusterExtension's service account installs a bundle.
    #[must_use]
    pub fn needs_installer(self) -> bool {
        self.minor <= 10
    }
}

impl Default for Release {
    /// The newest whose rules are known.
    fn default() -> Self {
        Self { minor: Self::NEWEST }
    }
}

impl FromStr for Release {
    type Err = UnknownRelease;

    fn from_str(text: &str) -> Result<Self, UnknownRelease> {
        let unknown = || UnknownRelease { given: text.to_owned() };
        let numbers = text.strip_prefix('v').unwrap_or(text);
        let minor = numbers.strip_prefix("1.").ok_or_else(unknown)?;
        let minor = minor.split('.').next().unwrap_or_default();
        let minor: u64 = minor.parse().map_err(|_| unknown())?;
        if (Self::OLDEST..=Self::NEXT).contains(&minor) {
            Ok(Self { minor })
        } else {
            Err(unknown())
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "1.{}", self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn api_services_are_supported_after_1_11() {
        for (text, supported) in [
            ("1.5", false),
            ("1.10.1", false),
            ("v1.11", false),
            ("1.12", true),
            ("1.12.0", true),
        ] {
            let release: Release = text.parse().unwrap_or_default();
            assert_eq!(release.gates().api_services, supported, "{text}");
        }
        assert_eq!(Release::default().to_string(), "1.11");
        assert!(
            "1.13"
                .parse::<Release>()
                .is_err_and(|error| error.to_string().contains("from 1.5 to 1.12"))
        );
    }
}
