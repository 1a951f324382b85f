//! `olmkit catalog serve`

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use olmkit::catalog::render::reference::{Located, locate};
use olmkit_serve::assemble::IndexContents;
use olmkit_serve::current::Current;
use olmkit_serve::fingerprint::Stamp;
use olmkit_serve::metrics::{IndexLoad, Metrics};
use olmkit_serve::source::{self, Options, Provenance};
use olmkit_serve::{Index, Limits, Server, http};

use super::images::RegistryImages;
use crate::progress::{Progress, Unit};
use crate::registry_flags::RegistryFlags;

#[derive(clap::Args)]
#[command(after_help = examples!["olmkit catalog serve catalog", "olmkit catalog serve /configs --cache-dir /var/cache/catalog --metrics-addr :9090"])]
pub struct Args {
    /// Catalog: a directory, a layout (oci:DIRECTORY) or an image.
    catalog: String,
    /// Port to listen on, at all addresses.
    #[arg(short, long, default_value_t = 50051)]
    port: u16,
    /// Directory of the prepared index. Rebuilt if missing, outdated or written by another tool.
    #[arg(long, value_name = "DIRECTORY")]
    cache_dir: Option<PathBuf>,
    /// Prepare the index and exit. Fails if any package is invalid.
    #[arg(long)]
    cache_only: bool,
    /// Fail if the prepared index does not match the catalog, instead of rebuilding it.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = false)]
    cache_enforce_integrity: bool,
    /// Fail if a package is invalid, instead of serving the others.
    #[arg(long)]
    strict: bool,
    /// Serve catalogd's HTTP API too (/api/v1/all, /api/v1/metas), at this address [without one: :8080].
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = ":8080", value_parser = address)]
    http: Option<SocketAddr>,
    /// Address for /metrics and /healthz, such as :9090. May equal --http.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics_addr: Option<SocketAddr>,
    /// Address for /healthz only, such as :8081, so that busy clients cannot block probes.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    health_addr: Option<SocketAddr>,
    /// Maximum open connections. The least recently used is closed.
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Maximum bytes buffered for slow clients. Beyond it, the slowest client is disconnected.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().waiting_bytes)]
    max_waiting: usize,
    /// Seconds a client may take to read a response message.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().send.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    send_timeout: u64,
    /// Seconds without a call after which a connection is closed.
    #[arg(long, value_name = "SECONDS", default_value_t = Limits::default().idle.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    idle_timeout: u64,
    /// Seconds between checks for changes of the catalog directory. 0 turns them off.
    #[arg(long, default_value_t = 5)]
    reload_interval: u64,
    /// File for the failure message that the kubelet reads.
    #[arg(short, long, default_value = "/dev/termination-log", value_name = "FILE")]
    termination_log: PathBuf,
    /// Ignored (opm compatibility): there is no profiling endpoint.
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    pprof_addr: Option<String>,
    /// Ignored (opm compatibility).
    #[arg(long, hide = true)]
    pprof_capture_profiles: bool,
    /// Ignored (opm compatibility).
    #[arg(long, hide = true)]
    debug: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// Reads `ADDRESS:PORT`, `:PORT` or `PORT`; without an address it means all of them.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))),
        Err(_) => text
            .parse()
            .map_err(|_| format!("{text:?} is not ADDRESS:PORT, such as 127.0.0.1:8080, or :PORT")),
    }
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

/// The catalog and its requested index.
#[derive(Clone)]
struct Plan {
    catalog: String,
    registry: RegistryFlags,
    cache: Option<PathBuf>,
    enforce: bool,
    wanted: IndexContents,
    metrics: Metrics,
}

impl Plan {
    fn new(args: &Args, metrics: Metrics) -> Self {
        Plan {
            catalog: args.catalog.clone(),
            registry: args.registry.clone(),
            cache: args.cache_dir.clone(),
            enforce: args.cache_enforce_integrity,
            wanted: IndexContents {
                blobs: args.http.is_some(),
                whole: args.strict || args.cache_only,
            },
            metrics,
        }
    }

    /// Finds the catalog. An image is pulled and unpacked.
    fn locate(&self) -> anyhow::Result<Located> {
        locate(&self.catalog, &RegistryImages::new(&self.registry))
            .with_context(|| format!("cannot serve {}", self.catalog))
    }

