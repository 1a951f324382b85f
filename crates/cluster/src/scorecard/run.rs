//! One run of scorecard.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Event, Pod};
use olmkit::limits;
use olmkit::scorecard::{self, Builtin, Bundle, Stage, Test, TestConfiguration, TestList, TestResult, TestStatus};
use serde_json::Value;

use super::objects::{self, Parcel, TEST};
use super::options::Options;
use super::{gather, status};
use crate::base::cause::Cause;
use crate::base::error::Error;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressReporter;
use crate::kube::client::{Cluster, read};
use crate::observe::pods;
use crate::rights::{self, Command, When};

/// Interval for polling a pod.
const INTERVAL: Duration = Duration::from_millis(500);
/// Tests of a parallel stage that run at a time.
const AT_ONCE: usize = 32;
/// Lines of the log and events of a test without a result.
const LAST_LINES: i64 = 20;

/// One run of scorecard in a cluster. Its caller must end it with [`Run::clean_up`], even after an interruption.
pub struct Run<'a> {
    cluster: &'a Cluster,
    options: &'a Options,
    reporter: &'a dyn ProgressReporter,
    /// The name of the run's first ConfigMap, and the label of its objects.
    pub name: String,
    started: Instant,
}

/// Objects that a run needs in the cluster.
struct Ready {
    parcel: Parcel,
    owner: Value,
}

impl<'a> Run<'a> {
    /// Names a run. Nothing is created yet.
    #[must_use]
    pub fn new(cluster: &'a Cluster, options: &'a Options, reporter: &'a dyn ProgressReporter) -> Self {
        Self {
            cluster,
            options,
            reporter,
            name: format!("scorecard-test-{:06x}", fastrand::u32(..1 << 24)),
            started: Instant::now(),
        }
    }

