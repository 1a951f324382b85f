//! Measures operators one after the other on one API server, and prints a Markdown table with a column for each.
//!
//! ```sh
//! measure_operator --counts 1000,10000 --settle 200,1000 \
//!     --operator 'rust=target/dist/memcached-operator,config/crd/bases/cache.example.com_memcacheds.yaml'
//! ```
//!
//! The operator must be a binary that runs outside a cluster with KUBECONFIG and creates a Deployment with the same
//! name for each custom resource in its CRD. The custom resources must have `spec.size`. No controllers run, so other
//! components take no time. A proxy between operator and API server counts requests.
use std::{
    collections::HashMap,
    fmt::Debug,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use clap::Parser;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Service, ServiceAccount},
        policy::v1::PodDisruptionBudget,
        rbac::v1::ClusterRoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use kube_testbed::{
    ControlPlane, Options,
    faults::{FaultProxy, ProxiedRequest, Verb},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::sleep;

/// Measure operators on one API server
#[derive(Parser)]
struct Arguments {
    /// NAME=PROGRAM,DEFINITION: a column
    #[arg(long = "operator", required = true, value_parser = column)]
    operators: Vec<Column>,
    /// Numbers of objects at which to measure memory and a new list
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    counts: Vec<usize>,
    /// Numbers of objects to create at once
    #[arg(long, value_delimiter = ',', default_value = "200,1000")]
    settle: Vec<usize>,
    /// Seconds of watching an operator that has nothing to do
    #[arg(long, default_value_t = 60)]
    rest: u64,
    /// Seconds of changes with the largest count; 0 omits this measurement
    #[arg(long, default_value_t = 0)]
    churn: u64,
    /// Changes in each of these seconds
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
}

#[derive(Clone)]
struct Column {
    name: String,
    program: PathBuf,
    definition: PathBuf,
}

fn column(text: &str) -> Result<Column, String> {
    let wrong = || format!("expected NAME=PROGRAM,DEFINITION, not {text:?}");
    let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
    let (program, definition) = rest.split_once(',').ok_or_else(wrong)?;
    Ok(Column {
        name: name.to_owned(),
        program: program.into(),
        definition: definition.into(),
    })
}

/// So long without a request is a rest.
const QUIET: Duration = Duration::from_secs(3);
/// Number of measured starts on an idle cluster.
const STARTS: usize = 5;
/// The size of the existing custom resources, and the one to which it changes. An operator that creates a
/// PodDisruptionBudget for more than one server has created it before the change.
const SIZE: usize = 2;
const OTHER_SIZE: usize = 3;
/// The operators' account, and the namespace of everything.
const ACCOUNT: &str = "bench";
const NAMESPACE: &str = "default";

/// A running operator, killed on drop.
struct Operator {
    process: Child,
    started: Instant,
}

/// Log file of an operator with this kubeconfig.
fn log(kubeconfig: &Path) -> PathBuf {
    kubeconfig.with_extension("log")
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Operator {
    fn start(program: &Path, kubeconfig: &Path) -> anyhow::Result<Self> {
        let process = Command::new(program)
            .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"])
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAMESPACE", NAMESPACE)
            .env("MEMCACHED_IMAGE", "registry.example.com/library/memcached:1.6")
            .env("WATCH_NAMESPACE", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log(kubeconfig))?)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        Ok(Self {
            process,
            started: Instant::now(),
        })
    }

    /// Resident memory in MiB.
    fn memory(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line
            .and_then(|line| line.split_whitespace().nth(1))
            .context("no VmRSS")?;
        Ok(kib.parse::<f64>()? / 1024.0)
    }

    /// Processor time so far, in seconds.
    fn processor(&self) -> anyhow::Result<f64> {
        processor(self.process.id())
    }
}

/// Processor time of a process so far, in seconds.
fn processor(process: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).context("short stat")?.parse::<f64>().context("stat");
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// Processor time of API server and etcd so far, in seconds: of all that this machine runs.
fn processor_of_plane() -> anyhow::Result<f64> {
    let mut total = 0.0;
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        let is_plane = std::fs::read_to_string(path.join("comm"))
            .is_ok_and(|name| ["etcd", "kube-apiserver"].contains(&name.trim()));
        if let Some(process) = path.file_name().and_then(|name| name.to_str()?.parse().ok())
            && is_plane
        {
            total += processor(process)?;
        }
    }
    Ok(total)
}

/// One operator's surroundings.
struct Bench {
    client: Client,
    objects: Api<DynamicObject>,
    kind: ApiResource,
    proxy: FaultProxy,
    kubeconfig: PathBuf,
}

