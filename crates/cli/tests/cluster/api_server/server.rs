//! A control plane, and its answers about a definition and its objects.

use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::{Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use kube_testbed::{ControlPlane, Options};
use serde_json::{Value, json};

use super::rows::Row;
use crate::harness::LIMIT;

/// The group of every kind here.
pub const GROUP: &str = "rows.example.com";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldValidation=Strict";

/// The running server.
pub struct Server {
    client: Client,
    plane: ControlPlane,
}

/// An answer with its warnings.
struct Answer {
    status: StatusCode,
    warnings: Vec<String>,
    body: Value,
}

impl Server {
    pub async fn start() -> Self {
        let plane = ControlPlane::start(Options::default()).await.unwrap();
        Self {
            client: plane.client().await.unwrap(),
            plane,
        }
    }

    async fn request(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let (head, body) = response.into_parts();
        let warnings = head.headers.get_all("warning").iter();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: head.status,
            warnings: warnings.map(|text| text.to_str().unwrap().to_owned()).collect(),
            // Before a new kind is served, the answer is plain text.
            body: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    async fn expect(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let answer = self.request(method, path, body).await;
        match answer.status.is_success() && answer.warnings.is_empty() {
            true => Ok(answer.body),
            false => Err(format!("{path}: {:?} {}", answer.warnings, answer.body["message"])),
        }
    }

    pub async fn create(&self, path: &str, object: &Value) -> Result<Value, String> {
        self.expect(Method::POST, path, object).await
    }

    pub async fn replace(&self, path: &str, object: &Value) -> Result<Value, String> {
        self.expect(Method::PUT, path, object).await
    }

    pub async fn read(&self, path: &str) -> Result<Value, String> {
        self.expect(Method::GET, path, &Value::Null).await
    }

    /// Creates a definition and waits until its kind is served.
    pub async fn define(&self, definition: &Value) -> Result<(), String> {
        self.create(DEFINITIONS, definition).await?;
        let text = |pointer: &str| definition.pointer(pointer).unwrap().as_str().unwrap();
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
        let version = text("/spec/versions/0/name");
        self.until_served(&format!("/apis/{group}/{version}/{plural}")).await;
        Ok(())
    }

    /// `kubectl apply -f -`
    pub async fn kubectl_apply(&self, objects: &[Value]) -> Result<String, String> {
        let kubectl = kube_testbed::tools::program("kubectl").unwrap();
        let input: Vec<String> = objects.iter().map(Value::to_string).collect();
        let kubeconfig = self.plane.kubeconfig().to_owned();
        let apply = move || {
            assert_cmd::Command::new(kubectl)
                .args(["apply", "-f", "-"])
                .env("KUBECONFIG", kubeconfig)
                .write_stdin(input.join("\n---\n"))
                .output()
                .unwrap()
        };
        let output = tokio::task::spawn_blocking(apply).await.unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        match output.status.success() && !err.contains("Warning") {
            true => Ok(out.into_owned()),
            false => Err(err.into_owned()),
        }
    }

    /// Creates a definition of the row and its objects. Returns descriptions of deviations.
    pub async fn check(&self, row: &Row, definition: &Value) -> Vec<String> {
        let names = &definition["spec"]["names"];
        let (kind, plural) = (names["kind"].as_str().unwrap(), names["plural"].as_str().unwrap());
        let made = self.request(Method::POST, DEFINITIONS, definition).await;
        if made.status != StatusCode::CREATED {
            return vec![format!(
                "{}: refused: {}\n{definition:#}",
                row.name, made.body["message"]
            )];
        }
        let mut failures: Vec<String> = made
            .warnings
            .iter()
            .map(|text| format!("{}: warning {text}\n{definition:#}", row.name))
            .collect();
        let path = format!("/apis/{GROUP}/v1/namespaces/default/{plural}?fieldValidation=Strict");
        self.until_served(&path).await;
        for (number, (given, stored)) in row.accepted.iter().enumerate() {
            let object = object(kind, &format!("accepted-{number}"), given);
            let answer = self.request(Method::POST, &path, &object).await;
            if answer.status != StatusCode::CREATED {
                failures.push(format!(
                    "{} ({kind}): {given} is refused: {}",
                    row.name, answer.body["message"]
                ));
            } else if &answer.body["spec"] != stored {
                failures.push(format!(
                    "{} ({kind}): {given} is stored as {}",
                    row.name, answer.body["spec"]
                ));
            }
            failures.extend(
                answer
                    .warnings
                    .iter()
                    .map(|text| format!("{} ({kind}): {given}: {text}", row.name)),
            );
        }
        for (number, (given, why)) in row.refused.iter().enumerate() {
            let object = object(kind, &format!("refused-{number}"), given);
            let answer = self.request(Method::POST, &path, &object).await;
            let message = answer.body["message"].as_str().unwrap_or_default();
            if answer.status.is_success() {
                failures.push(format!("{} ({kind}): {given} is accepted", row.name));
            } else if !message.contains(why) {
                failures.push(format!(
                    "{} ({kind}): {given} is refused with other words: {message}",
                    row.name
                ));
            }
        }
        failures
    }

    /// Waits for a new kind. A machine without load serves it within a second or two.
    async fn until_served(&self, path: &str) {
        let end = Instant::now() + LIMIT;
        loop {
            let answer = self.request(Method::GET, path, &Value::Null).await;
            if answer.status == StatusCode::OK {
                return;
            }
            assert!(
                Instant::now() < end,
                "not served within {LIMIT:?}: {path}: {}",
                answer.body
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    })
}
