use super::*;

#[test]
fn platforms_are_spelled_as_engines_spell_them() {
    let platform: Platform = "linux/arm/v7".parse().unwrap();
    assert_eq!(platform.to_string(), "linux/arm/v7");
    assert!("linux".parse::<Platform>().is_err());
}

#[test]
fn exact_variant_comes_before_plain_and_lower_ones() {
    let order = |wanted: &str, have: &[&str]| -> Vec<String> {
        let wanted: Platform = wanted.parse().unwrap();
        let mut ranked: Vec<(u32, String)> = have
            .iter()
            .filter_map(|text| Some((wanted.preference(&text.parse().unwrap())?, (*text).to_owned())))
            .collect();
        ranked.sort();
        ranked.into_iter().map(|(_, text)| text).collect()
    };
    let amd = [
        "linux/amd64/v3",
        "linux/amd64/v2",
        "linux/amd64/v1",
        "linux/amd64",
        "linux/386",
    ];
    assert_eq!(order("linux/amd64", &amd), ["linux/amd64", "linux/amd64/v1"]);
    assert_eq!(
        order("linux/amd64/v2", &amd),
        ["linux/amd64/v2", "linux/amd64", "linux/amd64/v1"]
    );
    let arm = [
        "linux/arm/v8",
        "linux/arm/v5",
        "linux/arm/v6",
        "linux/arm/v7",
        "linux/arm",
    ];
    let all = [
        "linux/arm",
        "linux/arm/v7",
        "linux/arm/v6",
        "linux/arm/v5",
        "linux/arm/v8",
    ];
    assert_eq!(order("linux/arm", &arm), all);
    assert_eq!(
        order("linux/arm/v6", &arm),
        ["linux/arm/v6", "linux/arm", "linux/arm/v5"]
    );
    let arm64 = [
        "linux/arm64/v9.2",
        "linux/arm64/v9",
        "linux/arm64/v8.6",
        "linux/arm64/v8",
        "linux/arm64",
    ];
    assert_eq!(order("linux/arm64", &arm64), ["linux/arm64", "linux/arm64/v8"]);
    assert_eq!(
        order("linux/arm64/v9", &arm64),
        ["linux/arm64/v9", "linux/arm64", "linux/arm64/v8"]
    );
    assert_eq!(
        order("linux/arm64/v9.1", &arm64[2..4]),
        ["linux/arm64/v8.6", "linux/arm64/v8"]
    );
    assert_eq!(
        order("linux/ppc64le", &["linux/ppc64le/power9", "windows/ppc64le"]),
        [""; 0]
    );
}

