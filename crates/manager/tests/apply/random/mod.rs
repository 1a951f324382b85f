//! Random objects, and random changes of them by the operator and by others.
//!
//! A forced server-side apply decides what is right: kube-manager must write if that apply would change the object, must
//! not write otherwise, and must leave the same object.
mod change;

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube_manager::apply::{Applier, Change, ErrorKind};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::check::{Bench, MANAGER, Target, content};

/// The number of cases of each outcome.
#[derive(Debug, Default)]
pub struct Figures {
    pub unchanged: usize,
    pub changed: usize,
    pub rejected: usize,
    /// The API server rejects the first object or the change.
    pub skipped: usize,
}

/// Runs `count` cases, and returns those that are wrong.
pub async fn run(bench: &Bench, seed: u64, count: u64) -> (Figures, Vec<String>) {
    let definition = serde_yaml::from_str(include_str!("crd.yaml")).unwrap();
    bench.define(&definition).await;
    let documents = serde_yaml::Deserializer::from_str(include_str!("objects.yaml"));
    let objects: Vec<Value> = documents.map(|one| Value::deserialize(one).unwrap()).collect();
    let (mut figures, mut wrong) = (Figures::default(), Vec::new());
    let namespace = bench.namespace().await;
    for number in 0..count {
        let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let template = &objects[random.usize(..objects.len())];
        let mut run = Run {
            bench,
            random: &mut random,
            template,
            namespace: &namespace,
            story: Vec::new(),
        };
        match run.all(number).await {
            Ok(Outcome::Unchanged) => figures.unchanged += 1,
            Ok(Outcome::Changed) => figures.changed += 1,
            Ok(Outcome::Rejected) => figures.rejected += 1,
            Ok(Outcome::Skipped) => figures.skipped += 1,
            Err(error) => {
                let kind = template["kind"].as_str().unwrap();
                wrong.push(format!(
                    "case {number} of seed {seed}, {kind}: {error}\n{}",
                    run.story.join("\n")
                ));
            }
        }
    }
    (figures, wrong)
}

enum Outcome {
    Unchanged,
    Changed,
    Rejected,
    Skipped,
}

struct Run<'a> {
    bench: &'a Bench,
    random: &'a mut fastrand::Rng,
    template: &'a Value,
    namespace: &'a str,
    /// The steps so far, for the report of a failure.
    story: Vec<String>,
}

