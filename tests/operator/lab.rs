//! A namespace, an operator process and tools to inspect both.
use std::{
    fs::File,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
        events::v1::Event,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::wait,
};
use kube_manager::reconcile::{Grant, Scope};
use kube_testbed::{AuditEvent, ControlPlane, Options, faults::FaultProxy};
use memcached_operator::{
    api::v1alpha1::{Memcached, Phase},
    controller::grants,
    operand,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// An image that the simulated node cannot pull.
pub const UNAVAILABLE: &str = "registry.invalid/no/such:image";

/// An image whose pull does not end.
pub const SLOW: &str = "registry.invalid/slow:image";
/// The operand image in the operators' environment.
pub const IMAGE: &str = "registry.example.com:5000/library/memcached:1.6.39";
/// Name of the operator's ServiceAccount.
pub const ACCOUNT: &str = "memcached-operator";

/// The definition that is shipped.
const DEFINITION: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/config/crd/bases/cache.example.com_memcacheds.yaml"
);

static CONTROL_PLANE: OnceCell<ControlPlane> = OnceCell::const_new();

/// One whose servers tests crash: no other test uses it.
static FRAGILE: OnceCell<ControlPlane> = OnceCell::const_new();

async fn fragile() -> &'static ControlPlane {
    FRAGILE
        .get_or_init(|| async {
            let control_plane = ControlPlane::start(Options::default()).await.unwrap();
            define(&control_plane).await;
            control_plane
        })
        .await
}

async fn control_plane() -> &'static ControlPlane {
    CONTROL_PLANE
        .get_or_init(|| async {
            let options = Options::default()
                .with_audit()
                .unavailable_image(UNAVAILABLE)
                .slow_image(SLOW)
                // As on OpenShift: who sets an owner reference that blocks deletion needs the right to the finalizers.
                .api_server_argument("--enable-admission-plugins=OwnerReferencesPermissionEnforcement");
            if crate::WITH_OLM {
                return ControlPlane::start(options.with_olm()).await.unwrap();
            }
            let control_plane = ControlPlane::start(options).await.unwrap();
            define(&control_plane).await;
            control_plane
        })
        .await
}

/// Installs the CustomResourceDefinition and waits until the API server and its admission plugins serve it.
async fn define(control_plane: &ControlPlane) {
    let client = &control_plane.client().await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let text = std::fs::read_to_string(DEFINITION).unwrap();
    let definition: CustomResourceDefinition = serde_yaml::from_str(&text).unwrap();
    let definition = definitions.create(&PostParams::default(), &definition).await.unwrap();
    eventually("the definition is established", async || {
        let found = definitions.get(&definition.name_any()).await.unwrap();
        let conditions = found.status.unwrap_or_default().conditions.unwrap_or_default();
        conditions
            .iter()
            .any(|known| known.type_ == "Established" && known.status == "True")
            .then_some(())
    })
    .await;
    // The admission plugin discovers new kinds every few seconds and rejects owners of unknown kinds.
    let role = json!({ "metadata": { "name": "probe" }, "rules": [
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"] },
        { "apiGroups": ["cache.example.com"], "resources": ["memcacheds/finalizers"], "verbs": ["update"] },
    ] });
    create::<ClusterRole>(&Api::all(client.clone()), role).await;
    let binding = json!({ "metadata": { "name": "probe" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "probe" },
        "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": "default" }] });
    create::<ClusterRoleBinding>(&Api::all(client.clone()), binding).await;
    let path = control_plane
        .service_account_kubeconfig("default", "default")
        .await
        .unwrap();
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    known_to_admission(&Client::try_from(config).unwrap()).await;
}

/// Waits until `client`, which is not an administrator, may create an object with an owner reference to a Memcached that
/// blocks its deletion.
async fn known_to_admission(client: &Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    eventually("the admission plugin has the kind", async || {
        let map = json!({ "metadata": { "generateName": "probe-", "ownerReferences": [{
            "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "name": "none", "uid": "none",
            "blockOwnerDeletion": true, "controller": true,
        }] } });
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        maps.create(&dry, &serde_json::from_value(map).unwrap())
            .await
            .ok()
            .map(drop)
    })
    .await;
}

