//! Inputs of a few megabytes that once took gigabytes, minutes or the stack: each ends in 5 seconds of processor time, 120 of an unoptimised
//! build, and 1 GiB of address space.

use std::fs;
use std::path::Path;
use std::process::Command;

use test_support::demo_bundle;

pub fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Processor time in seconds. Debug builds take several times as long, and a busy machine adds to that.
const CPU_SECONDS: &str = if cfg!(debug_assertions) { "120" } else { "5" };

/// Ends a command that takes more than `$CPU_SECONDS` on processors, or more than `$KIB` of address space.
const BOUNDED: &str = "ulimit -t \"$CPU_SECONDS\" && ulimit -v \"$KIB\" && exec \"$0\" \"$@\"";

/// Runs a command over a directory with 1 GiB of address space. Returns its standard error and its standard output.
pub fn bounded(directory: &Path, arguments: &str) -> String {
    bounded_in(1 << 20, directory, arguments)
}

/// Runs a command as [`bounded`] does, with this address space in KiB.
pub fn bounded_in(kib: u32, directory: &Path, arguments: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", BOUNDED])
        .arg(assert_cmd::cargo::cargo_bin("olmkit"))
        .args(arguments.split(' '))
        .current_dir(directory)
        .env("HOME", directory)
        .env("CPU_SECONDS", CPU_SECONDS)
        .env("KIB", kib.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let start: String = said.chars().take(300).collect();
    let ended = matches!(output.status.code(), Some(0..=2));
    assert!(ended, "{arguments}: {}: {start}", output.status);
    said + &String::from_utf8_lossy(&output.stdout)
}

/// The demo bundle with a text put into its ClusterServiceVersion.
fn bundle(directory: &Path, from: &str, to: &str) {
    demo_bundle::copy(directory, "bundle", &[(demo_bundle::CSV, from, to)]);
}

#[test]
fn text_that_aliases_repeat() {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(4 << 20);
    let repeated = format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(900));
    demo_bundle::copy(directory.path(), "bundle", &[]);
    write(directory.path(), "bundle/manifests/other.yaml", &repeated);
    write(directory.path(), "catalog/catalog.yaml", &repeated);
    for arguments in [
        "bundle validate bundle",
        "bundle unpack bundle",
        "catalog validate catalog",
    ] {
        let said = bounded(directory.path(), arguments);
        assert!(said.contains("repeat more than 32 MiB"), "{arguments}: {said:.300}");
    }
}

/// A CRD with this number of properties.
fn definition(prefix: &str, properties: usize) -> String {
    let properties: Vec<String> = (0..properties)
        .map(|number| format!("{prefix}{number}: {{type: string}}"))
        .collect();
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\nspec:\n  group: \
         example.com\n  scope: Namespaced\n  names: {{kind: Widget, plural: widgets}}\n  versions:\n  - name: v1\n    served: true\n    \
         storage: true\n    schema:\n      openAPIV3Schema: {{type: object, properties: {{{}}}}}\n",
        properties.join(", ")
    )
}

#[test]
fn countless_renamed_properties() {
    let folder = tempfile::tempdir().unwrap();
    for (properties, expected) in [
        (20_000, "OLM v1 blocks 40000 changes"),
        (60_000, "--limit compared-changes=VALUE"),
    ] {
        for name in ["old", "new"] {
            write(folder.path(), &format!("{name}.yaml"), &definition(name, properties));
        }
        let said = bounded(folder.path(), "crd diff old.yaml new.yaml");
        assert!(said.contains(expected), "{said:.300}");
    }
}

