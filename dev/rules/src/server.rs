//! A client of the API server.

use std::collections::BTreeSet;

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

use crate::answer::Answer;

/// The API server.
pub struct Server {
    client: kube::Client,
}

impl Server {
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// A request, whatever comes of it.
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        self.ask_as(None, method, path, body).await
    }

    /// A request, perhaps as a service account.
    async fn ask_as(
        &self,
        account: Option<(&str, &str)>,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let mut request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        if let Some((namespace, name)) = account {
            request = request.header("impersonate-user", format!("system:serviceaccount:{namespace}:{name}"));
        }
        let request = request.body(Body::from(bytes))?;
        let response = self
            .client
            .send(request)
            .await
            .with_context(|| format!("{method} {path}"))?;
        let status = response.status().as_u16();
        let warnings = response.headers().get_all("warning");
        let warnings = warnings
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        let bytes = response.into_body().collect().await?.to_bytes();
        let body: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        let message = if status < 300 {
            String::new()
        } else {
            body["message"]
                .as_str()
                .or(body.as_str())
                .unwrap_or_default()
                .chars()
                .take(1500)
                .collect()
        };
        Ok(Answer {
            status,
            message,
            warnings,
            body,
        })
    }

    /// A request that must succeed.
    async fn must(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let answer = self.ask(method, path, body).await?;
        anyhow::ensure!(
            answer.accepted(),
            "{method} {path}: {} {}",
            answer.status,
            answer.message
        );
        Ok(answer.body)
    }

    /// Reads an object or a list that exists.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.must("GET", path, None).await
    }

    /// Reads an object that may not exist.
    pub async fn find(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let answer = self.ask("GET", path, None).await?;
        Ok((answer.status == 200).then_some(answer.body))
    }

    /// Creates an object.
    pub async fn post(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        self.must("POST", path, Some(object)).await
    }

    /// Replaces an object.
    pub async fn put(&self, path: &str, object: &Value) -> anyhow::Result<Value> {
        self.must("PUT", path, Some(object)).await
    }

    /// All that a service account may do in a namespace, as the server lists it.
    pub async fn rights(&self, namespace: &str, account: &str, place: &str) -> anyhow::Result<Value> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": place},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let answer = self
            .ask_as(Some((namespace, account)), "POST", path, Some(&review))
            .await?;
        anyhow::ensure!(answer.accepted(), "{path}: {}", answer.message);
        Ok(answer.body["status"].clone())
    }

    /// Groups and names of the resources that have no namespace.
    pub async fn cluster_scoped(&self) -> anyhow::Result<BTreeSet<(String, String)>> {
        Ok(self
            .resources()
            .await?
            .into_iter()
            .filter(|(_, resource)| resource["namespaced"] == false)
            .filter_map(|(version, resource)| {
                let group = version.split_once('/').map_or("", |(group, _)| group);
                Some((group.to_owned(), resource["name"].as_str()?.to_owned()))
            })
            .collect())
    }

    /// All that the server serves, with group and version.
    pub async fn resources(&self) -> anyhow::Result<Vec<(String, Value)>> {
        let groups = self.get("/apis").await?;
        let groups = groups["groups"].as_array().into_iter().flatten();
        let versions = groups.flat_map(|group| group["versions"].as_array().into_iter().flatten());
        let names = versions.filter_map(|version| version["groupVersion"].as_str().map(str::to_owned));
        let mut found = Vec::new();
        for name in std::iter::once("v1".to_owned()).chain(names) {
            let root = if name == "v1" { "/api" } else { "/apis" };
            // A group is listed a moment before it is served, and a moment after.
            let Some(mut list) = self.find(&format!("{root}/{name}")).await? else {
                continue;
            };
            if let Value::Array(resources) = list["resources"].take() {
                found.extend(resources.into_iter().map(|resource| (name.clone(), resource)));
            }
        }
        Ok(found)
    }
}
