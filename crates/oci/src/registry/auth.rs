//! Answers to `401 Unauthorized`: basic credentials, or a token from the server that the registry names.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Url};
use serde_json::Value;

use super::answer::{body_text, said};
use super::credentials::{Credential, Secret};
use super::error::Error;
use super::loopback::is_loopback;
use super::peer::Peer;
use crate::json;
use crate::limits::{REDIRECTS, TOKEN_BYTES};

/// A token is renewed this long before it expires.
const TOKEN_MARGIN: Duration = Duration::from_secs(10);
/// Lifetime of a token if its server does not specify one (the token specification's default).
const TOKEN_LIFE: u64 = 60;
/// The client requests a new token after a day at most, whatever lifetime the server promises. No client lives longer.
const LONGEST_TOKEN_LIFE: u64 = 24 * 60 * 60;

/// Headers that were accepted, by host and scope.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, Token>>);

#[derive(Clone)]
struct Token {
    header: HeaderValue,
    until: Option<Instant>,
    /// The credential that it was obtained with.
    sent: Option<Credential>,
}

impl Tokens {
    pub(super) fn get(&self, key: &str) -> Option<HeaderValue> {
        let tokens = self.0.lock().ok()?;
        let token = tokens.get(key)?;
        token
            .until
            .is_none_or(|until| until > Instant::now())
            .then(|| token.header.clone())
    }

    /// The credential behind what was sent last.
    fn sent(&self, key: &str) -> Option<Credential> {
        self.0.lock().ok()?.get(key)?.sent.clone()
    }

    fn set(&self, key: String, token: Token) {
        if let Ok(mut tokens) = self.0.lock() {
            tokens.insert(key, token);
        }
    }
}

/// The answers of hosts to `/v2/`, for each host that was asked.
#[derive(Default)]
pub(super) struct Offers(Mutex<HashMap<String, Vec<Challenge>>>);

/// One challenge of a `WWW-Authenticate` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer(Bearer),
}

/// A server that gives tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bearer {
    realm: String,
    service: Option<String>,
    scope: Option<String>,
}

