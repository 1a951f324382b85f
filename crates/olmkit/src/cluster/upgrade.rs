//! `run bundle-upgrade`: from the installed version to that of a bundle.

use serde_json::{Value, json};

use super::cause::{Cause, Code, has_errors};
use super::client::{Cluster, ObjectRef};
use super::facts::BundleFacts;
use super::narrator::{Narrator, Story};
use super::observe::Observation;
use super::preflight::{self, Wishes};
use super::progress::Awaited;
use super::rerun::released_csv;
use super::run_bundle::{Ending, Options, Outcome, create, outcome, unpack_anew};
use super::serving::Serving;
use super::{Error, adopt, cluster_objects, intent, kinds, names, wait};
use crate::types::Subscription;

/// What is to be upgraded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The Subscription's name.
    pub subscription: String,
    /// The installed CSV.
    pub csv: String,
    /// The channel.
    pub channel: String,
    /// Catalog and channel, when the Subscription follows a catalog that this tool did not make.
    pub follows: Option<String>,
    /// What of the Subscription's spec is changed, as it was; `None` when there is no Subscription yet, or one whose catalog
    /// this tool made.
    pub before: Option<Value>,
    /// Whether a Subscription has to be made for the installed CSV.
    pub adopt: bool,
}

/// Finds what is to be upgraded, or says why nothing can be.
///
/// # Errors
/// The cause.
pub fn installed(bundle: &BundleFacts, seen: &Observation) -> Result<Installed, Box<Cause>> {
    let found: Vec<&Subscription> = seen.subscriptions_for(&bundle.package).collect();
    if let (true, Some(csv)) = (found.is_empty(), released_csv(&bundle.package, seen)) {
        still_standing(bundle, csv.name(), seen)?;
        return Ok(Installed {
            subscription: names::subscription(csv.name()),
            csv: csv.name().to_owned(),
            channel: names::CHANNEL.to_owned(),
            follows: None,
            before: None,
            adopt: true,
        });
    }
    let [subscription] = found.as_slice() else {
        return Err(Box::new(not_one_subscription(&found, bundle, seen)));
    };
    let name = subscription.metadata.name.clone().unwrap_or_default();
    let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, &name);
    let csv = subscription.status.installed_csv.clone();
    if csv.is_empty() {
        return Err(Box::new(
            Cause::lasting(
                Code::NotInstalled,
                "has not installed anything yet",
                format!("olmkit diagnose {} -n {} tells why", bundle.package, seen.namespace),
            )
            .on(object),
        ));
    }
    still_standing(bundle, &csv, seen)?;
    let ours = names::catalog_source(&bundle.package);
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

