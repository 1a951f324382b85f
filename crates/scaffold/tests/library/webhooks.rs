//! `create webhook` and `delete webhook`.

use std::fs;

use olmkit_scaffold::{
    DeleteWebhook, Edit, Init, Webhook, create_api, create_webhook, delete_api, delete_webhook, edit_settings,
};
use tempfile::TempDir;

use super::{api, deletion, files, options, read, same, started};

fn webhook(version: &str, parts: &str) -> Webhook {
    Webhook {
        group: "cache".into(),
        version: version.into(),
        kind: "Memcached".into(),
        defaulting: parts.contains('d'),
        validation: parts.contains('v'),
        conversion: parts.contains('c'),
        spokes: Vec::new(),
        force: false,
    }
}

#[track_caller]
fn no_webhook(folder: &TempDir, webhook: &Webhook) -> String {
    let before = files(folder.path());
    let error = create_webhook(folder.path(), webhook).unwrap_err();
    assert!(files(folder.path()) == before, "something changed");
    error.to_string()
}

#[test]
fn a_webhook_is_wired_in_everywhere() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    let report = create_webhook(folder.path(), &webhook("v1", "dv")).unwrap();
    assert!(!report.render);
    let list = read(&folder, "src/webhook/mod.rs");
    assert!(list.contains("pub mod v1;\n") && !list.contains("let _"), "{list}");
    assert!(
        list.contains("    all.push(v1::memcached_validation::add);\n"),
        "{list}"
    );
    let manifests = read(&folder, "config/webhook/manifests.yaml");
    for expected in [
        "name: mmemcached-v1.cache.example.com",
        "path: /mutate-cache-example-com-v1-memcached",
        "path: /validate-cache-example-com-v1-memcached",
        "cert-manager.io/inject-ca-from: memcached-operator-system/memcached-operator-serving-cert",
    ] {
        assert!(manifests.contains(expected), "{expected} in {manifests}");
    }
    let manager = read(&folder, "config/manager/manager.yaml");
    assert!(
        manager.contains("- --webhook-bind-address=:9443")
            && manager.contains("mountPath: /tmp/k8s-webhook-server/serving-certs"),
        "{manager}"
    );
    let project = read(&folder, "PROJECT");
    assert!(
        project.contains("  webhooks:\n    defaulting: true\n    validation: true\n    webhookVersion: v1\n"),
        "{project}"
    );
    let again = no_webhook(&folder, &webhook("v1", "d"));
    assert!(again.contains("has a defaulting webhook"), "{again}");
    create_webhook(
        folder.path(),
        &Webhook {
            force: true,
            ..webhook("v1", "d")
        },
    )
    .unwrap();
    assert_eq!(read(&folder, "src/webhook/mod.rs").matches("::add").count(), 2);
}

#[test]
fn versions_are_converted_through_a_hub() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1alpha1", "Memcached")).unwrap();
    let one = no_webhook(&folder, &webhook("v1alpha1", "c"));
    assert!(one.contains("has one version"), "{one}");
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    create_api(folder.path(), &api("cache", "v2", "Memcached")).unwrap();
    let left = no_webhook(
        &folder,
        &Webhook {
            spokes: vec!["v2".into()],
            ..webhook("v1", "c")
        },
    );
    assert!(left.contains("add --spoke v1alpha1"), "{left}");
    for (spoke, reason) in [("v1", "v1 is the hub"), ("v3", "has no version v3")] {
        let wrong = Webhook {
            spokes: vec![spoke.into()],
            ..webhook("v1", "c")
        };
        let error = no_webhook(&folder, &wrong);
        assert!(error.contains(reason), "{error}");
    }
    create_webhook(folder.path(), &webhook("v1", "c")).unwrap();
    let text = read(&folder, "src/webhook/memcached_conversion.rs");
    for expected in [
        "    hub.spoke(v1alpha1_from_hub, v1alpha1_to_hub);\n    hub.spoke(v2_from_hub, v2_to_hub);\n    hub\n",
        "type V1alpha1 = crate::api::v1alpha1::memcached::Memcached;\n",
        "    testing::round_trip::<V2, Memcached, _>(&hub(), bytes)?;\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    let crd = read(&folder, "config/crd/bases/cache.example.com_memcacheds.yaml");
    assert!(crd.contains("path: /convert-cache-example-com-memcached"), "{crd}");
    assert!(!crd.contains("cert-manager"), "{crd}");
    assert!(read(&folder, "config/default/kustomization.yaml").contains("inject-ca-from"));
    assert!(read(&folder, "config/package.yaml").ends_with("installModes: [AllNamespaces]\n"));
    assert!(read(&folder, "Cargo.toml").contains("[dev-dependencies]\nproptest = \"1\"\n\n[profile.dev]"));
    let all = no_webhook(&folder, &webhook("v1", "c"));
    assert!(all.contains("converts all its versions already"), "{all}");
    let hub = no_webhook(&folder, &webhook("v2", "c"));
    assert!(hub.contains("has the hub v1"), "{hub}");
    let mine = text.replace("/// Converts back.", "/// Mine. Converts back.");
    fs::write(folder.path().join("src/webhook/memcached_conversion.rs"), mine).unwrap();
    create_api(folder.path(), &api("cache", "v3", "Memcached")).unwrap();
    create_webhook(folder.path(), &webhook("v1", "c")).unwrap();
    let text = read(&folder, "src/webhook/memcached_conversion.rs");
    assert!(
        text.contains("Mine. Converts back.") && text.contains("    hub.spoke(v3_from_hub, v3_to_hub);\n    hub\n"),
        "{text}"
    );
    let narrow = Edit {
        multigroup: None,
        namespaced: Some(true),
    };
    let error = edit_settings(folder.path(), narrow).unwrap_err();
    assert!(error.to_string().contains("has a conversion webhook"), "{error}");
    let error = delete_api(folder.path(), &deletion("v3", "Memcached", false)).unwrap_err();
    assert!(
        error.to_string().contains("olmkit delete webhook --version v1"),
        "{error}"
    );
}

