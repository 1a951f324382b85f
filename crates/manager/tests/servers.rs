//! Webhooks and the metrics server against a real API server.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::{net::SocketAddr, path::Path, time::Duration};

use base64::Engine as _;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{ConfigMap, Namespace, ServiceAccount},
        rbac::v1::{ClusterRole, ClusterRoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Error,
    api::{DeleteParams, DynamicObject, GroupVersionKind, PostParams},
    discovery::ApiResource,
};
use kube_manager::{
    Manager,
    certificates::{Authorities, Certificates},
    events::{Event, Publisher},
    metrics::Metrics,
    probes::{Routes, Server},
    reviews::{ApiServer, Reviews},
    shutdown::CancellationToken,
    webhooks::{Denied, Review, Webhooks},
};
use kube_testbed::{ControlPlane, Options};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// An API of two versions: `size` of v1 is called `replicas` in v2, which lacks `priority`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cache {
    spec: CacheSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CacheSpec {
    size: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    image: Option<String>,
}

async fn valid(review: Review<Cache>) -> Result<(), Denied> {
    match (review.object, review.old_object) {
        (Some(cache), _) if cache.spec.size % 2 == 0 => Err(Denied::field("spec.size", "must be odd")),
        (None, Some(cache)) if cache.spec.size > 7 => Err(Denied::new("too large to be deleted")),
        _ => Ok(()),
    }
}

async fn with_image(mut cache: Cache, _: Review<Cache>) -> Result<Cache, Denied> {
    cache.spec.image.get_or_insert_with(|| "memcached:1.6".to_owned());
    Ok(cache)
}

/// The annotation that keeps the priority in v2, which has no field for it.
const PRIORITY: &str = "shop.example.com/priority";

fn converted(mut object: Value, wanted: &str) -> Result<Value, String> {
    let (mut spec, metadata) = (object["spec"].take(), object["metadata"].take());
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    let fields = spec.as_object_mut().ok_or("spec is not an object")?;
    let (from, to) = match wanted {
        "shop.example.com/v2" => {
            let priority = fields.remove("priority");
            annotations.extend(priority.map(|number| (PRIORITY.to_owned(), number.to_string().into())));
            ("size", "replicas")
        }
        "shop.example.com/v1" => {
            let priority = annotations
                .remove(PRIORITY)
                .and_then(|text| text.as_str()?.parse().ok());
            fields.extend(priority.map(|number: i32| ("priority".to_owned(), number.into())));
            ("replicas", "size")
        }
        other => return Err(format!("unknown version {other}")),
    };
    let size = fields.remove(from).ok_or("no size")?;
    fields.insert(to.to_owned(), size);
    Ok(json!({ "metadata": { "annotations": annotations }, "spec": spec }))
}

/// Writes a certificate for the loopback address, and returns it in PEM.
fn issue(folder: &Path) -> String {
    let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("tls.crt"), pair.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
    pair.cert.pem()
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn client_config(address: SocketAddr, path: &str, authority: &str) -> Value {
    json!({
        "url": format!("https://{address}{path}"),
        "caBundle": base64::engine::general_purpose::STANDARD.encode(authority),
    })
}

fn definition(address: SocketAddr, authority: &str) -> Value {
    let version = |name: &str, size: &str, storage: bool| {
        let mut version = json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "required": [size], "properties": {
                size: {"type": "integer"}, "image": {"type": "string"}, "note": {"type": "string"},
            }},
        }}}});
        if storage {
            let fields = "/schema/openAPIV3Schema/properties/spec/properties";
            version.pointer_mut(fields).unwrap()["priority"] = json!({"type": "integer"});
        }
        version
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "caches.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced",
            "names": {"kind": "Cache", "plural": "caches", "singular": "cache", "listKind": "CacheList"},
            "versions": [version("v1", "size", true), version("v2", "replicas", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": client_config(address, "/convert", authority),
            }},
        },
    })
}

fn admission(kind: &str, path: &str, operations: &[&str], address: SocketAddr, authority: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "caches"},
        "webhooks": [{
            "name": "caches.shop.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "clientConfig": client_config(address, path, authority),
            "rules": [{"apiGroups": ["shop.example.com"], "apiVersions": ["v1"], "resources": ["caches"], "operations": operations}],
        }],
    })
}

fn caches(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("shop.example.com", version, "Cache");
    Api::namespaced_with(
        client.clone(),
        "default",
        &ApiResource::from_gvk_with_plural(&kind, "caches"),
    )
}

