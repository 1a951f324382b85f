use std::time::{Duration, Instant};

use super::rows::Rows;
use super::*;
use crate::load;

fn catalog(channels: &[(&str, &str, Vec<ChannelEntry>)]) -> Catalog {
    let mut text = String::new();
    for (package, name, entries) in channels {
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| {
                serde_json::json!({
                    "name": entry.name,
                    "replaces": entry.replaces,
                    "skips": entry.skips,
                    "skipRange": entry.skip_range,
                })
            })
            .collect();
        let blob = serde_json::json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries});
        text.push_str(&format!("{blob}\n"));
    }
    load::text(&text).unwrap().into_iter().collect()
}

fn entry(name: &str, replaces: &str, skips: &[&str]) -> ChannelEntry {
    ChannelEntry {
        name: name.into(),
        replaces: replaces.into(),
        skips: skips.iter().map(|skip| (*skip).into()).collect(),
        ..ChannelEntry::default()
    }
}

/// Entries that each replace the one before and skip `skips` earlier ones.
fn dense(entries: usize, skips: usize) -> Vec<ChannelEntry> {
    let name = |number: usize| format!("p.v{number}");
    (0..entries)
        .map(|number| ChannelEntry {
            name: name(number),
            replaces: number.checked_sub(1).map(name).unwrap_or_default(),
            skips: (number.saturating_sub(skips + 1)..number.saturating_sub(1))
                .map(name)
                .collect(),
            ..ChannelEntry::default()
        })
        .collect()
}

fn width(svg: &str) -> usize {
    let (_, rest) = svg.split_once("width=\"").unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn graphs_of_any_density_are_drawn_soon_and_narrow() {
    for (entries, skips) in [(30, 10), (30, 29), (300, 100), (2000, 20), (5000, 1)] {
        let catalog = catalog(&[("p", "stable", dense(entries, skips))]);
        let started = Instant::now();
        let svg = svg(&catalog, &Selection::default()).unwrap();
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "{entries} with {skips} skips"
        );
        assert!(width(&svg) <= 4000, "{entries} with {skips} skips: {}", width(&svg));
        assert_eq!(svg.matches("<rect x=").count(), entries, "{entries} with {skips} skips");
    }
}

#[test]
fn more_edges_than_the_limit_are_refused_with_the_way_out() {
    let catalog = catalog(&[("p", "stable", dense(2000, 100))]);
    let error = svg(&catalog, &Selection::default()).unwrap_err();
    assert!(
        error.contains("--limit picture-edges=") && error.contains("select a package"),
        "{error}"
    );
}

#[test]
fn an_empty_picture_is_reported() {
    let empty = catalog(&[]);
    assert!(svg(&empty, &Selection::default()).unwrap_err().contains("no channels"));
    let catalog = catalog(&[("p", "stable", vec![])]);
    let select = |package: Option<&str>, channel: Option<&str>| Selection {
        package: package.map(str::to_owned),
        channel: channel.map(str::to_owned),
        ..Selection::default()
    };
    assert!(
        svg(&catalog, &select(Some("nosuch"), None))
            .unwrap_err()
            .contains("nosuch")
    );
    assert!(
        svg(&catalog, &select(Some("p"), Some("beta")))
            .unwrap_err()
            .contains("beta")
    );
    assert!(
        svg(&catalog, &select(Some("p"), None))
            .unwrap()
            .contains("(no entries)")
    );
}

#[test]
fn upgrades_stand_above_what_they_upgrade() {
    let entries = [
        entry("a", "", &[]),
        entry("b", "a", &[]),
        entry("c", "a", &["b", "gone"]),
        entry("c", "", &[]),
    ];
    let rows = Rows::new(&entries, |_, _| false);
    assert_eq!(rows.names.first(), Some(&"c"));
    let row = |name| rows.names.iter().position(|other| *other == name).unwrap();
    assert!(row("c") < row("b") && row("b") < row("a") && row("c") < row("gone"));
    // Circles and entries that name themselves end too.
    let circle = [entry("a", "b", &["a"]), entry("b", "a", &["b", "a"])];
    assert_eq!(Rows::new(&circle, |_, _| false).names.len(), 2);
}

