//! Waits until a ClusterExtension is installed and its operator runs.

use std::time::{Duration, Instant};

use super::conditions::condition;
use super::explain;
use super::seen::ExtensionState;
use crate::base::cause::{Cause, Code, has_errors};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::reporter::ProgressLog;
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;
use crate::kube::logs::with_logs;

/// The polling interval.
const INTERVAL: Duration = Duration::from_millis(300);

/// How long a cause must persist before it ends the wait. operator-controller reports errors before it has read the
/// newest catalog, and retries.
const PATIENCE: Duration = Duration::from_secs(12);

/// Expected state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Awaited<'a> {
    /// A catalog, and the image that it must have been read from.
    pub catalog: Option<(&'a str, &'a str)>,
    /// The version that must be installed.
    pub version: Option<&'a str>,
    /// The image that it must have been installed from.
    pub image: Option<&'a str>,
}

/// Waits. `Err` has the causes where it ends without success.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub(super) async fn until_installed(
    cluster: &Cluster,
    name: &str,
    awaited: &Awaited<'_>,
    timeout: Duration,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<ExtensionState, Vec<Cause>>, Error> {
    let end = Instant::now() + timeout;
    let mut reported = Reported::default();
    let mut wrong: Option<(Vec<Code>, Instant)> = None;
    loop {
        let seen = ExtensionState::read(cluster, name).await?;
        reported.report(&seen, awaited, progress);
        let Some(missing) = missing(&seen, awaited) else {
            return Ok(Ok(seen));
        };
        let causes = explain::causes(&seen);
        let lasting: Vec<Code> = causes
            .iter()
            .filter(|cause| cause.lasting)
            .map(|cause| cause.code)
            .collect();
        let since = match &wrong {
            Some((codes, since)) if *codes == lasting => *since,
            _ => Instant::now(),
        };
        let is_terminal = lasting.contains(&Code::ConfigurationInvalid);
        wrong = (!lasting.is_empty()).then_some((lasting, since));
        if wrong.is_some() && (is_terminal || since.elapsed() > PATIENCE) {
            return Ok(Err(with_logs(cluster, causes).await));
        }
        if Instant::now() > end {
            let mut causes = with_logs(cluster, causes).await;
            if !has_errors(&causes) {
                causes.push(
                    Cause::passing(
                        Code::Timeout,
                        format!("timed out after {} s while waiting for {missing}", timeout.as_secs()),
                        "run the same command again to continue; use a longer --timeout on slow nodes",
                    )
                    .on(seen.object()),
                );
            }
            return Ok(Err(causes));
        }
        progress.waiting(missing);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The part of the expected state that is missing.
fn missing(seen: &ExtensionState, awaited: &Awaited<'_>) -> Option<String> {
    let Some(extension) = &seen.extension else {
        return Some(seen.object().to_string());
    };
    if let Some((catalog, image)) = awaited.catalog
        && !is_served(seen, catalog, image)
    {
        return Some(format!("ClusterCatalog {catalog} to be served"));
    }
    let progressing = condition(extension, "Progressing");
    let installed = condition(extension, "Installed");
    let is_there = installed.is_some_and(|found| found.is_current && found.status == "True")
        && awaited
            .version
            .is_none_or(|version| seen.installed().is_some_and(|(_, found)| found == version))
        && awaited.image.is_none_or(|image| seen.installed_image() == Some(image));
    if !is_there || !progressing.is_some_and(|found| found.says("True", "Succeeded")) {
        let reason = progressing.filter(|found| found.is_current && !found.reason.is_empty());
        let reason = reason.map(|found| format!(" ({})", found.reason)).unwrap_or_default();
        return Some(format!("{} to be installed{reason}", seen.object()));
    }
    // With the standard manifests, OLM v1 reports Succeeded after it has written the objects.
    let down: Vec<&str> = seen
        .place
        .deployments
        .iter()
        .filter(|deployment| !crate::observe::pods::of_deployment(deployment, &seen.place).is_empty())
        .filter_map(|deployment| deployment.metadata.name.as_deref())
        .collect();
    (!down.is_empty()).then(|| format!("Deployment {}", down.join(", ")))
}

/// Returns true if catalogd serves the pushed image.
fn is_served(seen: &ExtensionState, name: &str, image: &str) -> bool {
    let digest = |text: &str| text.split_once('@').map(|(_, digest)| digest.to_owned());
    seen.catalogs
        .iter()
        .find(|catalog| text(catalog, "/metadata/name") == name)
        .is_some_and(|catalog| {
            let read = text(catalog, "/status/resolvedSource/image/ref");
            catalog.is_true("Serving")
                && condition(catalog, "Progressing").is_some_and(|found| found.says("True", "Succeeded"))
                && digest(read) == digest(image)
        })
}

/// State that has been reported.
#[derive(Default)]
struct Reported {
    served: bool,
    said: String,
}

impl Reported {
    fn report(&mut self, seen: &ExtensionState, awaited: &Awaited<'_>, progress: &mut ProgressLog<'_>) {
        if let Some((catalog, image)) = awaited.catalog
            && !self.served
            && is_served(seen, catalog, image)
        {
            self.served = true;
            progress.done(format!("ClusterCatalog {catalog}: served"));
        }
        let progressing = seen
            .extension
            .as_ref()
            .and_then(|found| condition(found, "Progressing"));
        let Some(progressing) = progressing.filter(|found| found.is_current) else {
            return;
        };
        // Retries are expected while it catches up with a catalog.
        if progressing.reason == "Retrying" {
            return;
        }
        let installed = seen.installed().map(|(name, _)| name).unwrap_or("nothing installed");
        let said = format!("{}: {} ({installed})", seen.object(), progressing.reason);
        if said != self.said {
            progress.done(said.clone());
            self.said = said;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn seen(version: &str, image: &str, deployment: Value) -> ExtensionState {
        let condition = |kind: &str, message: &str| json!({"type": kind, "status": "True", "reason": "Succeeded", "message": message, "observedGeneration": 1});
        let mut seen = ExtensionState {
            name: "cache".into(),
            extension: Some(json!({
                "metadata": {"name": "cache", "generation": 1},
                "status": {
                    "install": {"bundle": {"name": format!("cache.v{version}"), "version": version}},
                    "conditions": [condition("Progressing", ""), condition("Installed", &format!("Installed bundle {image} successfully"))],
                },
            })),
            ..ExtensionState::default()
        };
        seen.place.deployments = serde_json::from_value(json!([deployment])).unwrap();
        seen.catalogs = vec![json!({
            "metadata": {"name": "ours", "generation": 1},
            "status": {
                "resolvedSource": {"image": {"ref": "in.cluster/ours@sha256:1"}},
                "conditions": [condition("Progressing", ""), condition("Serving", "")],
            },
        })];
        seen
    }

    fn deployment(available: &str) -> Value {
        json!({
            "metadata": {"name": "cache-operator", "namespace": "shop", "generation": 2},
            "spec": {"selector": {}, "template": {}},
            "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
                "conditions": [{"type": "Available", "status": available}]},
        })
    }

    #[test]
    fn succeeded_is_not_enough() {
        let awaited = Awaited {
            catalog: Some(("ours", "here/ours@sha256:1")),
            version: Some("0.2.0"),
            image: Some("r.test/b@sha256:2"),
        };
        let missing = |version: &str, image: &str, available: &str| {
            missing(&seen(version, image, deployment(available)), &awaited)
        };
        assert_eq!(missing("0.2.0", "r.test/b@sha256:2", "True"), None);
        let down = missing("0.2.0", "r.test/b@sha256:2", "False");
        assert_eq!(down.as_deref(), Some("Deployment cache-operator"));
        let old = missing("0.1.0", "r.test/b@sha256:2", "True").unwrap();
        assert!(old.contains("to be installed"), "{old}");
        let other = missing("0.2.0", "r.test/b@sha256:3", "True").unwrap();
        assert!(other.contains("to be installed"), "{other}");
        let stale = Awaited {
            catalog: Some(("ours", "here/ours@sha256:9")),
            ..Awaited::default()
        };
        let seen = seen("0.2.0", "", deployment("True"));
        assert_eq!(
            super::missing(&seen, &stale).as_deref(),
            Some("ClusterCatalog ours to be served")
        );
    }
}
