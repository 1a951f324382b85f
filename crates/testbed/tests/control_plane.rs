//! The public behavior of the control plane. Needs `make tools`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams, TypeMeta,
    WatchEvent, WatchParams,
};
use kube::{Api, Client};
use kube_testbed::{ControlPlane, Options, Server};
use serde_json::json;

/// The Deployment `name` in namespace `default`, with `replicas` pods of `image`.
fn deployment(name: &str, replicas: u32, image: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    }))
    .unwrap()
}

async fn eventually<F: AsyncFnMut() -> Option<T>, T>(what: &str, mut probe: F) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < end, "not within 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn available(client: &Client, name: &str) -> i32 {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let status = deployments.get(name).await.unwrap().status.unwrap_or_default();
    status.available_replicas.unwrap_or(0)
}

#[tokio::test]
async fn controllers_run_and_pods_become_ready() {
    let options = Options::default()
        .with_audit()
        .unavailable_image("registry.invalid/no/such:image");
    let control_plane = ControlPlane::start(options).await.unwrap();
    let client = control_plane.client().await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");

    deployments
        .create(&PostParams::default(), &deployment("web", 3, "registry.invalid/web:1"))
        .await
        .unwrap();
    eventually("three available replicas", async || {
        (available(&client, "web").await == 3).then_some(())
    })
    .await;

    // A pod that is scaled away is really gone, as after a kubelet's clean-up.
    let smaller = Patch::Merge(json!({"spec": {"replicas": 1}}));
    deployments
        .patch("web", &PatchParams::default(), &smaller)
        .await
        .unwrap();
    let labels = ListParams::default().labels("app=web");
    eventually("one pod left", async || {
        (pods.list(&labels).await.unwrap().items.len() == 1).then_some(())
    })
    .await;

    deployments
        .create(
            &PostParams::default(),
            &deployment("broken", 1, "registry.invalid/no/such:image"),
        )
        .await
        .unwrap();
    let labels = ListParams::default().labels("app=broken");
    let reason = eventually("the pod waits for its image", async || {
        let pod = pods.list(&labels).await.unwrap().items.into_iter().next()?;
        pod.status?
            .container_statuses?
            .first()?
            .state
            .as_ref()?
            .waiting
            .as_ref()?
            .reason
            .clone()
    })
    .await;
    assert_eq!(reason, "ImagePullBackOff");
    assert_eq!(available(&client, "broken").await, 0);

    // Owner references and namespaces are cleaned up by the real controllers.
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    let labels = ListParams::default().labels("app=web");
    eventually("pods of a deleted Deployment gone", async || {
        pods.list(&labels).await.unwrap().items.is_empty().then_some(())
    })
    .await;

    let mine = control_plane.audit_events().unwrap();
    assert!(mine.iter().any(|event| {
        event.user.username == "admin"
            && event.verb == "create"
            && event
                .object_ref
                .as_ref()
                .is_some_and(|object| object.resource == "deployments")
    }));
}

#[tokio::test]
async fn a_service_account_has_its_own_rights_only() {
    let control_plane = ControlPlane::start(Options::default()).await.unwrap();
    let kubeconfig = control_plane
        .service_account_kubeconfig("default", "default")
        .await
        .unwrap();
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    let pods: Api<Pod> = Api::default_namespaced(Client::try_from(config).unwrap());
    let refused = pods.list(&ListParams::default()).await.unwrap_err();
    assert!(
        refused.to_string().contains("system:serviceaccount:default:default"),
        "{refused}"
    );
}