async fn create(api: &Api<DynamicObject>, name: &str, spec: Value) -> Result<DynamicObject, Error> {
    let cache = json!({"apiVersion": "shop.example.com/v1", "kind": "Cache", "metadata": {"name": name}, "spec": spec});
    api.create(&PostParams::default(), &object(cache)).await
}

/// The message and code of a refusal.
fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> (String, u16) {
    match answer {
        Err(Error::Api(status)) => (status.message, status.code),
        other => panic!("not refused: {other:?}"),
    }
}

/// Tries until the API server uses what was configured.
async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..300 {
        if let Some(found) = probe().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not within 30 seconds: {what}");
}

/// Configurations as a cluster has them, with references to a Service.
fn in_a_cluster(mut object: Value) -> Value {
    let service = |path: &str| json!({ "service": { "name": "hooks", "namespace": "system", "path": path } });
    if let Some(config) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
        *config = service("/convert");
    }
    if let Some(config) = object.pointer_mut("/webhooks/0/clientConfig") {
        *config = service("/validate");
    }
    object
}

#[tokio::test]
async fn webhooks_of_this_process_are_called_although_they_are_configured_for_a_cluster() {
    let plane = ControlPlane::start(Options::default().without_controllers())
        .await
        .unwrap();
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let validating = admission("ValidatingWebhookConfiguration", "/validate", &["CREATE"], nowhere, "");
    let objects = [definition(nowhere, ""), validating].map(in_a_cluster);
    let local = plane.install_webhooks(objects).await.unwrap();
    let folder = local.certificates();
    let certificates = Certificates::from_files(folder.join("tls.crt"), folder.join("tls.key")).unwrap();
    let server = Webhooks::new(&Metrics::new())
        .validating("/validate", valid)
        .converting("/convert", converted)
        .bind(local.address(), &certificates)
        .await
        .unwrap();
    tokio::spawn(server.serve());
    let client = plane.client().await.unwrap();
    let (first, second) = (caches(&client, "v1"), caches(&client, "v2"));
    let denied = eventually("a wrong size is denied", async || {
        match create(&first, "even", json!({"size": 2})).await {
            Err(Error::Api(status)) if status.code == 422 => Some(status.message),
            _ => {
                first.delete("even", &DeleteParams::default()).await.ok();
                None
            }
        }
    })
    .await;
    assert!(denied.ends_with("must be odd"), "{denied}");
    create(&first, "odd", json!({"size": 3})).await.unwrap();
    assert_eq!(second.get("odd").await.unwrap().data["spec"]["replicas"], 3);
    let error = plane
        .install_webhooks([json!({ "kind": "Service" })])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("\"Service\" is none of"), "{error}");
}

#[tokio::test]
async fn the_api_server_asks_webhooks_and_they_answer() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = issue(folder.path());
    let certificates = Certificates::from_files(folder.path().join("tls.crt"), folder.path().join("tls.key")).unwrap();
    let metrics = Metrics::new();
    let server = Webhooks::new(&metrics)
        .validating("/validate", valid)
        .mutating("/mutate", with_image)
        .converting("/convert", converted)
        .bind("127.0.0.1:0".parse().unwrap(), &certificates)
        .await
        .unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.serve());

    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let parameters = PostParams::default();
    definitions
        .create(&parameters, &object(definition(address, &authority)))
        .await
        .unwrap();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let every = ["CREATE", "UPDATE", "DELETE"];
    let configuration = admission(
        "ValidatingWebhookConfiguration",
        "/validate",
        &every,
        address,
        &authority,
    );
    validating.create(&parameters, &object(configuration)).await.unwrap();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = admission(
        "MutatingWebhookConfiguration",
        "/mutate",
        &["CREATE"],
        address,
        &authority,
    );
    mutating.create(&parameters, &object(configuration)).await.unwrap();

    let (first, second) = (caches(&client, "v1"), caches(&client, "v2"));
    let (message, code) = eventually("a wrong size is denied", async || {
        match create(&first, "even", json!({"size": 2})).await {
            Err(Error::Api(status)) if status.code == 422 => Some((status.message, status.code)),
            Ok(_) => {
                first.delete("even", &DeleteParams::default()).await.ok();
                None
            }
            Err(_) => None,
        }
    })
    .await;
    let expected = "admission webhook \"caches.shop.example.com\" denied the request: spec.size: must be odd";
    assert_eq!((message.as_str(), code), (expected, 422));

    // The other webhook may become known later.
    let made = eventually("the image is set", async || {
        let made = create(&first, "odd", json!({"size": 9, "note": "kept", "priority": 5}))
            .await
            .unwrap();
        let is_set = made.data["spec"]["image"] == "memcached:1.6";
        if !is_set {
            let smaller = json!({"spec": {"size": 1}});
            let patch = kube::api::Patch::Merge(&smaller);
            first.patch("odd", &Default::default(), &patch).await.unwrap();
            first.delete("odd", &DeleteParams::default()).await.unwrap();
        }
        is_set.then_some(made)
    })
    .await;
    assert_eq!(made.data["spec"]["note"], "kept", "a field that the type does not know");
    let (message, code) = refusal(first.delete("odd", &DeleteParams::default()).await);
    assert!(
        message.ends_with("denied the request: too large to be deleted"),
        "{message}"
    );
    assert_eq!(code, 403);

    let mut converted = second.get("odd").await.unwrap();
    assert_eq!(
        converted.data["spec"],
        json!({"replicas": 9, "image": "memcached:1.6", "note": "kept"})
    );
    assert_eq!(converted.metadata.uid, made.metadata.uid);
    // An update through a version keeps what that version lacks.
    converted.data["spec"]["replicas"] = 7.into();
    second.replace("odd", &parameters, &converted).await.unwrap();
    let updated = first.get("odd").await.unwrap();
    let expected = json!({"size": 7, "image": "memcached:1.6", "note": "kept", "priority": 5});
    assert_eq!(updated.data["spec"], expected);
    assert_eq!(updated.metadata.annotations, None);

    // A renewed certificate is served after the next read.
    let renewed = issue(folder.path());
    assert_eq!(trusting(&authority, address).await, Some(405));
    assert_eq!(trusting(&renewed, address).await, None);
    assert!(certificates.reload().unwrap());
    assert_eq!(trusting(&authority, address).await, None);
    assert_eq!(trusting(&renewed, address).await, Some(405));

    let text = metrics.render();
    let counted = "controller_runtime_webhook_requests_total{webhook=\"/validate\",code=\"200\"}";
    assert!(text.contains(counted), "{text}");
}

