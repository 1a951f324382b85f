//! The order in which `opm render` writes blobs.

use std::collections::BTreeMap;

use super::model::{Blob, Catalog};

/// The blobs of a catalog in opm's order: packages by name; for each its package blobs, channels and bundles by name,
/// custom blobs by schema, deprecations; at the end custom blobs without a package. The sort is stable. Blobs of the
/// known schemas without a package are omitted, as in opm. `catalog validate` reports them.
pub fn blobs(catalog: Catalog) -> Vec<Blob> {
    let mut packages: BTreeMap<String, Vec<Blob>> = BTreeMap::new();
    let mut global = Vec::new();
    let Catalog {
        packages: package_blobs,
        mut channels,
        mut bundles,
        deprecations,
        mut customs,
    } = catalog;
    channels.sort_by(|left, right| left.name.cmp(&right.name));
    bundles.sort_by(|left, right| left.name.cmp(&right.name));
    customs.sort_by(|left, right| left.schema.cmp(&right.schema));
    let (package_customs, global_customs): (Vec<_>, Vec<_>) =
        customs.into_iter().partition(|custom| !custom.package.is_empty());
    let in_packages = package_blobs
        .into_iter()
        .map(Blob::Package)
        .chain(channels.into_iter().map(Blob::Channel))
        .chain(bundles.into_iter().map(Blob::Bundle))
        .chain(package_customs.into_iter().map(Blob::Custom))
        .chain(deprecations.into_iter().map(Blob::Deprecation));
    for blob in in_packages.filter(|blob| !blob.package().is_empty()) {
        packages.entry(blob.package().to_owned()).or_default().push(blob);
    }
    global.extend(global_customs.into_iter().map(Blob::Custom));
    packages.into_values().flatten().chain(global).collect()
}
