//! Names from data that become names of files.

use std::path::Path;

/// A name that is one part of a path, so that joining it to a directory stays inside that directory.
///
/// ```
/// use olmkit_base::object::PathPart;
///
/// assert_eq!(PathPart::new("memcached-operator")?.as_str(), "memcached-operator");
/// assert!(PathPart::new("../elsewhere").is_err());
/// assert!(PathPart::new("/etc/passwd").is_err());
/// # Ok::<(), olmkit_base::object::InvalidPathPart>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPart(String);

/// Why a name cannot be one part of a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be the name of a file: {reason}")]
pub struct InvalidPathPart {
    name: String,
    reason: &'static str,
}

impl PathPart {
    /// Maximum bytes of a name, which is what Linux file systems allow.
    pub const LONGEST: usize = 255;

    /// Checks a name.
    ///
    /// # Errors
    /// The name is empty, `.` or `..`, longer than [`Self::LONGEST`] bytes, or has a slash, a backslash or a control character.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidPathPart> {
        let name = name.into();
        let reason = match name.as_str() {
            "" => "it is empty",
            "." | ".." => "it means a directory",
            name if name.contains(['/', '\\']) => "it has a separator of directories",
            name if name.chars().any(char::is_control) => "it has a control character",
            name if name.len() > Self::LONGEST => "it is longer than 255 bytes",
            _ => return Ok(Self(name)),
        };
        let name = name.chars().take(Self::LONGEST).collect();
        Err(InvalidPathPart { name, reason })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<Path> for PathPart {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::PathPart;

    #[test]
    fn only_names_within_a_folder_are_accepted() {
        for name in ["a", "a.b_c-d:e", "...", "ünïcödé", &"x".repeat(255)] {
            assert_eq!(PathPart::new(name).unwrap().as_str(), name);
        }
        for name in [
            "",
            ".",
            "..",
            "/",
            "/abs",
            "../x",
            "a/b",
            "a\\b",
            "a\nb",
            "a\0",
            &"x".repeat(256),
        ] {
            assert!(PathPart::new(name).is_err(), "{name:?}");
        }
    }
}
