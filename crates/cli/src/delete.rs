//! `olmkit delete`

use std::process::ExitCode;

use clap::Subcommand;
use olmkit_scaffold::{DeleteApi, DeleteWebhook, delete_api, delete_webhook};

use crate::create::{scaffolded, show};
use crate::kind_args::KindArgs;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Take a version of a kind out of a project again
    Api(ApiArgs),
    /// Take webhooks of a kind out of a project again
    Webhook(WebhookArgs),
}

/// Take a version of a kind out of a project again
///
/// Deletes what create api wrote for a version of a kind. Your own changes elsewhere stay; files that you have changed are
/// only deleted with --force.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples!["olmkit delete api --group cache --version v1alpha1 --kind Memcached"])]
struct ApiArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Delete files that have changed since they were created
    #[arg(long)]
    force: bool,
}

/// Take webhooks of a kind out of a project again
///
/// Deletes what create webhook wrote for a version of a kind. Your own changes elsewhere stay; files that you have changed are
/// only deleted with --force.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit delete webhook --group cache --version v1 --kind Memcached",
    "olmkit delete webhook --group cache --version v1 --kind Memcached --conversion"
])]
struct WebhookArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Delete the defaulting webhook [default: all webhooks of the version]
    #[arg(long)]
    defaulting: bool,
    /// Delete the validating webhook [default: all webhooks of the version]
    #[arg(long)]
    programmatic_validation: bool,
    /// Delete the conversion, whose hub is this version [default: all webhooks of the version]
    #[arg(long)]
    conversion: bool,
    /// Delete files that have changed since they were created
    #[arg(long)]
    force: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let args = match &args.command {
        Command::Api(args) => args,
        Command::Webhook(args) => return webhook(args),
    };
    scaffolded(|| {
        let api = DeleteApi {
            group: args.kind.group.clone(),
            version: args.kind.version.clone(),
            kind: args.kind.kind.clone(),
            force: args.force,
        };
        show(&delete_api(&args.kind.directory, &api)?);
        Ok(())
    })
}

fn webhook(args: &WebhookArgs) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        let webhook = DeleteWebhook {
            group: args.kind.group.clone(),
            version: args.kind.version.clone(),
            kind: args.kind.kind.clone(),
            defaulting: args.defaulting,
            validation: args.programmatic_validation,
            conversion: args.conversion,
            force: args.force,
        };
        show(&delete_webhook(&args.kind.directory, &webhook)?);
        Ok(())
    })
}
