//! Normalized definitions: each is created without a warning, keeps the values that its Rust type writes and rejects
//! those that the type could not read.

use kube::CustomResourceExt as _;
use olmkit::crd::{Options, normalise};
use serde_json::json;

use super::server::{GROUP, Server};
use super::{rows, types};

/// One server for all, because starting it takes longer than all of them together.
#[tokio::test]
async fn every_structural_rule_is_met_and_enforced() {
    let server = Server::start().await;
    let rows = rows::all();
    let checks = rows
        .iter()
        .flat_map(|row| row.definitions.iter().map(|definition| server.check(row, definition)));
    let failures: Vec<String> = futures::future::join_all(checks).await.concat();
    println!("{} rules, {} failures", rows.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    status_is_kept(&server).await;
    long_descriptions_can_be_left_away(&server).await;
}

/// The server stores fields of the status only if the schema declares them.
async fn status_is_kept(server: &Server) {
    let definition = normalise(&types::Reported::crd(), &Options::default()).unwrap();
    server.define(&definition).await.unwrap();
    let path = format!("/apis/{GROUP}/v1/namespaces/default/reporteds");
    let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Reported", "metadata": {"name": "one"}});
    object["spec"] = json!({"size": 3});
    let mut made = server.create(&path, &object).await.unwrap();
    let condition = json!({
        "type": "Available", "status": "True", "reason": "Done", "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1,
    });
    made["status"] = json!({"size": 3, "conditions": [condition]});
    let stored = server.replace(&format!("{path}/one/status"), &made).await.unwrap();
    assert_eq!(stored["status"], made["status"]);
    let scale = server.read(&format!("{path}/one/scale")).await.unwrap();
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (&json!(3), &json!(3))
    );
}

/// `kubectl apply` stores the whole object in an annotation, which may have at most 262144 bytes.
async fn long_descriptions_can_be_left_away(server: &Server) {
    let crd = types::WholePod::crd();
    let refused = server
        .kubectl_apply(&[normalise(&crd, &Options::default()).unwrap()])
        .await;
    assert!(refused.unwrap_err().contains("262144"));
    let options = Options {
        strip_descriptions: true,
        ..Options::default()
    };
    server
        .kubectl_apply(&[normalise(&crd, &options).unwrap()])
        .await
        .unwrap();
}
