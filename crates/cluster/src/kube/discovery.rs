//! Discovery of the kinds that the API server serves.

use serde_json::Value;

use super::client::{Cluster, get_raw};
use super::path::checked;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds::Kind;

impl Cluster {
    /// Looks up a kind in the API server's discovery.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn kind_of(&self, api_version: &str, kind: &str) -> Result<Option<Kind>, Error> {
        let served = self.served(api_version).await?;
        Ok(served
            .iter()
            .filter_map(|entry| kind_of_entry(api_version, entry))
            .find(|found| found.kind == kind))
    }

    /// The namespaced kinds that can be listed and deleted, in one version each. Omits the kinds of API services
    /// without a backend, such as `v1.packages.operators.coreos.com`.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn namespaced_kinds(&self, dead: &[String]) -> Result<Vec<Kind>, Error> {
        let groups: Value = self.send("discover", &"API groups", || get_raw("/apis")).await?;
        let preferred = items(&groups, "groups")
            .iter()
            .map(|group| text(group, "/preferredVersion/groupVersion"));
        let mut versions = vec!["v1".to_owned()];
        versions.extend(preferred.map(str::to_owned).filter(|version| {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            !dead.contains(&format!("{version}.{group}"))
        }));
        let mut found = Vec::new();
        for api_version in versions {
            let served = self.served(&api_version).await?;
            found.extend(
                served
                    .iter()
                    .filter(|entry| {
                        let verbs = items(entry, "verbs");
                        ["list", "delete"]
                            .iter()
                            .all(|verb| verbs.iter().any(|found| found == verb))
                    })
                    .filter_map(|entry| kind_of_entry(&api_version, entry))
                    .filter(|kind| kind.namespaced),
            );
        }
        Ok(found)
    }

    /// The resources of an API version. Empty if it is not served.
    async fn served(&self, api_version: &str) -> Result<Vec<Value>, Error> {
        for segment in api_version.split('/') {
            checked("discover", &api_version, segment)?;
        }
        let path = if api_version.contains('/') {
            format!("/apis/{api_version}")
        } else {
            format!("/api/{api_version}")
        };
        let answer: Result<Value, Error> = self.send("discover", &api_version, || get_raw(&path)).await;
        match answer {
            Ok(resources) => Ok(items(&resources, "resources").to_vec()),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The kind of an entry of discovery, unless it is a subresource.
fn kind_of_entry(api_version: &str, entry: &Value) -> Option<Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = entry.get("name")?.as_str()?;
    (!plural.contains('/')).then_some(())?;
    Some(Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: entry.get("kind")?.as_str()?.to_owned(),
        plural: plural.to_owned(),
        namespaced: entry.get("namespaced").and_then(Value::as_bool).unwrap_or(true),
    })
}
