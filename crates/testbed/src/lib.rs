//! A real Kubernetes control plane for tests: etcd, kube-apiserver and kube-controller-manager as processes on
//! loopback and free ports, as an ordinary user, and on request the two operators of the Operator Lifecycle Manager (feature
//! `olm`).
//!
//! It has no node. A small helper marks pods that controllers create as scheduled, running and ready
//! ([`Options::pods_become_ready`]). Nothing else is simulated. Behavior that needs containers (images, probes,
//! networks, pod security at run time) requires a test on a real node.
//!
//! ```no_run
//! # async fn example() -> Result<(), kube_testbed::Error> {
//! use kube_testbed::{ControlPlane, Options};
//!
//! let control_plane = ControlPlane::start(Options::default().without_controllers()).await?;
//! let client = control_plane.client().await?;
//! println!("KUBECONFIG={}", control_plane.kubeconfig().display());
//! # drop(client);
//! # Ok(())
//! # }
//! ```
//!
//! All processes end when the handle is dropped, and also when the test process panics, is interrupted or killed: each
//! process is bound by a pipe to this one. Several control planes may run in parallel. Start one for each test binary
//! or each test, as isolation requires. On two cores one starts in 2.7 seconds without controllers, with about 310 MiB,
//! and in 3.1 seconds with them, with 420 MiB (medians of 12; the longest took 3.6). OLM adds to that.
//!
//! `kube-testbed download` installs etcd and kube-apiserver. [`tools`] documents the search path for programs.

mod access;
mod api_server;
mod audit;
mod crash;
mod definitions;
#[cfg(feature = "download")]
pub mod download;
mod error;
pub mod faults;
#[cfg(feature = "olm")]
mod olm;
mod pki;
mod pods;
mod process;
pub mod tools;
mod webhooks;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use audit::{AuditEvent, AuditObject, AuditStatus, AuditUser, Right};
pub use crash::Server;
pub use error::Error;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use webhooks::LocalWebhooks;

use process::{Janitor, Process};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadMe;

/// Components to start, in addition to etcd, kube-apiserver and kube-controller-manager.
#[derive(Debug, Clone)]
pub struct Options {
    controllers: bool,
    #[cfg(feature = "olm")]
    olm: bool,
    audit: bool,
    pods_become_ready: bool,
    waiting_images: HashMap<String, &'static str>,
    api_server_arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: true,
            #[cfg(feature = "olm")]
            olm: false,
            audit: false,
            pods_become_ready: true,
            waiting_images: HashMap::new(),
            api_server_arguments: Vec::new(),
        }
    }
}

impl Options {
    /// Only etcd and kube-apiserver: starts faster and needs only the programs that `setup-envtest` downloads. No
    /// controllers run: Deployments create no pods, dependents of deleted owners remain, namespaces are not emptied,
    /// and service accounts exist only if a test creates them. OLM needs the controllers.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.controllers = false;
        #[cfg(feature = "olm")]
        {
            self.olm = false;
        }
        self
    }

    /// Adds OLM: its custom resource definitions, the namespaces `olm` and `operators` with their OperatorGroups, and
    /// the `olm` and `catalog` operators as processes. Catalogs are reached by `spec.address`, bundles must be served
    /// inline (without an image): no node could run a catalog pod or an unpack job.
    ///
    /// Both operators listen for health checks on a port that cannot be changed (8080 and 8443, all addresses). When
    /// another control plane on this machine uses the port, they run without it. Nothing here depends on it.
    #[cfg(feature = "olm")]
    #[must_use]
    pub fn with_olm(mut self) -> Self {
        (self.controllers, self.olm) = (true, true);
        self
    }

    /// Writes one audit event for each request (level Metadata), to be read with [`ControlPlane::audit_events`].
    #[must_use]
    pub fn with_audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// Returns true if pods are bound to the simulated node and marked running and ready (the default). Otherwise they
    /// stay Pending until the test writes their status.
    #[must_use]
    pub fn pods_become_ready(mut self, yes: bool) -> Self {
        self.pods_become_ready = yes;
        self
    }

    /// Pods with a container of this image stay at `ImagePullBackOff`, as on a node that cannot pull it.
    #[must_use]
    pub fn unavailable_image(mut self, image: impl Into<String>) -> Self {
        self.waiting_images.insert(image.into(), "ImagePullBackOff");
        self
    }

    /// Pods with a container of this image stay at `ContainerCreating`, as while a node pulls it.
    #[must_use]
    pub fn slow_image(mut self, image: impl Into<String>) -> Self {
        self.waiting_images.insert(image.into(), "ContainerCreating");
        self
    }

    /// A further argument of kube-apiserver, as `--name=value`.
    #[must_use]
    pub fn api_server_argument(mut self, argument: impl Into<String>) -> Self {
        self.api_server_arguments.push(argument.into());
        self
    }
}

