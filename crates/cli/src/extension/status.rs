//! `olmkit extension status`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit_cluster::Cluster;
use olmkit_cluster::v1::{self, ConditionStatus, Status};

use crate::cluster_args::Output;
use crate::console::stopped;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit extension status cache-operator", "olmkit extension status -o json"])]
pub struct Args {
    /// ClusterExtension [default: all]
    name: Option<String>,
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let looked = block_on(async {
        let cluster = Cluster::connect(args.kubeconfig.as_deref(), None).await?;
        v1::status(&cluster, args.name.as_deref()).await
    })?;
    let found = match looked {
        Ok(found) => found,
        Err(error) => return stopped(error, args.output),
    };
    match (args.output, &args.name) {
        (Output::Json, _) => crate::terminal::json(&found)?,
        (Output::Text, Some(name)) if found.is_empty() => println!("there is no ClusterExtension {name}"),
        (Output::Text, None) if found.is_empty() => println!("the cluster has no ClusterExtension"),
        (Output::Text, _) => found.iter().for_each(print),
    }
    let is_missing = args.name.is_some() && found.is_empty();
    Ok(if is_missing || found.iter().any(|one| !one.healthy) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn print(one: &Status) {
    let installed = match (&one.bundle, one.requested.as_str()) {
        (Some(bundle), "") => format!("{bundle} is installed"),
        (Some(bundle), wanted) => format!("{bundle} is installed, {wanted} is requested"),
        (None, _) => "nothing is installed".to_owned(),
    };
    let namespace = match one.namespace.as_str() {
        "" => "no namespace yet".to_owned(),
        name => format!("namespace {name}"),
    };
    println!(
        "ClusterExtension {} (package {}, {namespace}): {installed}",
        one.name, one.package
    );
    // Deprecation conditions that are not True contain no information.
    let is_news = |condition: &&ConditionStatus| {
        matches!(condition.kind.as_str(), "Installed" | "Progressing") || condition.status == "True"
    };
    for condition in one.conditions.iter().filter(is_news) {
        let said = match condition.message.as_str() {
            "" => String::new(),
            // Causes have the rest.
            message => format!(": {}", message.lines().next().unwrap_or_default()),
        };
        println!("  {} {} {}{said}", condition.kind, condition.status, condition.reason);
    }
    for catalog in &one.catalogs {
        let serving = if catalog.serving { "served" } else { "not served" };
        println!(
            "  catalog {}: {serving}, priority {}, {}",
            catalog.name, catalog.priority, catalog.image
        );
    }
    for deployment in &one.deployments {
        println!(
            "  Deployment {}: {} of {} available",
            deployment.name, deployment.available, deployment.replicas
        );
    }
    for name in &one.definitions {
        println!("  CRD {name}");
    }
    for cause in &one.causes {
        println!("{cause}");
    }
}
