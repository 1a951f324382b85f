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
use olmkit_manager::{metrics::Metrics, proxy, shutdown, transport};
use tracing_subscriber::{filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

fn main() -> ExitCode {
    let options = Options::parse();
    if let Err(error) = log(&options).and_then(|()| start(options)) {
        tracing::error!("{error:#}");
        // Logging may not be set up yet.
        eprintln!("memcached-operator: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// One thread is enough: the operator waits for the network nearly all the time, and each thread costs memory.
fn start(options: Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let stop = shutdown::on_signal().context("cannot listen for signals")?;
        let mut config = Config::infer()
            .await
            .context("no cluster configuration: found neither a kubeconfig nor a ServiceAccount")?;
        proxy::mind_exceptions(&mut config);
        // The queue retries with a back-off per object, so that other objects do not wait.
        config.default_retry = false;
        let server = config.cluster_url.to_string();
        let host = config
            .cluster_url
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        let client = Client::try_from(config).with_context(|| format!("cannot create a client for {server}"))?;
        let metrics = Metrics::new();
        let client = transport::limited(client, transport::Limits::default(), Some(metrics.requests(&host)));
        let settings = Settings::read(|name| std::env::var(name));
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            %server,
            namespaces = %options.watch_namespace,
            image = settings.image.as_deref().unwrap_or("not set"),
            "starting"
        );
        run::run(client, metrics, options, settings, stop).await?;
        tracing::info!("stopped");
        Ok(())
    })
}

fn log(options: &Options) -> anyhow::Result<()> {
    // Not `EnvFilter`: it also filters by fields of spans, for which it brings a regular expression engine.
    let filter: Targets = options.log_level.parse().with_context(|| {
        format!(
            "invalid --log-level {:?}: expected a level or a list of directives",
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