    /// The missing permissions.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn missing_rights(&self) -> Result<Vec<Cause>, Error> {
        rights::missing(self.cluster, Command::Scorecard, |right| {
            right.when == When::Always || right.when == When::Removed && !self.options.keep
        })
        .await
    }

    /// Runs the stages one after the other: built-in tests locally, the others in pods. A test without a result has the
    /// state `error` with the reason.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Bundle`] when the bundle does not get into a pod.
    pub async fn run(&self, bundle: &Bundle<'_>, stages: &[Stage]) -> Result<TestList, Error> {
        let ready = match allowed_pods(stages).map_err(Error::Bundle)? {
            0 => None,
            _ => Some(self.prepare(bundle).await?),
        };
        let mut done = Vec::new();
        for stage in stages {
            let first = done.len();
            let tests = stage.tests.iter().enumerate().map(|(number, test)| {
                let ready = ready.as_ref();
                async move {
                    let status = match (Builtin::from_test(test), ready) {
                        (Some(builtin), _) => bundle.run(&builtin).into(),
                        (None, Some(ready)) => self.in_pod(first + number, test, ready).await?,
                        (None, None) => TestStatus::default(),
                    };
                    Ok::<_, Error>(Test::new(test.clone(), status))
                }
            });
            let at_once = if stage.parallel { AT_ONCE } else { 1 };
            let results: Vec<Test> = futures::stream::iter(tests).buffered(at_once).try_collect().await?;
            done.extend(results);
        }
        Ok(done.into_iter().collect())
    }

    async fn prepare(&self, bundle: &Bundle<'_>) -> Result<Ready, Error> {
        let files: Vec<(String, &[u8])> = bundle.files().collect();
        let parcel = objects::pack(&self.name, &self.cluster.namespace, &files, self.options.always_untar)
            .map_err(Error::Bundle)?;
        let mut owner = Value::Null;
        for map in &parcel.config_maps {
            let made = self.cluster.apply(map).await?;
            if owner.is_null() {
                owner = made;
            }
        }
        self.done(&format!("ConfigMap {}: contains the bundle", self.name));
        Ok(Ready { parcel, owner })
    }

    async fn in_pod(&self, number: usize, test: &TestConfiguration, ready: &Ready) -> Result<TestStatus, Error> {
        let place = (self.name.as_str(), number, self.cluster.namespace.as_str());
        let manifest = objects::pod(
            place,
            test,
            &self.options.service_account,
            &ready.parcel,
            &ready.owner,
            self.options,
        );
        let name = scorecard::test_name(test);
        let pod = match self.cluster.apply(&manifest).await {
            Ok(made) => ObjectRef::from_object(&kinds::pod(), &made),
            // A rejection by the API server is an error of this test, not of the run.
            Err(error) if matches!(error.code(), Some(400 | 403 | 422)) => {
                return Ok(without_result(
                    &name,
                    format!("the API server rejects the pod: {error}"),
                    String::new(),
                ));
            }
            Err(error) => return Err(error),
        };
        self.reporter
            .waiting(self.started.elapsed(), &format!("test {name}: pod {}", pod.name));
        let status = self.result(&name, &pod, test).await?;
        let states: Vec<_> = status.results.iter().map(|result| result.state.as_str()).collect();
        self.done(&format!("test {name}: {}", states.join(", ")));
        Ok(status)
    }

    fn done(&self, text: &str) {
        self.reporter.done(self.started.elapsed(), text);
    }

    async fn result(&self, name: &str, pod: &ObjectRef, test: &TestConfiguration) -> Result<TestStatus, Error> {
        let reason = match self.ended(pod).await? {
            Ok(()) => {
                let log = self.log(pod).await?;
                let mut status = parsed(name, &log);
                if let Err(reason) = self.gather(pod, test).await {
                    let missed = format!(
                        "the files in {} were not collected: {reason}",
                        test.storage.spec.mount_path.path
                    );
                    status
                        .results
                        .iter_mut()
                        .take(1)
                        .for_each(|result| result.suggest(missed.clone()));
                }
                return Ok(status);
            }
            Err(reason) => reason,
        };
        let events = self.events().await;
        let mut log = pods::warnings(&events, "Pod", &pod.name).join("\n");
        // A container that has not started has no log.
        let namespace = &self.cluster.namespace;
        if let Ok(lines) = self
            .cluster
            .log_tail(namespace, &pod.name, TEST, false, LAST_LINES)
            .await
        {
            log = format!("{log}\n{}", lines.join("\n"));
        }
        Ok(without_result(name, reason, log.trim().to_owned()))
    }

    /// Waits for a test's end. The inner error is the reason why there is none.
    async fn ended(&self, pod: &ObjectRef) -> Result<Result<(), String>, Error> {
        let began = Instant::now();
        loop {
            let Some(found) = self.cluster.get(pod).await? else {
                return Ok(Err("the pod was deleted".to_owned()));
            };
            let found: Pod = read("Pod", found)?;
            let is_late = began.elapsed() >= self.options.limit;
            let events = if is_late { self.events().await } else { Vec::new() };
            match status::pod_state(&found, &events) {
                status::State::Ended => return Ok(Ok(())),
                status::State::Lost(reason) => return Ok(Err(reason)),
                status::State::Waiting(reason) if is_late => {
                    let limit = self.options.limit.as_secs();
                    return Ok(Err(format!("no result after {limit} s (--wait-time): {reason}")));
                }
                status::State::Waiting(_) => tokio::time::sleep(INTERVAL).await,
            }
        }
    }

    /// The namespace's events. None without the right to see them.
    async fn events(&self) -> Vec<Event> {
        let namespace = Some(self.cluster.namespace.as_str());
        self.cluster
            .list_as(kinds::event(), namespace, None)
            .await
            .unwrap_or_default()
    }

    async fn log(&self, pod: &ObjectRef) -> Result<String, Error> {
        let limit = limits::SCORECARD_LOG.get();
        self.cluster.log(&self.cluster.namespace, &pod.name, TEST, limit).await
    }

    async fn gather(&self, pod: &ObjectRef, test: &TestConfiguration) -> Result<(), String> {
        let storage = &test.storage.spec.mount_path.path;
        if storage.is_empty() {
            return Ok(());
        }
        let label = |name: &str| test.labels.get(name).map_or("unnamed", String::as_str);
        let goal = gather::goal(&self.options.output, [label("suite"), label("test")])?;
        gather::files(self.cluster, &pod.name, storage, &goal).await
    }

    /// Removes the objects that the run created. Pods are deleted with the ConfigMap that owns them, even one that is
    /// being created now.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn clean_up(&self) -> Result<(), Error> {
        let selector = format!("{}={}", objects::RUN, self.name);
        let namespace = Some(self.cluster.namespace.as_str());
        for kind in [kinds::pod(), kinds::config_map()] {
            for object in self.cluster.list(kind.clone(), namespace, Some(&selector)).await? {
                self.cluster.delete(&ObjectRef::from_object(&kind, &object)).await?;
            }
        }
        Ok(())
    }
}

