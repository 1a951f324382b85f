//! Questions to the API server. Everything but CRDs is a dry run.

use std::collections::BTreeSet;
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
    /// What was found in the cluster.
    pub fn of(message: String) -> Self {
        Self {
            status: 200,
            message,
            warnings: Vec::new(),
            body: Value::Null,
        }
    }

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

    /// Asks about every Deployment. Lints show one defect of several Deployments once, so bundles are counted.
    pub async fn deployments(&self, subjects: &[Subject], tally: &mut Tally) -> anyhow::Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "restricted", "labels": {"pod-security.kubernetes.io/warn": "restricted"},
        }});
        self.ask("POST", "/api/v1/namespaces", Some(&namespace)).await?;
        let mut answers = stream::iter(subjects.iter().filter(|subject| !subject.deployments.is_empty()))
            .map(|subject| async move {
                let mut all = Vec::new();
                for deployment in &subject.deployments {
                    let path = format!("/apis/apps/v1/namespaces/restricted/deployments?{DRY}");
                    all.push(self.ask("POST", &path, Some(deployment)).await?);
                }
                anyhow::Ok((subject, all))
            })
            .buffered(AT_ONCE);
        while let Some(answered) = answers.next().await {
            let (subject, all) = answered?;
            tally.deployments += all.len();
            let about = (subject.bundle.as_str(), "Deployments");
            let of = |rules: &[&str]| -> Vec<_> {
                let findings = subject.findings.iter();
                findings
                    .filter(|finding| rules.contains(&finding.rule))
                    .cloned()
                    .collect()
            };
            let violates = |answer: &&Answer| {
                answer
                    .warnings
                    .iter()
                    .any(|text| text.contains("would violate PodSecurity"))
            };
            if let Some(first) = all.first() {
                let refused = all.iter().find(|answer| !answer.accepted());
                let of_deployments = of(&["POD-2", "POD-3"]);
                tally.count(
                    "POD-2: the API server refuses a Deployment",
                    about,
                    &of_deployments,
                    refused.is_some(),
                    refused.unwrap_or(first),
                );
                let violating = all.iter().find(violates);
                // A Deployment that is refused is not looked at.
                if refused.is_none() {
                    tally.count(
                        "POD-1, POD-4: restricted namespaces do not admit the pods",
                        about,
                        &of(&["POD-1", "POD-4"]),
                        violating.is_some(),
                        violating.unwrap_or(first),
                    );
                }
            }
        }
        Ok(())
    }

    /// Installs the CRDs of some bundles, asks about their examples, and starts to remove the CRDs: that takes seconds for each.
    pub async fn examples(&self, wave: &[&Subject], tally: &mut Tally) -> anyhow::Result<()> {
        let definitions: Vec<&Definition> = wave.iter().flat_map(|subject| subject.used_definitions()).collect();
        let created: Vec<anyhow::Result<Answer>> = stream::iter(&definitions)
            .map(|crd| self.install(crd))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let created = definitions.iter().zip(created);
        let names = created.filter_map(|(crd, answer)| {
            answer
                .ok()
                .filter(|answer| answer.status == 201)
                .map(|_| crd.name.as_str())
        });
        let mut established = Vec::new();
        let mut broken = Vec::new();
        let end = Instant::now() + PATIENCE;
        for name in names {
            match self.is_established(name, end).await? {
                true => established.push(name),
                false => broken.push(name),
            }
        }
        for name in &broken {
            eprintln!("{name} is not established");
        }
        let names = established;
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
        let mut deleted = stream::iter(names.iter().chain(&broken))
            .map(|name| async move { self.ask("DELETE", &format!("{DEFINITIONS}/{name}"), None).await })
            .buffered(AT_ONCE);
        while let Some(answer) = deleted.next().await {
            answer?;
        }
        Ok(())
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
        // One of the name may still be on its way out.
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask("POST", DEFINITIONS, Some(&object)).await?;
            if answer.status != 409 || Instant::now() > end {
                return Ok(answer);
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Waits until a CRD is established; one whose names clash with another's never is.
    async fn is_established(&self, name: &str, end: Instant) -> anyhow::Result<bool> {
        loop {
            let answer = self.ask("GET", &format!("{DEFINITIONS}/{name}"), None).await?;
            let conditions = answer.body["status"]["conditions"].as_array();
            let has = |kind: &str, status: &str| {
                conditions
                    .into_iter()
                    .flatten()
                    .any(|one| one["type"] == kind && one["status"] == status)
            };
            if has("Established", "True") {
                return Ok(true);
            }
            if Instant::now() > end {
                return Ok(false);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
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
