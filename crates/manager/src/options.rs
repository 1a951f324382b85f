//! Flags and environment variables of an operator, under the names that operators in Go have.
//!
//! With the feature `flags` they are arguments of [clap](https://docs.rs/clap): put them into an operator's own with
//! `#[command(flatten)]`.
//!
//! ```
//! # #[cfg(feature = "flags")] {
//! use clap::Parser;
//! use kube_manager::options::Options;
//!
//! #[derive(Parser)]
//! struct Flags {
//!     #[command(flatten)]
//!     manager: Options,
//!     /// How loud to greet.
//!     #[arg(long, default_value_t = 1)]
//!     volume: u8,
//! }
//!
//! let flags = Flags::parse_from(["greeter", "--leader-elect", "--metrics-bind-address=:8443", "--volume=3"]);
//! assert!(flags.manager.leader_elect);
//! assert_eq!(flags.manager.metrics_bind_address.map(|address| address.port()), Some(8443));
//! # }
//! ```
use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
};

use crate::namespaces::Namespaces;

/// The level of the log with `--zap-devel`. At level debug, these libraries print a line for each part of a request.
#[cfg(feature = "flags")]
const DEVELOPMENT: &str = "debug,hyper=info,kube_client=info,rustls=info,tower=info";

/// Address of a server. `None` disables it.
pub type BindAddress = Option<SocketAddr>;

/// The options that users of an operator set.
#[derive(Clone, Debug)]
// Without a group: its name would be that of the type, and an operator's own type may be called so.
#[cfg_attr(feature = "flags", derive(clap::Args), group(skip))]
pub struct Options {
    /// Enable leader election: only one of several replicas is active.
    #[cfg_attr(feature = "flags", arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set))]
    pub leader_elect: bool,

    /// Name of the leader election Lease.
    #[cfg_attr(feature = "flags", arg(long, value_name = "NAME"))]
    pub leader_election_id: Option<String>,

    /// Namespace of the leader election Lease. Defaults to the operator's namespace.
    #[cfg_attr(feature = "flags", arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE"))]
    pub leader_election_namespace: Option<String>,

    /// Address to serve /healthz and /readyz on; 0 disables the server.
    #[cfg_attr(feature = "flags", arg(long, default_value = ":8081", value_name = "ADDRESS", value_parser = bind_address))]
    pub health_probe_bind_address: BindAddress,

    /// Address to serve /metrics on; 0 disables the server.
    #[cfg_attr(feature = "flags", arg(long, default_value = "0", value_name = "ADDRESS", value_parser = bind_address))]
    pub metrics_bind_address: BindAddress,

