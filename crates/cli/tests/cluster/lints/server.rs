//! Claims about the API server.

use http_body_util::BodyExt as _;
use kube::client::Body;
use kube_testbed::Options;
use serde_json::{Value, json};

use super::broken;
use crate::bundle::Bundle;
use crate::harness::Cluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DRY: &str = "dryRun=All&fieldValidation=Warn";

/// The server's answer.
pub struct Reply {
    pub status: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

impl Reply {
    fn refused(&self) -> bool {
        self.status >= 300
    }

    fn drops(&self) -> bool {
        self.warnings.iter().any(|warning| warning.contains("unknown field"))
    }

    fn text(&self) -> String {
        self.body["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// An unmodified request, with the warnings of the answer.
pub async fn ask(cluster: &Cluster, method: &str, path: &str, body: &Value) -> Reply {
    let request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(body).unwrap()))
        .unwrap();
    let response = cluster.client.send(request).await.unwrap();
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Reply { status, body, warnings }
}

/// Validates a CRD, and creates it unless `dry` is set.
async fn define(cluster: &Cluster, crd: &Value, dry: bool) -> Reply {
    let path = if dry {
        format!("{DEFINITIONS}?{DRY}")
    } else {
        DEFINITIONS.to_owned()
    };
    ask(cluster, "POST", &path, crd).await
}

/// Waits until objects of a kind are served.
async fn served(cluster: &Cluster, path: &str) {
    until(path, async || {
        ask(cluster, "GET", path, &Value::Null).await.status == 200
    })
    .await;
}

/// Returns true if the lints of a bundle name a rule.
fn warns(cluster: &Cluster, bundle: &Bundle, rule: &str) -> bool {
    broken(&bundle.write(cluster.folder.path())).contains(&rule)
}

#[tokio::test]
async fn the_api_server_does_what_rules_say() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.scene("schemas and examples");
    sample(&cluster).await;
    cluster.scene("names and versions of examples");
    incomplete_examples(&cluster).await;
    cluster.scene("definitions");
    definitions(&cluster).await;
    cluster.scene("definitions that change");
    changes(&cluster).await;
    cluster.scene("pods");
    pods(&cluster).await;
    cluster.scene("ports of webhooks");
    ports_of_webhooks(&cluster).await;
    cluster.scene("webhooks");
    webhooks(&cluster).await;
}

/// Schemas with objects, and the server's behavior for them: recorded here, compared each time.
async fn sample(cluster: &Cluster) {
    let rows: Vec<Value> = serde_json::from_str(include_str!("sample.json")).unwrap();
    for (at, row) in rows.iter().enumerate() {
        let mut bundle = Bundle::new(&format!("sample{at}"), "1.0.0");
        let mut crd = bundle.crd();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = row["schema"].clone();
        if row["status"] == true {
            crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        }
        bundle.definition = Some(crd.clone());
        let is_refused = row["refused"] == true;
        assert_eq!(warns(cluster, &bundle, "CRD-30"), is_refused, "{}", row["about"]);
        let is_impossible = row["impossible"] == true;
        assert_eq!(warns(cluster, &bundle, "CRD-37"), is_impossible, "{}", row["about"]);
        let reply = define(cluster, &crd, false).await;
        assert_eq!(reply.refused(), is_refused, "{}: {}", row["about"], reply.text());
        let objects = row["objects"].as_array().cloned().unwrap_or_default();
        let path = format!("/apis/{}/v1/namespaces/default/things", bundle.group);
        if !objects.is_empty() {
            served(cluster, &path).await;
        }
        for object in &objects {
            let mut example = object.clone();
            let fields = example.as_object_mut().unwrap();
            let marks = ["refused", "dropped"].map(|mark| fields.remove(mark) == Some(json!(true)));
            let [refused, dropped] = marks;
            example["apiVersion"] = format!("{}/v1", bundle.group).into();
            example["kind"] = "Thing".into();
            if example["metadata"]["name"].is_null() {
                example["metadata"]["name"] = "example".into();
            }
            let text = json!([example]).to_string();
            bundle.changes = vec![("/metadata/annotations/alm-examples", text.into())];
            let ids = broken(&bundle.write(cluster.folder.path()));
            assert_eq!(ids.contains(&"EX-1"), refused, "{}: {object}: {ids:?}", row["about"]);
            assert_eq!(ids.contains(&"EX-2"), dropped, "{}: {object}: {ids:?}", row["about"]);
            let reply = ask(cluster, "POST", &format!("{path}?{DRY}"), &example).await;
            assert_eq!(reply.refused(), refused, "{}: {object}: {}", row["about"], reply.text());
            assert_eq!(
                reply.drops(),
                dropped,
                "{}: {object}: {:?}",
                row["about"],
                reply.warnings
            );
        }
    }
}

async fn incomplete_examples(cluster: &Cluster) {
    let mut bundle = Bundle::new("incomplete", "1.0.0");
    let mut crd = bundle.crd();
    let mut old = crd["spec"]["versions"][0].clone();
    old["name"] = "v1alpha1".into();
    old["storage"] = false.into();
    old["served"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(old);
    bundle.definition = Some(crd.clone());
    assert!(!define(cluster, &crd, false).await.refused());
    let path = |version: &str| format!("/apis/incomplete.example.com/{version}/namespaces/default/things");
    served(cluster, &path("v1")).await;
    for (version, metadata, is_incomplete) in [
        ("v1", json!({"name": "a"}), false),
        ("v1", json!({}), true),
        ("v1alpha1", json!({"name": "a"}), true),
    ] {
        let api = format!("incomplete.example.com/{version}");
        let example = json!({"apiVersion": api, "kind": "Thing", "metadata": metadata});
        let text = json!([example]).to_string();
        bundle.changes = vec![("/metadata/annotations/alm-examples", text.into())];
        assert_eq!(warns(cluster, &bundle, "EX-3"), is_incomplete, "{example}");
        let reply = ask(cluster, "POST", &format!("{}?{DRY}", path(version)), &example).await;
        assert_eq!(reply.refused(), is_incomplete, "{example}: {}", reply.text());
    }
}

async fn definitions(cluster: &Cluster) {
    let bundle = Bundle::new("sizes", "1.0.0");
    let mut unknown = bundle.crd();
    unknown["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["minimun"] = 1.into();
    let mut other_case = bundle.crd();
    other_case["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["Minimum"] = 1.into();
    for (crd, is_unknown) in [(bundle.crd(), false), (unknown, true), (other_case, true)] {
        let mut bundle = bundle.clone();
        bundle.definition = Some(crd.clone());
        assert_eq!(warns(cluster, &bundle, "FILE-3"), is_unknown);
        assert_eq!(define(cluster, &crd, true).await.drops(), is_unknown);
    }
    // Below `items` there is no warning: the server reads that field with separate code.
    let mut nested = bundle.crd();
    nested["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["names"] =
        json!({"type": "array", "items": {"type": "string", "maxLength": 9, "minimun": 1}});
    let mut with_nested = bundle.clone();
    with_nested.definition = Some(nested.clone());
    assert!(warns(cluster, &with_nested, "FILE-3"));
    let stored = define(cluster, &nested, true).await;
    assert!(!stored.drops());
    let items = &stored.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["names"]["items"];
    assert_eq!(items, &json!({"type": "string", "maxLength": 9}));
    for (bytes, is_large) in [(260_000, false), (264_000, true)] {
        let mut bundle = bundle.clone();
        let mut crd = bundle.crd();
        crd["metadata"]["annotations"] = json!({"example.com/text": "x".repeat(bytes)});
        bundle.definition = Some(crd.clone());
        assert_eq!(warns(cluster, &bundle, "SIZE-2"), is_large, "{bytes}");
        assert_eq!(define(cluster, &crd, true).await.refused(), is_large, "{bytes}");
    }
    for (bytes, is_large) in [(1_400_000, false), (1_600_000, true)] {
        let mut bundle = bundle.clone();
        let mut crd = bundle.crd();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "x".repeat(bytes).into();
        bundle.definition = Some(crd.clone());
        assert_eq!(warns(cluster, &bundle, "SIZE-1"), is_large, "{bytes}");
        let reply = define(cluster, &crd, false).await;
        assert_eq!(reply.refused(), is_large, "{bytes}: {}", reply.text());
    }
}

/// The changes that `--against` reports, on existing definitions.
async fn changes(cluster: &Cluster) {
    let bundle = Bundle::new("changing", "1.0.0");
    let mut crd = bundle.crd();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "count": {"type": "integer"},
    }}}});
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
    let path = format!("{DEFINITIONS}/{}", bundle.crd_name());
    let reply = define(cluster, &crd, false).await;
    assert!(!reply.refused(), "{}", reply.text());
    let things = "/apis/changing.example.com/v1/namespaces/default/things";
    served(cluster, things).await;
    let before = |rule: &str, after: &Value| {
        let mut old = bundle.clone();
        old.definition = Some(crd.clone());
        let directory = old.write(cluster.folder.path());
        let earlier = super::earlier(&directory);
        let mut new = bundle.clone();
        new.version = "1.1.0".into();
        new.definition = Some(after.clone());
        super::broken_since(&new.write(cluster.folder.path()), earlier).contains(&rule)
    };
    // The server needs the version that it stores, and keeps the scope.
    let mut renamed = crd.clone();
    renamed["spec"]["versions"][0]["name"] = "v2".into();
    let mut moved = crd.clone();
    moved["spec"]["scope"] = "Cluster".into();
    for (rule, after, is_refused) in [
        ("CRD-32", &renamed, true),
        ("CRD-32", &crd, false),
        ("CRD-33", &moved, true),
        ("CRD-33", &crd, false),
    ] {
        assert_eq!(before(rule, after), is_refused, "{rule}");
        let mut now = ask(cluster, "GET", &path, &Value::Null).await.body;
        now["spec"] = after["spec"].clone();
        let reply = ask(cluster, "PUT", &format!("{path}?{DRY}"), &now).await;
        assert_eq!(reply.refused(), is_refused, "{rule}: {}", reply.text());
    }
    // An object loses a field with the first write after the field was removed from the schema.
    let object = json!({"apiVersion": "changing.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1, "count": 2}});
    assert!(!ask(cluster, "POST", things, &object).await.refused());
    let mut smaller = crd.clone();
    smaller["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        json!({"count": {"type": "integer"}});
    assert!(before("CRD-35", &smaller) && !before("CRD-35", &crd));
    put_spec(cluster, &path, &smaller).await;
    let spec = |name: &'static str| async move {
        ask(cluster, "GET", &format!("{things}/{name}"), &Value::Null)
            .await
            .body["spec"]
            .clone()
    };
    until("the removed field is absent", async || {
        spec("a").await == json!({"count": 2})
    })
    .await;
    // If objects are stored in another version with another schema, they show the fields that both have.
    put_spec(cluster, &path, &crd).await;
    let mut other = object.clone();
    other["metadata"]["name"] = "b".into();
    let dry = format!("{things}?{DRY}");
    until("the field is back", async || {
        !ask(cluster, "POST", &dry, &other).await.drops()
    })
    .await;
    assert!(!ask(cluster, "POST", things, &other).await.refused());
    assert_eq!(spec("b").await, json!({"size": 1, "count": 2}));
    let mut second = crd.clone();
    let mut version = second["spec"]["versions"][0].clone();
    second["spec"]["versions"][0]["storage"] = false.into();
    version["name"] = "v2".into();
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        json!({"replicas": {"type": "integer"}, "count": {"type": "integer"}});
    second["spec"]["versions"].as_array_mut().unwrap().push(version);
    assert!(before("CRD-36", &second) && !before("CRD-36", &crd));
    put_spec(cluster, &path, &second).await;
    let in_second = "/apis/changing.example.com/v2/namespaces/default/things";
    served(cluster, in_second).await;
    let seen = ask(cluster, "GET", &format!("{in_second}/b"), &Value::Null).await.body;
    assert_eq!(seen["spec"], json!({"count": 2}));
}

/// Waits until a condition is true: the server applies new definitions a moment later.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    // Long, since other tests may occupy the processors.
    for _ in 0..1800 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{what}: not within three minutes");
}

async fn put_spec(cluster: &Cluster, path: &str, crd: &Value) {
    let mut now = ask(cluster, "GET", path, &Value::Null).await.body;
    now["spec"] = crd["spec"].clone();
    let reply = ask(cluster, "PUT", path, &now).await;
    assert!(!reply.refused(), "{}", reply.text());
}

const POD: &str = "/spec/install/spec/deployments/0/spec/template/spec";

/// Pods and Deployments of a ClusterServiceVersion, in a namespace that enforces the standard `restricted`.
async fn pods(cluster: &Cluster) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }});
    assert!(!ask(cluster, "POST", "/api/v1/namespaces", &namespace).await.refused());
    served(cluster, "/api/v1/namespaces/restricted/serviceaccounts/default").await;
    let safe = json!({
        "allowPrivilegeEscalation": false,
        "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let with = |key: &str, value: Value| {
        let mut context = safe.clone();
        context[key] = value;
        context
    };
    for (rule, context, pod, is_refused) in [
        ("POD-4", safe.clone(), json!({}), false),
        ("POD-4", json!({}), json!({}), true),
        ("POD-4", with("allowPrivilegeEscalation", json!(null)), json!({}), true),
        ("POD-4", with("capabilities", json!({})), json!({}), true),
        ("POD-1", safe.clone(), json!({}), false),
        ("POD-1", with("runAsUser", json!(0)), json!({}), true),
        (
            "POD-1",
            with("capabilities", json!({"drop": ["ALL"], "add": ["SYS_ADMIN"]})),
            json!({}),
            true,
        ),
        ("POD-1", safe.clone(), json!({"hostNetwork": true}), true),
        (
            "POD-1",
            safe.clone(),
            json!({"volumes": [{"name": "a", "hostPath": {"path": "/a"}}]}),
            true,
        ),
    ] {
        let mut bundle = Bundle::new("pods", "1.0.0");
        let mut spec =
            json!({"containers": [{"name": "manager", "image": "example.com/a:1", "securityContext": context}]});
        for (key, value) in pod.as_object().unwrap() {
            spec[key] = value.clone();
        }
        bundle.changes = vec![(POD, spec.clone())];
        assert_eq!(warns(cluster, &bundle, rule), is_refused, "{rule}: {spec}");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
        let reply = ask(
            cluster,
            "POST",
            &format!("/api/v1/namespaces/restricted/pods?{DRY}"),
            &pod,
        )
        .await;
        assert_eq!(reply.refused(), is_refused, "{rule}: {spec}: {}", reply.text());
    }
    // A moving tag is pulled for each pod.
    for (image, moves) in [
        ("example.com/a", true),
        ("example.com/a:latest", true),
        ("example.com/a:1", false),
    ] {
        let mut bundle = Bundle::new("pods", "1.0.0");
        bundle.image = image.into();
        assert_eq!(warns(cluster, &bundle, "IMG-2"), moves, "{image}");
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": image}]}});
        let reply = ask(cluster, "POST", &format!("/api/v1/namespaces/default/pods?{DRY}"), &pod).await;
        let policy = &reply.body["spec"]["containers"][0]["imagePullPolicy"];
        assert_eq!(policy == "Always", moves, "{image}: {policy}");
    }
    for (label, is_refused) in [("pods", false), ("others", true)] {
        let mut bundle = Bundle::new("pods", "1.0.0");
        bundle.changes = vec![(
            "/spec/install/spec/deployments/0/spec/template/metadata/labels",
            json!({"app": label}),
        )];
        assert_eq!(warns(cluster, &bundle, "POD-2"), is_refused);
        let spec = bundle.csv()["spec"]["install"]["spec"]["deployments"][0]["spec"].clone();
        let deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec});
        let path = format!("/apis/apps/v1/namespaces/default/deployments?{DRY}");
        let reply = ask(cluster, "POST", &path, &deployment).await;
        assert_eq!(reply.refused(), is_refused, "{}", reply.text());
    }
}

