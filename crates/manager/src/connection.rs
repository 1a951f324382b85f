//! Connections to the API server: through which proxy, and without the delays of small packets.

use http_body_util::BodyExt as _;
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header::{HeaderValue, USER_AGENT},
};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::{
        legacy::{self, connect::HttpConnector},
        proxy::matcher::Matcher,
    },
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _, DynBody},
};
use tower::{
    BoxError, ServiceExt,
    layer::layer_fn,
    util::{BoxService, option_layer},
};

use crate::{
    metrics::RequestMetrics,
    tenure::{Guarded, Tenure},
    transport::{Limits, TimeLimited},
};

/// The largest buffer of a connection. The first list would make that of each watch grow to half a megabyte, hyper's limit, and
/// nothing makes it shrink. The head of an answer must fit into it.
const CONNECTION_BUFFER: usize = 16 << 10;

/// Connections that are kept for the next request. Each takes 40 KiB, and a start with many objects opens dozens.
const IDLE_CONNECTIONS: usize = 8;

/// A client for the cluster of `config`, with two habits of Go programs. Small packets do not wait until the one before is acknowledged
/// (`TCP_NODELAY`, which kube does not set). And `NO_PROXY` exempts servers from the proxy of the environment, as does being this
/// machine. Through a proxy, or with kube's [retries](Config::default_retry), the client is kube's own.
///
/// The time limits come from `config`, by default for connecting and writing. See also
/// [`transport::limited`](crate::transport::limited).
///
/// # Errors
/// Certificates, keys or credentials that cannot be used.
pub fn client(config: Config) -> Result<Client, kube::Error> {
    Ok(builder(config, &Tenure::default())?.build())
}

/// Names the program in each request, as client-go does, so that the API server's audit log shows it: `program (linux/x86_64)`. kube
/// sends no user agent. One that `config` has stays.
pub fn set_user_agent(config: &mut Config, program: &str) {
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    let has_agent = config.headers.iter().any(|(name, _)| name == USER_AGENT);
    if let Ok(agent) = HeaderValue::from_str(&format!("{program} ({system}/{processor})"))
        && !has_agent
    {
        config.headers.push((USER_AGENT, agent));
    }
}

/// A client that sends nothing after `tenure`, waits no longer than `limits` say, and counts requests in `metrics`. These are layers of
/// one client, as each kube client has a task through which all its requests pass.
pub(crate) fn client_within(
    config: Config,
    tenure: &Tenure,
    limits: Limits,
    metrics: RequestMetrics,
) -> Result<Client, kube::Error> {
    let limited = layer_fn(|inner| TimeLimited {
        inner,
        limits,
        metrics: Some(metrics.clone()),
    });
    let builder = builder(config, tenure)?;
    Ok(builder.with_layer(&limited).with_layer(&tenure.filter()).build())
}

/// Its connections send nothing after `tenure`, unless they are kube's own.
pub(crate) fn builder(mut config: Config, tenure: &Tenure) -> Result<ClientBuilder<Requests>, kube::Error> {
    mind_exceptions(&mut config);
    if config.proxy_url.is_some() || config.default_retry {
        return ClientBuilder::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    // Around TLS: a server that is silent in the handshake is none to connect to.
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let connector = Guarded::new(connector, tenure.clone());
    let client: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .http1_max_buf_size(CONNECTION_BUFFER)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector);
    let boxed = layer_fn(|inner| ServiceExt::map_response(inner, erased).boxed());
    let builder = ClientBuilder::new(client.map_err(BoxError::from), config.default_namespace.clone())
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&option_layer(config.auth_layer()?))
        .with_layer(&config.base_uri_layer())
        .with_layer(&boxed);
    Ok(builder)
}

/// The service of kube's own builder.
type Requests = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

fn erased(answer: Response<Incoming>) -> Response<Box<DynBody>> {
    answer.map(|body| Box::new(body.map_err(BoxError::from)) as Box<DynBody>)
}

/// Lets `NO_PROXY` decide, and asks no proxy for this machine itself.
///
/// With a kubeconfig, kube 5 takes the proxy of `HTTPS_PROXY` whatever the server is: it compares `NO_PROXY` with the host of
/// the proxy, not with that of the server. A proxy that the kubeconfig names stays.
fn mind_exceptions(config: &mut Config) {
    let of_environment = ["HTTPS_PROXY", "https_proxy"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|value| !value.is_empty());
    let proxy: Option<Uri> = of_environment.and_then(|value| value.parse().ok());
    if proxy.is_some() && proxy == config.proxy_url && is_exception(&Matcher::from_env(), &config.cluster_url) {
        config.proxy_url = None;
    }
}

fn is_exception(environment: &Matcher, server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    let is_this_machine = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    is_this_machine || environment.intercept(server).is_none()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn servers_that_are_named_and_this_machine_are_exceptions() {
        let environment = Matcher::builder()
            .https("http://proxy.example.com:3128")
            .no("cluster.example.com,10.0.0.0/8,.internal")
            .build();
        let exceptions = [
            "https://cluster.example.com:6443/",
            "https://10.1.2.3:6443/",
            "https://api.internal:6443/",
            "https://127.0.0.1:40000/",
            "https://[::1]:6443/",
            "https://localhost:6443/",
        ];
        for server in exceptions {
            assert!(is_exception(&environment, &server.parse().unwrap()), "{server}");
        }
        for server in ["https://api.example.com:6443/", "https://11.1.2.3:6443/"] {
            assert!(!is_exception(&environment, &server.parse().unwrap()), "{server}");
        }
    }

    #[tokio::test]
    async fn a_request_carries_path_credentials_and_headers_of_the_configuration() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, mut requests) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = hyper::service::service_fn(async |request: hyper::Request<hyper::body::Incoming>| {
                sender.send(request.into_parts().0).await.unwrap();
                Ok::<_, std::convert::Infallible>(hyper::Response::new(r#"{"major":"1","minor":"33"}"#.to_owned()))
            });
            let stream = hyper_util::rt::TokioIo::new(stream);
            hyper::server::conn::http1::Builder::new()
                .serve_connection(stream, answer)
                .await
        });
        let mut config = Config::new(format!("http://{address}/cluster").parse().unwrap());
        config.default_retry = false;
        config.auth_info.token = Some("secret".to_owned().into());
        config.auth_info.impersonate = Some("somebody".to_owned());
        set_user_agent(&mut config, "shop-operator/1.2.3");
        set_user_agent(&mut config, "another");
        let request = hyper::Request::get("/version").body(Vec::new()).unwrap();
        let text = client(config).unwrap().request_text(request).await.unwrap();
        assert!(text.contains("33"), "{text}");
        let seen = requests.recv().await.unwrap();
        assert_eq!(seen.uri.path(), "/cluster/version");
        assert_eq!(seen.headers["authorization"], "Bearer secret");
        assert_eq!(seen.headers["impersonate-user"], "somebody");
        let agent = seen.headers["user-agent"].to_str().unwrap();
        assert!(agent.starts_with("shop-operator/1.2.3 ("), "{agent}");
        assert_eq!(seen.headers.get_all("user-agent").iter().count(), 1);
    }

    #[tokio::test]
    async fn a_server_that_is_silent_in_the_handshake_is_not_waited_for() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.default_retry = false;
        config.connect_timeout = Some(Duration::from_millis(50));
        let client = client(config).unwrap();
        let request = hyper::Request::get("/version").body(Vec::new()).unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(20), client.request_text(request)).await;
        assert!(answer.expect("it gives up").is_err());
    }
}
