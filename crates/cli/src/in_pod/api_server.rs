//! Reads and replaces one ConfigMap, the only requests of `opm alpha bundle extract`.
//!
//! The requests use the HTTP client for registries. kube's own would add a second one to every pod, with a YAML reader
//! and a JSONPath engine for kubeconfig files.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Config;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Identity, Method};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Error;
use olmkit::limits;
use olmkit::process::{Environment, Launcher, Run};
use olmkit::yaml;
use olmkit_oci::registry::is_loopback;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Attempts while a server is starting or overloaded.
const ATTEMPTS: u32 = 5;
/// No ConfigMap is larger, because etcd stores at most 1.5 MiB for one object.
const ANSWER_LIMIT: usize = 16 << 20;

/// A connection to an API server with its credentials.
pub(super) struct ApiServer {
    http: reqwest::Client,
    base: String,
    headers: HeaderMap,
}

/// Why the server did not fulfill a request.
pub(super) struct RequestError {
    /// The status of its answer. 0 if there was none.
    pub status: u16,
    pub reason: String,
}

impl From<reqwest::Error> for RequestError {
    fn from(error: reqwest::Error) -> Self {
        Self {
            status: 0,
            reason: describe(&error),
        }
    }
}

impl ApiServer {
    pub(super) async fn new(config: &Config) -> Result<Self, Error> {
        // Several TLS providers may be linked in. Ring is ours. An error means that one was chosen before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unusable = |error: reqwest::Error| Error::NoCluster(describe(&error));
        let (identity, headers) = credentials(&config.auth_info)?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("olmkit/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .tls_danger_accept_invalid_certs(config.accept_invalid_certs);
        if let Some(authorities) = &config.root_cert {
            let authorities: Result<Vec<_>, _> = authorities.iter().map(|der| Certificate::from_der(der)).collect();
            builder = builder.tls_certs_only(authorities.map_err(unusable)?);
        }
        if let Some(identity) = identity {
            builder = builder.identity(identity);
        }
        if let Some(proxy) = &config.proxy_url {
            builder = builder.proxy(reqwest::Proxy::all(proxy.to_string()).map_err(unusable)?);
        }
        let url = &config.cluster_url;
        if url.host().is_some_and(is_loopback) {
            builder = builder.no_proxy();
        }
        let mut base = url.to_string().trim_end_matches('/').to_owned();
        if let (Some(name), Some(host)) = (&config.tls_server_name, url.host()) {
            // The URL contains the certificate's name for verification. The connection goes to the real host.
            let port = url.port_u16().unwrap_or(443);
            let host = host.trim_matches(['[', ']']);
            let addresses = tokio::net::lookup_host((host, port))
                .await
                .map_err(|error| Error::NoCluster(format!("{host}: {error}")))?;
            builder = builder.resolve_to_addrs(name, &addresses.collect::<Vec<_>>());
            let path = url.path().trim_end_matches('/');
            base = format!("{}://{name}:{port}{path}", url.scheme_str().unwrap_or("https"));
        }
        Ok(Self {
            http: builder.build().map_err(unusable)?,
            base,
            headers,
        })
    }

    pub(super) async fn get(&self, namespace: &str, name: &str) -> Result<ConfigMap, RequestError> {
        self.call(Method::GET, namespace, name, None).await
    }

    pub(super) async fn replace(
        &self,
        namespace: &str,
        name: &str,
        with: &ConfigMap,
    ) -> Result<ConfigMap, RequestError> {
        let body = serde_json::to_vec(with).map_err(|error| RequestError {
            status: 0,
            reason: error.to_string(),
        })?;
        self.call(Method::PUT, namespace, name, Some(body)).await
    }

    async fn call(
        &self,
        method: Method,
        namespace: &str,
        name: &str,
        body: Option<Vec<u8>>,
    ) -> Result<ConfigMap, RequestError> {
        let url = format!("{}/api/v1/namespaces/{namespace}/configmaps/{name}", self.base);
        let mut attempt = 1;
        loop {
            let mut request = self.http.request(method.clone(), &url).headers(self.headers.clone());
            if let Some(body) = &body {
                request = request.header("content-type", "application/json").body(body.clone());
            }
            let response = request.send().await?;
            let status = response.status().as_u16();
            if attempt < ATTEMPTS && matches!(status, 429 | 503 | 504) {
                tokio::time::sleep(Duration::from_millis(250 << attempt)).await;
                attempt += 1;
                continue;
            }
            let answer = limited(response).await?;
            if status / 100 == 2 {
                return serde_json::from_slice(&answer).map_err(|error| RequestError {
                    status,
                    reason: format!("the response is not a ConfigMap: {error}"),
                });
            }
            return Err(RequestError {
                status,
                reason: message(status, &answer),
            });
        }
    }
}

async fn limited(mut response: reqwest::Response) -> Result<Vec<u8>, RequestError> {
    let mut answer = Vec::new();
    while let Some(piece) = response.chunk().await? {
        answer.extend_from_slice(&piece);
        if answer.len() > ANSWER_LIMIT {
            return Err(RequestError {
                status: response.status().as_u16(),
                reason: format!("the answer is longer than {ANSWER_LIMIT} bytes"),
            });
        }
    }
    Ok(answer)
}

/// The message in the server's Status object.
fn message(status: u16, answer: &[u8]) -> String {
    let said: Value = serde_json::from_slice(answer).unwrap_or_default();
    match said.get("message").and_then(Value::as_str) {
        Some(message) if !message.is_empty() => message.to_owned(),
        _ => format!("the server answered {status}"),
    }
}

/// The innermost cause is the specific one.
fn describe(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// Client certificate and headers of a kubeconfig user.
fn credentials(account: &AuthInfo) -> Result<(Option<Identity>, HeaderMap), Error> {
    if let Some(provider) = &account.auth_provider {
        return Err(Error::NoCluster(format!(
            "the kubeconfig's user needs the credential provider {:?}; give a user with a certificate, a token or an exec plugin",
            provider.name
        )));
    }
    let mut headers = impersonation(account)?;
    let plugin = account.exec.as_ref().map(ask_plugin).transpose()?.unwrap_or_default();
    let token = match (&account.token, &account.token_file) {
        (Some(token), _) => Some(token.expose_secret().to_owned()),
        (None, Some(path)) => Some(String::from_utf8_lossy(&read(path)?).trim().to_owned()),
        (None, None) => plugin.token,
    };
    if let Some(token) = token {
        insert(&mut headers, AUTHORIZATION, &format!("Bearer {token}"))?;
    } else if let (Some(user), Some(password)) = (&account.username, &account.password) {
        let both = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
        insert(&mut headers, AUTHORIZATION, &format!("Basic {both}"))?;
    }
    let key = account.client_key_data.as_ref().map(|data| data.expose_secret());
    let key = pem(key, account.client_key.as_deref())?.or(plugin.client_key_data.map(String::into_bytes));
    let certificate = pem(
        account.client_certificate_data.as_deref(),
        account.client_certificate.as_deref(),
    )?;
    let certificate = certificate.or(plugin.client_certificate_data.map(String::into_bytes));
    let identity = match (key, certificate) {
        (Some(mut both), Some(certificate)) => {
            both.push(b'\n');
            both.extend(certificate);
            let wrong = |error| Error::NoCluster(format!("client certificate: {}", describe(&error)));
            Some(Identity::from_pem(&both).map_err(wrong)?)
        }
        _ => None,
    };
    Ok((identity, headers))
}

/// PEM data: base64 in the kubeconfig itself, or in a file.
fn pem(data: Option<&str>, file: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    match (data, file) {
        (Some(data), _) => STANDARD
            .decode(data.trim())
            .map(Some)
            .map_err(|error| Error::NoCluster(format!("client certificate or key: {error}"))),
        (None, Some(path)) => read(path).map(Some),
        (None, None) => Ok(None),
    }
}

fn read(path: &str) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(Error::file("read", Path::new(path)))
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), Error> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| Error::NoCluster(format!("the kubeconfig's value for {name} cannot be sent")))?;
    value.set_sensitive(true);
    headers.append(name, value);
    Ok(())
}

