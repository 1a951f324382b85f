//! Related images: the images that mirrors for disconnected clusters have to copy.

use serde_json::{Value, json};

use super::collect::Collection;
use super::typed::Typed;
use super::{Error, Notice, Weight};

const PREFIX: &str = "RELATED_IMAGE_";

const LISTED_ONCE: &str = "has several names in RELATED_IMAGE_ variables; it is listed once, without a name";

/// Pinned images are also listed under the names of their variables.
const LISTED_AGAIN: &str =
    "has several names in RELATED_IMAGE_ variables; it is listed once under each name, and once without a name";

/// Corrects the notices about names after the images were pinned.
pub(super) fn note_pinned(notices: &mut [Notice]) {
    for notice in notices.iter_mut().filter(|notice| notice.message == LISTED_ONCE) {
        notice.message = LISTED_AGAIN.into();
    }
}

struct Image {
    name: String,
    image: String,
    container: String,
}

/// The images of variables that start with `RELATED_IMAGE_`, named after the rest of the variable's name.
///
/// # Errors
/// When a variable takes its value from elsewhere.
pub(super) fn related(found: &Collection, notices: &mut Vec<Notice>) -> Result<Vec<Value>, Error> {
    let mut images: Vec<Image> = Vec::new();
    for deployment in &found.deployments {
        let containers: Vec<&Value> = containers(&deployment.value).collect();
        for container in &containers {
            let own = container.get("name").and_then(Value::as_str).unwrap_or_default();
            let label = if containers.len() > 1 {
                format!("{}-{own}", deployment.name())
            } else {
                deployment.name().to_owned()
            };
            for variable in container.get("env").and_then(Value::as_array).into_iter().flatten() {
                add(deployment, &label, variable, &mut images)?;
            }
        }
    }
    Ok(named(&images, notices))
}

/// Containers first, then init containers: the order decides which name comes first.
fn containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"].into_iter().flat_map(move |field| {
        deployment
            .pointer(&format!("/spec/template/spec/{field}"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    })
}

fn add(deployment: &Typed, label: &str, variable: &Value, images: &mut Vec<Image>) -> Result<(), Error> {
    let text = |field: &str| variable.get(field).and_then(Value::as_str).unwrap_or_default();
    let Some(rest) = text("name").strip_prefix(PREFIX) else {
        return Ok(());
    };
    if variable.get("valueFrom").is_some() {
        return Err(Error::RelatedImage {
            deployment: deployment.name().to_owned(),
            variable: text("name").to_owned(),
        });
    }
    let (name, image) = (rest.replace('_', "-").to_lowercase(), text("value").to_owned());
    if !images.iter().any(|known| known.name == name && known.image == image) {
        images.push(Image {
            name,
            image,
            container: label.to_owned(),
        });
    }
    Ok(())
}

fn named(images: &[Image], notices: &mut Vec<Notice>) -> Vec<Value> {
    let mut related = Vec::new();
    for image in images {
        let mut name = image.name.clone();
        if images.iter().filter(|other| other.name == image.name).count() > 1 {
            name = format!("{}-{name}", image.container);
        }
        let mut same = images.iter().filter(|other| other.image == image.image);
        let first = same.next();
        if same.next().is_some() {
            // One image under several names is listed once, without a name.
            if first.is_some_and(|first| first.name != image.name) {
                continue;
            }
            name.clear();
            notices.push(Notice {
                weight: Weight::Warning,
                origin: super::Origin::default(),
                object: format!("image {}", image.image),
                message: LISTED_ONCE.into(),
                hint: "Use the same variable name for the same image.".into(),
            });
        }
        related.push(json!({"name": name, "image": image.image}));
    }
    related
}
