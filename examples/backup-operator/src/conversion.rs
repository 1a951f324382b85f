//! Conversions between the two versions of a Backup.
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::Target;

/// The annotation with the fields that the first version lacks. Without it, an update of a Backup through that version
/// would reset these fields.
pub const KEPT: &str = "backup.example.com/v1";

/// When Backups of the first version are made.
const NIGHTLY: &str = "0 3 * * *";

/// The fields that the first version lacks.
#[derive(Deserialize, Serialize)]
struct Kept {
    schedule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            schedule: NIGHTLY.to_owned(),
            target: None,
        }
    }
}

/// Makes an object of the version `wanted`.
///
/// # Errors
/// When the version is unknown, or the object is not a Backup.
pub fn convert(mut object: Value, wanted: &str) -> Result<Value, String> {
    let part = |error: serde_json::Error| error.to_string();
    let mut annotations = match object.pointer_mut("/metadata/annotations").map(Value::take) {
        Some(Value::Object(annotations)) => annotations,
        _ => serde_json::Map::new(),
    };
    let spec = object
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .ok_or("spec is missing")?;
    match wanted {
        "backup.example.com/v1" => {
            let kept = annotations.remove(KEPT);
            // Users can change annotations. An unreadable value is ignored.
            let kept = kept.and_then(|kept| serde_json::from_str::<Kept>(kept.as_str()?).ok());
            let fields = serde_json::to_value(kept.unwrap_or_default()).map_err(part)?;
            spec.extend(fields.as_object().cloned().unwrap_or_default());
        }
        "backup.example.com/v1alpha1" => {
            let schedule = spec.remove("schedule").ok_or("spec.schedule is missing")?;
            let target = spec.remove("target").filter(|target| !target.is_null());
            if target.is_some() || schedule != NIGHTLY {
                let kept = json!({ "schedule": schedule, "target": target });
                annotations.insert(KEPT.to_owned(), kept.to_string().into());
            }
        }
        other => return Err(format!("unknown version {other}")),
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("annotations".to_owned(), annotations.into());
    }
    Ok(object)
}
