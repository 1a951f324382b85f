//! IMG: the images that the operator uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::checked::Checked;
use super::super::context::{Context, Csv, field, items};
use super::warning;
use crate::object::Reference;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let used = used(&csv);
    let mut findings = Vec::new();
    for (image, pointer) in &used {
        findings.extend(one(&csv, image, pointer));
    }
    let related: BTreeSet<&str> = csv
        .list("/spec/relatedImages")
        .iter()
        .map(|related| field(related, "image"))
        .collect();
    for (at, related) in csv.list("/spec/relatedImages").iter().enumerate() {
        let image = field(related, "image");
        if !used.contains_key(image) {
            findings.extend(invalid(&csv, image, &format!("/spec/relatedImages/{at}/image")));
        }
    }
    // Whoever renders a catalog adds the images of containers to this list, but does not look into variables.
    for (image, pointer) in used.iter().filter(|(_, pointer)| pointer.ends_with("/value")) {
        if !related.contains(*image) && Reference::parse(image).is_ok() {
            let message = format!("{image} is not listed in `relatedImages`: mirrors will miss it");
            findings.push(
                warning("IMG-4", message)
                    .at(csv.object, pointer)
                    .hint("add it to spec.relatedImages; `generate bundle` does it"),
            );
        }
    }
    if let Some(image) = csv.annotation("containerImage").filter(|image| !image.is_empty()) {
        let known = used.contains_key(image) || related.contains(image);
        if !known && !used.is_empty() {
            let message = format!("the annotation names {image}, which the operator does not use");
            let hint = "name the image of the operator's container";
            findings.push(
                warning("IMG-5", message)
                    .at(csv.object, "/metadata/annotations/containerImage")
                    .hint(hint),
            );
        }
    }
    findings
}

/// Every image of a container or of an environment variable like RELATED_IMAGE_…, with its first place.
fn used<'v>(csv: &Csv<'v>) -> BTreeMap<&'v str, String> {
    let mut used = BTreeMap::new();
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let Some(pod) = deployment.pointer("/spec/template/spec") else {
            continue;
        };
        for list in ["initContainers", "containers"] {
            for (index, container) in items(pod, list).iter().enumerate() {
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/{list}/{index}");
                let image = field(container, "image");
                if !image.is_empty() {
                    used.entry(image).or_insert_with(|| format!("{pointer}/image"));
                }
                for (number, variable) in items(container, "env").iter().enumerate() {
                    let value = variable.get("value").and_then(Value::as_str).unwrap_or_default();
                    if field(variable, "name").starts_with("RELATED_IMAGE_") && !value.is_empty() {
                        used.entry(value)
                            .or_insert_with(|| format!("{pointer}/env/{number}/value"));
                    }
                }
            }
        }
    }
    used
}

fn one(csv: &Csv<'_>, image: &str, pointer: &str) -> Option<Checked> {
    let reference = match Reference::parse(image) {
        Ok(reference) => reference,
        Err(_) => return invalid(csv, image, pointer),
    };
    if reference.digest().is_some() {
        return None;
    }
    match reference.tag() {
        None | Some("latest") => {
            let message = format!("{image} names whatever is newest: each pod may run another program");
            Some(
                warning("IMG-2", message)
                    .at(csv.object, pointer)
                    .hint("name a digest: `@sha256:…`"),
            )
        }
        Some(_) => {
            let message =
                format!("{image} is named by a tag, which can be moved, and which mirror rules for digests pass by");
            Some(
                warning("IMG-1", message)
                    .at(csv.object, pointer)
                    .hint("name a digest; `generate bundle --use-image-digests` does it"),
            )
        }
    }
}

fn invalid(csv: &Csv<'_>, image: &str, pointer: &str) -> Option<Checked> {
    let error = Reference::parse(image).err()?;
    let message = format!("{image:?} is no image reference: {error}");
    Some(
        warning("IMG-3", message)
            .at(csv.object, pointer)
            .hint("write REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:…"),
    )
}
