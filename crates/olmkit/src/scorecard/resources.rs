//! `olm-crds-have-resources`

use serde_json::Value;

use super::csv::Csv;
use super::rules::{Answer, SC_5, owned_pointer};
use crate::validate::Checked;

/// Each owned CRD lists the kinds of objects that its controller creates.
pub(super) fn check(csv: &Csv<'_>, answer: &mut Answer) {
    answer
        .result
        .log(format!("Loaded ClusterServiceVersion: {}", csv.name()));
    let has_none = |owned: &Value| {
        let resources = owned.get("resources").and_then(Value::as_array);
        resources.is_none_or(Vec::is_empty)
    };
    if csv.owned().iter().any(has_none) {
        answer.result.fail("Owned CRDs do not have resources specified");
    }
    for owned in csv.owned().iter().filter(|owned| has_none(owned)) {
        let name = owned.get("name").and_then(Value::as_str).unwrap_or_default();
        let checked = Checked::new(&SC_5, format!("the owned API {name} has no resources"))
            .hint("list kind and version of what its controller creates, or run with --fix --unsafe-fixes");
        answer.add(match csv.object {
            Some(object) => checked.at(object, &owned_pointer(csv.owned(), owned)),
            None => checked,
        });
    }
}
