//! Runs a case and compares what happens with what it expects.
use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::{self, Scope},
};
use kube_manager::{
    apply::{Applier, Change, Conflict, Error, ErrorKind, Report},
    worker::Failure as _,
};
use kube_testbed::{ControlPlane, Options, faults::FaultProxy};
use serde_json::{Value, json};

use crate::cases::{Case, Step};

/// The operator's field manager.
pub const MANAGER: &str = "op";

/// Number of times that another client can repeat a change before kube-manager reports it.
const FEW: usize = 4;

pub struct Bench {
    _plane: ControlPlane,
    pub proxy: FaultProxy,
    /// Of the operator, whose requests are counted.
    pub operator: Client,
    /// Of all others.
    admin: Client,
    namespaces: AtomicU32,
}

type Checked = Result<(), String>;

/// An object in a cluster.
#[derive(Clone)]
pub struct Target {
    pub resource: ApiResource,
    namespace: Option<String>,
    pub name: String,
}

/// The requests of the operator during one reconcile.
struct Reconciled {
    result: Result<Report, Error>,
    /// Requests for objects, in the form "patch configmaps 200".
    requests: Vec<String>,
    /// The number of writes that succeeded.
    writes: usize,
}

impl Bench {
    pub async fn start() -> Self {
        let options = Options::default().without_controllers().pods_become_ready(false);
        let plane = ControlPlane::start(options).await.unwrap();
        let admin = plane.client().await.unwrap();
        let proxy = plane.faults(1).await.unwrap();
        let operator = proxy.client(plane.kubeconfig()).await.unwrap();
        Self {
            _plane: plane,
            proxy,
            operator,
            admin,
            namespaces: AtomicU32::new(0),
        }
    }

    /// Checks that one of the accepted results comes out.
    pub async fn check(&self, case: &Case, restarted: bool) -> Checked {
        let mut errors = Vec::new();
        for expect in std::iter::once(&case.expect).chain(&case.accept) {
            match self.run(case, expect, restarted).await {
                Ok(()) => return Ok(()),
                Err(error) => errors.push(format!("{expect}: {error}")),
            }
        }
        Err(errors.join("; "))
    }

    async fn run(&self, case: &Case, expect: &str, restarted: bool) -> Checked {
        let namespace = self.namespace().await;
        for step in &case.before {
            self.act(step, None, &namespace).await?;
        }
        let desired = self.placed(&case.desired, &namespace).await;
        let target = self.target(&desired, &namespace).await;
        let mutated = expect == "conflict" && case.edit.is_empty();
        if mutated {
            self.admission_is_active(&target, &desired, &case.fields).await?;
        }
        let mut applier = Applier::new(self.operator.clone(), MANAGER);
        let first = self.reconcile(&applier, case, &target, &desired).await;
        if case.next.is_none() && case.edit.is_empty() {
            let result = self.judge_first(case, expect, &applier, &target, &desired, first).await;
            self.clean(case, &target).await;
            return result;
        }
        if let Err(error) = &first.result
            && !matches!(expect, "kept" | "rejected")
        {
            return Err(format!("the first apply failed: {error}"));
        }
        let mut steps = Ok(());
        for step in &case.edit {
            steps = steps.and(self.act(step, Some(&target), &namespace).await);
        }
        steps?;
        let last = match &case.next {
            Some(next) => self.placed(next, &namespace).await,
            None => desired,
        };
        if restarted {
            applier = Applier::new(self.operator.clone(), MANAGER);
        }
        let clears = case.edit.iter().any(|step| {
            step.patch
                .as_ref()
                .is_some_and(|patch| patch.to_string().contains("managedFields"))
        });
        if restarted && clears && case.next.is_some() && expect == "drift" {
            println!(
                "{} (restarted): skipped, nothing records what an earlier process applied",
                case.name
            );
            return Ok(());
        }
        let result = self
            .judge(case, expect, &applier, &target, &last, restarted, &namespace)
            .await;
        self.clean(case, &target).await;
        result
    }