/// Creates the object that `value` describes.
pub async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Resource + DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(value).unwrap())
        .await
        .unwrap()
}

/// How long tests wait for something that must happen. Long, since other tests may occupy the processors.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Repeats `probe` until it has an answer. Fails after [`LIMIT`].
pub async fn eventually<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    within(LIMIT, what, probe).await
}

/// Repeats `probe` until it has an answer. Fails after `limit`.
pub async fn within<T>(limit: Duration, what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A namespace of a test's own, with a ServiceAccount for its operator.
#[derive(Clone)]
pub struct Lab {
    /// The administrator's client.
    pub client: Client,
    /// The namespace.
    pub namespace: String,
    plane: &'static ControlPlane,
}

impl Lab {
    /// The namespace `name`, in which the operator's ServiceAccount has all permissions in the table.
    pub async fn new(name: &str) -> Self {
        Self::with_grants(name, &grants()).await
    }

    /// The namespace `name`, in which the operator's ServiceAccount has the permissions `grants`.
    pub async fn with_grants(name: &str, grants: &[Grant]) -> Self {
        Self::on(control_plane().await, name, grants).await
    }

    /// As [`new`](Self::new), on the control plane whose servers crash.
    pub async fn fragile(name: &str) -> Self {
        Self::on(fragile().await, name, &grants()).await
    }

    /// A control plane without the helper that schedules pods.
    pub async fn unscheduled() -> ControlPlane {
        Self::plane_with(Options::default().pods_become_ready(false)).await
    }

    /// A control plane with these options and the CustomResourceDefinition.
    pub async fn plane_with(options: Options) -> ControlPlane {
        let control_plane = ControlPlane::start(options).await.unwrap();
        define(&control_plane).await;
        control_plane
    }

    /// As [`new`](Self::new), on this control plane.
    pub async fn on_plane(plane: &'static ControlPlane, name: &str) -> Self {
        Self::on(plane, name, &grants()).await
    }

    async fn on(plane: &'static ControlPlane, name: &str, grants: &[Grant]) -> Self {
        let lab = Self {
            client: plane.client().await.unwrap(),
            namespace: name.to_owned(),
            plane,
        };
        create::<Namespace>(&Api::all(lab.client.clone()), json!({ "metadata": { "name": name } })).await;
        create::<ServiceAccount>(&lab.api(), json!({ "metadata": { "name": ACCOUNT } })).await;
        create::<Role>(
            &lab.api(),
            json!({ "metadata": { "name": ACCOUNT }, "rules": rules(&in_namespaces(grants)) }),
        )
        .await;
        let cluster: Vec<Grant> = grants
            .iter()
            .filter(|grant| grant.scope == Scope::Cluster)
            .cloned()
            .collect();
        lab.grant("cluster", &cluster).await;
        create::<RoleBinding>(
            &lab.api(),
            json!({ "metadata": { "name": ACCOUNT },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT },
            "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": name }] }),
        )
        .await;
        lab
    }

    /// A namespace without anything of an operator in it.
    pub async fn bare(name: &str) -> Self {
        let lab = Self::existing(name).await;
        create::<Namespace>(&Api::all(lab.client.clone()), json!({ "metadata": { "name": name } })).await;
        lab
    }

    /// A namespace that is there already.
    pub async fn existing(name: &str) -> Self {
        let plane = control_plane().await;
        Self {
            client: plane.client().await.unwrap(),
            namespace: name.to_owned(),
            plane,
        }
    }

    /// Grants the operator's ServiceAccount its permissions in all namespaces.
    pub async fn grant_everywhere(&self) {
        self.grant("everywhere", &in_namespaces(&grants())).await;
    }

    /// Grants the operator's ServiceAccount permissions in the cluster.
    async fn grant(&self, what: &str, grants: &[Grant]) {
        let name = format!("{}-{ACCOUNT}-{what}", self.namespace);
        let role = json!({ "metadata": { "name": name }, "rules": rules(grants) });
        create::<ClusterRole>(&Api::all(self.client.clone()), role).await;
        let binding = json!({ "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace }] });
        create::<ClusterRoleBinding>(&Api::all(self.client.clone()), binding).await;
    }

    /// Objects of kind `K` in the lab's namespace.
    pub fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// An operator that watches the lab's namespace.
    pub async fn operator(&self) -> Operator {
        self.operator_with(&[], &[]).await
    }

    /// An operator with more arguments and other variables. An empty variable is not set.
    pub async fn operator_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Operator {
        let operator = self.start(arguments, variables).await;
        operator.ready().await;
        operator
    }

    /// As [`operator_with`](Self::operator_with), without waiting until it is ready.
    pub async fn start(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Operator {
        let kubeconfig = self.kubeconfig(ACCOUNT).await;
        Operator::start(&kubeconfig, &self.namespace, arguments, variables)
    }

    /// The control plane.
    pub fn plane(&self) -> &'static ControlPlane {
        self.plane
    }

    /// A kubeconfig of the ServiceAccount `account`, as soon as the API server gives one.
    async fn kubeconfig(&self, account: &str) -> PathBuf {
        eventually(&format!("a token of {account}"), async || {
            let path = self.plane.service_account_kubeconfig(&self.namespace, account).await;
            path.ok()
        })
        .await
    }

    /// A proxy in front of the API server that makes it fail.
    pub async fn faults(&self, seed: u64) -> FaultProxy {
        self.plane.faults(seed).await.unwrap()
    }

    /// As [`start`](Self::start), for an operator that reaches the API server through `proxy`.
    pub async fn start_through(&self, proxy: &FaultProxy, arguments: &[&str], variables: &[(&str, &str)]) -> Operator {
        let kubeconfig = self.kubeconfig(ACCOUNT).await;
        Operator::start(
            &proxy.kubeconfig(&kubeconfig).unwrap(),
            &self.namespace,
            arguments,
            variables,
        )
    }

    /// As [`operator_with`](Self::operator_with), for an operator that reaches the API server through `proxy`.
    pub async fn operator_through(
        &self,
        proxy: &FaultProxy,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Operator {
        let operator = self.start_through(proxy, arguments, variables).await;
        operator.ready().await;
        operator
    }

    /// Creates the Memcached `name`.
    pub async fn memcached(&self, name: &str, spec: Value) -> Memcached {
        let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
            "metadata": { "name": name }, "spec": spec });
        create(&self.api(), object).await
    }

    /// Changes the spec of the Memcached `name`.
    pub async fn change(&self, name: &str, spec: Value) -> Memcached {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api::<Memcached>()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// Deletes the Memcached `name`.
    pub async fn delete(&self, name: &str) {
        let api = self.api::<Memcached>();
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the Memcached `name` is deleted.
    pub async fn gone(&self, name: &str) {
        self.observe(name, "gone", |object: Option<&Memcached>| object.is_none())
            .await;
    }

    /// Watches the Memcached `name` until the condition is met and returns the current object. Fails after [`LIMIT`].
    async fn observe(&self, name: &str, what: &str, is_met: impl wait::Condition<Memcached>) -> Option<Memcached> {
        let seen = wait::await_condition(self.api::<Memcached>(), name, is_met);
        if let Ok(seen) = tokio::time::timeout(LIMIT, seen).await {
            return seen.unwrap();
        }
        let now = self.api::<Memcached>().get_opt(name).await.unwrap();
        panic!("{name} is not {what} within {LIMIT:?}: {now:?}");
    }

    /// Waits until the Memcached `name` runs as its spec requires.
    pub async fn running(&self, name: &str) -> Memcached {
        self.reaches(name, Phase::Running).await
    }

    /// Waits until the Memcached `name` is in `phase` with its current spec.
    pub async fn reaches(&self, name: &str, phase: Phase) -> Memcached {
        let is_reached = |object: Option<&Memcached>| {
            object.is_some_and(|object| {
                let status = object.status.clone().unwrap_or_default();
                status.phase == Some(phase) && status.observed_generation == object.metadata.generation
            })
        };
        let object = self.observe(name, &format!("{phase:?}"), is_reached).await;
        object.unwrap()
    }

    /// Names of the pods of the Memcached `name` that are not being deleted, sorted.
    pub async fn pods(&self, name: &str) -> Vec<String> {
        let selector = ListParams::default().labels(&format!("{}={name}", operand::OWNER));
        let pods = self.api::<Pod>().list(&selector).await.unwrap();
        let mut names: Vec<String> = pods
            .iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .map(ResourceExt::name_any)
            .collect();
        names.sort();
        names
    }

    /// Waits for an event about `name` with this reason and returns its text.
    pub async fn event(&self, name: &str, reason: &str) -> Event {
        eventually(&format!("event {reason} about {name}"), async || {
            let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
            events.items.into_iter().find(|event| {
                let regarding = event.regarding.clone().unwrap_or_default();
                regarding.name.as_deref() == Some(name)
                    && regarding.kind.as_deref() == Some("Memcached")
                    && event.reason.as_deref() == Some(reason)
            })
        })
        .await
    }

    /// A token of the ServiceAccount `account` of the lab's namespace.
    pub async fn token(&self, account: &str) -> String {
        let path = self.kubeconfig(account).await;
        let kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned()
    }

    /// Lets the ServiceAccount `account` of the lab's namespace read metrics.
    pub async fn grant_metrics(&self, account: &str) {
        let name = format!("{}-metrics-reader", self.namespace);
        let rules = json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]);
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        create::<ClusterRole>(&Api::all(self.client.clone()), role).await;
        let binding = json!({ "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": self.namespace }] });
        create::<ClusterRoleBinding>(&Api::all(self.client.clone()), binding).await;
    }

    /// All requests from the lab's operators to the API server so far.
    pub async fn requests(&self) -> Vec<AuditEvent> {
        self.requests_of(ACCOUNT).await
    }

    /// All requests from the ServiceAccount `account` in the lab's namespace to the API server so far.
    pub async fn requests_of(&self, account: &str) -> Vec<AuditEvent> {
        let user = format!("system:serviceaccount:{}:{account}", self.namespace);
        self.plane.requests_of(&user).unwrap()
    }

    /// An operator with these arguments and variables and no others, with the kubeconfig of a user. It may not be ready yet.
    pub fn run_by_user(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Operator {
        Operator::spawn(|command| {
            command
                .args(arguments)
                .envs(variables.iter().copied())
                .env("KUBECONFIG", self.plane.kubeconfig());
        })
    }

    /// An operator with these arguments and variables and no others, as the ServiceAccount `account`.
    pub async fn run_as(&self, account: &str, arguments: &[String], variables: &[(String, String)]) -> Operator {
        let kubeconfig = self.kubeconfig(account).await;
        let operator = Operator::spawn(|command| {
            command
                .args(arguments)
                .envs(variables.iter().cloned())
                .env("KUBECONFIG", kubeconfig);
        });
        operator.ready().await;
        operator
    }
}

