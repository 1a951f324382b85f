use super::*;
use olmkit_catalog::load;

/// A catalog of package p with bundles p.v1 to p.v4, and p.v5, a pre-release.
fn source(name: &str, priority: i32, entries: &str, more: &str) -> Source {
    let mut text = format!(
        "{{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}}\
         {{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":{entries}}}{more}"
    );
    for number in 1..=5 {
        let pre = if number == 5 { "-rc1" } else { "" };
        text.push_str(&format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v{number}\",\"image\":\"r.io/p:v{number}\",\
             \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"{number}.0.0{pre}\"}}}}]}}"
        ));
    }
    Source {
        name: name.to_owned(),
        priority,
        catalog: load::text(&text).unwrap().into_iter().collect(),
    }
}

const CHAIN: &str = r#"[{"name":"p.v1"},{"name":"p.v2","replaces":"p.v1"},{"name":"p.v3","replaces":"p.v2","skips":["p.v1"]},
    {"name":"p.v4","replaces":"p.v3","skipRange":">=1.5.0 <3.0.0"}]"#;

fn request() -> Request {
    Request {
        package: "p".to_owned(),
        ..Request::default()
    }
}

#[track_caller]
fn chosen(request: &Request, sources: &[Source]) -> String {
    let resolution = resolve(request, sources);
    let chosen = resolution.chosen().unwrap_or_else(|| panic!("{resolution:?}"));
    format!("{} from {}", chosen.bundle, chosen.catalog)
}

#[track_caller]
fn refused(request: &Request, sources: &[Source]) -> String {
    let resolution = resolve(request, sources);
    assert_eq!(resolution.chosen(), None);
    resolution.refusal.unwrap().to_string()
}

#[test]
fn without_a_version_the_highest_of_all_channels_is_chosen_pre_releases_too() {
    let sources = [source("a", 0, CHAIN, "")];
    assert_eq!(chosen(&request(), &sources), "p.v5 from a");
    let mut request = request();
    request.channels = vec!["c".to_owned()];
    assert_eq!(chosen(&request, &sources), "p.v4 from a");
    request.version = Some(VersionRange::parse("<3").unwrap());
    assert_eq!(chosen(&request, &sources), "p.v2 from a");
    let resolution = resolve(&request, &sources);
    let of = |name: &str| resolution.candidates.iter().find(|one| one.bundle == name).unwrap();
    assert_eq!(of("p.v1").reasons, ["p.v2 is newer"]);
    assert_eq!(of("p.v4").reasons, ["its version is outside <3"]);
    assert_eq!(
        of("p.v5").reasons,
        [
            "it is not in channel c",
            "its version is outside <3, which names no pre-release and so contains none"
        ]
    );
}

#[test]
fn only_edges_lead_on_from_what_is_installed() {
    let sources = [source("a", 0, CHAIN, "")];
    let mut request = request();
    for (installed, then) in [
        ("p.v1", "p.v3"),
        ("2.0.0", "p.v4"),
        ("p.v4", "p.v4"),
        ("gone@2.5.0", "p.v4"),
        ("2.5.0", "p.v4"),
    ] {
        request.installed = Some(Installed::find(installed, "p", &sources).unwrap());
        assert_eq!(chosen(&request, &sources), format!("{then} from a"), "from {installed}");
    }
    request.installed = Some(Installed::find("p.v3", "p", &sources).unwrap());
    let resolution = resolve(&request, &sources);
    let of = |name: &str| resolution.candidates.iter().find(|one| one.bundle == name).unwrap();
    assert_eq!(of("p.v4").reasons, ["it replaces p.v3 in channel c"]);
    assert_eq!(of("p.v2").reasons, ["no edge leads from p.v3 to it: it replaces p.v1"]);
    request.version = Some(VersionRange::parse("2.0.0").unwrap());
    assert_eq!(
        refused(&request, &sources),
        "error upgrading from currently installed version \"3.0.0\": no bundles found for package \"p\" matching version \"2.0.0\""
    );
    request.policy = Policy::SelfCertified;
    assert_eq!(chosen(&request, &sources), "p.v2 from a");
    let error = Installed::find("nobody", "p", &sources).unwrap_err().to_string();
    assert!(error.contains("write NAME@VERSION"), "{error}");
}

