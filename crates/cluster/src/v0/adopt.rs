//! Assigns a CSV that was installed through another Subscription, or whose Subscription was deleted, to a Subscription.

use serde_json::json;

use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;

/// Records a CSV as installed in the status of a Subscription.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn record_installed_csv(cluster: &Cluster, subscription: &ObjectRef, csv: &str) -> Result<(), Error> {
    let status = json!({"status": {
        "installedCSV": csv,
        "currentCSV": csv,
        "state": "AtLatestKnown",
        "lastUpdated": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }});
    cluster.merge_status(subscription, &status).await?;
    Ok(())
}
