//! Lints on single blobs: schemas and keys that OLM ignores, and related images without an image.

use std::collections::BTreeMap;

use super::Problem;
use crate::keys::{is_reserved, meant_schema};
use crate::model::{Bundle, Catalog, Custom, Origin};
use olmkit_diagnostics::{self as diagnostics, Proof, Severity, Witness, define_rules};

/// The specification of the format.
const SPECIFICATION: &str = "https://olm.operatorframework.io/docs/reference/file-based-catalogs/";

define_rules! {
    UNKNOWN_SCHEMA = {
        id: "catalog-unknown-schema",
        severity: Severity::Warning,
        origin: diagnostics::Origin::Lint,
        summary: "A blob's schema should be one that OLM supports, or a custom one without the prefix `olm.`.",
        why: "OLM ignores a blob with another schema, so that its channel, bundle or deprecation does not exist for users.",
        bad: "schema: olm.chanel",
        good: "schema: olm.channel",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "OLM reads the specification's four schemas and treats all other schemas as custom blobs",
            "any",
            SPECIFICATION,
        ),
    }
    UNKNOWN_KEY = {
        id: "catalog-unknown-key",
        severity: Severity::Warning,
        origin: diagnostics::Origin::Lint,
        summary: "A blob's keys should belong to its schema.",
        why: "OLM and opm ignore other keys: a misspelled `skips` skips nothing, and `opm render` drops it.",
        bad: "entries:\n- name: demo.v1.1.0\n  skip: [demo.v1.0.0]",
        good: "entries:\n- name: demo.v1.1.0\n  skips: [demo.v1.0.0]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "the specification lists each schema's keys, and opm decodes no other keys",
            "any",
            SPECIFICATION,
        ),
    }
    RELATED_IMAGE = {
        id: "catalog-related-image",
        severity: Severity::Warning,
        origin: diagnostics::Origin::Lint,
        summary: "Each related image in a bundle should have an image reference.",
        why: "Mirror tools copy the listed images, so that an image without a reference is missing on a disconnected cluster.",
        bad: "relatedImages:\n- name: proxy\n  image: \"\"",
        good: "relatedImages:\n- name: proxy\n  image: quay.io/example/proxy@sha256:…",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "`relatedImages` lists the images that a mirror needs",
            "any",
            SPECIFICATION,
        ),
    }
}

/// Checks each blob of a catalog.
pub fn check(catalog: &Catalog) -> Vec<Problem> {
    let mut problems = Vec::new();
    for custom in &catalog.customs {
        problems.extend(unknown_schema(custom));
    }
    let named = |package: &str, name: &str| format!("{package}/{name}");
    for package in &catalog.packages {
        unknown_keys(&package.origin, "olm.package", package.name.clone(), &mut problems);
    }
    for channel in &catalog.channels {
        let object = named(&channel.package, &channel.name);
        unknown_keys(&channel.origin, "olm.channel", object, &mut problems);
    }
    for bundle in &catalog.bundles {
        unknown_keys(&bundle.origin, "olm.bundle", bundle.name.clone(), &mut problems);
        problems.extend(related_images(bundle));
    }
    for deprecation in &catalog.deprecations {
        let object = deprecation.package.clone();
        unknown_keys(&deprecation.origin, "olm.deprecations", object, &mut problems);
    }
    problems
}

fn unknown_schema(custom: &Custom) -> Option<Problem> {
    let schema = &custom.schema;
    let meant = meant_schema(schema);
    if meant.is_none() && !is_reserved(schema) {
        return None;
    }
    let message = format!("OLM ignores the blob: it does not know the schema {schema:?}");
    let object = if custom.name.is_empty() {
        &custom.package
    } else {
        &custom.name
    };
    let problem = Problem::warning(&UNKNOWN_SCHEMA, message, &custom.origin)
        .at("/schema")
        .of(object);
    Some(match meant {
        Some(meant) => problem.hint(format!("did you mean {meant}?")),
        None => problem
            .hint("use olm.package, olm.channel, olm.bundle or olm.deprecations; custom schemas need another prefix"),
    })
}

/// Equal keys of one blob, such as `skip` in each entry, are one finding.
fn unknown_keys(origin: &Origin, schema: &str, object: String, problems: &mut Vec<Problem>) {
    let mut keys: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for unknown in &origin.unknown {
        keys.entry(&unknown.key).or_default().push(unknown);
    }
    for (key, places) in keys {
        let Some(first) = places.first() else { continue };
        let times = match places.len() {
            1 => String::new(),
            more => format!(", {more} times"),
        };
        let message = if first.is_type {
            format!("OLM ignores the property{times}: it does not know the type {key:?}")
        } else {
            format!("OLM ignores the key {key:?}{times}: {schema} has no such key at this place")
        };
        let problem = Problem::warning(&UNKNOWN_KEY, message, origin)
            .at(&first.pointer)
            .of(&object);
        problems.push(match first.meant {
            Some(meant) => problem.hint(format!("did you mean {meant:?}?")),
            None => problem.hint("remove it, or write a comment instead"),
        });
    }
}

fn related_images(bundle: &Bundle) -> Option<Problem> {
    let mut empty = bundle
        .related_images
        .iter()
        .enumerate()
        .filter(|(_, image)| image.image.is_empty());
    let (index, first) = empty.next()?;
    let name = if first.name.is_empty() {
        format!("related image {index}")
    } else {
        format!("related image {:?}", first.name)
    };
    let others = match empty.count() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let message = format!("bundle {}: no image for {name}{others}", bundle.name);
    Some(
        Problem::warning(&RELATED_IMAGE, message, &bundle.origin)
            .at(format!("/relatedImages/{index}"))
            .of(&bundle.name)
            .hint("set the image, or remove the entry"),
    )
}
