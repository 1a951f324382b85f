//! URLs as Go's `net/url` takes them apart.

use crate::netip;
use crate::strconv::{quote, quote_bytes};

/// The parts of a URL, with escapes decoded where Go decodes them. Bytes that are not UTF-8 then become U+FFFD.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Url {
    /// In lower case. Empty for a relative reference.
    pub scheme: String,
    /// The part after the scheme if it does not start with `/`.
    pub opaque: String,
    /// Name and password in front of the host.
    pub user: Option<Userinfo>,
    /// With its port.
    pub host: String,
    /// Without query and fragment.
    pub path: String,
    /// The part after `?`, as written.
    pub raw_query: String,
    /// The URL ends with its only `?`.
    pub force_query: bool,
    /// The part after `#`.
    pub fragment: String,
}

/// The name in front of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Userinfo {
    /// The name.
    pub username: String,
    /// The part after the first colon.
    pub password: Option<String>,
}

/// `Userinfo.String`: with escapes.
impl std::fmt::Display for Userinfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_escaped(f, &self.username)?;
        if let Some(password) = &self.password {
            f.write_str(":")?;
            write_escaped(f, password)?;
        }
        Ok(())
    }
}

fn write_escaped(f: &mut std::fmt::Formatter<'_>, text: &str) -> std::fmt::Result {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,;=".contains(&byte) {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

/// `url.Parse`.
///
/// # Errors
/// Go's message, `parse "x": …`.
pub fn parse(text: &str) -> Result<Url, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = parse_without_fragment(rest, false).map_err(|problem| wrap(rest, &problem))?;
    url.fragment = unescape(fragment, Part::Other).map_err(|problem| wrap(text, &problem))?;
    Ok(url)
}

/// `url.ParseRequestURI`: an absolute URL or path, without a fragment.
///
/// # Errors
/// Go's message, `parse "x": …`.
pub fn parse_request_uri(text: &str) -> Result<Url, String> {
    parse_without_fragment(text, true).map_err(|problem| wrap(text, &problem))
}

fn wrap(text: &str, problem: &str) -> String {
    format!("parse {}: {problem}", quote(text))
}

fn parse_without_fragment(text: &str, via_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = "*".to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.force_query = query.is_empty() && text.ends_with('?');
    url.raw_query = query.to_owned();
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !scheme.is_empty() || (!via_request && !rest.starts_with("///"));
    let path = match rest.strip_prefix("//").filter(|_| has_authority) {
        None => rest,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (url.user, url.host) = split_authority(&url.scheme, authority)?;
            path
        }
    };
    url.path = unescape(path, Part::Other)?;
    Ok(url)
}

/// The scheme and the rest. A string without a valid scheme has none.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok(text.split_once(':').unwrap_or_default()),
            _ => break,
        }
    }
    Ok(("", text))
}

fn split_authority(scheme: &str, authority: &str) -> Result<(Option<Userinfo>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, host)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (username, password) = match user.split_once(':') {
        None => (user, None),
        Some((username, password)) => (username, Some(password)),
    };
    let user = Userinfo {
        username: unescape(username, Part::Other)?,
        password: password.map(|password| unescape(password, Part::Other)).transpose()?,
    };
    Ok((Some(user), host))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return bracketed_host(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Only in web addresses the first colon must be that of the port.
    let colon = if matches!(scheme, "http" | "https") {
        host.find(':')
    } else {
        host.rfind(':')
    };
    if let Some(at) = colon {
        check_port(host.get(at..).unwrap_or_default())?;
    }
    unescape(host, Part::Host)
}

/// An IPv6 address in brackets, with a zone perhaps, and a port.
fn bracketed_host(host: &str) -> Result<String, String> {
    let (address, port) = host.rsplit_once(']').ok_or("missing ']' in host")?;
    check_port(port)?;
    let address = address.strip_prefix('[').unwrap_or(address);
    let address = match address.find("%25") {
        None => unescape_bytes(address, Part::Host)?,
        Some(at) => {
            let (address, zone) = address.split_at(at);
            [unescape_bytes(address, Part::Host)?, unescape_bytes(zone, Part::Zone)?].concat()
        }
    };
    match netip::parse_addr_bytes(&address) {
        Err(problem) => Err(format!("invalid host: {problem}")),
        Ok(parsed) if parsed.ip.is_ipv4() => Err("invalid IP-literal".to_owned()),
        Ok(_) => Ok(format!("[{}]{port}", to_text(address))),
    }
}

fn check_port(port: &str) -> Result<(), String> {
    let valid = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if valid {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", quote(port)))
    }
}

/// The part of a URL that contains a string: the rules for `%` differ.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Host,
    Zone,
    Other,
}

/// Returns true if a byte may appear in a host unescaped.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    unescape_bytes(text, part).map(to_text)
}

fn unescape_bytes(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'%' {
            if part != Part::Other && byte.is_ascii() && !is_host_byte(byte) {
                let shown = quote(char::from(byte).encode_utf8(&mut [0; 4]));
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(byte);
            rest = behind;
            continue;
        }
        let accepted = |value: &u8| match part {
            Part::Other => true,
            Part::Host => *value >= 0x80 || *value == b'%',
            Part::Zone => matches!(value, b'%' | b' ') || is_host_byte(*value),
        };
        let Some(value) = hexadecimal(behind).filter(accepted) else {
            let shown = quote_bytes(rest.get(..3).unwrap_or(rest));
            return Err(format!("invalid URL escape {shown}"));
        };
        out.push(value);
        rest = behind.get(2..).unwrap_or_default();
    }
    Ok(out)
}

fn hexadecimal(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

/// Each byte that is not UTF-8 becomes U+FFFD, as when Go writes the string.
fn to_text(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let mut text = String::new();
            for chunk in error.as_bytes().utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
            }
            text
        }
    }
}
