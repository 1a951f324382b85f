//! `olmkit extension`

mod diff;
mod install;
mod status;
mod uninstall;

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use olmkit_cluster::v1::Policy;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: ExtensionCommand,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum ExtensionCommand {
    /// Install or upgrade a package through OLM v1
    ///
    /// OLM v1 reports success as soon as it has written the objects. This command also waits for their Deployments.
    Install(install::Args),
    /// Show the status of OLM v1 extensions and why they fail
    ///
    /// Read-only. Use it if a ClusterExtension is not installed or not upgrading. Prints conditions, catalogs,
    /// Deployments, CRDs, and causes with fixes.
    Status(status::Args),
    /// Preview an upgrade through OLM v1
    ///
    /// Read-only. Resolves the version as OLM v1 does, from the ClusterCatalogs that the ClusterExtension selects. Exits with 1
    /// if there is no upgrade or OLM v1 would block it.
    Diff(diff::Args),
    /// Uninstall an operator that OLM v1 installed
    ///
    /// OLM v1 deletes the CRDs and the operator at the same time, so custom resources with a finalizer are never deleted. This
    /// command first deletes the custom resources and waits for the operator to finalize them.
    Uninstall(uninstall::Args),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        ExtensionCommand::Install(args) => install::run(args),
        ExtensionCommand::Status(args) => status::run(args),
        ExtensionCommand::Diff(args) => diff::run(args),
        ExtensionCommand::Uninstall(args) => uninstall::run(args),
    }
}

/// `--policy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    /// Only upgrades for which a catalog has an edge.
    #[value(name = "CatalogProvided")]
    CatalogProvided,
    /// Any version, older ones too.
    #[value(name = "SelfCertified")]
    SelfCertified,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::CatalogProvided => Policy::CatalogProvided,
            PolicyName::SelfCertified => Policy::SelfCertified,
        }
    }
}
