//! The status: a pure function of the observed state.
mod comparison;
mod progress;

use std::time::Duration;

pub use comparison::{digest, same, similar};
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use kube::ResourceExt;
use progress::{Progress, is_current, is_held, progress, time_left};

use super::{
    Error,
    observed::{DeploymentState, PAUSED},
};
use crate::{
    api::v1alpha1::{AVAILABLE, DEGRADED, Memcached, MemcachedStatus, PROGRESSING, Phase, READY},
    operand,
};

/// Why the operator does not do all that the spec asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Users asked for it.
    Paused,
    /// Others are rolled out first: their names.
    Waiting(String),
    /// An object of an earlier owner has to go first: which.
    Deletion(String),
    /// A request failed, for a reason that passes.
    Failed,
}

impl Hold {
    /// What `errors` and `hold` keep the operator from. Errors that wait for a deletion come last.
    pub fn after(hold: Option<Self>, errors: &[Error]) -> Option<Self> {
        match errors.last() {
            Some(last) if last.awaits_deletion() => Some(Self::Deletion(last.to_string())),
            Some(_) => hold.or(Some(Self::Failed)),
            None => hold,
        }
    }
}

/// The input of a status.
pub struct Facts<'a> {
    /// The object.
    pub memcached: &'a Memcached,
    /// Its Deployment, if it has one.
    pub deployment: Option<&'a DeploymentState>,
    /// The names of its pods, sorted.
    pub nodes: Vec<String>,
    /// Why the operator waits.
    pub hold: Option<Hold>,
    /// Because of that, a change of the spec has yet to be applied.
    pub is_behind: bool,
    /// The servers are replaced on the operator's account, not on the user's.
    pub by_operator: bool,
    /// What keeps the operator from reconciling the object.
    pub problem: Option<Problem>,
    /// Transition time of conditions that change.
    pub now: Timestamp,
}

/// A problem, as reported by the condition Degraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Reason in CamelCase.
    pub reason: String,
    /// Message.
    pub message: String,
    /// No server can run because of it.
    pub fatal: bool,
}

/// The status of `facts.memcached`.
pub fn status(facts: &Facts) -> MemcachedStatus {
    let memcached = facts.memcached;
    let progress = progress(facts);
    let problem = facts.problem.clone().or_else(|| problem_of_deployment(facts, progress));
    let conditions = vec![
        condition(facts, READY, ready(facts, progress, problem.as_ref())),
        condition(facts, AVAILABLE, available(facts, problem.as_ref())),
        condition(facts, PROGRESSING, progressing(facts, progress, problem.as_ref())),
        condition(facts, DEGRADED, degraded(problem.as_ref())),
    ];
    let deployment = facts.deployment;
    MemcachedStatus {
        conditions,
        nodes: facts.nodes.clone(),
        ready_replicas: Some(deployment.map_or(0, |deployment| deployment.ready)),
        replicas: Some(deployment.map_or(0, |deployment| deployment.replicas)),
        selector: Some(operand::selector_text(memcached)),
        phase: Some(phase(facts, progress, problem.as_ref())),
        image: deployment.and_then(|deployment| deployment.image.clone()),
        observed_generation: memcached.metadata.generation,
    }
}

/// The status while the finalizer runs: the conditions of the tutorials.
pub fn finalizing(memcached: &Memcached, finished: bool, now: Timestamp) -> MemcachedStatus {
    let name = memcached.name_any();
    let (value, message) = if finished {
        (
            "True",
            format!("Finalizer operations for custom resource {name} name were successfully accomplished"),
        )
    } else {
        (
            "Unknown",
            format!("Performing finalizer operations for the custom resource: {name} "),
        )
    };
    let mut status = memcached.status.clone().unwrap_or_default();
    let facts = Facts {
        memcached,
        deployment: None,
        nodes: Vec::new(),
        hold: None,
        is_behind: false,
        by_operator: false,
        problem: None,
        now,
    };
    let new = condition(&facts, DEGRADED, (value, FINALIZING.to_owned(), message));
    status.conditions.retain(|known| known.type_ != DEGRADED);
    status.conditions.push(new);
    status.phase = Some(Phase::Deleting);
    status.observed_generation = memcached.metadata.generation;
    status
}

/// The reason of the condition Degraded during deletion.
pub const FINALIZING: &str = "Finalizing";

/// Returns true if the status of `memcached` reports that the finalizer has finished.
pub fn is_finalized(memcached: &Memcached) -> bool {
    find(memcached, DEGRADED).is_some_and(|known| known.status == "True" && known.reason == FINALIZING)
}

