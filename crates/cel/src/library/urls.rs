//! URLs.

use std::collections::BTreeMap;
use std::rc::Rc;

use olmkit_go::url;

use super::Found;
use crate::budget::Failure;
use crate::runtime::{ITEM, Runtime};
use crate::value::{Key, ParsedUrl, Value};

pub(super) fn call(runtime: &mut Runtime, name: &str, is_member: bool, args: &[Value]) -> Found {
    match (is_member, name, args) {
        (false, "url", [Value::String(text)]) => Some(parse(runtime, text)),
        (false, "isURL", [Value::String(text)]) => {
            let read = runtime.budget.read(text.len());
            Some(read.map(|()| Value::Bool(url::parse_request_uri(text).is_ok())))
        }
        (true, name, [Value::Url(own)]) => part(runtime, name, own),
        _ => None,
    }
}

fn parse(runtime: &mut Runtime, text: &str) -> Result<Value, Failure> {
    runtime.budget.allocate(text.len().saturating_mul(4) + ITEM)?;
    let wrong = |problem: String| Failure::error(format!("URL parse error during conversion from string: {problem}"));
    url::parse_request_uri(text).map_err(wrong)?;
    let url = url::parse(text).map_err(wrong)?;
    let text = text.to_owned();
    Ok(Value::Url(Rc::new(ParsedUrl { text, url })))
}

fn part(runtime: &mut Runtime, name: &str, own: &ParsedUrl) -> Found {
    let (hostname, port) = split_host(&own.url.host);
    Some(match name {
        "getScheme" => runtime.text(&own.url.scheme),
        "getHost" => runtime.text(&own.url.host),
        "getHostname" => runtime.text(hostname),
        "getPort" => runtime.text(port),
        "getEscapedPath" => escaped_path(runtime, own),
        "getQuery" => query(runtime, &own.url.raw_query),
        _ => return None,
    })
}

/// Name and port of `name:port` or `[address]:port`.
fn split_host(host: &str) -> (&str, &str) {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => (name, port),
        _ => (host, ""),
    };
    let name = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    (name, port)
}

/// The path as it was written, if nothing in it would be written in another way.
fn escaped_path(runtime: &mut Runtime, own: &ParsedUrl) -> Result<Value, Failure> {
    if !own.url.opaque.is_empty() {
        return runtime.text("");
    }
    let whole = own.text.split(['?', '#']).next().unwrap_or_default();
    let rest = whole.split_once("://").map_or(whole, |(_, rest)| rest);
    let is_absolute = whole.len() != rest.len();
    let path = if is_absolute {
        rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default()
    } else {
        whole
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    if !path.bytes().all(is_plain) {
        return Err(Failure::undecided("a path with escapes"));
    }
    runtime.text(path)
}

fn query(runtime: &mut Runtime, raw: &str) -> Result<Value, Failure> {
    if raw.contains(['%', ';']) {
        return Err(Failure::undecided("a query with escapes"));
    }
    let mut found: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
    for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
        runtime.budget.allocate(pair.len() + 4 * ITEM)?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let key = Key::String(Rc::from(key.replace('+', " ")));
        found
            .entry(key)
            .or_default()
            .push(Value::string(value.replace('+', " ")));
    }
    Ok(Value::map(
        found
            .into_iter()
            .map(|(key, values)| (key, Value::list(values)))
            .collect(),
    ))
}
