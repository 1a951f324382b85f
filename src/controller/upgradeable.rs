//! Asks OLM to wait with an upgrade of the operator while servers are being replaced.
//!
//! OLM makes an OperatorCondition for each installed version and hands its name to the operator, together with the right to
//! read and change that one object. While its condition Upgradeable is False OLM holds upgrades back. Without OLM, or with
//! OLM v1, which has no such objects, nothing is told and nothing is missing.
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use olmkit_manager::{ObjectKey, explain};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// The type of the condition that OLM looks at.
pub const UPGRADEABLE: &str = "Upgradeable";

/// How long nothing may have begun or ended before an upgrade is fine. One rollout often follows another, and after a start
/// it takes a moment until each Memcached was looked at.
const CALM: Duration = Duration::from_secs(3);

/// Before the next attempt. OLM may not have made the object yet, or not granted the right to it.
const AGAIN: Duration = Duration::from_secs(10);

/// Names of Memcacheds that the message lists.
const NAMED: usize = 5;

/// The Memcacheds whose servers are being made, removed or replaced.
#[derive(Clone, Debug, Default)]
pub struct Rollouts(Arc<watch::Sender<BTreeSet<ObjectKey>>>);

impl Rollouts {
    /// Notes whether servers of the Memcached `key` are being made, removed or replaced.
    pub fn note(&self, key: &ObjectKey, underway: bool) {
        self.0.send_if_modified(|known| {
            if underway {
                known.insert(key.clone())
            } else {
                known.remove(key)
            }
        });
    }
}

/// Keeps the condition Upgradeable of the OperatorCondition `name` as `rollouts` says. Never ends.
pub async fn tell(client: Client, namespace: &str, name: &str, rollouts: &Rollouts) {
    let kind = GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "operatorconditions");
    let conditions: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let mut changes = rollouts.0.subscribe();
    let mut told = None;
    loop {
        let verdict = verdict(&changes.borrow_and_update());
        if told.as_ref() == Some(&verdict.status) {
            // The sender lives as long as `rollouts`, so this cannot fail.
            let _ = changes.changed().await;
            continue;
        }
        if verdict.status == "True" && timeout(CALM, changes.changed()).await.is_ok() {
            continue;
        }
        match write(&conditions, name, &verdict).await {
            Ok(()) => {
                tracing::info!(
                    condition = name,
                    upgradeable = verdict.status,
                    message = verdict.message,
                    "told OLM"
                );
                told = Some(verdict.status);
            }
            Err(error) => {
                tracing::warn!(condition = name, error = %explain::request(&error), "cannot tell OLM whether an upgrade is fine");
                sleep(AGAIN).await;
            }
        }
    }
}

/// Sets the condition and leaves conditions of other types alone.
async fn write(api: &Api<DynamicObject>, name: &str, verdict: &Condition) -> Result<(), kube::Error> {
    let object = api.get(name).await?;
    let spec = object.data.pointer("/spec/conditions").cloned();
    let mut conditions: Vec<Condition> = spec
        .and_then(|known| serde_json::from_value(known).ok())
        .unwrap_or_default();
    let before = conditions.iter().find(|known| known.type_ == UPGRADEABLE);
    if before.is_some_and(|known| known.status == verdict.status && known.reason == verdict.reason) {
        return Ok(());
    }
    conditions.retain(|known| known.type_ != UPGRADEABLE);
    conditions.push(verdict.clone());
    // With the resource version the patch is refused if somebody else has changed the object since.
    let patch = json!({
        "metadata": { "resourceVersion": object.resource_version() },
        "spec": { "conditions": conditions },
    });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn verdict(underway: &BTreeSet<ObjectKey>) -> Condition {
    let (status, reason, message) = if underway.is_empty() {
        ("True", "Settled", "No Memcached is being rolled out".to_owned())
    } else {
        let mut names: Vec<String> = underway.iter().take(NAMED).map(ToString::to_string).collect();
        if underway.len() > NAMED {
            names.push(format!("{} more", underway.len() - NAMED));
        }
        let message = format!("Servers are being made, removed or replaced: {}", names.join(", "));
        ("False", "RolloutUnderway", message)
    };
    Condition {
        type_: UPGRADEABLE.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: None,
        last_transition_time: Time(Timestamp::now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_what_is_underway() {
        let rollouts = Rollouts::default();
        let now = || verdict(&rollouts.0.borrow());
        assert_eq!((now().status.as_str(), now().reason.as_str()), ("True", "Settled"));
        for number in 0..7 {
            rollouts.note(&ObjectKey::new("cache", format!("m{number}")), true);
        }
        assert_eq!(now().status, "False");
        assert_eq!(
            now().message,
            "Servers are being made, removed or replaced: cache/m0, cache/m1, cache/m2, cache/m3, cache/m4, 2 more"
        );
        for number in 0..7 {
            rollouts.note(&ObjectKey::new("cache", format!("m{number}")), false);
        }
        assert_eq!(now().status, "True");
    }

    #[test]
    fn only_changes_wake_up_who_waits() {
        let rollouts = Rollouts::default();
        let mut changes = rollouts.0.subscribe();
        let key = ObjectKey::new("cache", "sample");
        rollouts.note(&key, false);
        assert!(!changes.has_changed().unwrap());
        rollouts.note(&key, true);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        rollouts.note(&key, true);
        assert!(!changes.has_changed().unwrap());
    }
}
