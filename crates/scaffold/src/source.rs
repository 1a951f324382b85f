use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// True from the first release on. Before it, Cargo finds olmkit's libraries only in a checkout or a git repository.
pub const IS_RELEASED: bool = false;

/// Where a project takes olmkit's libraries from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Source {
    /// The version of this program, from a registry.
    #[default]
    Registry,
    /// Another version, from a registry.
    Version(String),
    /// A git repository, at a tag.
    Git {
        /// Address of the repository.
        url: String,
        /// The tag. That of this program's version if it is not given.
        tag: String,
    },
    /// A clone of the repository.
    Path(PathBuf),
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Name {
            what: "--source",
            value: text.to_owned(),
            reason: reason.to_owned(),
        };
        // The rest is written into a TOML string.
        if text.contains(['"', '\\']) || text.chars().any(char::is_control) {
            return Err(wrong(
                "quotes, backslashes and control characters are not possible here",
            ));
        }
        match text.split_once(':') {
            _ if text == "registry" => Ok(Self::Registry),
            Some(("path", path)) if !path.is_empty() => Ok(Self::Path(path.into())),
            Some(("git", rest)) if !rest.is_empty() => {
                let (url, tag) = rest.split_once('#').unwrap_or((rest, ""));
                let tag = match tag {
                    "" => format!("v{}", env!("CARGO_PKG_VERSION")),
                    tag => tag.to_owned(),
                };
                Ok(Self::Git {
                    url: url.to_owned(),
                    tag,
                })
            }
            _ => Err(wrong("expected registry, git:URL[#TAG] or path:DIRECTORY")),
        }
    }
}

impl Source {
    /// Checks that the values can be part of a TOML string.
    ///
    /// # Errors
    /// They hold quotes, backslashes or control characters.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let path = |path: &PathBuf| path.display().to_string();
        let texts = match self {
            Self::Registry => Vec::new(),
            Self::Version(version) => vec![version.clone()],
            Self::Git { url, tag } => vec![url.clone(), tag.clone()],
            Self::Path(own) => vec![path(own)],
        };
        match texts
            .iter()
            .find(|text| text.contains(['"', '\\']) || text.chars().any(char::is_control))
        {
            None => Ok(()),
            Some(text) => Err(Error::Name {
                what: "the source of olmkit's libraries",
                value: text.clone(),
                reason: "quotes, backslashes and control characters are not possible here".to_owned(),
            }),
        }
    }

    /// The keys of a dependency in `Cargo.toml`, for a crate in this directory of the repository.
    pub(crate) fn dependency(&self, folder: &str) -> String {
        match self {
            Self::Version(version) => format!("version = \"{version}\""),
            Self::Registry => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
            Self::Git { url, tag } => format!("git = \"{url}\", tag = \"{tag}\""),
            Self::Path(path) => format!("path = \"{}\"", Path::new(path).join(folder).display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changelog_agrees_about_releases() {
        let changelog = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../CHANGELOG.md")).unwrap();
        assert_eq!(
            changelog.contains("\n## [0.1.0]"),
            IS_RELEASED,
            "set IS_RELEASED in crates/scaffold/src/source.rs"
        );
    }

    #[test]
    fn the_three_forms() {
        assert_eq!("registry".parse::<Source>().unwrap(), Source::Registry);
        let path: Source = "path:../olmkit".parse().unwrap();
        assert_eq!(path.dependency("crates/olmkit"), "path = \"../olmkit/crates/olmkit\"");
        let git: Source = "git:https://example.com/olmkit#v7".parse().unwrap();
        assert_eq!(
            git.dependency("x"),
            "git = \"https://example.com/olmkit\", tag = \"v7\""
        );
        for wrong in ["", "path:", "git:", "elsewhere:x", "path:a\"b"] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong}");
        }
    }
}
