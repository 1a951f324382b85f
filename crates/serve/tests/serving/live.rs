//! Compares every call on our server and on `opm serve`. If opm is not built (`dev/tools/build.sh` builds it), the test
//! prints this and passes.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use olmkit::catalog::{Catalog, load};
use olmkit_serve::source;
use serde_json::{Value, json};

use crate::client::{call, normal};
use crate::{connect, serve};
use test_support::process::Running;

/// Larger catalogs of the corpus are left to the recordings, in bytes.
const LARGEST: u64 = 60_000;

/// Two packages with all features of catalogs: skips, ranges, deprecations, inline manifests, dependencies, custom
/// blobs.
const CATALOG: &str = r#"
schema: olm.package
name: queue
defaultChannel: stable
description: "Texts with <tags> & \u2028"
icon: {base64data: PHN2Zy8+, mediatype: image/svg+xml}
---
schema: olm.channel
package: queue
name: stable
entries:
- {name: queue.v2.0.0, replaces: queue.v1.1.0, skips: [queue.v1.0.1], skipRange: ">=1.0.0 <2.0.0"}
- {name: queue.v1.1.0, replaces: queue.v1.0.0}
- {name: queue.v1.0.0}
---
schema: olm.channel
package: queue
name: "fast"
entries: [{name: queue.v2.0.0, replaces: gone.v0.1.0}]
---
schema: olm.bundle
package: queue
name: queue.v2.0.0
image: registry.example.com/queue@sha256:0000000000000000000000000000000000000000000000000000000000000000
properties:
- {type: olm.package, value: {packageName: queue, version: 2.0.0}}
- {type: olm.gvk, value: {group: queue.example.com, version: v1, kind: Queue}}
- {type: olm.gvk.required, value: {group: store.example.com, version: v1, kind: Store}}
- {type: olm.package.required, value: {packageName: store, versionRange: ">=1.0.0"}}
- {type: olm.maxOpenShiftVersion, value: "4.18"}
- {type: example.com.numbers, value: [1, 2.5, 12345678901234567890, null, true]}
- type: olm.csv.metadata
  value:
    annotations: {capabilities: Basic Install}
    displayName: Queue <2>
    crdDescriptions: {owned: [{name: queues.queue.example.com, version: v1, kind: Queue}]}
    apiServiceDefinitions: {}
    installModes: [{type: AllNamespaces, supported: true}]
    provider: {name: Example}
relatedImages: [{name: queue, image: registry.example.com/queue:2}, {name: "", image: registry.example.com/tool:1}]
---
schema: olm.bundle
package: queue
name: queue.v1.1.0
image: registry.example.com/queue:1.1.0
properties:
- {type: olm.package, value: {packageName: queue, version: 1.1.0}}
- {type: olm.gvk, value: {group: queue.example.com, version: v1, kind: Queue}}
---
schema: olm.bundle
package: queue
name: queue.v1.0.0
image: ""
properties:
- {type: olm.package, value: {packageName: queue, version: 1.0.0}}
- {type: olm.gvk, value: {group: queue.example.com, version: v1, kind: Queue}}
- type: olm.bundle.object
  value: {data: eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiQ29uZmlnTWFwIn0=}
- type: olm.bundle.object
  value: {data: a2luZDogQ2x1c3RlclNlcnZpY2VWZXJzaW9uCm1ldGFkYXRhOgogIG5hbWU6IHF1ZXVlLnYxLjAuMAo=}
---
schema: olm.deprecations
package: queue
entries:
- {reference: {schema: olm.package}, message: the package goes}
- {reference: {schema: olm.channel, name: fast}, message: the channel goes}
- {reference: {schema: olm.bundle, name: queue.v1.0.0}, message: the bundle goes}
---
schema: example.com.note
package: queue
name: first
value: {deep: [1, {x: y}], text: "<&>"}
---
schema: example.com.note
name: without a package
---
schema: olm.package
name: store
defaultChannel: alpha
---
schema: olm.channel
package: store
name: alpha
entries: [{name: store.v1.0.0}]
---
schema: olm.bundle
package: store
name: store.v1.0.0
image: registry.example.com/store:1
properties:
- {type: olm.package, value: {packageName: store, version: 1.0.0}}
- {type: olm.gvk, value: {group: store.example.com, version: v1, kind: Store}}
"#;

/// A running `opm serve`, ended when dropped.
struct Opm {
    running: Running,
    _cache: tempfile::TempDir,
}

