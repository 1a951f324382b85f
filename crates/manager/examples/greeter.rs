//! An operator: for each `Greeting` there is a ConfigMap of the same name with the greeting.
use clap::Parser as _;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{CustomResource, KubeSchema, ResourceExt as _};
use kube_manager::{
    Manager, log,
    options::Options,
    reconcile::{Context, Controller, Error, Outcome, Reconciler, object},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Whom to greet.
#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
pub struct GreetingSpec {
    /// Their name.
    pub name: String,
}

/// The result, as the operator reports it.
#[derive(KubeSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GreetingStatus {
    /// Ready, Progressing, Degraded and Available.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
    /// The generation of the spec that they are about.
    pub observed_generation: Option<i64>,
}

/// Reconciles Greetings.
pub struct Greeter;

/// The controller of Greetings. It owns their ConfigMaps.
pub fn controller() -> Controller<Greeter> {
    Controller::new("greeting", Greeter).owns::<ConfigMap>("contains the greeting")
}

impl Reconciler for Greeter {
    type Object = Greeting;

    async fn reconcile(&self, greeting: &Greeting, context: &Context<Greeting>) -> Result<Outcome, Error> {
        let map: ConfigMap = object(json!({
            "metadata": { "name": greeting.name_any() },
            "data": { "text": format!("Hello, {}!", greeting.spec.name) },
        }))?;
        context.apply(map).await?;
        Ok(Outcome::ready())
    }
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
    let manager = Manager::builder("greeter")
        .options(options)
        .log_level(level)
        .start()
        .await?;
    manager.add(controller());
    Ok(manager.run().await?)
}
