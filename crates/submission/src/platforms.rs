//! Versions of OpenShift: the supported ones, and their Kubernetes versions. The hosted pipeline queries a service.
//! This module uses a dated table, which a file can replace.

use serde::Deserialize;

use crate::versions::Release;

/// The last version in the hosted pipeline's table from OpenShift to Kubernetes.
pub(crate) const LAST_KNOWN_TO_PIPELINE: Release = Release::new(4, 17);

/// One version of OpenShift.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Platform {
    /// `4.22`.
    pub openshift: String,
    /// `1.35`.
    pub kubernetes: String,
    /// True if catalogs of this version still accept bundles.
    #[serde(default)]
    pub supported: bool,
}

/// The table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Platforms {
    /// The day it was true.
    pub date: String,
    /// The versions, in any order.
    pub versions: Vec<Platform>,
}

/// The table that olmkit ships.
static SHIPPED: &str = include_str!("platforms.json");

impl Default for Platforms {
    fn default() -> Self {
        Self::parse(SHIPPED).unwrap_or(Self {
            date: String::new(),
            versions: Vec::new(),
        })
    }
}

impl Platforms {
    /// Reads a table from JSON.
    ///
    /// # Errors
    /// The input is not such a table. The message describes the expected format.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: Self = serde_json::from_str(text).map_err(|error| {
            format!(
                "{error}; a table looks like \
                 {{\"date\": \"2026-08-22\", \"versions\": [{{\"openshift\": \"4.22\", \"kubernetes\": \"1.35\", \"supported\": true}}]}}"
            )
        })?;
        for platform in &table.versions {
            Release::parse(&platform.openshift).map_err(|error| format!("openshift: {error}"))?;
            Release::parse(&platform.kubernetes).map_err(|error| format!("kubernetes: {error}"))?;
        }
        Ok(table)
    }

    /// Keeps only the supported versions in a range such as `4.14-4.22`, or those of a list `4.14,4.16`.
    ///
    /// # Errors
    /// The range is not one, or selects nothing.
    pub fn select(&mut self, range: &str) -> Result<(), String> {
        let parse = |text: &str| {
            Release::parse_openshift(text)
                .map(same_release)
                .map_err(|error| format!("{error}; write 4.14-4.22 or 4.14,4.16"))
        };
        let wanted: Box<dyn Fn(Release) -> bool> = match range.split_once('-') {
            Some((from, to)) => {
                let (from, to) = (parse(from)?, parse(to)?);
                Box::new(move |version| from <= version && version <= to)
            }
            None => {
                let list: Vec<Release> = range.split(',').map(parse).collect::<Result<_, _>>()?;
                Box::new(move |version| list.contains(&version))
            }
        };
        for platform in &mut self.versions {
            platform.supported = Release::parse(&platform.openshift).map(same_release).is_ok_and(&wanted);
        }
        if self.supported().is_empty() {
            return Err(format!("no known version of OpenShift is in the range {range}"));
        }
        Ok(())
    }

    /// Treats a version as supported because a repository has a directory of catalogs for it, such as `v5.0`. The
    /// hosted repositories add a new version at different times. Versions older than the supported ones are not
    /// changed.
    pub fn add_catalogs(&mut self, directory: &str) {
        let newest = self.supported().first().copied();
        let Some(version) = exact(directory).filter(|version| newest.is_some_and(|newest| newest < *version)) else {
            return;
        };
        for platform in &mut self.versions {
            if Release::parse(&platform.openshift).map(same_release) == Ok(version) {
                platform.supported = true;
            }
        }
    }

    /// The supported versions, newest first.
    pub(crate) fn supported(&self) -> Vec<Release> {
        let supported = self.versions.iter().filter(|platform| platform.supported);
        let mut versions: Vec<Release> = supported
            .filter_map(|platform| Release::parse(&platform.openshift).ok())
            .collect();
        versions.sort();
        versions.reverse();
        versions
    }

    /// The supported versions that an annotation `com.redhat.openshift.versions` selects, newest first. `None` if it means nothing.
    pub(crate) fn selected(&self, annotation: Option<&str>) -> Option<Vec<Release>> {
        let mut versions = self.supported();
        let Some(range) = annotation.filter(|text| !text.is_empty()) else {
            return Some(versions);
        };
        let range = range.trim();
        if let Some(only) = range.strip_prefix('=') {
            let only = exact(only)?;
            versions.retain(|version| *version == only);
        } else if let Some((from, to)) = range.split_once('-') {
            let (from, to) = (exact(from)?, exact(to)?);
            versions.retain(|version| from <= *version && *version <= to);
        } else if let Some((first, second)) = range.split_once(',') {
            let from = exact(first)?.min(exact(second)?);
            versions.retain(|version| from <= *version);
        } else {
            let from = exact(range)?;
            versions.retain(|version| from <= *version);
        }
        Some(versions)
    }

    /// Every known OpenShift with its Kubernetes, oldest first. Up to the last one in the pipeline's table, or all.
    pub(crate) fn kubernetes(&self, only_known_to_pipeline: bool) -> Vec<(Release, Release)> {
        let mut table: Vec<(Release, Release)> = self
            .versions
            .iter()
            .filter_map(|platform| {
                let openshift = Release::parse(&platform.openshift).ok()?;
                Some((openshift, Release::parse(&platform.kubernetes).ok()?))
            })
            .filter(|(openshift, _)| !only_known_to_pipeline || *openshift <= LAST_KNOWN_TO_PIPELINE)
            .collect();
        table.sort();
        table
    }
}

