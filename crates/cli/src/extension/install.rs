//! `olmkit extension install`

use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::object::shell_word;
use olmkit::olmv1::VersionRange;
use olmkit_cluster::Conclusion;
use olmkit_cluster::InstallMode;
use olmkit_cluster::v1::{self, CatalogChoice, InstallOptions, InstallReport};

use super::PolicyName;
use crate::cluster_args::{ClusterArgs, Output};
use crate::console::{Console, print_causes, stopped};
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit extension install cache-operator -n cache --catalog operatorhubio",
    "olmkit extension install cache-operator -n cache --version '>=1.2, <2' --channels stable",
    "olmkit extension install cache-operator -n cache --dry-run"
])]
pub struct Args {
    /// The package
    package: String,
    /// Name of the ClusterExtension [default: the package]
    #[arg(long)]
    name: Option<String>,
    /// ClusterCatalog to install from [default: the only one, or the one that the ClusterExtension has]
    #[arg(long, value_name = "NAME", conflicts_with = "any_catalog")]
    catalog: Option<String>,
    /// Install from any catalog that contains the package
    #[arg(long)]
    any_catalog: bool,
    /// Version or range, such as 1.2.3, '>=1.2, <2' or ~1.4 [default: the highest]
    #[arg(long, value_name = "RANGE")]
    version: Option<String>,
    /// Channels to choose from [default: all]
    #[arg(long, value_delimiter = ',', value_name = "CHANNEL")]
    channels: Vec<String>,
    /// Upgrade constraint policy [default: CatalogProvided]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    /// AllNamespaces, OwnNamespace or SingleNamespace=NAMESPACE. The last two need the experimental manifests of OLM v1
    #[arg(long, value_name = "MODE", value_parser = InstallMode::parse)]
    install_mode: Option<InstallMode>,
    /// CRD upgrade safety check of OLM v1
    #[arg(long, value_enum, default_value = "strict")]
    crd_upgrade_safety: Safety,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Only print the ClusterExtension
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Safety {
    /// Block CRD upgrades that may break custom resources.
    Strict,
    /// They pass.
    None,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(text) = &args.version {
        let range = VersionRange::parse(text)?;
        anyhow::ensure!(
            range.is_admitted(),
            "--version {text:?}: the API server rejects this range in a ClusterExtension; write one of at most 64 characters with \
             operators, such as '>=1.2, <2'"
        );
    }
    let options = InstallOptions {
        name: args.name.clone().unwrap_or_else(|| args.package.clone()),
        package: args.package.clone(),
        catalog: match &args.catalog {
            Some(name) => CatalogChoice::Named(name.clone()),
            None if args.any_catalog => CatalogChoice::Any,
            None => CatalogChoice::Only,
        },
        version: args.version.clone(),
        channels: args.channels.clone(),
        policy: args.policy.map(Into::into),
        install_mode: args.install_mode.clone(),
        any_crd: args.crd_upgrade_safety == Safety::None,
        dry_run: args.dry_run,
        timeout: args.cluster.timeout,
    };
    let ended = block_on(async {
        let cluster = args.cluster.connect().await?;
        let console = Console::new();
        let ended = v1::install(&cluster, &options, &console).await;
        console.finish();
        ended
    })?;
    match ended {
        Ok(report) => print(&report, args.output),
        Err(error) => stopped(error, args.output),
    }
}

fn print(report: &InstallReport, output: Output) -> anyhow::Result<ExitCode> {
    if output == Output::Json {
        crate::terminal::json(report)?;
    } else {
        print_causes(&report.causes);
        if report.result == Conclusion::Checked {
            return crate::bundle::render::print(std::slice::from_ref(&report.manifest));
        }
        println!("{}", sentence(report));
    }
    let is_fine = !matches!(report.result, Conclusion::Rejected | Conclusion::Failed);
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sentence(report: &InstallReport) -> String {
    let InstallReport {
        package,
        namespace,
        name,
        ..
    } = report;
    match report.result {
        Conclusion::Rejected => format!("package {package} was not installed: nothing was changed"),
        Conclusion::Failed => format!(
            "package {package} is not installed as requested; fix the cause and run the same command again, or remove it: olmkit extension uninstall {}",
            shell_word(name)
        ),
        _ => {
            let bundle = report.bundle.as_deref().unwrap_or(package);
            let seconds = report.steps.last().map_or(0.0, |step| step.seconds);
            format!("{bundle} is installed in namespace {namespace} ({seconds:.1} s)")
        }
    }
}