/// The `as` fields of a kubeconfig's user.
fn impersonation(account: &AuthInfo) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    if let Some(user) = &account.impersonate {
        insert(&mut headers, HeaderName::from_static("impersonate-user"), user)?;
    }
    if let Some(uid) = &account.impersonate_uid {
        insert(&mut headers, HeaderName::from_static("impersonate-uid"), uid)?;
    }
    for group in account.impersonate_groups.iter().flatten() {
        insert(&mut headers, HeaderName::from_static("impersonate-group"), group)?;
    }
    Ok(headers)
}

/// An `ExecCredential` as a plugin fills it.
#[derive(Deserialize)]
struct Answer {
    status: Credential,
}

/// Output of a credential plugin.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Credential {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the program that a kubeconfig names for credentials, as kubectl does.
fn ask_plugin(exec: &ExecConfig) -> Result<Credential, Error> {
    let program = exec.command.as_deref().unwrap_or_default();
    let failed = |reason: String| Error::NoCluster(format!("credential plugin {program:?}: {reason}"));
    let interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never);
    let mut spec = json!({ "interactive": interactive });
    if exec.provide_cluster_info
        && let Some(spec) = spec.as_object_mut()
    {
        spec.insert("cluster".to_owned(), json!(exec.cluster));
    }
    let request = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
    let own = exec.env.iter().flatten();
    let own = own.filter_map(|variable| Some((variable.get("name")?.into(), variable.get("value")?.into())));
    let request = std::iter::once(("KUBERNETES_EXEC_INFO".into(), request.to_string().into()));
    let run = Run {
        variables: own.chain(request).collect(),
        asks: interactive,
        shows_errors: true,
        output: &limits::CREDENTIAL_ANSWER,
        // Plugins find their own credentials in the environment.
        ..Run::new(OsStr::new(program), Environment::Except(&["GIT_*"])).arguments(exec.args.iter().flatten())
    };
    let output = Launcher::default().run(run).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => failed(error.to_string()),
        ErrorKind::FileTooLarge => failed(format!("its answer is {error}")),
        _ => failed(format!("{error}. {}", exec.install_hint.as_deref().unwrap_or_default())),
    })?;
    if !output.status.success() {
        return Err(failed(format!("{}", output.status)));
    }
    // Plugins print JSON. Some print YAML, which kubectl reads too.
    let answer = yaml::parse(&output.output).and_then(|node| node.to_json());
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    let answer: Answer = serde_json::from_value(answer).map_err(|error| failed(error.to_string()))?;
    Ok(answer.status)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request after the other, and returns the heads of the requests.
    async fn answering(answers: Vec<&'static str>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = tokio::spawn(async move {
            let mut heads = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut text = Vec::new();
                while !text.windows(4).any(|end| end == b"\r\n\r\n") {
                    let mut piece = [0; 4096];
                    let read = stream.read(&mut piece).await.unwrap();
                    text.extend_from_slice(&piece[..read]);
                }
                heads.push(String::from_utf8_lossy(&text).to_lowercase());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            heads
        });
        (address, asked)
    }

    fn config(address: &str, account: Value) -> Config {
        let mut config = Config::new(format!("http://{address}/clusters/one/").parse().unwrap());
        config.auth_info = serde_json::from_value(account).unwrap();
        config
    }

    #[tokio::test]
    async fn a_busy_server_is_retried_and_a_refusal_is_reported() {
        let (address, asked) = answering(vec![
            "HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 403 No\r\nconnection: close\r\ncontent-length: 27\r\n\r\n{\"message\":\"not for you\"}  ",
        ])
        .await;
        let account = json!({"token": "secret", "as": "jane", "as-groups": ["a", "b"]});
        let server = ApiServer::new(&config(&address, account)).await.unwrap();
        let refusal = server.get("olm", "bundle").await.err().unwrap();
        assert_eq!((refusal.status, refusal.reason.as_str()), (403, "not for you"));
        let heads = asked.await.unwrap();
        assert_eq!(heads.len(), 2);
        for line in [
            "get /clusters/one/api/v1/namespaces/olm/configmaps/bundle http/1.1",
            "authorization: bearer secret",
            "impersonate-user: jane",
            "impersonate-group: a",
            "impersonate-group: b",
        ] {
            assert!(heads[1].lines().any(|head| head == line), "{line}: {}", heads[1]);
        }
    }

    #[test]
    fn a_plugin_that_fails_is_named() {
        let account = |exec: Value| serde_json::from_value(json!({ "exec": exec })).unwrap();
        let absent = account(json!({"command": "/no/such/plugin", "installHint": "Install it from example.com"}));
        let error = credentials(&absent).unwrap_err().to_string();
        assert!(
            error.contains("/no/such/plugin") && error.contains("Install it"),
            "{error}"
        );
        let error = credentials(&account(json!({"command": "false"}))).unwrap_err();
        assert!(error.to_string().contains("exit status: 1"), "{error}");
    }

    #[test]
    fn an_answer_of_a_plugin_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer");
        let largest = usize::try_from(limits::CREDENTIAL_ANSWER.get()).unwrap();
        let (before, after) = (r#"{"status":{"token":""#, r#""}}"#);
        for (more, is_refused) in [(0, false), (1, true)] {
            let token = "x".repeat(largest + more - before.len() - after.len());
            std::fs::write(&path, format!("{before}{token}{after}")).unwrap();
            let exec = json!({"exec": {"command": "cat", "args": [path], "interactiveMode": "Never"}});
            let found = credentials(&serde_json::from_value(exec).unwrap());
            match found {
                Ok(_) => assert!(!is_refused),
                Err(error) => assert!(
                    is_refused && error.to_string().contains("its answer is"),
                    "{more}: {error}"
                ),
            }
        }
    }
}
