//! Catalogs that are served over gRPC until the test ends.

use olmkit::catalog::{Catalog, load, model::Blob, render};
use olmkit_serve::{Server, index::in_memory};
use serde_json::json;
use tokio::task::AbortHandle;

use crate::bundle::Bundle;
use crate::harness::Cluster;

/// Serves a catalog, and returns its address and a handle that stops it.
pub async fn catalog(catalog: &Catalog) -> (String, AbortHandle) {
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    server.current().set(in_memory(catalog).unwrap());
    let address = server.address().to_string();
    (address, tokio::spawn(server.run(std::future::pending())).abort_handle())
}

/// Serves a catalog in which each bundle is a separate package, with the channel `alpha`.
pub async fn bundles(cluster: &Cluster, bundles: &[&Bundle]) -> (String, AbortHandle) {
    let mut all = Catalog::default();
    for bundle in bundles {
        let package = json!({"schema": "olm.package", "name": bundle.package, "defaultChannel": "alpha"});
        let channel = json!({"schema": "olm.channel", "package": bundle.package, "name": "alpha",
            "entries": [{"name": bundle.csv_name()}]});
        for blob in load::text(&format!("{package}\n{channel}\n")).unwrap() {
            all.push(blob);
        }
        let folder = bundle.write(cluster.folder.path());
        all.push(Blob::Bundle(render::bundle::directory(&folder, "").unwrap()));
    }
    catalog(&all).await
}