#[test]
fn each_edge_is_drawn() {
    let entries = dense(12, 3);
    let rows = Rows::new(&entries, |_, _| false);
    let drawn: usize = rows.lines.iter().map(|line| line.from.len()).sum();
    assert_eq!(drawn, entries.iter().flat_map(sources).count());
    for (at, line) in rows.lines.iter().enumerate() {
        for other in rows.lines.iter().skip(at + 1) {
            let rows = |line: &super::rows::Line| {
                let all = || line.from.iter().copied().chain([line.to]);
                all().min().unwrap()..=all().max().unwrap()
            };
            let apart = rows(line).end() < rows(other).start() || rows(other).end() < rows(line).start();
            assert!(
                apart || line.lane.is_none() || line.lane != other.lane,
                "{line:?} and {other:?}"
            );
        }
    }
}

#[test]
fn names_stay_text() {
    let hostile = "</text><script>x</script>\u{1b}[2J\u{ffff}\"&";
    let catalog = catalog(&[(hostile, hostile, vec![entry(hostile, hostile, &["x"])])]);
    let svg = svg(&catalog, &Selection::default()).unwrap();
    assert!(!svg.contains("<script") && !svg.contains('\u{1b}') && !svg.contains('\u{ffff}'));
    let dot = dot(&catalog, &Selection::default()).unwrap();
    assert!(!dot.contains('\u{1b}'));
}

#[test]
fn all_forms_leave_out_what_lies_below_the_minimum_edge_and_mark_what_v0_ignores() {
    let entries = vec![
        entry("p.v1", "", &[]),
        entry("p.v2", "p.v1", &["p.v0"]),
        // OLM v0 upgrades p.v0 and p.v1 directly to this entry.
        entry("p.v3", "p.v2", &["p.v0", "p.v1"]),
    ];
    let mut catalog = catalog(&[("p", "stable", entries)]);
    for version in 1..=3 {
        let blob = serde_json::json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{version}"), "image": "i",
            "properties": [{"type": "olm.package", "value": {"packageName": "p", "version": format!("{version}.0.0")}}]});
        catalog.extend(load::text(&format!("{blob}\n")).unwrap().into_iter().collect());
    }
    let above = Selection {
        minimum_edge: Some("p.v2".into()),
        ..Selection::default()
    };
    for text in [svg(&catalog, &above).unwrap(), dot(&catalog, &above).unwrap()] {
        assert!(text.contains("p.v2") && !text.contains("p.v1"), "{text}");
    }
    let unknown = Selection {
        minimum_edge: Some("p.v9".into()),
        ..Selection::default()
    };
    assert!(
        svg(&catalog, &unknown)
            .unwrap_err()
            .contains("unknown minimum edge name")
    );
    assert!(
        dot(&catalog, &unknown)
            .unwrap_err()
            .contains("unknown minimum edge name")
    );
    let v0 = Selection {
        v0_semantics: true,
        ..Selection::default()
    };
    let plain = dot(&catalog, &Selection::default()).unwrap();
    let marked = dot(&catalog, &v0).unwrap();
    let red = |text: &str| {
        text.lines()
            .filter(|line| line.contains("color=red"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(red(&plain).len(), 0);
    assert_eq!(
        red(&marked),
        [
            "  \"p/stable/p.v0\" -> \"p/stable/p.v2\" [label=\"skips\", style=dashed, color=red];",
            "  \"p/stable/p.v1\" -> \"p/stable/p.v2\" [label=\"replaces\", style=dashed, color=red];"
        ]
    );
    assert_eq!(svg(&catalog, &v0).unwrap().matches("stroke=\"red\"").count(), 2);
}