#[test]
fn documents_of_two_kinds_are_ambiguous() {
    let (manifest, index) = (media_type::OCI_MANIFEST, media_type::OCI_INDEX);
    for (text, kind) in [
        (r#"{"config":{},"layers":[],"manifests":[]}"#, manifest),
        (r#"{"config":{},"layers":[],"MANIFESTS":[]}"#, manifest),
        (r#"{"config":{},"layers":[],"manife\u017fts":[]}"#, manifest),
        (r#"{"config":{},"fsLayers":[]}"#, media_type::DOCKER_MANIFEST),
        (r#"{"manifests":[],"layers":[]}"#, index),
        (r#"{"manifests":[],"config":{}}"#, media_type::DOCKER_LIST),
        (r#"{"manifests":[],"Manifests":[]}"#, index),
        (r#"{"Layers":[],"config":{}}"#, manifest),
        (r#"{"layers":[],"layers":[{}],"config":{}}"#, manifest),
        (r#"{"mediaType":"a","config":{},"mediaType":"b"}"#, manifest),
        (
            r#"{"mediaType":"application/vnd.oci.image.index.v1+json","config":{}}"#,
            manifest,
        ),
        (
            r#"{"mediatype":"application/vnd.docker.distribution.manifest.v2+json","manifests":[]}"#,
            index,
        ),
    ] {
        assert!(check_unambiguous(text.as_bytes(), kind).is_err(), "{text}");
    }
    for (text, kind) in [
        (
            r#"{"config":{},"layers":[],"manifests":null,"x":{"manifests":[]}}"#,
            manifest,
        ),
        (r#"{"layers":[],"x":1,"layers":[],"x":2,"config":{}}"#, manifest),
        (
            r#"{"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[]}"#,
            index,
        ),
    ] {
        assert_eq!(check_unambiguous(text.as_bytes(), kind), Ok(()), "{text}");
    }
}

#[test]
fn unknown_fields_and_null_values_are_kept() {
    let text = r#"{"created":"x","architecture":"amd64","os":"windows","config":{"Labels":{"a":null},"Volumes":{"/d":{}},
        "ExposedPorts":{"80/tcp":null}},"rootfs":{"type":"layers","diff_ids":[],"x":1},
        "history":[{"author":"me","empty_layer":null}],"os.version":"10.0","new":{"deep":[1]}}"#;
    let config: ImageConfig = serde_json::from_str(text).unwrap();
    let written = serde_json::to_value(&config).unwrap();
    let mut expected: Value = serde_json::from_str(text).unwrap();
    expected["config"]["Labels"]["a"] = "".into();
    expected["history"][0].as_object_mut().unwrap().remove("empty_layer");
    assert_eq!(written, expected);
}

#[test]
fn names_of_platforms_are_those_of_containerd() {
    for (wanted, have) in [
        ("linux/x86_64", "linux/amd64"),
        ("linux/amd64", "Linux/X86_64"),
        ("linux/aarch64", "linux/arm64/8"),
        ("linux/arm/7", "linux/arm/v7"),
        ("linux/armhf", "linux/arm/v7"),
        ("linux/armel", "linux/arm/v6"),
        ("linux/i386", "linux/386"),
        ("macos/arm64", "darwin/arm64"),
        ("linux/ppc64le", "linux/ppc64le/power8"),
        ("linux/riscv64", "linux/riscv64/rva20u64"),
        ("linux/mips64le", "linux/mips64le/hardfloat"),
    ] {
        let mut parts = have.split('/');
        let mut part = || parts.next().map(str::to_owned);
        // As an index has it: not normalized.
        let have = Platform::new(&part().unwrap(), &part().unwrap(), part());
        assert!(
            wanted.parse::<Platform>().unwrap().preference(&have).is_some(),
            "{wanted} {have}"
        );
    }
    assert_eq!("linux/x86_64".parse::<Platform>().unwrap().architecture, "amd64");
}

#[test]
fn the_version_of_the_system_is_compared() {
    let parse = |text: &str| text.parse::<Platform>().unwrap();
    let have = parse("windows/amd64:10.0.17763.1");
    assert_eq!(have.to_string(), "windows/amd64:10.0.17763.1");
    for wanted in [
        "windows/amd64",
        "windows/amd64:10.0.17763.1",
        "windows/amd64:10.0.17763",
    ] {
        assert_eq!(parse(wanted).preference(&have), Some(0), "{wanted}");
    }
    for wanted in [
        "windows/amd64:10.0.177",
        "windows/amd64:10.0.17763.1.2",
        "windows/amd64:11",
    ] {
        assert_eq!(parse(wanted).preference(&have), None, "{wanted}");
    }
    assert_eq!(parse("windows/amd64:10").preference(&parse("windows/amd64")), None);
    assert!("windows/amd64:".parse::<Platform>().is_err());
}

#[test]
fn configurations_are_read_as_go_reads_them() {
    let text = r#"{"OS":"linux","architecture":"x","architecture":"amd64","Config":{"env":[null,"A=1"],"cmd":["/x"],"volumes":{"/d":{}}},
        "RootFS":{"Type":null,"Diff_IDs":null},"history":[null,{"Created_By":"x","comment":null}],"new":null}"#;
    let config = ImageConfig::parse(text.as_bytes()).unwrap();
    assert_eq!((config.os.as_str(), config.architecture.as_str()), ("linux", "amd64"));
    assert_eq!(
        (config.config.env.len(), config.config.cmd.as_slice()),
        (2, ["/x".to_owned()].as_slice())
    );
    assert_eq!(config.rootfs, RootFs::default());
    assert_eq!(config.history[1].created_by.as_deref(), Some("x"));
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(
        written["config"],
        serde_json::json!({"Env": ["", "A=1"], "Cmd": ["/x"], "volumes": {"/d": {}}})
    );
    assert_eq!(written.get("new"), Some(&Value::Null));
    assert!(written.get("OS").is_none() && written.get("RootFS").is_none());
    assert!(ImageConfig::parse(br#"{"config":{"User":5}}"#).is_err());
    let config = ImageConfig::parse(br#"{"config":{"Labels":{"a":"\ud800"}}}"#).unwrap();
    assert_eq!(config.config.labels["a"], "\u{fffd}");
}

#[test]
fn configurations_of_go_writers_are_read() {
    let text = r#"{"created":"2024-01-01T00:00:00Z","architecture":"amd64","os":"linux","config":{"Env":null,
        "ExposedPorts":{"50051/tcp":{}},"Labels":null,"Entrypoint":["/bin/opm"]},"rootfs":{"type":"layers","diff_ids":null},
        "history":null}"#;
    let config: ImageConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.config.entrypoint, ["/bin/opm"]);
    assert!(config.rootfs.diff_ids.is_empty());
}