#[test]
fn deleting_webhooks_undoes_what_creating_them_did() {
    for multigroup in [false, true] {
        let folder = started(&Init {
            multigroup,
            ..options()
        });
        create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
        create_api(folder.path(), &api("cache", "v2", "Memcached")).unwrap();
        let without = files(folder.path());
        create_webhook(folder.path(), &webhook("v1", "c")).unwrap();
        let converted = files(folder.path());
        create_webhook(folder.path(), &webhook("v1", "dv")).unwrap();
        create_webhook(folder.path(), &webhook("v2", "v")).unwrap();
        let delete = |version: &str, parts: &str, force: bool| {
            let Webhook {
                group,
                version,
                kind,
                defaulting,
                validation,
                conversion,
                ..
            } = webhook(version, parts);
            delete_webhook(
                folder.path(),
                &DeleteWebhook {
                    group,
                    version,
                    kind,
                    defaulting,
                    validation,
                    conversion,
                    force,
                },
            )
        };
        let path = match multigroup {
            true => "src/webhook/cache/v2/memcached_validation.rs",
            false => "src/webhook/v2/memcached_validation.rs",
        };
        let text = read(&folder, path);
        fs::write(folder.path().join(path), format!("{text}// Mine.\n")).unwrap();
        let changed = delete("v2", "", false).unwrap_err().to_string();
        assert!(changed.contains("has changed since it was created"), "{changed}");
        delete("v2", "v", true).unwrap();
        let absent = delete("v2", "v", true).unwrap_err().to_string();
        assert!(absent.contains("has no validating webhook"), "{absent}");
        assert!(
            delete("v2", "", true)
                .unwrap_err()
                .to_string()
                .contains("has no webhook")
        );
        delete("v1", "d", false).unwrap();
        delete("v1", "v", false).unwrap();
        same(&files(folder.path()), &converted);
        delete("v1", "", false).unwrap();
        same(&files(folder.path()), &without);
    }
}

#[test]
fn webhooks_that_cannot_be_are_refused_and_change_nothing() {
    let folder = started(&Init {
        namespaced: true,
        ..options()
    });
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    create_api(folder.path(), &api("cache", "v2", "Memcached")).unwrap();
    create_api(folder.path(), &api("cache", "v1", "Review")).unwrap();
    let namespaced = no_webhook(&folder, &webhook("v1", "c"));
    assert!(namespaced.contains("olmkit edit --namespaced=false"), "{namespaced}");
    let none = no_webhook(&folder, &webhook("v1", ""));
    assert!(none.contains("--programmatic-validation"), "{none}");
    let spoke = Webhook {
        spokes: vec!["v2".into()],
        ..webhook("v1", "d")
    };
    assert!(no_webhook(&folder, &spoke).contains("--spoke requires"));
    assert!(no_webhook(&folder, &webhook("v3", "d")).contains("has no cache.example.com/v3 Memcached"));
    let hidden = Webhook {
        kind: "Review".into(),
        ..webhook("v1", "d")
    };
    assert!(no_webhook(&folder, &hidden).contains("would hide a type"));
    let list = read(&folder, "src/webhook/mod.rs");
    fs::write(folder.path().join("src/webhook/mod.rs"), format!("{list}}}\n")).unwrap();
    let broken = no_webhook(&folder, &webhook("v1", "d"));
    assert!(broken.starts_with("src/webhook/mod.rs:"), "{broken}");
    fs::remove_file(folder.path().join("src/webhook/mod.rs")).unwrap();
    assert!(no_webhook(&folder, &webhook("v1", "d")).contains("src/webhook/mod.rs"));
}
