//! Installs custom resource definitions.

use std::time::{Duration, Instant};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;

use crate::Error;

/// The API server takes about a second.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn install(
    client: &Client,
    definitions: impl IntoIterator<Item = CustomResourceDefinition>,
) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut installed = Vec::new();
    for mut definition in definitions {
        let name = definition.name_any();
        definition.metadata.managed_fields = None;
        definition.status = None;
        let apply = PatchParams::apply("kube-testbed").force();
        let applied = api.patch(&name, &apply, &Patch::Apply(&definition)).await;
        installed.push(applied.map_err(Error::request(format!("apply CustomResourceDefinition {name}")))?);
    }
    let end = Instant::now() + LIMIT;
    for definition in installed {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            served(client, &api, &definition, &version.name, end).await?;
        }
    }
    Ok(())
}

/// Waits until objects of `version` can be listed.
async fn served(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    definition: &CustomResourceDefinition,
    version: &str,
    end: Instant,
) -> Result<(), Error> {
    let names = &definition.spec.names;
    let kind = GroupVersionKind::gvk(&definition.spec.group, version, &names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &names.plural);
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let one = ListParams::default().limit(1);
    while let Err(error) = objects.list(&one).await {
        if Instant::now() > end {
            return Err(Error::NotServed {
                name: definition.name_any(),
                version: version.to_owned(),
                reason: reason(api, definition).await.unwrap_or_else(|| error.to_string()),
            });
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The reason in the status for rejecting it.
async fn reason(api: &Api<CustomResourceDefinition>, definition: &CustomResourceDefinition) -> Option<String> {
    let conditions = api.get(&definition.name_any()).await.ok()?.status?.conditions?;
    let good = |type_: &str| matches!(type_, "Established" | "NamesAccepted");
    let against = conditions
        .into_iter()
        .find(|condition| (condition.status == "True") != good(&condition.type_))?;
    Some(format!("{}: {}", against.type_, against.message.unwrap_or_default()))
}
