//! Renders `config/` from the types in `api`, the permissions of `controller` and the settings in `config/package.yaml`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use kube::Resource as _;
use memcached_operator::api::v1alpha1::Memcached;
use memcached_operator::controller::{NAME, RELATED_IMAGE, grants};
use olmkit_project::{Api, Manager, Package, Project};
use serde_json::{Value, json};

/// Port of the metrics.
const METRICS: u16 = 8443;

/// Render config/: CRD, RBAC, Deployment, samples and the base of the ClusterServiceVersion.
#[derive(Parser)]
struct Args {
    /// Version of the operator.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
    /// Image of the operator [default: quay.io/example/memcached-operator:v<version>].
    #[arg(long)]
    image: Option<String>,
    /// Image of the memcached servers.
    #[arg(long, default_value = "docker.io/library/memcached:1.6.45-alpine")]
    operand_image: String,
    /// Directory to render into, and to read package.yaml from.
    #[arg(long, default_value = "config")]
    directory: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let image = args
        .image
        .clone()
        .unwrap_or_else(|| format!("quay.io/example/memcached-operator:v{}", args.version));
    let package = Package::load(&args.directory.join("package.yaml"))?;
    let manager = Manager::default()
        .arg("--leader-elect")
        .arg("--health-probe-bind-address=:8081")
        .arg(format!("--metrics-bind-address=:{METRICS}"))
        .port("metrics", METRICS)
        .env("OPERATOR_NAME", "memcached-operator")
        .env_from_field("POD_NAME", "metadata.name")
        .env_from_field("POD_NAMESPACE", "metadata.namespace")
        .env(RELATED_IMAGE, &args.operand_image)
        .env("WATCH_NAMESPACE", "");
    let files = Project::new(NAME, &args.version, &image, package)
        .api(Api::of::<Memcached>()?.sample(&sample())?)
        .grants(grants())
        .manager(manager)
        .objects("metrics/service.yaml", vec![metrics_service()])
        .objects("metrics/reader_role.yaml", vec![metrics_reader()])
        .aggregated()
        .scorecard()
        .render()?;
    files.write(&args.directory).context("config/ was not rendered")?;
    Ok(())
}

/// Labels of the objects for metrics: those of all others, and of the pods.
fn labels() -> Value {
    json!({
        "app.kubernetes.io/managed-by": "olmkit",
        "app.kubernetes.io/name": NAME,
        "control-plane": "controller-manager",
    })
}

/// Where Prometheus finds the metrics. `monitoring/service_monitor.yaml` selects it.
fn metrics_service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": format!("{NAME}-controller-manager-metrics-service"),
            "namespace": format!("{NAME}-system"),
            "labels": labels(),
        },
        "spec": {
            "ports": [{"name": "https", "port": METRICS, "protocol": "TCP", "targetPort": "metrics"}],
            "selector": {"app.kubernetes.io/name": NAME, "control-plane": "controller-manager"},
        },
    })
}

/// The right to read the metrics, to be bound to Prometheus' account.
fn metrics_reader() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("{NAME}-metrics-reader"), "labels": labels()},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    })
}

/// The object of the tutorials. The API server adds the defaults.
fn sample() -> Value {
    json!({
        "apiVersion": Memcached::api_version(&()),
        "kind": Memcached::kind(&()),
        "metadata": {"name": "memcached-sample"},
        "spec": {"size": 2, "containerPort": 11211},
    })
}