/// A webhook without a server, as after an outage.
async fn webhooks(cluster: &Cluster) {
    for (policy, is_refused) in [("Ignore", false), ("Fail", true)] {
        let rules =
            json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
        let mut bundle = Bundle::new("blocking", "1.0.0");
        bundle.changes = vec![(
            "/spec/webhookdefinitions",
            json!([{
                "type": "ValidatingAdmissionWebhook",
                "generateName": "pods.blocking.example.com",
                "deploymentName": "blocking-manager",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": policy,
                "rules": rules,
            }]),
        )];
        assert_eq!(warns(cluster, &bundle, "HOOK-8"), is_refused, "{policy}");
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": policy.to_lowercase()},
            "webhooks": [{
                "name": "pods.blocking.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": policy,
                "timeoutSeconds": 1,
                "clientConfig": {"service": {"name": "nobody", "namespace": "default"}},
                "rules": rules,
            }],
        });
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let reply = ask(cluster, "POST", path, &configuration).await;
        assert!(!reply.refused(), "{}", reply.text());
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}]}});
        let mut refused = false;
        // The server learns of the configuration a moment later.
        for _ in 0..if is_refused { 100 } else { 20 } {
            let reply = ask(cluster, "POST", &format!("/api/v1/namespaces/default/pods?{DRY}"), &pod).await;
            refused = reply.refused();
            if refused {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(refused, is_refused, "{policy}");
    }
}

