//! Repositories whose settings would have git start a program of their author.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const ANNOTATIONS: &str = "\
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: hello
  operators.operatorframework.io.bundle.channels.v1: stable
";

/// A git repository with an operator, and a program that leaves a mark when it runs.
struct Trapped {
    directory: TempDir,
}

impl Trapped {
    fn new() -> Self {
        let trapped = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", trapped.mark().display());
        std::fs::write(trapped.program(), script).unwrap();
        std::fs::set_permissions(trapped.program(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for version in ["0.0.1", "0.0.2"] {
            trapped.bundle(&trapped.root(), &format!("operators/hello/{version}"), version);
        }
        trapped.bundle(trapped.directory.path(), "fresh", "0.0.3");
        trapped.write("operators/hello/ci.yaml", "updateGraph: semver-mode\n");
        trapped.git(&["init", "--quiet", "--initial-branch=main"]);
        trapped.git(&["add", "."]);
        trapped.git(&["commit", "--quiet", "--message=base"]);
        trapped
    }

    fn bundle(&self, root: &Path, directory: &str, version: &str) {
        let csv = format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: hello.v{version}\nspec:\n  \
             version: {version}\n"
        );
        for (path, text) in [
            ("manifests/hello.clusterserviceversion.yaml", csv.as_str()),
            ("metadata/annotations.yaml", ANNOTATIONS),
        ] {
            let path = root.join(directory).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("repository")
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("trap")
    }

    fn program_text(&self) -> String {
        self.program().to_str().unwrap().to_owned()
    }

    fn mark(&self) -> PathBuf {
        self.directory.path().join("mark")
    }

    /// The traps that ran since the last call.
    fn ran(&self) -> String {
        let text = std::fs::read_to_string(self.mark()).unwrap_or_default();
        let _ = std::fs::remove_file(self.mark());
        text
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn git_in(&self, directory: &Path, arguments: &[&str]) -> Output {
        Command::new("git")
            .arg("-C")
            .arg(directory)
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.com",
                "-c",
                "protocol.file.allow=always",
            ])
            .args(arguments)
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.git_in(&self.root(), arguments);
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn set(&self, key: &str, value: &str) {
        self.git(&["config", key, value]);
    }

    /// A file with other content of the same length, which git has to read again.
    fn touch(&self) {
        let path = self.root().join("operators/hello/ci.yaml");
        std::fs::write(&path, "updateGraph: semver-modE\n").unwrap();
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }

    /// Runs each command that calls git, in a directory and with further variables.
    fn commands(&self, root: &Path, variables: &[(&str, OsString)]) -> Vec<Output> {
        let fresh = self.directory.path().join("fresh");
        let fresh = fresh.to_str().unwrap();
        let root = root.to_str().unwrap();
        let all: [&[&str]; 5] = [
            &["repo", "check", "--repo", root, "--base", "HEAD"],
            &["repo", "check", "--repo", root, "--base", "HEAD", "--strict-compat"],
            &["repo", "release", fresh, "--repo", root, "--dry-run"],
            &["repo", "onboard", "hello", "--repo", root, "--dry-run"],
            &[
                "generate",
                "bundle",
                "--package",
                "demo",
                "--version",
                "0.0.1",
                "--output-dir",
                "../generated",
            ],
        ];
        let run = |arguments: &[&str]| {
            assert_cmd::Command::cargo_bin("olmkit")
                .unwrap()
                .args(arguments)
                .current_dir(root)
                .env_remove("SOURCE_DATE_EPOCH")
                .envs(variables.iter().map(|(name, value)| (name, value)))
                .write_stdin(include_str!("generate/operator.yaml"))
                .output()
                .unwrap()
        };
        all.iter().map(|arguments| run(arguments)).collect()
    }

    /// Checks that plain git falls into the trap, and that no command of ours does.
    #[track_caller]
    fn check(&self, plain: &[&str]) {
        self.git_in(&self.root(), plain);
        assert_ne!(self.ran(), "", "the trap does not work: git {plain:?}");
        self.touch();
        let outputs = self.commands(&self.root(), &[]);
        assert_eq!(self.ran(), "", "{outputs:?}");
    }
}

#[test]
fn settings_of_a_repository_start_no_program() {
    let monitor = Trapped::new();
    monitor.set("core.fsmonitor", &monitor.program_text());
    monitor.check(&["status"]);

    for kind in ["clean", "process"] {
        let filter = Trapped::new();
        filter.write(".gitattributes", "*.yaml filter=trap\n");
        filter.set(&format!("filter.trap.{kind}"), &filter.program_text());
        filter.set("filter.trap.required", "true");
        filter.touch();
        filter.check(&["status"]);
    }
    let filter = Trapped::new();
    std::fs::write(filter.root().join(".git/info/attributes"), "* filter=Some.Name\n").unwrap();
    filter.set("filter.Some.Name.clean", &filter.program_text());
    filter.touch();
    filter.check(&["diff"]);

    let differ = Trapped::new();
    differ.touch();
    differ.set("diff.external", &differ.program_text());
    differ.check(&["diff"]);

    for kind in ["textconv", "command"] {
        let converted = Trapped::new();
        converted.write(".gitattributes", "*.yaml diff=trap\n");
        converted.set(&format!("diff.trap.{kind}"), &converted.program_text());
        converted.touch();
        converted.check(&["diff"]);
    }

    let included = Trapped::new();
    let settings = included.directory.path().join("settings");
    std::fs::write(&settings, format!("[core]\nfsmonitor = {}\n", included.program_text())).unwrap();
    included.set("include.path", settings.to_str().unwrap());
    included.check(&["status"]);
}

#[test]
fn hooks_of_a_repository_do_not_run() {
    let hooked = Trapped::new();
    let hook = |directory: &Path| {
        std::fs::create_dir_all(directory).unwrap();
        for name in [
            "post-index-change",
            "post-checkout",
            "pre-commit",
            "reference-transaction",
            "fsmonitor-watchman",
        ] {
            std::fs::copy(hooked.program(), directory.join(name)).unwrap();
        }
    };
    hook(&hooked.root().join(".git/hooks"));
    hooked.touch();
    hooked.check(&["commit", "--allow-empty", "--message=x"]);
    hook(&hooked.root().join("hooks"));
    hooked.set("core.hooksPath", "hooks");
    hooked.check(&["commit", "--allow-empty", "--message=x"]);
}

#[test]
fn signatures_are_not_checked() {
    let signed = Trapped::new();
    let raw = signed.git(&["cat-file", "commit", "HEAD"]);
    let (head, body) = raw.split_once("\n\n").unwrap();
    let commit = format!("{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{body}");
    let file = signed.directory.path().join("commit");
    std::fs::write(&file, commit).unwrap();
    let name = signed.git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]);
    signed.git(&["reset", "--quiet", "--soft", name.trim()]);
    signed.set("log.showSignature", "true");
    signed.set("gpg.program", &signed.program_text());
    signed.check(&["log", "-1"]);
}

