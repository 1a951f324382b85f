//! Whether caches are filled and their watches are heard.
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::transport::Pulse;

/// A watch that has not been heard for this long makes the process unready: two bookmarks are missing.
const SILENT: Duration = Duration::from_secs(150);

/// A watch that has not even tried for this long makes the process dead: requests end within a minute, and the longest
/// pause between two attempts is half of one.
const STILL: Duration = Duration::from_secs(300);

/// Readiness of the process: named gates that must all be open.
#[derive(Clone, Default)]
pub struct Readiness {
    gates: Arc<Mutex<BTreeMap<String, State>>>,
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

    /// Refused, and not heard since.
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

    /// What is wrong.
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

    /// Whether the work can begin: all gates are open. A namespace of several whose watches are refused does not keep
    /// the others waiting.
    pub fn is_synced(&self) -> bool {
        let gates = self.gates();
        let waits = |state: &State| !state.is_open() && (state.scope.is_none() || !state.is_refused());
        let any_open = gates.is_empty()
            || gates
                .values()
                .any(|state| gates_of(&gates, state.scope.as_deref()).all(State::is_open));
        any_open && !gates.values().any(waits)
    }

    /// Whether all objects in `namespace` are known.
    pub fn is_synced_in(&self, namespace: &str) -> bool {
        let gates = self.gates();
        gates
            .values()
            .filter(|state| state.scope.as_deref().is_none_or(|scope| scope == namespace))
            .all(State::is_open)
    }

    /// Whether the process is ready: it is [synced](Self::is_synced), and every watch has been heard lately.
    pub fn is_ready(&self) -> bool {
        self.is_synced() && !self.gates().values().any(|state| state.is_open() && state.is_silent())
    }

    /// Whether every watch is tried at least. An API server that does not answer leaves the process alive.
    pub fn is_alive(&self) -> bool {
        !self.gates().values().any(State::is_still)
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

    /// One line for each gate, in the format of the Kubernetes API server.
    pub(crate) fn report(&self) -> String {
        let lines: Vec<String> = self
            .gates()
            .iter()
            .map(|(name, state)| match state.fault() {
                None => format!("[+]{name} ok\n"),
                Some(fault) => format!("[-]{name} failed: {fault}\n"),
            })
            .collect();
        let verdict = if self.is_ready() { "passed" } else { "failed" };
        format!("{}readyz check {verdict}\n", lines.concat())
    }

    fn gates(&self) -> MutexGuard<'_, BTreeMap<String, State>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The gates of one namespace, or those of none.
fn gates_of<'a>(gates: &'a BTreeMap<String, State>, scope: Option<&'a str>) -> impl Iterator<Item = &'a State> {
    gates.values().filter(move |state| state.scope.as_deref() == scope)
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

    /// Closes the gate until it is opened, or its pulse is heard again: the API server refuses what it stands for.
    pub fn refuse(&self, why: String) {
        self.change(|state| state.refused = Some((Instant::now(), why)));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        if let Some(state) = self.readiness.gates().get_mut(&self.name) {
            change(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            readiness
                .report()
                .contains("[-]services-in-green failed: services is forbidden"),
            "{}",
            readiness.report()
        );
        red_services.refuse("services is forbidden".to_owned());
        assert!(!readiness.is_synced(), "no namespace is left");
        green_services.open();
        assert!(readiness.is_synced() && readiness.is_synced_in("green"));
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
            readiness.report().contains("[-]pods failed: not heard for 151 s"),
            "{}",
            readiness.report()
        );
        tokio::time::advance(Duration::from_secs(150)).await;
        assert!(!readiness.is_alive());
    }
}
