//! C7: checks that a ClusterCatalog has the installed bundle.

use std::collections::BTreeSet;

use super::{Installation, Obstacle};
use crate::text;

/// The ClusterCatalogs' contents for a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offered {
    /// The ClusterCatalogs that have the package.
    pub by: Vec<Offer>,
    /// Why other catalogs could not be queried.
    pub unknown: Vec<String>,
}

/// One ClusterCatalog's contents for a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The name of the ClusterCatalog.
    pub catalog: String,
    /// The versions of its bundles.
    pub versions: BTreeSet<String>,
    /// Its channels.
    pub channels: BTreeSet<String>,
}

impl Offer {
    /// Nothing yet of a package in a ClusterCatalog.
    #[must_use]
    pub fn new(catalog: &str) -> Self {
        Self {
            catalog: catalog.to_owned(),
            ..Self::default()
        }
    }

    fn has(&self, version: &str, channel: &str) -> bool {
        (version.is_empty() || self.versions.contains(version))
            && (channel.is_empty() || self.channels.contains(channel))
    }
}

/// C7: the installed version has to be in a ClusterCatalog, and the channel, if the Subscription names one.
pub(super) fn offered(installation: &Installation<'_>, obstacles: &mut Vec<Obstacle>) {
    let Some(offered) = installation.offered else {
        return;
    };
    let subscription = installation.subscription;
    let (package, channel) = (text(subscription, "/spec/name"), text(subscription, "/spec/channel"));
    let version = installation.csv.map_or("", |csv| text(csv, "/spec/version"));
    if offered.by.iter().any(|offer| offer.has(version, channel)) {
        return;
    }
    let mut wanted = format!("package {package}");
    if !version.is_empty() {
        wanted.push_str(&format!(" with version {version}"));
    }
    if !channel.is_empty() {
        wanted.push_str(&format!(" and channel {channel}"));
    }
    let names: Vec<&str> = offered.by.iter().map(|offer| offer.catalog.as_str()).collect();
    obstacles.push(if let Some(first) = offered.unknown.first() {
        let more = match offered.unknown.len() {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        Obstacle {
            id: "C7",
            consent: true,
            message: format!("it is not known whether a ClusterCatalog has {wanted}: {first}{more}"),
            hint: "repair the catalog and check again, or run `olmkit catalog resolve --olmv1`, which reads catalog images",
        }
    } else if names.is_empty() {
        Obstacle {
            id: "C7",
            consent: false,
            message: format!("no ClusterCatalog has package {package}"),
            hint: "apply the ClusterCatalog that `olmkit migrate plan` prints, and check again when it is served",
        }
    } else {
        Obstacle {
            id: "C7",
            consent: false,
            message: format!("no ClusterCatalog has {wanted}; of the package {} has other versions or channels", names.join(", ")),
            hint: "upgrade the operator to a version that the catalog has, or change the Subscription's channel to one of its channels",
        }
    });
}
