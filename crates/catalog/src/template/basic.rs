//! `olm.template.basic`: a catalog whose bundles are references only.

use super::{Bundles, Kind, check_schema, entries};
use crate::model::{Blob, Bundle, Catalog};
use crate::text::Value;
use rayon::prelude::*;

pub(super) fn render(document: &Value<'_>, bundles: &dyn Bundles) -> Result<Catalog, String> {
    check_schema(document, Kind::Basic)?;
    let parts: Vec<Result<Catalog, String>> = entries(document)?
        .into_par_iter()
        .map(|blob| match blob {
            Blob::Bundle(bundle) if is_reference(&bundle) => bundles.render(&bundle.image),
            Blob::Bundle(_) => Err("unexpected fields present in basic template bundle".into()),
            other => Ok(Catalog::from_iter([other])),
        })
        .collect();
    let mut catalog = Catalog::default();
    for part in parts {
        catalog.extend(part?);
    }
    Ok(catalog)
}

/// Only an image. A name is tolerated and means nothing.
fn is_reference(bundle: &Bundle) -> bool {
    !bundle.image.is_empty()
        && bundle.package.is_empty()
        && bundle.properties.is_empty()
        && bundle.related_images.is_empty()
}
