//! Images by digest: a tag can point to something else tomorrow, a digest cannot.

use olmkit_base::limits;
use olmkit_base::object::{SetAt as _, references_in, replace_references};
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{Error, Generated, images};

/// Digests by image, as in a file: `registry/name:tag: sha256:…` or `…: registry/name@sha256:…`.
pub type DigestMap = BTreeMap<String, String>;

/// Source of digests: first the map, then a lookup, usually in a registry.
pub struct Digests<'a> {
    /// Digests that are known.
    pub known: DigestMap,
    /// Looks up the digest (`sha256:…`) of an image. A failure is a message for the user.
    pub look_up: &'a mut dyn FnMut(&str) -> Result<String, String>,
}

/// Reads a YAML or JSON file of digests by image.
///
/// # Errors
/// When it cannot be read, or is not such a map.
pub fn read_digest_map(path: &Path) -> Result<DigestMap, Error> {
    let bytes = limits::read_named(path, &limits::SETTINGS_FILE).map_err(|reason| Error::Io {
        path: path.to_owned(),
        reason,
    })?;
    olmkit_yaml::from_slice(&bytes).map_err(|source| Error::DigestFile {
        path: path.to_owned(),
        source,
    })
}

/// Pins the images of a bundle's CSV.
pub(super) fn pin_generated(generated: &mut Generated, digests: &mut Digests<'_>) -> Result<(), Error> {
    pin(&mut generated.csv, |image| match digests.known.get(image) {
        Some(digest) if digest.starts_with("sha256:") => Ok(format!("{}@{digest}", without_tag(image))),
        Some(pinned) => Ok(pinned.clone()),
        None => match (digests.look_up)(image) {
            Ok(digest) => Ok(format!("{}@{digest}", without_tag(image))),
            Err(reason) => Err(Error::Digest {
                image: image.to_owned(),
                reason,
            }),
        },
    })?;
    images::note_pinned(&mut generated.notices);
    if let Some((_, csv)) = generated.manifests.first_mut() {
        csv.clone_from(&generated.csv);
    }
    Ok(())
}

/// `host:5000/name` for `host:5000/name:tag`.
fn without_tag(image: &str) -> &str {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// Replaces every image of a CSV with its digest and lists the images in `relatedImages`, as operator-sdk does: those of containers,
/// `RELATED_IMAGE_` variables and `relatedImages`, and the references in annotations such as `alm-examples`. An image has one entry
/// for each name. `resolve` returns the image with its digest. It is not called for images that have a digest.
///
/// # Errors
/// The error of `resolve`, or two images under one name.
pub fn pin(csv: &mut Value, mut resolve: impl FnMut(&str) -> Result<String, Error>) -> Result<(), Error> {
    let mut found: Vec<(Option<String>, String)> = Vec::new();
    visit_annotations(csv, false, &mut |key, text| {
        found.extend(annotated(key, text).map(|image| (Some(key.to_owned()), image.to_owned())));
    });
    visit_fields(csv, &mut |_, image| found.push((None, image.clone())));
    let mut digests = DigestMap::new();
    for (annotation, image) in &found {
        if image.is_empty() || digests.contains_key(image) {
            continue;
        }
        let pinned = if image.contains('@') {
            image.clone()
        } else {
            resolve(image).map_err(|error| name_annotation(error, annotation.as_deref()))?
        };
        digests.insert(image.clone(), pinned);
    }
    let known = |reference: &str| digests.get(reference).cloned();
    visit_annotations(csv, false, &mut |key, text| {
        let whole = annotated(key, text)
            .next()
            .and_then(|image| (image == text).then(|| known(image)));
        *text = whole.flatten().unwrap_or_else(|| replace_references(text, known));
    });
    visit_fields(csv, &mut |_, image| {
        if let Some(pinned) = digests.get(image) {
            image.clone_from(pinned);
        }
    });
    // Arguments and other variables that name one of these images must start the same one.
    if let Some(deployments) = csv.pointer_mut("/spec/install/spec/deployments") {
        visit_strings(deployments, &mut |text| *text = replace_references(text, known));
    }
    relate(csv)
}

/// Adds the annotation that contains an image to the reason why it cannot be pinned.
fn name_annotation(error: Error, annotation: Option<&str>) -> Error {
    match (error, annotation) {
        (Error::Digest { image, reason }, Some(key)) => Error::Digest {
            image,
            reason: format!("{reason} (annotation {key} contains this image)"),
        },
        (error, _) => error,
    }
}

/// The images in an annotation. The value of `containerImage` is one in any form.
fn annotated<'a>(key: &str, text: &'a str) -> impl Iterator<Item = &'a str> {
    let mut references = references_in(text).peekable();
    let whole = key == "containerImage" && references.peek().is_none();
    references.chain(whole.then_some(text).filter(|text| !text.is_empty()))
}

