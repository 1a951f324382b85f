//! Questions to the API server. Everything but CRDs is a dry run.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

use crate::bundles::{Definition, Example, Subject};
use crate::tally::Tally;

/// Requests at the same time.
const AT_ONCE: usize = 6;

/// How long definitions may take to be served.
const PATIENCE: Duration = Duration::from_secs(120);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DRY: &str = "dryRun=All&fieldValidation=Warn";

/// What the server said.
pub struct Answer {
    pub status: u16,
    pub message: String,
    pub warnings: Vec<String>,
    pub body: Value,
}

impl Answer {
    fn accepted(&self) -> bool {
        // An object of the name exists: everything was checked before.
        (200..300).contains(&self.status) || self.status == 409
    }

    fn drops(&self) -> bool {
        self.warnings.iter().any(|warning| warning.contains("unknown field"))
    }
}

/// The API server.
pub struct Server {
    client: kube::Client,
}

impl Server {
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Body::from(bytes))?;
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

    /// Asks about every CRD.
    pub async fn definitions(&self, subjects: &[Subject], tally: &mut Tally) -> anyhow::Result<()> {
        let all = subjects
            .iter()
            .flat_map(|subject| subject.definitions.iter().map(move |crd| (subject, crd)));
        let mut answers = stream::iter(all)
            .map(|(subject, crd)| async move {
                let mut object = crd.object.clone();
                if let Some(object) = object.as_object_mut() {
                    object.remove("status");
                }
                let answer = self.ask("POST", &format!("{DEFINITIONS}?{DRY}"), Some(&object)).await;
                (subject, crd, answer)
            })
            .buffered(AT_ONCE);
        while let Some((subject, crd, answer)) = answers.next().await {
            let answer = answer?;
            tally.definitions += 1;
            let about = (subject.bundle.as_str(), crd.name.as_str());
            let lints: Vec<_> = crd
                .refusals
                .iter()
                .filter(|finding| finding.rule == "CRD-30")
                .cloned()
                .collect();
            let refused = !answer.accepted();
            if refused && lints.is_empty() && !crd.refusals.is_empty() {
                // A rule of operator-sdk says it.
                tally.count(
                    "CRD-1 to CRD-29: the API server refuses the CRD",
                    about,
                    &crd.refusals,
                    true,
                    &answer,
                );
            } else {
                tally.count(
                    "CRD-30: the API server refuses the CRD",
                    about,
                    &lints,
                    refused,
                    &answer,
                );
            }
            tally.count(
                "FILE-3: the API server drops a field of a CRD",
                about,
                &crd.dropped,
                answer.drops(),
                &answer,
            );
        }
        Ok(())
    }

    /// Asks about every Deployment.
    pub async fn deployments(&self, subjects: &[Subject], tally: &mut Tally) -> anyhow::Result<()> {
        let all = subjects
            .iter()
            .flat_map(|subject| subject.deployments.iter().map(move |one| (subject, one)));
        let mut answers = stream::iter(all)
            .map(|(subject, one)| async move {
                let path = format!("/apis/apps/v1/namespaces/default/deployments?{DRY}");
                (subject, one, self.ask("POST", &path, Some(&one.object)).await)
            })
            .buffered(AT_ONCE);
        while let Some((subject, one, answer)) = answers.next().await {
            let answer = answer?;
            tally.deployments += 1;
            let name = one.object["metadata"]["name"].as_str().unwrap_or_default();
            tally.count(
                "POD-2: the API server refuses the Deployment",
                (&subject.bundle, name),
                &one.refusals,
                !answer.accepted(),
                &answer,
            );
        }
        Ok(())
    }

    /// Installs the CRDs of some bundles, asks about their examples, and removes the CRDs.
    pub async fn examples(&self, wave: &[&Subject], tally: &mut Tally) -> anyhow::Result<()> {
        let definitions: Vec<&Definition> = wave.iter().flat_map(|subject| subject.used_definitions()).collect();
        let created: Vec<anyhow::Result<Answer>> = stream::iter(&definitions)
            .map(|crd| self.install(crd))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let names: Vec<&str> = definitions
            .iter()
            .zip(created)
            .filter_map(|(crd, answer)| answer.ok().filter(Answer::accepted).map(|_| crd.name.as_str()))
            .collect();
        self.until(|listed| {
            names
                .iter()
                .all(|name| listed.iter().any(|(known, ready)| known == name && *ready))
        })
        .await?;
        let questions = wave.iter().flat_map(|subject| {
            let of_it = subject
                .examples
                .iter()
                .filter_map(move |example| Some((*subject, example, subject.definition_of(example)?)));
            of_it.filter(|(_, _, crd)| names.contains(&crd.name.as_str()))
        });
        let mut answers = stream::iter(questions)
            .map(|(subject, example, crd)| async move { (subject, example, crd, self.example(example, crd).await) })
            .buffered(AT_ONCE);
        while let Some((subject, example, crd, answer)) = answers.next().await {
            judge(subject, example, crd, &answer?, tally);
        }
        for name in &names {
            self.ask("DELETE", &format!("{DEFINITIONS}/{name}"), None).await?;
        }
        self.until(|listed| !names.iter().any(|name| listed.iter().any(|(known, _)| known == name)))
            .await
    }

    /// Installs a CRD without its conversion webhook, which nobody serves.
    async fn install(&self, crd: &Definition) -> anyhow::Result<Answer> {
        let mut object = crd.object.clone();
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("conversion".into(), json!({"strategy": "None"}));
        }
        self.ask("POST", DEFINITIONS, Some(&object)).await
    }

    /// Waits until the list of CRDs, each with whether it is established, fulfils a condition.
    async fn until(&self, holds: impl Fn(&[(String, bool)]) -> bool) -> anyhow::Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("GET", DEFINITIONS, None).await?;
            let listed: Vec<(String, bool)> = answer.body["items"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|crd| {
                    let conditions = crd["status"]["conditions"].as_array();
                    let is_ready = conditions
                        .into_iter()
                        .flatten()
                        .any(|one| one["type"] == "Established" && one["status"] == "True");
                    (
                        crd["metadata"]["name"].as_str().unwrap_or_default().to_string(),
                        is_ready,
                    )
                })
                .collect();
            if holds(&listed) {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < end,
                "CRDs are not established or removed after {PATIENCE:?}"
            );
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    async fn example(&self, example: &Example, crd: &Definition) -> anyhow::Result<Answer> {
        let text = |pointer: &str| crd.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let api = example.object["apiVersion"].as_str().unwrap_or_default();
        let mut object = example.object.clone();
        let mut namespace = "";
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // A console creates the example in the namespace that its user works in.
            metadata.remove("namespace");
        }
        if text("/spec/scope") == "Namespaced" {
            namespace = "/namespaces/default";
        }
        let path = format!("/apis/{api}{namespace}/{}?{DRY}", text("/spec/names/plural"));
        let served = crd.object["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|version| {
                version["served"] == true && api.rsplit_once('/').is_some_and(|(_, name)| version["name"] == name)
            });
        // An established CRD is served a moment later.
        let mut tries = if served { 40 } else { 1 };
        loop {
            let answer = self.ask("POST", &path, Some(&object)).await?;
            tries -= 1;
            if answer.status != 404 || tries == 0 {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Compares the answer with what the rules say.
fn judge(subject: &Subject, example: &Example, crd: &Definition, answer: &Answer, tally: &mut Tally) {
    let what = format!("example {} of {}", example.number, crd.name);
    let about = (subject.bundle.as_str(), what.as_str());
    let nameless = example.object["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .is_empty();
    let not_served = answer.status == 404;
    let incomplete = not_served || nameless && !answer.accepted();
    tally.examples += 1;
    tally.count(
        "EX-3: the API server refuses an example without name or of a version that is not served",
        about,
        &example.incomplete,
        incomplete,
        answer,
    );
    if not_served || !example.incomplete.is_empty() {
        return;
    }
    if answer.status >= 500 || answer.status == 429 {
        tally.not_asked(about, answer);
        return;
    }
    tally.count(
        "EX-1: the API server refuses an example",
        about,
        &example.refusals,
        !answer.accepted(),
        answer,
    );
    // A refused object may be refused before its fields are looked at.
    if answer.accepted() {
        tally.count(
            "EX-2: the API server drops a field of an example",
            about,
            &example.dropped,
            answer.drops(),
            answer,
        );
    }
}
