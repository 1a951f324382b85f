//! Settings of a manager, and its start.
use std::{sync::Mutex, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_grants::{Grant, Scope};
use tokio::task::JoinSet;

use super::{Error, Manager, Setup, Work};
#[cfg(feature = "tls")]
use crate::{
    certificates::{Authorities, Certificates},
    reviews::{ApiServer, Reviews},
};
use crate::{
    connection,
    events::Publisher,
    lease,
    metrics::Metrics,
    options::Options,
    probes::{Readiness, Routes, Server},
    shutdown::{self, CancellationToken},
    tenure::Tenure,
    transport,
    worker::Limits,
};

/// A reconcile sends about ten requests. One that takes longer than this is stuck.
const RECONCILE_LIMIT: Duration = Duration::from_secs(30);

/// Settings of a [`Manager`].
#[must_use = "nothing happens before `start`"]
pub struct Builder {
    name: String,
    options: Options,
    client: Option<Client>,
    stop: Option<CancellationToken>,
    metrics: Metrics,
    grants: Vec<Grant>,
    election_id: Option<String>,
    reconcile: Duration,
    #[cfg(feature = "log")]
    level: Option<crate::log::Level>,
}

impl Builder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            options: Options::default(),
            client: None,
            stop: None,
            metrics: Metrics::new(),
            grants: Vec::new(),
            election_id: None,
            reconcile: RECONCILE_LIMIT,
            #[cfg(feature = "log")]
            level: None,
        }
    }

    /// The options that users of the operator set.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sends requests through `client` instead of one for the kubeconfig or ServiceAccount. It should have
    /// [time limits](transport::limited).
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Stops when `stop` is cancelled. Without it the manager listens for SIGTERM and SIGINT.
    pub fn stop(mut self, stop: CancellationToken) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Adds to `metrics`, which may hold metrics of the operator's own.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Name of the Lease unless `--leader-election-id` gives another. The operator's name otherwise.
    pub fn leader_election_id(mut self, id: impl Into<String>) -> Self {
        self.election_id = Some(id.into());
        self
    }

    /// Permissions that the operator needs beyond those of its controllers. Missing ones are logged at the start, with the reason.
    /// Those on Leases in the operator's namespace count only with leader election, those on reviews only if clients of the metrics are
    /// checked.
    pub fn requires(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.grants.extend(grants);
        self
    }

    /// A reconcile that takes longer is cancelled and counts as failed; 30 seconds otherwise.
    pub fn reconcile_limit(mut self, limit: Duration) -> Self {
        self.reconcile = limit;
        self
    }

    /// Lets accounts with the right to it read and change the log level at [`log::PATH`](crate::log::PATH) of the metrics
    /// server, if that serves TLS.
    #[cfg(feature = "log")]
    pub fn log_level(mut self, level: crate::log::Level) -> Self {
        self.level = Some(level);
        self
    }

    /// Connects to the API server's address, and listens.
    ///
    /// # Errors
    /// When there is no configuration of a cluster, a port is in use, or a certificate cannot be used.
    pub async fn start(self) -> Result<Manager, Error> {
        let stop = match &self.stop {
            Some(stop) => stop.clone(),
            None => shutdown::on_signal().map_err(Error::Signals)?,
        };
        let tenure = Tenure::default();
        let client = match &self.client {
            Some(client) => tenure.guard(client.clone()),
            None => self.connect(&tenure).await?,
        };
        let readiness = Readiness::default();
        let servers = self.serve(&client, &readiness).await?;
        let options = self.options;
        let namespace = options.leader_election_namespace.clone();
        let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        let identity = identity(&self.name, &options);
        let lease = options.leader_elect.then(|| {
            let name = options.leader_election_id.clone().or(self.election_id);
            lease::Config::new(&namespace, name.unwrap_or_else(|| self.name.clone()), &identity)
        });
        let published = CancellationToken::new();
        let (events, publishing) = Publisher::until(
            published.clone(),
            client.clone(),
            options.operator_name.clone().unwrap_or_else(|| self.name.clone()),
            identity.clone(),
            self.metrics.events_dropped(),
        );
        let drain = Duration::from_secs(options.graceful_shutdown_timeout);
        let grants = needed(with_election(self.grants), &options);
        #[cfg(feature = "olm")]
        let rollouts = crate::olm::Rollouts::default();
        #[allow(unused_mut)]
        let mut beside: Vec<Work> = Vec::new();
        #[cfg(feature = "olm")]
        if let Some(name) = options.operator_condition_name.clone().filter(|name| !name.is_empty()) {
            let (client, namespace, rollouts) = (client.clone(), namespace.clone(), rollouts.clone());
            beside.push(Box::pin(async move {
                crate::olm::report(client, &namespace, &name, &rollouts).await;
            }));
        }
        Ok(Manager {
            client,
            tenure,
            metrics: self.metrics,
            readiness,
            namespaces: options.watch_namespace,
            namespace,
            identity,
            events,
            publishing: tokio::spawn(publishing),
            published,
            lease,
            limits: Limits {
                concurrency: usize::from(options.max_concurrent_reconciles),
                time: self.reconcile,
                // The other half is for the reconciles that have begun.
                owed: drain / 2,
            },
            drain,
            closing: stop.child_token(),
            stop,
            setup: Mutex::new(Setup {
                grants,
                servers,
                beside,
                ..Setup::default()
            }),
            #[cfg(feature = "olm")]
            rollouts,
        })
    }

    /// A client with time limits for the configured cluster.
    async fn connect(&self, tenure: &Tenure) -> Result<Client, Error> {
        let mut config = match &self.options.kubeconfig {
            None => Config::infer()
                .await
                .map_err(|error| Error::NoCluster(Box::new(error)))?,
            Some(path) => {
                let failed = |source| Error::Kubeconfig {
                    path: path.clone(),
                    source: Box::new(source),
                };
                let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(kubeconfig, &options)
                    .await
                    .map_err(failed)?
            }
        };
        // The queue retries with a back-off per object, so that other objects do not wait.
        config.default_retry = false;
        let version = env!("CARGO_PKG_VERSION");
        connection::set_user_agent(&mut config, &format!("{} kube-manager/{version}", self.name));
        let server = config.cluster_url.to_string();
        let host = config
            .cluster_url
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        let limits = transport::Limits {
            event: Duration::from_secs(self.options.watch_timeout),
            ..transport::Limits::default()
        };
        let client = connection::client_within(config, tenure, limits, self.metrics.requests(&host));
        let client = client.map_err(|source| Error::Client {
            server: server.clone(),
            source: Box::new(source),
        })?;
        tracing::info!(operator = self.name, %server, namespaces = %self.options.watch_namespace, "starting");
        Ok(client)
    }

    async fn serve(&self, client: &Client, readiness: &Readiness) -> Result<JoinSet<()>, Error> {
        let mut servers = JoinSet::new();
        if let Some(address) = self.options.health_probe_bind_address {
            let server = Server::bind(address, Routes::Probes(readiness.clone())).await?;
            listening("probes", &server);
            servers.spawn(server.serve());
        }
        if let Some(address) = self.options.metrics_bind_address {
            let mut server = Server::bind(address, Routes::Metrics(self.metrics.clone())).await?;
            if self.options.metrics_secure {
                server = self.secure(server, client, &mut servers)?;
            }
            listening("metrics", &server);
            servers.spawn(server.serve());
        }
        Ok(servers)
    }

    /// TLS, and a check by the API server of who may read.
    #[cfg(feature = "tls")]
    fn secure(&self, server: Server, client: &Client, servers: &mut JoinSet<()>) -> Result<Server, Error> {
        let options = &self.options;
        let certificates = match &options.metrics_cert_path {
            Some(folder) => Certificates::from_files(
                folder.join(&options.metrics_cert_name),
                folder.join(&options.metrics_cert_key),
            )?,
            None => Certificates::self_signed(&["localhost"])?,
        };
        let reviews = Reviews::new(ApiServer::new(client.clone()));
        let authorities = options.metrics_client_ca_file.as_deref();
        let authorities = authorities.map(Authorities::from_file).transpose()?;
        let server = server.with_tls_for(&certificates, authorities.as_ref())?;
        let server = server.with_reviews(reviews);
        #[cfg(feature = "log")]
        let server = match &self.level {
            Some(level) => server.with_log_level(level.clone()),
            None => server,
        };
        servers.spawn(certificates.follow());
        Ok(server)
    }

    #[cfg(not(feature = "tls"))]
    #[allow(clippy::unused_self)]
    fn secure(&self, _: Server, _: &Client, _: &mut JoinSet<()>) -> Result<Server, Error> {
        Err(Error::NoTls)
    }
}