    fn options(&self) -> Options<'_> {
        Options {
            cache: self.cache.as_deref(),
            enforce: self.enforce,
            wanted: self.wanted,
        }
    }

    /// The prepared index if it lacks only the blobs for the HTTP API.
    fn without_blobs(&self, directory: &Path) -> Option<Index> {
        // `open` reports errors of the catalog.
        let index = source::prepared_without_blobs(directory, self.options()).ok()??;
        self.metrics.index_loaded(IndexLoad::Prepared);
        note!("the prepared index fits and answers gRPC; building one with the data for the HTTP API");
        Some(index)
    }

    /// Opens or builds the index, and reports which.
    fn open(&self, directory: &Path) -> anyhow::Result<(Index, Provenance)> {
        let begin = Instant::now();
        let progress = Progress::begin("reading the catalog", Unit::Read);
        let (index, provenance) =
            source::index(directory, self.options()).inspect_err(|_| self.metrics.index_loaded(IndexLoad::Failed))?;
        drop(progress);
        let milliseconds = begin.elapsed().as_millis();
        self.metrics.index_loaded(match provenance {
            Provenance::Prepared => IndexLoad::Prepared,
            Provenance::Built | Provenance::Temporary(_) => IndexLoad::Built,
        });
        match &provenance {
            Provenance::Prepared => note!("the prepared index fits ({milliseconds} ms)"),
            Provenance::Built => note!("built the index ({milliseconds} ms)"),
            Provenance::Temporary(None) => note!("built a temporary index ({milliseconds} ms)"),
            Provenance::Temporary(Some(reason)) => {
                let cache = self.cache.as_deref().unwrap_or(Path::new("")).display();
                eprintln!("built a temporary index ({milliseconds} ms); it cannot be kept in {cache}: {reason}");
            }
        }
        Ok((index, provenance))
    }
}

fn prepare(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = Plan::new(args, Metrics::default());
    let located = plan.locate()?;
    let (index, provenance) = plan.open(located.path())?;
    report(&index);
    // A user who prepares an index expects it in the cache.
    if let (Some(cache), Provenance::Temporary(Some(reason))) = (&args.cache_dir, provenance) {
        anyhow::bail!("the index cannot be kept in {}: {reason}", cache.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn start(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let result = runtime.block_on(serve(args));
    // A pull that waits for a registry, or reading the catalog, must not block the exit.
    runtime.shutdown_background();
    // Until the process exits, running tasks must not create new temporary files.
    std::mem::forget(olmkit::temporary::remove_all());
    result
}

/// Reports the served and the omitted packages.
fn report(index: &Index) {
    let (bundles, entries) = index.counts();
    let packages = index.packages().len();
    note!("{packages} packages, {bundles} bundles, {entries} channel entries");
    for broken in index.broken() {
        let name = match broken.package.as_str() {
            "" => "a file or blob without a known package",
            name => name,
        };
        eprintln!("not served: {name}: {}", broken.message);
    }
}

/// Activates an index.
fn take_up(index: Index, current: &Current, metrics: &Metrics) {
    report(&index);
    metrics.serving(&index);
    current.set(index);
}

/// The limits from the flags.
fn limits(args: &Args) -> Limits {
    Limits {
        connections: args.max_connections.max(1),
        waiting_bytes: args.max_waiting,
        send: Duration::from_secs(args.send_timeout),
        idle: Duration::from_secs(args.idle_timeout),
        ..Limits::default()
    }
}

async fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, args.port));
    let server = Server::bind_with(address, limits(args)).await?;
    note!("listening on {}", server.address());
    let (current, metrics) = (server.current(), server.metrics());
    for (address, routes) in routes(args, &current, &metrics) {
        let server = http::Server::bind_with(address, routes, limits(args)).await?;
        note!("listening for HTTP on {}", server.address()?);
        tokio::spawn(server.run());
    }
    let plan = Plan::new(args, metrics.clone());
    let first = tokio::task::spawn_blocking({
        let (plan, current, metrics) = (plan.clone(), current.clone(), metrics.clone());
        move || {
            let located = plan.locate()?;
            let index = match plan.without_blobs(located.path()) {
                None => Some(plan.open(located.path())?.0),
                Some(index) => {
                    take_up(index, &current, &metrics);
                    let whole = plan.open(located.path());
                    whole
                        .map(|(index, _)| index)
                        .inspect_err(|error| eprintln!("gRPC only; the HTTP API has nothing to serve: {error:#}"))
                        .ok()
                }
            };
            anyhow::Ok((located, index))
        }
    });
    let serving = server.run(stop_signal());
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => {
            result?;
            return Ok(ExitCode::SUCCESS);
        }
        first = first => {
            let (located, index) = first??;
            if let Some(index) = index {
                take_up(index, &current, &metrics);
            }
            // OLM itself polls an image tag for changes (registryPoll).
            if let (Located::Directory(directory), 1..) = (located, args.reload_interval) {
                let interval = Duration::from_secs(args.reload_interval);
                tokio::spawn(follow(plan, directory, interval, current));
            }
        }
    }
    serving.await?;
    Ok(ExitCode::SUCCESS)
}

