//! `olmkit catalog serve`

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use olmkit::catalog::load;
use olmkit::serve::Server;
use olmkit::serve::index::in_memory;

#[derive(clap::Args)]
pub struct Args {
    /// Catalog directory.
    directory: PathBuf,
    /// Port to listen on, at all addresses.
    #[arg(short, long, default_value_t = 50051)]
    port: u16,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let server = Server::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, args.port))).await?;
    eprintln!("listening on {}", server.address());
    let current = server.current();
    let directory = args.directory.clone();
    let loading = tokio::task::spawn_blocking(move || -> anyhow::Result<()> {
        let index = in_memory(&load::directory(&directory)?)?;
        let (bundles, entries) = index.counts();
        eprintln!(
            "serving {} packages, {bundles} bundles, {entries} channel entries",
            index.packages().len()
        );
        current.set(index);
        Ok(())
    });
    let serving = server.run(stop_signal());
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => { result?; return Ok(ExitCode::SUCCESS); }
        result = loading => result??,
    }
    serving.await?;
    Ok(ExitCode::SUCCESS)
}

/// Ends with SIGTERM or SIGINT.
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