/// Returns true if users have the pods replaced or made, nothing is wrong with it, and more than a number of pods changes.
pub fn is_rolling(facts: &Facts, status: &MemcachedStatus) -> bool {
    let holds = |type_: &str| {
        let mut conditions = status.conditions.iter();
        conditions.any(|known| known.type_ == type_ && known.status == "True")
    };
    let replaces = facts
        .deployment
        .is_none_or(|deployment| is_current(deployment) && (deployment.updated < deployment.replicas || is_new(facts)));
    holds(PROGRESSING) && !holds(DEGRADED) && !facts.by_operator && replaces
}

/// After which time the status changes by itself, if nothing else happens.
pub fn recheck(facts: &Facts) -> Option<Duration> {
    let left = time_left(facts, progress(facts))?;
    left.is_positive().then(|| left.unsigned_abs() + Duration::from_secs(1))
}

/// A condition's status, reason and message.
type Verdict = (&'static str, String, String);

fn problem_of_deployment(facts: &Facts, progress: Progress) -> Option<Problem> {
    let deployment = facts.deployment?;
    if let Some((reason, message)) = &deployment.failure
        && progress != Progress::Done
    {
        return Some(Problem {
            reason: reason.clone(),
            message: message.clone(),
            fatal: false,
        });
    }
    let is_over = !time_left(facts, progress)?.is_positive();
    is_over.then(|| Problem {
        reason: SERVERS_NOT_READY.to_owned(),
        message: format!("{}; the others do not become ready", ready_of(facts)),
        fatal: false,
    })
}

fn ready(facts: &Facts, progress: Progress, problem: Option<&Problem>) -> Verdict {
    let (status, reason) = match (problem, progress) {
        (Some(problem), _) => return ("False", problem.reason.clone(), problem.message.clone()),
        (None, Progress::Done) => ("True", "ServersReady"),
        (None, Progress::Lost) => ("False", SERVERS_NOT_READY),
        (None, Progress::Underway) => {
            if let Some((reason, message)) = held(facts) {
                return ("False", reason.to_owned(), message);
            }
            ("False", underway(facts))
        }
    };
    (status, reason.to_owned(), ready_of(facts))
}

/// What has to happen first: reason and message.
fn held(facts: &Facts) -> Option<(&'static str, String)> {
    Some(match &facts.hold {
        _ if !is_held(facts) => return None,
        Some(Hold::Deletion(what)) => (AWAITING_DELETION, what.clone()),
        Some(Hold::Paused) => (
            PAUSED_REASON,
            format!("A change of the spec waits: the annotation {PAUSED} is true"),
        ),
        Some(Hold::Waiting(_)) => (ROLLOUT_PENDING, "A change of the spec waits for its turn".to_owned()),
        Some(Hold::Failed) | None => (APPLY_PENDING, "A change of the spec has yet to be applied".to_owned()),
    })
}

/// What is underway.
fn underway(facts: &Facts) -> &'static str {
    if is_new(facts) {
        "Creating"
    } else if facts.by_operator {
        ROLLING_OUT
    } else {
        "Updating"
    }
}

/// The reason of the condition Progressing while the servers are replaced on the operator's account.
pub const ROLLING_OUT: &str = "RollingOut";

/// The reason while servers that were there are missing.
const SERVERS_NOT_READY: &str = "ServersNotReady";

/// The reason while users keep the operator from its work.
const PAUSED_REASON: &str = "Paused";

/// The reason while others are rolled out first.
const ROLLOUT_PENDING: &str = "RolloutPending";

/// The reason of the condition Ready while a change of the spec could not be applied, for a reason that passes.
const APPLY_PENDING: &str = "ApplyPending";

/// The reason while an object of an earlier owner is being deleted.
const AWAITING_DELETION: &str = "AwaitingDeletion";

/// Whether, by the last status, a change of the spec may have yet to be applied.
pub fn may_be_behind(memcached: &Memcached) -> bool {
    let before = memcached.status.as_ref();
    let waits = || {
        find(memcached, READY).is_some_and(|known| {
            let reason = known.reason.as_str();
            let was_refused = find(memcached, DEGRADED).is_some_and(|known| known.status == "True");
            known.status == "False"
                && ([PAUSED_REASON, APPLY_PENDING, ROLLOUT_PENDING].contains(&reason)
                    || was_refused && reason != SERVERS_NOT_READY)
        })
    };
    before.and_then(|status| status.observed_generation) != memcached.metadata.generation || waits()
}

