use super::*;
use crate::load;

/// A package `shop` with channels, and a bundle for each entry.
fn catalog(channels: &[(&str, &str)], deprecated: &[&str]) -> Catalog {
    let mut text = format!(
        "{{\"schema\":\"olm.package\",\"name\":\"shop\",\"defaultChannel\":\"{}\"}}",
        channels[0].0
    );
    let mut names = BTreeSet::new();
    for (channel, entries) in channels {
        let entries: serde_json::Value = serde_json::from_str(entries).unwrap();
        names.extend(
            entries
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry["name"].as_str().unwrap().to_owned()),
        );
        text.push_str(
            &serde_json::json!({"schema": "olm.channel", "package": "shop", "name": channel, "entries": entries})
                .to_string(),
        );
    }
    for name in names {
        let version = name.split_once(".v").unwrap().1.replacen("_", "+", 1);
        let mut properties =
            vec![serde_json::json!({"type": "olm.package", "value": {"packageName": "shop", "version": version}})];
        if deprecated.contains(&name.as_str()) {
            properties.push(serde_json::json!({"type": "olm.deprecated", "value": {}}));
        }
        text.push_str(
            &serde_json::json!({"schema": "olm.bundle", "package": "shop", "name": name, "image": "r.example.com/s:1",
                "properties": properties})
            .to_string(),
        );
    }
    load::text(&text).unwrap().into_iter().collect()
}

fn ask<'q>(catalog: &Catalog, channel: Option<&'q str>, from: &'q str, to: Option<&'q str>) -> Result<Path, Error> {
    let package = "shop";
    find(
        catalog,
        Question {
            package,
            channel,
            from,
            to,
        },
    )
}

/// The chain and the end.
fn told(catalog: &Catalog, from: &str) -> String {
    let path = ask(catalog, Some("stable"), from, None).unwrap();
    let mut text = path.from.name.clone();
    for step in &path.steps {
        text.push_str(&format!(" {}> {}", step.by.as_str(), step.to));
    }
    match path.end {
        End::Newest => text,
        end => format!("{text} {end:?}"),
    }
}

#[test]
fn the_edge_nearest_to_the_head_is_taken() {
    let catalog = catalog(
        &[(
            "stable",
            r#"[{"name":"shop.v1.0.0"},{"name":"shop.v2.0.0","replaces":"shop.v1.0.0"},
            {"name":"shop.v3.0.0","replaces":"shop.v2.0.0","skips":["shop.v1.0.0"]},
            {"name":"shop.v4.0.0","replaces":"shop.v3.0.0","skipRange":">=1.5.0 <3.0.0"}]"#,
        )],
        &[],
    );
    assert_eq!(
        told(&catalog, "shop.v1.0.0"),
        "shop.v1.0.0 skips> shop.v3.0.0 replaces> shop.v4.0.0"
    );
    assert_eq!(told(&catalog, "shop.v2.0.0"), "shop.v2.0.0 skipRange> shop.v4.0.0");
    assert_eq!(told(&catalog, "2.5.0"), "2.5.0 skipRange> shop.v4.0.0");
    let path = ask(&catalog, Some("stable"), "v1.0.0", Some("3.0.0")).unwrap();
    assert_eq!((path.last(), &path.end), ("shop.v3.0.0", &End::Target));
    assert_eq!(
        path.steps[0].passed_over,
        ["shop.v2.0.0 (replaces) is further from the head"]
    );
    let path = ask(&catalog, Some("stable"), "2.0.0", Some("3.0.0")).unwrap();
    assert!(matches!(path.end, End::Past(_)), "{path:?}");
    assert!(matches!(
        ask(&catalog, Some("stable"), "2.0.0", Some("9.0.0")),
        Err(Error::NoTarget { .. })
    ));
    assert!(matches!(
        ask(&catalog, Some("beta"), "2.0.0", None),
        Err(Error::NoChannel { .. })
    ));
    assert!(matches!(
        ask(&catalog, Some("stable"), "shop", None),
        Err(Error::From(_))
    ));
}