/// The grants on objects that have a namespace.
pub fn in_namespaces(grants: &[Grant]) -> Vec<Grant> {
    grants
        .iter()
        .filter(|grant| grant.scope != Scope::Cluster)
        .cloned()
        .collect()
}

/// The rules of a role with these grants.
fn rules(grants: &[Grant]) -> Value {
    let rule = |grant: &Grant| {
        json!({ "apiGroups": [grant.group], "resources": [grant.resource], "resourceNames": grant.resource_names,
            "verbs": grant.verbs })
    };
    grants.iter().map(rule).collect()
}

/// The condition `type_` of a Memcached.
pub fn condition(memcached: &Memcached, type_: &str) -> Condition {
    let status = memcached.status.clone().unwrap_or_default();
    status
        .conditions
        .into_iter()
        .find(|known| known.type_ == type_)
        .unwrap()
}

/// The JSON of an object.
pub fn value<K: serde::Serialize>(object: &K) -> Value {
    serde_json::to_value(object).unwrap()
}

/// The template's image of a Deployment.
pub fn image(deployment: &Deployment) -> String {
    deployment
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap()
        .containers[0]
        .image
        .clone()
        .unwrap()
}

/// A running operator. Killed on drop.
pub struct Operator {
    process: Child,
    folder: TempDir,
}