/// A running control plane. Dropping it ends every process and removes its state.
#[derive(Debug)]
pub struct ControlPlane {
    // Fields drop in this order: the helper before the server it uses, the directory after all processes that write to
    // it.
    _pods: Option<pods::Helper>,
    processes: tokio::sync::Mutex<Vec<Process>>,
    access: access::Access,
    audit_log: Option<PathBuf>,
    _janitor: Janitor,
    _directory: Option<tempfile::TempDir>,
}

impl ControlPlane {
    /// Starts the processes and waits until they serve: the API server is ready, the controller manager, if there is
    /// one, has created the default service account, and with OLM its CRDs are established and its OperatorGroup is
    /// resolved.
    ///
    /// Environment: [`tools`] lists the variables for programs. `KUBE_TESTBED_KEEP` with any value keeps the state
    /// directory with all logs and logs its path at info level.
    ///
    /// # Errors
    /// A missing program (with the command that builds it), a process that exited or did not become ready in time (with
    /// the last lines of its log), or a request that the server rejected.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let programs = tools::Programs::locate(&options)?;
        let directory = tempfile::Builder::new()
            .prefix("kube-testbed-")
            .tempdir()
            .map_err(|source| Error::Io {
                what: "create a directory for the control plane's state",
                path: std::env::temp_dir(),
                source,
            })?;
        let root = directory.path().to_owned();
        let janitor = if keep_state() {
            Janitor::none()
        } else {
            Janitor::watch(&root)?
        };
        let pki = pki::Pki::generate(&root.join("pki"))?;