#[test]
fn skipped_entries_are_no_upgrade() {
    let graph = |entries| catalog(&[("stable", entries)], &[]);
    // cases/graph/h and c of issue 33.
    let h = graph(
        r#"[{"name":"shop.v1.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0","skipRange":"<1.1.0"},
        {"name":"shop.v1.2.0","replaces":"shop.v1.1.0","skips":["shop.v1.1.0","shop.v1.0.0"]}]"#,
    );
    assert_eq!(
        told(&h, "0.8.0"),
        "0.8.0 Stays(\"the skipRange of shop.v1.1.0 contains its version, but OLM drops that entry: shop.v1.2.0 skips it\")"
    );
    assert_eq!(told(&h, "shop.v1.0.0"), "shop.v1.0.0 skips> shop.v1.2.0");
    let c = graph(
        r#"[{"name":"shop.v1.4.0"},{"name":"shop.v1.4.1","skips":["shop.v1.4.0"]},
        {"name":"shop.v1.4.2","skips":["shop.v1.4.1"]},{"name":"shop.v1.4.3","skips":["shop.v1.4.2"]}]"#,
    );
    assert_eq!(
        told(&c, "shop.v1.4.0"),
        "shop.v1.4.0 Stays(\"shop.v1.4.1 skips it, but OLM drops that entry: shop.v1.4.2 skips it\")"
    );
}

#[test]
fn installed_bundles_need_not_be_in_the_catalog() {
    let g = catalog(
        &[(
            "stable",
            r#"[{"name":"shop.v1.1.0","replaces":"shop.v1.0.0","skips":["shop.v0.9.0","shop-a"]},
            {"name":"shop.v1.2.0","replaces":"shop.v1.1.0","skipRange":"<0.0.1"}]"#,
        )],
        &[],
    );
    assert_eq!(
        told(&g, "shop.v1.0.0"),
        "shop.v1.0.0 replaces> shop.v1.1.0 replaces> shop.v1.2.0"
    );
    assert_eq!(
        told(&g, "1.0.0"),
        "shop.v1.0.0 replaces> shop.v1.1.0 replaces> shop.v1.2.0"
    );
    assert_eq!(
        told(&g, "0.9.0"),
        "shop.v0.9.0 skips> shop.v1.1.0 replaces> shop.v1.2.0"
    );
    // Without a version it counts as 0.0.0.
    assert_eq!(told(&g, "shop-a"), "shop-a skipRange> shop.v1.2.0");
    assert_eq!(
        told(&g, "shop-a@1.0.0"),
        "shop-a skips> shop.v1.1.0 replaces> shop.v1.2.0"
    );
    assert!(told(&g, "shop.v0.8.0").contains("no skipRange contains 0.8.0"));
}

#[test]
fn versions_name_bundles_of_any_channel_with_their_build_metadata() {
    let catalog = catalog(
        &[
            ("stable", r#"[{"name":"shop.v1.1.1","replaces":"shop.v1.0.1"}]"#),
            (
                "old",
                r#"[{"name":"shop.v1.0.1"},{"name":"shop.v1.0.1_2","replaces":"shop.v1.0.1"}]"#,
            ),
        ],
        &[],
    );
    assert_eq!(told(&catalog, "1.0.1"), "shop.v1.0.1 replaces> shop.v1.1.1");
    assert!(told(&catalog, "1.0.1+2").starts_with("shop.v1.0.1_2 Stays"));
    assert!(told(&catalog, "1.0.1+3").starts_with("1.0.1+3 Stays"));
}

#[test]
fn deprecated_bundles_are_not_installed_and_do_not_stay() {
    let entries = r#"[{"name":"shop.v1.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0"},
        {"name":"shop.v1.2.0","replaces":"shop.v1.1.0","skips":["shop.v1.0.0"]}]"#;
    let head = catalog(&[("stable", entries)], &["shop.v1.2.0"]);
    assert_eq!(told(&head, "shop.v1.0.0"), "shop.v1.0.0 replaces> shop.v1.1.0");
    let path = ask(&head, Some("stable"), "shop.v1.0.0", None).unwrap();
    assert_eq!(
        path.notes,
        ["the head shop.v1.2.0 has the property olm.deprecated, so OLM never installs it"]
    );
    assert_eq!(
        path.steps[0].passed_over,
        ["shop.v1.2.0 (skips): it has the property olm.deprecated"]
    );
    assert!(told(&head, "shop.v1.2.0").starts_with("shop.v1.2.0 Rejected"));
    let middle = catalog(&[("stable", entries)], &["shop.v1.1.0"]);
    assert_eq!(told(&middle, "shop.v1.1.0"), "shop.v1.1.0 replaces> shop.v1.2.0");
}

