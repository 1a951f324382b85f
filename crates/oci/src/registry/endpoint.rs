//! One registry host: which scheme it speaks and the HTTP client for it.

use std::time::Duration;

use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Proxy, Url};

use super::certificates;
use super::error::Error;
use super::loopback::is_loopback;
use super::proxies::Proxies;
use super::{Client, Options};
use crate::limits;

/// A host with the way to speak to it.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// Host and port as written in references.
    pub host: String,
    /// `https` or `http`.
    pub scheme: &'static str,
    /// The HTTP client. It waits for the next bytes of an answer for a limited time only.
    pub http: reqwest::Client,
    /// The HTTP client for uploads, whose answers come after any number of bytes were sent. Each request sets how long it
    /// may take.
    pub uploads: reqwest::Client,
    /// True if any certificate is accepted.
    skip_verify: bool,
}

impl Endpoint {
    /// The address of a path below `/v2/`.
    pub fn url(&self, path: &str) -> String {
        // The registry that everyone calls docker.io answers under another name.
        let host = if self.host == "docker.io" {
            "registry-1.docker.io"
        } else {
            &self.host
        };
        format!("{}://{host}/v2/{path}", self.scheme)
    }

    /// Returns true if an address has the scheme, host and port of this endpoint. Credentials are sent to no other.
    pub fn is_own(&self, url: &Url) -> bool {
        Url::parse(&self.url("")).is_ok_and(|own| own.origin() == url.origin())
    }

    /// An address of this endpoint, with the endpoint's own host. Registries on this machine often call themselves `localhost`
    /// if the client's name for them is `127.0.0.1`, or the other way round. `None` for an address of another server.
    pub fn own_address(&self, mut url: Url) -> Option<Url> {
        let own = Url::parse(&self.url("")).ok()?;
        if own.origin() == url.origin() {
            return Some(url);
        }
        let (own_host, host) = (own.host_str()?, url.host_str()?);
        let is_same_port = own.port_or_known_default() == url.port_or_known_default();
        if !is_loopback(own_host) || !is_loopback(host) || own.scheme() != url.scheme() || !is_same_port {
            return None;
        }
        url.set_host(Some(own_host)).ok()?;
        Some(url)
    }
}

impl Client {
    /// The endpoint of a host. The scheme is found out once for each host.
    pub(super) async fn endpoint(&self, host: &str, insecure: bool) -> Result<Endpoint, Error> {
        // One repository of a host may be configured as insecure, and its neighbour not.
        let key = (host.to_owned(), insecure);
        if let Some(known) = self.endpoints.lock().ok().and_then(|known| known.get(&key).cloned()) {
            return Ok(known);
        }
        let skip_verify = self.options.skip_tls_verify || insecure;
        let mut endpoint = Endpoint {
            host: host.to_owned(),
            scheme: "https",
            http: http_client(
                host,
                &self.options,
                skip_verify,
                Policy::custom(follow),
                Some(self.options.answer()),
            )?,
            uploads: http_client(host, &self.options, skip_verify, Policy::custom(follow), None)?,
            skip_verify,
        };
        let may_be_plain = is_loopback(host) || insecure;
        if self.options.plain_http || (may_be_plain && !self.speaks_tls(&endpoint).await) {
            endpoint.scheme = "http";
        }
        if let Ok(mut known) = self.endpoints.lock() {
            known.insert(key, endpoint.clone());
        }
        Ok(endpoint)
    }

    /// A client for the token server of an endpoint. The caller follows redirects: the request may carry a password.
    pub(super) fn token_client(&self, endpoint: &Endpoint) -> Result<reqwest::Client, Error> {
        let time = Some(self.options.answer());
        http_client(
            &endpoint.host,
            &self.options,
            endpoint.skip_verify,
            Policy::none(),
            time,
        )
    }

    /// Returns true if plain HTTP can be ruled out: HTTPS gave an answer or failed for a reason that has to do with trust, or plain
    /// HTTP is refused. A server that hangs up on us for want of a certificate may be seen as a broken connection only.
    async fn speaks_tls(&self, endpoint: &Endpoint) -> bool {
        let ask = |endpoint: &Endpoint| endpoint.http.get(endpoint.url("")).timeout(limits::CONNECT).send();
        match ask(endpoint).await {
            Ok(_) => true,
            Err(error) if certificates::is_certificate_problem(&error) => true,
            Err(error) if certificates::is_plain_answer(&error) => false,
            Err(_) => {
                let plain = Endpoint {
                    scheme: "http",
                    ..endpoint.clone()
                };
                match ask(&plain).await {
                    // Go's servers and nginx answer with 400 if they expect TLS and receive plain HTTP.
                    Ok(answer) => answer.status().as_u16() == 400,
                    Err(_) => true,
                }
            }
        }
    }
}

/// Follows redirects, as registries answer with for blobs, but never from HTTPS to HTTP.
pub(super) fn follow(attempt: Attempt<'_>) -> Action {
    if attempt.previous().len() > limits::REDIRECTS {
        return attempt.error("too many redirects");
    }
    let was_protected = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if was_protected && attempt.url().scheme() != "https" {
        return attempt.error("it redirects from HTTPS to HTTP");
    }
    attempt.follow()
}

pub(super) fn http_client(
    host: &str,
    options: &Options,
    skip_verify: bool,
    redirects: Policy,
    idle: Option<Duration>,
) -> Result<reqwest::Client, Error> {
    let mut builder = reqwest::Client::builder()
        .redirect(redirects)
        .user_agent(concat!("olmkit/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits::CONNECT)
        .tcp_keepalive(Duration::from_secs(30));
    let proxies = Proxies::from_environment();
    // The proxy is chosen for each request: a registry may redirect to a host that needs another one.
    builder = builder.no_proxy().proxy(Proxy::custom(move |url| proxies.for_url(url)));
    if let Some(idle) = idle {
        builder = builder.read_timeout(idle);
    }
    if skip_verify {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    certificates::configure(builder, host, options.ca_file.as_deref())?
        .build()
        .map_err(|error| Error::Client {
            registry: host.to_owned(),
            reason: certificates::describe(&error),
        })
}
