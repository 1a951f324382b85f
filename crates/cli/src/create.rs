//! `olmkit create`

use std::process::ExitCode;

use clap::{ArgAction, Subcommand};
use olmkit_scaffold::{Api, Error, External, Image, Report, Webhook};

use crate::kind_args::KindArgs;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Add a kind or a version of a kind to a project
    Api(Box<ApiArgs>),
    /// Add webhooks to a project
    Webhook(WebhookArgs),
}

/// Add a kind or a version of a kind to a project
///
/// Generates the types of a kind, its reconciler with permissions, a sample and tests, and adds them to the project. Keeps your
/// changes to existing sources.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit create api --group cache --version v1alpha1 --kind Memcached",
    "olmkit create api --group web --version v1 --kind Site --plugins deploy-image --image nginx:1.29",
    "olmkit create api --group apps --version v1 --kind Deployment --resource=false"
])]
struct ApiArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Plural name, if it is not the regular English plural
    #[arg(long)]
    plural: Option<String>,
    /// Make the kind namespace-scoped (true) or cluster-scoped (false)
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    #[arg(action = ArgAction::Set, value_name = "BOOL")]
    namespaced: bool,
    /// Generate the types
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    #[arg(action = ArgAction::Set, value_name = "BOOL")]
    resource: bool,
    /// Generate a reconciler [default: unless another version of the kind has one]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    controller: Option<bool>,
    /// deploy-image: objects of the kind run an image
    #[arg(long, value_name = "PLUGIN", value_parser = ["deploy-image", "deploy-image/v1-alpha"], requires = "image")]
    plugins: Option<String>,
    /// deploy-image: the image
    #[arg(long, requires = "plugins")]
    image: Option<String>,
    /// deploy-image: container command, comma-separated [default: the image's command]
    #[arg(
        long,
        value_name = "WORDS",
        requires = "plugins",
        default_value = "",
        hide_default_value = true
    )]
    image_container_command: String,
    /// deploy-image: the port of the container
    #[arg(
        long,
        value_name = "PORT",
        requires = "plugins",
        default_value = "",
        hide_default_value = true
    )]
    image_container_port: String,
    /// deploy-image: user ID of the container [default: the image's user]
    #[arg(
        long,
        value_name = "USER",
        requires = "plugins",
        default_value = "",
        hide_default_value = true
    )]
    run_as_user: String,
    /// Rust module of an external type to reconcile. Not needed for Kubernetes' own kinds
    #[arg(long, value_name = "PATH")]
    external_api_path: Option<String>,
    /// API group domain of the external type
    #[arg(long, value_name = "DOMAIN", requires = "external_api_path")]
    external_api_domain: Option<String>,
    /// Crate that contains the external type, NAME@VERSION
    #[arg(long, value_name = "CRATE", requires = "external_api_path")]
    external_api_module: Option<String>,
    /// Overwrite the kind's files
    #[arg(long)]
    force: bool,
}

/// Add webhooks to a project
///
/// Generates functions that default, validate or convert objects, with tests, and adds them to the operator's server, config/
/// and the bundle. OLM issues the certificates. Without OLM, cert-manager is required.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit create webhook --group cache --version v1 --kind Memcached --defaulting",
    "olmkit create webhook --group cache --version v1 --kind Memcached --conversion --spoke v2"
])]
struct WebhookArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Add a defaulting webhook
    #[arg(long)]
    defaulting: bool,
    /// Add a validating webhook
    #[arg(long)]
    programmatic_validation: bool,
    /// Add conversion. --version is the hub
    #[arg(long)]
    conversion: bool,
    /// Versions to convert to and from the hub [default: all others]
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',', requires = "conversion")]
    spoke: Vec<String>,
    /// Overwrite the webhooks' files
    #[arg(long)]
    force: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Api(args) => scaffolded(|| {
            let report = olmkit_scaffold::create_api(
                &args.kind.directory,
                &Api {
                    group: args.kind.group.clone(),
                    version: args.kind.version.clone(),
                    kind: args.kind.kind.clone(),
                    plural: args.plural.clone(),
                    namespaced: args.namespaced,
                    resource: args.resource,
                    controller: args.controller,
                    image: args.image.clone().map(|image| Image {
                        image,
                        container_command: args.image_container_command.clone(),
                        container_port: args.image_container_port.clone(),
                        run_as_user: args.run_as_user.clone(),
                    }),
                    external: External {
                        path: args.external_api_path.clone(),
                        domain: args.external_api_domain.clone(),
                        module: args.external_api_module.clone(),
                    },
                    force: args.force,
                },
            )?;
            show(&report);
            Ok(())
        }),
        Command::Webhook(args) => scaffolded(|| {
            let webhook = Webhook {
                group: args.kind.group.clone(),
                version: args.kind.version.clone(),
                kind: args.kind.kind.clone(),
                defaulting: args.defaulting,
                validation: args.programmatic_validation,
                conversion: args.conversion,
                spokes: args.spoke.clone(),
                force: args.force,
            };
            show(&olmkit_scaffold::create_webhook(&args.kind.directory, &webhook)?);
            Ok(())
        }),
    }
}

/// Wrong flags exit with 2, as everywhere.
pub fn scaffolded(action: impl FnOnce() -> Result<(), Error>) -> anyhow::Result<ExitCode> {
    match action() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ (Error::Name { .. } | Error::Usage(_))) => {
            eprintln!("error: {error}");
            Ok(ExitCode::from(2))
        }
        Err(error) => Err(error.into()),
    }
}

/// Lists what happened to files.
pub fn show(report: &Report) {
    for (what, paths) in [
        ("created", &report.created),
        ("changed", &report.changed),
        ("removed", &report.removed),
        ("kept", &report.kept),
    ] {
        for path in paths {
            println!("{what} {}", path.display());
        }
    }
    if report.render {
        note!("config/ contains more than the scaffolded sources render: run make manifests to update it");
    }
}