/// Adds the permissions for leader election, unless the operator lists them.
fn with_election(mut all: Vec<Grant>) -> Vec<Grant> {
    if !all.iter().any(is_of_election) {
        all.extend(Manager::grants());
    }
    all
}

fn is_of_election(grant: &Grant) -> bool {
    grant.scope == Scope::Own && grant.resource == "leases"
}

/// Drops the permissions that `options` make needless: for Leases without an election, and for reviews of metrics clients without
/// the check of them.
fn needed(mut all: Vec<Grant>, options: &Options) -> Vec<Grant> {
    if let Some(lease) = &options.leader_election_id {
        let named = all.iter_mut().filter(|grant| is_of_election(grant));
        let names = named.flat_map(|grant| &mut grant.resource_names);
        names.for_each(|name| name.clone_from(lease));
    }
    let reviews = options.metrics_secure && options.metrics_bind_address.is_some();
    all.retain(|grant| match (grant.scope, grant.resource.as_ref()) {
        _ if is_of_election(grant) => options.leader_elect,
        (Scope::Cluster, "tokenreviews" | "subjectaccessreviews") => reviews,
        _ => true,
    });
    all
}

fn listening(name: &str, server: &Server) {
    if let Ok(address) = server.address() {
        tracing::info!(server = name, %address, "listening");
    }
}