    /// The case is about the first apply.
    async fn judge_first(
        &self,
        case: &Case,
        expect: &str,
        applier: &Applier,
        target: &Target,
        desired: &Value,
        first: Reconciled,
    ) -> Checked {
        match expect {
            "rejected" => {
                self.is_rejected(case, &first)?;
                self.is_not_repeated(case, applier, target, desired).await
            }
            "kept" => {
                if let (Err(error), Some(reason)) = (&first.result, &case.reason) {
                    let own = error.kind() == ErrorKind::Taken && reason.contains("reason of its own");
                    check(own || reason.contains(error.reason()), || {
                        format!("reason {}", error.reason())
                    })?;
                }
                check(case.reason.is_none() || first.result.is_err(), || {
                    "it was applied".to_owned()
                })?;
                check(first.writes == 0, || format!("sent {:?}", first.requests))?;
                let live = self.get(target).await.ok_or("it is deleted")?;
                let mut objects = case.before.iter().filter_map(|step| step.object.as_ref());
                let before = objects.next_back().map(encoded).unwrap_or_default();
                for field in &case.fields {
                    let (old, new) = (at(&before, field), at(&live, field));
                    check(old == new, || format!("{field} was {old:?} and is {new:?}"))?;
                }
                Ok(())
            }
            "conflict" => {
                let report = first.result.map_err(|error| error.to_string())?;
                let conflict = report.conflict.ok_or("no conflict was reported")?;
                check(names_field(case, &conflict.field), || {
                    format!("named {}", conflict.field)
                })?;
                check(conflict.new, || "the conflict is not new".to_owned())?;
                for _ in 0..3 {
                    let again = self.reconcile(applier, case, target, desired).await;
                    let report = again.result.map_err(|error| error.to_string())?;
                    check(again.writes == 0, || format!("sent {:?}", again.requests))?;
                    let again = report.conflict.ok_or("the conflict is forgotten")?;
                    check(!again.new, || "the conflict is reported twice".to_owned())?;
                }
                Ok(())
            }
            "in-sync" => {
                let report = first
                    .result
                    .map_err(|error| format!("the first apply failed: {error}"))?;
                check(report.conflict.is_none(), || format!("reported {:?}", report.conflict))?;
                self.is_settled(applier, case, target, desired).await?;
                // A new process may ask once, and then nothing is written.
                let applier = Applier::new(self.operator.clone(), MANAGER);
                self.nothing_is_written(&applier, case, target, desired).await?;
                self.is_settled(&applier, case, target, desired).await
            }
            other => Err(format!("cannot check {other} without an edit")),
        }
    }

    #[allow(clippy::too_many_arguments)]
    async fn judge(
        &self,
        case: &Case,
        expect: &str,
        applier: &Applier,
        target: &Target,
        desired: &Value,
        restarted: bool,
        namespace: &str,
    ) -> Checked {
        let before = self.get(target).await;
        match expect {
            "in-sync" => {
                if !restarted {
                    return self.is_settled(applier, case, target, desired).await;
                }
                self.nothing_is_written(applier, case, target, desired).await?;
                self.is_settled(applier, case, target, desired).await
            }
            "drift" => {
                let before = before.ok_or("the object is deleted")?;
                let done = self.reconcile(applier, case, target, desired).await;
                let report = done.result.map_err(|error| format!("it failed: {error}"))?;
                check((1..=2).contains(&done.writes), || format!("sent {:?}", done.requests))?;
                let (Change::Updated(changes) | Change::Reverted(changes)) = &report.change else {
                    return Err(format!("reported {:?}", report.change));
                };
                let named = changes.iter().find(|change| names_field(case, &change.field));
                let named = named.ok_or_else(|| format!("named {changes:?} instead of {:?}", case.fields))?;
                let is_reverted = matches!(report.change, Change::Reverted(_));
                let manager = named.manager.clone().filter(|_| is_reverted);
                if let (Some(edit), false, None) = (case.edit.last(), restarted, &case.next) {
                    let manager = manager.ok_or("the edit counts as the operator's own")?;
                    check(!is_recorded(&before, edit) || manager.contains(&edit.manager), || {
                        format!("blamed {manager} instead of {}", edit.manager)
                    })?;
                }
                self.is_as_desired(case, target, desired, &before).await?;
                self.is_settled(applier, case, target, desired).await
            }
            "recreated" => {
                let done = self.reconcile(applier, case, target, desired).await;
                let report = done.result.map_err(|error| format!("it failed: {error}"))?;
                check(report.change == Change::Created, || {
                    format!("reported {:?}", report.change)
                })?;
                check(done.writes == 1, || format!("sent {:?}", done.requests))?;
                self.get(target).await.ok_or("it does not exist")?;
                self.is_settled(applier, case, target, desired).await
            }
            "rejected" => {
                let done = self.reconcile(applier, case, target, desired).await;
                self.is_rejected(case, &done)?;
                self.is_not_repeated(case, applier, target, desired).await
            }
            "kept" => {
                let before = before.ok_or("the object is deleted")?;
                let mut refused = 0;
                for _ in 0..3 {
                    let done = self.reconcile(applier, case, target, desired).await;
                    refused += done
                        .requests
                        .iter()
                        .filter(|request| !request.starts_with("get") && !request.ends_with(" 200"))
                        .count();
                    if let (Err(error), Some(reason)) = (&done.result, &case.reason) {
                        check(reason.contains(error.reason()), || format!("reason {}", error.reason()))?;
                    }
                }
                check(refused <= 1, || format!("{refused} rejected requests"))?;
                let live = self.get(target).await.ok_or("it is deleted")?;
                for field in &case.fields {
                    let (old, new) = (at(&before, field), at(&live, field));
                    check(old == new, || format!("{field} was {old:?} and is {new:?}"))?;
                }
                Ok(())
            }
            "conflict" => self.is_conflict(case, applier, target, desired, namespace).await,
            other => Err(format!("unknown expectation {other}")),
        }
    }

