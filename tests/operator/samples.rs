//! The samples of what the caches keep look like the objects of an API server.
use std::fs;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget};
use kube::ResourceExt;
use kube_manager::packed::{Packed, Sample};
use memcached_operator::{
    api::v1alpha1::Memcached,
    controller::observed::{Child, DeploymentState, Subject},
};
use serde_json::json;

use crate::lab::Lab;

/// Fails if `value` packs badly: then its sample is out of date. With `UPDATE_GENERATED=1` writes the sample instead.
fn assert_alike<T: Sample>(file: &str, name: &str, value: &T) {
    let text = serde_json::to_string(value).unwrap();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        let path = format!("{}/src/controller/samples/{file}", env!("CARGO_MANIFEST_DIR"));
        fs::write(path, text.replace(name, "sample")).unwrap();
        return;
    }
    let (packed, whole) = (Packed::of(value).size(), text.len());
    println!("{file}: {packed} of {whole} bytes");
    assert!(packed * 4 < whole, "{file} is out of date: {packed} of {whole} bytes");
}

#[tokio::test]
async fn objects_take_a_quarter_of_their_size() {
    let lab = Lab::new("samples").await;
    let _operator = lab.operator().await;
    let name = "session-store";
    lab.memcached(name, json!({ "size": 3 })).await;
    let memcached = lab.running(name).await;
    let deployment = lab.api::<Deployment>().get(name).await.unwrap();
    let service = lab.api::<Service>().get(name).await.unwrap();
    let budget = lab.api::<PodDisruptionBudget>().get(name).await.unwrap();
    let Subject::Readable(packed) = Subject::readable(memcached) else {
        panic!("not readable");
    };
    let memcached: Memcached = packed.unpack().unwrap();
    assert_eq!(memcached.name_any(), name);
    assert_alike("memcached.json", name, &memcached);
    assert_alike("deployment.json", name, &DeploymentState::of(&deployment));
    assert_alike("service.json", name, &Child::of(&service));
    assert_alike("budget.json", name, &Child::of(&budget));
}
