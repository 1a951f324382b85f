//! Selectors, tolerations and the spread of pods.

use super::{Fields, is_set, list, text};
use crate::admission::forms;
use crate::admission::walk::Walk;

pub(super) fn label_requirement(walk: &mut Walk<'_>, map: &Fields) {
    requirement(walk, map, false);
    for (index, value) in list(map, "values").iter().enumerate() {
        if let Some(problem) = forms::problem("labelvalue", value.as_str().unwrap_or_default()) {
            walk.reject_at(&["values", &index.to_string()], problem);
        }
    }
}

pub(super) fn node_requirement(walk: &mut Walk<'_>, map: &Fields) {
    if walk.is_below("matchFields") {
        if text(map, "key") != "metadata.name" {
            walk.reject_at(&["key"], "is not a valid field selector key");
        }
        if !matches!(text(map, "operator"), "In" | "NotIn") {
            walk.reject_at(&["operator"], "is not a valid selector operator");
        } else if list(map, "values").len() != 1 {
            walk.reject_at(&["values"], "must be only one value");
        }
        return;
    }
    requirement(walk, map, true);
    if walk.is_below("requiredDuringSchedulingIgnoredDuringExecution") {
        for (index, value) in list(map, "values").iter().enumerate() {
            if let Some(problem) = forms::problem("labelvalue", value.as_str().unwrap_or_default()) {
                walk.reject_at(&["values", &index.to_string()], problem);
            }
        }
    }
}

fn requirement(walk: &mut Walk<'_>, map: &Fields, of_node: bool) {
    let values = list(map, "values").len();
    match text(map, "operator") {
        "In" | "NotIn" if values == 0 => walk.reject_at(&["values"], "is required for the operators In and NotIn"),
        "Exists" | "DoesNotExist" if values > 0 => {
            walk.reject_at(&["values"], "is not allowed for the operators Exists and DoesNotExist");
        }
        "Gt" | "Lt" if of_node && values != 1 => {
            walk.reject_at(&["values"], "must have one item for the operators Lt and Gt");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" if of_node => {}
        _ => walk.reject_at(&["operator"], "is not a valid selector operator"),
    }
    if let Some(problem) = forms::problem("qualified", text(map, "key")) {
        walk.reject_at(&["key"], problem);
    }
}

pub(super) fn toleration(walk: &mut Walk<'_>, map: &Fields) {
    let (key, operator, value) = (text(map, "key"), text(map, "operator"), text(map, "value"));
    if key.is_empty() && operator != "Exists" {
        walk.reject_at(&["operator"], "must be Exists when the key is empty");
    }
    if is_set(map, "tolerationSeconds") && text(map, "effect") != "NoExecute" {
        walk.reject_at(&["effect"], "must be NoExecute when tolerationSeconds is set");
    }
    match operator {
        "" | "Equal" => {
            if let Some(problem) = forms::problem("labelvalue", value) {
                walk.reject_at(&["value"], problem);
            }
        }
        "Exists" if !value.is_empty() => walk.reject_at(&["value"], "must be empty when the operator is Exists"),
        _ => {}
    }
}

pub(super) fn spread(walk: &mut Walk<'_>, map: &Fields) {
    if is_set(map, "minDomains") && text(map, "whenUnsatisfiable") != "DoNotSchedule" {
        walk.reject_at(
            &["minDomains"],
            "can only be set when whenUnsatisfiable is DoNotSchedule",
        );
    }
}
