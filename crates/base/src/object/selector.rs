//! Label selectors.

/// Returns true if one of a selector's `matchExpressions` matches a label with this value, or a missing label. `None`
/// for an unknown operator.
///
/// ```
/// use olmkit_base::object::selector::matches;
/// assert_eq!(matches("In", Some("a"), ["a", "b"]), Some(true));
/// assert_eq!(matches("NotIn", None, ["a"]), Some(true));
/// assert_eq!(matches("Near", Some("a"), []), None);
/// ```
pub fn matches<'v>(operator: &str, value: Option<&str>, values: impl IntoIterator<Item = &'v str>) -> Option<bool> {
    let is_listed = || value.is_some_and(|value| values.into_iter().any(|listed| listed == value));
    match operator {
        "In" => Some(is_listed()),
        "NotIn" => Some(!is_listed()),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        _ => None,
    }
}