#[test]
fn definitions_with_countless_values() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["old", "new"] {
        demo_bundle::copy(folder.path(), name, &[]);
        let text = definition(name, 150_000);
        write(folder.path(), &format!("{name}/manifests/widgets.yaml"), &text);
        write(folder.path(), &format!("{name}.yaml"), &text);
    }
    for command in ["crd diff old.yaml new.yaml", "bundle diff old new"] {
        let said = bounded(folder.path(), command);
        assert!(said.contains("more than 200,000"), "{said:.300}");
        assert!(said.contains("--limit compared-values=VALUE"), "{said:.300}");
        assert!(
            !said.contains("new/") && !said.contains("new.yaml"),
            "the second one is not read: {said:.300}"
        );
    }
    // A CRD that is too large to compare is an error, not an upgrade without changes.
    for profile in ["", " --profile olmv1"] {
        let said = bounded(folder.path(), &format!("bundle validate new --against old{profile}"));
        assert!(said.contains("not compared: CRD widgets.example.com"), "{said:.300}");
    }
}

/// A CRD whose version has this schema for `spec`.
fn definition_of(plural: &str, spec: &serde_json::Value) -> String {
    let schema = serde_json::json!({"type": "object", "properties": {"spec": spec}});
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.com}}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {{kind: K{plural}, plural: {plural}, singular: {plural}, listKind: L{plural}}}\n  \
         versions:\n  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}\n"
    )
}

#[test]
fn defaults_with_costly_rules_in_countless_definitions() {
    let folder = tempfile::tempdir().unwrap();
    demo_bundle::copy(folder.path(), "bundle", &[]);
    let list = serde_json::json!({
        "type": "array", "maxItems": 200, "items": {"type": "string", "maxLength": 3}, "default": vec!["x"; 200],
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b || a != b))"}],
    });
    let lists: serde_json::Map<_, _> = (0..12).map(|number| (format!("a{number}"), list.clone())).collect();
    let spec = serde_json::json!({"type": "object", "properties": lists});
    for number in 0..400 {
        let plural = format!("w{number}");
        let path = format!("bundle/manifests/{plural}.yaml");
        write(folder.path(), &path, &definition_of(&plural, &spec));
    }
    let said = bounded(folder.path(), "bundle validate bundle --short");
    let found = said.matches("are not checked against patterns and rules").count();
    assert_eq!(found, 1, "{said:.2000}");
    // The definitions have used the whole budget. Nothing is left for examples, also for those of the earlier bundle.
    write_examples(folder.path(), |number| {
        let kind = format!("Kw{number}");
        serde_json::json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {}})
    });
    let said = bounded(folder.path(), "bundle validate bundle --against bundle --short");
    assert!(said.contains("400 more examples are not checked"), "{said:.4000}");
    assert!(said.contains("400 examples of demo"), "{said:.4000}");
}

/// Writes 400 examples into the bundle.
fn write_examples(folder: &Path, example: impl Fn(usize) -> serde_json::Value) {
    let path = folder.join("bundle").join(demo_bundle::CSV);
    let text = fs::read_to_string(&path).unwrap();
    let csv = olmkit::yaml::parse(text.as_bytes()).unwrap().to_json();
    let mut csv = csv.unwrap();
    let examples: Vec<_> = (0..400).map(example).collect();
    csv["metadata"]["annotations"]["alm-examples"] = serde_json::Value::Array(examples).to_string().into();
    fs::write(&path, csv.to_string()).unwrap();
}

#[test]
fn examples_with_costly_rules() {
    let folder = tempfile::tempdir().unwrap();
    demo_bundle::copy(folder.path(), "bundle", &[]);
    let list = serde_json::json!({
        "type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 100},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b || a != b))"}],
    });
    let spec = serde_json::json!({"type": "object", "properties": {"items": list}});
    write(folder.path(), "bundle/manifests/ws.yaml", &definition_of("ws", &spec));
    let items = vec!["x".repeat(99); 100];
    write_examples(folder.path(), |number| {
        let metadata = serde_json::json!({"name": format!("a{number}")});
        serde_json::json!({"apiVersion": "example.com/v1", "kind": "Kws", "metadata": metadata, "spec": {"items": items}})
    });
    let said = bounded(folder.path(), "bundle validate bundle --short");
    assert!(said.contains("more examples are not checked"), "{said:.2000}");
}