fn not_one_subscription(found: &[&Subscription], bundle: &BundleFacts, seen: &Observation) -> Cause {
    let (package, namespace) = (&bundle.package, &seen.namespace);
    if found.is_empty() {
        return Cause::lasting(
            Code::SubscriptionMissing,
            format!("package {package} is not installed in namespace {namespace}: no Subscription is for it"),
            "install it first: olmkit run bundle; or name its namespace with -n",
        );
    }
    let names: Vec<&str> = found.iter().filter_map(|one| one.metadata.name.as_deref()).collect();
    Cause::lasting(
        Code::SubscriptionExists,
        format!(
            "package {package} has {} Subscriptions in namespace {namespace} ({}), OLM can follow one",
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

/// OLM replaces only a version that has Succeeded.
fn still_standing(bundle: &BundleFacts, csv: &str, seen: &Observation) -> Result<(), Box<Cause>> {
    let phase = seen.csv(csv).map(|csv| csv.status.phase.as_str()).unwrap_or_default();
    if csv == bundle.csv_name() || matches!(phase, "Succeeded" | "Replacing") {
        return Ok(());
    }
    Err(Box::new(
        Cause::lasting(
            Code::UpgradeHeld,
            format!(
                "is {}; OLM replaces only a version that has Succeeded",
                if phase.is_empty() { "missing" } else { phase }
            ),
            format!(
                "repair it first (olmkit diagnose {} -n {}), or begin anew: olmkit cleanup and run bundle",
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
/// [`Error::Request`] and the like. What is wrong in the cluster is a cause in the outcome.
pub async fn run(
    cluster: &Cluster,
    bundle: &BundleFacts,
    options: &Options,
    narrator: &dyn Narrator,
) -> Result<Outcome, Error> {
    let mut story = Story::begin(narrator);
    let mut seen = Observation::full(cluster, &bundle.kinds()).await?;
    let wishes = Wishes {
        install_mode: None,
        inline: bundle.image.is_none(),
        upgrade: true,
    };
    let mut causes = preflight::check(bundle, &wishes, &seen);
    let old = match installed(bundle, &seen) {
        Ok(old) => old,
        Err(cause) => {
            causes.push(*cause);
            return Ok(outcome(Ending::Refused, bundle, &seen, causes, story));
        }
    };
    causes.extend(changed_content(bundle, &old, &seen));
    if has_errors(&causes) {
        return Ok(outcome(Ending::Refused, bundle, &seen, causes, story));
    }
    if old.csv == bundle.csv_name() && seen.csv(&old.csv).is_some_and(|csv| csv.status.phase == "Succeeded") {
        return Ok(outcome(Ending::AlreadyInstalled, bundle, &seen, causes, story));
    }
    if old.csv == bundle.csv_name() {
        story.done(format!("going on with the upgrade to {}", old.csv));
    } else {
        story.done(format!("upgrading {} to {}", old.csv, bundle.csv_name()));
    }
    let replaces = (old.csv != bundle.csv_name()).then_some(old.csv.as_str());
    let blobs = intent::catalog(bundle, &old.channel, replaces);
    let place = options.place.decide(&seen.olm, options.pull_secret.as_deref());
    let serving = match Serving::begin(cluster, bundle, &blobs, &place, options.timeout, &mut story).await? {
        Ok(serving) => serving,
        Err(found) => {
            causes.extend(found);
            return Ok(outcome(Ending::Failed, bundle, &seen, causes, story));
        }
    };
    let source = intent::catalog_source(
        &bundle.package,
        &seen.namespace,
        serving.served(),
        options.pull_secret.as_deref(),
    );
    if old.adopt {
        // Before the catalog, or OLM resolves before it knows that the CSV belongs to the Subscription, and says that it does not.
        subscribe_installed(cluster, &old, bundle, &mut story).await?;
    }
    create(cluster, &source, &mut story).await?;
    unpack_anew(cluster, bundle, &seen, &mut story).await?;
    follow(cluster, &old, bundle, &seen, &mut story).await?;
    let catalog = names::catalog_source(&bundle.package);
    let namespace = seen.namespace.clone();
    let awaited = Awaited {
        subscription: &old.subscription,
        catalog: (&namespace, &catalog),
        csv: bundle.csv_name(),
        adopted: if old.adopt { &old.csv } else { "" },
    };
    let ended = wait::for_success(
        cluster,
        &awaited,
        &bundle.package,
        options.timeout,
        &mut seen,
        &mut story,
    )
    .await?;
    if ended.is_ok() {
        cluster_objects::complete(cluster, bundle.csv_name(), &mut seen).await?;
    }
    cluster_objects::label(cluster, &bundle.package, bundle.csv_name(), &seen).await?;
    serving.end(cluster, bundle, &mut story).await?;
    Ok(match ended {
        Ok(()) => {
            let replaced = seen.csv(bundle.csv_name()).map(|csv| csv.spec.replaces.clone());
            if let Some(replaced) = replaced.filter(|name| seen.csv(name).is_some()) {
                super::run_bundle::wait_gone(
                    cluster,
                    &ObjectRef::namespaced(kinds::cluster_service_version(), &namespace, &replaced),
                )
                .await?;
                story.done(format!("ClusterServiceVersion {namespace}/{replaced}: replaced"));
            }
            outcome(Ending::Succeeded, bundle, &seen, causes, story)
        }
        Err(found) => {
            causes.extend(found);
            outcome(Ending::Failed, bundle, &seen, causes, story)
        }
    })
}

/// OLM upgrades to another version only: the same version with other content would be taken for the one that is installed.
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
            "is installed with other content than the bundle's, and OLM upgrades only to another version",
            format!(
                "give the bundle a new version, or install this one anew: olmkit run bundle (or cleanup {} first)",
                bundle.package
            ),
        )
        .on(ObjectRef::namespaced(
            kinds::cluster_service_version(),
            &seen.namespace,
            csv.name(),
        ))
    })
}

/// Makes a Subscription for a CSV that has none, and tells OLM that they belong together.
async fn subscribe_installed(
    cluster: &Cluster,
    old: &Installed,
    bundle: &BundleFacts,
    story: &mut Story<'_>,
) -> Result<(), Error> {
    let object = create(
        cluster,
        &intent::subscription(bundle, &old.subscription, &cluster.namespace),
        story,
    )
    .await?;
    adopt::tell_installed(cluster, &object, &old.csv).await
}

/// Points the Subscription to the catalog with the new bundle, remembering what it followed. A user's own catalog is never
/// changed.
async fn follow(
    cluster: &Cluster,
    old: &Installed,
    bundle: &BundleFacts,
    seen: &Observation,
    story: &mut Story<'_>,
) -> Result<(), Error> {
    let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, &old.subscription);
    let mut annotations = json!({names::DIGEST_ANNOTATION: bundle.digest});
    if let (Some(follows), Some(before), Some(map)) = (&old.follows, &old.before, annotations.as_object_mut()) {
        map.insert(names::FOLLOWED_BEFORE_ANNOTATION.into(), before.to_string().into());
        story.done(format!("{object}: follows this bundle now instead of {follows}"));
    }
    let patch = json!({
        "metadata": {"annotations": annotations},
        "spec": {
            "source": names::catalog_source(&bundle.package),
            "sourceNamespace": seen.namespace,
            "channel": old.channel,
            "installPlanApproval": "Manual",
        },
    });
    cluster.merge(&object, &patch).await?;
    Ok(())
}
