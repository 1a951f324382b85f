//! `kube-testbed`: starts a control plane while a command runs, or until it is interrupted.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use kube_testbed::download::{Download, NEWEST};
use kube_testbed::{ControlPlane, Options};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A real Kubernetes control plane on this machine, without a node, for tests
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run a command against a new control plane, or start one until an interrupt
    Run(Run),
    /// Download etcd, kube-apiserver and kubectl
    Download(Fetch),
}

#[derive(Debug, Args)]
struct Run {
    /// Run etcd and kube-apiserver only
    #[arg(long, conflicts_with = "olm")]
    no_controllers: bool,
    /// Also run the two operators of the Operator Lifecycle Manager
    #[arg(long)]
    olm: bool,
    /// Write an audit log and print its path
    #[arg(long)]
    audit: bool,
    /// Leave pods Pending instead of marking them running and ready
    #[arg(long)]
    no_pods: bool,
    /// Make the API server call the webhooks configured in the directory's crd/bases and webhook, and set WEBHOOK_BIND_ADDRESS and
    /// WEBHOOK_CERT_PATH for the command
    #[arg(long, value_name = "DIRECTORY", requires = "command")]
    webhooks: Option<PathBuf>,
    /// Command to run with KUBECONFIG set. It gets the signals, and its status is the exit status: 128 + N if signal N ended it.
    /// Without a command, wait for an interrupt
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct Fetch {
    /// Version of Kubernetes
    #[arg(long = "kubernetes-version", value_name = "VERSION", default_value = NEWEST)]
    version: String,
    /// Mirror of the releases of controller-tools
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// SHA-512 of the archive, for a version without a known digest
    #[arg(long, value_name = "DIGEST")]
    sha512: Option<String>,
    /// Directory in which to create the version's directory [default: KUBE_TESTBED_ASSETS, or kube-testbed in the cache
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    into: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    // kube's client logs each rejected connection while the server starts.
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
    runtime.block_on(async {
        match arguments.action {
            Action::Run(arguments) => run(arguments).await,
            Action::Download(arguments) => download(arguments).await,
        }
    })
}

async fn download(arguments: Fetch) -> anyhow::Result<ExitCode> {
    let mut download = Download::default().version(&arguments.version);
    if let Some(url) = &arguments.from {
        download = download.from(url);
    }
    if let Some(digest) = &arguments.sha512 {
        download = download.sha512(digest);
    }
    if let Some(directory) = &arguments.into {
        download = download.into(directory);
    }
    let directory = download.run().await?;
    println!("export KUBEBUILDER_ASSETS={}", directory.display());
    Ok(ExitCode::SUCCESS)
}

async fn run(arguments: Run) -> anyhow::Result<ExitCode> {
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
    let webhooks = match &arguments.webhooks {
        Some(folder) => Some(control_plane.install_webhooks(configurations(folder)?).await?),
        None => None,
    };
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
    if let Some(webhooks) = &webhooks {
        command.env("WEBHOOK_BIND_ADDRESS", webhooks.address().to_string());
        command.env("WEBHOOK_CERT_PATH", webhooks.certificates());
    }
    let status = wait_for(command)
        .await
        .with_context(|| format!("cannot run {program}"))?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(u8::try_from(code.unwrap_or(1)).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs `command` to its end, and passes signals on. The control plane stays until then, so that the command can clean up.
async fn wait_for(mut command: Command) -> io::Result<ExitStatus> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut child = command.spawn()?;
    loop {
        let name = tokio::select! {
            status = child.wait() => return status,
            // A terminal sends Ctrl-C to the command too.
            _ = interrupt.recv() => if io::stdin().is_terminal() { continue } else { "INT" },
            _ = terminate.recv() => "TERM",
            _ = hangup.recv() => "HUP",
        };
        if let Some(id) = child.id() {
            Command::new("sh")
                .args(["-c", &format!("kill -{name} {id}")])
                .status()
                .await?;
        }
    }
}

/// The webhook configurations and custom resource definitions of a project.
fn configurations(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for part in ["crd/bases", "webhook"] {
        let part = folder.join(part);
        if !part.exists() {
            continue;
        }
        for entry in fs::read_dir(&part).with_context(|| part.display().to_string())? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            for document in serde_yaml::Deserializer::from_str(&text) {
                let object = Value::deserialize(document).with_context(|| path.display().to_string())?;
                let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
                if kind == "CustomResourceDefinition" || kind.ends_with("WebhookConfiguration") {
                    found.push(object);
                }
            }
        }
    }
    anyhow::ensure!(
        !found.is_empty(),
        "{} has neither crd/bases nor webhook",
        folder.display()
    );
    Ok(found)
}
