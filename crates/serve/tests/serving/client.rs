//! The calls of the registry API by name, with requests and answers as JSON.

use olmkit_serve::api::experimental_registry_client::ExperimentalRegistryClient;
use olmkit_serve::api::registry_client::RegistryClient;
use olmkit_serve::api::{self};
use serde_json::{Map, Value, json};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Protobuf's JSON mapping: empty values are omitted.
fn object(entries: Vec<(&str, Value)>) -> Value {
    let full = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    Value::Object(
        entries
            .into_iter()
            .filter(|(_, value)| full(value))
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    )
}

fn deprecation(deprecation: Option<api::Deprecation>) -> Value {
    deprecation.map_or(Value::Null, |deprecation| {
        object(vec![("message", deprecation.message.into())])
    })
}

fn gvks(apis: Vec<api::GroupVersionKind>) -> Value {
    apis.into_iter()
        .map(|api| {
            object(vec![
                ("group", api.group.into()),
                ("version", api.version.into()),
                ("kind", api.kind.into()),
                ("plural", api.plural.into()),
            ])
        })
        .collect()
}

fn bundle(bundle: api::Bundle) -> Value {
    object(vec![
        ("csvName", bundle.csv_name.into()),
        ("packageName", bundle.package_name.into()),
        ("channelName", bundle.channel_name.into()),
        ("csvJson", bundle.csv_json.into()),
        ("object", bundle.object.into()),
        ("bundlePath", bundle.bundle_path.into()),
        ("providedApis", gvks(bundle.provided_apis)),
        ("requiredApis", gvks(bundle.required_apis)),
        ("version", bundle.version.into()),
        ("skipRange", bundle.skip_range.into()),
        (
            "dependencies",
            bundle
                .dependencies
                .into_iter()
                .map(|item| object(vec![("type", item.r#type.into()), ("value", item.value.into())]))
                .collect(),
        ),
        (
            "properties",
            bundle
                .properties
                .into_iter()
                .map(|item| object(vec![("type", item.r#type.into()), ("value", item.value.into())]))
                .collect(),
        ),
        ("replaces", bundle.replaces.into()),
        ("skips", bundle.skips.into()),
        ("deprecation", deprecation(bundle.deprecation)),
    ])
}

fn package(package: api::Package) -> Value {
    let channels = package
        .channels
        .into_iter()
        .map(|channel| {
            object(vec![
                ("name", channel.name.into()),
                ("csvName", channel.csv_name.into()),
                ("deprecation", deprecation(channel.deprecation)),
            ])
        })
        .collect();
    object(vec![
        ("name", package.name.into()),
        ("channels", channels),
        ("defaultChannelName", package.default_channel_name.into()),
        ("deprecation", deprecation(package.deprecation)),
    ])
}

fn entry(entry: api::ChannelEntry) -> Value {
    object(vec![
        ("packageName", entry.package_name.into()),
        ("channelName", entry.channel_name.into()),
        ("bundleName", entry.bundle_name.into()),
        ("replaces", entry.replaces.into()),
    ])
}

fn custom(value: prost_types::Struct) -> Value {
    fn convert(value: prost_types::Value) -> Value {
        use prost_types::value::Kind;
        match value.kind {
            None | Some(Kind::NullValue(_)) => Value::Null,
            Some(Kind::BoolValue(value)) => value.into(),
            Some(Kind::NumberValue(value)) => json!(value),
            Some(Kind::StringValue(text)) => text.into(),
            Some(Kind::ListValue(list)) => list.values.into_iter().map(convert).collect(),
            Some(Kind::StructValue(value)) => custom(value),
        }
    }
    Value::Object(
        value
            .fields
            .into_iter()
            .map(|(key, value)| (key, convert(value)))
            .collect::<Map<_, _>>(),
    )
}

/// One answer in the form of the recordings.
fn unary(result: Result<Value, Status>) -> Value {
    match result {
        Ok(response) => json!({ "response": response }),
        Err(status) => failure(&status),
    }
}

fn failure(status: &Status) -> Value {
    json!({ "error": { "code": format!("{:?}", status.code()), "message": status.message() } })
}

async fn streamed<T>(
    result: Result<tonic::Response<tonic::Streaming<T>>, Status>,
    convert: impl Fn(T) -> Value,
    sort: bool,
) -> Value {
    let mut stream = match result {
        Ok(response) => response.into_inner(),
        Err(status) => return failure(&status),
    };
    let mut items = Vec::new();
    loop {
        match stream.message().await {
            Ok(Some(item)) => items.push(convert(item)),
            Ok(None) => break,
            Err(status) => return failure(&status),
        }
    }
    if items.is_empty() {
        return json!({ "empty_stream": true });
    }
    if sort {
        items.sort_by_key(Value::to_string);
    }
    json!({ "stream": items })
}

/// Makes the call `rpc` with a request in protobuf's JSON form. `None` for an unknown call.
pub async fn call(channel: Channel, rpc: &str, request: &Value) -> Option<Value> {
    let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
    let mut client = RegistryClient::new(channel.clone()).max_decoding_message_size(64 << 20);
    let api = || (text("group"), text("version"), text("kind"), text("plural"));
    Some(match rpc {
        "ListPackages" => {
            let named = |name: api::PackageName| object(vec![("name", name.name.into())]);
            streamed(client.list_packages(api::ListPackageRequest {}).await, named, true).await
        }
        "ListBundles" => streamed(client.list_bundles(api::ListBundlesRequest {}).await, bundle, false).await,
        "GetPackage" => {
            let answer = client.get_package(api::GetPackageRequest { name: text("name") }).await;
            unary(answer.map(|answer| package(answer.into_inner())))
        }
        "GetBundle" => {
            let request = api::GetBundleRequest {
                pkg_name: text("pkgName"),
                channel_name: text("channelName"),
                csv_name: text("csvName"),
            };
            unary(
                client
                    .get_bundle(request)
                    .await
                    .map(|answer| bundle(answer.into_inner())),
            )
        }
        "GetBundleForChannel" => {
            let request = api::GetBundleInChannelRequest {
                pkg_name: text("pkgName"),
                channel_name: text("channelName"),
            };
            unary(
                client
                    .get_bundle_for_channel(request)
                    .await
                    .map(|answer| bundle(answer.into_inner())),
            )
        }
        "GetBundleThatReplaces" => {
            let request = api::GetReplacementRequest {
                csv_name: text("csvName"),
                pkg_name: text("pkgName"),
                channel_name: text("channelName"),
            };
            unary(
                client
                    .get_bundle_that_replaces(request)
                    .await
                    .map(|answer| bundle(answer.into_inner())),
            )
        }
        "GetChannelEntriesThatReplace" => {
            let request = api::GetAllReplacementsRequest {
                csv_name: text("csvName"),
            };
            streamed(client.get_channel_entries_that_replace(request).await, entry, true).await
        }
        "GetChannelEntriesThatProvide" => {
            let (group, version, kind, plural) = api();
            let request = api::GetAllProvidersRequest {
                group,
                version,
                kind,
                plural,
            };
            streamed(client.get_channel_entries_that_provide(request).await, entry, true).await
        }
        "GetLatestChannelEntriesThatProvide" => {
            let (group, version, kind, plural) = api();
            let request = api::GetLatestProvidersRequest {
                group,
                version,
                kind,
                plural,
            };
            streamed(
                client.get_latest_channel_entries_that_provide(request).await,
                entry,
                true,
            )
            .await
        }
        "GetDefaultBundleThatProvides" => {
            let (group, version, kind, plural) = api();
            let request = api::GetDefaultProviderRequest {
                group,
                version,
                kind,
                plural,
            };
            unary(
                client
                    .get_default_bundle_that_provides(request)
                    .await
                    .map(|answer| bundle(answer.into_inner())),
            )
        }
        other if other.starts_with("ExperimentalListPackageCustomSchemas") => {
            let mut client = ExperimentalRegistryClient::new(channel);
            let mut request = Request::new(api::ExperimentalListPackageCustomSchemasRequest {
                schema: text("schema"),
                package_name: text("packageName"),
            });
            if other.contains("x-acknowledge-experimental: true") {
                request
                    .metadata_mut()
                    .insert("x-acknowledge-experimental", "true".parse().unwrap());
            }
            streamed(
                client.experimental_list_package_custom_schemas(request).await,
                custom,
                false,
            )
            .await
        }
        _ => return None,
    })
}

/// Numbers read from JSON and from protobuf are compared as floats; Go's proto text format varies in its spaces.
pub fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::String(text) => text.replace("  ", " ").into(),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), normal(value)))
            .collect(),
        other => other.clone(),
    }
}
