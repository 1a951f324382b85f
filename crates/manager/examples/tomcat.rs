//! A complete operator: a Deployment and a Service for each `Tomcat`. `cargo xtask lines` counts it.
use clap::Parser as _;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, KubeSchema, ResourceExt as _};
use kube_manager::{
    Manager, log,
    options::Options,
    reconcile::{Context, Controller, Error, Outcome, Reconciler, object},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The desired servers.
#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Tomcat",
    namespaced,
    status = "TomcatStatus"
)]
pub struct TomcatSpec {
    /// Version of Tomcat.
    version: String,
    /// Number of pods.
    replicas: i32,
}

/// The observed servers.
#[derive(KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TomcatStatus {
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    conditions: Vec<Condition>,
    observed_generation: Option<i64>,
    ready_replicas: Option<i32>,
}

struct TomcatReconciler;

fn controller() -> Controller<TomcatReconciler> {
    Controller::new("tomcat", TomcatReconciler)
        .owns::<Deployment>("runs the servers")
        .owns::<Service>("gives the servers an address")
}

impl Reconciler for TomcatReconciler {
    type Object = Tomcat;

    async fn reconcile(&self, tomcat: &Tomcat, context: &Context<Tomcat>) -> Result<Outcome, Error> {
        context.apply(service(tomcat)?).await?;
        let deployment = context.apply(deployment(tomcat)?).await?;
        let status = TomcatStatus {
            ready_replicas: deployment.status.as_ref().and_then(|status| status.ready_replicas),
            ..TomcatStatus::default()
        };
        Ok(Outcome::from(&deployment).status(status))
    }
}

fn labels(tomcat: &Tomcat) -> Value {
    json!({ "app": tomcat.name_any() })
}

fn service(tomcat: &Tomcat) -> Result<Service, Error> {
    object(json!({
        "metadata": { "name": tomcat.name_any() },
        "spec": { "selector": labels(tomcat), "ports": [{ "port": 80, "targetPort": 8080 }] },
    }))
}

fn deployment(tomcat: &Tomcat) -> Result<Deployment, Error> {
    object(json!({
        "metadata": { "name": tomcat.name_any() },
        "spec": {
            "replicas": tomcat.spec.replicas,
            "selector": { "matchLabels": labels(tomcat) },
            "template": {
                "metadata": { "labels": labels(tomcat) },
                "spec": { "containers": [{
                    "name": "tomcat",
                    "image": format!("docker.io/library/tomcat:{}", tomcat.spec.version),
                    "ports": [{ "containerPort": 8080 }],
                }] },
            },
        },
    }))
}

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    manager: Options,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Flags::parse().manager;
    let level = log::init(&options)?;
    let manager = Manager::builder("tomcat-operator")
        .options(options)
        .log_level(level)
        .start()
        .await?;
    manager.add(controller());
    Ok(manager.run().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_tomcat_has_a_deployment_and_a_service() {
        let spec = TomcatSpec {
            version: "11.0".to_owned(),
            replicas: 2,
        };
        let tomcat = Tomcat::new("shop", spec);
        let context = Context::recording(&tomcat);
        let outcome = TomcatReconciler.reconcile(&tomcat, &context).await.unwrap();
        assert!(!outcome.is_ready(), "no pod runs yet");
        let (deployments, services) = (context.applied::<Deployment>(), context.applied::<Service>());
        assert_eq!(
            (deployments[0].name_any(), services[0].name_any()),
            ("shop".to_owned(), "shop".to_owned())
        );
        assert_eq!(deployments[0].spec.as_ref().unwrap().replicas, Some(2));
    }
}