/// The Service of a webhook, as OLM makes it, with a pod that has the named port and with one that lacks it.
async fn ports_of_webhooks(cluster: &Cluster) {
    served(cluster, "/api/v1/namespaces/default/serviceaccounts/default").await;
    for (name, ports) in [
        ("named-port", json!([{"name": "webhook-server", "containerPort": 9443}])),
        ("no-port", json!([{"name": "metrics", "containerPort": 8443}])),
    ] {
        let lacks_port = name == "no-port";
        let spec = json!({"containers": [{"name": "manager", "image": "example.com/a:1", "ports": ports}]});
        let mut bundle = Bundle::new(name, "1.0.0");
        let hook = json!({
            "type": "ValidatingAdmissionWebhook",
            "generateName": "a.hook.example.com",
            "deploymentName": format!("{name}-manager"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "containerPort": 443,
            "targetPort": "webhook-server",
        });
        bundle.changes = vec![(POD, spec.clone()), ("/spec/webhookdefinitions", json!([hook]))];
        assert_eq!(warns(cluster, &bundle, "HOOK-9"), lacks_port, "{name}");

        let metadata = json!({"name": name, "labels": {"app": name}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
            "selector": {"app": name}, "ports": [{"port": 443, "targetPort": "webhook-server"}],
        }});
        let reply = ask(cluster, "POST", "/api/v1/namespaces/default/services", &service).await;
        assert!(!reply.refused(), "{}", reply.text());
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        let reply = ask(cluster, "POST", "/api/v1/namespaces/default/pods", &pod).await;
        assert!(!reply.refused(), "{}", reply.text());
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
        );
        let slice = async || {
            let slices = ask(cluster, "GET", &path, &Value::Null).await.body;
            let mut slices = slices["items"].as_array().cloned().unwrap_or_default();
            slices.retain(|slice| slice["endpoints"].as_array().is_some_and(|list| !list.is_empty()));
            slices.pop()
        };
        until(name, async || slice().await.is_some()).await;
        let leads_to = slice().await.unwrap()["ports"][0]["port"].clone();
        let expected = if lacks_port { Value::Null } else { json!(9443) };
        assert_eq!(leads_to, expected, "{name}");
    }
}