#[tokio::test]
async fn olm_answers() {
    let mut control_plane = ControlPlane::start(Options::default().with_olm()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(control_plane.client().await.unwrap());
    assert!(namespaces.get_opt("operators").await.unwrap().is_some());
    control_plane.check().unwrap();
}

/// Neither a dropped handle nor a process that is killed leaves anything running.
#[tokio::test]
async fn the_control_plane_ends_with_its_owner() {
    // The command waits for the end of its input, which comes with the end of this test.
    let mut owner = Command::new(env!("CARGO_BIN_EXE_kube-testbed"))
        .arg("run")
        .args(["sh", "-c", "echo $KUBECONFIG; read _"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut kubeconfig = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(owner.stdout.take().unwrap()),
        &mut kubeconfig,
    )
    .unwrap();
    let directory = std::path::Path::new(kubeconfig.trim()).parent().unwrap().to_owned();
    assert!(
        processes_with(&directory) >= 3,
        "etcd, kube-apiserver and kube-controller-manager run"
    );
    owner.kill().unwrap();
    owner.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while processes_with(&directory) > 0 || directory.exists() {
        assert!(Instant::now() < end, "still there: {}", directory.display());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A command that is told to end can still use the API server, and its status is passed on.
#[test]
fn a_command_gets_signals_and_cleans_up() {
    let script = "server=$(grep -o '://127[^\" /]*' $KUBECONFIG | head -n 1)
        trap ': > /dev/tcp/127.0.0.1/${server##*:} && echo answered; exit 7' TERM INT
        echo ready; while :; do sleep 0.1; done";
    for signal in ["TERM", "INT"] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_kube-testbed"))
            .args(["run", "--no-controllers", "bash", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(run.stdout.take().unwrap()));
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let kill = format!("kill -{signal} {}", run.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(lines.next().unwrap().unwrap(), "answered", "{signal}");
        assert_eq!(run.wait().unwrap().code(), Some(7), "{signal}");
    }
    let killed = Command::new(env!("CARGO_BIN_EXE_kube-testbed"))
        .args(["run", "--no-controllers", "sh", "-c", "kill -9 $$"])
        .status();
    assert_eq!(killed.unwrap().code(), Some(128 + 9));
}

/// The programs in `KUBEBUILDER_ASSETS` are enough, and go before those of other places.
#[test]
fn kubebuilder_assets_are_enough() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["etcd", "kube-apiserver"] {
        std::os::unix::fs::symlink(kube_testbed::tools::program(name).unwrap(), directory.path().join(name)).unwrap();
    }
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_kube-testbed"))
            .args(["run", "--no-controllers", "true"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("KUBEBUILDER_ASSETS", directory.path())
            .output()
            .unwrap()
    };
    let output = start();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::remove_file(directory.path().join("kube-apiserver")).unwrap();
    let errors = String::from_utf8(start().stderr).unwrap();
    let wanted = format!("kube-apiserver not found in {} nor in PATH", directory.path().display());
    assert!(errors.contains(&wanted), "{errors}");
}

/// The README's examples are tests here.
#[test]
fn examples_of_the_readme_are_tests() {
    let readme = include_str!("../README.md");
    for test in [include_str!("first.rs"), include_str!("proxy.rs")] {
        assert!(
            readme.contains(&format!("```rust\n{test}```")),
            "the README shows another\n{test}"
        );
    }
}

/// Number of processes with the directory among their arguments.
fn processes_with(directory: &std::path::Path) -> usize {
    let directory = directory.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|arguments| String::from_utf8_lossy(arguments).contains(directory))
        .count()
}

/// Only etcd and kube-apiserver: enough for a CRD, its custom resources and its rules.
#[tokio::test]
async fn definitions_are_served_without_controllers() {
    let options = Options::default().without_controllers().pods_become_ready(false);
    let control_plane = ControlPlane::start(options).await.unwrap();
    let client = control_plane.client().await.unwrap();
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
        }}}})
    };
    let definition = json!({"metadata": {"name": "caches.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Cache", "plural": "caches", "singular": "cache", "listKind": "CacheList"},
        "versions": [version("v1alpha1", false), version("v1", true)],
    }});
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    control_plane.install([definition.clone()]).await.unwrap();
    for (version, size, accepted) in [("v1", 1, true), ("v1alpha1", 2, true), ("v1", 0, false)] {
        let kind = GroupVersionKind::gvk("example.com", version, "Cache");
        let caches: Api<DynamicObject> =
            Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "caches"));
        let cache = json!({"metadata": {"generateName": "cache-"}, "spec": {"size": size}});
        let cache = DynamicObject {
            types: Some(TypeMeta {
                api_version: kind.api_version(),
                kind: "Cache".to_owned(),
            }),
            ..serde_json::from_value(cache).unwrap()
        };
        let created = caches.create(&PostParams::default(), &cache).await;
        assert_eq!(created.is_ok(), accepted, "{version} {size}: {created:?}");
    }
    // One that the API server rejects is an error that names it.
    let mut rival = serde_json::to_value(&definition).unwrap();
    rival["metadata"] = json!({"name": "caches.example.com"});
    rival["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": {"type": "nonsense"}});
    let error = control_plane
        .install([serde_json::from_value(rival).unwrap()])
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot apply CustomResourceDefinition caches.example.com: "),
        "{error}"
    );

    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments
        .create(&PostParams::default(), &deployment("web", 1, "registry.invalid/web:1"))
        .await
        .unwrap();
    let found = deployments.get("web").await.unwrap();
    assert_eq!(
        found.status.unwrap_or_default().observed_generation,
        None,
        "no controller has seen it"
    );
}

#[tokio::test]
async fn stored_objects_survive_crashes() {
    let control_plane = ControlPlane::start(Options::default().without_controllers())
        .await
        .unwrap();
    let namespaces: Api<Namespace> = Api::all(control_plane.client().await.unwrap());
    for server in [Server::Etcd, Server::ApiServer] {
        let name = format!("before-{server:?}").to_lowercase();
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        control_plane.crash(server, Duration::from_millis(200)).await.unwrap();
        eventually(&format!("{name} is there"), async || namespaces.get(&name).await.ok()).await;
    }
}

/// A client with a shifted clock: other clients read its times shifted, and it reads theirs shifted. Its watch ends
/// with the error that makes it list again.
#[tokio::test]
async fn a_proxy_shifts_times_and_expires_watches() {
    let control_plane = ControlPlane::start(Options::default().without_controllers())
        .await
        .unwrap();
    let account = json!({"metadata": {"name": "client"}});
    let accounts: Api<ServiceAccount> = Api::namespaced(control_plane.client().await.unwrap(), "default");
    let account = serde_json::from_value(account).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let administrator = control_plane.kubeconfig();
    let proxy = control_plane.faults_as(administrator, 1).await.unwrap();
    let client = proxy.client(administrator).await.unwrap();
    let ahead = Api::<ServiceAccount>::namespaced(client, "default");
    let created = |account: ServiceAccount| account.metadata.creation_timestamp.unwrap().0;
    let real = created(accounts.get("client").await.unwrap());
    let mut events = std::pin::pin!(ahead.watch(&WatchParams::default(), "0").await.unwrap());
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    proxy.expire_watches();
    let mut event = events.next().await;
    while matches!(event, Some(Ok(WatchEvent::Bookmark(_)))) {
        event = events.next().await;
    }
    let expired = |event: &_| matches!(event, Some(Ok(WatchEvent::Error(status))) if status.code == 410);
    assert!(expired(&event), "{event:?}");
    proxy.clock_ahead(3600);
    let seen = created(ahead.get("client").await.unwrap());
    assert_eq!(real.duration_since(seen).as_secs(), 3600);
}
