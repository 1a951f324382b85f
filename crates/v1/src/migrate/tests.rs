use serde_json::{Value, json};

use super::*;

fn subscription() -> Value {
    json!({
        "metadata": {"name": "cache", "namespace": "ops"},
        "spec": {
            "name": "cache-operator", "channel": "stable", "source": "ours", "sourceNamespace": "olm",
            "installPlanApproval": "Manual",
            "config": {"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": "b"}]},
        },
        "status": {"installedCSV": "cache.v1", "state": "AtLatestKnown"},
    })
}

fn csv() -> Value {
    json!({
        "metadata": {"name": "cache.v1"},
        "spec": {"version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}]},
        "status": {"phase": "Succeeded"},
    })
}

fn catalog() -> Value {
    json!({
        "metadata": {"name": "ours", "namespace": "olm"},
        "spec": {
            "sourceType": "grpc", "image": "quay.io/example/catalog:v1", "priority": 5,
            "updateStrategy": {"registryPoll": {"interval": "1h30m"}},
        },
    })
}

fn ids(installation: &Installation<'_>) -> (Eligibility, Vec<&'static str>) {
    let assessment = assess(installation);
    let ids = assessment.obstacles.iter().map(|obstacle| obstacle.id).collect();
    (assessment.eligibility, ids)
}

#[test]
fn each_condition_is_seen() {
    let (subscription, csv, catalog) = (subscription(), csv(), catalog());
    let sound = Installation {
        subscription: &subscription,
        csv: Some(&csv),
        catalog: Some(&catalog),
        ..Installation::default()
    };
    assert_eq!(ids(&sound), (Eligibility::Eligible, vec![]));

    let groups = [json!({"metadata": {"name": "g"}, "spec": {"targetNamespaces": ["ops"], "serviceAccountName": "a"}})];
    let condition = json!({"status": {"conditions": [{"type": "Upgradeable"}]}});
    let limited = Installation {
        groups: &groups,
        condition: Some(&condition),
        ..sound
    };
    assert_eq!(ids(&limited), (Eligibility::NeedsConsent, vec!["C1", "C6", "C4"]));

    let worse = json!({
        "metadata": {"name": "cache.v1", "annotations": {
            "operatorframework.io/properties": "{\"properties\":[{\"type\":\"olm.package.required\",\"value\":{}}]}",
        }},
        "spec": {
            "customresourcedefinitions": {"required": [{"name": "a"}]},
            "apiservicedefinitions": {"owned": [{"name": "a"}]},
            "install": {"spec": {"clusterPermissions": [{"rules": [
                {"apiGroups": ["operators.coreos.com"], "resources": ["subscriptions"], "verbs": ["get"]},
            ]}]}},
        },
        "status": {"phase": "Failed"},
    });
    let mut generated = subscription.clone();
    generated["metadata"]["annotations"] = json!({"olm.generated-by": "install-x"});
    generated["status"]["state"] = json!("UpgradeFailed");
    let unsound = Installation {
        subscription: &generated,
        csv: Some(&worse),
        ..Installation::default()
    };
    assert_eq!(
        ids(&unsound),
        (
            Eligibility::Ineligible,
            vec!["C1a", "C2", "C3", "C5", "C8", "C8", "C9", "C10"]
        )
    );

    let extensions =
        [json!({"metadata": {"name": "e"}, "spec": {"source": {"catalog": {"packageName": "cache-operator"}}}})];
    let taken = Installation {
        extensions: &extensions,
        ..sound
    };
    assert_eq!(ids(&taken), (Eligibility::Conflict, vec!["conflict"]));
    let extensions =
        [json!({"metadata": {"name": "cache-operator"}, "spec": {"source": {"catalog": {"packageName": "e"}}}})];
    let named = Installation {
        extensions: &extensions,
        ..sound
    };
    assert_eq!(ids(&named), (Eligibility::Conflict, vec!["conflict"]));

    let mut second = subscription.clone();
    second["metadata"]["namespace"] = json!("elsewhere");
    let (alone, twice) = ([subscription.clone()], [subscription.clone(), second]);
    for (subscriptions, expected) in [
        (&alone[..], (Eligibility::Eligible, vec![])),
        (&twice[..], (Eligibility::Conflict, vec!["conflict"])),
    ] {
        let one = Installation { subscriptions, ..sound };
        assert_eq!(ids(&one), expected);
    }
    let new = Installation { csv: None, ..sound };
    assert_eq!(ids(&new), (Eligibility::NeedsConsent, vec!["C8"]));
}

#[test]
fn a_catalog_without_an_image_cannot_be_taken_over() {
    let (subscription, csv) = (subscription(), csv());
    for (spec, problem) in [
        (
            json!({"sourceType": "grpc", "address": "catalog.test:50051"}),
            "has no image",
        ),
        (
            json!({"sourceType": "configmap", "configMap": "c"}),
            "is of type \"configmap\"",
        ),
    ] {
        let catalog = json!({"metadata": {"name": "ours", "namespace": "olm"}, "spec": spec});
        let one = Installation {
            subscription: &subscription,
            csv: Some(&csv),
            catalog: Some(&catalog),
            ..Installation::default()
        };
        let found = assess(&one);
        assert_eq!(found.eligibility, Eligibility::Ineligible);
        assert_eq!(found.obstacles[0].message, format!("CatalogSource olm/ours {problem}"));
        assert_eq!(plan(&[one]), Vec::<Value>::new());
    }
}

#[test]
fn intervals_become_whole_minutes() {
    for (interval, minutes) in [
        ("90s", json!(2)),
        ("10m0s", json!(10)),
        ("1.5h", json!(90)),
        ("45", json!(null)),
        ("0s", json!(null)),
        ("-1m", json!(null)),
    ] {
        let (subscription, csv, mut catalog) = (subscription(), csv(), catalog());
        catalog["spec"]["updateStrategy"]["registryPoll"]["interval"] = json!(interval);
        let one = Installation {
            subscription: &subscription,
            csv: Some(&csv),
            catalog: Some(&catalog),
            ..Installation::default()
        };
        let made = &plan(&[one])[0];
        assert_eq!(
            made["spec"]["source"]["image"]["pollIntervalMinutes"], minutes,
            "{interval}"
        );
    }
}

#[test]
fn the_plan_has_what_the_subscription_says() {
    let (subscription, csv, catalog) = (subscription(), csv(), catalog());
    let one = Installation {
        subscription: &subscription,
        csv: Some(&csv),
        catalog: Some(&catalog),
        ..Installation::default()
    };
    let planned = plan(&[one]);
    let [made, extension] = planned.as_slice() else {
        panic!("{planned:?}")
    };
    assert_eq!(
        made["spec"],
        json!({
            "source": {"type": "Image", "image": {"ref": "quay.io/example/catalog:v1", "pollIntervalMinutes": 90}},
            "priority": 5,
        })
    );
    assert_eq!(extension["metadata"]["name"], "cache-operator");
    assert_eq!(
        extension["spec"],
        json!({
            "namespace": "ops",
            "source": {"sourceType": "Catalog", "catalog": {
                "packageName": "cache-operator", "channels": ["stable"], "version": "1.0.0",
                "upgradeConstraintPolicy": "CatalogProvided",
                "selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": "ours"}},
            }},
            "config": {"configType": "Inline", "inline": {"deploymentConfig": {"env": [{"name": "A", "value": "b"}]}}},
        })
    );
    let mut pinned = catalog.clone();
    pinned["spec"]["image"] = json!("quay.io/example/catalog@sha256:aa");
    let other = Installation {
        catalog: Some(&pinned),
        ..one
    };
    let planned = plan(&[one, other, one]);
    let names: Vec<&str> = planned.iter().map(|object| text(object, "/metadata/name")).collect();
    assert_eq!(
        names,
        ["ours", "ours-olm", "cache-operator", "cache-operator", "cache-operator"]
    );
    assert_eq!(
        planned[1]["spec"]["source"]["image"],
        json!({"ref": "quay.io/example/catalog@sha256:aa"})
    );
}