    /// Repeats the edits until the conflict is reported, and afterwards.
    async fn is_conflict(
        &self,
        case: &Case,
        applier: &Applier,
        target: &Target,
        desired: &Value,
        namespace: &str,
    ) -> Checked {
        let (mut writes, mut reports, mut reported) = (0, 0, None::<Conflict>);
        for round in 0..8 {
            let done = self.reconcile(applier, case, target, desired).await;
            let report = done.result.map_err(|error| format!("round {round}: {error}"))?;
            if reported.is_some() {
                check(done.writes == 0, || {
                    format!("round {round} still sent {:?}", done.requests)
                })?;
                check(report.conflict.is_some(), || "the conflict is forgotten".to_owned())?;
            }
            writes += done.writes;
            if let Some(conflict) = report.conflict.filter(|conflict| conflict.new) {
                reports += 1;
                reported = Some(conflict);
            }
            for step in &case.edit {
                self.act(step, Some(target), namespace).await?;
            }
        }
        let conflict = reported.ok_or_else(|| format!("no conflict was reported after {writes} writes"))?;
        check(reports == 1, || format!("it was reported {reports} times"))?;
        check(writes <= FEW, || format!("{writes} writes"))?;
        check(names_field(case, &conflict.field), || {
            format!("named {}", conflict.field)
        })?;
        let edit = case.edit.last().unwrap();
        let is_recorded = is_recorded(&self.get(target).await.unwrap_or_default(), edit);
        check(!is_recorded || conflict.manager.contains(&edit.manager), || {
            format!("blamed {}", conflict.manager)
        })?;
        check(conflict.retry_after >= Duration::from_secs(10), || {
            format!("retries after {:?}", conflict.retry_after)
        })
    }

    fn is_rejected(&self, case: &Case, done: &Reconciled) -> Checked {
        let Err(error) = &done.result else {
            return Err(format!("it was applied: {:?}", done.requests));
        };
        check(done.writes == 0, || format!("sent {:?}", done.requests))?;
        check(error.kind() == ErrorKind::Rejected, || {
            format!("{:?}: {error}", error.kind())
        })?;
        if let Some(reason) = &case.reason {
            check(reason.contains(error.reason()), || format!("reason {}", error.reason()))?;
        }
        let wait = error.retry_after().unwrap_or_default();
        check(wait >= Duration::from_secs(30), || {
            format!("tried again after {wait:?}")
        })
    }

    /// A rejected object is not sent again while nothing changes.
    async fn is_not_repeated(&self, case: &Case, applier: &Applier, target: &Target, desired: &Value) -> Checked {
        let again = self.reconcile(applier, case, target, desired).await;
        self.is_rejected(case, &again)?;
        let sent = again
            .requests
            .iter()
            .filter(|request| !request.starts_with("get"))
            .count();
        check(sent == 0, || format!("sent again: {:?}", again.requests))
    }