    /// Serve /metrics over TLS, to accounts that may get it. Otherwise over plain HTTP, to everybody.
    #[cfg_attr(feature = "flags", arg(long, num_args = 0..=1, require_equals = true, default_value_t = true,
        default_missing_value = "true", action = clap::ArgAction::Set))]
    pub metrics_secure: bool,

    /// Directory of the certificate for /metrics; without one the operator signs a certificate itself.
    #[cfg_attr(feature = "flags", arg(long, value_name = "DIRECTORY"))]
    pub metrics_cert_path: Option<PathBuf>,

    /// File of the certificate for /metrics.
    #[cfg_attr(feature = "flags", arg(long, default_value = "tls.crt", value_name = "FILE"))]
    pub metrics_cert_name: String,

    /// File of the private key for /metrics.
    #[cfg_attr(feature = "flags", arg(long, default_value = "tls.key", value_name = "FILE"))]
    pub metrics_cert_key: String,

    /// File of authorities whose client certificates are accepted for /metrics, besides tokens. Read at the start.
    #[cfg_attr(feature = "flags", arg(long, value_name = "FILE"))]
    pub metrics_client_ca_file: Option<PathBuf>,

    /// Comma-separated list of namespaces to watch. Empty for all.
    #[cfg_attr(
        feature = "flags",
        arg(
            long,
            env = "WATCH_NAMESPACE",
            default_value = "",
            value_name = "NAMESPACES",
            hide_default_value = true
        )
    )]
    pub watch_namespace: Namespaces,

    /// Maximum number of objects reconciled at the same time; of one namespace at most three quarters of it.
    #[cfg_attr(feature = "flags", arg(long, default_value_t = 32, value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..)))]
    pub max_concurrent_reconciles: u16,

    /// Seconds that running reconciles get to finish when the operator stops. The pod's `terminationGracePeriodSeconds` must be
    /// larger by at least 2: the operator then releases the lease and sends the last events.
    #[cfg_attr(feature = "flags", arg(long, default_value_t = 6, value_name = "SECONDS"))]
    pub graceful_shutdown_timeout: u64,

    /// Path of the kubeconfig. Only needed outside of a cluster, and then KUBECONFIG will do.
    #[cfg_attr(feature = "flags", arg(long, value_name = "FILE"))]
    pub kubeconfig: Option<PathBuf>,

    /// Change the defaults of the log for development: text at level debug, without lines about connections.
    #[cfg_attr(feature = "flags", arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = clap::ArgAction::Set))]
    pub zap_devel: bool,

    /// Log level, or directives such as "info,kube=debug".
    #[cfg_attr(
        feature = "flags",
        arg(
            long,
            alias = "zap-log-level",
            env = "LOG_LEVEL",
            default_value = "info",
            default_value_if("zap_devel", "true", DEVELOPMENT),
            value_name = "LEVEL"
        )
    )]
    pub log_level: String,

    /// Log format.
    #[cfg_attr(
        feature = "flags",
        arg(
            long,
            alias = "zap-encoder",
            default_value = "json",
            default_value_if("zap_devel", "true", "text"),
            value_name = "FORMAT"
        )
    )]
    pub log_format: LogFormat,

    /// Name of the operator in events.
    #[cfg_attr(
        feature = "flags",
        arg(long, env = "OPERATOR_NAME", value_name = "NAME", hide = true)
    )]
    pub operator_name: Option<String>,

    /// Name of the operator's pod, which identifies the replica. Defaults to the host name.
    #[cfg_attr(feature = "flags", arg(long, env = "POD_NAME", value_name = "NAME", hide = true))]
    pub pod_name: Option<String>,

    /// Name of the OperatorCondition that OLM created for this version of the operator.
    #[cfg(feature = "olm")]
    #[cfg_attr(
        feature = "flags",
        arg(long, env = "OPERATOR_CONDITION_NAME", value_name = "NAME", hide = true)
    )]
    pub operator_condition_name: Option<String>,

    /// Seconds without an event, bookmarks included, after which a watch is opened again. API servers send a bookmark
    /// each minute.
    #[cfg_attr(feature = "flags", arg(long, default_value_t = 95, value_name = "SECONDS", hide = true,
        value_parser = clap::value_parser!(u64).range(1..)))]
    pub watch_timeout: u64,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "flags", derive(clap::ValueEnum))]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Human-readable text.
    #[cfg_attr(feature = "flags", value(alias = "console"))]
    Text,
}

impl Default for Options {
    /// The defaults of all flags, whatever the environment is.
    fn default() -> Self {
        Self {
            leader_elect: false,
            leader_election_id: None,
            leader_election_namespace: None,
            health_probe_bind_address: Some(everywhere(8081)),
            metrics_bind_address: None,
            metrics_secure: true,
            metrics_cert_path: None,
            metrics_cert_name: "tls.crt".to_owned(),
            metrics_cert_key: "tls.key".to_owned(),
            metrics_client_ca_file: None,
            watch_namespace: Namespaces::All,
            max_concurrent_reconciles: 32,
            graceful_shutdown_timeout: 6,
            kubeconfig: None,
            zap_devel: false,
            log_level: "info".to_owned(),
            log_format: LogFormat::Json,
            operator_name: None,
            pod_name: None,
            #[cfg(feature = "olm")]
            operator_condition_name: None,
            watch_timeout: 95,
        }
    }
}

/// All interfaces: the IPv6 wildcard includes IPv4 where the kernel supports IPv6.
pub(crate) fn everywhere(port: u16) -> SocketAddr {
    let wildcard = if std::path::Path::new("/proc/net/if_inet6").exists() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    SocketAddr::new(wildcard, port)
}