fn available(facts: &Facts, problem: Option<&Problem>) -> Verdict {
    if let Some(problem) = problem.filter(|problem| problem.fatal) {
        return ("False", problem.reason.clone(), problem.message.clone());
    }
    let size = facts.memcached.spec.size;
    let Some(deployment) = facts.deployment else {
        return match problem {
            Some(problem) => ("False", problem.reason.clone(), problem.message.clone()),
            None => (
                "False",
                "Creating".to_owned(),
                "The Deployment does not exist yet".to_owned(),
            ),
        };
    };
    if size == 0 {
        return ("True", "ScaledToZero".to_owned(), "spec.size is 0".to_owned());
    }
    // One server may be missing, as during rollouts and node maintenance.
    let enough = deployment.ready >= (size - 1).max(1);
    let reason = if enough { "ServersReady" } else { SERVERS_NOT_READY };
    (
        if enough { "True" } else { "False" },
        reason.to_owned(),
        ready_of(facts),
    )
}

fn progressing(facts: &Facts, progress: Progress, problem: Option<&Problem>) -> Verdict {
    if let Some(Hold::Deletion(what)) = &facts.hold {
        return ("True", AWAITING_DELETION.to_owned(), what.clone());
    }
    if let Some(problem) = problem.filter(|_| facts.problem.is_some() || facts.deployment.is_none()) {
        return (
            "False",
            problem.reason.clone(),
            "Blocked; see the condition Degraded".to_owned(),
        );
    }
    match &facts.hold {
        Some(Hold::Paused) => {
            let message = format!("The annotation {PAUSED} is true");
            return ("False", PAUSED_REASON.to_owned(), message);
        }
        Some(Hold::Waiting(others)) => {
            let message = format!("New defaults of the operator wait for {others}");
            return ("False", ROLLOUT_PENDING.to_owned(), message);
        }
        Some(Hold::Deletion(_) | Hold::Failed) | None => {}
    }
    match progress {
        Progress::Done => (
            "False",
            "Complete".to_owned(),
            "All servers are up to date and available".to_owned(),
        ),
        Progress::Lost => ("False", SERVERS_NOT_READY.to_owned(), ready_of(facts)),
        Progress::Underway => ("True", underway(facts).to_owned(), ready_of(facts)),
    }
}

fn degraded(problem: Option<&Problem>) -> Verdict {
    match problem {
        Some(problem) => ("True", problem.reason.clone(), problem.message.clone()),
        None => ("False", "AsExpected".to_owned(), "Nothing is wrong".to_owned()),
    }
}

fn phase(facts: &Facts, progress: Progress, problem: Option<&Problem>) -> Phase {
    match progress {
        _ if problem.is_some() => Phase::Degraded,
        // Lost servers are given time to come back.
        Progress::Done | Progress::Lost => Phase::Running,
        Progress::Underway if is_new(facts) => Phase::Pending,
        Progress::Underway => Phase::Resizing,
    }
}

/// Whether, according to the last status, the servers were never all ready.
fn is_new(facts: &Facts) -> bool {
    match facts.memcached.status.as_ref().and_then(|status| status.phase) {
        None | Some(Phase::Pending) => true,
        Some(Phase::Degraded) => facts.deployment.is_none_or(|deployment| deployment.ready == 0),
        _ => false,
    }
}

fn ready_of(facts: &Facts) -> String {
    let size = facts.memcached.spec.size;
    let ready = facts.deployment.map_or(0, |deployment| deployment.ready);
    format!(
        "{ready} of {size} {} ready",
        if size == 1 { "server is" } else { "servers are" }
    )
}

/// When the status of a condition changed. A time in the future is that of a replica whose clock was ahead: no time has passed.
fn since(facts: &Facts, known: &Condition) -> Timestamp {
    known.last_transition_time.0.min(facts.now)
}

/// The condition `type_`; its transition time moves only with its status.
fn condition(facts: &Facts, type_: &str, (status, reason, message): Verdict) -> Condition {
    let before = find(facts.memcached, type_).filter(|known| known.status == status);
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason,
        message,
        observed_generation: facts.memcached.metadata.generation,
        last_transition_time: Time(before.map_or(facts.now, |known| since(facts, known))),
    }
}

/// The condition `type_` in the status of `memcached`.
pub fn find<'a>(memcached: &'a Memcached, type_: &str) -> Option<&'a Condition> {
    memcached
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|known| known.type_ == type_)
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
