//! `run bundle-upgrade`: from the installed version to that of a bundle.

use serde_json::{Value, json};

use super::flow::{Flow, Options};
use super::progress::WaitTarget;
use super::release::release;
use super::rerun::released_csv;
use super::{adopt, intent};
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::base::outcome::{Conclusion, Outcome};
use crate::base::reporter::ProgressReporter;
use crate::base::{kinds, names};
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::removal;
use crate::observe::observation::Observation;
use crate::rights::Command;
use olmkit::types::{DeployedCsv, Subscription};

/// The installation to upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The Subscription's name.
    pub subscription: String,
    /// The installed CSV.
    pub csv: String,
    /// The channel.
    pub channel: String,
    /// Catalog and channel, when the Subscription uses a catalog that this tool did not create.
    pub follows: Option<String>,
    /// The original values of the Subscription's spec that the upgrade changes. `None` without a Subscription, or with
    /// one whose catalog olmkit created.
    pub before: Option<Value>,
    /// True if a Subscription must be created for the installed CSV.
    pub adopt: bool,
}

/// Finds the installation to upgrade, or the cause why there is none.
///
/// # Errors
/// The cause.
pub fn installed(bundle: &BundleFacts, seen: &Observation) -> Result<Installed, Box<Cause>> {
    let found: Vec<&Subscription> = seen.subscriptions_for(&bundle.package).collect();
    if let (true, Some(csv)) = (found.is_empty(), released_csv(&bundle.package, seen)) {
        still_standing(bundle, csv.name(), seen)?;
        return Ok(adoption(names::subscription(csv.name()), csv));
    }
    let [subscription] = found.as_slice() else {
        return Err(Box::new(not_one_subscription(&found, bundle, seen)));
    };
    let name = subscription.metadata.name.clone().unwrap_or_default();
    let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, &name);
    let ours = names::catalog_source(&bundle.package);
    let csv = standing(&subscription.status.installed_csv, seen);
    if let (true, Some(released)) = (csv.is_empty(), released_csv(&bundle.package, seen))
        && subscription.spec.source == ours
    {
        // An upgrade that was killed before it recorded the installed version in the new Subscription.
        still_standing(bundle, released.name(), seen)?;
        return Ok(adoption(name, released));
    }
    if csv.is_empty() {
        return Err(Box::new(
            Cause::lasting(
                Code::NotInstalled,
                "has not installed anything yet",
                format!(
                    "find the cause: olmkit diagnose {} -n {}",
                    names::word(&bundle.package),
                    seen.namespace
                ),
            )
            .on(object),
        ));
    }
    still_standing(bundle, &csv, seen)?;
    let follows =
        (subscription.spec.source != ours || subscription.spec.source_namespace != seen.namespace).then(|| {
            format!(
                "{}/{} {}",
                subscription.spec.source_namespace, subscription.spec.source, subscription.spec.channel
            )
        });
    let channel = if subscription.spec.channel.is_empty() {
        names::CHANNEL.to_owned()
    } else {
        subscription.spec.channel.clone()
    };
    let before = follows.as_ref().map(|_| {
        let spec = &subscription.spec;
        json!({"source": spec.source, "sourceNamespace": spec.source_namespace, "channel": spec.channel, "installPlanApproval": approval(subscription)})
    });
    Ok(Installed {
        subscription: name,
        csv,
        channel,
        follows,
        before,
        adopt: false,
    })
}

/// The installed version, or the one that has replaced it if OLM has not recorded that in the Subscription yet.
fn standing(installed: &str, seen: &Observation) -> String {
    let successor = || {
        seen.csvs
            .iter()
            .find(|csv| !csv.is_copied() && csv.spec.replaces == installed)
    };
    match seen.csv(installed) {
        None if !installed.is_empty() => successor().map_or(installed, |csv| csv.name()).to_owned(),
        _ => installed.to_owned(),
    }
}

/// A CSV that no Subscription refers to.
fn adoption(subscription: String, csv: &DeployedCsv) -> Installed {
    Installed {
        subscription,
        csv: csv.name().to_owned(),
        channel: names::CHANNEL.to_owned(),
        follows: None,
        before: None,
        adopt: true,
    }
}