impl Bench {
    async fn new(plane: &ControlPlane, column: &Column) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(&column.definition)
            .with_context(|| format!("read {}", column.definition.display()))?;
        let definition: CustomResourceDefinition = serde_yaml::from_str(&text)?;
        let spec = &definition.spec;
        let version = spec.versions.first().context("a definition without versions")?;
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        let kind = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
        plane.install([definition]).await?;
        let client = plane.client().await?;
        let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, ACCOUNT).await?;
        let proxy = plane.faults_as(&kubeconfig, 1).await?;
        Ok(Self {
            objects: Api::namespaced_with(client.clone(), NAMESPACE, &kind),
            kubeconfig: proxy.kubeconfig(&kubeconfig)?,
            client,
            kind,
            proxy,
        })
    }

    async fn create(&self, range: std::ops::Range<usize>, size: usize) -> anyhow::Result<()> {
        let create = |index: usize| async move {
            let mut object = DynamicObject::new(&format!("m{index}"), &self.kind);
            object.data = json!({ "spec": { "size": size, "containerPort": 11211 } });
            self.objects.create(&PostParams::default(), &object).await.map(drop)
        };
        stream::iter(range.map(create))
            .buffer_unordered(16)
            .try_collect::<()>()
            .await?;
        Ok(())
    }

    /// Waits until the operator has sent no request for a while. Returns its requests after `known`.
    async fn quiet(&self, known: usize) -> Vec<ProxiedRequest> {
        let mut seen = (self.proxy.count(), Instant::now());
        while seen.1.elapsed() < QUIET {
            sleep(Duration::from_millis(100)).await;
            if self.proxy.count() != seen.0 {
                seen = (self.proxy.count(), Instant::now());
            }
        }
        self.proxy.requests_after(known)
    }

    /// Waits until `count` objects have their Deployments and the operator is quiet. Fails if it gives up before.
    async fn settled(&self, count: usize, known: usize) -> anyhow::Result<Vec<ProxiedRequest>> {
        for _ in 0..5 {
            let requests = self.quiet(known).await;
            let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
            let found = deployments.list_metadata(&ListParams::default()).await?.items.len();
            if found == count {
                return Ok(requests);
            }
        }
        let log = std::fs::read_to_string(log(&self.kubeconfig))?;
        let errors = log.lines().rev().filter(|line| line.to_lowercase().contains("error"));
        let lines: Vec<&str> = errors.take(5).collect();
        let newest = lines.join("\n");
        bail!("the operator is quiet, and there are not {count} Deployments; its newest errors:\n{newest}")
    }

    /// Removes everything. The operator takes its finalizers away.
    async fn clear(&self) -> anyhow::Result<()> {
        let (delete, all) = (DeleteParams::background(), ListParams::default());
        empty(&self.objects).await?;
        let client = || self.client.clone();
        empty(&Api::<Deployment>::namespaced(client(), NAMESPACE)).await?;
        // Services have no collection that can be deleted on older API servers.
        let services: Api<Service> = Api::namespaced(client(), NAMESPACE);
        for service in services.list_metadata(&all).await? {
            let name = service.metadata.name.unwrap_or_default();
            if name != "kubernetes" {
                services.delete(&name, &delete).await?;
            }
        }
        empty(&Api::<PodDisruptionBudget>::namespaced(client(), NAMESPACE)).await?;
        self.quiet(0).await;
        Ok(())
    }
}

/// Deletes all objects and waits until they are gone. The API server gives a large collection up after a minute.
async fn empty<K>(objects: &Api<K>) -> anyhow::Result<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let begin = Instant::now();
    loop {
        let deleted = objects
            .delete_collection(&DeleteParams::background(), &ListParams::default())
            .await;
        for _ in 0..50 {
            if objects
                .list_metadata(&ListParams::default().limit(1))
                .await?
                .items
                .is_empty()
            {
                return Ok(());
            }
            sleep(Duration::from_millis(200)).await;
        }
        if begin.elapsed() > Duration::from_secs(600) {
            deleted?;
            bail!("objects are left after ten minutes");
        }
    }
}

/// Name and value of a measurement, in the order of the table.
type Row = (String, String);

fn mib(value: f64) -> String {
    format!("{value:.1} MiB")
}

/// Returns true if a request changes something. Access reviews are created too, but change nothing.
fn writes(seen: &ProxiedRequest) -> bool {
    seen.verb.is_write() && !seen.resource.starts_with("selfsubject")
}

/// Counts reads and writes. Opening a watch is neither.
fn requests(seen: &[ProxiedRequest]) -> String {
    let writes = seen.iter().filter(|seen| writes(seen)).count();
    let reads = seen
        .iter()
        .filter(|seen| matches!(seen.verb, Verb::Get | Verb::List))
        .count();
    let refused = seen
        .iter()
        .filter(|seen| seen.answer.is_some_and(|(code, _)| code == 409))
        .count();
    match refused {
        0 => format!("{writes} writes, {reads} reads"),
        refused => format!("{writes} writes ({refused} conflicts), {reads} reads"),
    }
}

