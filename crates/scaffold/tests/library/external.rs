//! Reconcilers of kinds that others define.

use olmkit_scaffold::{Api, DeleteApi, External, Init, create_api, delete_api};

use super::{api, files, options, read, refused, same, started};

fn reconciler(group: &str, version: &str, kind: &str) -> Api {
    Api {
        resource: false,
        ..api(group, version, kind)
    }
}

#[test]
fn kinds_of_kubernetes_are_known() {
    let folder = started(&options());
    let before = files(folder.path());
    create_api(folder.path(), &reconciler("apps", "v1", "Deployment")).unwrap();
    let node = Api {
        namespaced: false,
        ..reconciler("core", "v1", "Node")
    };
    create_api(folder.path(), &node).unwrap();
    create_api(folder.path(), &reconciler("rbac", "v1", "Role")).unwrap();
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    let deployment = read(&folder, "src/controller/deployment.rs");
    assert!(
        deployment.contains("use k8s_openapi::api::apps::v1::Deployment;"),
        "{deployment}"
    );
    assert!(read(&folder, "src/controller/node.rs").contains("impl Reconciler for NodeReconciler"));
    assert!(read(&folder, "config/rbac/cluster_role.yaml").contains("  - nodes\n"));
    assert!(read(&folder, "config/rbac/role.yaml").contains("  - rbac.authorization.k8s.io\n"));
    let project = read(&folder, "PROJECT");
    for expected in [
        "- controller: true\n  core: true\n  group: apps\n  kind: Deployment\n  path: k8s_openapi::api::apps::v1\n  version: v1\n",
        "  group: \"\"\n  kind: Node\n",
        "  scope: Cluster\n",
    ] {
        assert!(project.contains(expected), "{expected} in {project}");
    }
    assert!(refused(&folder, &reconciler("apps", "v1", "Deployment")).contains("already"));
    for (group, kind) in [
        ("cache", "Memcached"),
        ("rbac", "Role"),
        ("core", "Node"),
        ("apps", "Deployment"),
    ] {
        let deletion = DeleteApi {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            force: false,
        };
        delete_api(folder.path(), &deletion).unwrap();
    }
    same(&files(folder.path()), &before);
}

#[test]
fn types_of_others_come_from_a_module() {
    let folder = started(&Init {
        namespaced: true,
        ..options()
    });
    let before = files(folder.path());
    let certificate = Api {
        external: External {
            path: Some("cert_manager::v1".into()),
            domain: Some("cert-manager.io".into()),
            module: Some("cert-manager@1.2".into()),
        },
        ..reconciler("", "v1", "Certificate")
    };
    create_api(folder.path(), &certificate).unwrap();
    assert!(read(&folder, "Cargo.toml").contains("[dependencies]\ncert-manager = \"1.2\"\n"));
    assert!(read(&folder, "src/controller/certificate.rs").contains("use cert_manager::v1::Certificate;"));
    let project = read(&folder, "PROJECT");
    assert!(
        project.contains("  external: true\n  group: cert-manager.io\n"),
        "{project}"
    );
    assert!(project.contains("  module: cert-manager@1.2\n"), "{project}");
    let deletion = DeleteApi {
        group: "cert-manager".into(),
        version: "v1".into(),
        kind: "Certificate".into(),
        force: false,
    };
    delete_api(folder.path(), &deletion).unwrap();
    same(&files(folder.path()), &before);
}

#[test]
fn invalid_external_kinds_are_rejected() {
    let folder = started(&options());
    create_api(folder.path(), &reconciler("apps", "v1", "Deployment")).unwrap();
    let with = |path: &str, module: &str| Api {
        external: External {
            path: Some(path.into()),
            domain: None,
            module: Some(module.into()).filter(|module: &String| !module.is_empty()),
        },
        ..reconciler("other.io", "v1", "Thing")
    };
    for (wrong, expected) in [
        (with("a b", ""), "--external-api-path"),
        (with("a::b; use x", ""), "--external-api-path"),
        (with("a::b<c>", ""), "--external-api-path"),
        (with("a::b", "x"), "--external-api-module"),
        (with("a::b", "x@1\"\ny"), "--external-api-module"),
        (
            Api {
                resource: true,
                ..with("a::b", "")
            },
            "give --resource=false",
        ),
        (
            Api {
                controller: Some(false),
                ..with("a::b", "")
            },
            "supports only a reconciler",
        ),
        (
            Api {
                kind: "Deployment".into(),
                ..with("a::b", "")
            },
            "would share the file deployment.rs",
        ),
        (
            Api {
                kind: "Reconciler".into(),
                ..with("a::b", "")
            },
            "uses a type of this name",
        ),
        (
            Api {
                group: "A b".into(),
                ..with("a::b", "")
            },
            "--group",
        ),
        (reconciler("cache", "v1", "Memcached"), "omit --resource=false"),
        (reconciler("apps", "1", "Deployment"), "--version"),
    ] {
        let error = refused(&folder, &wrong);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