    async fn is_settled(&self, applier: &Applier, case: &Case, target: &Target, desired: &Value) -> Checked {
        let done = self.reconcile(applier, case, target, desired).await;
        let report = done
            .result
            .map_err(|error| format!("the reconcile after it failed: {error}"))?;
        check(done.requests.is_empty(), || {
            format!("the reconcile after it sent {:?}: {:?}", done.requests, report.change)
        })
    }

    async fn nothing_is_written(&self, applier: &Applier, case: &Case, target: &Target, desired: &Value) -> Checked {
        let done = self.reconcile(applier, case, target, desired).await;
        let report = done.result.map_err(|error| format!("it failed: {error}"))?;
        check(report.change == Change::Unchanged, || {
            format!("reported {:?}", report.change)
        })?;
        check(done.writes == 0, || format!("sent {:?}", done.requests))
    }

    /// Every field of the case is as desired, and the API server agrees that nothing is left to do.
    async fn is_as_desired(&self, case: &Case, target: &Target, desired: &Value, before: &Value) -> Checked {
        let live = self.get(target).await.ok_or("it is deleted")?;
        let desired = encoded(desired);
        let is_changed = |field: &String| at(&live, field) != at(before, field);
        check(case.fields.iter().any(is_changed), || format!("it is still {live}"))?;
        for field in &case.fields {
            let (wanted, has, had) = (at(&desired, field), at(&live, field), at(before, field));
            let right = match wanted.is_empty() {
                true => has != had,
                // Kubernetes leaves out empty values.
                false if has.is_empty() => wanted.iter().all(is_empty),
                false => has_all(&has, &wanted),
            };
            check(right, || format!("{field} is {has:?} instead of {wanted:?}"))?;
        }
        if !case.keep.is_empty() {
            return Ok(());
        }
        let params = PatchParams::apply(MANAGER).force().dry_run();
        let api = self.api(target);
        let dry = api
            .patch(&target.name, &params, &Patch::Apply(&desired))
            .await
            .map_err(|error| error.to_string())?;
        let (dry, live) = (content(serde_json::to_value(dry).unwrap()), content(live));
        check(dry == live, || format!("an apply would change {live} to {dry}"))
    }

    async fn reconcile(&self, applier: &Applier, case: &Case, target: &Target, desired: &Value) -> Reconciled {
        let live = self.get(target).await;
        let known = self.proxy.count();
        let keep: Vec<&str> = case.keep.iter().map(String::as_str).collect();
        let desired = desired.clone();
        let result = match case.call.as_deref() {
            None | Some("apply") => applier.apply(&target.resource, desired, live).await,
            Some("apply_keeping") => applier.apply_keeping(&target.resource, desired, live, &keep).await,
            Some("create_once") => applier.create_once(&target.resource, desired, live).await,
            Some(other) => panic!("unknown call {other}"),
        };
        let requests = self.proxy.requests_after(known);
        let objects = requests.iter().filter(|request| !request.resource.is_empty());
        let code = |answer: Option<(u16, _)>| answer.map_or(0, |(code, _)| code);
        let writes = objects
            .clone()
            .filter(|request| request.verb.is_write() && !request.dry_run && code(request.answer) < 300)
            .count();
        let describe = |request: &kube_testbed::faults::ProxiedRequest| {
            format!("{:?} {} {}", request.verb, request.resource, code(request.answer)).to_lowercase()
        };
        Reconciled {
            result,
            requests: objects.map(describe).collect(),
            writes,
        }
    }

