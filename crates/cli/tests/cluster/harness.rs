//! A control plane with OLM, and the command run against it.
#![allow(dead_code)] // two test programs share it, and each uses a part

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use kube_testbed::{ControlPlane, Options};
use serde_json::{Value, json};

/// One control plane for one test binary's test.
pub struct Cluster {
    pub plane: ControlPlane,
    pub client: Client,
    pub folder: tempfile::TempDir,
    log: Mutex<Log>,
}

/// The command's answer.
pub struct Answer {
    pub json: Value,
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// The codes of the causes, errors and warnings.
    pub fn codes(&self) -> Vec<&str> {
        self.json
            .get("causes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|cause| cause["code"].as_str())
            .collect()
    }

    /// The codes of the errors.
    pub fn errors(&self) -> Vec<&str> {
        let causes = self.json.get("causes").and_then(Value::as_array).into_iter().flatten();
        causes
            .filter(|cause| cause["severity"] == "error")
            .filter_map(|cause| cause["code"].as_str())
            .collect()
    }

    /// The cause with that code.
    #[track_caller]
    pub fn cause(&self, code: &str) -> &Value {
        let found = self.json["causes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|cause| cause["code"] == code);
        found.unwrap_or_else(|| panic!("no cause {code}"))
    }

    /// Asserts that the flow ended well.
    #[track_caller]
    pub fn fine(self) -> Self {
        assert!(self.success, "{}", self.verdict());
        self
    }

    /// The result in short form.
    fn verdict(&self) -> String {
        let result = self.json.get("result").and_then(Value::as_str).unwrap_or("no result");
        let status = if self.success { "ok" } else { "failed" };
        format!("{status}: {result} {:?}", self.codes())
    }

    /// Summary for a failure after this command: its last lines of output and its causes, short enough for a truncated
    /// log.
    fn digest(&self) -> String {
        let mut digest = String::new();
        let talk: Vec<&str> = self.stderr.lines().collect();
        for line in talk.iter().skip(talk.len().saturating_sub(12)) {
            let _ = writeln!(digest, "  {}", cut(line, 200));
        }
        for cause in self.json.get("causes").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| cause.get(name).and_then(Value::as_str).unwrap_or_default();
            let object = cause
                .pointer("/object/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let _ = writeln!(digest, "  {} {object}: {}", text("code"), cut(text("message"), 300));
        }
        if self.json.is_null() {
            let _ = writeln!(digest, "  stdout: {}", cut(&self.stdout, 300));
        }
        let _ = write!(digest, "  {}", self.verdict());
        digest
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    let short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short + " …"
    } else {
        short
    }
}

/// The last lines of a failed test: a truncated log still names the scene, the command and the fault.
struct Log {
    scene: String,
    last: String,
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Log {
    /// From now on panics are remembered for the report.
    fn start() -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                before(panic);
                PANIC.with_borrow_mut(|text| *text = panic.to_string());
            }));
        });
        Log {
            scene: "(before the first scene)".into(),
            last: "(no command was run)".into(),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let ended = self
            .plane
            .check()
            .err()
            .map(|error| format!("{error}\n"))
            .unwrap_or_default();
        if let Ok(log) = self.log.lock() {
            let panic = PANIC.with_borrow(|text| cut(text, 2000));
            println!("\n== failed in: {}\n{ended}{}\n{panic}", log.scene, log.last);
        }
    }
}

impl Cluster {
    pub async fn start(options: Options) -> Self {
        let plane = ControlPlane::start(options).await.unwrap();
        let client = plane.client().await.unwrap();
        Cluster {
            plane,
            client,
            folder: tempfile::tempdir().unwrap(),
            log: Mutex::new(Log::start()),
        }
    }

    /// Begins a part of the test, which a failure names.
    pub fn scene(&self, name: &str) {
        println!("== {name}");
        self.log.lock().unwrap().scene = name.to_owned();
    }