#[test]
fn rights_of_countless_groups_resources_and_verbs() {
    let folder = tempfile::tempdir().unwrap();
    let names = |prefix: &str| {
        let names: Vec<String> = (0..600).map(|number| format!("{prefix}{number}")).collect();
        names.join(", ")
    };
    demo_bundle::copy(folder.path(), "old", &[]);
    demo_bundle::copy(folder.path(), "new", &[]);
    let path = folder.path().join("new").join(demo_bundle::CSV);
    let mut csv = olmkit::yaml::parse(&fs::read(&path).unwrap())
        .unwrap()
        .to_json()
        .unwrap();
    let rule = format!(
        "{{apiGroups: [{}], resources: [{}], verbs: [{}]}}",
        names("g"),
        names("r"),
        names("v")
    );
    let rule = olmkit::yaml::parse(rule.as_bytes()).unwrap().to_json().unwrap();
    csv["spec"]["install"]["spec"]["clusterPermissions"] =
        serde_json::json!([{"serviceAccountName": "x", "rules": [rule]}]);
    fs::write(&path, csv.to_string()).unwrap();
    let said = bounded(folder.path(), "bundle diff old new");
    assert!(said.contains("--limit compared-permissions=VALUE"), "{said:.2000}");
}

#[test]
fn brackets_in_the_files_of_a_repository() {
    for name in ["ci.yaml", "0.0.1/release-config.yaml"] {
        for count in [78_000, 4 << 20] {
            let folder = tempfile::tempdir().unwrap();
            demo_bundle::copy(folder.path(), "operators/demo/0.0.1", &[]);
            write(folder.path(), "operators/demo/ci.yaml", "updateGraph: replaces-mode\n");
            let text = "[".repeat(count) + &"]".repeat(count);
            write(folder.path(), &format!("operators/demo/{name}"), &text);
            let said = bounded(
                folder.path(),
                "repo check --repo . --operator demo --bundle 0.0.1 -o concise",
            );
            let found = format!("operators/demo/{name}:1:501: error");
            assert!(
                said.contains(&found) && said.contains("exceeded max depth of 500"),
                "{name}: {said:.2000}"
            );
        }
    }
}

#[test]
fn countless_definitions_versions_and_rules() {
    let folder = tempfile::tempdir().unwrap();
    demo_bundle::copy(folder.path(), "bundle", &[]);
    let owned =
        |name: &str, kind: &str, version: &str| format!("    - {{name: {name}, kind: {kind}, version: {version}}}\n");
    let definition = |plural: &str, kind: &str, versions: usize| {
        let versions: String = (0..versions)
            .map(|at| {
                let storage = at == 0;
                format!("  - {{name: v{at}, served: true, storage: {storage}, schema: {{openAPIV3Schema: {{type: object}}}}}}\n")
            })
            .collect();
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.example.com}}\nspec:\n  \
             group: example.com\n  scope: Namespaced\n  names: {{kind: {kind}, plural: {plural}, singular: {kind}}}\n  versions:\n\
             {versions}"
        )
    };
    let mut listed = String::new();
    for number in 0..1_000 {
        let (plural, kind) = (format!("w{number}s"), format!("W{number}"));
        let path = format!("bundle/manifests/{plural}.yaml");
        write(folder.path(), &path, &definition(&plural, &kind, 1));
        listed.push_str(&owned(&format!("{plural}.example.com"), &kind, "v0"));
        // These are missing, so the nearest one is looked up.
        listed.push_str(&owned(&format!("x{number}s.example.com"), &kind, "v1"));
    }
    let stored: Vec<String> = (0..3_000).map(|at| format!("x{at}")).collect();
    let many = definition("many", "Many", 3_000);
    let many = format!("{many}status: {{storedVersions: [{}]}}\n", stored.join(", "));
    write(folder.path(), "bundle/manifests/many.yaml", &many);
    for at in 0..3_000 {
        listed.push_str(&owned("many.example.com", "Many", &format!("v{at}")));
    }
    let csv = folder.path().join("bundle").join(demo_bundle::CSV);
    let text = fs::read_to_string(&csv).unwrap();
    let text = text.replacen("    owned:\n", &format!("    owned:\n{listed}"), 1);
    assert!(text.contains("x999s.example.com"));
    fs::write(&csv, &text).unwrap();
    bounded(folder.path(), "bundle validate bundle");
    let rules: String = (0..6_000)
        .map(|number| format!("        - {{apiGroups: [g], resources: [r{number}], verbs: [get]}}\n"))
        .collect();
    let text = text.replacen("        rules:\n", &format!("        rules:\n{rules}"), 1);
    assert!(text.contains("r5999"));
    fs::write(&csv, text).unwrap();
    let said = bounded(folder.path(), "bundle validate bundle -o concise");
    assert!(said.contains("the permissions are not checked"), "{said:.300}");
}