/// `v4.12`: an optional `v`, two numbers, and surrounding whitespace.
fn exact(text: &str) -> Option<Release> {
    let text = text.trim();
    let (major, minor) = text.strip_prefix('v').unwrap_or(text).split_once('.')?;
    let number = |text: &str| {
        let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| text.parse().ok()).flatten()
    };
    Some(same_release(Release::new(number(major)?, number(minor)?)))
}

/// OpenShift 4.23 and 5.0 are one release. Its catalogs are called v5.0, and OLM compares it as 5.0 too.
pub(crate) fn same_release(version: Release) -> Release {
    match (version.major, version.minor) {
        (4, 23) => Release::new(5, 0),
        _ => version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_select_supported_versions() {
        let platforms = Platforms::default();
        let selected = |annotation| -> Option<String> {
            let versions: Vec<String> = platforms.selected(annotation)?.iter().map(Release::short).collect();
            Some(versions.join(" "))
        };
        assert_eq!(selected(Some("v4.8-v4.13")).as_deref(), Some("4.13 4.12"));
        assert_eq!(selected(Some("=v4.20")).as_deref(), Some("4.20"));
        assert_eq!(selected(Some(" 4.21 ")).as_deref(), Some("4.22 4.21"));
        assert_eq!(selected(Some("v4.21,v4.22")).as_deref(), Some("4.22 4.21"));
        assert_eq!(selected(Some("latest")), None);
        assert_eq!(selected(None), selected(Some("v4.1")));
    }

    #[test]
    fn openshift_4_23_is_openshift_5_0() {
        let mut platforms = Platforms::default();
        platforms.add_catalogs("v4.11");
        platforms.add_catalogs("templates");
        assert_eq!(platforms, Platforms::default());
        platforms.add_catalogs("v5.0");
        let selected = |annotation| -> Vec<String> {
            let versions = platforms.selected(Some(annotation)).unwrap();
            versions.iter().map(Release::short).collect()
        };
        for annotation in ["v4.23", "v5.0", "=v4.23", "=v5.0", "v4.23-v5.0"] {
            assert_eq!(selected(annotation), ["5.0"], "{annotation}");
        }
        assert_eq!(selected("v4.22-v4.23"), ["5.0", "4.22"]);
        assert_eq!(selected("v4.21-v4.22"), ["4.22", "4.21"]);
        for range in ["4.22-4.23", "4.22-5.0", "4.22,4.23", "v4.22,v5.0"] {
            let mut platforms = Platforms::default();
            assert_eq!(platforms.select(range), Ok(()), "{range}");
            let versions: Vec<String> = platforms.supported().iter().map(Release::short).collect();
            assert_eq!(versions, ["5.0", "4.22"], "{range}");
        }
        let kubernetes = platforms.kubernetes(false);
        assert_eq!(kubernetes.last(), Some(&(Release::new(5, 0), Release::new(1, 36))));
    }

    #[test]
    fn a_table_with_nonsense_is_refused() {
        assert!(Platforms::parse("{}").is_err_and(|error| error.contains("a table looks like")));
        let mut platforms = Platforms::default();
        assert!(platforms.select("x").is_err_and(|error| error.contains("4.14-4.22")));
        assert!(
            platforms
                .select("9.1-9.2")
                .is_err_and(|error| error.contains("9.1-9.2"))
        );
        assert_eq!(platforms.select("4.14,4.16"), Ok(()));
    }
}
