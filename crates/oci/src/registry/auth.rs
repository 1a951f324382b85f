//! Answers to `401 Unauthorized`: basic credentials, or a token from the server that the registry names.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;

use super::answer::{body_text, said};
use super::credentials::{Credential, Secret};
use super::error::Error;
use super::loopback::is_loopback;
use super::transport::Peer;
use crate::limits::TOKEN_BYTES;

/// A token is renewed this long before it expires.
const TOKEN_MARGIN: Duration = Duration::from_secs(10);
/// How long a token lives if its server does not say (the token specification's default).
const TOKEN_LIFE: u64 = 60;
/// A token is asked for anew after a day at most, whatever the server promises: no client lives longer.
const LONGEST_TOKEN_LIFE: u64 = 24 * 60 * 60;

/// Headers that were accepted, by host and scope.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<String, Token>>);

#[derive(Clone)]
struct Token {
    header: HeaderValue,
    until: Option<Instant>,
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

    fn set(&self, key: String, token: Token) {
        if let Ok(mut tokens) = self.0.lock() {
            tokens.insert(key, token);
        }
    }
}

/// One challenge of a `WWW-Authenticate` header.
#[derive(Debug, PartialEq, Eq)]
enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl Peer<'_> {
    /// Obtains what a 401 answer asks for and remembers it. The error names the refused credential.
    pub(super) async fn authorize(&self, action: &str, headers: &HeaderMap, answer: &str) -> Result<(), Error> {
        let credential = self.credential().await?;
        let challenge = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .find_map(parse);
        let token = match challenge {
            Some(Challenge::Bearer { realm, service, scope }) => {
                self.fetch_token(
                    action,
                    &realm,
                    service.as_deref(),
                    scope.as_deref(),
                    credential.as_ref(),
                )
                .await?
            }
            Some(Challenge::Basic) => match credential.as_ref() {
                Some(Credential {
                    user,
                    secret: Secret::Password(password),
                    ..
                }) => basic(user, password),
                _ => None,
            },
            None => None,
        };
        match token {
            Some(token) => {
                self.client.tokens.set(self.token_key(), token);
                Ok(())
            }
            None => Err(self.denied(action, 401, answer, credential.as_ref())),
        }
    }

    /// The refusal of an action, with the credential that was used.
    pub(super) fn denied(&self, action: &str, status: u16, answer: &str, credential: Option<&Credential>) -> Error {
        let (credential, hint) = match credential {
            Some(Credential { user, origin, .. }) if user.is_empty() => (
                format!("an identity token was sent ({origin})"),
                "; log in again or ask for access to the repository",
            ),
            Some(Credential { user, origin, .. }) => (
                format!("user {user:?} was sent ({origin})"),
                "; check the permissions of this user, and log in again if the password has changed",
            ),
            None => (
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
        realm: &str,
        service: Option<&str>,
        scope: Option<&str>,
        credential: Option<&Credential>,
    ) -> Result<Option<Token>, Error> {
        let url = self.check_realm(action, realm)?;
        let mut scopes = self.scopes();
        // A registry may ask for more than we think is needed; what it names for this very request is asked for too.
        let own = format!("repository:{}:", self.repository);
        if let Some(scope) = scope.filter(|scope| !scope.is_empty() && !scope.starts_with(&own)) {
            scopes.push(scope.to_owned());
        }
        let http = self.client.token_client(&self.endpoint)?;
        let response = self
            .try_repeatedly(&format!("get a token from {}", url.host_str().unwrap_or(realm)), || {
                token_request(&http, url.clone(), service, &scopes, credential)
            })
            .await?;
        if response.status().is_redirection() {
            return Err(Error::Protocol {
                registry: url.host_str().unwrap_or(realm).to_owned(),
                action: action.to_owned(),
                problem: "the token server redirects the request, which carries a credential, to another address"
                    .to_owned(),
            });
        }
        let status = response.status().as_u16();
        let body = body_text(response, TOKEN_BYTES).await;
        if status != 200 {
            return Err(match self.denied(action, status, &body, credential) {
                Error::Denied {
                    action,
                    status,
                    said,
                    credential,
                    hint,
                    ..
                } => {
                    let registry = format!(
                        "{} (token server of {})",
                        url.host_str().unwrap_or(realm),
                        self.endpoint.host
                    );
                    Error::Denied {
                        registry,
                        action,
                        status,
                        said,
                        credential,
                        hint,
                    }
                }
                other => other,
            });
        }
        let answer: TokenAnswer = serde_json::from_str(&body).map_err(|error| Error::Protocol {
            registry: url.host_str().unwrap_or(realm).to_owned(),
            action: action.to_owned(),
            problem: format!("the token response is invalid: {error}"),
        })?;
        let token = if answer.token.is_empty() {
            answer.access_token
        } else {
            answer.token
        };
        let Some(header) = bearer(&token) else { return Ok(None) };
        let life = answer
            .expires_in
            .unwrap_or(TOKEN_LIFE)
            .clamp(TOKEN_LIFE, LONGEST_TOKEN_LIFE);
        let life = Duration::from_secs(life);
        Ok(Some(Token {
            header,
            until: Some(Instant::now() + life.saturating_sub(TOKEN_MARGIN)),
        }))
    }

    /// Credentials go to the realm, so a registry that speaks TLS must not send us to a server that does not.
    fn check_realm(&self, action: &str, realm: &str) -> Result<reqwest::Url, Error> {
        let protocol = |problem: String| Error::Protocol {
            registry: self.endpoint.host.clone(),
            action: action.to_owned(),
            problem,
        };
        let url = reqwest::Url::parse(realm).map_err(|error| protocol(format!("token server {realm:?}: {error}")))?;
        match url.scheme() {
            "https" => Ok(url),
            "http" if self.endpoint.scheme == "http" || url.host_str().is_some_and(is_loopback) => Ok(url),
            _ => Err(protocol(format!(
                "it wants the credential sent to {realm:?}, which is not protected by TLS"
            ))),
        }
    }
}

fn token_request(
    http: &reqwest::Client,
    mut url: reqwest::Url,
    service: Option<&str>,
    scopes: &[String],
    credential: Option<&Credential>,
) -> reqwest::RequestBuilder {
    if let Some(Credential {
        secret: Secret::IdentityToken(token),
        ..
    }) = credential
    {
        let mut form = url.clone();
        form.set_query(None);
        form.query_pairs_mut()
            .append_pair("grant_type", "refresh_token")
            .append_pair("client_id", "olmkit")
            .append_pair("service", service.unwrap_or_default())
            .append_pair("scope", &scopes.join(" "))
            .append_pair("refresh_token", token);
        let body = form.query().unwrap_or_default().to_owned();
        return http
            .post(url)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body);
    }
    {
        let mut query = url.query_pairs_mut();
        if let Some(service) = service {
            query.append_pair("service", service);
        }
        for scope in scopes {
            query.append_pair("scope", scope);
        }
    }
    match credential {
        Some(Credential {
            user,
            secret: Secret::Password(password),
            ..
        }) => http.get(url).basic_auth(user, Some(password)),
        _ => http.get(url),
    }
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: String,
    #[serde(default)]
    access_token: String,
    #[serde(default)]
    expires_in: Option<u64>,
}