/// From `begin` to the last write, in seconds.
fn last_write(seen: &[ProxiedRequest], begin: Instant) -> String {
    let last = seen.iter().filter(|seen| writes(seen)).map(|seen| seen.at).max();
    last.map_or_else(
        || "–".to_owned(),
        |last| format!("{:.2} s", last.duration_since(begin).as_secs_f64()),
    )
}

async fn measure(plane: &ControlPlane, column: &Column, arguments: &Arguments) -> anyhow::Result<Vec<Row>> {
    let bench = Bench::new(plane, column).await?;
    let mut rows: Vec<Row> = Vec::new();
    let mut note = |name: String, value: String| {
        eprintln!("{}: {name}: {value}", column.name);
        rows.push((name, value));
    };
    let mut starts = Vec::new();
    let mut operator = None;
    for _ in 0..STARTS {
        drop(operator.take());
        // One custom resource that has never been reconciled.
        bench.create(0..1, 1).await?;
        let known = bench.proxy.count();
        let running = Operator::start(&column.program, &bench.kubeconfig)?;
        let seen = bench.settled(1, known).await?;
        let first = seen
            .iter()
            .find(|seen| writes(seen))
            .context("it has written nothing")?;
        starts.push(first.at.duration_since(running.started).as_millis());
        bench.clear().await?;
        operator = Some(running);
    }
    let operator = operator.context("no start")?;
    starts.sort_unstable();
    let median = starts.get(STARTS / 2).context("no start")?;
    note(
        format!("start to the first write: median of {STARTS}"),
        format!("{median} ms ({starts:?})"),
    );
    note("memory at rest, no objects".into(), mib(operator.memory()?));

    let known = bench.proxy.count();
    bench.create(0..1, 1).await?;
    note(
        "requests for a new object".into(),
        requests(&bench.settled(1, known).await?),
    );
    let known = bench.proxy.count();
    let resize = Patch::Merge(json!({ "spec": { "size": 3 } }));
    bench.objects.patch("m0", &PatchParams::default(), &resize).await?;
    note("requests for a new size".into(), requests(&bench.quiet(known).await));
    let known = bench.proxy.count();
    sleep(Duration::from_secs(arguments.rest)).await;
    note(
        format!("requests at rest in {} s", arguments.rest),
        requests(&bench.proxy.requests_after(known)),
    );
    let known = bench.proxy.count();
    bench.objects.delete("m0", &DeleteParams::default()).await?;
    note("requests for a deletion".into(), requests(&bench.quiet(known).await));
    bench.clear().await?;

    for count in &arguments.settle {
        let (known, begin) = (bench.proxy.count(), Instant::now());
        bench.create(0..*count, 1).await?;
        let seen = bench.settled(*count, known).await?;
        note(
            format!("{count} objects created at once: last write after"),
            last_write(&seen, begin),
        );
        note(format!("{count} objects: requests"), requests(&seen));
        bench.clear().await?;
    }
    drop(operator);

    let mut there = 0;
    for count in &arguments.counts {
        let maker = Operator::start(&column.program, &bench.kubeconfig)?;
        bench.create(there..*count, SIZE).await?;
        bench.settled(*count, 0).await?;
        drop(maker);
        there = *count;
        let known = bench.proxy.count();
        let operator = Operator::start(&column.program, &bench.kubeconfig)?;
        let seen = bench.quiet(known).await;
        note(format!("start with {count} settled objects: requests"), requests(&seen));
        note(format!("memory with {count} objects"), mib(operator.memory()?));
        relist(&bench, &operator, *count, &mut note).await?;
        if arguments.churn > 0 && Some(count) == arguments.counts.last() {
            churn(&bench, &operator, *count, arguments, &mut note).await?;
        }
    }
    // It takes its finalizers away.
    let _operator = Operator::start(&column.program, &bench.kubeconfig)?;
    bench.clear().await?;
    Ok(rows)
}

/// Ends all watches with the error that makes a client list again.
async fn relist(
    bench: &Bench,
    operator: &Operator,
    count: usize,
    note: &mut impl FnMut(String, String),
) -> anyhow::Result<()> {
    let (known, before) = (bench.proxy.count(), operator.processor()?);
    bench.proxy.expire_watches();
    // Each watch is reopened immediately, or after a pause.
    sleep(Duration::from_secs(10)).await;
    let seen = bench.quiet(known).await;
    let lists = seen
        .iter()
        .filter(|seen| matches!(seen.verb, Verb::List | Verb::Watch))
        .count();
    anyhow::ensure!(lists > 0, "no watch was opened again");
    let took = operator.processor()? - before;
    note(format!("CPU time for a new list with {count}"), format!("{took:.2} s"));
    note(format!("requests after it, {count} objects"), requests(&seen));
    note(format!("memory after it, {count} objects"), mib(operator.memory()?));
    Ok(())
}

