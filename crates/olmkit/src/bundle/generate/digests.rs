//! Images by digest: a tag can point to something else tomorrow, a digest cannot.

use crate::limits;
use crate::object::SetAt as _;
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{Error, Generated};

/// Digests by image, as a file gives them: `registry/name:tag: sha256:…` or `…: registry/name@sha256:…`.
pub type DigestMap = BTreeMap<String, String>;

/// Where digests come from: first the map, then whoever can look them up, which is a registry in practice.
pub struct Digests<'a> {
    /// Digests that are known.
    pub known: DigestMap,
    /// Looks up the digest (`sha256:…`) of an image; a failure is a text for the user.
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
    crate::yaml::from_slice(&bytes).map_err(|source| Error::DigestFile {
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

/// Replaces every image of a CSV by its digest, and lists them as related images. `resolve` gives the image with its
/// digest; images that have one already are not asked for. The order of questions and of the result is that of the names.
///
/// # Errors
/// What `resolve` says, or two images under one name.
pub fn pin(csv: &mut Value, mut resolve: impl FnMut(&str) -> Result<String, Error>) -> Result<(), Error> {
    let mut found: Vec<(String, String)> = Vec::new();
    visit(csv, &mut |name, image| found.push((name.to_owned(), image.clone())));
    let mut digests = DigestMap::new();
    for (_, image) in &found {
        if image.is_empty() || digests.contains_key(image) {
            continue;
        }
        let pinned = if image.contains("@sha256:") {
            image.clone()
        } else {
            resolve(image)?
        };
        digests.insert(image.clone(), pinned);
    }
    visit(csv, &mut |_, image| {
        if let Some(pinned) = digests.get(image) {
            image.clone_from(pinned);
        }
    });
    relate(csv, &found, &digests)
}

/// Calls `each` with a name for the place and the image that is there.
fn visit(csv: &mut Value, each: &mut impl FnMut(&str, &mut String)) {
    if let Some(Value::String(image)) = csv.pointer_mut("/metadata/annotations/containerImage") {
        each("", image);
    }
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
                    let name = name.to_lowercase().replace('_', "-");
                    if let Some(Value::String(image)) = variable.get_mut("value") {
                        each(&name, image);
                    }
                }
            }
        }
    }
}

/// One entry for each pinned image under the first name it was found by.
fn relate(csv: &mut Value, found: &[(String, String)], digests: &DigestMap) -> Result<(), Error> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, image) in found.iter().filter(|(name, _)| !name.is_empty()) {
        let Some(pinned) = digests.get(image) else { continue };
        match names.get(name.as_str()) {
            Some(other) if other != pinned => {
                return Err(Error::Digest {
                    image: image.clone(),
                    reason: format!(
                        "the name {name:?} is also used for {other}; give the containers or RELATED_IMAGE_ variables \
                         different names"
                    ),
                });
            }
            _ => {
                if !names.values().any(|known| known == pinned) {
                    names.insert(name, pinned);
                }
            }
        }
    }
    let related: Vec<Value> = names
        .into_iter()
        .map(|(name, image)| json!({"image": image, "name": name}))
        .collect();
    csv.set_at(&["spec", "relatedImages"], Value::Array(related));
    Ok(())
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
        assert_eq!(
            csv["spec"]["relatedImages"],
            json!([{"image": format!("r.io/mc@sha256:{zeros}"), "name": "cache"}, {"image": format!("r.io/op@sha256:{zeros}"), "name": "manager"}])
        );
        assert_eq!(
            csv["metadata"]["annotations"]["containerImage"],
            format!("r.io/op@sha256:{zeros}")
        );
        let before = csv.clone();
        pin(&mut csv, |_| panic!("all images have digests")).unwrap();
        assert_eq!(csv, before);
    }
}
