//! Named formats.

use olmkit_go::url;

use super::Found;
use crate::budget::Failure;
use crate::runtime::{ITEM, Runtime};
use crate::value::Value;
use crate::value::time::Timestamp;

/// All of them.
const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

pub(super) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    let known = |wanted: &str| NAMES.into_iter().find(|name| *name == wanted);
    match (is_member, name, args) {
        (false, "format.named", [Value::String(name)]) => {
            let found = known(name).map(Value::Format);
            Some(Ok(found.map_or(Value::Optional(None), Value::some)))
        }
        (false, name, []) => known(name.strip_prefix("format.")?).map(|name| Ok(Value::Format(name))),
        (true, "validate", [Value::Format(name), Value::String(text)]) => Some(validate(runtime, name, text)),
        _ => None,
    }
}

fn validate(runtime: &mut Runtime, name: &str, text: &str) -> Result<Value, Failure> {
    runtime.budget.read(text.len())?;
    runtime.budget.allocate(ITEM)?;
    let undecided = || Failure::undecided(format!("the format {name}"));
    let masked = masked(text);
    let fits = match name {
        "dns1123Label" => is_label(text),
        "dns1123LabelPrefix" => is_label(&masked),
        "dns1123Subdomain" => is_subdomain(text),
        "dns1123SubdomainPrefix" => is_subdomain(&masked),
        "dns1035Label" => is_label(text) && starts_with_letter(text),
        "dns1035LabelPrefix" => is_label(&masked) && starts_with_letter(&masked),
        "labelValue" => text.is_empty() || is_name(text),
        "qualifiedName" => match text.split_once('/') {
            None => is_name(text),
            Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        },
        "uri" => url::parse_request_uri(text).is_ok(),
        "date" => Timestamp::parse_date(text).is_some(),
        // Go's reader takes more than the standard.
        "datetime" if Timestamp::parse(text).is_some() => true,
        "byte"
            if text.len().is_multiple_of(4)
                && !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            true
        }
        "uuid" => is_uuid(text),
        _ => return Err(undecided()),
    };
    if fits {
        return Ok(Value::Optional(None));
    }
    // The call returns messages, but their wording is unknown.
    Ok(Value::some(Value::list(vec![Value::broken(undecided())])))
}

/// A prefix that ends with a dash is followed by the rest of a name.
fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(head) if !head.is_empty() => {
            let mut head = head.to_owned();
            head.pop();
            head.push('a');
            head
        }
        _ => text.to_owned(),
    }
}

fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

fn is_label_of_any_length(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

fn starts_with_letter(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

fn is_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= 63 && text.starts_with(is_end) && text.ends_with(is_end) && text.bytes().all(is_inner)
}

/// Five groups of hexadecimal digits. The dashes are optional.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, count) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        rest = if at > 0 {
            rest.strip_prefix('-').unwrap_or(rest)
        } else {
            rest
        };
        let Some((group, after)) = rest.split_at_checked(count) else {
            return false;
        };
        if !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}
