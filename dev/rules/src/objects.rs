//! Asks the API server about the objects of bundles. Everything but CRDs is a dry run.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::bundles::{Definition, Example, Subject};
use crate::server::Server;
use crate::tally::Tally;

/// Requests at the same time.
const AT_ONCE: usize = 6;

/// Time limit until CRDs are served.
const PATIENCE: Duration = Duration::from_secs(120);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DRY: &str = "dryRun=All&fieldValidation=Warn";

/// Asks about every CRD.
pub async fn definitions(server: &Server, subjects: &[Subject], tally: &mut Tally) -> anyhow::Result<()> {
    let all = subjects
        .iter()
        .flat_map(|subject| subject.definitions.iter().map(move |crd| (subject, crd)));
    let mut answers = stream::iter(all)
        .map(|(subject, crd)| async move {
            let mut object = crd.object.clone();
            if let Some(object) = object.as_object_mut() {
                object.remove("status");
            }
            let answer = server.ask("POST", &format!("{DEFINITIONS}?{DRY}"), Some(&object)).await;
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
            // A rule of operator-sdk reports it.
            tally.count(
                "CRD-1 to CRD-29: the API server rejects the CRD",
                about,
                &crd.refusals,
                true,
                &answer,
            );
        } else {
            tally.count(
                "CRD-30: the API server rejects the CRD",
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
pub async fn deployments(server: &Server, subjects: &[Subject], tally: &mut Tally) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "restricted", "labels": {"pod-security.kubernetes.io/warn": "restricted"},
    }});
    server.ask("POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let mut answers = stream::iter(subjects.iter().filter(|subject| !subject.deployments.is_empty()))
        .map(|subject| async move {
            let mut all = Vec::new();
            for deployment in &subject.deployments {
                let path = format!("/apis/apps/v1/namespaces/restricted/deployments?{DRY}");
                all.push(server.ask("POST", &path, Some(deployment)).await?);
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
                "POD-2: the API server rejects a Deployment",
                about,
                &of_deployments,
                refused.is_some(),
                refused.unwrap_or(first),
            );
            let violating = all.iter().find(violates);
            // A rejected Deployment is not checked further.
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

/// Installs the CRDs of some bundles, tests their examples, and starts to remove the CRDs, which takes seconds for
/// each.
pub async fn examples(server: &Server, wave: &[&Subject], tally: &mut Tally) -> anyhow::Result<()> {
    let definitions: Vec<&Definition> = wave.iter().flat_map(|subject| subject.used_definitions()).collect();
    let created: Vec<anyhow::Result<Answer>> = stream::iter(&definitions)
        .map(|crd| install(server, crd))
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
        match is_established(server, name, end).await? {
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
        .map(|(subject, example, crd)| async move { (subject, example, crd, create(server, example, crd).await) })
        .buffered(AT_ONCE);
    while let Some((subject, example, crd, answer)) = answers.next().await {
        judge(subject, example, crd, &answer?, tally);
    }
    let mut deleted = stream::iter(names.iter().chain(&broken))
        .map(|name| async move { server.ask("DELETE", &format!("{DEFINITIONS}/{name}"), None).await })
        .buffered(AT_ONCE);
    while let Some(answer) = deleted.next().await {
        answer?;
    }
    Ok(())
}

/// Installs a CRD without its conversion webhook, which has no server.
async fn install(server: &Server, crd: &Definition) -> anyhow::Result<Answer> {
    let mut object = crd.object.clone();
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    // A CRD of that name may still be in deletion.
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = server.ask("POST", DEFINITIONS, Some(&object)).await?;
        if answer.status != 409 || Instant::now() > end {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until a CRD is established. One whose names clash with another's never is.
async fn is_established(server: &Server, name: &str, end: Instant) -> anyhow::Result<bool> {
    loop {
        let answer = server.ask("GET", &format!("{DEFINITIONS}/{name}"), None).await?;
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

async fn create(server: &Server, example: &Example, crd: &Definition) -> anyhow::Result<Answer> {
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
        let answer = server.ask("POST", &path, Some(&object)).await?;
        tries -= 1;
        if answer.status != 404 || tries == 0 {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Compares the answer with the rules' findings.
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
        "EX-3: the API server rejects an example without name or of a version that is not served",
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
        "EX-1: the API server rejects an example",
        about,
        &example.refusals,
        !answer.accepted(),
        answer,
    );
    // The server may reject an object before it checks its fields.
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