fn basic(user: &str, password: &str) -> Option<Token> {
    let mut header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))).ok()?;
    header.set_sensitive(true);
    Some(Token { header, until: None })
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .ok()
        .filter(|_| !token.is_empty())?;
    header.set_sensitive(true);
    Some(header)
}

/// Reads a challenge: a scheme and `name="value"` pairs (RFC 9110, 11.6.1).
fn parse(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut pairs = parameters(rest);
    let mut take = |name: &str| pairs.remove(name);
    Some(Challenge::Bearer {
        realm: take("realm")?,
        service: take("service"),
        scope: take("scope"),
    })
}

fn parameters(text: &str) -> HashMap<String, String> {
    let mut found = HashMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => after
                .split_once(',')
                .map_or((after.to_owned(), ""), |(value, next)| (value.trim().to_owned(), next)),
        };
        found.insert(name.trim_matches([' ', ',']).to_ascii_lowercase(), value);
        rest = next;
    }
    found
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
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        };
        let cases = [
            ("Basic realm=\"r\"", Some(Challenge::Basic)),
            ("Negotiate", None),
            ("Bearer service=\"x\"", None),
            (
                "Bearer realm=\"https://auth.example.com/token?a=b,c\",service=\"r.io\",scope=\"repository:a:pull,push\"",
                Some(bearer(
                    "https://auth.example.com/token?a=b,c",
                    Some("r.io"),
                    Some("repository:a:pull,push"),
                )),
            ),
            (
                "bearer  Realm=https://t.io/x , service = \"s\\\"q\"",
                Some(bearer("https://t.io/x", Some("s\"q"), None)),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
