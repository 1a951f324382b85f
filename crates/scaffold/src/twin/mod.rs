//! The example kind, compiled twice: here, to derive its CRD, and as a source file in each project.
//!
//! Both use the same file, so they cannot differ.

#[path = "kind.rs"]
#[rustfmt::skip] // The width of lines is that of scaffolded projects.
mod kind;
#[path = "deploy.rs"]
#[rustfmt::skip]
mod deploy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use olmkit::project::Api;
use serde_json::{Value, json};

use crate::project_file::Resource;

/// The text of a kind's file, with other names.
const KIND: &str = include_str!("kind.rs");
/// The same of a kind that runs an image.
const DEPLOY: &str = include_str!("deploy.rs");

/// The file of a kind.
pub fn text(resource: &Resource) -> String {
    let text = if resource.image.is_some() { DEPLOY } else { KIND };
    let mut text = text
        .replace("xgroupx.example.com", &resource.group)
        .replace("v0xversionx", &resource.version)
        .replace("xpluralx", &resource.plural)
        .replace("xsingularx", &resource.kind.to_lowercase())
        .replace("Xkindx", &resource.kind);
    if let Some(image) = &resource.image {
        text = match image.container_port.as_str() {
            // As rustfmt has it.
            "" => without_port(&text).replace(
                "Spec {\n            size: default_size(),\n        };",
                "Spec { size: default_size() };",
            ),
            port => text.replace("11211", port),
        };
    }
    match resource.namespaced {
        true => text,
        false => text.replace("#[kube(namespaced)]\n", ""),
    }
}

/// The text without the field `containerPort` and what belongs to it: paragraphs that mention the port, and lines of the
/// sample.
fn without_port(text: &str) -> String {
    let kept: Vec<String> = text
        .split("\n\n")
        .filter_map(|paragraph| {
            if paragraph.starts_with("    /// TCP port") {
                // The closing bracket follows the last field.
                return Some("}".to_owned());
            }
            if paragraph.contains("fn default_container_port") || paragraph.starts_with("/// `spec.containerPort`") {
                return None;
            }
            let lines = paragraph
                .lines()
                .filter(|line| !line.contains("container_port: DEFAULT"));
            Some(lines.collect::<Vec<_>>().join("\n"))
        })
        .collect();
    let text = kept.join("\n\n").replace(",\n\n}", ",\n}");
    format!("{}\n", text.trim_end())
}

/// The definition, descriptors and sample that the project reads from that file.
pub fn api(resource: &Resource) -> Result<Api, olmkit::project::Error> {
    let from = |source| serialise(resource, source);
    let (crd, schema, sample) = match resource.image {
        Some(_) => {
            use deploy::Xkindx;
            (
                Xkindx::crd(),
                schemars::schema_for!(Xkindx),
                serde_json::to_value(Xkindx::sample()),
            )
        }
        None => {
            use kind::Xkindx;
            (
                Xkindx::crd(),
                schemars::schema_for!(Xkindx),
                serde_json::to_value(Xkindx::sample()),
            )
        }
    };
    let singular = resource.kind.to_lowercase();
    let rename = |value: Value| -> Result<Value, olmkit::project::Error> {
        let text = value
            .to_string()
            .replace("Xkindx", &resource.kind)
            .replace("xkindx", &singular);
        let mut value = serde_json::from_str(&text).map_err(from)?;
        if let Some(image) = &resource.image {
            set_port(&mut value, image.container_port.parse().ok());
        }
        Ok(value)
    };
    let crd = rename(serde_json::to_value(crd).map_err(from)?)?;
    let mut crd: CustomResourceDefinition = serde_json::from_value(crd).map_err(from)?;
    crd.metadata.name = Some(format!("{}.{}", resource.plural, resource.group));
    crd.spec.group.clone_from(&resource.group);
    crd.spec.names.plural.clone_from(&resource.plural);
    crd.spec.scope = match resource.namespaced {
        true => "Namespaced".to_owned(),
        false => "Cluster".to_owned(),
    };
    for version in &mut crd.spec.versions {
        version.name.clone_from(&resource.version);
    }
    let schema = schemars::Schema::try_from(rename(schema.to_value())?).map_err(from)?;
    let mut sample = rename(sample.map_err(from)?)?;
    if let Some(map) = sample.as_object_mut() {
        map.insert(
            "apiVersion".to_owned(),
            format!("{}/{}", resource.group, resource.version).into(),
        );
        map.insert("metadata".to_owned(), json!({"name": format!("{singular}-sample")}));
    }
    Api::from_definition(crd, schema)?.sample(&sample)
}

/// Sets the port wherever it occurs, or removes it.
fn set_port(value: &mut Value, port: Option<u16>) {
    const NAME: &str = "containerPort";
    match value {
        Value::Object(map) => {
            match (port, map.get_mut(NAME)) {
                (None, _) => drop(map.remove(NAME)),
                (Some(port), Some(Value::Object(field))) => {
                    field.insert("default".to_owned(), port.into());
                }
                (Some(port), Some(field)) => *field = port.into(),
                (Some(_), None) => {}
            }
            map.values_mut().for_each(|value| set_port(value, port));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|value| set_port(value, port));
        }
        _ => {}
    }
}

fn serialise(resource: &Resource, source: serde_json::Error) -> olmkit::project::Error {
    olmkit::project::Error::Serialise {
        object: format!("the kind {}", resource.kind),
        source,
    }
}
