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

/// Much longer than any wait takes on a slow machine.
const LIMIT: Duration = Duration::from_mins(3);

async fn eventually<F: AsyncFnMut() -> Option<T>, T>(what: &str, mut probe: F) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
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
    let end = Instant::now() + LIMIT;
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

/// The configurations name a Service in a cluster. The command serves instead of it.
#[tokio::test]
async fn webhooks_of_a_command_are_called() {
    let directory = tempfile::tempdir().unwrap();
    let service = |path: &str| json!({"service": {"name": "hooks", "namespace": "system", "path": path}});
    let version = |name: &str, storage: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": service("/convert"),
            }},
        },
    });
    let validating = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "widgets"},
        "webhooks": [{
            "name": "widgets.shop.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": service("/validate"),
            "rules": [{
                "apiGroups": ["shop.example.com"], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["widgets"],
            }],
        }],
    });
    for (path, object) in [
        ("crd/bases/widgets.yaml", definition),
        ("webhook/manifests.yaml", validating),
    ] {
        let path = directory.path().join("config").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // JSON is YAML.
        std::fs::write(path, object.to_string()).unwrap();
    }
    let script = "echo $KUBECONFIG $WEBHOOK_BIND_ADDRESS $WEBHOOK_CERT_PATH; read _";
    let mut run = Command::new(env!("CARGO_BIN_EXE_kube-testbed"))
        .current_dir(directory.path())
        .args([
            "run",
            "--no-controllers",
            "--webhooks",
            "config",
            "--",
            "sh",
            "-c",
            script,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(run.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let [kubeconfig, address, certificates] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{line}");
    };
    let serving = tokio::spawn(serve_webhooks(address.to_owned(), certificates.into()));
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();
    let widgets = |version: &str| {
        let kind = GroupVersionKind::gvk("shop.example.com", version, "Widget");
        let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
        Api::<DynamicObject>::namespaced_with(client.clone(), "default", &resource)
    };
    let widget = json!({"apiVersion": "shop.example.com/v1", "kind": "Widget", "metadata": {"name": "one"}});
    let widget: DynamicObject = serde_json::from_value(widget).unwrap();
    widgets("v1").create(&PostParams::default(), &widget).await.unwrap();
    let converted = widgets("v2").get("one").await.unwrap();
    assert_eq!(converted.data["convertedBy"], "the command");
    let denied = eventually("a deletion is denied", async || {
        let deleted = widgets("v1").delete("one", &DeleteParams::default()).await;
        match deleted {
            Err(error) => Some(error.to_string()),
            // The configuration is not in use yet.
            Ok(_) => {
                let _ = widgets("v1").create(&PostParams::default(), &widget).await;
                None
            }
        }
    })
    .await;
    assert!(denied.contains("the command keeps it"), "{denied}");
    serving.abort();
    drop(run.stdin.take());
    run.wait().unwrap();
}

/// Serves conversions and admission reviews. Every object is denied.
async fn serve_webhooks(address: String, certificates: std::path::PathBuf) {
    use http_body_util::{BodyExt as _, Full};
    use hyper::{Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
    use tokio_rustls::rustls::{
        ServerConfig, crypto,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    };
    let certificate = CertificateDer::from_pem_file(certificates.join("tls.crt")).unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.join("tls.key")).unwrap();
    let config = ServerConfig::builder_with_provider(crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let answer = async |request: Request<Incoming>| {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let mut review: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let asked = review["request"].take();
        review["response"] = match path.as_str() {
            "/convert" => {
                let mut objects = asked["objects"].clone();
                for object in objects.as_array_mut().unwrap() {
                    object["apiVersion"] = asked["desiredAPIVersion"].clone();
                    object["convertedBy"] = "the command".into();
                }
                json!({"uid": asked["uid"], "result": {"status": "Success"}, "convertedObjects": objects})
            }
            "/validate" => json!({
                "uid": asked["uid"], "allowed": false, "status": {"message": "the command keeps it"},
            }),
            other => panic!("{other}"),
        };
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from(review.to_string()))))
    };
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(stream) = acceptor.accept(stream).await else {
            continue;
        };
        let stream = hyper_util::rt::TokioIo::new(stream);
        let served = http1::Builder::new().serve_connection(stream, service_fn(answer));
        tokio::spawn(async move { served.await.ok() });
    }
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