/// Webhooks for ConfigMaps with the label `hook`, which names the path.
fn hooks(names: &[&str], address: SocketAddr, authority: &str) -> Value {
    let hook = |name: &&str| {
        json!({
            "name": format!("{name}.shop.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 30,
            "clientConfig": client_config(address, &format!("/{name}"), authority),
            "objectSelector": {"matchLabels": {"hook": name}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"}, "webhooks": names.iter().map(hook).collect::<Vec<_>>(),
    })
}

fn hooked(name: &str, hook: &str) -> ConfigMap {
    object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"hook": hook}}}))
}

/// Configures webhooks and waits until the API server asks them: `deny` refuses.
async fn configure(client: &Client, names: &[&str], address: SocketAddr, authority: &str) -> Api<ConfigMap> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = object(hooks(names, address, authority));
    configurations
        .create(&PostParams::default(), &configuration)
        .await
        .unwrap();
    let objects: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    eventually("the webhooks are asked", async || {
        let probe = hooked("probe", "deny");
        match objects.create(&PostParams::default(), &probe).await {
            Err(Error::Api(status)) if status.code == 403 => Some(()),
            Ok(_) => {
                objects.delete("probe", &DeleteParams::default()).await.ok();
                None
            }
            Err(_) => None,
        }
    })
    .await;
    objects
}

async fn deny(_: Review<Value>) -> Result<(), Denied> {
    Err(Denied::new("on purpose"))
}

/// The API server opens a connection for each request that is open, and with `failurePolicy: Fail` each that is not answered is a
/// refused write.
#[tokio::test]
async fn hundreds_of_creates_at_once_are_all_answered() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = issue(folder.path());
    let certificates = Certificates::from_files(folder.path().join("tls.crt"), folder.path().join("tls.key")).unwrap();
    let server = Webhooks::new(&Metrics::new())
        .validating("/deny", deny)
        .validating("/fast", |_: Review<Value>| async { Ok(()) })
        .validating("/slow", |_: Review<Value>| async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok(())
        })
        .bind("127.0.0.1:0".parse().unwrap(), &certificates)
        .await
        .unwrap();
    let address = server.address().unwrap();
    tokio::spawn(server.serve());
    let objects = configure(&client, &["deny", "fast", "slow"], address, &authority).await;
    for (count, hook) in [(300, "fast"), (300, "slow"), (1000, "fast"), (1000, "slow")] {
        let mut creates = tokio::task::JoinSet::new();
        for index in 0..count {
            let (objects, object) = (objects.clone(), hooked(&format!("{hook}-{count}-{index}"), hook));
            creates.spawn(async move { objects.create(&PostParams::default(), &object).await });
        }
        let answers = creates.join_all().await;
        let failed: Vec<String> = answers
            .iter()
            .filter_map(|answer| Some(answer.as_ref().err()?.to_string()))
            .collect();
        assert!(
            failed.is_empty(),
            "{} of {count} with a {hook} hook: {failed:?}",
            failed.len()
        );
    }
}