/// Calls `each` with every annotation of the CSV and of the objects in it.
fn visit_annotations(value: &mut Value, is_metadata: bool, each: &mut impl FnMut(&str, &mut String)) {
    let Some(fields) = value.as_object_mut() else { return };
    let annotations = fields
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut);
    for (key, value) in annotations.into_iter().flatten() {
        if let Value::String(text) = value {
            each(key, text);
        }
    }
    for (key, value) in fields {
        let within = key == "metadata";
        match value {
            Value::Array(list) if !(is_metadata && within) => {
                list.iter_mut().for_each(|item| visit_annotations(item, within, each));
            }
            Value::Object(_) if !(is_metadata && within) => visit_annotations(value, within, each),
            _ => {}
        }
    }
}

/// Calls `each` with every string.
fn visit_strings(value: &mut Value, each: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(list) => list.iter_mut().for_each(|item| visit_strings(item, each)),
        Value::Object(fields) => fields.values_mut().for_each(|field| visit_strings(field, each)),
        _ => {}
    }
}

/// Calls `each` with the name and image of every field that contains an image.
fn visit_fields(csv: &mut Value, each: &mut impl FnMut(&str, &mut String)) {
    for related in csv
        .pointer_mut("/spec/relatedImages")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let name = related
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if let Some(Value::String(image)) = related.get_mut("image") {
            each(&name, image);
        }
    }
    let deployments = csv
        .pointer_mut("/spec/install/spec/deployments")
        .and_then(Value::as_array_mut);
    for deployment in deployments.into_iter().flatten() {
        for field in ["containers", "initContainers"] {
            let containers = deployment
                .pointer_mut(&format!("/spec/template/spec/{field}"))
                .and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let name = container
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                if let Some(Value::String(image)) = container.get_mut("image") {
                    each(&name, image);
                }
                for variable in container
                    .get_mut("env")
                    .and_then(Value::as_array_mut)
                    .into_iter()
                    .flatten()
                {
                    let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
                    let Some(name) = name.strip_prefix("RELATED_IMAGE_") else {
                        continue;
                    };
                    let name = name.to_lowercase();
                    if let Some(Value::String(image)) = variable.get_mut("value") {
                        each(&name, image);
                    }
                }
            }
        }
    }
}

/// Lists the pinned images, each with the name of its field. An image in an annotation is named after its repository and digest.
fn relate(csv: &mut Value) -> Result<(), Error> {
    let mut found: Vec<(String, String)> = Vec::new();
    visit_fields(csv, &mut |name, image| {
        found.push((name.trim().to_owned(), image.clone()))
    });
    visit_annotations(csv, false, &mut |key, text| {
        found.extend(annotated(key, text).map(|image| (annotation_name(image), image.to_owned())));
    });
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (name, image) in found.into_iter().filter(|(_, image)| !image.is_empty()) {
        match names.get(&name) {
            Some(other) if *other != image => {
                return Err(Error::Digest {
                    reason: format!(
                        "the name {name:?} is also used for {other}; give the containers or RELATED_IMAGE_ variables \
                         different names"
                    ),
                    image,
                });
            }
            _ => names.insert(name, image),
        };
    }
    let related: Vec<Value> = names
        .into_iter()
        .map(|(name, image)| json!({"image": image, "name": name}))
        .collect();
    csv.set_at(&["spec", "relatedImages"], Value::Array(related));
    Ok(())
}

