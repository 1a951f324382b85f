//! Blocks upgrades of the operator by the Operator Lifecycle Manager during rollouts.
//!
//! OLM creates an OperatorCondition for each installed version, passes its name to the operator in `OPERATOR_CONDITION_NAME`, and
//! grants access to that object. While its condition `Upgradeable` is False, OLM does not upgrade the operator. The manager reports
//! the condition if it has the name. Without OLM, and with OLM v1, which has no such objects, nothing is reported.
//!
//! An upgrade during a rollout is safe, and the upgrade may contain a repair. So only rollouts that users ask for block it, for ten
//! minutes at most, until no rollout is in progress: those of objects with a
//! [rollout budget](crate::reconcile::Controller::rollouts). A new process first takes back the value of one that crashed.
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use crate::{ObjectKey, explain};

/// The type of the condition that OLM reads.
pub const UPGRADEABLE: &str = "Upgradeable";

/// Time without a change before Upgradeable becomes True: one rollout often follows another, and after a start it takes a
/// moment to reconcile every object.
const SETTLE_TIME: Duration = Duration::from_secs(3);

/// Rollouts block for this time at most.
const BLOCK_LIMIT: Duration = Duration::from_mins(10);

/// Delay after a failed write: OLM may not have created the object or granted access to it yet.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Maximum number of objects listed in the message.
const MAX_NAMES: usize = 5;

/// The objects with a rollout in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rollouts(Arc<watch::Sender<BTreeSet<ObjectKey>>>);

impl Rollouts {
    /// Records whether the object `key` has a rollout in progress.
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
pub(crate) async fn report(client: Client, namespace: &str, name: &str, rollouts: &Rollouts) {
    let kind = GroupVersionKind::gvk("operators.coreos.com", "v2", "OperatorCondition");
    let resource = ApiResource::from_gvk_with_plural(&kind, "operatorconditions");
    let conditions: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let mut verdicts = Verdicts::on(rollouts);
    loop {
        let verdict = verdicts.next().await;
        while let Err(error) = write(&conditions, name, &verdict).await {
            tracing::warn!(condition = name, error = %explain::request(&error), "cannot update the OperatorCondition");
            sleep(RETRY_DELAY).await;
        }
        tracing::info!(
            condition = name,
            upgradeable = verdict.status,
            message = verdict.message,
            "updated the OperatorCondition"
        );
    }
}

/// The verdicts to report, one after the other.
struct Verdicts {
    changes: watch::Receiver<BTreeSet<ObjectKey>>,
    block: Block,
    reported: Option<String>,
}

impl Verdicts {
    fn on(rollouts: &Rollouts) -> Self {
        Self {
            changes: rollouts.0.subscribe(),
            block: Block::default(),
            reported: None,
        }
    }

    /// Waits until the status differs from the last one. Begins with True: the process before may have crashed while it
    /// was False.
    async fn next(&mut self) -> Condition {
        let verdict = match &self.reported {
            None => verdict(&BTreeSet::new(), false),
            Some(reported) => loop {
                let underway = self.changes.borrow_and_update().clone();
                if underway.is_empty() && self.block.has_begun() {
                    if timeout(SETTLE_TIME, self.changes.changed()).await.is_ok() {
                        continue;
                    }
                    self.block = Block::default();
                }
                let verdict = verdict(&underway, self.block.is_over(&underway));
                if verdict.status != *reported {
                    break verdict;
                }
                let left = self.block.left();
                tokio::select! {
                    // The sender lives as long as the rollouts, so this cannot fail.
                    _ = self.changes.changed() => {}
                    () = sleep(left), if reported == "False" => {}
                }
            },
        };
        self.reported = Some(verdict.status.clone());
        verdict
    }
}

/// How long rollouts have been blocking upgrades, with breaks that are too short to count.
#[derive(Default)]
struct Block {
    since: Option<Instant>,
}

impl Block {
    fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// Returns true if rollouts have blocked for long enough. Begins with the first.
    fn is_over(&mut self, underway: &BTreeSet<ObjectKey>) -> bool {
        if self.since.is_none() && !underway.is_empty() {
            self.since = Some(Instant::now());
        }
        self.since.is_some_and(|since| since.elapsed() >= BLOCK_LIMIT)
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
    // With the resource version, the API server rejects the patch if the object has changed.
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

    /// The reports during `scenario`: status and reason, and the second of each.
    async fn reported(rollouts: &Rollouts, scenario: impl Future<Output = ()>) -> Vec<(u64, String)> {
        let begin = Instant::now();
        let mut reported = Vec::new();
        let follow = async {
            let mut verdicts = Verdicts::on(rollouts);
            loop {
                let verdict = verdicts.next().await;
                reported.push((
                    begin.elapsed().as_secs(),
                    format!("{} {}", verdict.status, verdict.reason),
                ));
            }
        };
        tokio::select! {
            () = follow => {}
            () = scenario => {}
        }
        reported
    }

    fn texts(reported: &[(u64, String)]) -> Vec<(u64, &str)> {
        reported.iter().map(|(at, text)| (*at, text.as_str())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn one_rollout_blocks_until_all_has_been_quiet_for_a_moment() {
        let rollouts = Rollouts::default();
        let key = ObjectKey::new("cache", "sample");
        let scenario = async {
            sleep(Duration::from_secs(60)).await;
            rollouts.note(&key, true);
            sleep(Duration::from_secs(30)).await;
            rollouts.note(&key, false);
            sleep(Duration::from_secs(60)).await;
        };
        let reported = reported(&rollouts, scenario).await;
        let expected = [(0, "True Settled"), (60, "False RolloutUnderway"), (93, "True Settled")];
        assert_eq!(texts(&reported), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rollout_that_does_not_end_blocks_for_ten_minutes() {
        let rollouts = Rollouts::default();
        let (paused, other) = (ObjectKey::new("cache", "paused"), ObjectKey::new("cache", "other"));
        let scenario = async {
            rollouts.note(&paused, true);
            sleep(Duration::from_mins(20)).await;
            // Another does not begin a new block, nor does this one's end while it lasts.
            rollouts.note(&other, true);
            rollouts.note(&paused, false);
            sleep(Duration::from_mins(1)).await;
            rollouts.note(&other, false);
            sleep(Duration::from_mins(1)).await;
            rollouts.note(&other, true);
            sleep(Duration::from_mins(1)).await;
        };
        let reported = reported(&rollouts, scenario).await;
        let expected = [
            (0, "True Settled"),
            (0, "False RolloutUnderway"),
            (600, "True RolloutsTakeLong"),
            (1320, "False RolloutUnderway"),
        ];
        assert_eq!(texts(&reported), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn rollouts_in_quick_succession_block_for_ten_minutes_too() {
        let rollouts = Rollouts::default();
        let scenario = async {
            for number in 0..900 {
                let key = ObjectKey::new("cache", format!("m{number}"));
                rollouts.note(&key, true);
                sleep(Duration::from_secs(1)).await;
                rollouts.note(&key, false);
                sleep(Duration::from_secs(1)).await;
            }
        };
        let reported = reported(&rollouts, scenario).await;
        let last = reported.last().unwrap();
        assert_eq!((reported.len(), last.1.as_str()), (3, "True RolloutsTakeLong"));
        assert!((600..=603).contains(&last.0), "{reported:?}");
    }
}
