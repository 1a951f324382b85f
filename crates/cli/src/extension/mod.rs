//! `olmkit extension`

mod diff;
mod install;
mod status;
mod uninstall;

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use olmkit_cluster::extension::Policy;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: ExtensionCommand,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum ExtensionCommand {
    /// Install a package through OLM v1 from a catalog of the cluster, or go to another version, and wait until it runs
    ///
    /// OLM v1 says that it has succeeded when the objects are written; this command also waits for their Deployments.
    Install(install::Args),
    /// Show what OLM v1 says of its operators, and what it does not say
    Status(status::Args),
    /// Show what an upgrade through OLM v1 would change, and whether OLM v1 lets it pass
    ///
    /// The choice is made as OLM v1 makes it, from the images of the ClusterCatalogs that the ClusterExtension selects. Nothing in the
    /// cluster is changed. The exit status is 1 if there is no such upgrade, or OLM v1 blocks it.
    Diff(diff::Args),
    /// Uninstall an operator that OLM v1 installed, custom resources first
    ///
    /// OLM v1 deletes CRDs, with all custom resources of the cluster, and the operator at once: a custom resource with a finalizer then
    /// hangs. This command deletes the custom resources first and waits for the operator to finish them.
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
