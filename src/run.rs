//! Runs watches, leader election, workers and servers, and shuts them down.
use std::{sync::Arc, time::Duration};

use kube::Client;
use olmkit_manager::{
    access,
    backoff::Backoff,
    certificates::{self, Certificates},
    events::Publisher,
    explain,
    lease::{self, ApiStore, Election},
    metrics::Metrics,
    probes::{self, Readiness, Routes, Server},
    queue::WorkQueue,
    reviews::{ApiServer, Reviews},
    shutdown::CancellationToken,
    worker::{self, Limits},
};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    api::v1alpha1::PROGRESSING,
    controller::{
        self, Caches, Context, Instruments, Queue,
        contests::Contests,
        reconcile, report,
        slots::Slots,
        upgradeable::{self, Rollouts},
    },
    options::Options,
    permissions::{self, Scope},
    settings::Settings,
};

/// Name of the controller in metrics.
const CONTROLLER: &str = "memcached";

/// A reconcile sends at most about ten requests; one that takes longer than this is stuck.
const RECONCILE_LIMIT: Duration = Duration::from_secs(30);

/// Time for running reconciles to finish at shutdown. Together with releasing the lease and sending the last events this
/// stays below a termination grace period of ten seconds.
const DRAIN_LIMIT: Duration = Duration::from_secs(6);