fn not_one_subscription(found: &[&Subscription], bundle: &BundleFacts, seen: &Observation) -> Cause {
    let (package, namespace) = (&bundle.package, &seen.namespace);
    if found.is_empty() {
        return Cause::lasting(
            Code::SubscriptionMissing,
            format!("package {package} is not installed in namespace {namespace}: it has no Subscription"),
            "install it first: olmkit run bundle; or name its namespace with -n",
        );
    }
    let names: Vec<&str> = found.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
    Cause::lasting(
        Code::SubscriptionExists,
        format!(
            "package {package} has {} Subscriptions in namespace {namespace} ({}), OLM supports one",
            names.len(),
            names.join(", ")
        ),
        format!(
            "keep one of them: kubectl -n {namespace} delete subscriptions.{} {}",
            kinds::OLM_GROUP,
            names.last().copied().unwrap_or_default()
        ),
    )
}

fn approval(subscription: &Subscription) -> &'static str {
    if subscription.is_manual() {
        "Manual"
    } else {
        "Automatic"
    }
}

/// OLM upgrades only from phase Succeeded.
fn still_standing(bundle: &BundleFacts, csv: &str, seen: &Observation) -> Result<(), Box<Cause>> {
    let phase = seen.csv(csv).map(|csv| csv.status.phase.as_str()).unwrap_or_default();
    if csv == bundle.csv_name() || matches!(phase, "Succeeded" | "Replacing") {
        return Ok(());
    }
    Err(Box::new(
        Cause::lasting(
            Code::UpgradeBlocked,
            format!(
                "is {}; OLM upgrades only from phase Succeeded",
                if phase.is_empty() { "missing" } else { phase }
            ),
            format!(
                "fix it first (olmkit diagnose {} -n {}), or start over: olmkit cleanup and run bundle",
                bundle.package, seen.namespace
            ),
        )
        .on(ObjectRef::namespaced(
            kinds::cluster_service_version(),
            &seen.namespace,
            csv,
        )),
    ))
}

/// Upgrades.
///
/// # Errors
/// [`Error::Request`] and the like. A failure in the cluster is a cause in the outcome.
pub async fn run(
    cluster: &Cluster,
    bundle: &BundleFacts,
    options: &Options,
    reporter: &dyn ProgressReporter,
) -> Result<Outcome, Error> {
    let mut flow = Flow::begin(Command::BundleUpgrade, cluster, bundle, options, reporter).await?;
    if flow.is_refused() {
        return Ok(flow.outcome(Conclusion::Rejected));
    }
    flow.check_bundle(None);
    let old = match installed(bundle, &flow.seen) {
        Ok(old) => old,
        Err(cause) => {
            flow.causes.push(*cause);
            return Ok(flow.outcome(Conclusion::Rejected));
        }
    };
    flow.causes.extend(changed_content(bundle, &old, &flow.seen));
    flow.check_names(&old.subscription).await?;
    flow.check_crds(Some(&old.csv)).await?;
    flow.check_rights().await?;
    if flow.is_refused() {
        return Ok(flow.outcome(Conclusion::Rejected));
    }
    let is_same = old.csv == bundle.csv_name();
    if is_same
        && flow
            .seen
            .csv(&old.csv)
            .is_some_and(|csv| csv.status.phase == "Succeeded")
    {
        // A run that was killed at its end leaves a catalog without a server.
        release(cluster, bundle, &mut flow.progress).await?;
        return Ok(flow.outcome(Conclusion::AlreadyInstalled));
    }
    flow.progress.done(if is_same {
        format!("continuing the upgrade to {}", old.csv)
    } else {
        format!("upgrading {} to {}", old.csv, bundle.csv_name())
    });
    Ok(match flow.upgrade(&old).await? {
        Ok(()) => {
            flow.wait_until_replaced().await?;
            flow.outcome(Conclusion::Succeeded)
        }
        Err(found) => {
            flow.causes.extend(found);
            flow.outcome(Conclusion::Failed)
        }
    })
}

