//! An operator: for each `Greeting` there is a ConfigMap of the same name with the greeting.
use std::{error::Error, sync::Arc};

use clap::Parser as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, CustomResource, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use kube_manager::{Manager, log, options::Options, worker::Done};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Whom to greet.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
pub struct GreetingSpec {
    /// Their name.
    pub name: String,
}

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    manager: Options,
}

async fn reconcile(greeting: Arc<Greeting>, client: Client) -> Result<Done, kube::Error> {
    let (name, namespace) = (greeting.name_any(), greeting.namespace().unwrap_or_default());
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "ownerReferences": [greeting.controller_owner_ref(&())] },
        "data": { "text": format!("Hello, {}!", greeting.spec.name) },
    });
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    maps.patch(&name, &PatchParams::apply("greeter").force(), &Patch::Apply(map))
        .await?;
    Ok(Done::wrote(1, "greeted"))
}

/// Everything that this operator does.
pub fn set_up(manager: &Manager) {
    let client = manager.client();
    manager
        .controller::<Greeting>("greeting")
        .owns::<ConfigMap>(Default::default())
        .run(move |greeting| reconcile(greeting, client.clone()));
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Flags::parse().manager;
    let level = log::init(&options)?;
    let manager = Manager::builder("greeter")
        .options(options)
        .log_level(level)
        .start()
        .await?;
    set_up(&manager);
    Ok(manager.run().await?)
}