impl Peer<'_> {
    /// The ways to authenticate that the registry offers at `/v2/`. Some registries answer requests without credentials
    /// with 404 or 403, or with 401 and no challenge.
    pub(super) async fn offers(&self) -> Vec<Challenge> {
        let host = &self.endpoint.host;
        let known = self
            .client
            .offers
            .0
            .lock()
            .ok()
            .and_then(|offers| offers.get(host).cloned());
        if let Some(known) = known {
            return known;
        }
        let (time, url) = (self.client.options.answer(), self.endpoint.url(""));
        let request = || self.endpoint.http.get(&url).timeout(time);
        let challenges = match self.try_repeatedly("authenticate", request).await {
            Ok(answer) if matches!(answer.status().as_u16(), 401 | 403) && self.endpoint.is_own(answer.url()) => {
                challenges(answer.headers())
            }
            Ok(_) => Vec::new(),
            // Another request may get an answer.
            Err(_) => return Vec::new(),
        };
        if let Ok(mut offers) = self.client.offers.0.lock() {
            offers.insert(host.clone(), challenges.clone());
        }
        challenges
    }

    /// Obtains what challenges ask for and remembers it. Tokens come first: a password alone is not enough where a registry
    /// offers both. The error names the refused credential.
    pub(super) async fn authorize(
        &self,
        action: &str,
        lender: Option<&str>,
        challenges: &[Challenge],
        answer: &str,
    ) -> Result<(), Error> {
        let token = self.obtain(action, lender, challenges, answer).await?;
        self.client.tokens.set(self.token_key(lender), token);
        Ok(())
    }

    async fn obtain(
        &self,
        action: &str,
        lender: Option<&str>,
        challenges: &[Challenge],
        answer: &str,
    ) -> Result<Token, Error> {
        let credential = self.credential().await?;
        if let Some(Credential {
            secret: Secret::RegistryToken(token),
            ..
        }) = &credential
            && let Some(header) = bearer(token)
        {
            let (until, sent) = (None, credential);
            return Ok(Token { header, until, sent });
        }
        let mut failure = None;
        for challenge in challenges {
            if let Challenge::Bearer(challenge) = challenge {
                match self.fetch_token(action, lender, challenge, credential.as_ref()).await {
                    Ok(token) => return Ok(token),
                    Err(error) => drop(failure.get_or_insert(error)),
                }
            }
        }
        if challenges.contains(&Challenge::Basic)
            && let Some(header) = credential.as_ref().and_then(basic)
        {
            let (until, sent) = (None, credential);
            return Ok(Token { header, until, sent });
        }
        Err(failure.unwrap_or_else(|| self.denied(action, 401, answer, None, credential.as_ref())))
    }

    /// The refusal of a request, with the credential that was sent with it.
    pub(super) async fn denial(&self, action: &str, status: u16, answer: &str) -> Error {
        let sent = self.client.tokens.sent(&self.token_key(None));
        let configured = self.credential().await.ok().flatten();
        self.denied(action, status, answer, sent.as_ref(), configured.as_ref())
    }

    fn denied(
        &self,
        action: &str,
        status: u16,
        answer: &str,
        sent: Option<&Credential>,
        configured: Option<&Credential>,
    ) -> Error {
        let (credential, hint) = match (sent, configured) {
            (Some(Credential { user, secret, origin }), _) => match secret {
                Secret::RegistryToken(_) => (
                    format!("a registry token was sent ({origin})"),
                    "; log in again or ask for access to the repository",
                ),
                Secret::IdentityToken(_) => (
                    format!("an identity token was sent ({origin})"),
                    "; log in again or ask for access to the repository",
                ),
                Secret::Password(_) | Secret::Basic(_) => (
                    format!("user {user:?} was sent ({origin})"),
                    "; check the permissions of this user, and log in again if the password has changed",
                ),
            },
            (None, Some(Credential { origin, .. })) => (
                format!("no credential was sent: the registry offers no way to authenticate that fits {origin}"),
                "",
            ),
            (None, None) => (
                format!(
                    "no credential was sent, none was found in {}",
                    self.client.credentials.searched()
                ),
                "; log in with `podman login`, `docker login` or `skopeo login`, or name a file with --authfile",
            ),
        };
        Error::Denied {
            registry: self.endpoint.host.clone(),
            action: action.to_owned(),
            status,
            said: said(answer),
            credential,
            hint: hint.to_owned(),
        }
    }

    /// The configured credential for this repository.
    pub(super) async fn credential(&self) -> Result<Option<Credential>, Error> {
        self.client
            .credentials
            .find(&self.endpoint.host, &self.repository)
            .await
    }

    async fn fetch_token(
        &self,
        action: &str,
        lender: Option<&str>,
        challenge: &Bearer,
        credential: Option<&Credential>,
    ) -> Result<Token, Error> {
        let url = self.check_realm(action, &challenge.realm)?;
        let mut scopes = self.scopes(lender);
        // A registry may ask for more than we think is needed; what it names for this very request is asked for too.
        let own = format!("repository:{}:", self.repository);
        let named = challenge.scope.as_deref().unwrap_or_default().split_whitespace();
        let named: Vec<&str> = named
            .filter(|scope| scope.strip_prefix(&own).is_none_or(is_unusual))
            .filter(|scope| !scopes.iter().any(|have| have == scope))
            .collect();
        scopes.extend(named.iter().map(|scope| (*scope).to_owned()));
        let request = TokenRequest {
            action,
            url,
            service: challenge.service.as_deref(),
            credential,
        };
        let failure = match self.request_token(&request, &scopes).await {
            Err(error @ Error::Denied { .. }) if scopes.len() > 1 => error,
            result => return result,
        };
        // Some servers issue tokens for one scope only. The registry's choice is used.
        let own = scopes.first().map(String::as_str);
        for scope in named.iter().copied().chain(own) {
            if let Ok(token) = self.request_token(&request, &[scope.to_owned()]).await {
                return Ok(token);
            }
        }
        Err(failure)
    }

    async fn request_token(&self, request: &TokenRequest<'_>, scopes: &[String]) -> Result<Token, Error> {
        let TokenRequest {
            action,
            url,
            credential,
            ..
        } = request;
        let host = url.host_str().unwrap_or_default();
        let what = format!("get a token from {host}");
        let protocol = |problem: &str| Error::Protocol {
            registry: host.to_owned(),
            action: (*action).to_owned(),
            problem: problem.to_owned(),
        };
        let http = self.client.token_client(&self.endpoint)?;
        let mut response = self.try_repeatedly(&what, || request.send(&http, scopes)).await?;
        for _ in 0..REDIRECTS {
            let status = response.status().as_u16();
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                break;
            }
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let target = location.and_then(|location| response.url().join(location).ok());
            let target = target.ok_or_else(|| protocol("the token server redirects to an invalid address"))?;
            let target = self.check_realm(action, target.as_str())?;
            if credential.is_some() && !is_same_server(response.url(), &target) {
                return Err(protocol(
                    "the token server redirects the request, which carries a credential, to another address",
                ));
            }
            // 307 and 308 repeat the request as it was, the others make it a GET.
            let keeps_form = matches!(status, 307 | 308);
            response = self
                .try_repeatedly(&what, || request.follow(&http, target.clone(), scopes, keeps_form))
                .await?;
        }
        let status = response.status().as_u16();
        if matches!(status, 404 | 405) && request.refresh_token().is_some() {
            // Some servers have no POST. Images that everyone may pull need no credential.
            let anonymous = TokenRequest {
                credential: None,
                url: url.clone(),
                ..*request
            };
            if let Ok(token) = Box::pin(self.request_token(&anonymous, scopes)).await {
                return Ok(token);
            }
        }
        let body = body_text(response, TOKEN_BYTES).await;
        if status != 200 {
            return Err(match self.denied(action, status, &body, *credential, *credential) {
                Error::Denied {
                    action,
                    status,
                    said,
                    credential,
                    hint,
                    ..
                } => Error::Denied {
                    registry: format!("{host} (token server of {})", self.endpoint.host),
                    action,
                    status,
                    said,
                    credential,
                    hint,
                },
                other => other,
            });
        }
        let mut answer: Value = serde_json::from_str(&body)
            .map_err(|error| protocol(&format!("the token response is invalid: {error}")))?;
        json::spell(&mut answer, &["token", "access_token", "expires_in"]);
        let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let header = text("token")
            .or_else(|| text("access_token"))
            .and_then(bearer)
            .ok_or_else(|| protocol("the token response has no usable token"))?;
        let life = Duration::from_secs(token_life(answer.get("expires_in")));
        Ok(Token {
            header,
            until: Some(Instant::now() + life.saturating_sub(TOKEN_MARGIN)),
            sent: credential.cloned(),
        })
    }

    /// Credentials go to the realm, so a registry that speaks TLS must not send us to a server that does not.
    fn check_realm(&self, action: &str, realm: &str) -> Result<Url, Error> {
        let protocol = |problem: String| Error::Protocol {
            registry: self.endpoint.host.clone(),
            action: action.to_owned(),
            problem,
        };
        let url = Url::parse(realm).map_err(|error| protocol(format!("token server {realm:?}: {error}")))?;
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.endpoint.scheme == "http" || url.host_str().is_some_and(is_loopback) => Ok(url),
            _ => Err(protocol(format!(
                "it wants the credential sent to {realm:?}, which is not protected by TLS"
            ))),
        }
    }
}