#[test]
fn nested_lists_of_objects() {
    let folder = tempfile::tempdir().unwrap();
    demo_bundle::copy(folder.path(), "bundle", &[]);
    let open = r#"{"apiVersion": "v1", "kind": "List", "items": ["#;
    let item = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},"#.repeat(20_000);
    let text = format!(
        "{}{}{}\n",
        open.repeat(100),
        item.trim_end_matches(','),
        "]}".repeat(100)
    );
    write(folder.path(), "bundle/manifests/list.json", &text);
    bounded(folder.path(), "bundle render --olmv1 bundle -n demo");
    bounded(folder.path(), "bundle validate bundle --profile olmv1");
}

#[test]
fn roles_that_grant_countless_rights() {
    let directory = tempfile::tempdir().unwrap();
    demo_bundle::copy(directory.path(), "bundle", &[]);
    let texts: Vec<String> = (0..2_000).map(|number| format!("t{number}")).collect();
    let texts = texts.join(", ");
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: all}}\nrules:\n- {{apiGroups: [{texts}], \
         resources: [{texts}], resourceNames: [{texts}], verbs: [{texts}]}}\n"
    );
    write(directory.path(), "bundle/manifests/role.yaml", &role);
    let said = bounded(directory.path(), "bundle rbac --for-installer bundle -n demo");
    assert!(said.contains("ClusterRole \"all\""), "{said:.300}");
    bounded(directory.path(), "bundle validate bundle");
    bounded(directory.path(), "bundle diff bundle bundle");
}

#[test]
fn annotations_that_each_deployment_gets() {
    let directory = tempfile::tempdir().unwrap();
    bundle(
        directory.path(),
        "  annotations:\n",
        &format!("  annotations:\n    long: {}\n", "x".repeat(4 << 20)),
    );
    let path = directory.path().join("bundle").join(demo_bundle::CSV);
    let text = fs::read_to_string(&path).unwrap();
    let more: String = (0..1_000)
        .map(|number| format!("      - name: d{number}\n        spec: {{}}\n"))
        .collect();
    let (before, after) = text.split_once("      deployments:\n").unwrap();
    fs::write(&path, format!("{before}      deployments:\n{more}{after}")).unwrap();
    let said = bounded(directory.path(), "bundle render --olmv1 bundle -n demo");
    assert!(said.contains("are larger than 64 MiB"), "{said:.300}");
    bounded(directory.path(), "bundle validate bundle");
}

/// Webhooks of one Deployment share a Service, whose ports are each compared with the others.
#[test]
fn countless_ports_of_webhooks() {
    let directory = tempfile::tempdir().unwrap();
    let webhook = |number: usize| {
        let port = 1 + number % 60_000;
        format!(
            "  - {{type: ValidatingAdmissionWebhook, generateName: w{number}.example.com, deploymentName: demo, containerPort: {port}, \
             targetPort: p{number}, admissionReviewVersions: [v1], sideEffects: None}}\n"
        )
    };
    let webhooks: String = (0..3_000).map(webhook).collect();
    bundle(
        directory.path(),
        "  webhookdefinitions:\n",
        &format!("  webhookdefinitions:\n{webhooks}"),
    );
    let said = bounded(directory.path(), "bundle render --olmv1 bundle -n demo");
    assert!(said.contains("port: 3000"), "{said:.300}");
    assert!(said.len() < 16 * webhooks.len(), "{}", said.len());
    bounded(
        directory.path(),
        "bundle render --olmv1 bundle -n demo --cert-provider openshift-service-ca",
    );
    bounded(directory.path(), "bundle validate bundle --profile olmv1");
    bounded(directory.path(), "bundle unpack bundle");
}

