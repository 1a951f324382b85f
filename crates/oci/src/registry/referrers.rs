//! Referrers of registries that do not list them: an index under a tag that is made of the subject's digest (distribution
//! specification, "Pushing Manifests with Subject").

use serde_json::{Map, Value, json};

use super::error::Error;
use super::peer::Peer;
use crate::digest::Digest;
use crate::json;
use crate::spec::{Descriptor, media_type};

impl Peer<'_> {
    /// Stores a manifest or index, and adds it to its subject's referrers.
    pub(super) async fn put_document(&self, version: &str, document: &Descriptor, bytes: &[u8]) -> Result<(), Error> {
        let is_listed = self.put_manifest(version, &document.media_type, bytes).await?;
        match subject(bytes) {
            Some(subject) if !is_listed => self.add_referrer(&subject, entry(document, bytes)).await,
            _ => Ok(()),
        }
    }

    async fn add_referrer(&self, subject: &Digest, entry: Value) -> Result<(), Error> {
        let tag = referrers_tag(subject);
        let mut index = match self.fetch_manifest(&tag).await {
            Ok((descriptor, bytes)) if descriptor.media_type == media_type::OCI_INDEX => {
                json::parse(&bytes).map_err(crate::Error::document(format!("index {}", self.image(&tag))))?
            }
            Ok((descriptor, _)) => {
                let problem = format!("{} is no index but {}", self.image(&tag), descriptor.media_type);
                return Err(self.protocol("list a referrer", problem));
            }
            Err(Error::NotFound { .. }) => json!({"schemaVersion": 2, "mediaType": media_type::OCI_INDEX}),
            Err(error) => return Err(error),
        };
        if with_entry(&mut index, entry) {
            let bytes = index.to_string();
            self.put_manifest(&tag, media_type::OCI_INDEX, bytes.as_bytes()).await?;
        }
        Ok(())
    }
}

fn subject(bytes: &[u8]) -> Option<Digest> {
    let document: Value = json::parse(bytes).ok()?;
    document.get("subject")?.get("digest")?.as_str()?.parse().ok()
}

/// The tag for the referrers of a digest.
fn referrers_tag(subject: &Digest) -> String {
    let hex = subject.hex();
    format!("{}-{}", subject.algorithm_name(), hex.get(..64).unwrap_or(hex))
}

/// The entry of a manifest in an index of referrers.
fn entry(document: &Descriptor, bytes: &[u8]) -> Value {
    let content: Map<String, Value> = json::parse(bytes).unwrap_or_default();
    let text = |value: Option<&Value>| {
        value
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let config = content.get("config").and_then(|config| config.get("mediaType"));
    let fields = [
        ("mediaType", Some(document.media_type.clone().into())),
        ("digest", Some(document.digest.to_string().into())),
        ("size", Some(document.size.into())),
        (
            "artifactType",
            text(content.get("artifactType"))
                .or_else(|| text(config))
                .map(Value::from),
        ),
        (
            "annotations",
            content
                .get("annotations")
                .filter(|annotations| annotations.is_object())
                .cloned(),
        ),
    ];
    let present = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// Adds an entry to an index, unless the index has it. Returns true if the index was changed.
fn with_entry(index: &mut Value, entry: Value) -> bool {
    let Some(fields) = index.as_object_mut() else {
        return false;
    };
    let entries = fields.entry("manifests").or_insert_with(|| json!([]));
    if !entries.is_array() {
        *entries = json!([]);
    }
    let Some(entries) = entries.as_array_mut() else {
        return false;
    };
    if entries.iter().any(|known| known.get("digest") == entry.get("digest")) {
        return false;
    }
    entries.push(entry);
    true
}
