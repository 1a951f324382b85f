//! Blocks upgrades of the operator by OLM during rollouts.
//!
//! OLM creates an OperatorCondition for each installed version, passes its name to the operator and grants access to that
//! one object. While its condition Upgradeable is False, OLM does not upgrade the operator. Without OLM, and with OLM v1,
//! which has no such objects, nothing is reported.
//!
//! An upgrade during a rollout is safe, and one that is never possible is not: it may bring the repair. So only what users
//! have replaced or made blocks, not what autoscalers resize or the operator itself rolls out; and it does so for ten
//! minutes at most, until all is quiet once. A new process first takes back what one that crashed left behind.
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use kube_manager::{ObjectKey, explain};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// The type of the condition that OLM reads.
pub const UPGRADEABLE: &str = "Upgradeable";

/// Time without a change before Upgradeable becomes True: one rollout often follows another, and after a start it takes a
/// moment to reconcile every Memcached.
const SETTLE_TIME: Duration = Duration::from_secs(3);

/// Rollouts block for this time at most.
const BLOCK_LIMIT: Duration = Duration::from_mins(10);

/// Delay after a failed write: OLM may not have created the object or granted access to it yet.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Maximum number of Memcacheds listed in the message.
const MAX_NAMES: usize = 5;

/// The Memcacheds with a rollout in progress.
#[derive(Clone, Debug, Default)]
pub struct Rollouts(Arc<watch::Sender<BTreeSet<ObjectKey>>>);

impl Rollouts {
    /// Records whether the Memcached `key` has a rollout in progress.
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

/// Keeps the condition Upgradeable of the OperatorCondition `name` in line with `rollouts`. Never returns.
pub async fn report(client: Client, namespace: &str, name: &str, rollouts: &Rollouts) {
    let kind = GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "operatorconditions");
    let conditions: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let mut changes = rollouts.0.subscribe();
    let mut block = Block::default();
    let mut reported = None;
    // What is reported of this process begins with True: the one before may have crashed while it was False.
    let mut first = true;
    loop {
        let underway = changes.borrow_and_update().clone();
        let verdict = if first {
            verdict(&BTreeSet::new(), false)
        } else {
            verdict(&underway, block.is_over(&underway))
        };
        if reported.as_ref() == Some(&verdict.status) {
            let left = block.left();
            tokio::select! {
                // The sender lives as long as `rollouts`, so this cannot fail.
                _ = changes.changed() => {}
                () = sleep(left), if verdict.status == "False" => {}
            }
            continue;
        }
        if verdict.status == "True" && !first && timeout(SETTLE_TIME, changes.changed()).await.is_ok() {
            continue;
        }
        match write(&conditions, name, &verdict).await {
            Ok(()) => {
                tracing::info!(
                    condition = name,
                    upgradeable = verdict.status,
                    message = verdict.message,
                    "updated the OperatorCondition"
                );
                reported = Some(verdict.status);
                first = false;
            }
            Err(error) => {
                tracing::warn!(condition = name, error = %explain::request(&error), "cannot update the OperatorCondition");
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// How long rollouts have been blocking upgrades.
#[derive(Default)]
struct Block {
    since: Option<Instant>,
}

impl Block {
    /// Whether rollouts have blocked for long enough. Starts anew when none is left.
    fn is_over(&mut self, underway: &BTreeSet<ObjectKey>) -> bool {
        if underway.is_empty() {
            self.since = None;
            return false;
        }
        self.since.get_or_insert_with(Instant::now).elapsed() >= BLOCK_LIMIT
    }

    /// The time until it is over.
    fn left(&self) -> Duration {
        self.since
            .map_or(BLOCK_LIMIT, |since| BLOCK_LIMIT.saturating_sub(since.elapsed()))
    }
}

/// Sets the condition and keeps conditions of other types.
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
    // With the resource version the patch is rejected if the object has changed since.
    let patch = json!({
        "metadata": { "resourceVersion": object.resource_version() },
        "spec": { "conditions": conditions },
    });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn verdict(underway: &BTreeSet<ObjectKey>, over: bool) -> Condition {
    let (status, reason, message) = if underway.is_empty() {
        ("True", "Settled", "No rollout in progress".to_owned())
    } else if over {
        let message = format!("{} rollouts in progress, for too long to wait for them", underway.len());
        ("True", "RolloutsTakeLong", message)
    } else {
        let mut names: Vec<String> = underway.iter().take(MAX_NAMES).map(ToString::to_string).collect();
        if underway.len() > MAX_NAMES {
            names.push(format!("{} more", underway.len() - MAX_NAMES));
        }
        let message = format!("Rollouts in progress: {}", names.join(", "));
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
        let now = || verdict(&rollouts.0.borrow(), false);
        assert_eq!((now().status.as_str(), now().reason.as_str()), ("True", "Settled"));
        for number in 0..7 {
            rollouts.note(&ObjectKey::new("cache", format!("m{number}")), true);
        }
        assert_eq!(now().status, "False");
        assert_eq!(
            now().message,
            "Rollouts in progress: cache/m0, cache/m1, cache/m2, cache/m3, cache/m4, 2 more"
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

    #[tokio::test(start_paused = true)]
    async fn rollouts_block_for_a_limited_time() {
        let mut block = Block::default();
        let underway = BTreeSet::from([ObjectKey::new("cache", "paused")]);
        assert!(!block.is_over(&underway));
        assert_eq!(block.left(), BLOCK_LIMIT);
        tokio::time::advance(BLOCK_LIMIT).await;
        assert!(block.is_over(&underway));
        assert_eq!(verdict(&underway, true).status, "True");
        assert!(!block.is_over(&BTreeSet::new()));
        assert!(!block.is_over(&underway), "a new rollout after all was quiet");
    }
}
