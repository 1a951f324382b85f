use super::*;

#[test]
fn unknown_keys_stay() {
    let text = format!(
        "{HEADER}cliVersion: 0.1.0\ndomain: example.com\nplugins:\n  grafana.kubebuilder.io/v1-alpha: {{}}\n  {LAYOUT}: {{}}\n\
         projectName: p\nresources:\n- api:\n    crdVersion: v1\n    namespaced: true\n  domain: example.com\n  group: cache\n  kind: Memcached\n  \
         mine: 1\n  version: v1\nversion: \"3\"\n"
    );
    let mut file = ProjectFile::parse(text.as_bytes()).unwrap();
    assert_eq!(file.text().unwrap(), text);
    let mut resource = file.resources().remove(0);
    assert_eq!(
        (resource.group.as_str(), resource.plural.as_str()),
        ("cache.example.com", "memcacheds")
    );
    resource.controller = true;
    file.set_resource(&resource);
    let changed = file.text().unwrap();
    assert!(
        changed.contains("  mine: 1\n") && changed.contains("  controller: true\n"),
        "{changed}"
    );
    assert_eq!(file.resources().len(), 1);
}

/// operator-sdk fails with every command in a project whose layout it does not know.
#[test]
fn a_layout_of_an_early_version_is_removed() {
    let text = format!("{HEADER}domain: example.com\nlayout:\n- {LAYOUT}\nprojectName: p\n");
    let file = ProjectFile::parse(text.as_bytes()).unwrap();
    assert!(!file.text().unwrap().contains("layout"));
    assert!(
        !ProjectFile::new("example.com", "p", false, false)
            .text()
            .unwrap()
            .contains("layout")
    );
    let foreign = format!("layout: [go.kubebuilder.io/v4]\nplugins: {{{LAYOUT}: {{}}}}\nprojectName: p\n");
    assert!(ProjectFile::parse(foreign.as_bytes()).is_err());
    assert!(ProjectFile::parse(b"projectName: p\n").is_err());
}

/// Each text of the file, with what would become code in a Makefile, a Rust source, Cargo.toml or YAML.
#[test]
fn texts_that_would_become_code_are_refused() {
    let resource = |more: &str| {
        format!(
            "resources:\n- api: {{crdVersion: v1}}\n  domain: example.com\n  group: cache\n  kind: Memcached\n  version: v1\n{more}"
        )
    };
    let parse = |head: &str, rest: &str| {
        let text = format!("domain: example.com\nlayout: [{LAYOUT}]\nprojectName: p\n{head}{rest}");
        // Later keys win over the fixed ones.
        ProjectFile::parse(text.as_bytes())
    };
    assert!(parse("", &resource("")).is_ok());
    assert!(parse("", &resource("  path: src/api/v1/memcached.rs\n")).is_ok());
    let hostile = [
        "$(shell id)",
        "a\\nb",
        "x; id",
        "`id`",
        "{{ x }}",
        "a\\\"b",
        "../x",
        "a b",
        "'",
    ];
    for text in hostile {
        let quoted = format!("\"{text}\"");
        for key in ["projectName", "domain", "cliVersion"] {
            let file = format!(
                "layout: [{LAYOUT}]\n{key}: {quoted}\n{}",
                if key == "projectName" { "" } else { "projectName: p\n" }
            );
            assert!(ProjectFile::parse(file.as_bytes()).is_err(), "{key}: {text}");
        }
        for key in ["group", "version", "kind", "domain"] {
            let mut entry = std::collections::BTreeMap::from([
                ("group", "cache"),
                ("version", "v1"),
                ("kind", "Memcached"),
                ("domain", "example.com"),
            ]);
            entry.insert(key, &quoted);
            let list: String = entry.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
            let file = format!("resources:\n- api: {{crdVersion: v1}}\n{list}");
            assert!(parse("", &file).is_err(), "{key}: {text}");
        }
        for more in [
            format!("  plural: {quoted}\n"),
            format!("  path: {quoted}\n"),
            format!("  webhooks: {{conversion: true, spoke: [{quoted}]}}\n"),
            format!("  external: true\n  path: {quoted}\n"),
            format!("  external: true\n  path: a::b\n  module: {quoted}\n"),
        ] {
            assert!(parse("", &resource(&more)).is_err(), "{more}");
        }
        let image = format!(
            "plugins:\n  {DEPLOY_IMAGE}:\n    resources:\n    - domain: example.com\n      group: cache\n      kind: Memcached\n      version: v1\n      options: {{image: a, containerPort: {quoted}}}\n"
        );
        assert!(parse(&image, &resource("")).is_err(), "{image}");
    }
}

#[test]
fn countless_resources_are_refused() {
    let one = "- {domain: example.com, group: cache, kind: Memcached, version: v1}\n";
    let text = format!(
        "layout: [{LAYOUT}]\nprojectName: p\nresources:\n{}",
        one.repeat(MOST_RESOURCES + 1)
    );
    let error = ProjectFile::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("at most 500"), "{error}");
}

#[test]
fn other_layouts_are_refused() {
    let error = ProjectFile::parse(b"layout: [go.kubebuilder.io/v4]\nprojectName: p\n").unwrap_err();
    assert!(error.to_string().contains("go.kubebuilder.io/v4"), "{error}");
    assert!(ProjectFile::parse(b"[]").is_err());
    assert!(ProjectFile::parse(b"a: [").is_err());
}