/// Timeout for releasing the lease, and for sending the last events.
const SHUTDOWN_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the operator stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A port is in use.
    #[error(transparent)]
    Bind(#[from] probes::BindError),
    /// The certificate for metrics cannot be used.
    #[error(transparent)]
    Certificate(#[from] certificates::Error),
    /// Another replica leads, or may lead: this one must stop.
    #[error("leadership lost: exiting, to restart as a standby")]
    LeadershipLost,
    /// A task that should run forever ended.
    #[error("{0} ended unexpectedly")]
    Ended(&'static str),
}

/// Runs the operator until `stop` is cancelled.
///
/// # Errors
/// When a port is in use, or the lease is lost.
pub async fn run(
    client: Client,
    metrics: Metrics,
    options: Options,
    settings: Settings,
    stop: CancellationToken,
) -> Result<(), Error> {
    let readiness = Readiness::default();
    let mut servers = serve(&client, &options, &readiness, &metrics).await?;
    let concurrency = usize::from(options.max_concurrent_reconciles);
    let queue = WorkQueue::new(Backoff::default(), Some(metrics.queue(CONTROLLER)));
    // One tenant whose webhook hangs leaves workers to the others.
    let queue: Arc<Queue> = Arc::new(queue.with_share(concurrency * 3 / 4));
    let sampled = Arc::clone(&queue);
    metrics.sample_queue(CONTROLLER, move || sampled.unfinished());
    let caches = Caches::default();
    let instruments = Instruments {
        readiness: readiness.clone(),
        metrics: metrics.clone(),
    };
    let mut watches = controller::watches::start(&client, &options.watch_namespace, &caches, &queue, &instruments);
    let check = tokio::spawn(check_permissions(client.clone(), options.clone()));

    let identity = identity(&options);
    let (events, publishing) = Publisher::new(
        client.clone(),
        options.operator_name.clone(),
        identity.clone(),
        metrics.events_dropped(),
    );
    let publishing = tokio::spawn(publishing);
    let rollouts = Rollouts::default();
    let context = Arc::new(Context {
        client: client.clone(),
        settings,
        caches,
        queue: Arc::clone(&queue),
        readiness: readiness.clone(),
        contests: Contests::default(),
        slots: Slots::new(usize::from(options.max_rolling)),
        events,
        rollouts: rollouts.clone(),
    });
    let upgradeable = report_upgradeable(client.clone(), &options, rollouts);
    let work = {
        let (stop, metrics) = (stop.clone(), metrics.clone());
        async move {
            let limits = Limits {
                concurrency,
                time: RECONCILE_LIMIT,
            };
            resume(&context);
            let begin = begin_rollouts(Arc::clone(&context));
            let reconcile = move |key| reconcile(Arc::clone(&context), key);
            tokio::select! {
                () = worker::run(queue, limits, metrics.workers(CONTROLLER), stop, reconcile) => {}
                () = begin => {}
                () = upgradeable => {}
            }
        }
    };
    let result = tokio::select! {
        result = lead(client, &options, identity, &instruments, work, &stop) => result,
        _ = watches.join_next() => Err(Error::Ended("a watch")),
        Some(_) = servers.join_next() => Err(Error::Ended("a server")),
    };
    check.abort();
    // The context and with it the last publisher are dropped: the task sends the queued events and ends.
    if timeout(SHUTDOWN_STEP_TIMEOUT, publishing).await.is_err() {
        tracing::warn!("some events were not sent in time");
    }
    result
}

/// Marks the rollouts that an earlier leader began.
fn resume(context: &Context) {
    context.caches.memcacheds.for_each(|key, subject| {
        let progressing = subject
            .memcached()
            .and_then(|memcached| report::find(memcached, PROGRESSING));
        if progressing.is_some_and(|known| known.status == "True" && known.reason == report::ROLLING_OUT) {
            context.slots.resume(key);
        }
    });
}

/// Lets rollouts begin when every Memcached has been reconciled once. Never returns.
async fn begin_rollouts(context: Arc<Context>) {
    while !context.queue.caught_up() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for key in context.slots.open() {
        context.queue.add(key);
    }
    std::future::pending().await
}

/// Runs `work` while leading, or at once without leader election. Returns when `stop` is cancelled and the work is done,
/// or when leadership is lost.
///
/// The caches are filled before the election: a replica that cannot watch must not keep another from leading.
async fn lead(
    client: Client,
    options: &Options,
    identity: String,
    instruments: &Instruments,
    work: impl Future<Output = ()>,
    stop: &CancellationToken,
) -> Result<(), Error> {
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        () = await_synced(&instruments.readiness) => {}
    }
    if !options.leader_elect {
        return drain(work, stop).await;
    }
    let namespace = own_namespace(&client, options);
    let config = lease::Config::new(namespace, options.leader_election_id.clone(), identity);
    let leading = instruments.metrics.leading(&config.name);
    let mut election = Election::new(config.clone(), ApiStore::new(client, &config));
    tokio::select! {
        biased;
        () = stop.cancelled() => {
            release(&mut election).await;
            return Ok(());
        }
        () = election.acquire() => {}
    }
    leading.set(1);
    let result = tokio::select! {
        biased;
        // Hold the lease while the last reconciles finish.
        result = drain(work, stop) => result,
        () = election.hold() => Err(Error::LeadershipLost),
    };
    leading.set(0);
    if result.is_ok() {
        release(&mut election).await;
    }
    result
}

async fn release(election: &mut Election<ApiStore>) {
    if let Err(error) = election.release(SHUTDOWN_STEP_TIMEOUT).await {
        tracing::warn!(%error, "cannot release the lease; the next leader waits until it expires");
    }
}

/// Runs `work`, which ends after `stop` is cancelled; work that exceeds [`DRAIN_LIMIT`] is abandoned.
async fn drain(work: impl Future<Output = ()>, stop: &CancellationToken) -> Result<(), Error> {
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN_LIMIT).await;
    };
    tokio::select! {
        () = work => {}
        () = too_late => tracing::warn!("some reconciles did not finish in time"),
    }
    Ok(())
}

async fn serve(
    client: &Client,
    options: &Options,
    readiness: &Readiness,
    metrics: &Metrics,
) -> Result<JoinSet<()>, Error> {
    let mut servers = JoinSet::new();
    if let Some(address) = options.health_probe_bind_address {
        let server = Server::bind(address, Routes::Probes(readiness.clone())).await?;
        listening("probes", &server);
        servers.spawn(server.serve());
    }
    if let Some(address) = options.metrics_bind_address {
        let mut server = Server::bind(address, Routes::Metrics(metrics.clone())).await?;
        if options.metrics_secure {
            let certificates = certificates(options)?;
            let reviews = Reviews::new(ApiServer::new(client.clone()));
            server = server.with_tls(&certificates)?.with_reviews(reviews);
            servers.spawn(certificates.follow());
        }
        listening("metrics", &server);
        servers.spawn(server.serve());
    }
    Ok(servers)
}