impl Operator {
    fn start(kubeconfig: &PathBuf, namespace: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let is_secure = arguments.contains(&"--metrics-secure");
        Self::spawn(|command| {
            command
                .args([
                    "--health-probe-bind-address=127.0.0.1:0",
                    "--metrics-bind-address=127.0.0.1:0",
                ])
                .args((!is_secure).then_some("--metrics-secure=false"))
                .args(arguments)
                .env("KUBECONFIG", kubeconfig)
                .env("WATCH_NAMESPACE", namespace)
                .env("POD_NAMESPACE", namespace)
                .env("MEMCACHED_IMAGE", IMAGE);
            for (name, text) in variables {
                match *text {
                    "" => command.env_remove(name),
                    text => command.env(name, text),
                };
            }
        })
    }

    fn spawn(prepare: impl FnOnce(&mut Command)) -> Self {
        let folder = TempDir::new().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        // A run of hours goes on with one program while another is built.
        let program = std::env::var_os("MEMCACHED_OPERATOR");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_memcached-operator").into()));
        command
            .arg("--log-level=debug,hyper=info,kube=info,tower=info,rustls=info")
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        prepare(&mut command);
        Self {
            process: command.spawn().unwrap(),
            folder,
        }
    }

    /// Everything that it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Where its server `name` listens.
    pub async fn address(&self, name: &str) -> SocketAddr {
        eventually(&format!("the address of the {name} server"), async || {
            self.log().lines().find_map(|line| {
                let line: Value = serde_json::from_str(line).ok()?;
                (line["message"] == "listening" && line["server"] == name)
                    .then(|| line["address"].as_str()?.parse().ok())?
            })
        })
        .await
    }