/// A manager is to stop while a request for admission is under way.
#[tokio::test]
async fn a_manager_that_stops_answers_requests_for_admission_first() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = issue(folder.path());
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let (address, probes) = (free(), free());
    let (began, go) = (CancellationToken::new(), CancellationToken::new());
    let (begin, gone) = (began.clone(), go.clone());
    let metrics = Metrics::new();
    let webhooks = Webhooks::new(&metrics)
        .validating("/deny", deny)
        .validating("/slow", move |_: Review<Value>| {
            let (begin, gone) = (begin.clone(), gone.clone());
            async move {
                begin.cancel();
                gone.cancelled().await;
                Ok(())
            }
        });
    let stop = CancellationToken::new();
    let options = kube_manager::options::Options {
        health_probe_bind_address: Some(probes),
        metrics_bind_address: None,
        leader_elect: false,
        ..Default::default()
    };
    let manager = Manager::builder("greeter")
        .client(client.clone())
        .options(options)
        .stop(stop.clone())
        .start()
        .await
        .unwrap();
    let options = kube_manager::webhooks::Options {
        webhook_bind_address: Some(address),
        webhook_cert_path: Some(folder.path().to_owned()),
        ..Default::default()
    };
    manager.serve_webhooks(webhooks, &options).await.unwrap();
    let running = tokio::spawn(manager.run());
    let objects = configure(&client, &["deny", "slow"], address, &authority).await;
    let ready = async || {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(format!("http://{probes}/readyz")).send().await.unwrap();
        answer.status().as_u16()
    };
    assert_eq!(ready().await, 200);

    let creating = tokio::spawn({
        let objects = objects.clone();
        async move { objects.create(&PostParams::default(), &hooked("slow", "slow")).await }
    });
    began.cancelled().await;
    stop.cancel();
    eventually("the manager is not ready", async || {
        (ready().await == 500).then_some(())
    })
    .await;
    // The API server may not know yet.
    let (message, code) = refusal(objects.create(&PostParams::default(), &hooked("other", "deny")).await);
    assert_eq!(code, 403, "{message}");
    assert!(!running.is_finished() && !creating.is_finished());
    go.cancel();
    creating.await.unwrap().unwrap();
    running.await.unwrap().unwrap();
    assert!(
        tokio::net::TcpStream::connect(address).await.is_err(),
        "it still listens"
    );
}

/// The answer of the validating webhook to a client that trusts one certificate only.
async fn trusting(certificate: &str, address: SocketAddr) -> Option<u16> {
    let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    let client = reqwest::Client::builder()
        .tls_certs_only([certificate])
        .no_proxy()
        .build()
        .unwrap();
    let answer = client.get(format!("https://{address}/validate")).send().await;
    answer.ok().map(|answer| answer.status().as_u16())
}