/// Number of tests in the stages that run in pods.
#[must_use]
pub fn pods_of(stages: &[Stage]) -> usize {
    let tests = stages.iter().flat_map(|stage| &stage.tests);
    tests.filter(|test| Builtin::from_test(test).is_none()).count()
}

/// The number of pods that the tests need, or an error if it exceeds the limit. The bundle's author chooses the number of tests.
fn allowed_pods(stages: &[Stage]) -> Result<usize, String> {
    let pods = pods_of(stages);
    if pods > limits::SCORECARD_PODS.count() {
        let limit = limits::SCORECARD_PODS.exceeded();
        return Err(format!(
            "the configuration selects {pods} tests that run in pods: {limit}"
        ));
    }
    Ok(pods)
}

/// Parses a test's output. It must be exactly a `TestStatus`.
fn parsed(name: &str, log: &str) -> TestStatus {
    let reason = match serde_json::from_str::<TestStatus>(log) {
        Ok(status) if status.results.is_empty() => "the test printed no result".to_owned(),
        Ok(status) => return status,
        Err(error) if log.len() as u64 >= limits::SCORECARD_LOG.get() => {
            format!("the test printed more than {}: {error}", limits::SCORECARD_LOG.shown())
        }
        Err(_) if log.trim().is_empty() => {
            "the test printed nothing; container runtimes can lose the output of a container that ends at once"
                .to_owned()
        }
        Err(error) => format!("the test printed something other than a TestStatus in JSON: {error}"),
    };
    let mut result = TestResult::new(name);
    result.fail(reason);
    log.clone_into(&mut result.log);
    result.into()
}

/// The status of a test that did not run to its end.
fn without_result(name: &str, reason: String, log: String) -> TestStatus {
    let mut result = TestResult::new(name);
    result.error(reason);
    result.log = log;
    result.into()
}

#[cfg(test)]
mod tests {
    use olmkit::scorecard::State;

    use super::*;

    #[test]
    fn a_run_starts_a_limited_number_of_pods() {
        let stage = |tests: usize, image: &str, command: &str| Stage {
            parallel: true,
            tests: vec![
                TestConfiguration {
                    image: image.to_owned(),
                    entrypoint: vec![command.to_owned()],
                    ..TestConfiguration::default()
                };
                tests
            ],
        };
        let builtin = stage(
            500,
            "quay.io/operator-framework/scorecard-test:v1.42.0",
            "scorecard-test",
        );
        let most = limits::SCORECARD_PODS.count();
        let own = |tests| stage(tests, "quay.io/example/tests:v1", "run");
        // Built-in tests need no pods.
        assert_eq!(allowed_pods(std::slice::from_ref(&builtin)), Ok(0));
        assert_eq!(allowed_pods(&[own(most - 1), builtin.clone(), own(1)]), Ok(most));
        let refusal = allowed_pods(&[own(most), builtin, own(1)]).unwrap_err();
        assert!(
            refusal.contains("selects 101 tests") && refusal.contains("--limit scorecard-pods=VALUE"),
            "{refusal}"
        );
    }

    #[test]
    fn a_test_prints_its_status_and_nothing_else() {
        let status = parsed("t", r#"{"results": [{"name": "a", "state": "pass"}]}"#);
        assert_eq!(status.results[0].state, State::Pass);
        let status = parsed("t", "starting\n{}");
        assert_eq!(
            (status.results[0].name.as_str(), status.results[0].state),
            ("t", State::Fail)
        );
        assert!(status.results[0].errors[0].contains("something other than a TestStatus"));
        assert_eq!(status.results[0].log, "starting\n{}");
        assert_eq!(parsed("t", "{}").results[0].state, State::Fail);
        let silent = parsed("t", "\n");
        assert!(silent.results[0].errors[0].starts_with("the test printed nothing"));
    }
}
