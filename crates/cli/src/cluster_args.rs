//! The flags that all commands against a cluster share.

use std::path::PathBuf;
use std::time::Duration;

use olmkit_cluster::Cluster;

// Flags for the cluster, the namespace and the timeout. No doc comment: the commands that flatten this would show it as
// their own help.
#[derive(clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace [default: that of the kubeconfig's current context]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// Total time to wait, such as 90s or 5m
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub timeout: Duration,
}

impl ClusterArgs {
    /// Connects.
    pub async fn connect(&self) -> Result<Cluster, olmkit_cluster::Error> {
        Cluster::connect(self.kubeconfig.as_deref(), self.namespace.as_deref()).await
    }
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Human-readable.
    Text,
    /// JSON, for scripts.
    Json,
}

/// Reads a duration as the flags of Go programs do, but none below zero.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanoseconds = olmkit_go::time::parse_duration(text)?;
    u64::try_from(nanoseconds)
        .map(Duration::from_nanos)
        .map_err(|_| "a duration must not be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for (bad, problem) in [
            ("", r#"time: invalid duration """#),
            ("5", r#"time: missing unit in duration "5""#),
            ("5x", r#"time: unknown unit "x" in duration "5x""#),
            ("m", r#"time: invalid duration "m""#),
            ("-1s", "a duration must not be negative"),
        ] {
            assert_eq!(duration(bad), Err(problem.to_owned()));
        }
    }
}