/// Gets a path over TLS without looking at the certificate.
async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> (u16, String) {
    let client = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .no_proxy()
        .build()
        .unwrap();
    let mut request = client.get(format!("https://{address}{path}"));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Gets the metrics with a certificate of a client. Returns `None` if the server does not accept it.
async fn get_as(address: SocketAddr, pem: &str) -> Option<u16> {
    let client = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .identity(reqwest::Identity::from_pem(pem.as_bytes()).unwrap())
        .no_proxy()
        .build()
        .unwrap();
    let answer = client.get(format!("https://{address}/metrics")).send().await;
    answer.ok().map(|answer| answer.status().as_u16())
}

/// An authority for clients, and certificates that it signs.
struct Signer(rcgen::CertifiedIssuer<'static, rcgen::KeyPair>);

impl Signer {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        Self(rcgen::CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Certificate and key of the user `name` in `group`, in PEM.
    fn sign(&self, name: &str, group: &str) -> String {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.distinguished_name.push(rcgen::DnType::OrganizationName, group);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let key = rcgen::KeyPair::generate().unwrap();
        params.signed_by(&key, &self.0).unwrap().pem() + &key.serialize_pem()
    }
}

/// A client certificate of an authority that the operator is given is as good as a token.
#[tokio::test]
async fn metrics_are_for_client_certificates_too() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "metrics-reader"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader"},
    "subjects": [
        {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"},
        {"kind": "Group", "name": "monitoring", "apiGroup": "rbac.authorization.k8s.io"},
    ]});
    let parameters = PostParams::default();
    let roles: Api<ClusterRole> = Api::all(client.clone());
    roles.create(&parameters, &object(role)).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    bindings.create(&parameters, &object(binding)).await.unwrap();
    let (signer, other) = (Signer::new(), Signer::new());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let start = async |authorities: Option<&Path>| {
        let authorities = authorities.map(|file| Authorities::from_file(file).unwrap());
        let certificates = Certificates::self_signed(&["localhost"]).unwrap();
        let routes = Routes::Metrics(Metrics::new());
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), routes).await.unwrap();
        let server = server.with_tls_for(&certificates, authorities.as_ref()).unwrap();
        let server = server.with_reviews(Reviews::new(ApiServer::new(client.clone())));
        let address = server.address().unwrap();
        tokio::spawn(server.serve());
        address
    };
    std::fs::write(&file, signer.0.pem()).unwrap();
    let address = start(Some(&file)).await;
    assert_eq!(get_as(address, &signer.sign("jane", "cooks")).await, Some(200));
    assert_eq!(get_as(address, &signer.sign("joe", "monitoring")).await, Some(200));
    assert_eq!(get_as(address, &signer.sign("joe", "cooks")).await, Some(403));
    assert_eq!(get_as(address, &other.sign("jane", "monitoring")).await, None);
    assert_eq!(get(address, "/metrics", None).await.0, 401);
    // Without authorities the server asks for no certificate.
    let address = start(None).await;
    assert_eq!(get_as(address, &signer.sign("jane", "cooks")).await, Some(401));
    std::fs::write(&file, "nothing").unwrap();
    let error = Authorities::from_file(&file).err().unwrap().to_string();
    assert!(error.ends_with("ca.crt: no certificate in PEM"), "{error}");
}

#[tokio::test]
async fn metrics_are_for_accounts_with_the_right_to_them() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let parameters = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}});
    namespaces.create(&parameters, &object(namespace)).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "monitoring");
    let mut tokens = Vec::new();
    for name in ["prometheus", "stranger"] {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        accounts.create(&parameters, &object(account)).await.unwrap();
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}, "metadata": {}});
        let answer = accounts
            .create_token_request(name, &parameters, &object(request))
            .await
            .unwrap();
        tokens.push(answer.status.unwrap().token);
    }
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "metrics-reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
    roles.create(&parameters, &object(role)).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "metrics-reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]});
    bindings.create(&parameters, &object(binding)).await.unwrap();

    let certificates = Certificates::self_signed(&["localhost"]).unwrap();
    let routes = Routes::Metrics(Metrics::new());
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), routes)
        .await
        .unwrap()
        .with_tls(&certificates)
        .unwrap()
        .with_reviews(Reviews::new(ApiServer::new(client)));
    let address = server.address().unwrap();
    tokio::spawn(server.serve());

    let (code, text) = get(address, "/metrics", Some(&tokens[0])).await;
    assert_eq!(code, 200, "{text}");
    assert!(text.contains("events_dropped_total 0"), "{text}");
    assert_eq!(get(address, "/metrics", Some(&tokens[1])).await.0, 403);
    assert_eq!(get(address, "/metrics", Some("made-up")).await.0, 401);
    assert_eq!(get(address, "/metrics", None).await.0, 401);

    // The manager's flags select a mounted certificate instead of the generated one.
    let folder = tempfile::tempdir().unwrap();
    let authority = issue(folder.path());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let options = kube_manager::options::Options {
        health_probe_bind_address: None,
        metrics_bind_address: Some(address),
        metrics_cert_path: Some(folder.path().to_owned()),
        ..Default::default()
    };
    let client = plane.client().await.unwrap();
    let manager = Manager::builder("greeter")
        .client(client)
        .options(options)
        .stop(Default::default());
    let manager = manager.start().await.unwrap();
    assert_eq!(trusting(&authority, address).await, Some(401));
    assert_eq!(trusting(&issue(folder.path()), address).await, None);
    assert_eq!(get(address, "/metrics", Some(&tokens[0])).await.0, 200);
    drop(manager);
}

/// Some kinds have names that events cannot have.
#[tokio::test]
async fn every_object_can_have_an_event() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let (publisher, _) = Publisher::new(client.clone(), "example.com/greeter", "greeter-0", Default::default());
    let roles: Api<ClusterRole> = Api::all(client);
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a:b"}});
    let role = roles.create(&PostParams::default(), &object(role)).await.unwrap();
    let event = Event::normal("Seen", "a role").action("Look");
    // The second is counted in the first.
    for _ in 0..2 {
        publisher.publish(&role, &event).await.unwrap();
    }
}
