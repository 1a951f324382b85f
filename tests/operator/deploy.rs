//! `make deploy` and `make undeploy`.
use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use k8s_openapi::{
    api::{
        core::v1::Namespace,
        rbac::v1::{ClusterRole, PolicyRule},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use kube_testbed::{ControlPlane, Options, tools};
use memcached_operator::api::v1alpha1::{FINALIZER, Memcached};
use serde_json::json;

use crate::lab::eventually;

const RENDERED: &str = "kind: Deployment\n      - image: quay.io/a/operator:v0.1.0\n        name: manager\n";

fn set_image(from: &str, to: &str) -> Output {
    let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/dev/set-image.sh"))
        .args([from, to])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(RENDERED.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_image_that_is_asked_for_is_deployed() {
    let output = set_image("quay.io/a/operator:v0.1.0", "localhost:5000/mine:dev");
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = RENDERED.replace("quay.io/a/operator:v0.1.0", "localhost:5000/mine:dev");
    assert!(output.status.success());
    assert_eq!(text, expected);
}

/// Also where it only begins like the one that is there.
#[test]
fn nothing_is_deployed_if_another_image_was_rendered() {
    for from in ["quay.io/a/operator:v0.2.0", "quay.io/a/operator:v0.1"] {
        let output = set_image(from, "localhost:5000/mine:dev");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{from}");
        assert!(text.contains(from) && text.contains("make manifests"), "{text}");
        assert!(output.stdout.is_empty(), "{from}");
    }
}

/// Runs `program` with the administrator's kubeconfig, and returns its output.
fn run(plane: &ControlPlane, program: &str, arguments: &[&str], force: &str) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("KUBECONFIG", plane.kubeconfig())
        .env("KUBECTL", kubectl())
        .env("FORCE", force)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn kubectl() -> String {
    let built = tools::cache().map(|cache| cache.join("bin/kubectl"));
    let built = built.filter(|path| path.exists());
    built.map_or("kubectl".to_owned(), |path| path.display().to_string())
}

#[tokio::test]
async fn undeploy_keeps_caches_and_releases_their_finalizer() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client().await.unwrap();
    let (definitions, roles) = (
        Api::<CustomResourceDefinition>::all(client.clone()),
        Api::<ClusterRole>::all(client.clone()),
    );
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let memcacheds: Api<Memcached> = Api::namespaced(client, "default");
    let directory = tempfile::tempdir().unwrap();
    let installer = directory.path().join("dist/install.yaml").display().to_string();
    let image = "localhost:5000/mine:dev";
    let make = [
        "-s",
        "build-installer",
        &format!("IMG={image}"),
        &format!("INSTALLER={installer}"),
    ];
    run(&plane, "make", &make, "");
    let apply = ["apply", "--server-side", "--filename", &installer];
    let deploy = async || {
        run(&plane, &kubectl(), &apply, "");
        let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "spec": {},
            "metadata": { "name": "sample", "finalizers": [FINALIZER, "example.com/another"] } });
        let object: Memcached = serde_json::from_value(object).unwrap();
        eventually("the definition is served", async || {
            memcacheds.create(&PostParams::default(), &object).await.ok()
        })
        .await;
    };
    let installed = async || {
        let definition = definitions
            .get_opt("memcacheds.cache.example.com")
            .await
            .unwrap()
            .is_some();
        let namespace = namespaces.get_opt("memcached-operator-system").await.unwrap().is_some();
        let all = roles.list(&kube::api::ListParams::default()).await.unwrap();
        let own = all
            .iter()
            .filter(|role| role.name_any().starts_with("memcached-operator-"));
        (definition, namespace, own.count())
    };
    deploy().await;
    let installed_image = run(
        &plane,
        &kubectl(),
        &[
            "get",
            "deployment",
            "--namespace=memcached-operator-system",
            "--output=jsonpath={.items[*].spec.template.spec.containers[*].image}",
        ],
        "",
    );
    assert_eq!(installed_image, image);
    // Every object of the file is as the API server stores it: another apply changes none.
    let again = run(&plane, &kubectl(), &[&apply[..], &["--dry-run=server"]].concat(), "");
    let objects = again.lines().count();
    assert!(
        objects >= 10 && again.matches(" serverside-applied (server dry run)").count() == objects,
        "{again}"
    );
    // Users with Kubernetes' own roles may use the kind.
    for (role, verb) in [("admin", "delete"), ("edit", "create"), ("view", "list")] {
        let allows = |rule: &PolicyRule| {
            let has = |list: &[String], wanted: &str| list.iter().any(|found| found == wanted || found == "*");
            has(rule.resources.as_deref().unwrap_or_default(), "memcacheds") && has(&rule.verbs, verb)
        };
        eventually(&format!("{role} may {verb}"), async || {
            let rules = roles.get(role).await.unwrap().rules.unwrap_or_default();
            rules.iter().any(allows).then_some(())
        })
        .await;
    }
    let text = run(&plane, "dev/undeploy.sh", &[], "");
    assert!(
        text.contains("default") && text.contains("sample") && text.contains("make undeploy FORCE=1"),
        "{text}"
    );
    assert_eq!(installed().await, (true, false, 3), "definition, namespace, roles");
    assert_eq!(
        memcacheds.get("sample").await.unwrap().finalizers(),
        ["example.com/another"]
    );

    let free = kube::api::Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    memcacheds.patch("sample", &Default::default(), &free).await.unwrap();
    run(&plane, "dev/undeploy.sh", &[], "1");
    assert_eq!(installed().await, (false, false, 0));

    deploy().await;
    memcacheds.patch("sample", &Default::default(), &free).await.unwrap();
    memcacheds.delete("sample", &DeleteParams::default()).await.unwrap();
    let text = run(&plane, "dev/undeploy.sh", &[], "");
    assert!(!text.contains("FORCE"), "{text}");
    assert_eq!(installed().await, (false, false, 0));
}
