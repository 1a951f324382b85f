//! One request to one repository: authorization, retries, and refusals put into words.

use std::time::{Duration, SystemTime};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};

use super::answer::{body_text, said};
use super::error::Error;
use super::peer::Peer;
use super::{auth, certificates, retry};
use crate::limits::{self, REFUSAL_BYTES};

impl Peer<'_> {
    /// Sends a request, with authorization, until there is an answer that will not change by asking again. All of the
    /// answer must come within the time for answers. `make` is called for each attempt.
    pub(super) async fn send(
        &self,
        action: &str,
        make: impl Fn(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let time = self.client.options.answer();
        self.send_for_blob(action, |http| make(http).timeout(time)).await
    }

    /// As [`Peer::send`]. The content of the answer may take any time.
    pub(super) async fn send_for_blob(
        &self,
        action: &str,
        make: impl Fn(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Response, Error> {
        self.send_for(action, None, make).await
    }

    /// As [`Peer::send`], for a request that concerns the repository of a lender too.
    pub(super) async fn send_for(
        &self,
        action: &str,
        lender: Option<&str>,
        make: impl Fn(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let used = self.client.tokens.get(&self.token_key(lender));
        let send = || self.try_repeatedly(action, || self.authorized(make(&self.endpoint.http), lender));
        let response = send().await?;
        let status = response.status().as_u16();
        if !self.endpoint.is_own(response.url()) {
            // A server that the registry redirected to gets no credentials.
            return Ok(response);
        }
        if status == 401 {
            self.renew(action, lender, response, used).await?;
            return send().await;
        }
        // Registries may hide what they would show with credentials, and not all of them answer 403 or 404.
        if matches!(status, 400..=499) && used.is_none() && self.authenticate(action, lender, &response).await? {
            return send().await;
        }
        Ok(response)
    }

    /// Authenticates as the registry requires in its answer or at `/v2/`. Returns false if there is nothing to send. A rejected
    /// credential is an error. A missing token is not, because the registry has already answered.
    async fn authenticate(&self, action: &str, lender: Option<&str>, answer: &Response) -> Result<bool, Error> {
        let mut offers = auth::challenges(answer.headers());
        if offers.is_empty() {
            offers = self.offers().await;
        }
        if offers.is_empty() {
            return Ok(false);
        }
        let _one_at_a_time = self.client.renewal.lock().await;
        if self.client.tokens.get(&self.token_key(lender)).is_some() {
            return Ok(true);
        }
        // Without a credential, a token may help too.
        let has_credential = self.credential().await?.is_some();
        match self.authorize(action, lender, &offers, "").await {
            Ok(()) => Ok(true),
            Err(error) if has_credential => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Sends a request of an upload, with `bytes` bytes of content, once. A missing authorization is obtained and the
    /// request repeated. Nothing else is.
    pub(super) async fn send_once(
        &self,
        action: &str,
        bytes: u64,
        make: impl Fn(&reqwest::Client) -> RequestBuilder,
    ) -> Result<Result<Response, reqwest::Error>, Error> {
        let used = self.client.tokens.get(&self.token_key(None));
        let time = self.client.options.answer() + Duration::from_secs(bytes / limits::UPLOAD_RATE);
        let send = async || {
            logged(
                action,
                self.authorized(make(&self.endpoint.uploads).timeout(time), None)
                    .send()
                    .await,
            )
        };
        match send().await {
            Ok(response) if self.asks_for_credentials(&response) => {
                self.renew(action, None, response, used).await?;
                Ok(send().await)
            }
            other => Ok(other),
        }
    }

    /// Returns true if the registry itself requires credentials. A server that it redirected to gets none.
    fn asks_for_credentials(&self, response: &Response) -> bool {
        response.status().as_u16() == 401 && self.endpoint.is_own(response.url())
    }

    /// Obtains a new authorization after `used` was refused. Requests that were refused at the same time wait for the
    /// first one's.
    async fn renew(
        &self,
        action: &str,
        lender: Option<&str>,
        response: Response,
        used: Option<HeaderValue>,
    ) -> Result<(), Error> {
        let mut challenges = auth::challenges(response.headers());
        if challenges.is_empty() {
            challenges = self.offers().await;
        }
        let _one_at_a_time = self.client.renewal.lock().await;
        let current = self.client.tokens.get(&self.token_key(lender));
        if current.is_some() && current != used {
            return Ok(());
        }
        let body = body_text(response, REFUSAL_BYTES).await;
        self.authorize(action, lender, &challenges, &body).await
    }

    fn authorized(&self, request: RequestBuilder, lender: Option<&str>) -> RequestBuilder {
        with_header(request, self.client.tokens.get(&self.token_key(lender)))
    }

    /// Sends requests until one is answered for good.
    pub(super) async fn try_repeatedly(
        &self,
        action: &str,
        make: impl Fn() -> RequestBuilder,
    ) -> Result<Response, Error> {
        let mut failed = 0;
        loop {
            let result = logged(action, make().send().await);
            let reason = match &result {
                Ok(response) if !retry::is_transient(response.status().as_u16()) => {
                    return result.map_err(|error| self.unreachable(action, &error, failed));
                }
                Ok(response) => format!("answered {}", response.status()),
                Err(error) => certificates::explain(error, &self.endpoint.host).0,
            };
            failed += 1;
            match result {
                Ok(response) if failed >= self.attempts() => return Ok(response),
                Err(error) if failed >= self.attempts_after(&error) => {
                    return Err(self.unreachable(action, &error, failed));
                }
                Ok(response) => self.pause(action, failed, &reason, Some(response.headers())).await,
                Err(_) => self.pause(action, failed, &reason, None).await,
            }
        }
    }

    /// How often a request is tried.
    pub(super) fn attempts(&self) -> u32 {
        match self.client.options.attempts {
            0 => limits::ATTEMPTS,
            attempts => attempts,
        }
    }

    /// How often a request is tried that got no answer: failures that will not go away are not repeated.
    pub(super) fn attempts_after(&self, error: &reqwest::Error) -> u32 {
        if error.is_builder() || error.is_redirect() || certificates::is_certificate_problem(error) {
            return 1;
        }
        if error.is_timeout() && !error.is_connect() {
            // Who lets us wait would do so again.
            self.attempts().min(limits::LATE_ATTEMPTS)
        } else if error.is_connect() {
            self.attempts().min(limits::REFUSED_ATTEMPTS)
        } else {
            self.attempts()
        }
    }

    /// Waits before the next attempt and reports it.
    pub(super) async fn pause(&self, action: &str, failed: u32, reason: &str, headers: Option<&HeaderMap>) {
        let asked = headers
            .and_then(|headers| headers.get(RETRY_AFTER))
            .and_then(|value| value.to_str().ok());
        let wait = retry::wait(failed, asked, SystemTime::now());
        let host = &self.endpoint.host;
        let seconds = wait.as_secs_f32();
        self.client
            .progress
            .note(&format!("{host} {reason}; trying again to {action} in {seconds:.1} s"));
        tokio::time::sleep(wait).await;
    }

    /// An error for a request that got no answer.
    pub(super) fn unreachable(&self, action: &str, error: &reqwest::Error, failed: u32) -> Error {
        let (problem, hint) = certificates::explain(error, &self.endpoint.host);
        let registry = self.endpoint.host.clone();
        Error::Unreachable {
            action: action.to_owned(),
            registry,
            problem,
            attempts: attempts_text(failed),
            hint,
        }
    }

    /// An error for an answer that is none of those the caller can go on with.
    pub(super) async fn refused(&self, action: &str, what: &str, response: Response) -> Error {
        let status = response.status().as_u16();
        let body = body_text(response, REFUSAL_BYTES).await;
        match status {
            401 | 403 => self.denial(action, status, &body).await,
            404 => Error::NotFound {
                registry: self.endpoint.host.clone(),
                what: what.to_owned(),
                said: said(&body),
            },
            _ => Error::Answer {
                registry: self.endpoint.host.clone(),
                action: action.to_owned(),
                status,
                said: said(&body),
                attempts: if retry::is_transient(status) {
                    attempts_text(self.attempts())
                } else {
                    String::new()
                },
            },
        }
    }
}

pub(super) fn attempts_text(failed: u32) -> String {
    if failed > 1 {
        format!(", {failed} times")
    } else {
        String::new()
    }
}

/// Sets the header on a request, if there is one.
fn with_header(request: RequestBuilder, header: Option<HeaderValue>) -> RequestBuilder {
    match header {
        Some(header) => request.header(AUTHORIZATION, header),
        None => request,
    }
}

/// Notes a registry's answer in the log, without the query of its address, which may be a signature.
fn logged(action: &str, result: Result<Response, reqwest::Error>) -> Result<Response, reqwest::Error> {
    match &result {
        Ok(response) => {
            let (url, status) = (response.url(), response.status().as_u16());
            tracing::debug!(action, host = url.host_str(), path = url.path(), status, "registry");
        }
        Err(error) => tracing::debug!(
            action,
            reason = error.is_timeout().then_some("time-out"),
            "registry does not answer"
        ),
    }
    result
}