/// A request to a token server, without its scopes.
struct TokenRequest<'r> {
    action: &'r str,
    url: Url,
    service: Option<&'r str>,
    credential: Option<&'r Credential>,
}

impl TokenRequest<'_> {
    fn send(&self, http: &reqwest::Client, scopes: &[String]) -> RequestBuilder {
        let mut url = self.url.clone();
        if self.refresh_token().is_none() {
            let mut query = url.query_pairs_mut();
            if let Some(service) = self.service {
                query.append_pair("service", service);
            }
            for scope in scopes {
                query.append_pair("scope", scope);
            }
        }
        self.follow(http, url, scopes, true)
    }

    /// The request to another address, which has the parameters already.
    fn follow(&self, http: &reqwest::Client, url: Url, scopes: &[String], keeps_form: bool) -> RequestBuilder {
        if let Some(token) = self.refresh_token().filter(|_| keeps_form) {
            let mut form = self.url.clone();
            form.set_query(None);
            form.query_pairs_mut()
                .append_pair("grant_type", "refresh_token")
                .append_pair("client_id", "olmkit")
                .append_pair("service", self.service.unwrap_or_default())
                .append_pair("scope", &scopes.join(" "))
                .append_pair("refresh_token", token);
            let body = form.query().unwrap_or_default().to_owned();
            return http
                .post(url)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body);
        }
        match self.credential.and_then(basic) {
            Some(header) => http.get(url).header(AUTHORIZATION, header),
            None => http.get(url),
        }
    }

    fn refresh_token(&self) -> Option<&str> {
        match self.credential {
            Some(Credential {
                secret: Secret::IdentityToken(token),
                ..
            }) => Some(token),
            _ => None,
        }
    }
}

/// Returns true if a scope has other actions than those that the client requests by itself.
fn is_unusual(actions: &str) -> bool {
    let usual = ["pull", "push", "delete", "*"];
    actions.split(',').any(|action| !usual.contains(&action))
}

/// Returns true if an address is on the same server, perhaps with TLS where there was none.
fn is_same_server(from: &Url, to: &Url) -> bool {
    let upgrades = (from.scheme(), to.scheme()) == ("http", "https") && from.port().is_none() && to.port().is_none();
    from.origin() == to.origin() || upgrades && from.host() == to.host()
}

