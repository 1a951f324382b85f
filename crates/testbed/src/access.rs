//! Kubeconfig files and clients.

use std::fs;
use std::path::{Path, PathBuf};

use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{ObjectMeta, PostParams};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt as _, util::option_layer};

use crate::Error;
use crate::pki::Pki;

/// The client configuration in `kubeconfig`. Tests reach their server without the proxy of the environment.
pub(crate) async fn config(kubeconfig: Kubeconfig, options: &KubeConfigOptions) -> Result<Config, Error> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, options).await?;
    config.proxy_url = None;
    Ok(config)
}

/// A service that forwards requests to the server of `config`. Unlike a client from [`Client::try_from`] it retries
/// none, and disables Nagle's algorithm.
pub(crate) fn passing_on(config: &Config) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let builder = ClientBuilder::new(client.map_err(BoxError::from), config.default_namespace.clone())
        .with_layer(&option_layer(config.auth_layer()?))
        .with_layer(&config.base_uri_layer());
    Ok(builder.build())
}

/// Address and credentials of the server.
#[derive(Debug)]
pub(crate) struct Access {
    directory: PathBuf,
    authority: PathBuf,
    url: String,
    kubeconfig: PathBuf,
}

impl Access {
    /// Writes the administrator's kubeconfig into `directory`.
    pub(crate) fn administrator(directory: &Path, pki: &Pki, url: String) -> Result<Self, Error> {
        let mut access = Self {
            directory: directory.to_owned(),
            authority: pki.path("ca.crt"),
            url,
            kubeconfig: PathBuf::new(),
        };
        access.kubeconfig = access.certificate_kubeconfig("admin", pki)?;
        Ok(access)
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn config(&self) -> Result<Config, Error> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        config(kubeconfig, &KubeConfigOptions::default()).await
    }

    pub(crate) async fn client(&self) -> Result<Client, Error> {
        Client::try_from(self.config().await?).map_err(Error::request("make a client"))
    }

    /// A kubeconfig with the client certificate `name` of the authority.
    pub(crate) fn certificate_kubeconfig(&self, name: &str, pki: &Pki) -> Result<PathBuf, Error> {
        let user = json!({
            "client-certificate": pki.path(&format!("{name}.crt")),
            "client-key": pki.path(&format!("{name}.key")),
        });
        self.write(name, "default", &user)
    }

    /// A kubeconfig with a token of the ServiceAccount.
    pub(crate) async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let spec = TokenRequestSpec {
            expiration_seconds: Some(3600),
            ..TokenRequestSpec::default()
        };
        // Optional since Kubernetes 1.37, whose types the crate under test may choose.
        #[allow(clippy::useless_conversion)]
        let request = TokenRequest {
            metadata: ObjectMeta::default(),
            spec: spec.into(),
            status: None,
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .map_err(Error::request(format!(
                "get a token for service account {namespace}/{name}"
            )))?;
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        self.write(
            &format!("service-account-{namespace}-{name}"),
            namespace,
            &json!({ "token": token }),
        )
    }

    /// Writes a kubeconfig as JSON, which is YAML.
    fn write(&self, name: &str, namespace: &str, user: &Value) -> Result<PathBuf, Error> {
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kube-testbed", "cluster": {"server": self.url, "certificate-authority": self.authority}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "kube-testbed", "user": name, "namespace": namespace}}],
            "current-context": name,
        });
        let path = self.directory.join(format!("{name}.kubeconfig"));
        fs::write(&path, format!("{kubeconfig:#}\n")).map_err(Error::io("write the kubeconfig", &path))?;
        Ok(path)
    }
}
