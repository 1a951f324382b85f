//! Command lines of operator-sdk and opm as public Makefiles have them. `docs/reference/drop-in.md` names these tests: a test
//! that is called
//! after a command runs that command.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use test_support::demo_bundle;
use test_support::files::serve;

/// A directory with links named operator-sdk and opm, a bundle and a catalog.
struct Desk {
    directory: TempDir,
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("bin")).unwrap();
        for name in ["olmkit", "operator-sdk", "opm"] {
            symlink(env!("CARGO_BIN_EXE_olmkit"), directory.path().join("bin").join(name)).unwrap();
        }
        demo_bundle::copy(directory.path(), "bundle", &[]);
        let scorecard = directory.path().join("bundle/tests/scorecard");
        fs::create_dir_all(&scorecard).unwrap();
        let config = test_support::repository("bundle/tests/scorecard/config.yaml");
        fs::copy(config, scorecard.join("config.yaml")).unwrap();
        let catalog = "---\nschema: olm.package\nname: demo\ndefaultChannel: stable\n\
                       ---\nschema: olm.channel\npackage: demo\nname: stable\nentries: [{name: demo.v1.0.0}]\n\
                       ---\nschema: olm.bundle\npackage: demo\nname: demo.v1.0.0\nimage: registry.test/demo:v1\n\
                       properties: [{type: olm.package, value: {packageName: demo, version: 1.0.0}}]\n";
        fs::create_dir(directory.path().join("catalog")).unwrap();
        fs::write(directory.path().join("catalog/catalog.yaml"), catalog).unwrap();
        // The image format needs a static program. This one is never started.
        let mut server = fs::read(env!("CARGO_BIN_EXE_olmkit")).unwrap();
        server.truncate(64);
        server[56..58].fill(0);
        fs::write(directory.path().join("server"), server).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a command line. Its first word is the name of the link.
    fn run(&self, line: &str) -> Said {
        self.run_with(line, "")
    }

    fn run_with(&self, line: &str, input: &str) -> Said {
        let mut words = line.split_whitespace();
        let program = self.path("bin").join(words.next().unwrap());
        let mut child = Command::new(program)
            .args(words)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path())
            .env("KUBECONFIG", self.path("no-kubeconfig"))
            .env("OLMKIT_IMAGE_STORE", self.path("store"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("tools").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input may end before.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command line that must succeed, and returns its output.
    fn ok(&self, line: &str) -> String {
        let said = self.run(line);
        assert_eq!(said.code, 0, "{line}: {}{}", said.out, said.err);
        said.out
    }

    /// A command line of opm under all the names that Makefiles may call it by.
    fn opm(&self, line: &str) -> String {
        let outputs = ["opm", "olmkit opm", "olmkit"].map(|name| self.ok(&format!("{name} {line}")));
        assert_eq!(outputs[0], outputs[1], "{line}");
        assert_eq!(outputs[0], outputs[2], "{line}");
        outputs.into_iter().next().unwrap()
    }

    /// Puts a script in the place of a program such as docker. It writes its arguments to `NAME.log`.
    fn tool(&self, name: &str, exit: i32) {
        fs::create_dir_all(self.path("tools")).unwrap();
        let script = self.path("tools").join(name);
        let log = self.path(&format!("{name}.log"));
        fs::write(
            &script,
            format!("#!/bin/sh\necho \"$@\" >> {}\nexit {exit}\n", log.display()),
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The objects of a bundle, as `kustomize build config/manifests` prints them.
    fn kustomized(&self) -> String {
        let mut documents = String::new();
        let mut files: Vec<PathBuf> = fs::read_dir(self.path("bundle/manifests"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            documents.push_str("---\n");
            documents.push_str(&fs::read_to_string(file).unwrap());
            documents.push('\n');
        }
        documents
    }

    fn package(&self) -> String {
        let annotations = self.text("bundle/metadata/annotations.yaml");
        let line = annotations.lines().find(|line| line.contains("package.v1:")).unwrap();
        line.split(':').next_back().unwrap().trim().trim_matches('"').to_owned()
    }
}

#[test]
fn commands_without_a_subcommand_print_help_as_those_of_the_tools() {
    let desk = Desk::new();
    for line in [
        "operator-sdk",
        "operator-sdk bundle",
        "operator-sdk completion",
        "operator-sdk create",
        "operator-sdk generate",
        "operator-sdk generate kustomize",
        "operator-sdk olm",
        "olmkit operator-sdk run",
        "opm",
        "opm alpha",
        "opm alpha bundle",
        "opm alpha list",
        "opm completion",
        "opm generate",
        "opm index",
        "olmkit opm index",
    ] {
        assert!(desk.ok(line).contains("Usage: "), "{line}");
    }
    for line in ["olmkit", "olmkit bundle"] {
        let said = desk.run(line);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{line}");
    }
}

#[test]
fn operator_sdk_version() {
    let desk = Desk::new();
    for line in [
        "operator-sdk version",
        "olmkit operator-sdk version",
        "operator-sdk --version",
        "operator-sdk version --verbose=false",
    ] {
        let said = desk.ok(line);
        assert!(
            said.starts_with("operator-sdk version: \"v1.42.3\", commit: \""),
            "{said}"
        );
        // awk -F '"' '{print $2}', as in cloudnative-pg
        assert_eq!(said.split('"').nth(1), Some("v1.42.3"));
        for field in [
            "kubernetes version: \"v1.",
            "go version: \"",
            "GOOS: \"linux\"",
            "GOARCH: \"",
        ] {
            assert!(said.contains(field), "{said}");
        }
        assert_eq!(said.lines().count(), 1);
    }
    assert!(desk.ok("olmkit version").starts_with("olmkit "));
}

/// The scripts complete the name that the tool was called by, so users of both names keep both.
#[test]
fn operator_sdk_completion() {
    let desk = Desk::new();
    for shell in ["bash", "fish", "powershell", "zsh"] {
        for line in ["operator-sdk completion", "olmkit operator-sdk completion"] {
            let said = desk.ok(&format!("{line} {shell}"));
            assert!(said.contains("operator-sdk"), "{shell}: {said}");
            assert!(said.contains("scorecard") && said.contains("bundle"), "{shell}");
        }
        assert!(
            !desk
                .ok(&format!("olmkit completion {shell}"))
                .contains("complete -c operator-sdk")
        );
    }
    assert!(
        desk.ok("operator-sdk completion bash")
            .contains("default operator-sdk\n")
    );
    assert!(desk.ok("olmkit completion bash").contains("default olmkit\n"));
}

#[test]
fn opm_completion() {
    let desk = Desk::new();
    for shell in ["bash", "fish", "powershell", "zsh"] {
        for line in ["opm completion", "olmkit opm completion"] {
            let said = desk.ok(&format!("{line} {shell} --no-descriptions"));
            assert!(said.contains("render-template") && said.contains("index"), "{shell}");
            assert!(!said.contains("scorecard"), "{shell}");
        }
    }
    assert!(desk.ok("opm completion bash").contains("default opm\n"));
}

/// Each command of operator-sdk accepts `--plugins`.
#[test]
fn plugins_have_no_effect_on_most_commands() {
    let desk = Desk::new();
    for line in [
        "operator-sdk version --plugins go/v4",
        "operator-sdk --plugins=go/v4 version",
        "operator-sdk bundle validate bundle --plugins go.kubebuilder.io/v4 --verbose",
        "operator-sdk --plugins helm/v1 bundle validate bundle",
        "operator-sdk scorecard bundle --list --plugins=go/v4,grafana/v1-alpha",
        "operator-sdk completion bash --plugins go/v4",
        "olmkit operator-sdk bundle validate --plugins go/v4 bundle",
    ] {
        desk.ok(line);
    }
    assert_eq!(desk.run("operator-sdk version --plugins").code, 2);
    // Commands that only olmkit has, and other flags, do not accept it.
    for line in [
        "olmkit catalog validate catalog --plugins go/v4",
        "operator-sdk version --plugins go/v4 --unknown",
    ] {
        let said = desk.run(line);
        assert!(
            said.code == 2 && said.err.contains("unexpected argument"),
            "{line}: {}",
            said.err
        );
    }
}

#[test]
fn opm_version() {
    let desk = Desk::new();
    for line in ["opm version", "olmkit opm version", "opm --version"] {
        let said = desk.ok(line);
        assert!(
            said.starts_with("Version: version.Version{OpmVersion:\"v1.73.0\", GitCommit:\""),
            "{said}"
        );
        assert_eq!(said.split('"').nth(1), Some("v1.73.0"));
        assert!(
            said.ends_with("\"}\n") && said.contains("GoOs:\"linux\", GoArch:\""),
            "{said}"
        );
    }
}

/// Lines from the Makefiles of infinispan, node-healthcheck and others, and each kind of flag.
#[test]
fn repeated_and_boolean_flags_are_read_as_pflag_reads_them() {
    let desk = Desk::new();
    for line in [
        "operator-sdk bundle validate bundle --verbose=true",
        "operator-sdk bundle validate bundle --verbose=false -q=1",
        "operator-sdk bundle validate bundle --list-optional=false",
        "operator-sdk bundle validate bundle -o text -o json-alpha1",
        "operator-sdk bundle validate bundle --select-optional name=none --select-optional suite=operatorframework",
        "operator-sdk scorecard bundle --list=true",
        "operator-sdk scorecard bundle -L -L=true -o json -o text",
        "operator-sdk -o text scorecard bundle --list",
        "opm render catalog -o yaml -o json",
        "opm -o=json render catalog --use-http=false",
        "olmkit catalog validate catalog --verbose=0 --color never --color auto",
        "olmkit image inspect --help",
    ] {
        desk.ok(line);
    }
    let json = desk.ok("opm render catalog -o yaml -o json");
    assert!(json.starts_with('{'), "{json}");
    let json = desk.ok("operator-sdk bundle validate bundle -o text --output=json-alpha1");
    assert!(json.starts_with('{'), "{json}");
    assert!(
        desk.ok("operator-sdk bundle validate --list-optional=true")
            .contains("suite=operatorframework")
    );
    for wrong in [
        "operator-sdk bundle validate bundle --list-optional=perhaps",
        "operator-sdk bundle validate bundle --no-such-flag=true",
    ] {
        assert_eq!(desk.run(wrong).code, 2, "{wrong}");
    }
}

#[test]
fn lists_append_as_those_of_pflag() {
    let desk = Desk::new();
    desk.ok("opm generate dockerfile catalog -l a=1,b=2 --extra-labels c=3");
    let file = desk.text("catalog.Dockerfile");
    for label in ["\"a\"=\"1\"", "\"b\"=\"2\"", "\"c\"=\"3\""] {
        assert!(file.contains(label), "{label}: {file}");
    }
}

#[test]
fn operator_sdk_bundle_validate() {
    let desk = Desk::new();
    let said = desk.run("operator-sdk bundle validate ./bundle --select-optional suite=operatorframework -b none");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    fs::remove_dir_all(desk.path("bundle/metadata")).unwrap();
    assert_eq!(desk.run("operator-sdk bundle validate ./bundle").code, 1);
}

#[test]
fn operator_sdk_generate_bundle() {
    let desk = Desk::new();
    let (input, package) = (desk.kustomized(), desk.package());
    fs::rename(desk.path("bundle"), desk.path("published")).unwrap();
    // infinispan has --version twice, node-healthcheck has --verbose between the words.
    let line = format!(
        "operator-sdk generate --verbose bundle -q --overwrite --version 9.9.9 --version 1.0.0 --package {package} \
         --channels alpha --channels stable,beta --default-channel=stable --use-image-digests=false --manifests=true --metadata=1"
    );
    let said = desk.run_with(&line, &input);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let annotations = desk.text("bundle/metadata/annotations.yaml");
    assert!(annotations.contains("channels.v1: stable,beta"), "{annotations}");
    let csv = desk.text(&format!("bundle/manifests/{package}.clusterserviceversion.yaml"));
    assert!(csv.contains("version: 1.0.0") && !csv.contains("9.9.9"), "{csv}");
    assert!(desk.text("bundle.Dockerfile").contains("COPY bundle/manifests"));
}

#[test]
fn operator_sdk_generate_kustomize_manifests() {
    let desk = Desk::new();
    desk.ok("operator-sdk init --domain example.com --project-name cache-operator --directory project");
    let project = fs::read_to_string(desk.path("project/PROJECT")).unwrap();
    fs::write(desk.path("PROJECT"), project).unwrap();
    desk.ok("operator-sdk generate kustomize manifests -q=true --interactive=false --package cache-operator --output-dir out");
    let base = desk.text("out/bases/cache-operator.clusterserviceversion.yaml");
    assert!(base.contains("kind: ClusterServiceVersion"), "{base}");
}

#[test]
fn operator_sdk_scorecard() {
    let desk = Desk::new();
    let listed = desk.ok("operator-sdk scorecard bundle --list -o text");
    assert!(listed.contains("basic-check-spec"), "{listed}");
}

#[test]
fn operator_sdk_init() {
    let desk = Desk::new();
    let clone = desk.path("clone");
    for (name, text) in [
        ("README.md", "mine\n"),
        ("LICENSE", "my license\n"),
        (".gitignore", "/mine\n"),
        (".github/workflows/test.yml", "on: push\n"),
        (".idea/workspace.xml", "<x/>\n"),
        (".editorconfig", "root = true\n"),
        ("CODEOWNERS", "* @me\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("CONTRIBUTING.md", "welcome\n"),
    ] {
        fs::create_dir_all(clone.join(name).parent().unwrap()).unwrap();
        fs::write(clone.join(name), text).unwrap();
    }
    let out = desk.ok("operator-sdk init --domain example.com --project-name cache-operator --directory clone");
    for kept in [".github/workflows/test.yml", ".gitignore", "LICENSE", "README.md"] {
        assert!(out.contains(&format!("kept {kept}\n")), "{out}");
    }
    assert!(
        out.contains("created PROJECT\n") && out.contains("created src/main.rs\n"),
        "{out}"
    );
    assert_eq!(desk.text("clone/README.md"), "mine\n");
    assert_eq!(desk.text("clone/LICENSE"), "my license\n");
    assert_eq!(desk.text("clone/.gitignore"), "/mine\n");
    assert_eq!(desk.text("clone/.github/workflows/test.yml"), "on: push\n");
    // The next commands work on such a project.
    desk.ok("operator-sdk create api --group cache --version v1alpha1 --kind Shop --resource --controller --directory clone");
    desk.ok("olmkit update --directory clone");
    assert_eq!(desk.text("clone/README.md"), "mine\n");
    // A project, or sources, are no fresh clone.
    let again = desk.run("operator-sdk init --domain example.com --directory clone");
    assert_eq!(again.code, 1);
    assert!(again.err.contains("is not empty: it contains"), "{}", again.err);
    for file in ["main.go", "Makefile", "PROJECT", "src"] {
        let directory = desk.path(&format!("with-{file}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(file), "x").unwrap();
        let said = desk.run(&format!(
            "operator-sdk init --domain example.com --project-name a --directory with-{file}"
        ));
        assert!(said.code == 1 && said.err.contains(file), "{file}: {}", said.err);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }
}

#[test]
fn plugins_of_other_languages_are_sent_to_where_they_start() {
    let desk = Desk::new();
    for (flags, start) in [
        (
            "--plugins=go/v4 --domain example.com --repo github.com/example/memcached-operator",
            "operator-sdk init --plugins=go/v4",
        ),
        (
            "--plugins go.kubebuilder.io/v4 --project-version=3 --owner me --fetch-deps=false",
            "an operator in Go",
        ),
        (
            "--domain example.com --repo github.com/example/memcached-operator",
            "operator-sdk init --plugins=go",
        ),
        ("--skip-go-version-check", "an operator in Go"),
        (
            "--plugins=helm --domain example.com --group demo --version v1alpha1 --kind Nginx",
            "operator-sdk init --plugins=helm",
        ),
        (
            "--plugins helm.sdk.operatorframework.io/v1 --helm-chart nginx",
            "an operator from a Helm chart",
        ),
        (
            "--helm-chart=nginx --helm-chart-repo https://charts.test",
            "an operator from a Helm chart",
        ),
        (
            "--plugins=ansible --domain example.com --generate-role",
            "an operator from Ansible roles",
        ),
        ("--plugins=quarkus", "other operators"),
    ] {
        let said = desk.run(&format!("operator-sdk init {flags} --project-name a --directory new"));
        assert_eq!(said.code, 2, "{flags}: {}", said.err);
        assert!(
            said.err.contains("scaffolds operators in Rust") && said.err.contains(start),
            "{flags}: {}",
            said.err
        );
        assert!(said.err.contains("olmkit adopt"), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(!desk.path("new").exists(), "{flags}");
    }
    let said = desk.run("operator-sdk init --domain example.com --kind Shop --directory new --project-name a");
    assert!(said.code == 2 && said.err.contains("create api"), "{}", said.err);
}

#[test]
fn operator_sdk_create_api() {
    let desk = Desk::new();
    desk.ok("operator-sdk init --domain example.com --project-name cache-operator --directory p");
    desk.ok("operator-sdk create api --group=cache --version v1 --kind=Shop --resource=true --controller=true --namespaced=true --directory p");
    assert!(desk.path("p/src/api/v1/shop.rs").is_file());
}

#[test]
fn operator_sdk_create_webhook() {
    let desk = Desk::new();
    desk.ok("operator-sdk init --domain example.com --project-name cache-operator --directory p");
    desk.ok("operator-sdk create api --group cache --version v1 --kind Shop --directory p");
    desk.ok("operator-sdk create webhook --group cache --version v1 --kind Shop --defaulting=true --programmatic-validation --conversion=false --directory p");
    assert!(desk.path("p/src/webhook").is_dir());
}

#[test]
fn operator_sdk_edit() {
    let desk = Desk::new();
    desk.ok("operator-sdk init --domain example.com --project-name cache-operator --directory p");
    desk.ok("operator-sdk edit --multigroup=true --directory p");
    assert!(desk.text("p/PROJECT").contains("multigroup: true"));
}

#[test]
fn opm_init() {
    let desk = Desk::new();
    // node-healthcheck's catalog-build
    let blob = desk.opm("init demo --default-channel=stable --description=catalog/catalog.yaml --output yaml");
    assert!(blob.contains("defaultChannel: stable"), "{blob}");
}

#[test]
fn opm_render() {
    let desk = Desk::new();
    assert!(desk.opm("render catalog --output yaml").contains("name: demo.v1.0.0"));
    assert!(
        desk.opm("render --skip-tls-verify catalog -oyaml --migrate")
            .contains("name: demo.v1.0.0")
    );
}

#[test]
fn opm_validate() {
    let desk = Desk::new();
    assert_eq!(desk.opm("validate catalog/"), "");
    fs::write(
        desk.path("catalog/catalog.yaml"),
        "schema: olm.channel\npackage: demo\nname: a\n",
    )
    .unwrap();
    for name in ["opm", "olmkit opm", "olmkit"] {
        assert_eq!(desk.run(&format!("{name} validate catalog")).code, 1);
    }
}

#[test]
fn opm_serve() {
    let desk = Desk::new();
    desk.opm("serve catalog --cache-dir=cache --cache-only");
    assert!(desk.path("cache").is_dir());
}

#[test]
fn opm_migrate() {
    let desk = Desk::new();
    for (number, name) in ["opm", "olmkit opm", "olmkit"].iter().enumerate() {
        desk.ok(&format!("{name} migrate catalog migrated-{number} -o yaml"));
        assert!(desk.path(&format!("migrated-{number}/demo/catalog.yaml")).is_file());
    }
    // olmkit's own command of this name still is its own.
    assert!(desk.ok("olmkit migrate --help").contains("OLM v1"));
}

#[test]
fn opm_generate_dockerfile() {
    let desk = Desk::new();
    for name in ["opm", "olmkit opm", "olmkit"] {
        desk.ok(&format!("{name} generate dockerfile catalog -i base.test/opm:1"));
        assert!(desk.text("catalog.Dockerfile").contains("FROM base.test/opm:1"));
        fs::remove_file(desk.path("catalog.Dockerfile")).unwrap();
    }
    assert!(desk.ok("olmkit generate bundle --help").contains("--channels"));
}

#[test]
fn opm_alpha_list() {
    let desk = Desk::new();
    assert!(desk.opm("alpha list bundles catalog demo").contains("demo.v1.0.0"));
    assert!(desk.opm("alpha list channels catalog").contains("stable"));
    assert!(desk.opm("alpha list packages catalog").contains("demo"));
}

#[test]
fn opm_alpha_render_graph() {
    let desk = Desk::new();
    assert!(
        desk.opm("alpha render-graph catalog -p demo --draw-v0-semantics=true")
            .contains("demo")
    );
}

#[test]
fn opm_alpha_templates() {
    let desk = Desk::new();
    let template = desk.opm("alpha convert-template basic catalog/catalog.yaml -o yaml");
    fs::write(desk.path("template.yaml"), &template).unwrap();
    assert!(template.contains("schema: olm.template.basic"), "{template}");
    let template = desk.opm("alpha convert-template substitutes catalog/catalog.yaml -o yaml");
    assert!(template.contains("schema: olm.template.substitutes"), "{template}");
    // cloudnative-pg pipes the template in
    fs::write(
        desk.path("semver.yaml"),
        "schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n  - image: bundle\n",
    )
    .unwrap();
    for name in ["opm", "olmkit opm", "olmkit"] {
        let said = desk.run_with(
            &format!("{name} alpha render-template semver -o yaml"),
            &desk.text("semver.yaml"),
        );
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        assert!(said.out.contains("schema: olm.channel"), "{}", said.out);
    }
}

#[test]
fn opm_alpha_bundle_unpack() {
    let desk = Desk::new();
    desk.ok("olmkit image build bundle --tag demo:v1 --output oci:image bundle");
    for (number, name) in ["opm", "olmkit opm", "olmkit"].iter().enumerate() {
        desk.ok(&format!(
            "{name} alpha bundle unpack oci:image -o unpacked-{number} --skip-validation=true --debug=false"
        ));
        assert!(desk.path(&format!("unpacked-{number}/manifests")).is_dir());
    }
}

#[test]
fn opm_index_add() {
    let desk = Desk::new();
    let add = "index add --bundles bundle --binary server --mode semver --permissive=true";
    // kubernetes-nmstate, keda-olm-operator, and the scaffold of operator-sdk
    for (number, flags) in [
        "--build-tool docker --binary-image quay.io/operator-framework/opm:v1.37.0-amd64",
        "-u docker --permissive",
        "-u=docker -p none",
        "--container-tool docker",
        "-c podman -c docker",
    ]
    .iter()
    .enumerate()
    {
        for name in ["opm", "olmkit opm", "olmkit"] {
            desk.tool("docker", 0);
            desk.ok(&format!("{name} {add} --tag registry.test/c:{number} {flags}"));
            let log = desk.text("docker.log");
            assert!(
                log.starts_with("load --input ") && log.lines().count() == 1,
                "{name} {flags}: {log}"
            );
            fs::remove_file(desk.path("docker.log")).unwrap();
        }
    }
    // The image remains in olmkit's store only if no tool is specified.
    for flags in ["", "--build-tool none", "-c none", "-c="] {
        let out = desk.ok(&format!("opm {add} --tag registry.test/c:none {flags}"));
        assert!(out.starts_with("registry.test/c@sha256:"), "{flags}: {out}");
        assert!(!desk.path("docker.log").exists());
    }
}

#[test]
fn a_build_tool_that_does_not_take_the_image_fails_the_command() {
    let desk = Desk::new();
    let add = "opm index add --bundles bundle --binary server --tag registry.test/c:1";
    for flags in ["-u no-such-tool", "--build-tool no-such-tool", "-c no-such-tool"] {
        let said = desk.run(&format!("{add} {flags}"));
        assert!(
            said.code == 1 && said.err.contains("no-such-tool"),
            "{flags}: {}",
            said.err
        );
    }
    desk.tool("docker", 3);
    let said = desk.run(&format!("{add} -u docker"));
    assert!(said.code == 1 && said.err.contains("failed"), "{}", said.err);
    // As opm has it: the two flags exclude each other.
    assert_eq!(desk.run(&format!("{add} -u docker -c docker")).code, 2);
}

/// A release as OLM's page has it: the objects that the tests' cluster runs, and one CRD.
fn release() -> [(&'static str, Vec<u8>); 2] {
    let crd =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n";
    let olm = fs::read(test_support::repository("dev/cluster/olm.yaml")).unwrap();
    [("crds.yaml", crd.into()), ("olm.yaml", olm)]
}

#[test]
fn olm_install_downloads_the_release() {
    let desk = Desk::new();
    for (flags, directory) in [
        ("", "/download/v0.46.0"),
        ("--version 0.45.0", "/download/v0.45.0"),
        ("--version=latest", "/latest/download"),
    ] {
        let files = release().map(|(name, content)| (format!("{directory}/{name}"), content));
        let sums = files.each_ref().map(|(_, content)| hex(content));
        let names = files.each_ref().map(|(name, _)| name.clone());
        let server = serve(files.into());
        let said = desk.run(&format!("operator-sdk olm install --releases {server} {flags}"));
        // There is no cluster. Everything before it has worked.
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("no-kubeconfig"), "{}", said.err);
        for (name, sum) in names.iter().zip(&sums) {
            assert!(
                said.err
                    .contains(&format!("downloaded {server}{name} (sha256 {sum})\n")),
                "{}",
                said.err
            );
        }
        let pinned = desk.run(&format!(
            "operator-sdk olm install --releases {server} {flags} --checksum 00"
        ));
        assert!(
            pinned.code == 1 && pinned.err.contains("have checksum"),
            "{}",
            pinned.err
        );
    }
}

fn hex(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_failed_download_of_olm_says_what_to_do() {
    let desk = Desk::new();
    let nothing = serve(Vec::new());
    let closed = format!("http://127.0.0.1:{}", test_support::registry::free_port());
    for (releases, reason) in [
        (nothing.as_str(), "answered 404"),
        (closed.as_str(), "refuses connections"),
        ("http://no-such-host.invalid", "no-such-host.invalid"),
        ("ftp//x", "relative URL"),
    ] {
        let said = desk.run(&format!("operator-sdk olm install --releases {releases}"));
        assert_eq!(said.code, 1, "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert!(said.err.contains("/download/v0.46.0/crds.yaml"), "{}", said.err);
        assert!(
            said.err.contains(reason) && said.err.contains("--from DIR"),
            "{}",
            said.err
        );
    }
    let said = desk.run("operator-sdk olm install --version ../../x");
    assert!(
        said.code == 1 && said.err.contains("is not a version of OLM"),
        "{}",
        said.err
    );
}

#[test]
fn commands_that_are_not_here_say_so() {
    let desk = Desk::new();
    for line in [
        "operator-sdk pkgman-to-bundle packages",
        "operator-sdk alpha config-3alpha-to-3",
        "olmkit alpha generate",
        "opm registry add -b x",
        "olmkit registry serve -d x.db",
        "opm index rm -o x",
        "olmkit index prune",
    ] {
        let said = desk.run(line);
        assert!(matches!(said.code, 1 | 2), "{line}: {}", said.out);
        assert!(!said.err.is_empty(), "{line}");
    }
    // Typing errors get olmkit's own message, and opm's help is available for its commands.
    assert!(desk.run("olmkit bundel validate").err.contains("bundle"));
    assert!(desk.ok("olmkit index add --help").contains("--bundles"));
    assert!(desk.ok("olmkit alpha bundle unpack --help").contains("--root-ca"));
    assert!(desk.ok("olmkit --help").contains("Package"));
}

/// A link to a link, as `make` resolves them, and a directory that is read only.
#[test]
fn the_name_of_the_link_decides() {
    let desk = Desk::new();
    symlink(desk.path("bin/olmkit"), desk.path("operator-sdk")).unwrap();
    let output = Command::new(desk.path("operator-sdk")).arg("version").output().unwrap();
    assert!(output.stdout.starts_with(b"operator-sdk version: "));
    assert!(Path::new(env!("CARGO_BIN_EXE_olmkit")).is_file());
}
