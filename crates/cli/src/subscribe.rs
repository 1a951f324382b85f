//! `olmkit subscribe`

use std::process::ExitCode;

use clap::ValueEnum;
use olmkit_cluster::v0::subscribe::{self, Options};
use olmkit_cluster::{InstallMode, Observation};

use super::cluster_args::{ClusterArgs, Output};
use super::console::{Console, print_causes, stopped};
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit subscribe cache-operator -n operators", "olmkit subscribe cache-operator --approval manual --starting-csv cache-operator.v0.1.0"])]
pub struct Args {
    /// The package
    package: String,
    /// Channel [default: the package's default channel]
    #[arg(long)]
    channel: Option<String>,
    /// ClusterServiceVersion to install first
    #[arg(long = "starting-csv", alias = "startingCSV", value_name = "NAME")]
    starting_csv: Option<String>,
    /// CatalogSource [default: the only one that offers the package]
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    catalog: Option<String>,
    /// Approve upgrades automatically or manually
    #[arg(long, value_enum, default_value = "automatic", ignore_case = true)]
    approval: Approval,
    /// Install mode, if the namespace has no OperatorGroup yet
    #[arg(long, value_name = "MODE", value_parser = InstallMode::parse)]
    install_mode: Option<InstallMode>,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print the objects that would be created without creating them
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Approval {
    Automatic,
    Manual,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = Options {
        package: args.package.clone(),
        channel: args.channel.clone(),
        starting_csv: args.starting_csv.clone(),
        catalog: args.catalog.clone(),
        manual: args.approval == Approval::Manual,
        install_mode: args.install_mode.clone(),
        timeout: args.cluster.timeout,
        dry_run: args.dry_run,
    };
    block_on(async {
        let cluster = args.cluster.connect().await?;
        let mut seen = match Observation::full(&cluster, &Default::default()).await {
            Ok(seen) => seen,
            Err(error) => return stopped(error, args.output),
        };
        let plan = subscribe::plan(&options, &seen)?;
        for manifest in &plan.manifests {
            let text = |pointer| {
                manifest
                    .pointer(pointer)
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or_default()
            };
            note!(
                "will create {} {}/{}",
                text("/kind"),
                text("/metadata/namespace"),
                text("/metadata/name")
            );
        }
        if options.dry_run {
            print_causes(&plan.causes);
            crate::terminal::json(&plan.manifests)?;
            return Ok(if olmkit_cluster::has_errors(&plan.causes) {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            });
        }
        let console = Console::new();
        let ended = subscribe::run(&cluster, &options, &plan, &mut seen, &console).await;
        console.finish();
        match ended {
            Ok(outcome) => super::run::print(&outcome, args.output),
            Err(error) => stopped(error, args.output),
        }
    })?
}