/// The HTTP listeners. Catalog API and metrics may share an address.
fn routes(args: &Args, current: &Current, metrics: &Metrics) -> Vec<(SocketAddr, http::Routes)> {
    let mut listeners = catalog_and_metrics(args, current, metrics);
    let health = http::Routes {
        catalog: None,
        metrics: None,
        health: current.clone(),
    };
    listeners.extend(args.health_addr.map(|address| (address, health)));
    listeners
}

fn catalog_and_metrics(args: &Args, current: &Current, metrics: &Metrics) -> Vec<(SocketAddr, http::Routes)> {
    let routes = |catalog: bool, with_metrics: bool| http::Routes {
        catalog: catalog.then(|| current.clone()),
        metrics: with_metrics.then(|| metrics.clone()),
        health: current.clone(),
    };
    match (args.http, args.metrics_addr) {
        (Some(http), Some(metrics)) if http == metrics => vec![(http, routes(true, true))],
        (http, metrics) => {
            let http = http.map(|address| (address, routes(true, false)));
            let metrics = metrics.map(|address| (address, routes(false, true)));
            http.into_iter().chain(metrics).collect()
        }
    }
}

/// Detects changes of the catalog and serves the new content. A change that cannot be served, or that breaks a valid
/// package, is reported, and the previous content is kept.
async fn follow(plan: Plan, directory: PathBuf, interval: Duration, current: Current) {
    let plan = Plan { enforce: false, ..plan };
    let mut known = Stamp::read(&directory);
    let mut pending = known;
    loop {
        tokio::time::sleep(interval).await;
        let stamp = Stamp::read(&directory);
        // A change is read only after the files have been stable, because a copy in progress changes all the time.
        if stamp == known || stamp != pending {
            pending = stamp;
            continue;
        }
        known = stamp;
        let opening = tokio::task::spawn_blocking({
            let (plan, directory) = (plan.clone(), directory.clone());
            move || plan.open(&directory)
        });
        match opening.await {
            Ok(Ok((index, _))) => match newly_broken(&index, &current) {
                None => {
                    note!("the catalog has changed");
                    take_up(index, &current, &plan.metrics);
                }
                Some((package, message)) => {
                    plan.metrics.index_loaded(IndexLoad::Failed);
                    eprintln!("the catalog has changed and breaks {package}; still serving the old content: {message}");
                }
            },
            Ok(Err(error)) => {
                eprintln!("the catalog has changed and cannot be served; still serving the old content: {error:#}");
            }
            Err(error) => eprintln!("reading the changed catalog failed: {error}"),
        }
    }
}

/// The first package that is wrong in an index and was not in the one that is served.
fn newly_broken(index: &Index, current: &Current) -> Option<(String, String)> {
    let served = current.get();
    let known = served.iter().flat_map(|served| served.broken());
    let known: Vec<&str> = known.map(|broken| broken.package.as_str()).collect();
    let new = index
        .broken()
        .iter()
        .find(|broken| !known.contains(&broken.package.as_str()))?;
    Some((new.package.clone(), new.message.clone()))
}

/// Ends with SIGTERM or SIGINT.
async fn stop_signal() {
    crate::signals::interrupted().await;
    note!("stopping; open calls may finish");
}
