//! Simulates catalogd in a cluster without nodes: its Service and its pod are objects of the API server, which forwards
//! to a server of this process with catalogd's paths. `dev/e2e` compares the answers of `catalog serve --http` with the
//! real catalogd.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use kube::api::{Patch, PatchParams};
use olmkit_serve::assemble::IndexContents;
use olmkit_serve::current::Current;
use olmkit_serve::http::{Routes, Server};
use olmkit_serve::source::{self, Options};
use serde_json::json;

use crate::harness::{Cluster, eventually};

/// The namespace of catalogd.
pub const SYSTEM: &str = "olmv1-system";

/// The URL at which catalogd reports to serve a catalog, without TLS.
pub fn base(catalog: &str) -> String {
    format!("http://catalogd-service.{SYSTEM}.svc/catalogs/{catalog}")
}

/// An address of this machine that a pod may have. The API server forwards to no loopback address.
pub fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: the system only chooses where from.
    socket.connect("203.0.113.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Serves a catalog as catalogd does, on a separate thread: the test blocks on commands that need it.
pub fn serve(address: IpAddr, catalog: &str) -> (SocketAddr, Current) {
    let current = Current::default();
    set(&current, catalog);
    let routes = Routes {
        catalog: Some(current.clone()),
        metrics: None,
        health: current.clone(),
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let server = Server::bind(SocketAddr::new(address, 0), routes).await.unwrap();
            sender.send(server.address().unwrap()).unwrap();
            server.run().await;
        });
    });
    (receiver.recv().unwrap(), current)
}

/// Changes the catalog that is served.
pub fn set(current: &Current, catalog: &str) {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("catalog.json"), catalog).unwrap();
    let options = Options {
        wanted: IndexContents {
            blobs: true,
            whole: true,
        },
        ..Options::default()
    };
    current.set(source::index(root.path(), options).unwrap().0);
}

/// Makes the API server forward requests for catalogd's Service to a server.
pub async fn stand_in(cluster: &Cluster, server: SocketAddr) {
    let (name, pod) = ("catalogd-service", "catalogd");
    let metadata = |name: &str| json!({"name": name, "namespace": SYSTEM});
    let containers = json!([{"name": "manager", "image": "registry.test/catalogd:v1"}]);
    let object =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(pod), "spec": {"containers": containers}});
    cluster.apply("pods", object).await;
    eventually("the pod runs", async || {
        let found = cluster.get("v1", "Pod", "pods", Some(SYSTEM), pod).await.unwrap();
        found["status"]["phase"] == "Running"
    })
    .await;
    // The API server forwards to addresses of pods only.
    let ip = server.ip().to_string();
    let status = json!({"status": {"podIP": ip, "podIPs": [{"ip": ip}]}});
    cluster
        .api("v1", "Pod", "pods", Some(SYSTEM))
        .patch_status(pod, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let port = json!({"port": 80, "targetPort": server.port()});
    cluster
        .apply(
            "services",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(name), "spec": {"ports": [port]}}),
        )
        .await;
    let target = json!({"kind": "Pod", "name": pod, "namespace": SYSTEM});
    let subset = json!({"addresses": [{"ip": ip, "targetRef": target}], "ports": [{"port": server.port()}]});
    cluster
        .apply(
            "endpoints",
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata(name), "subsets": [subset]}),
        )
        .await;
}
