//! An answer that never arrives.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use kube_testbed::{
    ControlPlane, Options,
    faults::{Fault, Rule, Verb},
};

#[tokio::test]
async fn answers_are_lost() -> Result<(), Box<dyn std::error::Error>> {
    let control_plane = ControlPlane::start(Options::default().without_controllers()).await?;
    let proxy = control_plane.faults(1).await?;
    // Or KUBECONFIG=proxy.kubeconfig(…) for a process.
    let client = proxy.client(control_plane.kubeconfig()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = serde_json::from_value(serde_json::json!({ "metadata": { "name": "stored" } }))?;

    proxy.add(Rule::new(Fault::Late(Duration::from_millis(200))).share(0.5));
    proxy.add(Rule::new(Fault::AnswerLost).writes().resource("configmaps").times(1));
    assert!(maps.create(&PostParams::default(), &map).await.is_err());
    assert!(maps.get_opt("stored").await?.is_some(), "the API server has it");

    let writes = proxy
        .requests()
        .into_iter()
        .filter(|request| request.verb == Verb::Create);
    assert_eq!(writes.count(), 1);
    Ok(())
}