/// The identity of this process: the pod's name and a part that changes when the container restarts.
fn identity(name: &str, options: &Options) -> String {
    let host = || {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned())
    };
    let pod = options.pod_name.clone().or_else(host).filter(|name| !name.is_empty());
    let started = jiff::Timestamp::now().as_nanosecond();
    format!(
        "{}_{:x}-{started:x}",
        pod.as_deref().unwrap_or(name),
        std::process::id()
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{coordination::v1::Lease, core::v1::Secret};

    use super::*;

    #[test]
    fn the_election_is_checked_once() {
        assert_eq!(with_election(Vec::new()).len(), 1);
        let listed = Grant::of::<Lease>(Scope::Own, ["create", "get", "update"], "mine");
        assert_eq!(with_election(vec![listed.clone()]), [listed]);
    }

    #[test]
    fn leases_are_needed_for_an_election_only() {
        let table = vec![
            Grant::of::<Lease>(Scope::Own, ["get", "update"], "election").named(["mine"]),
            Grant::of::<Lease>(Scope::Watched, ["list"], "the objects"),
            Grant::of::<Secret>(Scope::Own, ["get"], "a key"),
        ];
        let with = |leader_elect| Options {
            leader_elect,
            leader_election_id: Some("other".to_owned()),
            ..Options::default()
        };
        let elected = needed(table.clone(), &with(true));
        assert_eq!(
            (elected.len(), elected[0].resource_names.as_slice()),
            (3, &["other".to_owned()][..])
        );
        let left: Vec<_> = needed(table, &with(false)).into_iter().map(|known| known.why).collect();
        assert_eq!(left, ["the objects", "a key"]);
    }
}