#[test]
fn missing_objects_are_not_fetched() {
    for (url, settings) in [
        ("ext::TRAP x", &[("protocol.ext.allow", "always")][..]),
        ("ssh://localhost/x", &[("core.sshCommand", "TRAP")]),
        ("REPOSITORY", &[("remote.origin.uploadpack", "TRAP")]),
    ] {
        let partial = Trapped::new();
        let blob = partial.git(&["rev-parse", "HEAD:operators/hello/ci.yaml"]);
        let filled = |text: &str| {
            text.replace("TRAP", &partial.program_text())
                .replace("REPOSITORY", partial.root().to_str().unwrap())
        };
        partial.set("core.repositoryFormatVersion", "1");
        partial.set("extensions.partialClone", "origin");
        partial.set("remote.origin.promisor", "true");
        partial.set("remote.origin.url", &filled(url));
        for (key, value) in settings {
            partial.set(key, &filled(value));
        }
        let (directory, rest) = blob.trim().split_at(2);
        std::fs::remove_file(partial.root().join(".git/objects").join(directory).join(rest)).unwrap();
        partial.check(&["cat-file", "blob", blob.trim()]);
    }
}

/// Git runs `git status` in each submodule, with the settings of that.
#[test]
fn settings_of_submodules_start_no_program() {
    let outer = Trapped::new();
    let other = Trapped::new();
    outer.git(&["submodule", "--quiet", "add", other.root().to_str().unwrap(), "part"]);
    outer.git(&["commit", "--quiet", "--message=submodule"]);
    let part = outer.root().join("part");
    for (key, value) in [
        ("core.fsmonitor", outer.program_text()),
        ("filter.own.clean", outer.program_text()),
    ] {
        let set = outer.git_in(&part, &["config", key, &value]);
        assert!(set.status.success(), "{set:?}");
    }
    std::fs::write(part.join(".gitattributes"), "* filter=own\n").unwrap();
    std::fs::write(part.join("operators/hello/ci.yaml"), "updateGraph: semver-modE\n").unwrap();
    outer.check(&["status"]);
}

/// A clone can contain a bare repository in a directory, whose settings git would use.
#[test]
fn a_bare_repository_below_a_repository_starts_no_program() {
    let outer = Trapped::new();
    let inner = outer.root().join("vendor/inner");
    std::fs::create_dir_all(&inner).unwrap();
    let made = outer.git_in(&inner, &["init", "--quiet", "--bare"]);
    assert!(made.status.success(), "{made:?}");
    for (key, value) in [
        ("core.bare", "false"),
        ("core.worktree", "."),
        ("core.fsmonitor", outer.program_text().as_str()),
    ] {
        assert!(outer.git_in(&inner, &["config", key, value]).status.success());
    }
    outer.bundle(&inner, "operators/hello/0.0.1", "0.0.1");
    outer.git_in(&inner, &["add", "operators"]);
    outer.git_in(&inner, &["commit", "--quiet", "--message=x"]);
    assert_ne!(outer.ran(), "", "the trap does not work");
    for root in [&inner, &inner.join("operators")] {
        let outputs = outer.commands(root, &[]);
        assert_eq!(outer.ran(), "", "{outputs:?}");
        assert!(
            outputs[..4].iter().all(|output| !output.status.success()),
            "{outputs:?}"
        );
        let text = String::from_utf8_lossy(&outputs[0].stderr).into_owned();
        assert!(root != &inner || text.contains("is a bare git repository"), "{text}");
    }
}