/// `NAME-DIGEST-annotation`. The name of an image in nested repositories keeps everything after the second part.
fn annotation_name(image: &str) -> String {
    let last = image.splitn(3, '/').last().unwrap_or(image);
    let (name, tag) = last
        .split_once('@')
        .or_else(|| last.split_once(':'))
        .unwrap_or((last, "latest"));
    format!("{name}-{}-annotation", tag.strip_prefix("sha256:").unwrap_or(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_pinned_in_the_order_of_names() {
        let mut csv = json!({
            "metadata": {"annotations": {"containerImage": "r.io/op:1"}},
            "spec": {"relatedImages": [{"name": "cache", "image": "r.io/mc:1"}], "install": {"spec": {"deployments": [{"spec": {"template": {"spec": {
                "containers": [{"name": "manager", "image": "r.io/op:1", "env": [{"name": "RELATED_IMAGE_CACHE", "value": "r.io/mc:1"}]}],
            }}}}]}}},
        });
        let mut asked = Vec::new();
        pin(&mut csv, |image| {
            asked.push(image.to_owned());
            Ok(format!(
                "{}@sha256:{}",
                image.split(':').next().unwrap_or_default(),
                "0".repeat(64)
            ))
        })
        .unwrap();
        assert_eq!(asked, ["r.io/op:1", "r.io/mc:1"]);
        let zeros = "0".repeat(64);
        let (op, mc) = (format!("r.io/op@sha256:{zeros}"), format!("r.io/mc@sha256:{zeros}"));
        assert_eq!(
            csv["spec"]["relatedImages"],
            json!([
                {"image": mc, "name": "cache"},
                {"image": op, "name": "manager"},
                {"image": op, "name": format!("op-{zeros}-annotation")},
            ])
        );
        assert_eq!(csv["metadata"]["annotations"]["containerImage"], op);
        let before = csv.clone();
        pin(&mut csv, |_| panic!("all images have digests")).unwrap();
        assert_eq!(csv, before);
    }

    /// A resolver that returns the same digest for every image.
    fn zeros(image: &str) -> Result<String, Error> {
        Ok(format!("{}@sha256:{}", without_tag(image), "0".repeat(64)))
    }

    #[test]
    fn images_in_annotations_arguments_and_variables_are_pinned() {
        let examples = r#"[{"kind": "A", "spec": {"image": "ghcr.io/team/sub/db:15.6", "site": "https://r.io/x"}}]"#;
        let mut csv = json!({
            "metadata": {"annotations": {"alm-examples": examples, "containerImage": "localhost:5000/op:1"}},
            "spec": {
                "description": "Runs ghcr.io/team/sub/db:15.6.",
                "install": {"spec": {"deployments": [{"spec": {"template": {
                    "metadata": {"annotations": {"sidecar": "r.io/side:1,r.io/side:1"}},
                    "spec": {"containers": [{
                        "name": "manager",
                        "image": "localhost:5000/op:1",
                        "args": ["--db=ghcr.io/team/sub/db:15.6", "--other=r.io/unknown:1"],
                        "env": [{"name": "SIDE", "value": "r.io/side:1"}],
                    }]},
                }}}]}},
            },
        });
        pin(&mut csv, zeros).unwrap();
        let zeros = "0".repeat(64);
        let (db, side) = (
            format!("ghcr.io/team/sub/db@sha256:{zeros}"),
            format!("r.io/side@sha256:{zeros}"),
        );
        assert_eq!(
            csv["metadata"]["annotations"]["alm-examples"],
            examples.replace("ghcr.io/team/sub/db:15.6", &db)
        );
        let template = &csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"];
        assert_eq!(template["metadata"]["annotations"]["sidecar"], format!("{side},{side}"));
        let container = &template["spec"]["containers"][0];
        assert_eq!(
            container["args"],
            json!([format!("--db={db}"), "--other=r.io/unknown:1"])
        );
        assert_eq!(container["env"][0]["value"], side);
        assert_eq!(csv["spec"]["description"], "Runs ghcr.io/team/sub/db:15.6.");
        let op = format!("localhost:5000/op@sha256:{zeros}");
        assert_eq!(
            csv["spec"]["relatedImages"],
            json!([
                {"image": op, "name": "manager"},
                {"image": op, "name": format!("op-{zeros}-annotation")},
                {"image": side, "name": format!("side-{zeros}-annotation")},
                {"image": db, "name": format!("sub/db-{zeros}-annotation")},
            ])
        );
    }

    #[test]
    fn an_image_has_an_entry_for_each_of_its_names() {
        let variable = |name: &str| json!({"name": name, "value": "r.io/a:1"});
        let mut csv = json!({"spec": {
            "relatedImages": [{"name": "in-base", "image": "r.io/a:1"}],
            "install": {"spec": {"deployments": [{"spec": {"template": {"spec": {"containers": [{
                "name": "manager", "image": "r.io/op:1", "env": [variable("RELATED_IMAGE_ONE"), variable("RELATED_IMAGE_TWO_B")],
            }]}}}}]}},
        }});
        pin(&mut csv, zeros).unwrap();
        let names: Vec<&str> = csv["spec"]["relatedImages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|related| related["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["in-base", "manager", "one", "two_b"]);
    }

    #[test]
    fn an_unknown_image_in_an_annotation_names_the_annotation() {
        let mut csv = json!({"metadata": {"annotations": {"alm-examples": "[\"r.io/a:1\"]"}}, "spec": {}});
        let error = pin(&mut csv, |image| {
            Err(Error::Digest {
                image: image.to_owned(),
                reason: "unknown".into(),
            })
        });
        assert_eq!(
            error.unwrap_err().to_string(),
            "r.io/a:1: unknown (annotation alm-examples contains this image)"
        );
    }
}