/// The steps of an upgrade only.
impl Flow<'_> {
    async fn upgrade(&mut self, old: &Installed) -> Result<Result<(), Vec<Cause>>, Error> {
        let bundle = self.bundle;
        let replaces = (old.csv != bundle.csv_name()).then_some(old.csv.as_str());
        let serving = match self.serve(&bundle.catalog(&old.channel, replaces)).await? {
            Ok(serving) => serving,
            Err(causes) => return Ok(Err(causes)),
        };
        if old.adopt {
            // Before the catalog: otherwise OLM resolves before it relates the CSV to the Subscription, and reports an
            // error.
            self.subscribe_installed(old).await?;
        }
        self.create_catalog_source(&serving).await?;
        self.remove_old_jobs().await?;
        self.follow(old).await?;
        let (catalog, namespace) = (names::catalog_source(&bundle.package), self.seen.namespace.clone());
        let awaited = WaitTarget {
            subscription: &old.subscription,
            catalog: (&namespace, &catalog),
            csv: bundle.csv_name(),
            adopted: if old.adopt { &old.csv } else { "" },
            ..WaitTarget::default()
        };
        let ended = self.wait(&awaited).await?;
        self.end(serving, ended.is_ok()).await?;
        Ok(ended)
    }

    /// Creates a Subscription for a CSV that has none, and records the CSV as installed by it.
    async fn subscribe_installed(&mut self, old: &Installed) -> Result<(), Error> {
        let manifest = intent::subscription(self.bundle, &old.subscription, &self.cluster.namespace);
        let object = self.create(&manifest).await?;
        adopt::record_installed_csv(self.cluster, &object, &old.csv).await
    }

    /// Points the Subscription to the catalog with the new bundle, and records the previous catalog. A user's catalog is
    /// never changed.
    async fn follow(&mut self, old: &Installed) -> Result<(), Error> {
        let namespace = &self.seen.namespace;
        let object = ObjectRef::namespaced(kinds::subscription(), namespace, &old.subscription);
        let mut annotations = json!({names::DIGEST_ANNOTATION: self.bundle.digest});
        if let (Some(follows), Some(before), Some(map)) = (&old.follows, &old.before, annotations.as_object_mut()) {
            map.insert(names::FOLLOWED_BEFORE_ANNOTATION.into(), before.to_string().into());
            self.progress
                .done(format!("{object}: follows this bundle now instead of {follows}"));
        }
        let patch = json!({
            "metadata": {"annotations": annotations},
            "spec": {
                "source": names::catalog_source(&self.bundle.package),
                "sourceNamespace": namespace,
                "channel": old.channel,
                "installPlanApproval": "Manual",
            },
        });
        self.cluster.merge(&object, &patch).await?;
        Ok(())
    }

    /// Waits until OLM has deleted the replaced CSV.
    async fn wait_until_replaced(&mut self) -> Result<(), Error> {
        let new = self.seen.csv(self.bundle.csv_name());
        let replaced = new.and_then(|csv| self.seen.csv(&csv.spec.replaces));
        let Some(replaced) = replaced.map(|csv| csv.name().to_owned()) else {
            return Ok(());
        };
        let namespace = &self.seen.namespace;
        let object = ObjectRef::namespaced(kinds::cluster_service_version(), namespace, &replaced);
        removal::gone(self.cluster, &object).await?;
        self.progress
            .done(format!("ClusterServiceVersion {namespace}/{replaced}: replaced"));
        Ok(())
    }
}

/// OLM upgrades only to another version: it considers the same version with other content as installed.
fn changed_content(bundle: &BundleFacts, old: &Installed, seen: &Observation) -> Option<Cause> {
    let csv = seen.csv(bundle.csv_name()).filter(|_| old.csv == bundle.csv_name())?;
    let annotation = seen
        .subscriptions_for(&bundle.package)
        .find_map(|found| found.metadata.annotations.as_ref()?.get(names::DIGEST_ANNOTATION));
    let installed = annotation
        .map(|digest| names::released_value(digest))
        .or_else(|| csv.released().map(str::to_owned))?;
    (installed != names::released_value(&bundle.digest)).then(|| {
        Cause::lasting(
            Code::OtherVersionInstalled,
            "is installed with different content; OLM cannot upgrade to the same version",
            format!(
                "give the bundle a new version, or reinstall this one: olmkit run bundle (or cleanup {} first)",
                names::word(&bundle.package)
            ),
        )
        .on(ObjectRef::namespaced(
            kinds::cluster_service_version(),
            &seen.namespace,
            csv.name(),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_gone_is_followed_by_the_one_that_replaced_it() {
        let seen = |csvs: Value| Observation {
            csvs: serde_json::from_value(csvs).unwrap(),
            ..Observation::default()
        };
        let csv = |name: &str, replaces: &str| json!({"metadata": {"name": name}, "spec": {"replaces": replaces}});
        let both = seen(json!([csv("cache.v1", ""), csv("cache.v2", "cache.v1")]));
        assert_eq!(standing("cache.v1", &both), "cache.v1");
        let later = seen(json!([csv("cache.v2", "cache.v1")]));
        assert_eq!(standing("cache.v1", &later), "cache.v2");
        assert_eq!(standing("cache.v1", &seen(json!([]))), "cache.v1");
        assert_eq!(standing("", &seen(json!([csv("cache.v2", "")]))), "");
    }
}
