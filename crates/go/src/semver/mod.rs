//! Versions and version ranges by the rules of blang/semver v4, which OLM and the Go tools use.

mod range;
mod version;

pub use range::{RangeError, VersionRange};
pub use version::{PreRelease, Version, VersionError};