    /// The `olmkit` command with the cluster's kubeconfig.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command
            .args(arguments)
            .env("KUBECONFIG", self.plane.kubeconfig())
            .env_remove("OLMKIT_HELPER_IMAGE")
            // As on many people's machines: a proxy, which is not for this cluster.
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
            .stdin(Stdio::null());
        command
    }

    /// Runs `olmkit` to its end.
    pub async fn olmkit(&self, arguments: &[&str]) -> Answer {
        let mut command = self.command(arguments);
        let began = Instant::now();
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let answer = answer(&output);
        let how = format!("after {:.1} s", began.elapsed().as_secs_f64());
        self.record(arguments, &how, &answer);
        answer
    }

    /// Prints how a command ended, and keeps it for the report of a failure.
    pub fn record(&self, arguments: &[&str], how: &str, answer: &Answer) {
        let line = format!("$ olmkit {}", arguments.join(" "));
        println!("{line}\n  {}, {how}", answer.verdict());
        self.log.lock().unwrap().last = format!("{line}\n{}, {how}", answer.digest());
    }

    /// `run bundle DIR -n NAMESPACE -o json` with further arguments.
    pub async fn run_bundle(&self, directory: &Path, namespace: &str, more: &[&str]) -> Answer {
        let mut arguments = vec![
            "run",
            "bundle",
            directory.to_str().unwrap(),
            "-n",
            namespace,
            "-o",
            "json",
        ];
        if !more.contains(&"--timeout") {
            arguments.extend(["--timeout", "90s"]);
        }
        arguments.extend(more);
        self.olmkit(&arguments).await
    }

    /// `run bundle-upgrade DIR -n NAMESPACE -o json`.
    pub async fn upgrade(&self, directory: &Path, namespace: &str) -> Answer {
        let directory = directory.to_str().unwrap();
        self.olmkit(&["run", "bundle-upgrade", directory, "-n", namespace, "-o", "json"])
            .await
    }

    /// OLM's chart, as `olm install --from` takes it.
    pub fn chart(&self) -> std::path::PathBuf {
        let crds = kube_testbed::tools::cache().unwrap().join("olm/crds");
        let chart = self.folder.path().join("chart");
        std::fs::create_dir_all(chart.join("crds")).unwrap();
        std::fs::write(chart.join("Chart.yaml"), "name: olm\n").unwrap();
        for file in std::fs::read_dir(crds).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), chart.join("crds").join(file.file_name())).unwrap();
        }
        chart
    }

    /// `olm install` of the chart in namespace `elsewhere`, with further arguments.
    pub async fn install_elsewhere(&self, more: &[&str]) -> Answer {
        let elsewhere = ["--olm-namespace", "elsewhere", "--timeout", "120s"];
        self.install_olm(&[&elsewhere, more].concat()).await
    }

    /// `olm install` from the recorded chart.
    pub async fn install_olm(&self, more: &[&str]) -> Answer {
        let chart = self.chart();
        let mut arguments = vec![
            "olm",
            "install",
            "--from",
            chart.to_str().unwrap(),
            "--version",
            "0.46.0",
            "--olm-image",
            "registry.example.com/olm:1",
            "--opm-image",
            "registry.example.com/opm:1",
            "--no-wait-for-packageserver",
        ];
        arguments.extend(more);
        self.olmkit(&arguments).await
    }

    pub async fn cleanup(&self, package: &str, namespace: &str, more: &[&str]) -> Answer {
        let mut arguments = vec!["cleanup", package, "-n", namespace, "-o", "json"];
        arguments.extend(more);
        self.olmkit(&arguments).await
    }

    /// Executes the `kubectl …` command of a suggested fix, literally.
    pub async fn carry_out(&self, remedy: &str) {
        let start = remedy
            .find("kubectl ")
            .unwrap_or_else(|| panic!("no command in {remedy:?}"));
        let line = remedy[start..].split(';').next().unwrap().trim();
        let line = line.split("; or").next().unwrap().trim_end_matches(')').to_owned();
        let kubectl = kube_testbed::tools::program("kubectl").unwrap();
        let path = format!(
            "{}:{}",
            kubectl.parent().unwrap().display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let kubeconfig = self.plane.kubeconfig().to_owned();
        let output = tokio::task::spawn_blocking(move || {
            println!("$ {line}");
            Command::new("sh")
                .arg("-c")
                .arg(&line)
                .env("KUBECONFIG", kubeconfig)
                .env("PATH", path)
                .output()
                .unwrap()
        })
        .await
        .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub fn api(&self, api_version: &str, kind: &str, plural: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    pub async fn apply(&self, plural: &str, object: Value) {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = text("/metadata/namespace");
        let api = self.api(
            text("/apiVersion"),
            text("/kind"),
            plural,
            (!namespace.is_empty()).then_some(namespace),
        );
        api.patch(
            text("/metadata/name"),
            &PatchParams::apply("test").force(),
            &Patch::Apply(&object),
        )
        .await
        .unwrap();
    }

    pub async fn namespace(&self, name: &str) {
        self.apply(
            "namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        )
        .await;
    }

    pub async fn operator_group(&self, namespace: &str, name: &str, targets: &[&str]) {
        let spec = if targets.is_empty() {
            json!({})
        } else {
            json!({"targetNamespaces": targets})
        };
        self.apply("operatorgroups", json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": name, "namespace": namespace}, "spec": spec})).await;
    }

    pub async fn get(
        &self,
        api_version: &str,
        kind: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Value> {
        let found = self
            .api(api_version, kind, plural, namespace)
            .get_opt(name)
            .await
            .unwrap()?;
        Some(serde_json::to_value(found).unwrap())
    }

    pub async fn delete(&self, api_version: &str, kind: &str, plural: &str, namespace: Option<&str>, name: &str) {
        self.api(api_version, kind, plural, namespace)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Waits until the ClusterServiceVersion is Succeeded.
    pub async fn settled(&self, namespace: &str, name: &str) {
        let end = Instant::now() + LIMIT;
        loop {
            let phase = self.phase(namespace, name).await;
            if phase == "Succeeded" {
                return;
            }
            assert!(Instant::now() < end, "{name} stays {phase:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until OLM has deleted a replaced ClusterServiceVersion. It does so some syncs after the new one is Succeeded.
    pub async fn replaced(&self, namespace: &str, name: &str) {
        eventually("OLM deletes the replaced version", async || {
            self.phase(namespace, name).await.is_empty()
        })
        .await;
    }

    /// The phase of a ClusterServiceVersion, empty when it does not exist.
    pub async fn phase(&self, namespace: &str, name: &str) -> String {
        let csv = self
            .get(
                "operators.coreos.com/v1alpha1",
                "ClusterServiceVersion",
                "clusterserviceversions",
                Some(namespace),
                name,
            )
            .await;
        csv.and_then(|csv| csv.pointer("/status/phase")?.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Every object of the cluster that could be a leftover, as `kind namespace/name`, sorted. Events, leases and the
    /// controllers' objects for each namespace do not count.
    pub async fn inventory(&self) -> Vec<String> {
        let mut found = Vec::new();
        let groups = self.client.list_api_groups().await.unwrap();
        let mut versions: Vec<String> = vec!["v1".into()];
        versions.extend(
            groups
                .groups
                .into_iter()
                .filter_map(|group| group.preferred_version.map(|version| version.group_version)),
        );
        for version in versions {
            let resources = if version == "v1" {
                self.client.list_core_api_resources("v1").await
            } else {
                self.client.list_api_group_resources(&version).await
            };
            let Ok(resources) = resources else { continue };
            for resource in resources.resources {
                let listable = resource.verbs.iter().any(|verb| verb == "list")
                    && resource.verbs.iter().any(|verb| verb == "delete");
                let ignored = matches!(
                    resource.kind.as_str(),
                    "Event"
                        | "Lease"
                        | "EndpointSlice"
                        | "Endpoints"
                        | "ControllerRevision"
                        | "FlowSchema"
                        | "PriorityLevelConfiguration"
                );
                if !listable || ignored || resource.name.contains('/') {
                    continue;
                }
                let api = self.api(&version, &resource.kind, &resource.name, None);
                let Ok(list) = api.list(&ListParams::default()).await else {
                    continue;
                };
                for item in list.items {
                    // The controller manager makes these in every namespace, sooner or later.
                    let name = item.metadata.name.as_deref().unwrap_or_default();
                    if matches!(
                        (resource.kind.as_str(), name),
                        ("ConfigMap", "kube-root-ca.crt") | ("ServiceAccount", "default")
                    ) {
                        continue;
                    }
                    found.push(format!(
                        "{} {}/{}",
                        resource.kind,
                        item.metadata.namespace.unwrap_or_default(),
                        item.metadata.name.unwrap_or_default()
                    ));
                }
            }
        }
        found.sort();
        found
    }

    /// Asserts that everything is still there that was there before.
    pub async fn nothing_missing(&self, before: &[String]) {
        let now = self.inventory().await;
        let less: Vec<&String> = before.iter().filter(|object| !now.contains(object)).collect();
        assert!(less.is_empty(), "gone: {less:#?}");
    }

    /// Waits until the cluster serves a resource.
    pub async fn serves(&self, api_version: &str, plural: &str) {
        eventually("the resource is served", async || {
            let found = self.client.list_api_group_resources(api_version).await;
            found.is_ok_and(|found| found.resources.iter().any(|resource| resource.name == plural))
        })
        .await;
    }

    /// Waits until the inventory is as it was: the garbage collector needs a moment.
    pub async fn nothing_left(&self, before: &[String]) {
        let end = Instant::now() + LIMIT;
        loop {
            let now = self.inventory().await;
            let more: Vec<&String> = now.iter().filter(|object| !before.contains(object)).collect();
            if more.is_empty() {
                return;
            }
            assert!(Instant::now() < end, "left behind: {more:#?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

pub fn answer(output: &Output) -> Answer {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    Answer {
        json: serde_json::from_str(&stdout).unwrap_or(Value::Null),
        success: output.status.success(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        stdout,
    }
}

/// Timeout for expected events. Long, because other tests may occupy the processors.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Waits for something to become true, for at most [`LIMIT`].
pub async fn eventually(what: &str, probe: impl AsyncFnMut() -> bool) {
    within(LIMIT, what, probe).await;
}

/// Waits for something to become true.
pub async fn within(limit: Duration, what: &str, mut probe: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + limit;
    while !probe().await {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