#[test]
fn a_git_file_that_leads_elsewhere_starts_no_program() {
    let outer = Trapped::new();
    let (git, elsewhere) = (outer.root().join(".git"), outer.root().join("elsewhere"));
    std::fs::rename(&git, &elsewhere).unwrap();
    std::fs::write(&git, "gitdir: elsewhere\n").unwrap();
    outer.set("core.fsmonitor", &outer.program_text());
    outer.check(&["status"]);
}

/// Git would read /dev/zero until no memory is left, and wait for a pipe.
#[test]
fn files_of_git_that_never_end_are_rejected() {
    for name in [
        ".git/commondir",
        ".git/HEAD",
        ".git/config.worktree",
        ".git/info/attributes",
    ] {
        for is_pipe in [false, true] {
            let trapped = Trapped::new();
            let path = trapped.root().join(name);
            let _ = std::fs::remove_file(&path);
            if is_pipe {
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            } else {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            }
            let outputs = trapped.commands(&trapped.root(), &[]);
            let text = String::from_utf8_lossy(&outputs[0].stderr).into_owned();
            assert!(!outputs[0].status.success(), "{name}: {text}");
            assert!(text.contains("is not a regular file"), "{name}: {text}");
        }
    }
}

/// A setting can name a device too. Git ends with an error instead of taking all memory.
#[test]
fn settings_that_name_a_device_are_survived() {
    for key in ["core.attributesFile", "core.excludesFile", "include.path"] {
        let trapped = Trapped::new();
        trapped.set(key, "/dev/zero");
        let outputs = trapped.commands(&trapped.root(), &[]);
        assert!(
            outputs.iter().all(|output| output.status.code().is_some()),
            "{key}: {outputs:?}"
        );
    }
}

#[test]
fn variables_of_git_lead_nowhere() {
    let here = Trapped::new();
    let there = Trapped::new();
    there.set("core.fsmonitor", &there.program_text());
    let program = || here.program().into_os_string();
    here.touch();
    let outputs = here.commands(
        &here.root(),
        &[
            ("GIT_DIR", there.root().join(".git").into_os_string()),
            ("GIT_WORK_TREE", there.root().into_os_string()),
            ("GIT_EXTERNAL_DIFF", program()),
            ("GIT_SSH_COMMAND", program()),
            ("GIT_PAGER", program()),
            ("GIT_CONFIG_COUNT", "1".into()),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor".into()),
            ("GIT_CONFIG_VALUE_0", program()),
            ("GIT_TRACE", here.mark().into_os_string()),
        ],
    );
    assert_eq!((here.ran(), there.ran()), (String::new(), String::new()), "{outputs:?}");
}

/// Repositories with a worktree, a submodule, a filter for large files and signed commits.
#[test]
fn ordinary_repositories_still_work() {
    let desk = Trapped::new();
    let other = Trapped::new();
    desk.git(&["submodule", "--quiet", "add", other.root().to_str().unwrap(), "part"]);
    // As git-lfs does it: the repository has a pointer, the working tree the content.
    let clean =
        "d=$(sha256sum | cut -c1-64); printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 8\n' $d";
    desk.set("filter.lfs.clean", clean);
    desk.set("filter.lfs.smudge", "cat > /dev/null; echo content");
    desk.set("filter.lfs.required", "true");
    desk.write(".gitattributes", "*.bin filter=lfs\n");
    desk.write("large.bin", "content\n");
    desk.git(&["add", "."]);
    desk.git(&["commit", "--quiet", "--message=more"]);
    let pointer = desk.git(&["show", "HEAD:large.bin"]);
    assert!(
        pointer.starts_with("version https://git-lfs.github.com/spec/v1\noid sha256:434728a4"),
        "{pointer}"
    );
    // Git has to read it again.
    let large = std::fs::File::options()
        .append(true)
        .open(desk.root().join("large.bin"))
        .unwrap();
    large.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let tree = desk.directory.path().join("tree");
    desk.git(&["worktree", "add", "--quiet", "-b", "topic", tree.to_str().unwrap()]);
    for root in [desk.root(), tree.clone()] {
        let outputs = desk.commands(&root, &[]);
        for output in &outputs[..2] {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!text.contains("git"), "{text}");
        }
        let release = String::from_utf8_lossy(&outputs[2].stderr).into_owned();
        assert!(
            !release.contains("not committed") && !release.contains("git "),
            "{release}"
        );
    }
    // The time of the last commit, from a directory below the root.
    let generated = std::fs::read_to_string(
        desk.directory
            .path()
            .join("generated/manifests/demo.clusterserviceversion.yaml"),
    );
    if let Ok(generated) = generated {
        let time = desk.git(&["log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]);
        assert!(generated.contains(time.trim()), "{generated}");
    } else {
        panic!("nothing is generated");
    }
}