    /// A change by another client.
    async fn act(&self, step: &Step, target: Option<&Target>, namespace: &str) -> Checked {
        let object = match &step.object {
            Some(object) => Some(self.placed(object, namespace).await),
            None => None,
        };
        let target = match (&object, target) {
            (Some(object), _) => self.target(object, namespace).await,
            (None, Some(target)) => target.clone(),
            (None, None) => return Err("a step without an object".to_owned()),
        };
        let api = self.api(&target);
        let text = |error: kube::Error| format!("{} cannot change {}: {error}", step.manager, target.name);
        let Some(kind) = &step.kind else {
            let object: DynamicObject = serde_json::from_value(object.unwrap()).unwrap();
            let params = PostParams {
                field_manager: Some(step.manager.clone()),
                dry_run: false,
            };
            match api.create(&params, &object).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
                result => drop(result.map_err(text)?),
            }
            if target.resource.kind == "CustomResourceDefinition" {
                self.is_served(&object.data).await;
            }
            return Ok(());
        };
        if kind == "delete" {
            match api.delete(&target.name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                result => drop(result.map_err(text)?),
            }
            return Ok(());
        }
        let patch = step.patch.clone().unwrap_or_default();
        let mut params = PatchParams {
            field_manager: Some(step.manager.clone()),
            ..PatchParams::default()
        };
        let patch = match kind.as_str() {
            "json" => Patch::Json(serde_json::from_value(patch).unwrap()),
            "merge" => Patch::Merge(patch),
            "strategic" => Patch::Strategic(patch),
            "apply" => {
                params.force = true;
                let mut patch = patch;
                patch["apiVersion"] = target.resource.api_version.clone().into();
                patch["kind"] = target.resource.kind.clone().into();
                Patch::Apply(patch)
            }
            other => return Err(format!("unknown type {other}")),
        };
        let result = match &step.subresource {
            Some(subresource) => api
                .patch_subresource(subresource, &target.name, &params, &patch)
                .await
                .map(drop),
            None => api.patch(&target.name, &params, &patch).await.map(drop),
        };
        result.map_err(text)
    }

    /// Creates a definition and waits until the API server serves its kind.
    pub async fn define(&self, definition: &Value) {
        let target = self.target(definition, "default").await;
        let object: DynamicObject = serde_json::from_value(definition.clone()).unwrap();
        self.api(&target).create(&PostParams::default(), &object).await.unwrap();
        self.is_served(definition).await;
    }

    async fn is_served(&self, definition: &Value) {
        let spec = &definition["spec"];
        let version = spec["versions"][0]["name"].as_str().unwrap();
        let kind = GroupVersionKind::gvk(
            spec["group"].as_str().unwrap(),
            version,
            spec["names"]["kind"].as_str().unwrap(),
        );
        for _ in 0..600 {
            if let Ok((resource, _)) = discovery::pinned_kind(&self.admin, &kind).await {
                let served = Api::<DynamicObject>::all_with(self.admin.clone(), &resource)
                    .list(&Default::default())
                    .await;
                let path = format!("apis/{}/{}", kind.group, kind.version);
                let request = http::Request::get("/openapi/v3").body(Vec::new()).unwrap();
                let index: Value = self.admin.request(request).await.unwrap();
                if served.is_ok() && index["paths"][path].is_object() {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not served within 30 seconds: {kind:?}");
    }

    /// A policy takes effect some time after it was created.
    async fn admission_is_active(&self, target: &Target, desired: &Value, fields: &[String]) -> Checked {
        let params = PatchParams::apply("probe").force().dry_run();
        for _ in 0..600 {
            let answer = self
                .api(target)
                .patch(&target.name, &params, &Patch::Apply(desired))
                .await;
            let answer = serde_json::to_value(answer.map_err(|error| error.to_string())?).unwrap();
            if fields.iter().any(|field| at(&answer, field) != at(desired, field)) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err("admission changes nothing within 30 seconds".to_owned())
    }

    pub async fn get(&self, target: &Target) -> Option<Value> {
        let object = self.api(target).get_opt(&target.name).await.ok()??;
        Some(serde_json::to_value(object).unwrap())
    }

    pub fn api(&self, target: &Target) -> Api<DynamicObject> {
        match &target.namespace {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &target.resource),
            None => Api::all_with(self.admin.clone(), &target.resource),
        }
    }

    pub async fn target(&self, object: &Value, namespace: &str) -> Target {
        let (resource, namespaced) = self.resource(object).await;
        let text = |name: &str| object["metadata"][name].as_str().map(str::to_owned);
        let namespace = text("namespace").unwrap_or_else(|| namespace.to_owned());
        Target {
            resource,
            namespace: namespaced.then_some(namespace),
            name: text("name").unwrap_or_default(),
        }
    }

    async fn resource(&self, object: &Value) -> (ApiResource, bool) {
        let version = object["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
        let (resource, capabilities) = discovery::pinned_kind(&self.admin, &kind).await.unwrap();
        (resource, capabilities.scope == Scope::Namespaced)
    }

    /// `object` in its own namespace, or in this one.
    pub async fn placed(&self, object: &Value, namespace: &str) -> Value {
        let mut object = object.clone();
        if self.resource(&object).await.1 && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    pub async fn namespace(&self) -> String {
        let name = format!("case-{}", self.namespaces.fetch_add(1, SeqCst));
        let object = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        Api::<Namespace>::all(self.admin.clone())
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        name
    }

    /// Objects without a namespace must not meet the next case. Definitions stay: they take long to go.
    async fn clean(&self, case: &Case, target: &Target) {
        let mut targets = vec![target.clone()];
        for object in case.before.iter().filter_map(|step| step.object.as_ref()) {
            targets.push(self.target(object, "default").await);
        }
        for target in targets.iter().filter(|target| target.namespace.is_none()) {
            if !matches!(target.resource.kind.as_str(), "CustomResourceDefinition" | "Namespace") {
                let _ = self.api(target).delete(&target.name, &DeleteParams::default()).await;
            }
        }
    }
}

/// `object` without the metadata that every write changes.
pub fn content(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for name in ["managedFields", "resourceVersion", "generation"] {
        metadata.remove(name);
    }
    object
}

/// Returns false if the edit only removed fields: the API server records nothing about it.
fn is_recorded(object: &Value, edit: &Step) -> bool {
    object["metadata"]["managedFields"].to_string().contains(&edit.manager)
}

fn names_field(case: &Case, field: &str) -> bool {
    let plain = plain(field);
    let mut fields = case.fields.iter();
    fields.any(|wanted| is_prefix(wanted, &plain) || is_prefix(&plain, wanted))
}

fn check(right: bool, error: impl FnOnce() -> String) -> Checked {
    if right { Ok(()) } else { Err(error()) }
}

/// `path` without keys and positions of lists.
fn plain(path: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

fn is_prefix(short: &str, long: &str) -> bool {
    long.strip_prefix(short)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The values at a path without list positions. A key of a map may contain dots.
fn at(object: &Value, path: &str) -> Vec<Value> {
    let path = path.trim_start_matches('.');
    match object {
        Value::Null => Vec::new(),
        value if path.is_empty() => vec![value.clone()],
        Value::Array(list) => list.iter().flat_map(|entry| at(entry, path)).collect(),
        Value::Object(map) => match map.get(path) {
            Some(value) => at(value, ""),
            None => {
                let (name, rest) = path.split_once('.').unwrap_or((path, ""));
                map.get(name).map(|value| at(value, rest)).unwrap_or_default()
            }
        },
        _ => Vec::new(),
    }
}

/// Returns true if Go's encoder leaves the value out.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_empty),
        value => [json!(null), json!(false), json!(0), json!(""), json!([])].contains(value),
    }
}

/// Returns true if `live` has all of `desired`.
fn contains(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired.iter().all(|(name, value)| match live.get(name) {
            Some(live) => contains(live, value),
            None => is_empty(value),
        }),
        (Value::Array(live), Value::Array(desired)) => has_all(live, desired),
        (live, desired) => live == desired || same_quantity(live, desired),
    }
}

/// Returns true if all of `desired` are in `live`, in their order. Other clients may have added entries, and a dry run tells if they
/// may stay.
fn has_all(live: &[Value], desired: &[Value]) -> bool {
    let mut live = live.iter();
    desired.iter().all(|desired| live.any(|live| contains(live, desired)))
}

/// 1024Mi is stored as 1Gi.
fn same_quantity(live: &Value, desired: &Value) -> bool {
    let mebibytes = |value: &Value| {
        let text = value.as_str()?;
        let gibi = text
            .strip_suffix("Gi")
            .and_then(|number| Some(number.parse::<u64>().ok()? * 1024));
        gibi.or_else(|| text.strip_suffix("Mi")?.parse().ok())
    };
    mebibytes(live).is_some() && mebibytes(live) == mebibytes(desired)
}

/// A Secret as the API server stores it.
fn encoded(desired: &Value) -> Value {
    use base64::Engine as _;
    let mut desired = desired.clone();
    if let Some(Value::Object(texts)) = desired.as_object_mut().unwrap().remove("stringData") {
        for (name, text) in texts {
            let data = base64::engine::general_purpose::STANDARD.encode(text.as_str().unwrap());
            desired["data"][name] = data.into();
        }
    }
    desired
}