/// Parses an address as Go programs do: `:8081` for all interfaces, `host:port`, `0` for none. Of a host name's addresses
/// it is the first of IPv4, or else the first one.
///
/// # Errors
/// When the text has another form, or the host is not known.
pub fn bind_address(text: &str) -> Result<BindAddress, String> {
    if text == "0" {
        return Ok(None);
    }
    let wrong = || {
        format!("invalid address {text:?}: expected \":8081\", \"127.0.0.1:8081\", \"localhost:8081\", or 0 to disable")
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() {
        return Ok(Some(everywhere(port)));
    }
    if let Ok(address) = text.parse() {
        return Ok(Some(address));
    }
    // The resolver is not asked about a malformed address.
    if host.contains(|other: char| !other.is_ascii_alphanumeric() && !matches!(other, '-' | '.' | '_')) {
        return Err(wrong());
    }
    let unknown = |why: &dyn std::fmt::Display| format!("invalid address {text:?}: cannot find the host: {why}");
    let found = (host, port).to_socket_addrs().map_err(|error| unknown(&error))?;
    let found: Vec<SocketAddr> = found.collect();
    let best = found.iter().find(|address| address.is_ipv4()).or(found.first());
    best.copied().map(Some).ok_or_else(|| unknown(&"it has no address"))
}

#[cfg(all(test, feature = "flags"))]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        options: Options,
    }

    fn parse(arguments: &[&str]) -> Result<Options, clap::Error> {
        Flags::try_parse_from([&["operator"], arguments].concat()).map(|flags| flags.options)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn the_default_is_that_of_the_flags() {
        // The environment of the tests may set them.
        let variables = [
            "POD_NAMESPACE",
            "WATCH_NAMESPACE",
            "LOG_LEVEL",
            "OPERATOR_NAME",
            "POD_NAME",
        ];
        if let Some(set) = variables.iter().find(|name| std::env::var_os(name).is_some()) {
            println!("not compared: {set} is set in the environment");
            return;
        }
        let (parsed, default) = (parse(&[]).unwrap(), Options::default());
        assert_eq!(format!("{parsed:?}"), format!("{default:?}"));
    }

    #[test]
    fn flags_as_go_operators_take_them() {
        assert!(parse(&["--leader-elect"]).unwrap().leader_elect);
        assert!(parse(&["--leader-elect=true"]).unwrap().leader_elect);
        assert!(!parse(&["--leader-elect=false"]).unwrap().leader_elect);
        assert_eq!(parse(&["--metrics-bind-address=0"]).unwrap().metrics_bind_address, None);
        let address = parse(&["--health-probe-bind-address=:9000"])
            .unwrap()
            .health_probe_bind_address;
        assert_eq!(address.unwrap().port(), 9000);
        let address = parse(&["--metrics-bind-address=127.0.0.1:0"])
            .unwrap()
            .metrics_bind_address;
        assert_eq!(address, Some("127.0.0.1:0".parse().unwrap()));
        let zap = parse(&["--zap-log-level=debug", "--zap-encoder=console"]).unwrap();
        assert_eq!((zap.log_level.as_str(), zap.log_format), ("debug", LogFormat::Text));
        for wrong in [
            "host",
            "host:",
            "host:http",
            "::1:x",
            "a b:1",
            "fe80::1:8443",
            "http://host:1",
        ] {
            assert!(bind_address(wrong).is_err(), "{wrong}");
        }
        let local = bind_address("localhost:8443").unwrap().unwrap();
        assert!(local.ip().is_loopback() && local.port() == 8443, "{local}");
        assert_eq!(bind_address("[::1]:8443"), Ok(Some("[::1]:8443".parse().unwrap())));
        assert!(parse(&["--max-concurrent-reconciles=0"]).is_err());
    }

    #[test]
    fn development_mode_changes_defaults_only() {
        let log = |arguments: &[&str]| {
            let options = parse(arguments).unwrap();
            (options.log_level, options.log_format)
        };
        // The environment of the tests may set it.
        let level = |default: &str| std::env::var("LOG_LEVEL").unwrap_or_else(|_| default.to_owned());
        assert_eq!(log(&["--zap-devel"]), (level(DEVELOPMENT), LogFormat::Text));
        assert_eq!(log(&["--zap-devel=true"]), (level(DEVELOPMENT), LogFormat::Text));
        assert_eq!(log(&["--zap-devel=false"]), (level("info"), LogFormat::Json));
        let loud = ["--zap-devel", "--zap-log-level=error", "--zap-encoder=json"];
        assert_eq!(log(&loud), ("error".to_owned(), LogFormat::Json));
    }
}
