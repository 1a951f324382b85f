//! Proxies of the environment, and the servers that are reached without them.

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;

/// Lets `NO_PROXY` decide, and asks no proxy for this machine itself, as Go programs do.
///
/// With a kubeconfig, kube 5 takes the proxy of `HTTPS_PROXY` whatever the server is: it compares `NO_PROXY` with the host of
/// the proxy, not with that of the server. A proxy that the kubeconfig names stays.
pub fn mind_exceptions(config: &mut Config) {
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
}