/// The page's commands rewrite all objects and the list of stored versions. Then the API server accepts a definition without the old
/// version, and still reads all objects.
#[tokio::test]
async fn a_stored_version_is_removed_as_the_guide_describes() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/scaffold.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let section = guide.split("\n### Storage version\n").nth(1).unwrap();
    let commands = section.lines().filter_map(|line| line.trim().strip_prefix("$ "));
    let commands: Vec<&str> = commands.filter(|command| command.starts_with("kubectl ")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let plane = ControlPlane::start(Options::default().without_controllers())
        .await
        .unwrap();
    let client = plane.client().await.unwrap();
    let definition = |stored: &str, versions: &[&str]| -> CustomResourceDefinition {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = |name: &&str| json!({"name": name, "served": true, "storage": *name == stored, "schema": {"openAPIV3Schema": schema}});
        let versions: Vec<_> = versions.iter().map(version).collect();
        serde_json::from_value(json!({
            "metadata": {"name": "memcacheds.cache.example.com"},
            "spec": {
                "group": "cache.example.com", "scope": "Namespaced", "versions": versions,
                "names": {"kind": "Memcached", "plural": "memcacheds", "singular": "memcached"},
            },
        }))
        .unwrap()
    };
    plane.install([definition("v1alpha1", &["v1alpha1"])]).await.unwrap();
    let memcacheds = |version: &str| {
        let kind = GroupVersionKind::gvk("cache.example.com", version, "Memcached");
        let resource = ApiResource::from_gvk_with_plural(&kind, "memcacheds");
        Api::<DynamicObject>::namespaced_with(client.clone(), "default", &resource)
    };
    for name in ["a", "b"] {
        let object = json!({
            "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": name},
            "spec": {"size": 3},
        });
        let object = serde_json::from_value(object).unwrap();
        let created = memcacheds("v1alpha1").create(&PostParams::default(), &object).await;
        created.unwrap();
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let change = async |definition: CustomResourceDefinition| {
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({"spec": {"versions": definition.spec.versions}}));
        definitions.patch("memcacheds.cache.example.com", &params, &patch).await
    };
    // A hash of group, version and kind as objects are stored.
    let stored = async || {
        let resources = client
            .list_api_group_resources("cache.example.com/v1alpha1")
            .await
            .unwrap();
        resources
            .resources
            .iter()
            .find_map(|resource| resource.storage_version_hash.clone())
    };
    let before = stored().await;
    change(definition("v1", &["v1", "v1alpha1"])).await.unwrap();
    eventually("the other storage version", async || {
        (stored().await != before).then_some(())
    })
    .await;
    let rejected = change(definition("v1", &["v1"])).await.unwrap_err().to_string();
    assert!(rejected.contains("status.storedVersions"), "{rejected}");

    let kubectl = kube_testbed::tools::program("kubectl").unwrap();
    let path = format!(
        "{}:{}",
        kubectl.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    for command in commands {
        let output = Command::new("sh")
            .args(["-c", command])
            .env("KUBECONFIG", plane.kubeconfig())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    change(definition("v1", &["v1"])).await.unwrap();
    eventually("the API server has stopped serving the old version", async || {
        memcacheds("v1alpha1").get("a").await.err()
    })
    .await;
    for name in ["a", "b"] {
        assert_eq!(
            memcacheds("v1").get(name).await.unwrap().data["spec"]["size"],
            3,
            "{name}"
        );
    }
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
