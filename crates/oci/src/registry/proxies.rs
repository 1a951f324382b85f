//! Selects the proxy of a request. The variables have the meaning that Go's programs give them
//! (golang.org/x/net/http/httpproxy), so olmkit connects as skopeo, podman and docker do.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;

/// The proxy settings of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    exceptions: Vec<Exception>,
}

/// Hosts that are reached without a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    Everything,
    Network(IpAddr, u8),
    Address(IpAddr, Option<u16>),
    Domain {
        /// In lower case, without a dot at the start.
        name: String,
        port: Option<u16>,
        /// False: only the hosts below it.
        itself: bool,
    },
}

impl Proxies {
    /// Reads the variables. The upper-case names come first.
    pub(super) fn from_environment() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let any = |names: [&str; 2]| {
            names
                .into_iter()
                .find_map(|name| variable(name).filter(|value| !value.is_empty()))
        };
        // A web server passes the header `Proxy` of a request to CGI programs as HTTP_PROXY.
        let is_cgi = variable("REQUEST_METHOD").is_some_and(|method| !method.is_empty());
        let http = any(["HTTP_PROXY", "http_proxy"]).filter(|_| !is_cgi);
        Self {
            http: http.and_then(|text| parse_proxy(&text)),
            https: any(["HTTPS_PROXY", "https_proxy"]).and_then(|text| parse_proxy(&text)),
            exceptions: any(["NO_PROXY", "no_proxy"]).map_or_else(Vec::new, |text| parse_exceptions(&text)),
        }
    }

    /// The proxy for a request to an address.
    pub(super) fn for_url(&self, url: &Url) -> Option<Url> {
        let proxy = match url.scheme() {
            "https" => self.https.as_ref(),
            "http" => self.http.as_ref(),
            _ => None,
        }?;
        let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.to_canonical().is_loopback()) {
            return None;
        }
        let port = url.port_or_known_default();
        let is_excepted = self
            .exceptions
            .iter()
            .any(|exception| exception.covers(host, address, port));
        (!is_excepted).then(|| proxy.clone())
    }
}

impl Exception {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        let fits = |wanted: &Option<u16>| wanted.is_none() || *wanted == port;
        match self {
            Self::Everything => true,
            Self::Network(network, bits) => address.is_some_and(|address| contains(*network, *bits, address)),
            Self::Address(excepted, wanted) => {
                address.is_some_and(|address| address.to_canonical() == excepted.to_canonical()) && fits(wanted)
            }
            Self::Domain {
                name,
                port: wanted,
                itself,
            } => {
                let host = host.to_ascii_lowercase();
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                address.is_none() && (below || *itself && host == *name) && fits(wanted)
            }
        }
    }
}

fn contains(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (network, address.to_canonical()) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            let shift = 32_u32.saturating_sub(u32::from(bits));
            let prefix = |address: u32| address.checked_shr(shift).unwrap_or_default();
            prefix(network.to_bits()) == prefix(address.to_bits())
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            let shift = 128_u32.saturating_sub(u32::from(bits));
            let prefix = |address: u128| address.checked_shr(shift).unwrap_or_default();
            prefix(network.to_bits()) == prefix(address.to_bits())
        }
        _ => false,
    }
}

/// A proxy's address: a URL, or `HOST[:PORT]` of an HTTP proxy.
fn parse_proxy(text: &str) -> Option<Url> {
    let parsed = Url::parse(text).ok().filter(Url::has_host);
    let mut url = parsed.or_else(|| Url::parse(&format!("http://{text}")).ok())?;
    // Go speaks HTTP to a proxy of an unknown scheme.
    if !matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h") {
        let (_, rest) = text.split_once("://")?;
        url = Url::parse(&format!("http://{rest}")).ok()?;
    }
    // Go's SOCKS client leaves names to the proxy.
    if url.scheme() == "socks5" {
        let _ = url.set_scheme("socks5h");
    }
    Some(url)
}

fn parse_exceptions(text: &str) -> Vec<Exception> {
    let entries = text.split(',').map(|entry| entry.trim().to_lowercase());
    let entries: Vec<String> = entries.filter(|entry| !entry.is_empty()).collect();
    if entries.iter().any(|entry| entry == "*") {
        return vec![Exception::Everything];
    }
    entries.iter().filter_map(|entry| parse_exception(entry)).collect()
}

