//! The status in every situation.
use k8s_openapi::jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::operand::fixtures::memcached;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A Deployment at generation 1 that its controller has seen, and that asks for as many pods as it has.
fn deployment(replicas: i32, updated: i32, ready: i32) -> DeploymentState {
    deployment_of(replicas, replicas, updated, ready)
}

/// As [`deployment`], for one that asks for `size` pods.
fn deployment_of(size: i32, replicas: i32, updated: i32, ready: i32) -> DeploymentState {
    let memcached = memcached(&json!({ "size": size }));
    let mut state = DeploymentState::of(&operand::deployment(&memcached, "memcached:1.6"));
    (state.generation, state.observed_generation) = (1, 1);
    (state.replicas, state.updated, state.ready, state.available) = (replicas, updated, ready, ready);
    state
}

fn facts<'a>(memcached: &'a Memcached, deployment: Option<&'a DeploymentState>) -> Facts<'a> {
    Facts {
        memcached,
        deployment,
        nodes: Vec::new(),
        hold: None,
        is_behind: false,
        by_operator: false,
        problem: None,
        now: NOW,
    }
}

fn report(memcached: &Memcached, deployment: Option<&DeploymentState>) -> MemcachedStatus {
    status(&facts(memcached, deployment))
}

/// `Available Progressing Degraded` as statuses with reasons, and the phase.
fn words(status: &MemcachedStatus) -> String {
    let conditions: Vec<String> = status
        .conditions
        .iter()
        .map(|known| format!("{}={} {}", known.type_, known.status, known.reason))
        .collect();
    format!("{:?}: {}", status.phase.unwrap(), conditions.join(", "))
}

/// `memcached` after its status was written.
fn after(mut memcached: Memcached, status: MemcachedStatus) -> Memcached {
    memcached.status = Some(status);
    memcached
}

