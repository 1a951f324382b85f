//! `olmkit extension uninstall`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use olmkit_cluster::Cluster;
use olmkit_cluster::v1::{self, RemoveOptions};

use crate::cleanup;
use crate::cluster_args::{Output, duration};

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit extension uninstall cache-operator --dry-run", "olmkit extension uninstall cache-operator"])]
pub struct Args {
    /// ClusterExtension
    name: String,
    /// Print the objects that would be deleted without deleting them
    #[arg(long)]
    dry_run: bool,
    /// If the ClusterExtension was deleted before its custom resources, also release these finalizers. Those in the CRD's
    /// API group are always released then
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    release_finalizers: Vec<String>,
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Total time to wait, such as 90s or 5m
    #[arg(long, default_value = "2m", value_parser = duration)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = RemoveOptions {
        name: args.name.clone(),
        with_catalog: false,
        only_ours: false,
        dry_run: args.dry_run,
        timeout: args.timeout,
        release_finalizers: args.release_finalizers.clone(),
    };
    let cluster = Cluster::connect(args.kubeconfig.as_deref(), None);
    cleanup::remove(cluster, args.dry_run, args.output, async |cluster, console| {
        v1::remove(cluster, &options, console).await
    })
}