#[test]
fn cycles_are_an_end_and_a_bundle_is_no_upgrade_of_itself() {
    let graph = |entries| catalog(&[("stable", entries)], &[]);
    let round = graph(
        r#"[{"name":"shop.v1.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0","skipRange":">=1.0.0"},
        {"name":"shop.v1.2.0","replaces":"shop.v1.1.0"}]"#,
    );
    assert_eq!(
        told(&round, "shop.v1.2.0"),
        "shop.v1.2.0 skipRange> shop.v1.1.0 replaces> shop.v1.2.0 Cycle(\"shop.v1.2.0 -> shop.v1.1.0 -> shop.v1.2.0\")"
    );
    let itself = catalog(
        &[(
            "stable",
            r#"[{"name":"shop.v1.0.0","skipRange":"<2.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0","skipRange":"<=1.1.0"},
            {"name":"shop.v1.2.0","replaces":"shop.v1.1.0"}]"#,
        )],
        &["shop.v1.2.0"],
    );
    assert_eq!(told(&itself, "shop.v1.1.0"), "shop.v1.1.0");
    let refused = graph(
        r#"[{"name":"shop.v3.0.0","replaces":"shop.v2.0.0","skips":["shop.v2.0.0","shop.v1.0.0"]},
        {"name":"shop.v2.0.0","replaces":"shop.v1.0.0"},{"name":"shop.v1.0.0","replaces":"shop.v2.0.0"}]"#,
    );
    assert!(told(&refused, "shop.v1.0.0").contains("a cycle exists in the chain of replacement"));
}

/// The errors of OLM's `sortChannel`, which it reports in full.
#[test]
fn refusals_are_those_of_olm() {
    let refused = |entries| {
        let catalog = catalog(&[("stable", entries)], &[]);
        match ask(&catalog, Some("stable"), "shop.v1.0.0", None).unwrap().end {
            End::Rejected(reason) => reason,
            end => panic!("{end:?}"),
        }
    };
    let shop = r#"in channel "stable" of package "shop""#;
    for (entries, message) in [
        (
            r#"[{"name":"shop.v1.0.0","replaces":"shop.v1.1.0"},{"name":"shop.v1.1.0","skips":["shop.v1.0.0"]},{"name":"shop.v1.2.0","skips":["shop.v1.1.0","shop.v1.2.0"]}]"#,
            format!("no channel heads (entries not replaced by another entry) found {shop}"),
        ),
        (
            r#"[{"name":"shop.v3.0.0","replaces":"shop.v2.0.0"},{"name":"shop.v2.0.0","replaces":"shop.v1.0.0"},{"name":"shop.v1.0.0","replaces":"shop.v2.0.0"}]"#,
            format!("a cycle exists in the chain of replacement beginning with \"shop.v3.0.0\" {shop}"),
        ),
        (
            r#"[{"name":"shop.v1.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0"},{"name":"shop.v2.0.0"}]"#,
            format!(
                "a unique replacement chain within a channel is required to determine the relative order between channel entries, \
                 but 2 replacement chains were found {shop}: shop.v1.1.0...shop.v1.0.0, shop.v2.0.0"
            ),
        ),
        // A skipped entry is in no chain.
        (
            r#"[{"name":"shop.v1.0.0"},{"name":"shop.v1.1.0","replaces":"shop.v1.0.0"},{"name":"shop.v1.2.0","replaces":"shop.v1.0.0"},{"name":"shop.v2.0.0","skips":["shop.v1.0.0"]}]"#,
            format!(
                "a unique replacement chain within a channel is required to determine the relative order between channel entries, \
                 but 3 replacement chains were found {shop}: shop.v1.1.0, shop.v1.2.0, shop.v2.0.0"
            ),
        ),
    ] {
        assert_eq!(refused(entries), format!("OLM upgrades nothing: {message}"));
    }
}

#[test]
fn a_subscription_without_a_channel_searches_all() {
    let catalog = catalog(
        &[
            ("stable", r#"[{"name":"shop.v1.0.0"}]"#),
            ("fast", r#"[{"name":"shop.v1.1.0","replaces":"shop.v1.0.0"}]"#),
        ],
        &[],
    );
    assert_eq!(ask(&catalog, Some("stable"), "1.0.0", None).unwrap().steps, []);
    let path = ask(&catalog, None, "1.0.0", None).unwrap();
    assert_eq!((path.last(), path.steps[0].channel.as_str()), ("shop.v1.1.0", "fast"));
}
