//! One control plane with OLM, a catalog served from this process, and a subscription.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use controlplane::{ControlPlane, Options};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client, ResourceExt};
use olmkit::serve::Server;
use olmkit::serve::index::in_memory;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::bundles::{Bundle, CHANNEL, PACKAGE, catalog};
use crate::eventually;
use crate::operator::Operator;

const MINUTES: Duration = Duration::from_secs(150);

/// Which namespaces the OperatorGroup selects.
pub(crate) enum Targets {
    OwnNamespace,
    AllNamespaces,
}

pub(crate) struct Installation {
    pub client: Client,
    namespace: &'static str,
    server: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    address: SocketAddr,
    control_plane: ControlPlane,
}

impl Installation {
    /// Starts everything and subscribes to the package.
    pub(crate) async fn start(namespace: &'static str, targets: Targets, bundles: &[&Bundle]) -> Self {
        let control_plane = ControlPlane::start(Options::default().with_olm()).await.unwrap();
        let client = control_plane.client().await.unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut installation = Self { client, namespace, server: None, address, control_plane };
        installation.serve(bundles).await;
        installation.create_namespace(namespace).await;
        let target_namespaces = match targets {
            Targets::OwnNamespace => json!([namespace]),
            Targets::AllNamespaces => json!([]),
        };
        let address = installation.address.to_string();
        installation.create("v1alpha1", "CatalogSource", "catalog", json!({"sourceType": "grpc", "address": address})).await;
        installation.create("v1", "OperatorGroup", "group", json!({"targetNamespaces": target_namespaces})).await;
        let subscription = json!({"name": PACKAGE, "channel": CHANNEL, "source": "catalog", "sourceNamespace": namespace,
            "installPlanApproval": "Automatic"});
        installation.create("v1alpha1", "Subscription", PACKAGE, subscription).await;
        installation
    }

    /// Serves these bundles, at the same address each time. OLM notices by the connection that breaks.
    pub(crate) async fn serve(&mut self, bundles: &[&Bundle]) {
        if let Some((stop, serving)) = self.server.take() {
            stop.send(()).unwrap();
            serving.await.unwrap();
        }
        let index = in_memory(&catalog(bundles)).unwrap();
        let server = Server::bind(self.address).await.unwrap();
        self.address = server.address();
        server.current().set(index);
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            server.run(stopped).await.unwrap();
        });
        self.server = Some((stop, serving));
    }

    pub(crate) async fn create_namespace(&self, name: &str) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await.unwrap();
    }

    fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("operators.coreos.com", version, kind));
        Api::namespaced_with(self.client.clone(), self.namespace, &resource)
    }

    async fn create(&self, version: &str, kind: &str, name: &str, spec: Value) {
        let api = self.api(version, kind);
        let object = json!({
            "apiVersion": format!("operators.coreos.com/{version}"), "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        });
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Waits until the ClusterServiceVersion has succeeded.
    pub(crate) async fn succeeded(&self, csv: &str) {
        let versions = self.api("v1alpha1", "ClusterServiceVersion");
        let mut last = Value::Null;
        let end = tokio::time::Instant::now() + MINUTES;
        loop {
            if let Some(object) = versions.get_opt(csv).await.unwrap() {
                last = json!([object.data.pointer("/status/phase"), object.data.pointer("/status/reason"), object.data.pointer("/status/message")]);
                if object.data.pointer("/status/phase") == Some(&json!("Succeeded")) {
                    return;
                }
            }
            if tokio::time::Instant::now() > end {
                let subscription = self.api("v1alpha1", "Subscription").get(PACKAGE).await.unwrap();
                panic!(
                    "{csv} has not succeeded: {last}\nsubscription: {:#}\n{}",
                    subscription.data.get("status").unwrap_or(&Value::Null),
                    self.control_plane.log_tails()
                );
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    /// Waits until the ClusterServiceVersion is removed.
    pub(crate) async fn gone(&self, csv: &str) {
        let versions = self.api("v1alpha1", "ClusterServiceVersion");
        eventually(&format!("{csv} removed"), MINUTES, async || versions.get_opt(csv).await.unwrap().is_none().then_some(())).await;
    }

    /// Runs the operator as the Deployment says that OLM made.
    pub(crate) async fn run_operator(&self) -> Operator {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), self.namespace);
        let deployment = deployments.get("memcached-operator-controller-manager").await.unwrap();
        let account = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.service_account_name.clone()).unwrap();
        let kubeconfig = self.control_plane.service_account_kubeconfig(self.namespace, &account).await.unwrap();
        Operator::start(&deployment, &kubeconfig).await
    }

    /// Name and unique number of each pod of the sample.
    pub(crate) async fn operand_pods(&self, namespace: &str) -> BTreeSet<(String, String)> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let labels = ListParams::default().labels("memcached_cr=memcached-sample");
        let pods = pods.list(&labels).await.unwrap().items;
        pods.into_iter().map(|pod| (pod.name_any(), pod.uid().unwrap())).collect()
    }
}
