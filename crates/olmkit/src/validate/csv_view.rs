//! The ClusterServiceVersion as rules read it, and helpers to read values.

use serde_json::Value;

use super::checked::{Checked, Subject};
use crate::bundle::Object;
use crate::diagnostics::{Rule, Severity};

static NULL: Value = Value::Null;

/// The ClusterServiceVersion as rules read it.
#[derive(Debug, Clone, Copy)]
pub struct Csv<'a> {
    /// The object with positions.
    pub object: &'a Object,
    /// The decoded object.
    pub typed: &'a Value,
}

impl<'a> Csv<'a> {
    /// `metadata.name`.
    pub fn name(&self) -> &'a str {
        self.text("/metadata/name")
    }

    /// The value at a JSON pointer. Null when there is none.
    pub fn get(&self, pointer: &str) -> &'a Value {
        self.typed.pointer(pointer).unwrap_or(&NULL)
    }

    /// The string at a JSON pointer. Empty when there is none.
    pub fn text(&self, pointer: &str) -> &'a str {
        self.get(pointer).as_str().unwrap_or_default()
    }

    /// The items of the list at a JSON pointer.
    pub fn list(&self, pointer: &str) -> &'a [Value] {
        self.get(pointer).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.get("/metadata/annotations").get(key).and_then(Value::as_str)
    }

    /// The annotations.
    pub fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let map = self.get("/metadata/annotations").as_object();
        map.into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// The deployments of the install strategy.
    pub fn deployments(&self) -> &'a [Value] {
        self.list("/spec/install/spec/deployments")
    }

    /// The containers of all deployments, each with its JSON pointer. Init containers are not among them.
    pub fn containers(&self) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
        self.containers_in(&["containers"])
    }

    /// The same with init containers, which come first in each deployment.
    pub fn all_containers(&self) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
        self.containers_in(&["initContainers", "containers"])
    }

    fn containers_in(&self, lists: &'static [&'static str]) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
        let deployments = self.deployments().iter().enumerate();
        let pods = deployments.filter_map(|(at, deployment)| Some((at, deployment.pointer("/spec/template/spec")?)));
        pods.flat_map(move |(at, pod)| {
            lists.iter().flat_map(move |list| {
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/{list}");
                let containers = items(pod, list).iter().enumerate();
                containers.map(move |(index, container)| (format!("{pointer}/{index}"), container))
            })
        })
    }

    /// A finding whose message names the ClusterServiceVersion before the detail.
    pub fn finding(&self, rule: &'static Rule, severity: Severity, pointer: &str, detail: impl AsRef<str>) -> Checked {
        let detail = detail.as_ref();
        let subject = Subject::Value(String::new());
        let mut checked = Checked::shared(rule, severity, &subject, detail);
        checked.reference = Some(subject.text(severity, &format!("({}) {detail}", self.name())));
        checked.at(self.object, pointer)
    }

    /// An error in that form.
    pub fn error(&self, rule: &'static Rule, pointer: &str, detail: impl AsRef<str>) -> Checked {
        self.finding(rule, Severity::Error, pointer, detail)
    }

    /// A warning in that form.
    pub fn warning(&self, rule: &'static Rule, pointer: &str, detail: impl AsRef<str>) -> Checked {
        self.finding(rule, Severity::Warning, pointer, detail)
    }
}

/// The string in a field of a value. Empty when there is none.
pub fn field<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list in a field of a value. Empty when there is none.
pub fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The strings of a list in a field of a value.
pub fn strings<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    items(value, key).iter().filter_map(Value::as_str)
}
