//! OLM from the manifests of a release, as `operator-sdk olm install` downloads them.

use kube_testbed::Options;

use crate::harness::Cluster;

/// No OLM runs here: its objects are created, found and removed.
#[tokio::test]
async fn olm_is_installed_from_a_downloaded_release() {
    let cluster = Cluster::start(Options::default()).await;
    let before = cluster.inventory().await;
    let mut crds = Vec::new();
    let directory = cluster.chart().join("crds");
    for entry in std::fs::read_dir(directory).unwrap() {
        crds.extend_from_slice(b"---\n");
        crds.extend(std::fs::read(entry.unwrap().path()).unwrap());
        crds.push(b'\n');
    }
    let olm = std::fs::read(test_support::repository("dev/cluster/olm.yaml")).unwrap();
    let server = test_support::files::serve(vec![
        ("/download/v0.46.0/crds.yaml".to_owned(), crds),
        ("/download/v0.46.0/olm.yaml".to_owned(), olm),
    ]);
    let install = [
        "olm",
        "install",
        "--releases",
        &server,
        "--timeout",
        "60s",
        "--no-wait-for-packageserver",
    ];
    let installed = cluster.olmkit(&install).await.fine();
    assert!(
        installed.stdout.contains("OLM 0.46.0 is installed"),
        "{}",
        installed.stdout
    );
    assert!(
        installed.stderr.contains("/download/v0.46.0/olm.yaml (sha256 "),
        "{}",
        installed.stderr
    );
    let status = cluster.olmkit(&["olm", "status", "-o", "json"]).await;
    assert_eq!(status.json["installed"], true);
    assert_eq!(status.json["version"], "0.46.0");
    cluster
        .olmkit(&["olm", "uninstall", "--timeout", "120s", "-o", "json"])
        .await
        .fine();
    cluster.nothing_left(&before).await;
}