#[test]
fn a_repository_of_long_lines_and_countless_channels() {
    let directory = tempfile::tempdir().unwrap();
    let root = "operators/hello/0.0.1";
    let flow = format!("a: [{}]\n", "é ,".repeat(100_000));
    write(directory.path(), &format!("{root}/manifests/long.yaml"), &flow);
    let blank = " \n".repeat(500_000);
    write(directory.path(), &format!("{root}/manifests/blank.yaml"), &blank);
    let csv = "metadata: {name: hello.v0.0.1}\nspec: {version: 0.0.1}\n";
    write(
        directory.path(),
        &format!("{root}/manifests/hello.clusterserviceversion.yaml"),
        csv,
    );
    let channels: Vec<String> = (0..200_000).map(|number| format!("c{number}")).collect();
    let annotations = format!(
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: hello\n  \
         operators.operatorframework.io.bundle.channels.v1: {}\n",
        channels.join(",")
    );
    write(
        directory.path(),
        &format!("{root}/metadata/annotations.yaml"),
        &annotations,
    );
    write(
        directory.path(),
        "operators/hello/ci.yaml",
        "updateGraph: replaces-mode\n",
    );
    let said = bounded(directory.path(), "repo check --operator hello --bundle 0.0.1");
    assert!(said.contains("more than 500 channels"), "{said:.300}");
    assert!(said.contains("the others are omitted"), "{said:.300}");
}

#[test]
fn settings_of_a_strangers_project() {
    let directory = tempfile::tempdir().unwrap();
    demo_bundle::copy(directory.path(), "bundle", &[]);
    write(
        directory.path(),
        "olmkit.toml",
        &format!("ignore = [\"{}\"]\n", "x".repeat(8 << 20)),
    );
    let said = bounded(directory.path(), "bundle validate bundle");
    assert!(said.contains("no rule"), "{said:.300}");
    write(directory.path(), "olmkit.toml", "");
    let comments = "# olmkit: ignore-file CSV-1,CSV-2,CSV-3 known\n".repeat(50_000);
    let crd = directory.path().join("bundle").join(demo_bundle::CRD);
    let text = fs::read_to_string(&crd).unwrap();
    fs::write(&crd, format!("{comments}{text}")).unwrap();
    bounded(directory.path(), "bundle validate bundle");
}

#[test]
fn sources_that_are_nested() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n";
    write(directory.path(), "Cargo.toml", manifest);
    write(
        directory.path(),
        "src/lib.rs",
        &format!("fn f() {{ {}x }}", "!".repeat(1_000_000)),
    );
    let said = bounded(directory.path(), "adopt --domain example.com");
    assert!(said.contains("nested too deeply"), "{said:.300}");
    // Each module names itself twice, and a link leads to itself.
    write(directory.path(), "src/lib.rs", "pub mod a;\npub mod a;\n");
    write(directory.path(), "src/a/a.rs", "pub mod a;\npub mod a;\n");
    fs::copy(directory.path().join("src/a/a.rs"), directory.path().join("src/a.rs")).unwrap();
    std::os::unix::fs::symlink(".", directory.path().join("src/a/a")).unwrap();
    bounded(directory.path(), "adopt --domain example.com");
}

#[test]
fn countless_fixes() {
    let directory = tempfile::tempdir().unwrap();
    demo_bundle::copy(directory.path(), "bundle", &[]);
    for number in 0..3_000 {
        write(
            directory.path(),
            &format!("bundle/metadata/more/{number}.yaml"),
            "a: 1 \n",
        );
    }
    let said = bounded(directory.path(), "bundle validate bundle --fix");
    assert!(said.contains("run the command again"), "{said:.300}");
}

