//! Names of manifest files.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::{self, Program};
use olmkit_base::object::{InvalidPathPart, PathPart};

/// Returns true if bundles support objects of the kind.
pub(super) fn supported(kind: &str) -> bool {
    kinds::is_accepted(kind, Program::OperatorRegistry, kinds::OPERATOR_SDK_1_42)
}

/// Names for objects in writing order. A name that is in use gets a distinguishing prefix.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    duplicates: usize,
}

impl Names {
    /// The file name of an object, and whether another object had the same one.
    ///
    /// # Errors
    /// The object's names do not form a file name.
    pub fn of(&mut self, object: &Value) -> Result<(String, bool), InvalidPathPart> {
        let mut name = file_name(object);
        let double = self.taken.contains(&name);
        if double {
            name = format!("dup{}_{name}", self.duplicates);
            self.duplicates += 1;
        }
        PathPart::new(name.as_str())?;
        self.taken.insert(name.clone());
        Ok((name, double))
    }
}

fn file_name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = text("/kind");
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    if kind == "CustomResourceDefinition" && !group.is_empty() && !plural.is_empty() {
        return format!("{group}_{plural}.yaml");
    }
    let api_version = text("/apiVersion");
    let (group, version) = match api_version.matches('/').count() {
        0 => ("", api_version),
        1 if api_version != "/" => api_version.split_once('/').unwrap_or_default(),
        _ => ("", ""),
    };
    let (name, kind) = (text("/metadata/name"), kind.to_lowercase());
    if group.is_empty() {
        format!("{name}_{version}_{kind}.yaml")
    } else {
        format!("{name}_{group}_{version}_{kind}.yaml")
    }
}