/// Changes sizes at the rate of the arguments. The time from sending a change to the operator's first write for the object.
async fn churn(
    bench: &Bench,
    operator: &Operator,
    count: usize,
    arguments: &Arguments,
    note: &mut impl FnMut(String, String),
) -> anyhow::Result<()> {
    let (seconds, rate) = (arguments.churn, arguments.rate);
    let known = bench.proxy.count();
    let busy = (operator.processor()?, processor_of_plane()?);
    let mut memory = vec![operator.memory()?];
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
    let mut changed = Vec::new();
    let total = usize::try_from(seconds * u64::from(rate))?;
    for index in 0..total {
        ticks.tick().await;
        if index % total.div_ceil(5) == 0 && index > 0 {
            memory.push(operator.memory()?);
        }
        let name = format!("m{}", (index * 7919) % count);
        // Another size than the one before.
        let size = if (index / count).is_multiple_of(2) {
            OTHER_SIZE
        } else {
            SIZE
        };
        let change = Patch::Merge(json!({ "spec": { "size": size } }));
        let objects = bench.objects.clone();
        changed.push(tokio::spawn(async move {
            let sent = Instant::now();
            let answer = objects.patch(&name, &PatchParams::default(), &change).await;
            answer.map(|_| (name, sent))
        }));
    }
    // An operator that is behind gets a minute to catch up.
    let _ = tokio::time::timeout(Duration::from_secs(60), bench.quiet(known)).await;
    let end = Instant::now();
    let mut writes: HashMap<String, Vec<Instant>> = HashMap::new();
    let seen = bench.proxy.requests_after(known);
    let all = requests(&seen);
    for seen in seen {
        if seen.verb.is_write() {
            writes.entry(seen.name).or_default().push(seen.at);
        }
    }
    let mut waiting = 0;
    let mut delays = Vec::new();
    for change in changed {
        let (name, sent) = change.await??;
        let write = writes.get(&name).and_then(|at| at.iter().find(|at| **at >= sent));
        waiting += usize::from(write.is_none());
        delays.push(write.unwrap_or(&end).duration_since(sent).as_millis());
    }
    delays.sort_unstable();
    let share = |hundredths: usize| delays.get(delays.len() * hundredths / 100).context("no change");
    let (median, p99) = (share(50)?, share(99)?);
    let waiting = match waiting {
        0 => String::new(),
        waiting => format!(
            " at least: {waiting} of {} changes were not answered a minute later",
            delays.len()
        ),
    };
    note(
        format!("{rate} changes a second for {seconds} s: change to write, median and p99"),
        format!("{median}, {p99} ms{waiting}"),
    );
    note(format!("{} changes: requests", delays.len()), all);
    let per_change = |seconds: f64| format!("{:.2} ms", 1000.0 * seconds / delays.len() as f64);
    note(
        "CPU time for each change".into(),
        format!(
            "{}, API server and etcd {}",
            per_change(operator.processor()? - busy.0),
            per_change(processor_of_plane()? - busy.1)
        ),
    );
    memory.push(operator.memory()?);
    let memory: Vec<String> = memory.iter().map(|memory| format!("{memory:.0}")).collect();
    note(
        "memory before, after each fifth, and at rest again".into(),
        format!("{} MiB", memory.join(", ")),
    );
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let plane = ControlPlane::start(Options::default().without_controllers().pods_become_ready(false)).await?;
    let client = plane.client().await?;
    let account: ServiceAccount = serde_json::from_value(json!({ "metadata": { "name": ACCOUNT } }))?;
    Api::<ServiceAccount>::namespaced(client.clone(), NAMESPACE)
        .create(&PostParams::default(), &account)
        .await?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({ "metadata": { "name": ACCOUNT },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }] }))?;
    Api::<ClusterRoleBinding>::all(client)
        .create(&PostParams::default(), &binding)
        .await?;
    let mut columns = Vec::new();
    for column in &arguments.operators {
        columns.push(
            measure(&plane, column, &arguments)
                .await
                .with_context(|| column.name.clone())?,
        );
    }
    let names: Vec<&str> = arguments.operators.iter().map(|column| column.name.as_str()).collect();
    println!("| | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for (place, (name, _)) in columns.first().into_iter().flatten().enumerate() {
        let values: Vec<&str> = columns
            .iter()
            .map(|rows| rows.get(place).map_or("", |(_, value)| value.as_str()))
            .collect();
        println!("| {name} | {} |", values.join(" | "));
    }
    Ok(())
}