        let mut processes = Vec::new();
        let server = api_server::start(&programs, &root, &pki, &options, &mut processes).await?;
        if let Some(program) = &programs.kube_controller_manager {
            api_server::start_controller_manager(program, &root, &pki, &server, &mut processes).await?;
        }
        let helper = match options.pods_become_ready {
            true => Some(pods::Helper::start(server.access.config().await?, options.waiting_images.clone()).await?),
            false => None,
        };
        #[cfg(feature = "olm")]
        if options.olm {
            olm::start(&programs, &root, &pki, &server.access, &mut processes).await?;
        }
        let directory = if keep_state() {
            // Outside of the macro, which does not evaluate its arguments without a subscriber.
            let folder = directory.keep();
            tracing::info!(folder = %folder.display(), "keeping control plane state");
            None
        } else {
            Some(directory)
        };
        Ok(Self {
            _pods: helper,
            processes: processes.into(),
            access: server.access,
            audit_log: server.audit_log,
            _janitor: janitor,
            _directory: directory,
        })
    }

    /// The administrator's kubeconfig file (group `system:masters`).
    pub fn kubeconfig(&self) -> &Path {
        self.access.kubeconfig()
    }

    /// The server's URL, `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.access.url()
    }

    /// A new administrator's client. A client belongs to the runtime that created it, so each `#[tokio::test]` needs a
    /// separate one.
    ///
    /// # Errors
    /// When the kubeconfig was changed on disk.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        self.access.client().await
    }

    /// Creates or updates custom resource definitions, and waits until the API server serves each of their versions.
    ///
    /// # Errors
    /// A definition that the API server rejects, or does not serve within half a minute (with the reason from its
    /// status).
    pub async fn install(&self, definitions: impl IntoIterator<Item = CustomResourceDefinition>) -> Result<(), Error> {
        definitions::install(&self.client().await?, definitions).await
    }

    /// Makes the API server call the webhooks of a process on this machine. `objects` are webhook configurations and custom
    /// resource definitions with a conversion webhook, in the form for a cluster. Their references to Services are
    /// replaced by [an address](LocalWebhooks::address) with [a certificate](LocalWebhooks::certificates) for the process.
    ///
    /// # Errors
    /// An object of another kind, or one that the API server rejects.
    pub async fn install_webhooks(
        &self,
        objects: impl IntoIterator<Item = serde_json::Value>,
    ) -> Result<LocalWebhooks, Error> {
        webhooks::install(&self.client().await?, objects.into_iter().collect()).await
    }

    /// The administrator's client configuration.
    ///
    /// # Errors
    /// When the kubeconfig was changed on disk.
    pub async fn config(&self) -> Result<kube::Config, Error> {
        self.access.config().await
    }

    /// A kubeconfig file that authenticates only as a ServiceAccount, by a token from the TokenRequest API (valid one
    /// hour). `namespace` becomes the context's namespace. A process on this machine then has exactly the permissions
    /// of the account's pods.
    ///
    /// # Errors
    /// When the ServiceAccount does not exist.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        self.access.service_account_kubeconfig(namespace, name).await
    }

    /// A proxy in front of the API server that injects faults. `seed` makes random decisions reproducible. Requests are
    /// those of the user in the kubeconfig that is passed to
    /// [`FaultProxy::kubeconfig`](faults::FaultProxy::kubeconfig).
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn faults(&self, seed: u64) -> Result<faults::FaultProxy, Error> {
        let mut config = self.access.config().await?;
        // Requests keep the credentials of the client under test.
        config.auth_info = kube::config::AuthInfo::default();
        faults::FaultProxy::start(config, false, seed)
    }

    /// As [`faults`](Self::faults), but every request is sent as the account in `kubeconfig`: for Go clients, which
    /// send no credentials over plain HTTP.
    ///
    /// # Errors
    /// When `kubeconfig` cannot be read, or the proxy cannot listen.
    pub async fn faults_as(&self, kubeconfig: &Path, seed: u64) -> Result<faults::FaultProxy, Error> {
        let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig)?;
        let options = kube::config::KubeConfigOptions::default();
        let config = access::config(kubeconfig, &options).await?;
        faults::FaultProxy::start(config, true, seed)
    }

    /// The file to which the API server appends audit events as JSON lines. `None` without [`Options::with_audit`].
    pub fn audit_log(&self) -> Option<&Path> {
        self.audit_log.as_deref()
    }

    /// All completed requests in order. Watches appear twice: at stage `ResponseStarted` when they open, and at
    /// `ResponseComplete` when they end.
    ///
    /// # Errors
    /// Without [`Options::with_audit`], or when the log cannot be read.
    pub fn audit_events(&self) -> Result<Vec<AuditEvent>, Error> {
        audit::read(self.audit_log().ok_or(Error::NoAudit)?)
    }

    /// Requests of a user so far, such as `system:serviceaccount:NAMESPACE:NAME`: compare their
    /// [permissions](AuditEvent::right) with the granted ones.
    ///
    /// # Errors
    /// As [`Self::audit_events`].
    pub fn requests_of(&self, user: &str) -> Result<Vec<AuditEvent>, Error> {
        let mut events = self.audit_events()?;
        events.retain(|event| event.user.username == user);
        Ok(events)
    }

    /// Checks that every process that was started still runs.
    ///
    /// # Errors
    /// The first process that exited, with the last lines of its log.
    pub fn check(&mut self) -> Result<(), Error> {
        self.processes.get_mut().iter_mut().try_for_each(Process::check)
    }

    /// The last lines of each process's log, for a failed test to print.
    pub fn log_tails(&self) -> String {
        match self.processes.try_lock() {
            Ok(processes) => processes.iter().map(Process::log_tail).collect(),
            Err(_) => "a server is being started again".to_owned(),
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // In reverse order of start: clients before the server, the server before its storage.
        while let Some(process) = self.processes.get_mut().pop() {
            drop(process);
        }
    }
}

fn keep_state() -> bool {
    std::env::var_os("KUBE_TESTBED_KEEP").is_some()
}
