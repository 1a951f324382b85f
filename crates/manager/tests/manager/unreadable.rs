//! Stored objects that the operator's type cannot hold: they come from an older version of the schema.
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource, CustomResourceExt as _, ResourceExt as _,
    api::{DeleteParams, PostParams},
    core::DynamicObject,
    discovery::ApiResource,
};
use kube_manager::{ObjectKey, worker::Done};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{Greeting, builder, eventually, greet, namespace, options};

/// How to greet.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Tone", namespaced)]
struct ToneSpec {
    /// Text in older versions.
    pitch: u32,
}

/// Has the kind served with a schema that allows everything.
async fn serve_tones(client: &Client) {
    let mut definition = serde_json::to_value(Tone::crd()).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let tones: Api<Tone> = Api::all(client.clone());
    eventually("the kind is served", async || {
        tones.list(&Default::default()).await.ok()
    })
    .await;
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_counted_and_stops_nothing() {
    let client = namespace("unreadable").await;
    serve_tones(&client).await;
    let tones: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "unreadable", &ApiResource::erase::<Tone>(&()));
    let store = async |name: &str, pitch: serde_json::Value| {
        let tone = json!({ "apiVersion": "example.com/v1", "kind": "Tone", "metadata": { "name": name },
            "spec": { "pitch": pitch } });
        let tone = serde_json::from_value(tone).unwrap();
        tones.create(&PostParams::default(), &tone).await.unwrap();
    };
    store("old", json!("high")).await;
    store("new", json!(440)).await;
    let (builder, stop) = builder(&client, options("unreadable"));
    let manager = builder.start().await.unwrap();
    let metrics = manager.metrics().clone();
    let passes = Arc::new(Mutex::new(BTreeSet::new()));
    let note = |passes: &Arc<Mutex<BTreeSet<String>>>, name: String| {
        passes.lock().unwrap().insert(name);
        std::future::ready(Ok::<_, kube::Error>(Done::nothing("seen")))
    };
    let seen = Arc::clone(&passes);
    manager
        .controller::<Greeting>("greeting")
        .watches::<Tone>(Default::default(), |tone| vec![ObjectKey::of(tone)])
        .run(move |greeting| note(&seen, format!("greeting {}", greeting.name_any())));
    let seen = Arc::clone(&passes);
    manager
        .controller::<Tone>("tone")
        .run(move |tone| note(&seen, format!("tone {}", tone.name_any())));
    let running = tokio::spawn(manager.run());
    greet(&client, "unreadable", "moon").await;
    eventually("passes", async || {
        let passes = passes.lock().unwrap();
        let wanted = ["greeting moon", "tone new"];
        wanted.iter().all(|name| passes.contains(*name)).then_some(())
    })
    .await;
    let counted = async |number: u32| {
        let line = format!("unreadable_objects{{resource=\"tones\"}} {number}\n");
        eventually(&line, async || metrics.render().contains(&line).then_some(())).await;
    };
    // Once by each of the two watches.
    counted(2).await;
    tones.delete("old", &DeleteParams::default()).await.unwrap();
    counted(0).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