#[test]
fn from_creation_to_running() {
    let mut object = memcached(&json!({ "size": 2 }));
    let mut seen = Vec::new();
    for state in [
        None,
        Some(deployment(0, 0, 0)),
        Some(deployment(2, 2, 0)),
        Some(deployment(2, 2, 1)),
        Some(deployment(2, 2, 2)),
    ] {
        let status = report(&object, state.as_ref());
        seen.push(words(&status));
        object = after(object, status);
    }
    insta::assert_snapshot!(seen.join("\n"), @"
    Pending: Ready=False Creating, Available=False Creating, Progressing=True Creating, Degraded=False AsExpected
    Pending: Ready=False Creating, Available=False ServersNotReady, Progressing=True Creating, Degraded=False AsExpected
    Pending: Ready=False Creating, Available=False ServersNotReady, Progressing=True Creating, Degraded=False AsExpected
    Pending: Ready=False Creating, Available=True ServersReady, Progressing=True Creating, Degraded=False AsExpected
    Running: Ready=True ServersReady, Available=True ServersReady, Progressing=False Complete, Degraded=False AsExpected
    ");
}

fn running(size: i32) -> Memcached {
    let object = memcached(&json!({ "size": size }));
    let status = report(&object, Some(&deployment(size, size, size)));
    assert_eq!(status.phase, Some(Phase::Running));
    after(object, status)
}

#[test]
fn a_changed_size_is_resizing_until_all_are_ready() {
    let mut object = running(2);
    object.spec.size = 3;
    object.metadata.generation = Some(2);
    let status = report(&object, Some(&deployment(2, 2, 2)));
    assert_eq!(
        words(&status),
        "Resizing: Ready=False Updating, Available=True ServersReady, Progressing=True Updating, Degraded=False AsExpected"
    );
    assert_eq!(status.observed_generation, Some(2));
    object = after(object, status);
    let status = report(&object, Some(&deployment(3, 3, 2)));
    assert_eq!(
        status.phase,
        Some(Phase::Resizing),
        "a server that has yet to start is not a lost one"
    );
    let status = report(&after(object, status), Some(&deployment(3, 3, 3)));
    assert_eq!(status.phase, Some(Phase::Running));
}

/// Evictions and restarts are everyday: only servers that stay away are a problem.
#[test]
fn a_lost_server_degrades_after_a_minute() {
    let state = deployment(3, 3, 1);
    let mut object = running(3);
    let at = |object: &Memcached, seconds: i64| {
        let now = NOW.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        let facts = Facts {
            now,
            ..facts(object, Some(&state))
        };
        (status(&facts), recheck(&facts))
    };
    let (status, again) = at(&object, 100);
    assert_eq!(
        words(&status),
        "Running: Ready=False ServersNotReady, Available=False ServersNotReady, Progressing=False ServersNotReady, \
         Degraded=False AsExpected"
    );
    assert_eq!(again, Some(Duration::from_secs(61)));
    object = after(object, status);
    let (status, again) = at(&object, 130);
    assert_eq!(
        (status.phase, again),
        (Some(Phase::Running), Some(Duration::from_secs(31)))
    );
    let (status, again) = at(&object, 161);
    assert_eq!(
        words(&status),
        "Degraded: Ready=False ServersNotReady, Available=False ServersNotReady, Progressing=False ServersNotReady, \
         Degraded=True ServersNotReady"
    );
    assert_eq!(again, None);
    let status = report(&after(object, status), Some(&deployment(3, 3, 3)));
    assert_eq!(status.phase, Some(Phase::Running));
    // The clock of the replica that led before was an hour ahead: the minute begins anew.
    let (ahead, _) = at(&running(3), 3700);
    object = after(running(3), ahead);
    let (status, again) = at(&object, 100);
    assert_eq!(
        (status.phase, again),
        (Some(Phase::Running), Some(Duration::from_secs(61)))
    );
    let (status, _) = at(&after(object, status), 161);
    assert_eq!(status.phase, Some(Phase::Degraded));
}

/// The status after each state of the Deployment, with the seconds that have passed.
fn sequence(mut object: Memcached, states: &[(i64, DeploymentState)]) -> String {
    let mut seen = Vec::new();
    for (seconds, state) in states {
        let facts = Facts {
            now: NOW.checked_add(SignedDuration::from_secs(*seconds)).unwrap(),
            ..facts(&object, Some(state))
        };
        let status = status(&facts);
        seen.push(words(&status));
        object = after(object, status);
    }
    seen.join("\n")
}

/// The ReplicaSet's status counts a pod that is gone before its replacement.
#[test]
fn an_evicted_server_whose_replacement_stays_away_degrades_after_a_minute() {
    for rolled_out in [true, false] {
        let state = |replicas, ready| DeploymentState {
            rolled_out,
            ..deployment_of(3, replicas, replicas, ready)
        };
        let states = [
            (100, state(2, 2)),
            (100, state(3, 2)),
            (130, state(3, 2)),
            (161, state(3, 2)),
            (400, state(3, 2)),
            (401, state(3, 3)),
        ];
        insta::allow_duplicates! {
            insta::assert_snapshot!(sequence(running(3), &states), @"
            Running: Ready=False ServersNotReady, Available=True ServersReady, Progressing=False ServersNotReady, Degraded=False AsExpected
            Running: Ready=False ServersNotReady, Available=True ServersReady, Progressing=False ServersNotReady, Degraded=False AsExpected
            Running: Ready=False ServersNotReady, Available=True ServersReady, Progressing=False ServersNotReady, Degraded=False AsExpected
            Degraded: Ready=False ServersNotReady, Available=True ServersReady, Progressing=False ServersNotReady, Degraded=True ServersNotReady
            Degraded: Ready=False ServersNotReady, Available=True ServersReady, Progressing=False ServersNotReady, Degraded=True ServersNotReady
            Running: Ready=True ServersReady, Available=True ServersReady, Progressing=False Complete, Degraded=False AsExpected
            ");
        }
    }
}

/// The Deployment's own deadline does not apply to a Deployment that was complete once.
#[test]
fn a_resize_that_does_not_end_degrades_after_two_minutes() {
    let mut object = running(2);
    object.spec.size = 3;
    object.metadata.generation = Some(2);
    let state = |replicas, ready| DeploymentState {
        rolled_out: true,
        ..deployment_of(3, replicas, replicas, ready)
    };
    let unseen = DeploymentState {
        generation: 2,
        ..state(2, 2)
    };
    let states = [
        (100, unseen),
        (100, state(2, 2)),
        (100, state(3, 2)),
        (219, state(3, 2)),
        (220, state(3, 2)),
        (221, state(3, 2)),
        (222, state(3, 3)),
    ];
    insta::assert_snapshot!(sequence(object, &states), @"
    Resizing: Ready=False Updating, Available=True ServersReady, Progressing=True Updating, Degraded=False AsExpected
    Resizing: Ready=False Updating, Available=True ServersReady, Progressing=True Updating, Degraded=False AsExpected
    Resizing: Ready=False Updating, Available=True ServersReady, Progressing=True Updating, Degraded=False AsExpected
    Resizing: Ready=False Updating, Available=True ServersReady, Progressing=True Updating, Degraded=False AsExpected
    Degraded: Ready=False ServersNotReady, Available=True ServersReady, Progressing=True Updating, Degraded=True ServersNotReady
    Degraded: Ready=False ServersNotReady, Available=True ServersReady, Progressing=False ServersNotReady, Degraded=True ServersNotReady
    Running: Ready=True ServersReady, Available=True ServersReady, Progressing=False Complete, Degraded=False AsExpected
    ");
}

/// Somebody who has paused the operator may resize the Deployment.
#[test]
fn fewer_servers_than_asked_for_are_not_lost_if_the_deployment_asks_for_no_more() {
    let states = [(100, deployment(2, 2, 2)), (400, deployment(2, 2, 2))];
    let seen = sequence(running(3), &states);
    assert!(!seen.contains("Degraded=True"), "{seen}");
}

#[test]
fn what_holds_the_operator_is_named() {
    let object = running(2);
    let state = deployment(2, 2, 2);
    let with = |hold, by_operator| {
        status(&Facts {
            hold,
            by_operator,
            ..facts(&object, Some(&state))
        })
    };
    let progressing = |status: &MemcachedStatus| {
        let found = status
            .conditions
            .iter()
            .find(|known| known.type_ == PROGRESSING)
            .unwrap();
        format!("{} {}: {}", found.status, found.reason, found.message)
    };
    assert_eq!(
        progressing(&with(Some(Hold::Paused), false)),
        "False Paused: The annotation cache.example.com/paused is true"
    );
    assert_eq!(
        progressing(&with(Some(Hold::Waiting("cache/old".to_owned())), false)),
        "False RolloutPending: New defaults of the operator wait for cache/old"
    );
    assert_eq!(with(Some(Hold::Paused), false).phase, Some(Phase::Running));
}

#[test]
fn only_what_users_replace_or_make_is_rolling() {
    let object = running(2);
    let rolling = |state: &DeploymentState, by_operator| {
        let facts = Facts {
            by_operator,
            ..facts(&object, Some(state))
        };
        is_rolling(&facts, &status(&facts))
    };
    assert!(rolling(&deployment(2, 1, 1), false));
    assert!(!rolling(&deployment(2, 1, 1), true), "on the operator's account");
    assert!(!rolling(&deployment(3, 3, 2), false), "resized");
    assert!(!rolling(&deployment(2, 2, 2), false));
}

#[test]
fn messages_that_differ_in_numbers_are_similar() {
    let of = |port: u16| format!("failed calling webhook: read tcp 10.0.0.1:{port}->10.0.0.2:443: connection reset");
    assert!(similar(&of(41234), &of(7)));
    assert!(!similar(&of(1), "failed calling webhook: connection refused"));
}

#[test]
fn the_digest_is_that_of_what_is_compared() {
    let status = running(2).status.unwrap();
    let mut other = status.clone();
    other.conditions.reverse();
    assert_eq!(digest(&status), digest(&other));
    other.ready_replicas = Some(1);
    assert_ne!(digest(&status), digest(&other));
}

#[test]
fn a_rollout_is_no_loss() {
    let object = running(3);
    let mut state = deployment(3, 3, 3);
    state.generation = 2;
    assert_eq!(
        report(&object, Some(&state)).phase,
        Some(Phase::Resizing),
        "not seen by the controller yet"
    );
    state.observed_generation = 2;
    (state.updated, state.ready, state.available) = (1, 2, 2);
    let status = report(&object, Some(&state));
    assert_eq!(
        words(&status),
        "Resizing: Ready=False Updating, Available=True ServersReady, Progressing=True Updating, Degraded=False AsExpected"
    );
}

#[test]
fn a_stuck_rollout_degrades_with_the_deployments_reason() {
    let mut state = deployment(1, 1, 0);
    state.failure = Some(("ProgressDeadlineExceeded".to_owned(), "timed out".to_owned()));
    let status = report(&memcached(&json!({})), Some(&state));
    assert_eq!(
        words(&status),
        "Degraded: Ready=False ProgressDeadlineExceeded, Available=False ServersNotReady, Progressing=True Creating, \
         Degraded=True ProgressDeadlineExceeded"
    );
}

#[test]
fn a_problem_of_the_operator_degrades_and_leaves_running_servers_available() {
    let object = running(2);
    let state = deployment(2, 2, 2);
    let problem = Problem {
        reason: "Forbidden".to_owned(),
        message: "quota".to_owned(),
        fatal: false,
    };
    let facts = Facts {
        problem: Some(problem),
        ..facts(&object, Some(&state))
    };
    assert_eq!(
        words(&status(&facts)),
        "Degraded: Ready=False Forbidden, Available=True ServersReady, Progressing=False Forbidden, Degraded=True Forbidden"
    );
    let fatal = Problem {
        reason: "ImageNotSet".to_owned(),
        message: "no image".to_owned(),
        fatal: true,
    };
    let facts = Facts {
        problem: Some(fatal),
        ..facts
    };
    assert_eq!(
        words(&status(&facts)),
        "Degraded: Ready=False ImageNotSet, Available=False ImageNotSet, Progressing=False ImageNotSet, Degraded=True ImageNotSet"
    );
}

#[test]
fn no_server_asked_for_is_running() {
    let status = report(&memcached(&json!({ "size": 0 })), Some(&deployment(0, 0, 0)));
    assert_eq!(
        words(&status),
        "Running: Ready=True ServersReady, Available=True ScaledToZero, Progressing=False Complete, Degraded=False AsExpected"
    );
}

#[test]
fn transition_times_move_with_the_status_only() {
    let object = running(2);
    let later = NOW.checked_add(SignedDuration::from_secs(60)).unwrap();
    let state = deployment(2, 2, 1);
    let facts = Facts {
        now: later,
        ..facts(&object, Some(&state))
    };
    let status = status(&facts);
    let time = |type_: &str| {
        status
            .conditions
            .iter()
            .find(|known| known.type_ == type_)
            .unwrap()
            .last_transition_time
            .0
    };
    assert_eq!((time(AVAILABLE), time(READY)), (NOW, later));
}

#[test]
fn a_settled_status_stays_as_it_is() {
    let object = running(2);
    let again = report(&object, Some(&deployment(2, 2, 2)));
    assert!(same(object.status.as_ref().unwrap(), &again));
    let mut foreign = again.clone();
    foreign.conditions.insert(
        0,
        Condition {
            type_: "example.com/Theirs".to_owned(),
            ..again.conditions[0].clone()
        },
    );
    assert!(same(&foreign, &again), "conditions of others are theirs");
    assert!(!same(
        &MemcachedStatus {
            nodes: vec!["x".to_owned()],
            ..again.clone()
        },
        &again
    ));
}

#[test]
fn the_finalizer_says_what_it_does_as_the_tutorials_show() {
    let object = running(1);
    let status = finalizing(&object, false, NOW);
    let degraded = status.conditions.iter().find(|known| known.type_ == DEGRADED).unwrap();
    assert_eq!(
        (degraded.status.as_str(), degraded.reason.as_str()),
        ("Unknown", "Finalizing")
    );
    assert_eq!(
        degraded.message,
        "Performing finalizer operations for the custom resource: sample "
    );
    assert_eq!(status.phase, Some(Phase::Deleting));
    let object = after(object, finalizing(&running(1), true, NOW));
    assert!(is_finalized(&object));
}
