//! ClusterServiceVersion fields for the built-in tests, and their crashes.

use olmkit_scorecard::{State, TestResult};

use crate::bundle::Object;

/// A test of operator-sdk crashes: the state is scorecard's, and the error adds the explanation that the crash lacks.
pub(super) fn crash(result: &mut TestResult, error: String, panic: &str) {
    result.state = State::Fail;
    result.suggestions.clear();
    result.errors = vec![error];
    result.log = format!("panic: {panic}\n");
}

/// The ClusterServiceVersion.
pub(super) struct Csv<'a> {
    pub object: Option<&'a Object>,
}

impl<'a> Csv<'a> {
    /// The first among the objects.
    pub fn new(objects: &'a [Object]) -> Self {
        let is_csv = |object: &&Object| object.kind() == "ClusterServiceVersion";
        Self {
            object: objects.iter().find(is_csv),
        }
    }

    /// The value at a JSON pointer of the decoded object.
    fn get(&self, pointer: &str) -> Option<&'a serde_json::Value> {
        self.object?.typed.as_ref()?.pointer(pointer)
    }

    /// `metadata.name`
    pub fn name(&self) -> &'a str {
        let name = self.get("/metadata/name").and_then(serde_json::Value::as_str);
        name.unwrap_or_default()
    }

    /// The examples. Empty without.
    pub fn examples(&self) -> &'a str {
        let text = self.get("/metadata/annotations/alm-examples");
        text.and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    /// The owned CRDs.
    pub fn owned(&self) -> &'a [serde_json::Value] {
        let list = self.get("/spec/customresourcedefinitions/owned");
        list.and_then(serde_json::Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }
}
