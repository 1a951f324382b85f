//! `olm-crds-have-resources`

use olmkit_scorecard::TestResult;
use serde_json::Value;

use super::builtin::Csv;

/// Each owned CRD lists the kinds of objects that its controller makes.
pub(super) fn check(csv: &Csv<'_>, result: &mut TestResult) {
    result.log(format!("Loaded ClusterServiceVersion: {}", csv.name()));
    let has_none = |owned: &Value| {
        let resources = owned.get("resources").and_then(Value::as_array);
        resources.is_none_or(Vec::is_empty)
    };
    if csv.owned().iter().any(has_none) {
        result.fail("Owned CRDs do not have resources specified");
    }
}
