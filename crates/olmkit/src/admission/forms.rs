//! The forms of strings that the API server requires.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::object::{
    dns1123_label_problems, dns1123_subdomain_problems, label_value_problems, qualified_name_problems,
};

/// The API server's message for a string that does not match a form.
pub(super) fn problem(form: &str, text: &str) -> Option<String> {
    let first = |problems: Vec<String>| problems.into_iter().next();
    let unless = |fine: bool, message: &str| (!fine).then(|| message.to_owned());
    match form {
        "label" => first(dns1123_label_problems(text)),
        "subdomain" => first(dns1123_subdomain_problems(text)),
        "qualified" => first(qualified_name_problems(text)),
        "labelvalue" => first(label_value_problems(text)),
        "portname" => port_name(text),
        "envname" => unless(
            text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'='),
            "a valid environment variable name must consist only of printable ASCII characters other than '='",
        ),
        "configkey" => config_key(text),
        "header" => unless(
            text.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric()),
            "a valid HTTP header must consist of alphanumeric characters or '-'",
        ),
        "nodots" => unless(!has_dots(text), "must not contain '..'"),
        "relative" => relative(text),
        "innerpath" => relative(text).or_else(|| {
            unless(
                !text.starts_with("..") || text.starts_with("../"),
                "must not start with '..'",
            )
        }),
        "segment" => segment(text),
        "cidr" => unless(
            is_cidr(text),
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        _ => None,
    }
}

fn port_name(text: &str) -> Option<String> {
    let problem = if text.len() > 15 {
        "must be no more than 15 characters"
    } else if !text
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    {
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    } else if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        "must contain at least one letter (a-z)"
    } else if text.contains("--") {
        "must not contain consecutive hyphens"
    } else if text.starts_with('-') || text.ends_with('-') {
        "must not begin or end with a hyphen"
    } else {
        return None;
    };
    Some(problem.to_owned())
}

fn config_key(text: &str) -> Option<String> {
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    if text.is_empty() || !text.bytes().all(is_key) {
        let message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        return Some(message.to_owned());
    }
    text.starts_with("..")
        .then(|| "must not start with '..'".to_owned())
        .or_else(|| (text == ".").then(|| "must not be '.'".to_owned()))
}

fn has_dots(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
}

fn relative(text: &str) -> Option<String> {
    if text.starts_with('/') {
        return Some("must be a relative path".to_owned());
    }
    has_dots(text).then(|| "must not contain '..'".to_owned())
}

fn segment(text: &str) -> Option<String> {
    if matches!(text, "." | "..") {
        return Some(format!("may not be '{text}'"));
    }
    let found = ['/', '%'].into_iter().find(|found| text.contains(*found))?;
    Some(format!("may not contain '{found}'"))
}

/// As Go parses addresses for old fields: leading zeros are decimal.
pub(super) fn is_address(text: &str) -> bool {
    let decimal = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.is_empty() || digits.parse::<u8>().is_ok())
    };
    let parts: Vec<&str> = text.split('.').collect();
    (parts.len() == 4 && parts.iter().all(|part| decimal(part)))
        || text.parse::<Ipv4Addr>().is_ok()
        || text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    if !is_address(address) || length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let most = if address.contains(':') { 128 } else { 32 };
    length.parse::<u32>().is_ok_and(|length| length <= most)
}

/// A network without leading zeros, for comparisons.
pub(super) fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}