#[test]
fn edges_of_channels_that_are_not_selected_do_not_count() {
    let other = r#"{"schema":"olm.channel","package":"p","name":"d","entries":[{"name":"p.v3"},{"name":"p.v4","replaces":"p.v1"}]}"#;
    let sources = [source("a", 0, r#"[{"name":"p.v4","replaces":"p.v3"}]"#, other)];
    let mut request = request();
    request.installed = Some(Installed::find("p.v1", "p", &sources).unwrap());
    assert_eq!(chosen(&request, &sources), "p.v4 from a");
    request.channels = vec!["c".to_owned()];
    assert_eq!(
        refused(&request, &sources),
        "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"p\" in channels [c]"
    );
}

#[test]
fn deprecated_bundles_come_last_and_priorities_settle_between_catalogs() {
    let deprecates = r#"{"schema":"olm.deprecations","package":"p","entries":[
        {"reference":{"schema":"olm.bundle","name":"p.v4"},"message":"old"},
        {"reference":{"schema":"olm.channel","name":"c"},"message":"use d"}]}"#;
    let mut request = request();
    request.channels = vec!["c".to_owned()];
    let deprecating = [source("a", 0, CHAIN, deprecates)];
    assert_eq!(chosen(&request, &deprecating), "p.v3 from a");
    let resolution = resolve(&request, &deprecating);
    assert_eq!(resolution.deprecations, ["channel c is deprecated: use d"]);
    request.version = Some(VersionRange::parse("4").unwrap());
    assert_eq!(chosen(&request, &deprecating), "p.v4 from a");
    // Deprecation takes precedence over priority.
    let both = [source("a", 9, CHAIN, deprecates), source("b", 0, CHAIN, "")];
    assert_eq!(chosen(&request, &both), "p.v4 from b");
    request.version = None;
    assert_eq!(chosen(&request, &both), "p.v3 from a");
    let equal = [
        source("b", 1, CHAIN, ""),
        source("a", 1, CHAIN, ""),
        source("c", 0, CHAIN, ""),
    ];
    assert_eq!(
        refused(&request, &equal),
        "found bundles for package \"p\" in channels [c] in multiple catalogs with the same priority [a b c]"
    );
}

#[test]
fn a_choice_with_dependencies_is_refused_and_no_other_is_tried() {
    let mut one = source("a", 0, CHAIN, "");
    let last = one
        .catalog
        .bundles
        .iter_mut()
        .find(|bundle| bundle.name == "p.v4")
        .unwrap();
    last.properties.push(olmkit_catalog::model::Property {
        kind: "olm.gvk.required".to_owned(),
        value: Some(r#"{"group":"g","version":"v1","kind":"K"}"#.to_owned()),
    });
    let mut request = request();
    request.channels = vec!["c".to_owned()];
    let error = refused(&request, &[one]);
    assert_eq!(
        error,
        "validating bundle \"p.v4\": bundle \"p.v4\" has a dependency declared via property \"olm.gvk.required\" which is currently not supported"
    );
    let empty = resolve(
        &request,
        &[Source {
            name: "e".to_owned(),
            priority: 0,
            catalog: Catalog::default(),
        }],
    );
    assert_eq!(empty.without_package, ["e"]);
    assert_eq!(
        empty.refusal.unwrap().to_string(),
        "no bundles found for package \"p\" in channels [c]"
    );
}

#[test]
fn build_metadata_is_a_release() {
    let sources = [source("a", 0, CHAIN, "")];
    let mut request = request();
    request.version = Some(VersionRange::parse("4.0.0").unwrap());
    // Not the same release, and no edge from it.
    request.installed = Some(Installed::new("p.other", "4.0.0+2").unwrap());
    assert!(refused(&request, &sources).starts_with("error upgrading from currently installed version \"4.0.0+2\""));
    // No release, because it has a leading zero: only the version counts.
    request.installed = Some(Installed::new("p.other", "4.0.0+02").unwrap());
    assert_eq!(chosen(&request, &sources), "p.v4 from a");
}

/// Each bundle was looked for among all entries and all deprecations.
#[test]
fn a_package_of_countless_bundles_is_resolved_soon() {
    let many = 30_000;
    let list = |item: &dyn Fn(usize) -> String| (0..many).map(item).collect::<Vec<_>>().join(",");
    let entries = list(&|number| format!("{{\"name\":\"p.v{number}\"}}"));
    let old = list(&|number| {
        format!("{{\"reference\":{{\"schema\":\"olm.bundle\",\"name\":\"p.v{number}\"}},\"message\":\"m\"}}")
    });
    let bundle = |number: usize| {
        format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v{number}\",\"image\":\"i\",\"properties\":\
             [{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"{number}.0.0\"}}}}]}}"
        )
    };
    let bundles: String = (6..many).map(bundle).collect();
    let more = format!("{bundles}{{\"schema\":\"olm.deprecations\",\"package\":\"p\",\"entries\":[{old}]}}");
    let sources = [source("a", 0, &format!("[{entries}]"), &more)];
    let start = std::time::Instant::now();
    let request = Request {
        channels: vec!["c".to_owned()],
        ..request()
    };
    assert_eq!(chosen(&request, &sources), format!("p.v{} from a", many - 1));
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}