/// Every version skips all earlier ones, or has its own channels.
#[test]
fn operators_of_countless_versions_and_channels() {
    for (versions, channels, skips) in [(4_000, 1, true), (1_000, 500, false)] {
        let directory = tempfile::tempdir().unwrap();
        let root = "operators/demo";
        write(
            directory.path(),
            &format!("{root}/ci.yaml"),
            "updateGraph: replaces-mode\n",
        );
        for version in 0..versions {
            let range = if skips {
                format!(">=0.0.0 <0.{version}.0")
            } else {
                String::new()
            };
            let csv = format!(
                "metadata: {{name: demo.v0.{version}.0, annotations: {{olm.skipRange: '{range}'}}}}\nspec: {{version: 0.{version}.0}}\n"
            );
            let names: Vec<String> = (0..channels)
                .map(|channel| {
                    if skips {
                        "stable".to_owned()
                    } else {
                        format!("c{version}x{channel}")
                    }
                })
                .collect();
            let annotations = format!(
                "annotations:\n  operators.operatorframework.io.bundle.package.v1: demo\n  \
                 operators.operatorframework.io.bundle.channels.v1: {}\n",
                names.join(",")
            );
            let bundle = format!("{root}/0.{version}.0");
            write(
                directory.path(),
                &format!("{bundle}/manifests/demo.clusterserviceversion.yaml"),
                &csv,
            );
            write(
                directory.path(),
                &format!("{bundle}/metadata/annotations.yaml"),
                &annotations,
            );
        }
        bounded(directory.path(), "repo check --operator demo --bundle 0.5.0");
    }
}

/// Each webhook refers to its configuration, which contains all others.
#[test]
fn countless_webhooks_of_one_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let csv = fs::read(demo_bundle::path().join(demo_bundle::CSV)).unwrap();
    let csv = olmkit::yaml::parse(&csv).unwrap().to_json().unwrap();
    let spec = &csv["spec"]["install"]["spec"]["deployments"][0]["spec"];
    let webhook = |number: usize| {
        serde_json::json!({"name": format!("w{number}.example.com"), "clientConfig": {"service": {"name": "s", "namespace": "n"}},
            "admissionReviewVersions": ["v1"], "sideEffects": "None"})
    };
    let webhooks: Vec<_> = (0..3_000).map(webhook).collect();
    let objects = [
        serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}),
        serde_json::json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
            "spec": {"selector": {"app": "demo"}, "ports": [{"port": 443}]}}),
        serde_json::json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "v"}, "webhooks": webhooks}),
    ];
    for (number, object) in objects.iter().enumerate() {
        write(directory.path(), &format!("input/{number}.yaml"), &object.to_string());
    }
    let said = bounded(
        directory.path(),
        "generate bundle --input-dir input --package demo --version 0.1.0 --stdout",
    );
    assert!(said.contains("w2999.example.com"), "{said:.300}");
}

#[test]
fn a_diff_of_countless_fixes() {
    let directory = tempfile::tempdir().unwrap();
    demo_bundle::copy(directory.path(), "bundle", &[]);
    let data: String = (0..60_000).map(|number| format!("  a{number}: b \n")).collect();
    let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{data}");
    write(directory.path(), "bundle/manifests/more.yaml", &object);
    let said = bounded(directory.path(), "bundle validate bundle --diff");
    assert!(said.contains("\n-  a59999: b \n+  a0: b\n"), "{said:.300}");
}

/// A channel of one chain, whose entries have the range that a number gives, and as many bundles.
fn chain(package: &str, channel: &str, entries: usize, range: impl Fn(usize) -> String) -> String {
    let listed: Vec<String> = (0..entries)
        .map(|at| {
            let replaces = at
                .checked_sub(1)
                .map(|before| format!("{package}.v{before}"))
                .unwrap_or_default();
            let range = range(at);
            format!("{{\"name\":\"{package}.v{at}\",\"replaces\":\"{replaces}\",\"skipRange\":\"{range}\"}}")
        })
        .collect();
    let listed = listed.join(",");
    format!("{{\"schema\":\"olm.channel\",\"package\":\"{package}\",\"name\":\"{channel}\",\"entries\":[{listed}]}}\n")
}

