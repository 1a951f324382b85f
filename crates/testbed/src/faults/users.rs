//! Users with client certificates, which plain HTTP does not carry.
use std::sync::Arc;

use http::{HeaderMap, header::AUTHORIZATION};
use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{Error, access};

/// A user with a token for the proxy, which has the certificate.
#[derive(Clone)]
pub(super) struct User {
    token: String,
    kubeconfig: Kubeconfig,
    name: String,
    /// Made on the thread of the proxy, with the first request.
    client: Arc<OnceCell<Client>>,
}

impl User {
    /// The users of `kubeconfig` with a certificate. In `value`, the same as JSON, each has a token instead.
    pub(super) fn with_certificates(kubeconfig: &Kubeconfig, value: &mut Value) -> Vec<Self> {
        let users = value.get_mut("users").and_then(Value::as_array_mut);
        let mut found = Vec::new();
        for user in users.into_iter().flatten() {
            let name = user.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let Some(credentials) = user.get_mut("user").filter(|credentials| {
                let has = |field| credentials.get(field).is_some_and(|value| !value.is_null());
                has("client-certificate") || has("client-certificate-data")
            }) else {
                continue;
            };
            let token = format!("certificate-{:032x}", fastrand::u128(..));
            *credentials = json!({ "token": token });
            found.push(Self {
                token,
                kubeconfig: kubeconfig.clone(),
                name,
                client: Arc::default(),
            });
        }
        found
    }

    /// Returns true if a request with these headers is one of this user.
    pub(super) fn sent(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
        sent.and_then(|sent| sent.strip_prefix(b"Bearer ")) == Some(self.token.as_bytes())
    }

    /// A client that uses the certificate.
    pub(super) async fn client(&self) -> Result<Client, Error> {
        let connect = async || {
            let options = KubeConfigOptions {
                user: Some(self.name.clone()),
                ..KubeConfigOptions::default()
            };
            let config = access::config(self.kubeconfig.clone(), &options).await?;
            access::passing_on(&config).map_err(Error::request("make a client for the fault proxy"))
        };
        self.client.get_or_try_init(connect).await.cloned()
    }
}
