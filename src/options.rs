//! Flags and variables of the operator.
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::{ArgAction, Parser, ValueEnum};
use olmkit_manager::namespaces::Namespaces;

/// Runs memcached on Kubernetes: keeps a Deployment, a Service and a PodDisruptionBudget for each Memcached object.
///
/// Inside a cluster it uses its ServiceAccount, outside the current context of the kubeconfig.
#[derive(Clone, Debug, Parser)]
#[command(name = "memcached-operator", version)]
pub struct Options {
    /// Let one of several replicas work and the others stand by.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,

    /// Name of the Lease that the leader holds.
    #[arg(long, default_value = "memcached-operator.cache.example.com", value_name = "NAME")]
    pub leader_election_id: String,

    /// Namespace of the Lease: by default the operator's own.
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,

    /// Address of the probes /healthz and /readyz; 0 for none.
    #[arg(long, default_value = ":8081", value_name = "ADDRESS", value_parser = bind_address)]
    pub health_probe_bind_address: BindAddress,

    /// Address of /metrics, in plain HTTP; 0 for none.
    #[arg(long, default_value = "0", value_name = "ADDRESS", value_parser = bind_address)]
    pub metrics_bind_address: BindAddress,

    /// Namespaces to watch, separated by commas; empty for all.
    #[arg(
        long,
        env = "WATCH_NAMESPACE",
        default_value = "",
        value_name = "NAMESPACES",
        hide_default_value = true
    )]
    pub watch_namespace: Namespaces,

    /// Memcacheds that are worked on at the same time.
    #[arg(long, default_value_t = 2, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_concurrent_reconciles: u16,

    /// What to log: a level, or directives as "info,kube=debug".
    #[arg(long, env = "LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    pub log_level: String,

    /// How to log.
    #[arg(long, default_value = "json", value_name = "FORMAT")]
    pub log_format: LogFormat,

    /// Name that the operator signs events with.
    #[arg(
        long,
        env = "OPERATOR_NAME",
        default_value = "memcached-operator",
        value_name = "NAME",
        hide = true
    )]
    pub operator_name: String,

    /// Name of the OperatorCondition that OLM made for this version of the operator.
    #[arg(long, env = "OPERATOR_CONDITION_NAME", value_name = "NAME", hide = true)]
    pub operator_condition_name: Option<String>,

    /// Name of the operator's pod, by which replicas are told apart: by default the host's name.
    #[arg(long, env = "POD_NAME", value_name = "NAME", hide = true)]
    pub pod_name: Option<String>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object for each line.
    Json,
    /// Text for people.
    Text,
}

/// Where a server listens; `None` for nowhere.
pub type BindAddress = Option<SocketAddr>;

/// Reads an address as Go programs take them: `:8081` for all interfaces, `host:port`, `0` for none.
fn bind_address(text: &str) -> Result<BindAddress, String> {
    if text == "0" {
        return Ok(None);
    }
    let wrong = || format!("{text:?} is no address: give \":8081\", \"127.0.0.1:8081\", or 0 for none");
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| wrong())?;
        // All interfaces: IPv6's wildcard takes IPv4 in too where the kernel has IPv6 at all.
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
