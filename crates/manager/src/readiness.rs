//! Readiness: caches are filled, and their watches receive events.
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::transport::Pulse;

/// A watch that has not been heard for this long makes the process unready: two bookmarks are missing.
const SILENT: Duration = Duration::from_secs(150);

/// A watch that has not even tried for this long makes the process dead: requests end within a minute, and the longest
/// pause between two attempts is half of one.
const STILL: Duration = Duration::from_secs(300);

/// Readiness and liveness of the process: named gates that must all be open, and named checks that must all pass.
#[derive(Clone, Default)]
pub struct Readiness {
    gates: Arc<Mutex<BTreeMap<String, State>>>,
    checks: Arc<Mutex<Vec<Check>>>,
    /// A gate has changed.
    changed: Arc<Notify>,
    /// The process is shutting down.
    ends: Arc<AtomicBool>,
}

/// The endpoint of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// `/healthz`
    Live,
    /// `/readyz`
    Ready,
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Self::Live => "healthz",
            Self::Ready => "readyz",
        }
    }
}

/// A check of the operator's own.
struct Check {
    probe: Probe,
    name: String,
    run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

#[derive(Default)]
struct State {
    scope: Option<String>,
    open: bool,
    /// Why the API server refuses, and since when.
    refused: Option<(Instant, String)>,
    pulse: Option<Pulse>,
}

impl State {
    fn is_open(&self) -> bool {
        self.open && !self.is_refused()
    }

    /// True if the API server rejected a request and has not answered any later one.
    fn is_refused(&self) -> bool {
        let Some((since, _)) = &self.refused else { return false };
        let heard = self.pulse.as_ref().map(Pulse::silent_for);
        heard.is_none_or(|ago| ago >= since.elapsed())
    }

    fn is_silent(&self) -> bool {
        self.pulse.as_ref().is_some_and(|pulse| pulse.silent_for() > SILENT)
    }

    fn is_still(&self) -> bool {
        self.pulse.as_ref().is_some_and(|pulse| pulse.still_for() > STILL)
    }

    /// The cause.
    fn fault(&self) -> Option<String> {
        match &self.refused {
            Some((_, why)) if self.is_refused() => Some(why.clone()),
            _ if !self.open => Some("not synced".to_owned()),
            _ if self.is_silent() => {
                let silent = self.pulse.as_ref().map(Pulse::silent_for).unwrap_or_default();
                Some(format!("not heard for {} s", silent.as_secs()))
            }
            _ => None,
        }
    }
}

/// A condition for readiness.
pub struct Gate {
    readiness: Readiness,
    name: String,
}

impl Readiness {
    /// Adds a closed gate.
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        self.add(name.into(), None)
    }

    /// Adds a closed gate for the watch of one of several namespaces.
    pub fn gate_in(&self, name: impl Into<String>, namespace: impl Into<String>) -> Gate {
        self.add(name.into(), Some(namespace.into()))
    }

    fn add(&self, name: String, scope: Option<String>) -> Gate {
        let state = State {
            scope,
            ..State::default()
        };
        self.gates().insert(name.clone(), state);
        Gate {
            readiness: self.clone(),
            name,
        }
    }

    /// Returns true if the work can begin: all gates are open. A namespace of several whose watches are refused does not keep
    /// the others waiting, but one namespace must be there: a replica without any would lead and do nothing.
    pub fn is_synced(&self) -> bool {
        let gates = self.gates();
        let waits = |state: &State| !state.is_open() && (state.scope.is_none() || !state.is_refused());
        let mut scopes = gates.values().filter_map(|state| state.scope.as_deref()).peekable();
        let any_open = scopes.peek().is_none() || scopes.any(|scope| gates_of(&gates, scope).all(State::is_open));
        any_open && !gates.values().any(waits)
    }

    /// Waits until a gate has changed since the last call. For one task only.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns true if all objects in `namespace` are known.
    pub fn is_synced_in(&self, namespace: &str) -> bool {
        let gates = self.gates();
        gates
            .values()
            .filter(|state| state.scope.as_deref().is_none_or(|scope| scope == namespace))
            .all(State::is_open)
    }

    /// Returns true if the process is ready: it is [synced](Self::is_synced), every watch has been heard lately, and the checks pass.
    pub fn is_ready(&self) -> bool {
        self.probe(Probe::Ready, &[]).is_ok()
    }

    /// Makes the process unready for good: it shuts down. Liveness does not change.
    pub fn end(&self) {
        self.ends.store(true, Relaxed);
    }

    /// Returns true if every watch is tried at least, and the checks pass. An API server that does not answer leaves the process
    /// alive.
    pub fn is_alive(&self) -> bool {
        self.probe(Probe::Live, &[]).is_ok()
    }

