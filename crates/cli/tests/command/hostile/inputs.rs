//! Bundles, catalogs, images and an API server whose every text is hostile.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::demo_bundle;

/// Clears the screen, sets the clipboard, makes a link, beeps, erases, reorders, and begins lines as workflow commands do.
pub const HOSTILE: &str = "x\u{1b}[2J\u{1b}]52;c;cm0=\u{7}\u{1b}]8;;http://e.test\u{1b}\\y\u{9b}31m\u{85}\u{8}\u{7f}\r\u{202e}\u{2066}\
                           \u{200f}\u{2028}%\n::error::forged\n  ::add-mask::forged\n##[error]forged";

/// Catalogs by directory: valid ones with hostile names, and those with one invalid string each.
pub const CATALOGS: &[&str] = &[
    "catalog",
    "other",
    "broken/object",
    "broken/package",
    "broken/channel",
    "broken/entry",
    "broken/replaces",
    "broken/range",
    "broken/version",
    "broken/property",
    "broken/default",
    "broken/key",
    "broken/type",
    "broken/yaml",
];

/// A directory with all of them.
pub struct Inputs(TempDir);

impl Inputs {
    pub fn new() -> Self {
        let inputs = Inputs(tempfile::tempdir().unwrap());
        inputs.bundles();
        inputs.repository();
        inputs.catalogs();
        inputs.images();
        inputs.write("kubeconfig", &kubeconfig(&api_server()).to_string());
        inputs
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Manifests for `generate bundle`, with hostile names throughout.
    pub fn manifests(&self) -> String {
        let object =
            |kind: &str, version: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": HOSTILE}});
        let mut role = object("ClusterRole", "rbac.authorization.k8s.io/v1");
        role["rules"] = json!([{"apiGroups": [HOSTILE], "resources": [HOSTILE], "verbs": [HOSTILE]}]);
        let mut odd = object(HOSTILE, HOSTILE);
        odd["spec"] = json!({HOSTILE: HOSTILE});
        [role, object("ConfigMap", "v1"), odd]
            .map(|value| escaped(&value))
            .join("\n---\n")
    }

    /// The unmodified demo bundle, with hostile file names, and once for each of its strings that is made hostile.
    fn bundles(&self) {
        let directory = self.path("bundles");
        demo_bundle::copy(&directory, "plain", &[]);
        demo_bundle::copy(&directory, "names", &[]);
        let name = HOSTILE.replace('/', "|");
        for text in ["[", "kind: ConfigMap\nmetadata: {}\n", "- a\n"] {
            self.write(&format!("bundles/names/manifests/{}{name}.yaml", text.len()), text);
        }
        let mut number = 0;
        for file in [
            demo_bundle::CSV,
            demo_bundle::CRD,
            demo_bundle::SERVICE,
            demo_bundle::ANNOTATIONS,
        ] {
            let text = fs::read_to_string(demo_bundle::path().join(file)).unwrap();
            let value: Value = serde_yaml::from_str(&text).unwrap();
            for variant in variants(&value) {
                number += 1;
                let bundle = format!("v{number}");
                demo_bundle::copy(&directory, &bundle, &[]);
                fs::write(directory.join(bundle).join(file), escaped(&variant)).unwrap();
            }
        }
        assert!(number > 80, "{number}");
        demo_bundle::copy(&directory, "scorecard", &[]);
        let test = json!({"image": HOSTILE, "entrypoint": [HOSTILE], "labels": {"suite": HOSTILE, "test": HOSTILE, HOSTILE: HOSTILE}});
        let configuration = json!({"kind": "Configuration", "apiVersion": "scorecard.operatorframework.io/v1alpha3",
            "stages": [{"tests": [test]}]});
        self.write(
            "bundles/scorecard/tests/scorecard/config.yaml",
            &escaped(&configuration),
        );
        demo_bundle::copy(
            &directory,
            &format!("hostile{name}"),
            &[("metadata/annotations.yaml", "demo", "")],
        );
    }

    /// A repository of operators whose values are all hostile, as the checks print them.
    fn repository(&self) {
        let h = escaped(&Value::String(HOSTILE.to_owned()));
        let root = "repository/operators/hello";
        self.write(
            "repository/config.yaml",
            &format!(
                "tests: [{{name: check_using_fbc, ignore_operators: [{h}, '(']}}]\nallowed_bundle_registries: [{h}]\n"
            ),
        );
        self.write(
            &format!("{root}/ci.yaml"),
            &format!("updateGraph: {h}\nfbc: {{catalog_mapping: [{{template_name: {h}, catalog_names: [{h}, {h}]}}], {h}: {h}}}\n"),
        );
        self.write(
            &format!("{root}/0.0.1/manifests/hello.clusterserviceversion.yaml"),
            &format!("metadata: {{name: {h}, annotations: {{olm.skipRange: {h}}}}}\nspec: {{version: {h}, replaces: {h}, minKubeVersion: {h}}}\n"),
        );
        self.write(
            &format!("{root}/0.0.1/metadata/annotations.yaml"),
            &format!("annotations: {{operators.operatorframework.io.bundle.package.v1: {h}, com.redhat.openshift.versions: {h}}}\n"),
        );
        self.write(&format!("{root}/0.0.1/release-config.yaml"), &format!("{h}: {h}\n"));
        self.write(
            "repository/catalogs/v4.20/hello/catalog.yaml",
            &format!("schema: olm.bundle\nimage: {h}\n"),
        );
        self.write(
            "Dockerfile",
            &format!("FROM {HOSTILE}\nLABEL name=\"Red Hat {HOSTILE}\"\nUSER {HOSTILE}\n"),
        );
    }

    fn catalogs(&self) {
        let plain = catalog("p", "c", ["a", "b"], "i");
        let h = HOSTILE;
        let texts = |suffix: &str| [format!("{h}1{suffix}"), format!("{h}2{suffix}")];
        let named = |suffix: &str| {
            let [one, two] = texts(suffix);
            catalog(h, h, [&one, &two], &format!("{h}{suffix}"))
        };
        self.blobs("plain", &plain);
        self.blobs("catalog", &named(""));
        self.blobs("other", &named("other"));
        let broken = |name: &str, at: usize, pointer: &str, value: Value| {
            let mut blobs = plain.clone();
            *blobs[at].pointer_mut(pointer).unwrap() = value;
            self.blobs(&format!("broken/{name}"), &blobs);
        };
        broken(
            "object",
            2,
            "/properties/1",
            json!({"type": "olm.bundle.object", "value": {"data": h}}),
        );
        broken("package", 1, "/package", json!(h));
        broken("channel", 0, "/defaultChannel", json!(h));
        broken("entry", 1, "/entries/1/name", json!(h));
        broken("replaces", 1, "/entries/1/replaces", json!(h));
        broken("range", 1, "/entries/1/skipRange", json!(h));
        broken("version", 2, "/properties/0/value/version", json!(h));
        broken("property", 2, "/properties/1", json!({"type": h, "value": {h: h}}));
        broken("default", 0, "/name", json!(h));
        broken("key", 0, "/description", json!({h: h}));
        broken("type", 0, "/schema", json!({h: h}));
        self.write(
            "broken/yaml/catalog.yaml",
            &format!("a: [{}: {}\n", escaped(&json!(h)), escaped(&json!(h))),
        );
        let template = json!({"schema": "olm.template.basic", "entries": plain});
        self.write("template.json", &escaped(&template));
    }

    fn blobs(&self, directory: &str, blobs: &[Value]) {
        let text: String = blobs.iter().map(|blob| format!("{}\n", escaped(blob))).collect();
        self.write(&format!("{directory}/catalog.json"), &text);
    }

    /// Two layouts with hostile settings, labels and names of files, and one that is broken.
    fn images(&self) {
        let name = HOSTILE.replace('/', "|");
        self.write("files/plain", "plain");
        self.write(&format!("files/{name}"), "hostile");
        for (layout, suffix) in [("layout", ""), ("other", "other")] {
            let pair = format!("{HOSTILE}={HOSTILE}{suffix}");
            let output = assert_cmd::Command::cargo_bin("olmkit")
                .unwrap()
                .args(["image", "build", "directory", "files", "-t", "registry.test/x:v1", "-o"])
                .arg(format!("oci:{layout}"))
                .args(["--label", &pair, "--annotation", &pair, "--env", &pair])
                .args([
                    "--entrypoint",
                    &format!("{HOSTILE}{suffix}"),
                    "--workdir",
                    &format!("/{HOSTILE}{suffix}"),
                ])
                .args([
                    "--label",
                    "operators.operatorframework.io.bundle.manifests.v1=manifests/",
                ])
                .current_dir(self.path(""))
                .env("HOME", self.path("home"))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}", said.escape_debug());
            self.write("files/second", "only in the other");
        }
        self.write("broken/oci-layout", r#"{"imageLayoutVersion": "1.0.0"}"#);
        let index = json!({"schemaVersion": 2, "manifests": [{"mediaType": HOSTILE, "digest": HOSTILE, "size": 1}]});
        self.write("broken/index.json", &escaped(&index));
    }
}

/// A package with one channel of two bundles.
fn catalog(package: &str, channel: &str, [one, two]: [&str; 2], image: &str) -> Vec<Value> {
    let bundle = |name: &str, version: &str| {
        json!({"schema": "olm.bundle", "package": package, "name": name, "image": image,
            "relatedImages": [{"name": image, "image": image}],
            "properties": [
                {"type": "olm.package", "value": {"packageName": package, "version": version}},
                {"type": "olm.gvk", "value": {"group": image, "kind": image, "version": image}}]})
    };
    vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": channel, "description": image}),
        json!({"schema": "olm.channel", "package": package, "name": channel, "entries": [
            {"name": one}, {"name": two, "replaces": one, "skips": [format!("{one}z")], "skipRange": "<1.0.0"}]}),
        bundle(one, "1.0.0"),
        bundle(two, "1.0.1"),
        json!({"schema": "olm.deprecations", "package": package, "entries": [
            {"reference": {"schema": "olm.bundle", "name": one}, "message": image}]}),
    ]
}