    /// The response of its server `name` to GET `path`: status code and body.
    pub async fn get(&self, name: &str, path: &str) -> (u16, String) {
        self.try_get(name, path).await.unwrap()
    }

    /// As [`get`](Self::get), but the operator may end during the request.
    pub async fn try_get(&self, name: &str, path: &str) -> std::io::Result<(u16, String)> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(self.address(name).await).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: operator\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        let (head, body) = response
            .split_once("\r\n\r\n")
            .ok_or(std::io::ErrorKind::UnexpectedEof)?;
        Ok((head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned()))
    }

    /// The response of its metrics server over TLS to a request with `token`: status code and body.
    pub async fn secure(&self, method: http::Method, path: &str, token: &str, body: &str) -> (u16, String) {
        let client = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .no_proxy()
            .build()
            .unwrap();
        let url = format!("https://{}{path}", self.address("metrics").await);
        let request = client.request(method, url).bearer_auth(token).body(body.to_owned());
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Waits until it is ready.
    pub async fn ready(&self) {
        eventually("the operator is ready", async || {
            (self.get("probes", "/readyz").await.0 == 200).then_some(())
        })
        .await;
    }

    /// Waits until it has reconciled at least `count` times and has nothing to do.
    pub async fn idle(&self, count: u64) {
        eventually("the operator is idle", async || {
            let (_, text) = self.get("metrics", "/metrics").await;
            let sum = |name: &str| -> f64 {
                let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")));
                lines
                    .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
                    .sum()
            };
            let is_idle = sum("workqueue_depth") + sum("controller_runtime_active_workers") == 0.0;
            (is_idle && sum("controller_runtime_reconcile_total") >= count as f64).then_some(())
        })
        .await;
    }

    /// Sends SIGTERM and waits for the end.
    pub async fn terminate(mut self) -> (ExitStatus, String) {
        self.signal("TERM");
        let status = eventually("the operator ends", async || self.process.try_wait().unwrap()).await;
        (status, self.log())
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }

    /// Kills it, as when a node fails.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Sends it the signal `name`, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Its resident memory in KiB.
    pub fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("--- the operator's last lines, newest first ---\n{}", tail.join("\n"));
        }
    }
}
