use serde_json::json;

use super::*;

/// A ClusterExtension with one condition.
fn seen(status: &str, reason: &str, message: &str) -> ExtensionState {
    let selector = json!({"matchLabels": {"olm.operatorframework.io/metadata.name": "ours"}});
    ExtensionState {
        name: "cache".into(),
        extension: Some(json!({
            "metadata": {"name": "cache", "generation": 1},
            "spec": {"namespace": "shop", "source": {"catalog": {"packageName": "cache", "selector": selector}}},
            "status": {"conditions": [
                {"type": "Progressing", "status": status, "reason": reason, "message": message, "observedGeneration": 1}]},
        })),
        catalogs: vec![catalog("ours", "True", "Succeeded", "")],
        ..ExtensionState::default()
    }
}

fn catalog(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "metadata": {"name": name, "generation": 1, "labels": {"olm.operatorframework.io/metadata.name": name}},
        "status": {"conditions": [
            {"type": "Serving", "status": "True", "observedGeneration": 1},
            {"type": "Progressing", "status": status, "reason": reason, "message": message, "observedGeneration": 1}]},
    })
}

#[test]
fn each_recorded_text_has_its_cause_and_its_way_out() {
    // Messages observed from operator-controller 1.11.
    let table = [
        (
            "no bundles found for package \"cache\" matching version \"9.9.9\"",
            Code::PackageNotFound,
            "catalog resolve --olmv1 cache",
        ),
        (
            "error upgrading from currently installed version \"0.1.0\": no bundles found for package \"cache\" matching version \"0.0.1\"",
            Code::UpgradeNotOffered,
            "SelfCertified",
        ),
        (
            "found bundles for package \"cache\" in multiple catalogs with the same priority [a b]",
            Code::CatalogAmbiguous,
            "spec.priority",
        ),
        (
            "validating bundle \"cache.v1\": bundle \"cache.v1\" has a dependency declared via property \"olm.gvk.required\" which is currently not supported",
            Code::DependencyUnsupported,
            "V1-2",
        ),
        (
            "unsupported bundle: bundle does not support AllNamespaces install mode",
            Code::InstallModeUnsupported,
            "watchNamespace",
        ),
        (
            "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes",
            Code::InstallModeUnsupported,
            "OLM v0",
        ),
        (
            "unsupported bundle: apiServiceDefintions are not supported",
            Code::BundleRejected,
            "--profile olmv1",
        ),
        (
            "namespaces \"elsewhere\" not found",
            Code::NamespaceMissing,
            "kubectl create namespace elsewhere",
        ),
        (
            "CustomResourceDefinition 'caches.example.com' already exists in namespace '' and cannot be managed by operator-controller",
            Code::CrdOwnedByOther,
            "extension uninstall cache",
        ),
        (
            "validating upgrade for CRD \"caches.example.com\": v1: ^.spec.size: minimum: 1 -> 2",
            Code::CrdUnsafe,
            "olmkit extension diff cache",
        ),
        (
            "no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"",
            Code::RequirementApiMissing,
            "cert-manager",
        ),
        (
            "cannot patch \"caches.example.com\": Only one reference can have Controller set to true",
            Code::CrdTerminating,
            "finalizer",
        ),
        (
            "error creating image source: reading manifest v1 in r.test/b: unauthorized",
            Code::BundleImagePull,
            "--global-pull-secret",
        ),
        (
            "Service \"cache-service\" is invalid: spec.ports[0].port: Invalid value: 0",
            Code::ObjectRejected,
            "V1-15",
        ),
        ("something new", Code::ExtensionRetrying, "its log"),
    ];
    for (message, code, way_out) in table {
        let causes = causes(&seen("True", "Retrying", message));
        let [cause] = causes.as_slice() else {
            panic!("{message}: {causes:?}")
        };
        assert_eq!(cause.code, code, "{message}");
        assert_eq!(cause.message, message);
        assert!(cause.remedy.contains(way_out), "{message}: {}", cause.remedy);
    }
}

#[test]
fn a_wrong_configuration_is_explained_by_what_it_lacks() {
    for (message, way_out) in [
        (
            "invalid ClusterExtension configuration: required field \"watchNamespace\" is missing",
            "--install-mode",
        ),
        (
            "invalid value \"a\" for watchNamespace: must be \"shop\"",
            "own namespace",
        ),
        (
            "invalid value for watchNamespace: must be different from \"shop\"",
            "another namespace",
        ),
        ("unknown field \"x\"", "remove the field"),
    ] {
        let causes = causes(&seen("False", "InvalidConfiguration", message));
        assert_eq!(causes[0].code, Code::ConfigurationInvalid);
        assert!(causes[0].lasting);
        assert!(causes[0].remedy.contains(way_out), "{}", causes[0].remedy);
    }
}

#[test]
fn unobserved_objects_are_not_judged() {
    let mut seen = seen("True", "Retrying", "of an earlier specification");
    seen.extension.as_mut().unwrap()["metadata"]["generation"] = json!(2);
    assert_eq!(causes(&seen)[0].code, Code::OlmIdle);
    seen.extension.as_mut().unwrap()["status"] = json!({});
    assert_eq!(causes(&seen)[0].code, Code::OlmIdle);
}

#[test]
fn well_means_no_cause() {
    assert_eq!(causes(&seen("True", "Succeeded", "Desired state reached")), vec![]);
}

#[test]
fn a_missing_selector_and_a_missing_catalog_are_warnings() {
    let mut found = seen("True", "Succeeded", "");
    found.extension.as_mut().unwrap()["spec"]["source"]["catalog"]["selector"] = json!(null);
    assert_eq!(causes(&found), vec![], "one catalog is no choice");
    found.catalogs.push(catalog("other", "True", "Succeeded", ""));
    assert_eq!(causes(&found)[0].code, Code::SelectorMissing);
    let mut found = seen("True", "Succeeded", "");
    found.catalogs.clear();
    found.extension.as_mut().unwrap()["status"]["install"] =
        json!({"bundle": {"name": "cache.v1", "version": "1.0.0"}});
    assert_eq!(causes(&found)[0].code, Code::CatalogMissing);
}

#[test]
fn a_catalog_that_is_not_served_says_why() {
    let of = |message: &str| of_catalog(&catalog("ours", "True", "Retrying", message)).remove(0);
    let pull = of(
        "source catalog content: error creating image source: pinging container registry r.test: x509: certificate signed by unknown authority",
    );
    assert_eq!(pull.code, Code::CatalogImagePull);
    assert!(pull.remedy.contains("--pull-cas-dir"));
    assert_eq!(
        of("catalog image is missing the required label \"operators\"").code,
        Code::CatalogInvalid
    );
    let mut plain = catalog("ours", "True", "Succeeded", "");
    assert_eq!(of_catalog(&plain), vec![]);
    plain["metadata"]["labels"] = json!({});
    assert!(of_catalog(&plain)[0].remedy.contains("kubectl label"));
    plain["spec"] = json!({"availabilityMode": "Unavailable"});
    assert!(of_catalog(&plain)[0].message.contains("switched off"));
}
