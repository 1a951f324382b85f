//! `olmkit diagnose`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit_cluster::{Finding, diagnose::diagnose};

use super::cluster_args::Output;
use super::console::stopped;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit diagnose cache-operator -n operators", "olmkit diagnose -o json"])]
pub struct Args {
    /// Package [default: all packages of the namespace]
    package: Option<String>,
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the operator [default: that of the kubeconfig's current context]
    #[arg(short, long)]
    namespace: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let looked = block_on(async {
        let cluster = olmkit_cluster::Cluster::connect(args.kubeconfig.as_deref(), args.namespace.as_deref()).await?;
        diagnose(&cluster, args.package.as_deref()).await
    })?;
    let findings = match looked {
        Ok(findings) => findings,
        Err(error) => return stopped(error, args.output),
    };
    match args.output {
        Output::Json => crate::terminal::json(&findings)?,
        Output::Text if findings.is_empty() => {
            println!("no Subscription or operator in the namespace, and no causes found")
        }
        Output::Text => findings.iter().for_each(print),
    }
    Ok(if findings.iter().all(|finding| finding.healthy) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print(finding: &Finding) {
    let about = if finding.package.is_empty() {
        format!("namespace {}", finding.namespace)
    } else {
        format!("package {} in namespace {}", finding.package, finding.namespace)
    };
    println!(
        "{about}: {}",
        if finding.healthy {
            "nothing is wrong"
        } else {
            "something is wrong"
        }
    );
    for text in &finding.reached {
        println!("  reached: {text}");
    }
    for cause in &finding.causes {
        println!("{cause}");
    }
}