/// The seconds that a token lives. Servers write numbers of any form, and text.
fn token_life(expires_in: Option<&Value>) -> u64 {
    let seconds = match expires_in {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let limits = (TOKEN_LIFE, LONGEST_TOKEN_LIFE);
    // The conversion saturates.
    seconds
        .map_or(TOKEN_LIFE, |seconds: f64| seconds as u64)
        .clamp(limits.0, limits.1)
}

/// The header for a credential with a password.
fn basic(credential: &Credential) -> Option<HeaderValue> {
    match &credential.secret {
        Secret::Password(password) => {
            let text = format!("{}:{password}", credential.user);
            sensitive(&format!("Basic {}", STANDARD.encode(text)))
        }
        Secret::Basic(encoded) => sensitive(&format!("Basic {encoded}")),
        Secret::IdentityToken(_) | Secret::RegistryToken(_) => None,
    }
}

fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(&format!("Bearer {token}")).filter(|_| !token.is_empty())
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The challenges of an answer that can be met here.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    values
        .flat_map(|value| parse(&String::from_utf8_lossy(value.as_bytes())))
        .collect()
}

/// Reads the challenges of one header, of which there may be several (RFC 9110, 11.6.1): a scheme and `name="value"` pairs
/// each, separated by commas like the pairs. A word is a name if an equals sign follows, else a scheme.
fn parse(header: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, HashMap<String, String>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',', '=']);
        if rest.is_empty() {
            break;
        }
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=');
        let Some(value) = value else {
            found.push((word.to_ascii_lowercase(), HashMap::new()));
            rest = after;
            continue;
        };
        let value = value.trim_start_matches([' ', '\t']);
        let (value, next) = match value.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let end = value.find([' ', '\t', ',']).unwrap_or(value.len());
                let (value, next) = value.split_at(end);
                (value.to_owned(), next)
            }
        };
        if let Some((_, parameters)) = found.last_mut() {
            parameters.entry(word.to_ascii_lowercase()).or_insert(value);
        }
        rest = next;
    }
    let known = found
        .into_iter()
        .filter_map(|(scheme, mut parameters)| match scheme.as_str() {
            "basic" => Some(Challenge::Basic),
            "bearer" => Some(Challenge::Bearer(Bearer {
                realm: parameters.remove("realm").filter(|realm| !realm.is_empty())?,
                service: parameters.remove("service"),
                scope: parameters.remove("scope"),
            })),
            _ => None,
        });
    known.collect()
}

fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' => return (value, text.get(index + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Challenge::Bearer(Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        let token = || bearer("https://t.io/x", Some("s"), None);
        let cases = [
            ("Basic realm=\"r\"", vec![Challenge::Basic]),
            ("Basic", vec![Challenge::Basic]),
            ("Negotiate", vec![]),
            ("Bearer service=\"x\"", vec![]),
            ("", vec![]),
            (
                "Bearer realm=\"https://auth.example.com/token?a=b,c\",service=\"r.io\",scope=\"repository:a:pull,push\"",
                vec![bearer(
                    "https://auth.example.com/token?a=b,c",
                    Some("r.io"),
                    Some("repository:a:pull,push"),
                )],
            ),
            (
                "bearer  Realm=https://t.io/x , service = \"s\\\"q\"",
                vec![bearer("https://t.io/x", Some("s\"q"), None)],
            ),
            ("Negotiate, Basic realm=\"x\"", vec![Challenge::Basic]),
            ("Negotiate abc+/==, NTLM, Basic realm=x", vec![Challenge::Basic]),
            (
                "Basic realm=\"x, Bearer y\", Bearer realm=\"https://t.io/x\",service=\"s\"",
                vec![Challenge::Basic, token()],
            ),
            (
                "Bearer realm=\"https://t.io/x\",service=\"s\", Basic realm=\"x\",charset=\"UTF-8\"",
                vec![token(), Challenge::Basic],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn tokens_live_for_any_number_of_seconds() {
        let cases = [
            ("300", 300),
            ("300.5", 300),
            ("\"300\"", 300),
            ("0", TOKEN_LIFE),
            ("-1", TOKEN_LIFE),
            ("null", TOKEN_LIFE),
            ("\"soon\"", TOKEN_LIFE),
            ("[]", TOKEN_LIFE),
            ("1e300", LONGEST_TOKEN_LIFE),
            ("18446744073709551615", LONGEST_TOKEN_LIFE),
        ];
        for (text, expected) in cases {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(token_life(Some(&value)), expected, "{text}");
        }
        assert_eq!(token_life(None), TOKEN_LIFE);
    }

    #[test]
    fn redirects_of_token_servers_stay_on_their_server() {
        let same = |from: &str, to: &str| is_same_server(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(same("http://t.io/a", "http://t.io/b?c"));
        assert!(same("http://t.io/a", "https://t.io/a"));
        assert!(!same("https://t.io/a", "http://t.io/a"));
        assert!(!same("http://t.io:5000/a", "http://t.io:5001/a"));
        assert!(!same("https://t.io/a", "https://u.io/a"));
    }
}
