//! The flags that all commands against a cluster share.

use std::path::PathBuf;
use std::time::Duration;

use olmkit::cluster::Cluster;

/// Which cluster and namespace, and how long.
#[derive(clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace [default: that of the kubeconfig's current context]
    #[arg(short, long)]
    pub namespace: Option<String>,
    /// How long to wait altogether, for example 90s or 5m
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub timeout: Duration,
}

impl ClusterArgs {
    /// Connects.
    pub async fn connect(&self) -> Result<Cluster, olmkit::cluster::Error> {
        Cluster::connect(self.kubeconfig.as_deref(), self.namespace.as_deref()).await
    }
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Reads a duration as Go's flags do: numbers with units h, m, s, ms, one after the other.
pub fn duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("{text:?} is no duration; write for example 90s, 5m or 1m30s");
    let mut rest = text;
    let mut total = 0.0;
    if rest.is_empty() {
        return Err(fault());
    }
    while !rest.is_empty() {
        let end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .ok_or_else(fault)?;
        let (number, tail) = rest.split_at(end);
        let number: f64 = number.parse().map_err(|_| fault())?;
        let unit_end = tail
            .find(|character: char| character.is_ascii_digit() || character == '.')
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_end);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return Err(fault()),
        };
        total += number * seconds;
        rest = after;
    }
    Duration::try_from_secs_f64(total).map_err(|_| fault())
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
        for bad in ["", "5", "5x", "m"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
