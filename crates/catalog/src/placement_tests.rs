use super::*;
use crate::{edit, load, path};

/// A channel in which each item is `VERSION[ replaces VERSION][ skips VERSION]`.
fn catalog(entries: &[&str]) -> Catalog {
    parse(&source(entries))
}

fn parse(text: &str) -> Catalog {
    load::text(text).unwrap().into_iter().collect()
}

fn source(entries: &[&str]) -> String {
    let mut text =
        String::from("schema: olm.package\nname: p\n---\nschema: olm.channel\npackage: p\nname: c\nentries:\n");
    let mut bundles = String::new();
    for entry in entries {
        let words: Vec<&str> = entry.split(' ').collect();
        text.push_str(&format!("- name: p.v{}\n", words[0]));
        for pair in words[1..].chunks(2) {
            match pair {
                ["skips", name] => text.push_str(&format!("  skips: [p.v{name}]\n")),
                [key, name] => text.push_str(&format!("  {key}: p.v{name}\n")),
                _ => unreachable!("{entry}"),
            }
        }
        bundles.push_str(&format!("---\n{}", blob(words[0])));
    }
    text + &bundles
}

fn blob(version: &str) -> String {
    format!(
        "schema: olm.bundle\npackage: p\nname: p.v{version}\nproperties: [{{type: olm.package, value: {{packageName: p, \
         version: {version}}}}}]\n"
    )
}

fn bundle(version: &str) -> Bundle {
    load::text(&blob(version))
        .unwrap()
        .into_iter()
        .collect::<Catalog>()
        .bundles
        .remove(0)
}

fn placed(entries: &[&str], new: &str, edges: &NewEdges) -> Result<(String, Vec<String>, Option<Above>), String> {
    let placement = place(&catalog(entries), "c", &bundle(new), edges).map_err(|error| error.to_string())?;
    assert_eq!(placement.lowers, None);
    Ok((
        placement.edges.replaces.unwrap_or_default(),
        placement.edges.skips,
        placement.above,
    ))
}

fn plain() -> NewEdges {
    NewEdges::Given(Edges::default())
}

fn replacing(name: &str) -> NewEdges {
    NewEdges::Given(Edges {
        replaces: Some(name.to_owned()),
        ..Edges::default()
    })
}

const CHAIN: [&str; 3] = ["1.0.0", "1.1.0 replaces 1.0.0", "2.0.0 replaces 1.1.0"];

#[test]
fn a_patch_release_goes_below_a_newer_head() {
    let between = (
        "p.v1.1.0".to_owned(),
        Vec::new(),
        Some(Above::Replaces("p.v2.0.0".to_owned())),
    );
    assert_eq!(placed(&CHAIN, "1.1.1", &plain()).unwrap(), between);
    assert_eq!(placed(&CHAIN, "1.1.1", &replacing("p.v1.1.0")).unwrap(), between);
    let first = placed(&CHAIN, "0.9.0", &plain()).unwrap();
    assert_eq!(
        first,
        (String::new(), Vec::new(), Some(Above::Replaces("p.v1.0.0".to_owned())))
    );
    assert_eq!(
        placed(&CHAIN, "2.0.1", &plain()).unwrap(),
        ("p.v2.0.0".to_owned(), Vec::new(), None)
    );
    assert_eq!(
        placed(&["2.0.0-rc.1"], "1.9.9", &plain()).unwrap().2,
        Some(Above::Replaces("p.v2.0.0-rc.1".to_owned()))
    );
}

#[test]
fn edges_by_version_go_below_a_newer_head_too() {
    assert_eq!(
        placed(&CHAIN, "1.1.1", &NewEdges::ByVersion).unwrap(),
        (
            "p.v1.0.0".to_owned(),
            vec!["p.v1.1.0".to_owned()],
            Some(Above::Replaces("p.v2.0.0".to_owned()))
        )
    );
    let patched = ["1.0.0", "1.1.0 replaces 1.0.0", "1.1.2 replaces 1.0.0 skips 1.1.0"];
    assert_eq!(
        placed(&patched, "1.1.1", &NewEdges::ByVersion).unwrap(),
        (
            "p.v1.0.0".to_owned(),
            vec!["p.v1.1.0".to_owned()],
            Some(Above::Skips("p.v1.1.2".to_owned()))
        )
    );
}

