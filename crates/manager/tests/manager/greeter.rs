//! The operator of the README on the lower layer: its own writes, with `Controller::owns`.
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use kube_manager::{Manager, worker::Done};
use serde_json::json;

use crate::example::Greeting;

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

pub fn set_up(manager: &Manager) {
    let client = manager.client();
    manager
        .controller::<Greeting>("greeting")
        .owns::<ConfigMap>(Default::default())
        .run(move |greeting| reconcile(greeting, client.clone()));
}
