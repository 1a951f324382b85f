//! `olmkit catalog serve`

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use olmkit::serve::server::Current;
use olmkit::serve::source::{self, Provenance};
use olmkit::serve::{Index, Server};

#[derive(clap::Args)]
pub struct Args {
    /// Catalog directory.
    directory: PathBuf,
    /// Port to listen on, at all addresses.
    #[arg(short, long, default_value_t = 50051)]
    port: u16,
    /// Directory of the prepared index. One that is missing, stale or foreign is built anew.
    #[arg(long, value_name = "DIRECTORY")]
    cache_dir: Option<PathBuf>,
    /// Prepare the index and end.
    #[arg(long)]
    cache_only: bool,
    /// End with an error if the prepared index does not fit, instead of building it anew.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    cache_enforce_integrity: bool,
    /// How often to look for changes of the catalog, in seconds; 0 never does.
    #[arg(long, default_value_t = 5)]
    reload_interval: u64,
    /// File for the reason of a failure, which the kubelet shows.
    #[arg(short, long, default_value = "/dev/termination-log", value_name = "FILE")]
    termination_log: PathBuf,
    /// Accepted for opm's sake: there is no profiling endpoint.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    pprof_addr: Option<String>,
    /// Accepted for opm's sake.
    #[arg(long, hide = true)]
    pprof_capture_profiles: bool,
    /// Accepted for opm's sake.
    #[arg(long, hide = true)]
    debug: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let result = if args.cache_only { prepare(args) } else { start(args) };
    if let Err(error) = &result
        && args.termination_log.exists()
        && let Err(failure) = std::fs::write(&args.termination_log, format!("{error:#}"))
    {
        eprintln!("cannot write {}: {failure}", args.termination_log.display());
    }
    result
}

fn prepare(args: &Args) -> anyhow::Result<ExitCode> {
    let index = open(&args.directory, args.cache_dir.as_deref(), args.cache_enforce_integrity)?;
    report(&index);
    Ok(ExitCode::SUCCESS)
}

fn start(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(args))
}

/// Opens or builds the index, and says which.
fn open(directory: &Path, cache: Option<&Path>, enforce: bool) -> Result<Index, source::Error> {
    let begin = std::time::Instant::now();
    let (index, provenance) = source::index(directory, cache, enforce)?;
    let milliseconds = begin.elapsed().as_millis();
    match provenance {
        Provenance::Prepared => eprintln!("the prepared index fits ({milliseconds} ms)"),
        Provenance::Built => eprintln!("built the index ({milliseconds} ms)"),
        Provenance::Temporary(None) => eprintln!("built a temporary index ({milliseconds} ms)"),
        Provenance::Temporary(Some(reason)) => {
            eprintln!("built a temporary index ({milliseconds} ms); it cannot be kept: {reason}");
        }
    }
    Ok(index)
}

fn report(index: &Index) {
    let (bundles, entries) = index.counts();
    eprintln!(
        "{} packages, {bundles} bundles, {entries} channel entries",
        index.packages().len()
    );
}

async fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let server = Server::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, args.port))).await?;
    eprintln!("listening on {}", server.address());
    let current = server.current();
    let (directory, cache) = (args.directory.clone(), args.cache_dir.clone());
    let enforce = args.cache_enforce_integrity;
    let first = tokio::task::spawn_blocking(move || open(&directory, cache.as_deref(), enforce));
    let serving = server.run(stop_signal());
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => {
            result?;
            return Ok(ExitCode::SUCCESS);
        }
        index = first => {
            let index = index??;
            report(&index);
            current.set(index);
        }
    }
    if args.reload_interval > 0 {
        let interval = Duration::from_secs(args.reload_interval);
        tokio::spawn(follow(
            args.directory.clone(),
            args.cache_dir.clone(),
            interval,
            current,
        ));
    }
    serving.await?;
    Ok(ExitCode::SUCCESS)
}

/// Looks for changes of the catalog and serves what it has become. A change that cannot be served is reported, and the
/// last good content stays.
async fn follow(directory: PathBuf, cache: Option<PathBuf>, interval: Duration, current: Current) {
    let mut known = source::stamp(&directory);
    let mut pending = known;
    loop {
        tokio::time::sleep(interval).await;
        let stamp = source::stamp(&directory);
        // Taken up only once it has stood still, since a copy in progress changes all the time.
        if stamp == known || stamp != pending {
            pending = stamp;
            continue;
        }
        known = stamp;
        let (directory, cache) = (directory.clone(), cache.clone());
        match tokio::task::spawn_blocking(move || open(&directory, cache.as_deref(), false)).await {
            Ok(Ok(index)) => {
                eprintln!("the catalog has changed");
                report(&index);
                current.set(index);
            }
            Ok(Err(error)) => eprintln!("the catalog has changed and cannot be served; the old content stays: {error}"),
            Err(error) => eprintln!("reading the changed catalog failed: {error}"),
        }
    }
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
    eprintln!("stopping; open calls may finish");
}
