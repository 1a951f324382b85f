//! Resumes an interrupted cleanup. After a CSV is deleted, nothing else has its name, which finds the cluster-scoped
//! objects that OLM left. So the names are recorded in the package's Operator object, which is deleted last.

use std::collections::BTreeSet;

use serde_json::json;

use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::client::Cluster;

/// The names of CSVs that an earlier cleanup had begun to remove.
///
/// # Errors
/// [`Error::Request`].
pub async fn begun(cluster: &Cluster, package: &str) -> Result<BTreeSet<String>, Error> {
    let found = match cluster.get(&object(cluster, package)).await {
        Ok(found) => found,
        Err(error) if error.code() == Some(403) => None,
        Err(error) => return Err(error),
    };
    let noted = found.as_ref().and_then(|found| {
        let annotations = found.pointer("/metadata/annotations")?;
        annotations.get(names::REMOVED_CSVS_ANNOTATION)?.as_str()
    });
    Ok(noted
        .map(|noted| noted.split(' ').map(str::to_owned).collect())
        .unwrap_or_default())
}

/// Records the names before the first one is removed. A missing permission does not prevent the cleanup.
///
/// # Errors
/// [`Error::Request`].
pub async fn note(cluster: &Cluster, package: &str, csvs: &BTreeSet<String>) -> Result<(), Error> {
    let names: Vec<&str> = csvs.iter().map(String::as_str).collect();
    let patch = json!({"metadata": {"annotations": {names::REMOVED_CSVS_ANNOTATION: names.join(" ")}}});
    match cluster.merge(&object(cluster, package), &patch).await {
        Err(error) if !matches!(error.code(), Some(403 | 404)) => Err(error),
        _ => Ok(()),
    }
}

fn object(cluster: &Cluster, package: &str) -> ObjectRef {
    ObjectRef::cluster(kinds::operator(), &names::operator(package, &cluster.namespace))
}
