//! `olmkit bundle unpack`: `kubectl apply` accepts its output, and the operator runs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::Server;
use crate::harness::LIMIT;

/// An operator with webhooks of all three types. The bundle configures the conversion, the definition does not.
const OPERATOR: &str = include_str!("../../command/generate/operator.yaml");
const WEBHOOKS: &str = "
---
apiVersion: v1
kind: Service
metadata: {name: hooks, namespace: example-system}
spec: {selector: {app: example}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: check}
webhooks:
- name: check.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hooks, namespace: example-system, path: /check}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [examples]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: complete}
webhooks:
- name: complete.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hooks, namespace: example-system, path: /complete}}
  rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [examples]}]
";
const CONVERSION: &str = "
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {name: hooks, namespace: example-system, path: /convert}}
      conversionReviewVersions: [v1]";

/// cert-manager's kinds, as far as their objects are stored.
fn certificate_kinds() -> Vec<Value> {
    let kind = |kind: &str, plural: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.cert-manager.io")},
            "spec": {
                "group": "cert-manager.io",
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        })
    };
    vec![kind("Issuer", "issuers"), kind("Certificate", "certificates")]
}

fn olmkit(directory: &std::path::Path, arguments: &[&str], input: &str) -> std::process::Output {
    let output = assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(arguments)
        .current_dir(directory)
        .write_stdin(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn documents(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.split("---\n")
        .map(|document| serde_yaml::from_str(document).unwrap())
        .collect()
}

#[tokio::test]
async fn an_unpacked_bundle_runs_without_olm() {
    let directory = tempfile::tempdir().unwrap();
    let scope = "  scope: Namespaced";
    assert!(OPERATOR.contains(scope));
    let input = format!(
        "{}{WEBHOOKS}",
        OPERATOR.replacen(scope, &format!("{scope}{CONVERSION}"), 1)
    );
    let package = ["--package", "example-operator", "--version", "0.0.1"];
    olmkit(
        directory.path(),
        &[&["generate", "bundle", "--strict"], &package[..]].concat(),
        &input,
    );
    let unpacked = olmkit(
        directory.path(),
        &["bundle", "unpack", "bundle", "--namespace", "mine"],
        "",
    );
    let said = String::from_utf8_lossy(&unpacked.stderr).into_owned();
    assert!(said.contains("cert-manager"), "prerequisites are reported: {said}");
    let from_directory = documents(&unpacked.stdout);

    let image = [
        "image",
        "build",
        "bundle",
        "-t",
        "example.com/bundle:v1",
        "-o",
        "oci:image",
        "bundle",
    ];
    olmkit(directory.path(), &image, "");
    let unpacked = olmkit(
        directory.path(),
        &["bundle", "unpack", "oci:image", "--namespace", "mine"],
        "",
    );
    assert_eq!(
        documents(&unpacked.stdout),
        from_directory,
        "an image contains the same files as its directory"
    );

    let server = Server::start().await;
    for kind in certificate_kinds() {
        server.define(&kind).await.unwrap();
    }
    let applied = server.kubectl_apply(&from_directory).await.unwrap();
    assert_eq!(applied.lines().count(), from_directory.len(), "{applied}");
    let again = server.kubectl_apply(&from_directory).await.unwrap();
    assert!(!again.contains("created"), "{again}");
    available(&server, "/apis/apps/v1/namespaces/mine/deployments/manager").await;

    let hooks = "/apis/admissionregistration.k8s.io/v1";
    for (path, answers) in [
        (
            format!("{hooks}/validatingwebhookconfigurations/check.example.com"),
            "/check",
        ),
        (
            format!("{hooks}/mutatingwebhookconfigurations/complete.example.com"),
            "/complete",
        ),
    ] {
        let service = server.read(&path).await.unwrap()["webhooks"][0]["clientConfig"]["service"].clone();
        assert_eq!(
            service,
            json!({"name": "manager-service", "namespace": "mine", "path": answers, "port": 443})
        );
    }
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/examples.example.com";
    let conversion = server.read(path).await.unwrap()["spec"]["conversion"].clone();
    assert_eq!(conversion["webhook"]["clientConfig"]["service"]["namespace"], "mine");
}

async fn available(server: &Server, path: &str) {
    let end = Instant::now() + LIMIT;
    loop {
        let status = server.read(path).await.unwrap()["status"].clone();
        if status["availableReplicas"] == 1 {
            return;
        }
        assert!(Instant::now() < end, "not available within {LIMIT:?}: {status}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