impl Opm {
    async fn serve(program: &Path, catalog: &Path) -> Self {
        // The port is free now. No other process is expected to use it in the next moment.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let cache = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .arg("serve")
            .arg(catalog)
            .args(["--pprof-addr", "", "--cache-enforce-integrity=false", "--port"])
            .arg(address.port().to_string())
            .arg("--cache-dir")
            .arg(cache.path().join("cache"))
            .arg("--termination-log")
            .arg(cache.path().join("termination-log"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        println!("opm serve {} at {address}", catalog.display());
        let serves = async |address: &str| {
            let second = std::time::Duration::from_secs(1);
            olmkit_serve::probe::check(address, "", second, second).await.is_ok()
        };
        Opm {
            running: Running::until_serving(child, address, serves).await,
            _cache: cache,
        }
    }
}

/// Calls for everything in a catalog, and for entries that it does not have.
fn requests(catalog: &Catalog) -> Vec<(&'static str, Value)> {
    let mut requests = vec![("ListPackages", json!({})), ("ListBundles", json!({}))];
    let mut packages: BTreeSet<&str> = BTreeSet::from(["", "no-such-package"]);
    packages.extend(catalog.packages.iter().map(|package| package.name.as_str()));
    requests.extend(packages.iter().map(|name| ("GetPackage", json!({ "name": name }))));
    let mut channels: BTreeSet<(&str, &str)> = BTreeSet::from([("no-such-package", "stable")]);
    let mut names: BTreeSet<&str> = BTreeSet::from(["", "no-such-bundle.v1"]);
    for channel in &catalog.channels {
        channels.insert((&channel.package, &channel.name));
        channels.insert((&channel.package, "no-such-channel"));
        for entry in channel.entries() {
            names.extend([entry.name.as_str(), entry.replaces.as_str()]);
            names.extend(entry.skips.iter().map(String::as_str));
            for name in [entry.name.as_str(), &entry.replaces, "no-such-bundle.v1"] {
                let request = json!({"pkgName": channel.package, "channelName": channel.name, "csvName": name});
                requests.push(("GetBundle", request.clone()));
                requests.push(("GetBundleThatReplaces", request));
            }
        }
    }
    for (package, channel) in channels {
        requests.push((
            "GetBundleForChannel",
            json!({"pkgName": package, "channelName": channel}),
        ));
    }
    requests.extend(
        names
            .iter()
            .map(|name| ("GetChannelEntriesThatReplace", json!({ "csvName": name }))),
    );
    let mut apis: BTreeSet<String> = BTreeSet::from([
        json!({}).to_string(),
        json!({"group": "no.such", "version": "v1", "kind": "Api"}).to_string(),
    ]);
    for bundle in &catalog.bundles {
        for property in bundle.properties.iter().filter(|property| property.kind == "olm.gvk") {
            apis.insert(property.value.clone().unwrap());
        }
    }
    for api in apis {
        let api: Value = serde_json::from_str(&api).unwrap();
        for call in [
            "GetChannelEntriesThatProvide",
            "GetLatestChannelEntriesThatProvide",
            "GetDefaultBundleThatProvides",
        ] {
            requests.push((call, api.clone()));
        }
    }
    let mut customs: BTreeSet<(&str, &str)> = BTreeSet::from([("", ""), ("olm.bundle", "queue"), ("no.such", "")]);
    customs.extend(
        catalog
            .customs
            .iter()
            .map(|custom| (custom.schema.as_str(), custom.package.as_str())),
    );
    for (schema, package) in customs {
        let request = json!({"schema": schema, "packageName": package});
        requests.push(("ExperimentalListPackageCustomSchemas", request.clone()));
        requests.push((
            "ExperimentalListPackageCustomSchemas x-acknowledge-experimental: true",
            request,
        ));
    }
    requests
}

fn size(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// opm names any of several candidates here.
fn arbitrary(rpc: &str, ours: &Value, theirs: &Value) -> bool {
    let channel = |answer: &Value| answer["response"]["channelName"].clone();
    matches!(rpc, "GetBundleThatReplaces" | "GetDefaultBundleThatProvides")
        && channel(ours).is_string()
        && channel(ours) == channel(theirs)
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_equal_those_of_opm_serve_beside_us() {
    let Ok(opm) = kube_testbed::tools::program("opm") else {
        println!("skipped: opm is not built; `dev/tools/build.sh` builds it");
        return;
    };
    let made = tempfile::tempdir().unwrap();
    std::fs::write(made.path().join("catalog.yaml"), CATALOG).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog");
    let mut catalogs: Vec<PathBuf> = vec![made.path().to_owned(), own];
    if let Some(corpus) = test_support::corpus("") {
        let entries = std::fs::read_dir(corpus.join("catalogs")).unwrap();
        let mut more: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        more.retain(|path| path.is_dir() && size(path) <= LARGEST);
        more.sort();
        catalogs.extend(more);
    }
    let (mut equal, mut wrong) = (0, Vec::new());
    for path in &catalogs {
        let catalog = load::directory(path).unwrap();
        let peer = Opm::serve(&opm, path).await;
        let (address, running) = serve(source::index(path, source::Options::default()).unwrap().0).await;
        let (us, them) = (connect(address).await, connect(peer.running.address).await);
        for (rpc, request) in requests(&catalog) {
            let ours = call(us.clone(), rpc, &request)
                .await
                .expect("a call that the client supports");
            let theirs = call(them.clone(), rpc, &request)
                .await
                .expect("a call that the client supports");
            if normal(&ours) == normal(&theirs) || arbitrary(rpc, &ours, &theirs) {
                equal += 1;
            } else {
                let show = |value: &Value| value.to_string().chars().take(600).collect::<String>();
                wrong.push(format!(
                    "{} {rpc} {request}\n  ours   {}\n  theirs {}",
                    path.display(),
                    show(&ours),
                    show(&theirs)
                ));
            }
        }
        running.abort();
    }
    println!(
        "registry API compared with opm: {} catalogs, {equal} answers equal, {} different",
        catalogs.len(),
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.into_iter().take(12).collect::<Vec<_>>().join("\n")
    );
}
