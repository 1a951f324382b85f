//! Runs memcached on Kubernetes.
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use kube::{Client, Config};
use memcached_operator::{
    options::{LogFormat, Options},
    run,
    settings::Settings,
};
use olmkit_manager::{proxy, shutdown};
use tracing_subscriber::{filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

fn main() -> ExitCode {
    let options = Options::parse();
    if let Err(error) = log(&options).and_then(|()| start(options)) {
        tracing::error!("{error:#}");
        // Also where logging could not be set up.
        eprintln!("memcached-operator: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// One thread is enough: the operator waits for the network nearly all of its time, and a second thread would cost
/// memory for each operator in the cluster.
fn start(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(async {
        let stop = shutdown::on_signal().context("cannot listen for signals")?;
        let mut config = Config::infer()
            .await
            .context("no cluster: neither a kubeconfig nor a ServiceAccount found")?;
        proxy::mind_exceptions(&mut config);
        // The queue tries again, with a back-off of its own that other objects need not wait for.
        config.default_retry = false;
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).with_context(|| format!("cannot set up the connection to {server}"))?;
        let settings = Settings::read(|name| std::env::var(name));
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            %server,
            namespaces = %options.watch_namespace,
            image = settings.image.as_deref().unwrap_or("not set"),
            "starting"
        );
        run::run(client, options, settings, stop).await?;
        tracing::info!("done");
        Ok(())
    })
}

fn log(options: &Options) -> anyhow::Result<()> {
    // Not `EnvFilter`: it filters by the fields of spans too, which nobody asks for, and brings a compiler of regular
    // expressions for it.
    let filter: Targets = options.log_level.parse().with_context(|| {
        format!(
            "--log-level {:?} is neither a level nor a list of directives",
            options.log_level
        )
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let subscriber = tracing_subscriber::registry().with(filter);
    match options.log_format {
        LogFormat::Json => subscriber
            .with(
                lines
                    .json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(false),
            )
            .init(),
        LogFormat::Text => subscriber.with(lines).init(),
    }
    Ok(())
}