impl Run<'_> {
    async fn all(&mut self, number: u64) -> Result<Outcome, String> {
        let mut desired = change::part_of(self.template, self.random);
        desired["metadata"]["name"] = format!("case-{number}").into();
        let desired = self.bench.placed(&desired, self.namespace).await;
        let target = self.bench.target(&desired, self.namespace).await;
        self.story.push(format!("desired {desired}"));
        let mut applier = Applier::new(self.bench.operator.clone(), MANAGER);
        match applier.apply(&target.resource, desired.clone(), None).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Rejected => return Ok(Outcome::Skipped),
            Err(error) => return Err(error.to_string()),
        }
        self.is_settled(&applier, &target, &desired, "after the first apply")
            .await?;
        let cleared = self.random.u8(..8) == 0;
        if cleared {
            self.story.push("the managed fields are cleared".to_owned());
            let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]);
            self.patch(&target, "other", Patch::Json(serde_json::from_value(patch).unwrap()))
                .await?;
        }
        let by_others = self.random.u8(..4) != 0;
        if by_others && !self.edit(&target, &desired).await? {
            return Ok(Outcome::Skipped);
        }
        let mut next = desired;
        if !by_others || self.random.u8(..4) == 0 {
            for _ in 0..=self.random.usize(..2) {
                change::change(&mut next, self.template, self.random);
            }
            self.story.push(format!("next {next}"));
        }
        let restarted = self.random.bool();
        if restarted {
            self.story.push("restarted".to_owned());
            applier = Applier::new(self.bench.operator.clone(), MANAGER);
        }
        self.judge(&applier, &target, &next, cleared).await
    }

    /// A change by another client. `false` if the API server rejects it.
    async fn edit(&mut self, target: &Target, desired: &Value) -> Result<bool, String> {
        let live = self.bench.get(target).await.ok_or("the object is deleted")?;
        let way = self.random.u8(..4);
        let mut edited = if way == 0 {
            change::part_of(desired, self.random)
        } else {
            live.clone()
        };
        for _ in 0..=self.random.usize(..2) {
            change::change(&mut edited, self.template, self.random);
        }
        let params = PatchParams {
            field_manager: Some("other".to_owned()),
            force: way == 0,
            ..PatchParams::default()
        };
        let api = self.bench.api(target);
        let result = match way {
            0 => {
                self.story.push(format!("other applies {edited}"));
                api.patch(&target.name, &params, &Patch::Apply(&edited)).await
            }
            1 => {
                let object: Result<DynamicObject, _> = serde_json::from_value(edited.clone());
                let Ok(object) = object else { return Ok(false) };
                let params = PostParams {
                    field_manager: Some("other".to_owned()),
                    dry_run: false,
                };
                self.story
                    .push(format!("other replaces: {}", json!(json_patch::diff(&live, &edited))));
                api.replace(&target.name, &params, &object).await
            }
            _ => {
                let patch = json_patch::diff(&live, &edited);
                self.story.push(format!("other patches {}", json!(patch)));
                api.patch(&target.name, &params, &Patch::Json::<()>(patch)).await
            }
        };
        match result {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422 | 500) => Ok(false),
            Err(error) => Err(format!("the edit: {error}")),
        }
    }

    async fn patch(&self, target: &Target, manager: &str, patch: Patch<()>) -> Result<(), String> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let api = self.bench.api(target);
        let result = api.patch(&target.name, &params, &patch).await;
        result.map(drop).map_err(|error| error.to_string())
    }

    /// The object that a forced apply would leave. `None` if the API server rejects it.
    async fn dry_run(&self, target: &Target, desired: &Value) -> Result<Option<Value>, String> {
        let params = PatchParams::apply(MANAGER).force().dry_run();
        let api = self.bench.api(target);
        let mut desired = desired.clone();
        change::remove_nulls(&mut desired);
        match api.patch(&target.name, &params, &Patch::Apply(desired)).await {
            Ok(object) => Ok(Some(content(serde_json::to_value(object).unwrap()))),
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 409 | 422 | 500) => Ok(None),
            Err(error) => Err(format!("the dry run: {error}")),
        }
    }

    /// The API server rejects it not only because of what the live object has.
    async fn is_invalid(&self, target: &Target, desired: &Value) -> Result<bool, String> {
        let mut other = target.clone();
        other.name = "other".to_owned();
        let mut desired = desired.clone();
        desired["metadata"]["name"] = "other".into();
        Ok(self.dry_run(&other, &desired).await?.is_none())
    }

    async fn judge(
        &mut self,
        applier: &Applier,
        target: &Target,
        desired: &Value,
        cleared: bool,
    ) -> Result<Outcome, String> {
        let live = self.bench.get(target).await.ok_or("the object is deleted")?;
        self.story.push(format!("live {live}"));
        let expected = self.dry_run(target, desired).await?;
        let result = applier
            .apply(&target.resource, desired.clone(), Some(live.clone()))
            .await;
        let (report, expected) = match (result, expected) {
            (Ok(report), expected) => (report, expected),
            (Err(error), None) if error.kind() == ErrorKind::Rejected => return Ok(Outcome::Rejected),
            // Nothing records that the operator wanted the fields that it must remove, which the API server requires.
            (Err(error), Some(_)) if cleared && error.kind() == ErrorKind::Rejected => return Ok(Outcome::Rejected),
            (Err(error), _) => return Err(format!("it failed: {error}")),
        };
        let before = content(live);
        let after = content(self.bench.get(target).await.ok_or("the object is deleted")?);
        let is_same = report.change == Change::Unchanged;
        if is_same != (after == before) {
            return Err(format!("reported {:?} for {}", report.change, diff(&before, &after)));
        }
        match expected {
            // It removed what collided.
            None if is_same && self.is_invalid(target, desired).await? => {
                return Err("the API server rejects it, and it counts as settled".to_owned());
            }
            None => {}
            Some(_) if cleared => {}
            Some(expected) if change::without_node_ports(&expected) == change::without_node_ports(&after) => {}
            Some(expected) => {
                let change = report.change;
                let (wanted, got) = (diff(&before, &expected), diff(&before, &after));
                return Err(format!(
                    "{change:?}: an apply would change {wanted}, and it changed {got}"
                ));
            }
        }
        let Some(left) = self.dry_run(target, desired).await? else {
            // The API server drops some fields once and rejects them when they are applied again, or stores an entry
            // without its empty key.
            return Ok(Outcome::Changed);
        };
        if change::without_empty_values(&left) != change::without_empty_values(&after) {
            return Err(format!("an apply would still change {}", diff(&after, &left)));
        }
        self.is_settled(applier, target, desired, "afterwards").await?;
        Ok(if is_same { Outcome::Unchanged } else { Outcome::Changed })
    }

    /// The same process writes nothing, and neither does a new one.
    async fn is_settled(&self, applier: &Applier, target: &Target, desired: &Value, when: &str) -> Result<(), String> {
        let restarted = Applier::new(self.bench.operator.clone(), MANAGER);
        for (applier, process) in [(applier, "the same process"), (&restarted, "a new process")] {
            let live = self.bench.get(target).await.ok_or("the object is deleted")?;
            let known = self.bench.proxy.count();
            let result = applier
                .apply(&target.resource, desired.clone(), Some(live.clone()))
                .await;
            let report = result.map_err(|error| format!("{when}, {process}: {error}"))?;
            let now = self.bench.get(target).await.ok_or("the object is deleted")?;
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            if process == "the same process" && self.bench.proxy.count() != known {
                return Err(format!("{when}, {process} sent a request"));
            }
            if version(&live) != version(&now) || report.change != Change::Unchanged {
                let (change, difference) = (report.change, diff(&content(live), &content(now)));
                return Err(format!("{when}, {process} wrote {change:?}: {difference}"));
            }
        }
        Ok(())
    }
}

fn diff(before: &Value, after: &Value) -> Value {
    json!(json_patch::diff(before, after))
}
