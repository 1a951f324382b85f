//! URLs as Go's net/url takes them apart.

use crate::object::quoted;

/// The parts of a URL that the checks ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: String,
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) query: String,
    pub(super) fragment: String,
}

impl Url {
    /// Takes a URL apart; the error is Go's text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fault = |problem: &str| Err(format!("parse {}: {problem}", quoted(text)));
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return fault("net/url: invalid control character in URL");
        }
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = match split_scheme(rest) {
            Ok(parts) => parts,
            Err(problem) => return fault(problem),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            scheme: scheme.to_lowercase(),
            query: query.to_owned(),
            fragment: fragment.to_owned(),
            ..Self::default()
        };
        let Some(authority) = rest.strip_prefix("//") else {
            let first = rest.split('/').next().unwrap_or_default();
            if scheme.is_empty() && first.contains(':') {
                return fault("first path segment in URL cannot contain colon");
            }
            return Ok(url);
        };
        let authority = authority.split('/').next().unwrap_or_default();
        let (user, host) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(user, host)| (Some(user), host));
        if let Some(bad) = host
            .chars()
            .find(|c| matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'))
        {
            return fault(&format!("invalid character {} in host name", quoted(&bad.to_string())));
        }
        if let Some(problem) = port_problem(host) {
            return fault(&problem);
        }
        url.user = user.map(str::to_owned);
        url.host = host.to_owned();
        Ok(url)
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => {
                return Ok((
                    text.get(..at).unwrap_or_default(),
                    text.get(at + 1..).unwrap_or_default(),
                ));
            }
            _ => break,
        }
    }
    Ok(("", text))
}

fn port_problem(host: &str) -> Option<String> {
    let after_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    let (_, port) = after_address.rsplit_once(':')?;
    let sound = port.bytes().all(|byte| byte.is_ascii_digit());
    (!sound).then(|| format!("invalid port {} after host", quoted(&format!(":{port}"))))
}
