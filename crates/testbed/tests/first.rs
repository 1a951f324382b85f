//! A control plane answers.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube_testbed::{ControlPlane, Options};

#[tokio::test]
async fn nothing_is_there() -> Result<(), Box<dyn std::error::Error>> {
    let control_plane = ControlPlane::start(Options::default().without_controllers()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(control_plane.client().await?, "default");
    assert!(maps.get_opt("nothing").await?.is_none());
    Ok(())
}