fn parse_exception(entry: &str) -> Option<Exception> {
    if let Some((address, bits)) = entry.split_once('/')
        && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>())
        && bits <= if address.is_ipv4() { 32 } else { 128 }
    {
        return Some(Exception::Network(address, bits));
    }
    if let Ok(address) = entry.parse::<SocketAddr>() {
        return Some(Exception::Address(address.ip(), Some(address.port())));
    }
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(entry);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some(Exception::Address(address, None));
    }
    let (host, port) = match entry.split_once(':') {
        // A port that is no number fits no request.
        Some((host, port)) => (host, Some(port.parse().unwrap_or_default())),
        None => (entry, None),
    };
    let host = host
        .strip_prefix('*')
        .filter(|rest| rest.starts_with('.'))
        .unwrap_or(host);
    let name = host.strip_prefix('.').unwrap_or(host);
    if name.is_empty() {
        return None;
    }
    // Internationalized names are compared in the form that requests have.
    let ascii = Url::parse(&format!("http://{name}")).ok();
    let ascii = ascii.as_ref().filter(|_| !name.is_ascii()).and_then(Url::host_str);
    Some(Exception::Domain {
        name: ascii.unwrap_or(name).to_owned(),
        port,
        itself: !host.starts_with('.'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::read(|name| {
            let found = variables.iter().find(|(have, _)| *have == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn chosen(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let proxy = proxies(variables).for_url(&Url::parse(url).unwrap());
        proxy.map(|url| url.to_string())
    }

    /// Rows of httpproxy's own test: the exceptions, and whether a request goes through the proxy.
    #[test]
    fn exceptions_are_those_of_go() {
        let no_proxy = "foobar.com, .barbaz.net, *.wild.org:8443, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, 10.0.0.0/30, \
            2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64, 127.0.0.9x:1, :80, xn--bcher-kva.example";
        let cases = [
            ("http://localhost/", false),
            ("http://127.0.0.1/", false),
            ("http://127.0.0.2/", false),
            ("http://[::1]/", false),
            ("http://[::2]/", true),
            ("http://192.168.1.1/", false),
            ("http://192.168.1.2:80/", true),
            ("http://192.168.1.2:81/", false),
            ("http://192.168.1.3/", false),
            ("http://192.168.1.4/", true),
            ("http://10.0.0.2/", false),
            ("http://10.0.0.4/", true),
            ("http://[2001:db8::52:0:1]/", false),
            ("http://[2001:db8::52:0:2]/", true),
            ("https://[2001:db8::52:0:2]/", false),
            ("http://[2001:db8::52:0:3]/", false),
            ("http://[2002:db8:a::123]/", false),
            ("http://[fe80::424b:c8be:1643:a1b6]/", true),
            ("http://barbaz.net/", true),
            ("http://www.barbaz.net/", false),
            ("http://foobar.com/", false),
            ("http://www.foobar.com/", false),
            ("http://foofoobar.com/", true),
            ("http://baz.com/", true),
            ("http://localhost.net/", true),
            ("http://local.localhost/", true),
            ("http://barbarbaz.net/", true),
            ("https://a.wild.org:8443/", false),
            ("https://a.wild.org/", true),
            ("https://wild.org:8443/", true),
            ("http://FOOBAR.com/", false),
            ("http://b\u{fc}cher.example/", false),
        ];
        for (url, expected) in cases {
            let variables = [("HTTP_PROXY", "p:1"), ("HTTPS_PROXY", "p:1"), ("NO_PROXY", no_proxy)];
            assert_eq!(chosen(&variables, url).is_some(), expected, "{url}");
        }
    }

    #[test]
    fn variables_are_read_as_go_reads_them() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
        let cases: [Case; 15] = [
            (
                &[("HTTPS_PROXY", "proxy:3128")],
                "https://a.io/",
                Some("http://proxy:3128/"),
            ),
            (&[("HTTPS_PROXY", "proxy:3128")], "http://a.io/", None),
            (&[("HTTP_PROXY", "proxy")], "https://a.io/", None),
            (
                &[("http_proxy", "one"), ("HTTP_PROXY", "two")],
                "http://a.io/",
                Some("http://two/"),
            ),
            (
                &[("http_proxy", "one"), ("HTTP_PROXY", "")],
                "http://a.io/",
                Some("http://one/"),
            ),
            (
                &[("https_proxy", "ftp://proxy:1")],
                "https://a.io/",
                Some("http://proxy:1/"),
            ),
            (
                &[("https_proxy", "proxy"), ("no_proxy", "a.io"), ("NO_PROXY", "b.io")],
                "https://a.io/",
                Some("http://proxy/"),
            ),
            (&[("ALL_PROXY", "proxy"), ("all_proxy", "proxy")], "https://a.io/", None),
            (
                &[("https_proxy", "https://u:p@proxy")],
                "https://a.io/",
                Some("https://u:p@proxy/"),
            ),
            (
                &[("https_proxy", "socks5://proxy:1")],
                "https://a.io/",
                Some("socks5h://proxy:1"),
            ),
            (
                &[("http_proxy", "proxy"), ("REQUEST_METHOD", "GET")],
                "http://a.io/",
                None,
            ),
            (
                &[("https_proxy", "proxy"), ("REQUEST_METHOD", "GET")],
                "https://a.io/",
                Some("http://proxy/"),
            ),
            (
                &[("https_proxy", "proxy"), ("no_proxy", "x, * ,y")],
                "https://a.io/",
                None,
            ),
            (
                &[("https_proxy", "proxy"), ("no_proxy", ""), ("NO_PROXY", "io")],
                "https://a.io/",
                None,
            ),
            (
                &[("https_proxy", "127.0.0.1:3128")],
                "https://a.io/",
                Some("http://127.0.0.1:3128/"),
            ),
        ];
        for (variables, url, expected) in cases {
            assert_eq!(chosen(variables, url).as_deref(), expected, "{variables:?}");
        }
    }
}