fn listening(name: &str, server: &Server) {
    if let Ok(address) = server.address() {
        tracing::info!(server = name, %address, "listening");
    }
}

/// The certificate for metrics.
fn certificates(options: &Options) -> Result<Certificates, certificates::Error> {
    match &options.metrics_cert_path {
        Some(folder) => Certificates::from_files(
            folder.join(&options.metrics_cert_name),
            folder.join(&options.metrics_cert_key),
        ),
        None => Certificates::self_signed(&["localhost"]),
    }
}

/// Waits until all caches are synced: decisions based on some of the objects would be wrong.
async fn await_synced(readiness: &Readiness) {
    let mut rounds = 0u32;
    while !readiness.is_synced() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        rounds += 1;
        if rounds.is_multiple_of(1500) {
            tracing::warn!(waiting_for = ?readiness.waiting_for(), "waiting for caches to sync");
        }
    }
    match readiness.waiting_for() {
        refused if refused.is_empty() => tracing::info!("all caches synced"),
        refused => tracing::error!(
            ?refused,
            "caches synced but for some namespaces, which wait for permissions"
        ),
    }
}

/// Reports to OLM whether the operator may be upgraded, if OLM set an OperatorCondition. Never returns.
fn report_upgradeable(client: Client, options: &Options, rollouts: Rollouts) -> impl Future<Output = ()> + use<> {
    let name = options.operator_condition_name.clone().filter(|name| !name.is_empty());
    let namespace = own_namespace(&client, options);
    async move {
        match name {
            Some(name) => upgradeable::report(client, &namespace, &name, &rollouts).await,
            None => std::future::pending().await,
        }
    }
}

/// The namespace that the operator runs in.
fn own_namespace(client: &Client, options: &Options) -> String {
    let configured = options.leader_election_namespace.clone();
    configured.unwrap_or_else(|| client.default_namespace().to_owned())
}

/// Logs the permissions that the operator lacks.
async fn check_permissions(client: Client, options: Options) {
    let own = own_namespace(&client, &options);
    let mut reasons = Vec::new();
    for grant in permissions::grants() {
        let namespaces = match grant.scope {
            Scope::Own if !options.leader_elect => continue,
            Scope::Own => vec![Some(own.clone())],
            Scope::Watched => options.watch_namespace.scopes(),
        };
        for namespace in namespaces {
            for verb in grant.verbs {
                let need = access::Need {
                    group: grant.group.to_string(),
                    resource: grant.resource.to_string(),
                    subresource: grant.subresource.unwrap_or_default().to_owned(),
                    verb: verb.as_str().to_owned(),
                    // The only grant with a name is that of the Lease.
                    name: grant
                        .names
                        .first()
                        .map_or(String::new(), |_| options.leader_election_id.clone()),
                    namespace: namespace.clone().unwrap_or_default(),
                };
                reasons.push((need, grant.why));
            }
        }
    }
    let needs = reasons.iter().map(|(need, _)| need.clone()).collect();
    match access::missing(&client, needs).await {
        Ok(missing) if missing.is_empty() => tracing::debug!("all permissions granted"),
        Ok(missing) => {
            for (need, why) in reasons.iter().filter(|(need, _)| missing.contains(need)) {
                tracing::error!(missing = %need, needed_because = why, "missing permission");
            }
        }
        Err(error) => tracing::warn!(error = %explain::request(&error), "cannot check the permissions"),
    }
}

/// The identity of this process: the pod's name and a part that changes when the container restarts.
fn identity(options: &Options) -> String {
    let host = || {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|name| name.trim().to_owned())
    };
    let pod = options.pod_name.clone().or_else(host).filter(|name| !name.is_empty());
    let started = jiff::Timestamp::now().as_nanosecond();
    format!(
        "{}_{:x}-{:x}",
        pod.as_deref().unwrap_or("memcached-operator"),
        std::process::id(),
        started
    )
}
