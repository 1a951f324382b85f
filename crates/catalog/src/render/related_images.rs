//! The images that a bundle lists.

use super::Error;
use super::definitions::field;
use crate::decode::{Mismatch, Place, fields, string};
use crate::model::RelatedImage;
use crate::text::Value;
use olmkit_go::json::names_field;

/// The CSV's related images, the bundle image, and the images of the operator's own containers, each of the latter
/// once and only if not listed already. Environment variables are not looked at: `generate bundle` lists those.
///
/// # Errors
/// The list does not fit its type.
pub fn collect(csv: &Value<'_>, bundle_image: &str) -> Result<Vec<RelatedImage>, Error> {
    let spec = field(csv, "spec").unwrap_or(&Value::Null);
    let mut images = listed(spec)?;
    super::typed::check_deployments(spec)?;
    let mut add = |image: &str| {
        if !images.iter().any(|listed| listed.image == image) {
            images.push(RelatedImage {
                name: String::new(),
                image: image.to_owned(),
            });
        }
    };
    if !bundle_image.is_empty() {
        add(bundle_image);
    }
    let mut own: Vec<&str> = container_images(spec);
    own.sort_unstable();
    own.into_iter().for_each(&mut add);
    images.sort_by(|left, right| left.image.cmp(&right.image));
    Ok(images)
}

fn listed(spec: &Value<'_>) -> Result<Vec<RelatedImage>, Error> {
    let mut mismatch = Mismatch::default();
    let root = Place::root("[]declcfg.RelatedImage");
    let items = match spec.get("relatedImages") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Sequence(items)) => items.as_slice(),
        Some(other) => {
            mismatch.report(other, "", &root);
            &[]
        }
    };
    let mut images = Vec::new();
    for item in items {
        let mut image = RelatedImage::default();
        for (name, value) in fields(item, "declcfg.RelatedImage", &root, &mut mismatch) {
            if names_field(name, "name") {
                string(
                    value,
                    &mut image.name,
                    &root.field("RelatedImage", "name"),
                    &mut mismatch,
                );
            } else if names_field(name, "image") {
                string(
                    value,
                    &mut image.image,
                    &root.field("RelatedImage", "image"),
                    &mut mismatch,
                );
            }
        }
        images.push(image);
    }
    mismatch.finish(images).map_err(Error::Bundle)
}

/// Images of containers and init containers of all deployments of the install strategy.
fn container_images<'v>(spec: &'v Value<'_>) -> Vec<&'v str> {
    let path = |value: &'v Value<'_>, names: &[&str]| -> Option<&'v Value<'_>> {
        names.iter().try_fold(value, |value, name| field(value, name))
    };
    let Some(install) = field(spec, "install") else {
        return Vec::new();
    };
    if field(install, "strategy").and_then(Value::as_str) != Some("deployment") {
        return Vec::new();
    }
    let mut images = Vec::new();
    for deployment in path(install, &["spec", "deployments"])
        .map(Value::items)
        .unwrap_or_default()
    {
        let Some(pod) = path(deployment, &["spec", "template", "spec"]) else {
            continue;
        };
        for list in ["containers", "initContainers"] {
            for container in field(pod, list).map(Value::items).unwrap_or_default() {
                images.push(field(container, "image").and_then(Value::as_str).unwrap_or_default());
            }
        }
    }
    images
}
