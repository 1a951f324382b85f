//! Deployments.

use serde_json::{Map, Value};

use super::{Fields, is_set, list, maps, number, object, text};
use crate::admission::walk::{Walk, whole};
use crate::object::selector;

pub(super) fn deployment(walk: &mut Walk<'_>, map: &Fields) {
    if let Some(selector) = object(map, "selector") {
        // The schema drops a null.
        let has_labels =
            object(selector, "matchLabels").is_some_and(|labels| labels.values().any(|value| !value.is_null()));
        if !has_labels && list(selector, "matchExpressions").is_empty() {
            walk.reject_at(&["selector"], "must not be empty");
        } else {
            selects(walk, map, selector);
        }
    }
    let deadline = map
        .get("progressDeadlineSeconds")
        .map_or(Some(600), |_| number(map, "progressDeadlineSeconds"));
    let ready = number(map, "minReadySeconds").unwrap_or_default();
    if deadline.is_some_and(|deadline| deadline >= 0 && deadline <= ready) {
        walk.reject_at(&["progressDeadlineSeconds"], "must be greater than minReadySeconds");
    }
}

/// Returns true if the selector's labels are those of the pods.
fn selects(walk: &mut Walk<'_>, map: &Fields, given: &Fields) {
    let none = Map::new();
    let template = object(map, "template").and_then(|template| object(template, "metadata"));
    let own = template
        .and_then(|metadata| object(metadata, "labels"))
        .unwrap_or(&none);
    let missing = object(given, "matchLabels")
        .into_iter()
        .flatten()
        .find(|(key, value)| !value.is_null() && own.get(*key).and_then(Value::as_str) != value.as_str());
    if let Some((key, _)) = missing {
        walk.reject_at(&["selector", "matchLabels", key], crate::admission::UNSELECTED);
        return;
    }
    for (index, expression) in maps(given, "matchExpressions") {
        let value = own.get(text(expression, "key")).and_then(Value::as_str);
        let values = list(expression, "values").iter().filter_map(Value::as_str);
        let matches = selector::matches(text(expression, "operator"), value, values).unwrap_or(true);
        if !matches {
            let message = "must select the labels of the pod template";
            walk.reject_at(&["selector", "matchExpressions", &index.to_string()], message);
        }
    }
}

pub(super) fn strategy(walk: &mut Walk<'_>, map: &Fields) {
    if text(map, "type") == "Recreate" && is_set(map, "rollingUpdate") {
        walk.reject_at(&["rollingUpdate"], "may not be specified when the type is Recreate");
    }
}

pub(super) fn rolling_update(walk: &mut Walk<'_>, map: &Fields) {
    let is_zero = |key: &str| match map.get(key) {
        Some(Value::Number(number)) => whole(number) == Some(0),
        Some(Value::String(text)) => text
            .strip_suffix('%')
            .is_some_and(|digits| digits.parse::<u32>() == Ok(0)),
        _ => false,
    };
    if is_zero("maxUnavailable") && is_zero("maxSurge") {
        walk.reject_at(&["maxUnavailable"], "may not be 0 when maxSurge is 0");
    }
}
