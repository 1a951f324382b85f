//! `controlplane`: starts a control plane for as long as a command runs, or until it is interrupted.

use std::process::{Command, ExitCode};

use anyhow::Context as _;
use clap::Parser;
use controlplane::{ControlPlane, Options};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A real Kubernetes control plane on this machine, without a node: etcd, kube-apiserver, kube-controller-manager.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Run etcd and kube-apiserver only.
    #[arg(long, conflicts_with = "olm")]
    no_controllers: bool,
    /// Also run the two operators of the Operator Lifecycle Manager.
    #[arg(long)]
    olm: bool,
    /// Write an audit log and print its path.
    #[arg(long)]
    audit: bool,
    /// Leave pods Pending instead of marking them running and ready.
    #[arg(long)]
    no_pods: bool,
    /// Run this command with KUBECONFIG set and exit with its status. Without a command, wait for an interrupt.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    // kube's client logs each refused connection while the server starts.
    let filter = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("kube_client", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(filter).init();
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut options = Options::default().pods_become_ready(!arguments.no_pods);
    if arguments.no_controllers {
        options = options.without_controllers();
    }
    if arguments.olm {
        options = options.with_olm();
    }
    if arguments.audit {
        options = options.with_audit();
    }
    eprintln!(
        "starting the control plane{}",
        if arguments.olm { " with OLM" } else { "" }
    );
    let mut control_plane = ControlPlane::start(options).await?;
    if let Some(log) = control_plane.audit_log() {
        eprintln!("audit log: {}", log.display());
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
        eprintln!("running; press Ctrl-C to stop");
        loop {
            tokio::select! {
                signal = tokio::signal::ctrl_c() => { signal?; return Ok(ExitCode::SUCCESS); }
                () = tokio::time::sleep(std::time::Duration::from_secs(2)) => control_plane.check()?,
            }
        }
    };
    let mut command = Command::new(program);
    command.args(rest).env("KUBECONFIG", control_plane.kubeconfig());
    let status = tokio::task::spawn_blocking(move || command.status())
        .await?
        .with_context(|| format!("cannot run {program}"))?;
    Ok(u8::try_from(status.code().unwrap_or(1)).map_or(ExitCode::FAILURE, ExitCode::from))
}
