//! `olmkit cleanup`

use std::process::ExitCode;
use std::time::Duration;

use olmkit_cluster::v0::cleanup::{self, Released, Report};
use olmkit_cluster::v1::{self, RemoveOptions};
use olmkit_cluster::{Cluster, Error};

use super::cluster_args::{Output, duration};
use super::console::{Console, print_causes, stopped};
use super::run::OlmVersion;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit cleanup cache-operator -n operators --dry-run", "olmkit cleanup cache-operator -n operators", "olmkit cleanup cache-operator -n operators --delete-operands", "olmkit cleanup cache-operator --olm v1"])]
pub struct Args {
    /// Package name, as in the bundle's annotations
    package: String,
    /// OLM version that installed the operator
    #[arg(long, value_enum, default_value = "v0")]
    olm: OlmVersion,
    /// Also delete the package's CRDs with all their custom resources, and the OperatorGroup
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    delete_all: bool,
    /// With --delete-all=false: delete the package's CRDs. With names: delete these even if they existed before or have custom
    /// resources in other namespaces. All their custom resources are deleted
    #[arg(long, value_name = "BOOL|NAME,...", default_value = "false", value_delimiter = ',', num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    delete_crds: Vec<String>,
    /// Delete the custom resources in all namespaces that the operator serves, and wait while the operator cleans up.
    /// Without this flag, custom resources outside the operator's namespace are kept
    #[arg(long)]
    delete_operands: bool,
    /// Also release these finalizers from custom resources that outlive their operator. Those in the CRD's API group are
    /// always released, because they would block deletion
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    release_finalizers: Vec<String>,
    /// With --delete-all=false: delete the OperatorGroup that `run bundle` created, unless another operator uses it
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    delete_operator_groups: bool,
    /// Print the objects that would be deleted without deleting them
    #[arg(long)]
    dry_run: bool,
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// Namespace of the operator [default: that of the kubeconfig's current context]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Total time to wait, such as 90s or 5m
    #[arg(long, default_value = "2m", value_parser = duration)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.olm == OlmVersion::V1 {
        return run_v1(args);
    }
    let (delete_crds, named_crds) = match args.delete_crds.as_slice() {
        [word] if word == "false" => (false, Vec::new()),
        [word] if word == "true" => (true, Vec::new()),
        names => (true, names.to_vec()),
    };
    let options = cleanup::Options {
        package: args.package.clone(),
        crds: args.delete_all || delete_crds,
        operator_groups: args.delete_all || args.delete_operator_groups,
        dry_run: args.dry_run,
        timeout: args.timeout,
        keep_crds: Vec::new(),
        named_crds,
        operands: args.delete_operands,
        release_finalizers: args.release_finalizers.clone(),
    };
    let cluster = Cluster::connect(args.kubeconfig.as_deref(), args.namespace.as_deref());
    remove(cluster, args.dry_run, args.output, async |cluster, console| {
        cleanup::cleanup(cluster, &options, console).await
    })
}

/// OLM v1 deletes CRDs with the operator, so there is nothing to choose.
fn run_v1(args: &Args) -> anyhow::Result<ExitCode> {
    let is_default = args.delete_all && !args.delete_operator_groups && args.delete_crds == ["false"];
    anyhow::ensure!(
        is_default,
        "--delete-all, --delete-crds, --delete-operator-groups: not supported with --olm v1, which deletes CRDs with the operator and has no OperatorGroups; omit these flags"
    );
    let options = RemoveOptions {
        name: args.package.clone(),
        with_catalog: true,
        only_ours: true,
        dry_run: args.dry_run,
        timeout: args.timeout,
        release_finalizers: args.release_finalizers.clone(),
    };
    let cluster = Cluster::connect(args.kubeconfig.as_deref(), args.namespace.as_deref());
    remove(cluster, args.dry_run, args.output, async |cluster, console| {
        v1::remove(cluster, &options, console).await
    })
}

/// Performs a removal with its progress on the console, and prints the result.
pub fn remove(
    cluster: impl Future<Output = Result<Cluster, Error>>,
    dry_run: bool,
    output: Output,
    removal: impl AsyncFnOnce(&Cluster, &Console) -> Result<Report, Error>,
) -> anyhow::Result<ExitCode> {
    let ended = block_on(async {
        let cluster = cluster.await?;
        let console = Console::new();
        let report = removal(&cluster, &console).await;
        console.finish();
        report
    })?;
    let report = match ended {
        Ok(report) => report,
        Err(error) => return stopped(error, output),
    };
    match output {
        Output::Json => crate::terminal::json(&report)?,
        Output::Text => print(&report, dry_run),
    }
    Ok(if report.causes.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints the custom resources that outlive their operator, with the finalizers that it would have removed.
pub fn print_released(released: &[Released], dry_run: bool) {
    let verb = if dry_run { "would release" } else { "released" };
    for released in released {
        println!(
            "kept {}: {verb} {}, which only the operator removes",
            released.object,
            released.finalizers.join(", ")
        );
    }
}

fn print(report: &Report, dry_run: bool) {
    if dry_run {
        for object in &report.removed {
            println!("would remove {object}");
        }
    }
    for kept in &report.kept {
        println!("kept {}: {}", kept.object, kept.why);
    }
    print_released(&report.released, dry_run);
    print_causes(&report.causes);
    match (report.found, report.causes.is_empty()) {
        (false, _) => println!("package {} is not installed; nothing to remove", report.package),
        (true, false) => println!(
            "package {} is not entirely removed; fix the cause and run the same command again",
            report.package
        ),
        (true, true) if dry_run => println!("{} objects would be removed", report.removed.len()),
        (true, true) => println!(
            "package {} is removed: {} objects",
            report.package,
            report.removed.len()
        ),
    }
}