/// The value once for each text in it, with that text made hostile, and once for each object, with a hostile key.
fn variants(value: &Value) -> Vec<Value> {
    fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
        let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(map) => {
                found.push(at.to_owned());
                map.iter()
                    .for_each(|(key, value)| pointers(value, &format!("{at}/{}", escape(key)), found));
            }
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                numbered.for_each(|(number, item)| pointers(item, &format!("{at}/{number}"), found));
            }
            _ => found.push(at.to_owned()),
        }
    }
    let mut found = Vec::new();
    pointers(value, "", &mut found);
    let variant = |pointer: &String| {
        let mut variant = value.clone();
        match variant.pointer_mut(pointer).unwrap() {
            Value::Object(map) => {
                map.insert(HOSTILE.to_owned(), json!(HOSTILE));
            }
            other => *other = json!(format!("{}{HOSTILE}", other.as_str().unwrap_or_default())),
        }
        variant
    };
    found.iter().map(variant).collect()
}

/// JSON of ASCII only, which is YAML too.
fn escaped(value: &Value) -> String {
    let mut units = [0; 2];
    let mut text = String::new();
    for c in value.to_string().chars() {
        if c.is_ascii() && !c.is_ascii_control() {
            text.push(c);
        } else {
            c.encode_utf16(&mut units)
                .iter()
                .for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
}

/// An API server that forbids everything with a hostile reason. It lives as long as the test.
fn api_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let body = escaped(
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
        "reason": "Forbidden", "message": HOSTILE, "details": {"name": HOSTILE, "causes": [{"message": HOSTILE}]}}),
    );
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 8192]);
            let _ = write!(
                stream,
                "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

fn kubeconfig(server: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": "default"}}]})
}
