//! `catalog images`: every image that a mirror of a catalog needs.

use std::collections::BTreeMap;

use super::model::Catalog;
use olmkit_base::limits;

/// Image references with the bundles that name them. Empty references are omitted.
pub fn images(catalog: &Catalog, package: Option<&str>) -> BTreeMap<String, Vec<String>> {
    let mut images: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for bundle in &catalog.bundles {
        if package.is_some_and(|package| bundle.package != package) {
            continue;
        }
        let own = std::iter::once(&bundle.image);
        for image in own.chain(bundle.related_images.iter().map(|image| &image.image)) {
            if !image.is_empty() {
                images
                    .entry(image.clone())
                    .or_default()
                    .push(limits::name(&bundle.name));
            }
        }
    }
    for bundles in images.values_mut() {
        bundles.sort();
        bundles.dedup();
    }
    images
}
