//! `extension install`: installs a package from a catalog in the cluster.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::objects::{Policy, Wanted, cluster_extension};
use super::preflight::{self, Served};
use super::seen::ExtensionState;
use super::wait::{Awaited, until_installed};
use crate::base::cause::{Cause, Code, has_errors, sorted};
use crate::base::error::Error;
use crate::base::install_mode::InstallMode;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::outcome::Conclusion;
use crate::base::reporter::{ProgressLog, ProgressReporter, Step};
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::ownership;
use crate::rights::{self, Command};

/// The catalog that is installed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CatalogChoice {
    /// The only one of the cluster.
    #[default]
    Only,
    /// The one of this name.
    Named(String),
    /// Whichever has the package.
    Any,
}

/// Options of `extension install`.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The ClusterExtension.
    pub name: String,
    /// The package.
    pub package: String,
    /// The catalog.
    pub catalog: CatalogChoice,
    /// Version or range.
    pub version: Option<String>,
    /// Channels. All if empty.
    pub channels: Vec<String>,
    /// True if upgrades need edges.
    pub policy: Option<Policy>,
    /// Namespaces that the operator watches.
    pub install_mode: Option<InstallMode>,
    /// True if CRDs are upgraded whatever they become.
    pub any_crd: bool,
    /// Only return the manifest.
    pub dry_run: bool,
    /// Total time to wait.
    pub timeout: Duration,
}

/// Result of an installation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InstallReport {
    /// The result.
    pub result: Conclusion,
    /// The ClusterExtension.
    pub name: String,
    /// The package.
    pub package: String,
    /// The namespace.
    pub namespace: String,
    /// The bundle that is installed.
    pub bundle: Option<String>,
    /// The applied ClusterExtension, or the one that a dry run would apply.
    pub manifest: Value,
    /// The causes found, including warnings.
    pub causes: Vec<Cause>,
    /// The steps done, with their times.
    pub steps: Vec<Step>,
}

/// Creates or changes a ClusterExtension, and waits until its operator runs.
///
/// # Errors
/// [`Error::Request`], [`Error::Usage`]. Faults in the cluster are causes in the report.
pub async fn install(
    cluster: &Cluster,
    options: &InstallOptions,
    reporter: &dyn ProgressReporter,
) -> Result<InstallReport, Error> {
    for (what, name) in [("package", &options.package), ("ClusterExtension", &options.name)] {
        names::check(what, name).map_err(Error::Usage)?;
    }
    let mut progress = ProgressLog::start(reporter);
    let mut report = InstallReport {
        result: Conclusion::Rejected,
        name: options.name.clone(),
        package: options.package.clone(),
        namespace: cluster.namespace.clone(),
        bundle: None,
        manifest: Value::Null,
        causes: rights::missing_always(cluster, Command::ExtensionInstall).await?,
        steps: Vec::new(),
    };
    if !report.causes.is_empty() {
        return Ok(report);
    }
    let served = Served::read(cluster).await?;
    if let Some(missing) = served.missing() {
        report.causes.push(missing);
        return Ok(report);
    }
    let seen = ExtensionState::read(cluster, &options.name).await?;
    let catalog = match chosen(options, &seen) {
        Ok(catalog) => catalog,
        Err(cause) => {
            report.causes.push(*cause);
            None
        }
    };
    let config = preflight::config(options.install_mode.as_ref(), &cluster.namespace, served).unwrap_or_else(|cause| {
        report.causes.push(cause);
        Value::Null
    });
    report.causes.extend(standing(options, cluster, &seen));
    report.causes = sorted(std::mem::take(&mut report.causes));
    if has_errors(&report.causes) {
        return Ok(report);
    }
    report.manifest = cluster_extension(&Wanted {
        name: &options.name,
        package: &options.package,
        namespace: &cluster.namespace,
        catalog: catalog.as_deref(),
        version: options.version.as_deref(),
        channels: &options.channels,
        policy: options.policy,
        config,
        any_crd: options.any_crd,
        annotations: Vec::new(),
    });
    if options.dry_run {
        report.result = Conclusion::Checked;
        return Ok(report);
    }
    let object = ownership::apply(cluster, &report.manifest).await?;
    progress.done(format!("{object}: applied"));
    let exact = options.version.as_deref().filter(|version| is_exact(version));
    let awaited = Awaited {
        version: exact,
        ..Awaited::default()
    };
    match until_installed(cluster, &options.name, &awaited, options.timeout, &mut progress).await? {
        Ok(seen) => {
            report.result = Conclusion::Succeeded;
            report.bundle = seen.installed().map(|(name, _)| name.to_owned());
            report.causes.extend(super::explain::causes(&seen));
        }
        Err(causes) => {
            report.result = Conclusion::Failed;
            report.causes.extend(causes);
        }
    }
    report.causes = sorted(report.causes);
    report.steps = progress.steps;
    Ok(report)
}

