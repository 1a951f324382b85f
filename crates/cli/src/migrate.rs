//! `olmkit migrate`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use olmkit::object::UntrustedText;
use olmkit::olmv1::migrate::{Assessment, Eligibility};
use olmkit_cluster::migrate::Installed;
use serde_json::Value;

use super::cluster_args::Output;
use super::console::stopped;
use crate::bundle::render;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    command: MigrateCommand,
}

#[derive(Subcommand)]
enum MigrateCommand {
    /// Check which Subscriptions can move to OLM v1
    ///
    /// Read-only. Checks the migration conditions C1 to C10 of library-olm. If the cluster runs OLM v1, C7 looks up the package
    /// in its ClusterCatalogs. Exits with 1 if a Subscription cannot move.
    Check(Check),
    /// Print the OLM v1 objects that would replace Subscriptions
    ///
    /// Read-only. Omits Subscriptions that cannot be migrated, and lists them on standard error.
    Plan(Plan),
}

#[derive(clap::Args)]
struct Where {
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the Subscriptions [default: all]
    #[arg(short, long)]
    namespace: Option<String>,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit migrate check", "olmkit migrate check -n operators -o json"])]
struct Check {
    #[command(flatten)]
    place: Where,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit migrate plan -n operators > extensions.yaml"])]
struct Plan {
    #[command(flatten)]
    place: Where,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        MigrateCommand::Check(args) => check(args),
        MigrateCommand::Plan(args) => plan(args),
    }
}

/// Reads the cluster, and with `asks` also its ClusterCatalogs.
fn read(place: &Where, asks: bool) -> anyhow::Result<Result<Installed, olmkit_cluster::Error>> {
    block_on(async {
        let namespace = place.namespace.as_deref();
        let cluster = olmkit_cluster::Cluster::connect(place.kubeconfig.as_deref(), namespace).await?;
        let mut installed = Installed::read(&cluster, namespace).await?;
        if asks && !installed.ask_catalogs(&cluster).await? {
            note!("note: C7 is not checked: the cluster has no ClusterCatalogs, because OLM v1 is not installed");
        }
        Ok(installed)
    })
}

fn check(args: &Check) -> anyhow::Result<ExitCode> {
    let assessments = match read(&args.place, true)? {
        Ok(installed) => installed.assess(),
        Err(error) => return stopped(error, args.output),
    };
    let mut out = crate::terminal::output();
    match args.output {
        Output::Json => crate::terminal::json(&assessments)?,
        Output::Text if assessments.is_empty() => writeln!(out, "nothing is subscribed")?,
        Output::Text => {
            for line in assessments.iter().flat_map(lines) {
                writeln!(out, "{}", UntrustedText::new(&line))?;
            }
        }
    }
    let stays = |one: &Assessment| matches!(one.eligibility, Eligibility::Ineligible | Eligibility::Conflict);
    Ok(if assessments.iter().any(stays) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn lines(one: &Assessment) -> Vec<String> {
    let verdict = match one.eligibility {
        Eligibility::Eligible => "can move",
        Eligibility::NeedsConsent => "can move, if you accept the changes",
        Eligibility::Conflict => "conflicts",
        _ => "cannot move",
    };
    let mut lines = vec![format!(
        "{}/{} (package {}): {verdict}",
        one.namespace, one.subscription, one.package
    )];
    for obstacle in &one.obstacles {
        lines.push(format!("    {}: {}", obstacle.id, obstacle.message));
        lines.push(format!("        {}", obstacle.hint));
    }
    lines
}

fn plan(args: &Plan) -> anyhow::Result<ExitCode> {
    let (objects, left) = match read(&args.place, false)? {
        Ok(installed) => installed.plan(),
        Err(error) => return stopped(error, Output::Text),
    };
    for one in &left {
        let name = format!("{}/{}", one.namespace, one.subscription);
        note!(
            "note: {} is omitted: it cannot move (see olmkit migrate check)",
            UntrustedText::new(&name)
        );
    }
    let text = |object: &Value, pointer| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    for extension in objects
        .iter()
        .filter(|object| text(object, "/kind") == "ClusterExtension")
    {
        let name = text(extension, "/metadata/name");
        let name = UntrustedText::new(&name);
        if extension.pointer("/spec/source/catalog/channels").is_none() {
            note!("note: the Subscription of {name} has no channel: OLM v1 uses the versions of all channels");
        }
        if extension.pointer("/spec/config").is_some() {
            note!("note: {name} has spec.config, which only the experimental manifests of OLM v1 support");
        }
    }
    if objects.is_empty() {
        note!("note: nothing to move");
    }
    render::print(&objects)
}
