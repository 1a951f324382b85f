//! Flags and environment variables of the operator.
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use clap::{ArgAction, Parser, ValueEnum};
use olmkit_manager::namespaces::Namespaces;

/// Runs memcached on Kubernetes: manages a Deployment, a Service and a PodDisruptionBudget for each Memcached object.
///
/// Uses the ServiceAccount inside a cluster, and the current context of the kubeconfig outside.
#[derive(Clone, Debug, Parser)]
#[command(name = "memcached-operator", version)]
pub struct Options {
    /// Enable leader election: only one of several replicas is active.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,

    /// Name of the leader election Lease.
    #[arg(long, default_value = "memcached-operator.cache.example.com", value_name = "NAME")]
    pub leader_election_id: String,

    /// Namespace of the leader election Lease; defaults to the operator's namespace.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,

    /// Address to serve /healthz and /readyz on; 0 disables the server.
    #[arg(long, default_value = ":8081", value_name = "ADDRESS", value_parser = bind_address)]
    pub health_probe_bind_address: BindAddress,

    /// Address to serve /metrics on; 0 disables the server.
    #[arg(long, default_value = "0", value_name = "ADDRESS", value_parser = bind_address)]
    pub metrics_bind_address: BindAddress,

    /// Serve /metrics over TLS, to accounts that may get it; otherwise over plain HTTP, to everybody.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    pub metrics_secure: bool,

    /// Directory of the certificate for /metrics; without one the operator signs a certificate itself.
    #[arg(long, value_name = "DIRECTORY")]
    pub metrics_cert_path: Option<PathBuf>,

    /// File of the certificate for /metrics.
    #[arg(long, default_value = "tls.crt", value_name = "FILE")]
    pub metrics_cert_name: String,

    /// File of the private key for /metrics.
    #[arg(long, default_value = "tls.key", value_name = "FILE")]
    pub metrics_cert_key: String,

    /// Comma-separated list of namespaces to watch; empty for all.
    #[arg(
        long,
        env = "WATCH_NAMESPACE",
        default_value = "",
        value_name = "NAMESPACES",
        hide_default_value = true
    )]
    pub watch_namespace: Namespaces,

    /// Maximum number of Memcacheds whose servers are replaced at the same time when the operator or its default image
    /// changes.
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_rolling: u16,

    /// Maximum number of Memcacheds reconciled at the same time; of one namespace at most three quarters of it.
    #[arg(long, default_value_t = 8, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_concurrent_reconciles: u16,

    /// Log level, or directives such as "info,kube=debug".
    #[arg(long, env = "LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub log_level: String,

    /// Log format.
    #[arg(long, default_value = "json", value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// Name of the operator in events.
    #[arg(
        long,
        env = "OPERATOR_NAME",
        default_value = "memcached-operator",
        value_name = "NAME",
        hide = true
    )]
    pub operator_name: String,

    /// Name of the OperatorCondition that OLM created for this version of the operator.
    #[arg(long, env = "OPERATOR_CONDITION_NAME", value_name = "NAME", hide = true)]
    pub operator_condition_name: Option<String>,

    /// Name of the operator's pod, which identifies the replica; defaults to the host name.
    #[arg(long, env = "POD_NAME", value_name = "NAME", hide = true)]
    pub pod_name: Option<String>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Human-readable text.
    Text,
}

/// Address of a server; `None` disables it.
pub type BindAddress = Option<SocketAddr>;

/// Parses an address as Go programs do: `:8081` for all interfaces, `host:port`, `0` for none.
fn bind_address(text: &str) -> Result<BindAddress, String> {
    if text == "0" {
        return Ok(None);
    }
    let wrong = || format!("invalid address {text:?}: expected \":8081\", \"127.0.0.1:8081\", or 0 to disable");
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| wrong())?;
        // All interfaces: the IPv6 wildcard includes IPv4 where the kernel supports IPv6.
        let wildcard = if std::path::Path::new("/proc/net/if_inet6").exists() {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        return Ok(Some(SocketAddr::new(wildcard, port)));
    }
    text.parse().map(Some).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &[&str]) -> Options {
        Options::try_parse_from([&["memcached-operator"], arguments].concat()).unwrap()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn the_help_text() {
        insta::assert_snapshot!(Options::command().term_width(120).render_long_help());
    }

    #[test]
    fn flags_as_go_operators_take_them() {
        assert!(parse(&["--leader-elect"]).leader_elect);
        assert!(parse(&["--leader-elect=true"]).leader_elect);
        assert!(!parse(&["--leader-elect=false"]).leader_elect);
        assert_eq!(parse(&["--metrics-bind-address=0"]).metrics_bind_address, None);
        assert_eq!(
            parse(&["--health-probe-bind-address=:9000"])
                .health_probe_bind_address
                .unwrap()
                .port(),
            9000
        );
        let address = parse(&["--metrics-bind-address=127.0.0.1:0"]).metrics_bind_address;
        assert_eq!(address, Some("127.0.0.1:0".parse().unwrap()));
        assert!(Options::try_parse_from(["memcached-operator", "--metrics-bind-address=host"]).is_err());
        assert!(Options::try_parse_from(["memcached-operator", "--max-concurrent-reconciles=0"]).is_err());
    }
}