/// Returns true if a string is one version, not a range.
fn is_exact(text: &str) -> bool {
    semver::Version::parse(text).is_ok()
}

/// The catalog to select. `None` for any.
fn chosen(options: &InstallOptions, seen: &ExtensionState) -> Result<Option<String>, Box<Cause>> {
    let names: Vec<&str> = seen
        .catalogs
        .iter()
        .map(|found| text(found, "/metadata/name"))
        .collect();
    match (&options.catalog, names.as_slice()) {
        (CatalogChoice::Any, _) => Ok(None),
        (CatalogChoice::Named(name), names) if names.contains(&name.as_str()) => Ok(Some(name.clone())),
        (CatalogChoice::Named(name), names) => Err(Box::new(
            Cause::lasting(
                Code::CatalogMissing,
                "does not exist",
                match names {
                    [] => "the cluster has no ClusterCatalog; create one".to_owned(),
                    names => format!("the cluster has {}", names.join(", ")),
                },
            )
            .on(ObjectRef::cluster(kinds::cluster_catalog(), name)),
        )),
        (CatalogChoice::Only, [only]) => Ok(Some((*only).to_owned())),
        (CatalogChoice::Only, []) => Err(Box::new(Cause::lasting(
            Code::CatalogMissing,
            "the cluster has no ClusterCatalog to install from",
            "create one; olmkit run bundle --olm v1 installs a local bundle",
        ))),
        // An existing catalog selection counts as chosen.
        (CatalogChoice::Only, _) if seen.extension.as_ref().and_then(preflight::selected_name).is_some() => Ok(seen
            .extension
            .as_ref()
            .and_then(preflight::selected_name)
            .map(str::to_owned)),
        (CatalogChoice::Only, names) => Err(Box::new(Cause::lasting(
            Code::CatalogAmbiguous,
            format!("the cluster has several catalogs: {}", names.join(", ")),
            "pass --catalog NAME, or --any-catalog to use any catalog that has the package",
        ))),
    }
}

/// Existing objects with the same name, and the namespace.
fn standing(options: &InstallOptions, cluster: &Cluster, seen: &ExtensionState) -> Vec<Cause> {
    let Some(extension) = &seen.extension else {
        return preflight::namespace(seen).into_iter().collect();
    };
    if !ownership::is_ours(extension, &names::labels(&options.package)) {
        return vec![preflight::not_ours(extension, seen.object(), &options.package)];
    }
    let in_other = preflight::other_namespace(seen, &cluster.namespace, "pass another --name");
    in_other.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options(catalog: CatalogChoice) -> InstallOptions {
        InstallOptions {
            name: "cache".into(),
            package: "cache".into(),
            catalog,
            version: None,
            channels: Vec::new(),
            policy: None,
            install_mode: None,
            any_crd: false,
            dry_run: false,
            timeout: Duration::ZERO,
        }
    }

    #[test]
    fn the_catalog_is_never_left_to_chance() {
        let seen = |names: &[&str]| ExtensionState {
            catalogs: names.iter().map(|name| json!({"metadata": {"name": name}})).collect(),
            ..ExtensionState::default()
        };
        let code = |choice: CatalogChoice, names: &[&str]| chosen(&options(choice), &seen(names)).unwrap_err().code;
        let fine = |choice: CatalogChoice, names: &[&str]| chosen(&options(choice), &seen(names)).unwrap();
        assert_eq!(fine(CatalogChoice::Only, &["a"]).as_deref(), Some("a"));
        assert_eq!(
            fine(CatalogChoice::Named("b".into()), &["a", "b"]).as_deref(),
            Some("b")
        );
        assert_eq!(fine(CatalogChoice::Any, &["a", "b"]), None);
        assert_eq!(code(CatalogChoice::Only, &["a", "b"]), Code::CatalogAmbiguous);
        assert_eq!(code(CatalogChoice::Only, &[]), Code::CatalogMissing);
        assert_eq!(code(CatalogChoice::Named("c".into()), &["a"]), Code::CatalogMissing);
        let mut follows = seen(&["a", "b"]);
        let selector = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "b"}});
        follows.extension = Some(json!({"spec": {"source": {"catalog": {"selector": selector}}}}));
        assert_eq!(
            chosen(&options(CatalogChoice::Only), &follows).unwrap().as_deref(),
            Some("b")
        );
    }
}