    /// The names of the gates that are closed.
    pub fn waiting_for(&self) -> Vec<String> {
        self.gates()
            .iter()
            .filter(|(_, state)| !state.is_open())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The age of each watch: its name and the seconds since it was last heard.
    pub fn ages(&self) -> Vec<(String, f64)> {
        let gates = self.gates();
        let age = |state: &State| state.pulse.as_ref().map(|pulse| pulse.silent_for().as_secs_f64());
        gates
            .iter()
            .filter_map(|(name, state)| Some((name.clone(), age(state)?)))
            .collect()
    }

    /// Adds a check to `/readyz`: an error makes the process unready. It runs with each probe, so it must be quick and must
    /// not wait for anything.
    pub fn check_ready(&self, name: impl Into<String>, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.check(Probe::Ready, name.into(), Arc::new(run));
    }

    /// Adds a check to `/healthz`: after three errors in a row, ordinarily, the kubelet restarts the process.
    pub fn check_live(&self, name: impl Into<String>, run: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.check(Probe::Live, name.into(), Arc::new(run));
    }

    fn check(&self, probe: Probe, name: String, run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>) {
        self.checks().push(Check { probe, name, run });
    }

    /// Runs what `probe` consists of, except the parts in `excluded`: `Err` if it fails. The text has one line for each part,
    /// in the format of the Kubernetes API server.
    pub(crate) fn probe(&self, probe: Probe, excluded: &[&str]) -> Result<String, String> {
        let (mut text, mut failed) = (String::new(), false);
        for (name, passes, fault) in self.parts(probe) {
            if excluded.contains(&name.as_str()) {
                text.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            failed |= !passes;
            match fault {
                None => text.push_str(&format!("[+]{name} ok\n")),
                Some(fault) => text.push_str(&format!("[-]{name} failed: {fault}\n")),
            }
        }
        let verdict = if failed { "failed" } else { "passed" };
        text.push_str(&format!("{} check {verdict}\n", probe.name()));
        if failed { Err(text) } else { Ok(text) }
    }

    /// One part of `probe` by its name. `None` if it does not exist.
    pub(crate) fn part(&self, probe: Probe, name: &str) -> Option<Result<(), String>> {
        let (_, passes, fault) = self.parts(probe).into_iter().find(|(known, ..)| known == name)?;
        let fault = fault.filter(|_| !passes);
        Some(fault.map_or(Ok(()), Err))
    }

    /// The parts of `probe`: name, whether it passes, and what is wrong. One of several namespaces in which the operator may
    /// not watch is reported, and does not fail.
    fn parts(&self, probe: Probe) -> Vec<(String, bool, Option<String>)> {
        let any_synced = self.is_synced();
        let mut parts: Vec<(String, bool, Option<String>)> = match probe {
            Probe::Ready => {
                let part = |(name, state): (&String, &State)| {
                    let fault = state.fault();
                    let tolerated = any_synced && state.scope.is_some() && state.is_refused();
                    (name.clone(), fault.is_none() || tolerated, fault)
                };
                self.gates().iter().map(part).collect()
            }
            Probe::Live => {
                let part = |(name, state): (&String, &State)| {
                    let still = state.is_still().then(|| "neither asked nor answered".to_owned());
                    (name.clone(), still.is_none(), still)
                };
                self.gates().iter().map(part).collect()
            }
        };
        if probe == Probe::Ready && self.ends.load(Relaxed) {
            parts.push(("shutdown".to_owned(), false, Some("shutting down".to_owned())));
        }
        // Not under the lock: a check is the operator's code.
        let checks: Vec<_> = self
            .checks()
            .iter()
            .filter(|check| check.probe == probe)
            .map(|check| (check.name.clone(), Arc::clone(&check.run)))
            .collect();
        parts.extend(checks.into_iter().map(|(name, run)| {
            let fault = run().err();
            (name, fault.is_none(), fault)
        }));
        parts
    }

    fn checks(&self) -> MutexGuard<'_, Vec<Check>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gates(&self) -> MutexGuard<'_, BTreeMap<String, State>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The gates of one namespace.
fn gates_of<'a>(gates: &'a BTreeMap<String, State>, scope: &'a str) -> impl Iterator<Item = &'a State> {
    gates
        .values()
        .filter(move |state| state.scope.as_deref() == Some(scope))
}

impl Gate {
    /// The gate also follows `pulse`: silence makes the process unready, standstill dead.
    #[must_use]
    pub fn following(self, pulse: Pulse) -> Self {
        self.change(|state| state.pulse = Some(pulse));
        self
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.change(|state| (state.open, state.refused) = (true, None));
    }

    /// Closes the gate because the API server rejects its requests, until it is opened or its pulse is heard again.
    pub fn refuse(&self, why: String) {
        self.change(|state| state.refused = Some((Instant::now(), why)));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.readiness.gates().get_mut(&self.name) {
            change(state);
        }
        self.readiness.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(readiness: &Readiness) -> String {
        readiness.probe(Probe::Ready, &[]).unwrap_or_else(|failed| failed)
    }

    #[test]
    fn checks_of_the_operator_have_names() {
        let readiness = Readiness::default();
        readiness.gate("watch-pods").open();
        let broken = Arc::new(Mutex::new(Some("no route".to_owned())));
        let now = Arc::clone(&broken);
        readiness.check_ready("database", move || now.lock().unwrap().clone().map_or(Ok(()), Err));
        readiness.check_live("loop", || Ok(()));
        assert_eq!(
            readiness.probe(Probe::Ready, &[]),
            Err("[+]watch-pods ok\n[-]database failed: no route\nreadyz check failed\n".to_owned())
        );
        assert_eq!(
            readiness.probe(Probe::Ready, &["database"]),
            Ok("[+]watch-pods ok\n[+]database excluded: ok\nreadyz check passed\n".to_owned())
        );
        assert_eq!(
            readiness.part(Probe::Ready, "database"),
            Some(Err("no route".to_owned()))
        );
        assert_eq!(readiness.part(Probe::Ready, "watch-pods"), Some(Ok(())));
        assert_eq!(readiness.part(Probe::Ready, "loop"), None, "a check of the other probe");
        assert!(readiness.probe(Probe::Live, &[]).unwrap().contains("[+]loop ok\n"));
        *broken.lock().unwrap() = None;
        assert!(readiness.probe(Probe::Ready, &[]).is_ok());
    }

    #[test]
    fn one_namespace_that_is_refused_does_not_block_the_others() {
        let readiness = Readiness::default();
        let gate = |kind: &str, namespace: &str| readiness.gate_in(format!("{kind}-in-{namespace}"), namespace);
        let (red_pods, red_services) = (gate("pods", "red"), gate("services", "red"));
        let (green_pods, green_services) = (gate("pods", "green"), gate("services", "green"));
        red_pods.open();
        green_pods.open();
        red_services.open();
        assert!(!readiness.is_synced(), "green may still come");
        green_services.refuse("services is forbidden".to_owned());
        assert!(readiness.is_synced() && readiness.is_ready());
        assert!(readiness.is_synced_in("red") && !readiness.is_synced_in("green"));
        assert!(
            report(&readiness).contains("[-]services-in-green failed: services is forbidden"),
            "{}",
            report(&readiness)
        );
        red_services.refuse("services is forbidden".to_owned());
        assert!(!readiness.is_synced(), "no namespace is left");
        green_services.open();
        assert!(readiness.is_synced() && readiness.is_synced_in("green"));
    }

    /// Watches of the cluster alone are no work: another replica may have the permissions that this one lacks.
    #[test]
    fn without_any_namespace_it_waits_whatever_the_cluster_wide_watches_do() {
        let readiness = Readiness::default();
        readiness.gate("classes").open();
        let gate = |namespace: &str| readiness.gate_in(format!("backups-in-{namespace}"), namespace);
        let (red, green) = (gate("red"), gate("green"));
        for refused in [&red, &green] {
            refused.refuse("backups is forbidden".to_owned());
        }
        assert!(
            !readiness.is_synced() && !readiness.is_ready(),
            "{}",
            report(&readiness)
        );
        green.open();
        assert!(readiness.is_synced() && readiness.is_ready(), "{}", report(&readiness));
    }

    #[test]
    fn a_refused_cluster_wide_watch_blocks() {
        let readiness = Readiness::default();
        readiness.gate("pods").open();
        readiness.gate("services").refuse("forbidden".to_owned());
        assert!(!readiness.is_synced());
        assert_eq!(readiness.waiting_for(), ["services"]);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_makes_unready_and_standstill_dead() {
        let readiness = Readiness::default();
        let pulse = Pulse::default();
        readiness.gate("pods").following(pulse.clone()).open();
        assert!(readiness.is_ready() && readiness.is_alive());
        tokio::time::advance(Duration::from_secs(151)).await;
        assert!(!readiness.is_ready() && readiness.is_alive());
        assert!(readiness.is_synced(), "the work goes on with what is known");
        assert!(
            report(&readiness).contains("[-]pods failed: not heard for 151 s"),
            "{}",
            report(&readiness)
        );
        tokio::time::advance(Duration::from_secs(150)).await;
        assert!(!readiness.is_alive());
    }
}
