//! `olmkit repo onboard` and `olmkit repo release`

mod onboard;
mod recorded;
mod release;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const CATALOG_OF_OPM: &str = "opm";

/// A community repository below a temporary directory.
struct Desk {
    directory: TempDir,
}

/// Output of a run.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Desk {
    fn new() -> Self {
        let desk = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        desk.write(
            "config.yaml",
            "organization: community-operators\nallowed_bundle_registries:\n- quay.io/community/\n",
        );
        desk
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A bundle inside or outside the repository, as `operators/hello/0.0.1`.
    fn bundle(&self, directory: &Path, version: &str, spec: &str) {
        let write = |path: &str, text: &str| {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let csv = CSV.replace("VERSION", version) + spec;
        write("manifests/hello.clusterserviceversion.yaml", &csv);
        write("metadata/annotations.yaml", ANNOTATIONS);
    }

    fn in_repository(&self, version: &str, spec: &str) {
        self.bundle(&self.root().join("operators/hello").join(version), version, spec);
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let output = assert_cmd::Command::cargo_bin("olmkit")
            .unwrap()
            .arg("repo")
            .args(arguments)
            .current_dir(self.root())
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@example.com")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@example.com")
            .output()
            .unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.root())
            .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
            .args(["-c", "init.defaultBranch=main"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit_all(&self) {
        if !self.root().join(".git").exists() {
            self.git(&["init", "-q"]);
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "base"]);
    }

    /// All files with their contents, except git's.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        files(&self.root())
    }
}

impl Said {
    fn fine(&self) -> &Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    fn refused(&self, with: &str) {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        assert!(
            format!("{}{}", self.out, self.err).contains(with),
            "{with}: {}{}",
            self.out,
            self.err
        );
    }
}

fn files(root: &Path) -> BTreeMap<PathBuf, String> {
    walk(root, &mut |path| !path.ends_with(".git"))
}

fn walk(directory: &Path, wanted: &mut dyn FnMut(&Path) -> bool) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && wanted(&entry) {
            found.extend(walk(&entry, wanted));
        } else if entry.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&entry).unwrap()).into_owned();
            found.insert(entry, text);
        }
    }
    found
}

/// `opm` of `dev/tools`. Prints a line if it is missing.
fn opm() -> Option<PathBuf> {
    match kube_testbed::tools::program(CATALOG_OF_OPM) {
        Ok(path) => Some(path),
        Err(error) => {
            eprintln!("not compared with opm: {error}");
            None
        }
    }
}

const ANNOTATIONS: &str = "\
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: hello
  operators.operatorframework.io.bundle.channels.v1: stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
  com.redhat.openshift.versions: v4.20-v4.21
";

const CSV: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: hello.vVERSION
  annotations:
    capabilities: Basic Install
    categories: Database
    containerImage: quay.io/example/hello:vVERSION
    createdAt: '2026-01-01T00:00:00Z'
    repository: https://example.com/hello
    support: Example
    description: Says hello to everybody
    alm-examples: '[]'
spec:
  displayName: Hello
  description: Says hello to everybody who asks for it.
  version: VERSION
  minKubeVersion: 1.25.0
  maturity: alpha
  keywords: [hello]
  icon:
  - base64data: aGVsbG8=
    mediatype: image/png
  links:
  - name: Hello
    url: https://example.com/hello
  maintainers:
  - name: a
    email: a@example.com
  provider:
    name: Example
  installModes:
  - supported: true
    type: AllNamespaces
  install:
    strategy: deployment
    spec:
      deployments:
      - name: hello
        spec:
          selector:
            matchLabels:
              app: hello
          template:
            metadata:
              labels:
                app: hello
            spec:
              containers:
              - name: hello
                image: quay.io/example/hello:vVERSION
";