#[test]
fn a_bundle_without_a_place_is_rejected_with_the_changes_that_make_room() {
    let skipping = ["1.0.0", "1.1.0 replaces 1.0.0", "2.0.0 replaces 1.0.0 skips 1.1.0"];
    let error = placed(&skipping, "1.1.1", &plain()).unwrap_err();
    assert_eq!(
        error,
        "channel c has no place for p.v1.1.1, which is older than p.v2.0.0: no newer entry replaces p.v1.1.0. Add p.v1.1.1 \
         to a separate channel with --channel NAME --create-channel, or add it to `skips` of p.v2.0.0 and repeat the command"
    );
    let room = ["1.0.0", "1.1.0 replaces 1.0.0", "2.0.0 replaces 1.1.0 skips 1.1.1"];
    assert_eq!(
        placed(&room, "1.1.1", &plain()).unwrap(),
        ("p.v1.1.0".to_owned(), Vec::new(), None)
    );
}

#[test]
fn build_metadata_orders_bundles_of_one_version() {
    let builds = ["1.0.0+1", "1.0.0+10 replaces 1.0.0+1"];
    assert_eq!(
        placed(&builds, "1.0.0+3", &plain()).unwrap(),
        (
            "p.v1.0.0+1".to_owned(),
            Vec::new(),
            Some(Above::Replaces("p.v1.0.0+10".to_owned()))
        )
    );
    assert_eq!(placed(&builds, "1.0.0+11", &plain()).unwrap().0, "p.v1.0.0+10");
    assert_eq!(placed(&["1.0.0"], "1.0.0+1", &plain()).unwrap().0, "p.v1.0.0");
}

#[test]
fn a_bundle_replaces_the_next_entry_that_it_does_not_skip() {
    let skipping = |names: &[&str]| {
        NewEdges::Given(Edges {
            skips: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Edges::default()
        })
    };
    let (replaces, _, above) = placed(&CHAIN, "1.1.1", &skipping(&["p.v1.1.0"])).unwrap();
    assert_eq!(replaces, "p.v1.0.0");
    assert_eq!(above, Some(Above::Replaces("p.v2.0.0".to_owned())));
    let all = ["p.v2.0.0", "p.v1.1.0"];
    assert_eq!(placed(&CHAIN, "2.0.1", &skipping(&all)).unwrap().0, "p.v1.0.0");
}

#[test]
fn several_heads_are_joined_by_the_flags_in_the_message() {
    let error = placed(&["1.0.0", "1.10.0", "1.9.0"], "2.0.0", &plain()).unwrap_err();
    assert_eq!(
        error,
        "channel c has several heads (p.v1.0.0, p.v1.10.0, p.v1.9.0); to join them, use --replaces p.v1.10.0 --skips \
         p.v1.0.0,p.v1.9.0"
    );
}

#[test]
fn an_explicit_downgrade_is_made_and_named() {
    let placement = place(&catalog(&CHAIN), "c", &bundle("1.1.1"), &replacing("p.v2.0.0")).unwrap();
    assert_eq!(placement.lowers.as_deref(), Some("p.v2.0.0"));
}

#[test]
fn a_channel_that_does_not_exist_starts_with_the_bundle() {
    let placement = place(&catalog(&CHAIN), "new", &bundle("0.1.0"), &plain()).unwrap();
    assert_eq!(placement.edges.replaces.as_deref(), Some(""));
    assert_eq!((placement.above, placement.lowers), (None, None));
}

/// The bundles from which OLM does not reach the head, after an addition.
fn stranded(catalog: &Catalog) -> Vec<String> {
    let entries = catalog.channels[0].entries();
    let heads = graph::heads(entries);
    let [head] = heads.as_slice() else {
        panic!("{heads:?}");
    };
    let reaches = |name: &str| {
        let question = path::Question {
            package: "p",
            channel: Some("c"),
            from: name,
            to: None,
        };
        path::find(catalog, question).unwrap().last() == *head
    };
    entries
        .iter()
        .map(|entry| entry.name.clone())
        .filter(|name| !reaches(name))
        .collect()
}