fn bundles(package: &str, count: usize) -> String {
    let bundle = |at| {
        format!(
            "{{\"schema\":\"olm.bundle\",\"package\":\"{package}\",\"name\":\"{package}.v{at}\",\"image\":\"r.io/p:v{at}\",\
             \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"{package}\",\"version\":\"{at}.0.0\"}}}}]}}\n"
        )
    };
    (0..count).map(bundle).collect()
}

const PACKAGE: &str = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}\n";

#[test]
fn long_chains_of_upgrades() {
    let directory = tempfile::tempdir().unwrap();
    for (name, entries) in [("shorter", 4_000), ("catalog", 8_000)] {
        // No range matches, so each is compared with every version.
        let channel = chain("p", "c", entries, |_| ">=99999.0.0".to_owned());
        let catalog = format!("{PACKAGE}{channel}{}", bundles("p", entries));
        write(directory.path(), &format!("{name}/catalog.json"), &catalog);
    }
    // The longer one takes four of the five seconds in an unoptimised build.
    let said = bounded(directory.path(), "catalog validate shorter");
    assert!(said.contains("contains no earlier version"), "{said:.300}");
    for output in ["mermaid", "dot", "svg"] {
        let said = bounded(directory.path(), &format!("catalog graph catalog -o {output}"));
        assert!(said.contains("p.v7999"), "{said:.300}");
    }
    bounded(directory.path(), "catalog list bundles catalog");
    let said = bounded(directory.path(), "catalog path catalog --from p.v7900");
    assert!(said.contains("p.v7999"), "{said:.300}");
    let said = bounded(directory.path(), "catalog path catalog --from p.v0");
    assert!(said.contains("too many to compare"), "{said:.300}");
}

#[test]
fn upgrades_from_everything_to_everything() {
    let directory = tempfile::tempdir().unwrap();
    let entries = 3_000;
    let channel = chain("p", "c", entries, |at| format!(">=0.0.0 !={at}.0.0"));
    let catalog = format!("{PACKAGE}{channel}{}", bundles("p", entries));
    write(directory.path(), "catalog/catalog.json", &catalog);
    let said = bounded(directory.path(), "catalog graph catalog");
    assert!(said.contains("graph-text=VALUE"), "{said:.300}");
    bounded(directory.path(), "catalog validate catalog");
    let said = bounded(directory.path(), "catalog path catalog --from p.v0");
    assert!(said.contains("p.v2999"), "{said:.300}");
}

#[test]
fn many_channels_with_deprecations_and_one_long_name() {
    let directory = tempfile::tempdir().unwrap();
    let (channels, count) = (1_000, 20);
    let mut catalog = PACKAGE.to_owned() + &bundles("p", count);
    let mut deprecated = Vec::new();
    for at in 0..channels {
        catalog.push_str(&chain("p", &format!("c{at}"), count, |_| "<1.0.0".to_owned()));
        deprecated.push(format!(
            "{{\"reference\":{{\"schema\":\"olm.channel\",\"name\":\"c{at}\"}},\"message\":\"old\"}}"
        ));
    }
    let long = "x".repeat(1 << 17);
    catalog.push_str(&chain("p", &long, 2_000, |_| String::new()));
    let deprecated = deprecated.join(",");
    catalog.push_str(&format!(
        "{{\"schema\":\"olm.deprecations\",\"package\":\"p\",\"entries\":[{deprecated}]}}\n"
    ));
    write(directory.path(), "catalog/catalog.json", &catalog);
    bounded(directory.path(), "catalog validate catalog");
    bounded(directory.path(), "catalog graph catalog -o svg");
    for output in ["mermaid", "dot"] {
        let said = bounded(directory.path(), &format!("catalog graph catalog -o {output}"));
        assert!(said.contains("graph-text=VALUE"), "{output}: {said:.300}");
    }
    bounded(directory.path(), "catalog list bundles catalog");
}
