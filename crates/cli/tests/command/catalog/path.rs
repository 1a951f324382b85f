//! `catalog path`, `graph` and `validate` on small graphs. `dev/graph` compares many with OLM's resolver.

use serde_json::{Value, json};

use super::Desk;

/// Writes the catalog of a package `shop`: channels with entries, and a bundle for each name.
fn catalog(desk: &Desk, channels: &[(&str, Value)]) {
    let mut blobs = vec![json!({"schema": "olm.package", "name": "shop", "defaultChannel": channels[0].0})];
    let mut names = std::collections::BTreeSet::new();
    for (channel, entries) in channels {
        names.extend(
            entries
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["name"].as_str().unwrap()),
        );
        blobs.push(json!({"schema": "olm.channel", "package": "shop", "name": channel, "entries": entries}));
    }
    for name in names {
        let version = name.split_once(".v").unwrap().1;
        blobs.push(json!({"schema": "olm.bundle", "package": "shop", "name": name,
            "image": format!("r.example.com/shop@sha256:{}", "0".repeat(64)),
            "properties": [{"type": "olm.package", "value": {"packageName": "shop", "version": version}},
                {"type": "olm.csv.metadata", "value": {}}]}));
    }
    let text: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
    std::fs::create_dir_all(desk.path("shop")).unwrap();
    std::fs::write(desk.path("shop/catalog.json"), text).unwrap();
}

fn path(desk: &Desk, arguments: &[&str]) -> super::Answer {
    desk.run(&[&["catalog", "path", "shop", "--from"], arguments].concat())
}

#[test]
fn skipped_entries_lead_nowhere_and_the_reason_is_named() {
    let desk = Desk::new();
    catalog(
        &desk,
        &[(
            "stable",
            json!([{"name": "shop.v1.0.0"}, {"name": "shop.v1.1.0", "replaces": "shop.v1.0.0", "skipRange": "<1.1.0"},
                {"name": "shop.v1.2.0", "replaces": "shop.v1.1.0", "skips": ["shop.v1.1.0", "shop.v1.0.0"]}]),
        )],
    );
    path(&desk, &["0.8.0"]).refused(
        "no upgrade path from 0.8.0 to the newest bundle of stable: the skipRange of shop.v1.1.0 contains its version, but OLM \
         drops that entry: shop.v1.2.0 skips it",
    );
    path(&desk, &["shop.v1.0.0"]).ok();
    catalog(
        &desk,
        &[(
            "stable",
            json!([{"name": "shop.v1.4.0"}, {"name": "shop.v1.4.1", "skips": ["shop.v1.4.0"]},
                {"name": "shop.v1.4.2", "skips": ["shop.v1.4.1"]}, {"name": "shop.v1.4.3", "skips": ["shop.v1.4.2"]}]),
        )],
    );
    path(&desk, &["shop.v1.4.0"]).refused("shop.v1.4.1 skips it, but OLM drops that entry: shop.v1.4.2 skips it");
    let found = desk.run(&["catalog", "validate", "shop"]).ok();
    let found: Vec<&str> = found.split_whitespace().collect();
    assert!(
        found.join(" ").contains(
            "channel stable: OLM v0 has no upgrade path to shop.v1.4.3 from shop.v1.4.0, shop.v1.4.1: shop.v1.4.1 skips"
        ),
        "{found:?}"
    );
}

#[test]
fn installed_bundles_may_be_of_another_channel_or_of_none() {
    let desk = Desk::new();
    catalog(
        &desk,
        &[
            (
                "stable",
                json!([{"name": "shop.v1.1.0", "replaces": "shop.v1.0.1", "skips": ["shop.v0.9.0"]},
                    {"name": "shop.v1.2.0", "replaces": "shop.v1.1.0"}]),
            ),
            ("old", json!([{"name": "shop.v1.0.1"}])),
        ],
    );
    let steps = path(&desk, &["1.0.1", "-c", "stable"]).ok();
    assert_eq!(
        steps,
        "Subscription to shop, channel stable (default):\nshop.v1.0.1 -> shop.v1.1.0 (replaces)\n\
         shop.v1.1.0 -> shop.v1.2.0 (replaces)\n"
    );
    let steps = path(&desk, &["shop.v0.9.0"]).ok();
    assert!(steps.contains("shop.v0.9.0 -> shop.v1.1.0 (skips)"), "{steps}");
    let answer: Value = serde_json::from_str(&path(&desk, &["shop.v0.9.0", "-o", "json"]).ok()).unwrap();
    assert_eq!(answer["version"], "0.9.0");
    assert_eq!(answer["versionSource"], "name");
    assert_eq!(answer["steps"][0]["to"], "shop.v1.1.0");
    assert_eq!(answer["end"]["state"], "newest");
    let old = path(&desk, &["shop.v1.0.1", "-c", "old"]);
    assert!(old.out.contains("already at shop.v1.0.1"), "{}", old.out);
    let all = path(&desk, &["shop.v1.0.1", "--all-channels"]).ok();
    assert!(all.starts_with("Subscription to shop without a channel:\n"), "{all}");
    assert!(all.contains("shop.v1.0.1 -> shop.v1.1.0 (replaces in stable)"), "{all}");
}

#[test]
fn a_default_channel_is_told_from_a_subscription_without_one() {
    let desk = Desk::new();
    catalog(
        &desk,
        &[
            ("stable", json!([{"name": "shop.v1.0.0"}])),
            ("fast", json!([{"name": "shop.v1.1.0", "replaces": "shop.v1.0.0"}])),
        ],
    );
    let answer = path(&desk, &["1.0.0"]);
    assert!(answer.out.contains("channel stable (default)"), "{}", answer.out);
    assert!(
        answer
            .err
            .contains("a Subscription without a channel searches all channels, and leads to shop.v1.1.0"),
        "{}",
        answer.err
    );
}

#[test]
fn cycles_are_shown_and_exit_with_1() {
    let desk = Desk::new();
    let entries = json!([{"name": "shop.v1.0.0"}, {"name": "shop.v1.1.0", "replaces": "shop.v1.0.0", "skipRange": ">=1.0.0"},
        {"name": "shop.v1.2.0", "replaces": "shop.v1.1.0"}]);
    catalog(&desk, &[("stable", entries)]);
    let answer = path(&desk, &["1.0.0", "-o", "json"]);
    let printed: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(printed["steps"].as_array().unwrap().len(), 3);
    assert_eq!(printed["end"]["state"], "cycle");
    answer.refused("OLM upgrades in a cycle and never stops: shop.v1.1.0 -> shop.v1.2.0 -> shop.v1.1.0");
    let found = desk.run(&["catalog", "validate", "shop"]).ok();
    assert!(found.contains("catalog-upgrade-cycle"), "{found}");
}

#[test]
fn a_package_without_default_channel_needs_a_channel() {
    let desk = Desk::new();
    catalog(
        &desk,
        &[(
            "stable",
            json!([{"name": "shop.v1.0.0"}, {"name": "shop.v1.1.0", "replaces": "shop.v1.0.0"}]),
        )],
    );
    let file = desk.path("shop/catalog.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("\"defaultChannel\":\"stable\"", "\"defaultChannel\":\"\""),
    )
    .unwrap();
    path(&desk, &["1.0.0"])
        .refused("package shop has no default channel; name one with --channel, or pass --all-channels");
    path(&desk, &["1.0.0", "-c", "stable"]).ok();
}