/// Adds a bundle to the source, as the command does.
fn added(text: &str, version: &str, edges: &NewEdges) -> Result<String, String> {
    let bundle = bundle(version);
    let placement = place(&parse(text), "c", &bundle, edges).map_err(|error| error.to_string())?;
    edit::add(text, &bundle, &format!("---\n{}", blob(version)), "c", &placement).map_err(|error| error.to_string())
}

#[test]
fn a_bundle_is_placed_below_an_entry_that_olm_keeps() {
    let rows = [
        // A lower minor version.
        (vec!["1.0.10", "1.0.12 skips 1.0.10"], "0.0.4"),
        // A patch below one that a later patch skips.
        (vec!["1.0.10", "1.0.12 skips 1.0.10", "1.0.13 skips 1.0.12"], "1.0.11"),
        // A patch of an older minor version.
        (
            vec!["1.0.0", "1.1.0 replaces 1.0.0", "1.2.0 replaces 1.0.0 skips 1.1.0"],
            "1.0.5",
        ),
    ];
    for (entries, new) in rows {
        for edges in [plain(), NewEdges::ByVersion] {
            let before = stranded(&catalog(&entries));
            match added(&source(&entries), new, &edges) {
                Ok(text) => assert_eq!(
                    stranded(&parse(&text)),
                    before,
                    "{new} in {entries:?}, {edges:?}\n{text}"
                ),
                Err(error) => assert!(error.contains("has no place"), "{error}"),
            }
        }
    }
}

#[test]
fn bundles_in_any_order_make_a_channel_that_olm_follows_to_its_head() {
    let mut state = 33_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let (mut additions, mut rejected) = (0, 0);
    for _ in 0..100 {
        let mut text = "schema: olm.package\nname: p\n".to_owned();
        for _ in 0..7 {
            let edges = [plain(), NewEdges::ByVersion][random(2) as usize].clone();
            let version = format!("{}.{}.{}", random(2), random(3), random(3));
            let before = parse(&text);
            if before
                .bundles
                .iter()
                .any(|bundle| bundle.name == format!("p.v{version}"))
            {
                continue;
            }
            match added(&text, &version, &edges) {
                Ok(new) => text = new,
                Err(error) => {
                    // The advice makes room.
                    rejected += 1;
                    let (_, above) = error.split_once("or add it to `skips` of ").expect(&error);
                    let (above, _) = above.split_once(" and repeat").unwrap();
                    let mut room = text.clone();
                    let at = room.find(&format!("- name: {above}\n")).unwrap();
                    let entry = room[at..].lines().skip(1).take_while(|line| line.starts_with("  "));
                    let skips = entry.clone().position(|line| line.starts_with("  skips:"));
                    let (at, new) = match skips {
                        Some(_) => (
                            at + room[at..].find("  skips:\n").unwrap() + "  skips:\n".len(),
                            format!("  - p.v{version}\n"),
                        ),
                        None => (
                            at + format!("- name: {above}\n").len(),
                            format!("  skips:\n  - p.v{version}\n"),
                        ),
                    };
                    room.insert_str(at, &new);
                    text =
                        added(&room, &version, &edges).unwrap_or_else(|again| panic!("{error}, then {again}\n{room}"));
                }
            }
            additions += 1;
            assert_eq!(stranded(&parse(&text)), [""; 0], "{version} by {edges:?}\n{text}");
            let after = parse(&text);
            let head = graph::heads(after.channels[0].entries())[0].to_owned();
            let newest = after
                .bundles
                .iter()
                .max_by(|left, right| version_of(left).cmp(&version_of(right)));
            assert_eq!(newest.unwrap().name, head, "{text}");
        }
    }
    assert!(additions > 400 && rejected > 0, "{additions} {rejected}");
}

fn version_of(bundle: &Bundle) -> Version {
    super::version(bundle).unwrap()
}
