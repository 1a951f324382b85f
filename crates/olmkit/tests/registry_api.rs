//! Every call of the registry API against the recorded answers of `opm serve` 1.73.0. Without the recordings (see
//! `catalog_corpus.rs`) the test says so and passes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::path::{Path, PathBuf};

use olmkit::catalog::load;
use olmkit::serve::api::experimental_registry_client::ExperimentalRegistryClient;
use olmkit::serve::api::registry_client::RegistryClient;
use olmkit::serve::api::{self};
use olmkit::serve::index::in_memory;
use olmkit::serve::{Server, probe, source};
use serde_json::{Map, Value, json};
use tonic::transport::Channel;
use tonic::{Request, Status};

fn corpus() -> Option<PathBuf> {
    let root = match std::env::var_os("OLMKIT_CORPUS") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
    };
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: no corpus at {}", root.display());
    None
}

/// Protobuf's JSON mapping: what is empty is left out.
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

async fn call(channel: Channel, rpc: &str, request: &Value) -> Option<Value> {
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

/// Numbers read from JSON and from protobuf are compared as floats; Go's proto text varies in its blanks.
fn normal(value: &Value) -> Value {
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

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_opm_serve() {
    let Some(corpus) = corpus() else { return };
    let (mut equal, mut wrong) = (0, Vec::new());
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("expected/serve"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = server.address();
        server.current().set(
            source::index(&corpus.join("catalogs").join(&name), None, false)
                .unwrap()
                .0,
        );
        let running = tokio::spawn(server.run(std::future::pending()));
        let channel = Channel::from_shared(format!("http://{address}"))
            .unwrap()
            .connect()
            .await
            .unwrap();
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let mut expected: Value = serde_json::from_str(line).unwrap();
            let entries = expected.as_object_mut().unwrap();
            let rpc = entries.remove("rpc").unwrap();
            let request = entries.remove("request").unwrap();
            let rpc = rpc.as_str().unwrap();
            let Some(ours) = call(channel.clone(), rpc, &request).await else {
                assert!(
                    rpc.ends_with("Health/Check"),
                    "a call that this test does not know: {rpc}"
                );
                let second = std::time::Duration::from_secs(1);
                let service = request["service"].as_str().unwrap_or_default();
                probe::check(&address.to_string(), service, second, second)
                    .await
                    .unwrap();
                equal += 1;
                continue;
            };
            // Of several entries that replace a bundle opm names any; both answers must be bundles of the channel.
            let arbitrary = rpc == "GetBundleThatReplaces"
                && ours["response"]["channelName"].is_string()
                && ours["response"]["channelName"] == expected["response"]["channelName"];
            if normal(&ours) == normal(&expected) || arbitrary {
                equal += 1;
            } else {
                let show = |value: &Value| value.to_string().chars().take(600).collect::<String>();
                wrong.push(format!(
                    "{name} {rpc} {request}\n  ours   {}\n  theirs {}",
                    show(&ours),
                    show(&expected)
                ));
            }
        }
        running.abort();
    }
    println!("registry API: {equal} answers equal, {} different", wrong.len());
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.into_iter().take(12).collect::<Vec<_>>().join("\n")
    );
}

const CATALOG: &str = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: p\n\
    entries:\n- name: p.v1\n---\nschema: olm.bundle\nname: p.v1\npackage: p\nimage: r.io/p:v1\nproperties:\n\
    - type: olm.package\n  value:\n    packageName: p\n    version: 1.0.0\n";

#[tokio::test(flavor = "multi_thread")]
async fn probes_fail_until_the_catalog_is_there_and_clients_reconnect_when_it_changes() {
    let catalog = load::text(CATALOG).unwrap().into_iter().collect();
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, current) = (server.address(), server.current());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    let second = std::time::Duration::from_secs(1);
    let check = || async { probe::check(&address.to_string(), "", second, second).await };
    assert_eq!(check().await.unwrap_err().exit_code(), 4);
    current.set(in_memory(&catalog).unwrap());
    check().await.unwrap();

    let channel = Channel::from_shared(format!("http://{address}"))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut client = RegistryClient::new(channel);
    let mut open = client
        .list_bundles(api::ListBundlesRequest {})
        .await
        .unwrap()
        .into_inner();
    current.set(
        in_memory(
            &load::text(&CATALOG.replace("p.v1", "p.v2"))
                .unwrap()
                .into_iter()
                .collect(),
        )
        .unwrap(),
    );
    // The open stream ends on the old content; the next call, on a new connection, sees the new one.
    assert_eq!(open.message().await.unwrap().unwrap().csv_name, "p.v1");
    assert!(open.message().await.unwrap().is_none());
    let mut names = Vec::new();
    for _ in 0..50 {
        if let Ok(answer) = client.get_package(api::GetPackageRequest { name: "p".into() }).await {
            names.push(answer.into_inner().channels[0].csv_name.clone());
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(names, ["p.v2"]);
    stop.send(()).unwrap();
    tokio::time::timeout(second * 10, running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(check().await.unwrap_err().exit_code(), 2);
}
