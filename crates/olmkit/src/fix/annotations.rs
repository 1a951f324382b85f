//! Annotations of the bundle that have one possible value.

use serde_json::json;

use super::facts::Facts;
use super::{Action, Proposal, proposal};
use crate::bundle::MediaType;
use crate::bundle::load::{MANIFESTS, MEDIA_TYPE, METADATA, PACKAGE};
use crate::object::pointer_part;

/// Media type and directories from the existing files. The package from the ClusterServiceVersion's name.
pub(super) fn propose(facts: &Facts) -> Vec<Proposal> {
    let bundle = &facts.reading.bundle;
    let metadata = &bundle.metadata;
    if metadata.file.is_empty() || bundle.media_type != MediaType::RegistryV1 {
        return Vec::new();
    }
    let mut proposals = Vec::new();
    let mut add = |key: &str, value: &str, is_safe: bool| {
        let actions = vec![match metadata.get(key) {
            Some(_) => Action::Replace {
                at: format!("/annotations/{}", pointer_part(key)),
                text: value.to_owned(),
            },
            None => Action::Add {
                map: "/annotations".to_owned(),
                key: key.to_owned(),
                value: json!(value),
            },
        }];
        let title = format!("set the annotation {key} to {value}");
        proposals.push(proposal(&metadata.file, title, is_safe, "annotations", actions));
    };
    let media_type = MediaType::RegistryV1.to_string();
    if metadata.get(MEDIA_TYPE) != Some(&media_type) {
        add(MEDIA_TYPE, &media_type, true);
    }
    if metadata.get(MANIFESTS).is_none() {
        add(MANIFESTS, "manifests/", true);
    }
    if metadata.get(METADATA).is_none() {
        add(METADATA, "metadata/", true);
    }
    let name = facts.csv().map(|csv| csv.name()).unwrap_or_default();
    if metadata.get(PACKAGE).is_none()
        && let Some((package, _)) = name.split_once(".v")
    {
        add(PACKAGE, package, false);
    }
    proposals
}
