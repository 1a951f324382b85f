//! The links that Go's `url.ParseRequestURI` takes, and its words for the others.

use crate::types::go_text::quote;

/// What is wrong with a link; `None` when nothing is.
pub fn fault(url: &str) -> Option<String> {
    parse(url).err().map(|reason| format!("parse {}: {reason}", quote(url)))
}

fn parse(url: &str) -> Result<(), String> {
    if url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_string());
    }
    if url.is_empty() {
        return Err("empty url".to_string());
    }
    if url == "*" {
        return Ok(());
    }
    let (scheme, rest) = scheme(url)?;
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        return if scheme.is_empty() {
            Err("invalid URI for request".to_string())
        } else {
            Ok(())
        };
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        None => rest,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            check_authority(authority, scheme)?;
            path
        }
    };
    check_escapes(path, |_| true)
}

/// The scheme and what follows it. A text that cannot be one has none.
fn scheme(url: &str) -> Result<(&str, &str), String> {
    for (at, c) in url.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_string()),
            ':' => {
                let (scheme, rest) = url.split_at(at);
                return Ok((scheme, rest.get(1..).unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok(("", url))
}

fn check_authority(authority: &str, scheme: &str) -> Result<(), String> {
    let host = match authority.rsplit_once('@') {
        None => authority,
        Some((user, host)) => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            if !user.chars().all(allowed) {
                return Err("net/url: invalid userinfo".to_string());
            }
            check_escapes(user, |_| true)?;
            host
        }
    };
    if let Some(inside) = host.strip_prefix('[') {
        let (address, port) = inside.rsplit_once(']').ok_or("missing ']' in host")?;
        check_port(port)?;
        let address = address.split_once("%25").map_or(address, |(address, _)| address);
        return match address.parse::<std::net::Ipv6Addr>() {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "invalid host: ParseAddr({}): unable to parse IP",
                quote(address)
            )),
        };
    }
    // Only in web addresses the first colon must be that of the port.
    let strict = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    if let Some(at) = if strict { host.find(':') } else { host.rfind(':') } {
        check_port(host.get(at..).unwrap_or_default())?;
    }
    check_host(host)
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

fn check_host(host: &str) -> Result<(), String> {
    check_escapes(host, |value| value >= 0x80)?;
    let allowed = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "!$&'()*+,;=:[]<>\"-_.~%".contains(c);
    match host.chars().find(|c| !allowed(*c)) {
        Some(c) => Err(format!("invalid character {} in host name", quote(&c.to_string()))),
        None => Ok(()),
    }
}

/// Every `%` needs two hexadecimal digits whose value is accepted.
fn check_escapes(text: &str, accepted: impl Fn(u8) -> bool) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let digits = text.as_bytes().get(at + 1..at + 3);
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if !value.is_some_and(&accepted) || digits.is_some_and(|digits| digits.starts_with(b"+")) {
            let shown: String = text.get(at..).unwrap_or_default().chars().take(3).collect();
            return Err(format!("invalid URL escape {}", quote(&shown)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_as_go_takes_them() {
        for good in [
            "mailto:x",
            "localhost:8080",
            "http://",
            "/path",
            "*",
            "https://example.com/#frag",
            "HTTPS://EXAMPLE.COM",
            "https://例え.jp/",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        let refused = [
            ("www.example.com", "invalid URI for request"),
            ("1.2.3.4:80", "invalid URI for request"),
            (" https://x", "invalid URI for request"),
            ("https://exa mple.com", "invalid character \" \" in host name"),
            ("https://example.com:port", "invalid port \":port\" after host"),
            ("https://x/%zz", "invalid URL escape \"%zz\""),
            ("https://x#y", "invalid character \"#\" in host name"),
        ];
        for (bad, reason) in refused {
            assert_eq!(fault(bad), Some(format!("parse {}: {reason}", quote(bad))));
        }
    }
}
