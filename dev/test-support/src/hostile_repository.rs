//! Builds operator repositories from bytes, with links, modes, names, nested repositories and git settings. The fuzz target `clone`
//! and a test run `olmkit repo` on them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Content of a file outside the repository.
pub const SECRET: &str = "canary-of-the-host";

/// Paths that an operation can change.
const PATHS: &[&[u8]] = &[
    b"operators/hello/ci.yaml",
    b"operators/hello/0.0.1",
    b"operators/hello/0.0.1/manifests",
    b"operators/hello/0.0.1/manifests/hello.clusterserviceversion.yaml",
    b"operators/hello/0.0.1/manifests/more.yaml",
    b"operators/hello/0.0.1/metadata/annotations.yaml",
    b"operators/hello/0.0.1/tests/scorecard/config.yaml",
    b"operators/hello/0.0.2/manifests/hello.clusterserviceversion.yaml",
    b"operators/hello/0.0.2/metadata",
    b"operators/hello/0.0.2/release-config.yaml",
    b"operators/hello/catalog-templates/basic.yaml",
    b"operators/hello/catalog-templates",
    b"operators/hello/0.0.3",
    b"operators/hello/--upload-pack=TRAP",
    b"operators/\xff\xfe/ci.yaml",
    b"operators/two\nlines/0.0.1/manifests/a.yaml",
    b"operators/hello/..\\..\\x/a.yaml",
    b"operators",
    b"catalogs",
    b"catalogs/v4.20",
    b"catalogs/v4.20/hello",
    b"catalogs/v4.20/hello/catalog.yaml",
    b"catalogs/v4.20/hello/.indexignore",
    b"config.yaml",
    b"ci/pipeline-config.yaml",
    b"categories.json",
    b"olmkit.toml",
    b".gitattributes",
    b"operators/.gitattributes",
    b".gitmodules",
    b".gitignore",
    b"vendor/inner",
    b"operators/hello/0.0.1/.git",
    b"operators/.git",
    b".git/info/attributes",
    b".git/info/grafts",
    b".git/objects/info/alternates",
    b".git/commondir",
    b".git/config.worktree",
];

const HOOKS: &[&str] = &[
    "post-index-change",
    "post-checkout",
    "pre-commit",
    "reference-transaction",
    "fsmonitor-watchman",
    "query-watchman",
];

/// Settings that make git start a program or read other files.
const SETTINGS: &[&str] = &[
    "[core]\n\tfsmonitor = TRAP\n",
    "[core]\n\tfsmonitor = true\n",
    "[core]\n\thooksPath = hooks\n",
    "[core]\n\tpager = TRAP\n\teditor = TRAP\n\taskPass = TRAP\n",
    "[core]\n\tsshCommand = TRAP\n\tgitProxy = TRAP\n\talternateRefsCommand = TRAP\n",
    "[core]\n\tworktree = OUTSIDE\n",
    "[core]\n\tworktree = .\n\tbare = false\n",
    "[core]\n\tattributesFile = OUTSIDE/attributes\n\texcludesFile = OUTSIDE/secret.yaml\n",
    "[diff]\n\texternal = TRAP\n[diff \"trap\"]\n\ttextconv = TRAP\n\tcommand = TRAP\n",
    "[filter \"trap\"]\n\tclean = TRAP\n\tsmudge = TRAP\n\trequired = true\n",
    "[filter \"trap\"]\n\tprocess = TRAP\n",
    "[filter \"Other.Name\"]\n\tclean = TRAP\n",
    "[gpg]\n\tprogram = TRAP\n[log]\n\tshowSignature = true\n[gpg \"ssh\"]\n\tprogram = TRAP\n",
    "[credential]\n\thelper = TRAP\n[uploadpack]\n\tpackObjectsHook = TRAP\n",
    "[remote \"origin\"]\n\turl = ext::TRAP x\n\tuploadpack = TRAP\n\tpromisor = true\n[protocol]\n\tallow = always\n[extensions]\n\tpartialClone = origin\n",
    "[alias]\n\tstatus = !TRAP\n\tdiff = !TRAP\n\tls-files = !TRAP\n\trev-parse = !TRAP\n",
    "[include]\n\tpath = OUTSIDE/settings\n",
    "[includeIf \"gitdir:**\"]\n\tpath = ../settings\n",
    "[submodule \"x\"]\n\tpath = vendor/inner\n\tupdate = !TRAP\n[submodule]\n\trecurse = true\n[status]\n\tsubmoduleSummary = true\n",
    "[merge \"trap\"]\n\tdriver = TRAP\n[trailer \"x\"]\n\tcommand = TRAP\n",
    "[extensions]\n\tworktreeConfig = true\n",
    "[interactive]\n\tdiffFilter = TRAP\n[pager]\n\tstatus = TRAP\n[sequence]\n\teditor = TRAP\n",
];

const ANNOTATIONS: &str = "\
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: hello
  operators.operatorframework.io.bundle.channels.v1: stable
";
const CI: &str = "updateGraph: semver-mode\n";
const FBC: &str = "\
fbc:
  enabled: true
  catalog_mapping:
    - template_name: basic.yaml
      catalog_names: [v4.20]
      type: olm.template.basic
";

/// File contents. `CSV` is replaced by a ClusterServiceVersion.
const TEXTS: &[&str] = &[
    "",
    "CSV",
    ANNOTATIONS,
    CI,
    FBC,
    "* filter=trap diff=trap merge=trap\n",
    "* filter=Other.Name\n*.yaml -text ident\n",
    "gitdir: ../../../../vendor/inner\n",
    "gitdir: OUTSIDE/repository\n",
    "[submodule \"x\"]\n\tpath = vendor/inner\n\turl = ext::TRAP x\n\tupdate = !TRAP\n",
    "OUTSIDE/repository/objects\n",
    "schema: olm.template.basic\nentries:\n  - schema: olm.bundle\n    image: OUTSIDE/secret.yaml\n",
    "schema: olm.package\nname: hello\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: hello\nname: stable\nentries: []\n",
    "catalog_templates:\n  - template_name: ../../../../OUTSIDE/secret.yaml\n    channels: [stable]\n",
    "organization: community-operators\nallowed_bundle_registries: [quay.io/x/]\n",
    "[rules]\n\"*\" = \"off\"\n",
    "{{{{[[[[\u{0}",
];

/// Link targets.
const TARGETS: &[&str] = &[
    "OUTSIDE/secret.yaml",
    "OUTSIDE",
    "../../../../outside/secret.yaml",
    "../../../outside",
    "../outside/secret.yaml",
    "/proc/self/environ",
    "/proc/self/cwd/../outside/secret.yaml",
    "/dev/zero",
    "..",
    ".",
    "../hello",
    "0.0.1",
    "nowhere",
    ".git/config",
];

const MODES: &[u32] = &[0o755, 0o644, 0o000, 0o4755, 0o222, 0o1777];

/// A repository, a directory outside it, and a program that writes a log when it runs.
pub struct HostileRepository {
    folder: TempDir,
}

/// Reads numbers from bytes. Zeros follow the last byte.
struct Choices<'d>(&'d [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn of<'v, T: ?Sized>(&mut self, values: &'v [&'v T]) -> &'v T {
        values[usize::from(self.byte()) % values.len()]
    }
}

impl HostileRepository {
    /// Builds the repository that the bytes describe.
    pub fn new(data: &[u8]) -> Self {
        let hostile = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        hostile.begin();
        let mut choices = Choices(data);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        while !choices.0.is_empty() && before.len() + after.len() < 40 {
            let is_late = choices.byte() & 1 == 1;
            let operation = Operation::read(&mut choices);
            match is_late || operation.is_of_git() {
                true => after.push(operation),
                false => before.push(operation),
            }
        }
        before.iter().for_each(|operation| hostile.apply(operation));
        hostile.commit();
        after.iter().for_each(|operation| hostile.apply(operation));
        hostile
    }

    fn begin(&self) {
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\nexit 1\n", self.mark().display());
        write(&self.trap(), script.as_bytes());
        fs::set_permissions(self.trap(), fs::Permissions::from_mode(0o755)).unwrap();
        write(&self.outside().join("secret.yaml"), format!("a: {SECRET}\n").as_bytes());
        write(&self.outside().join("settings"), self.filled(SETTINGS[0]).as_bytes());
        write(&self.outside().join("attributes"), b"* filter=trap\n");
        self.nested(&self.outside().join("repository"), SETTINGS[0]);
        for (root, version) in [
            (self.root().join("operators/hello/0.0.1"), "0.0.1"),
            (self.root().join("operators/hello/0.0.2"), "0.0.2"),
            (self.bundle(), "0.0.3"),
        ] {
            write(&root.join("metadata/annotations.yaml"), ANNOTATIONS.as_bytes());
            write(
                &root.join("manifests/hello.clusterserviceversion.yaml"),
                csv(version).as_bytes(),
            );
        }
        write(&self.root().join("operators/hello/ci.yaml"), CI.as_bytes());
        self.git(&["init", "--quiet", "--initial-branch=main"]);
    }

    /// Commits with plain git, before the repository has any hostile setting.
    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message=base"]);
    }

    /// Runs plain git. A tree that git cannot add or commit remains uncommitted, which is a valid input.
    fn git(&self, arguments: &[&str]) {
        let _ = Command::new("git")
            .arg("-C")
            .arg(self.root())
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@example.com",
                "-c",
                "core.hooksPath=/dev/null",
            ])
            .args(["-c", "core.attributesFile=/dev/null"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }

    fn apply(&self, operation: &Operation) {
        let Some(place) = self.place(operation.path()) else {
            return;
        };
        match operation {
            Operation::File { text, .. } => {
                let text = match *text {
                    "CSV" => csv("0.0.1"),
                    text => self.filled(text),
                };
                try_write(&place, text.as_bytes());
            }
            Operation::Link { target, .. } => {
                clear(&place);
                let _ = symlink(self.filled(target), place);
            }
            Operation::Mode { mode, .. } => {
                // chmod follows links.
                if fs::symlink_metadata(&place).is_ok_and(|found| !found.is_symlink()) {
                    let _ = fs::set_permissions(place, fs::Permissions::from_mode(*mode));
                }
            }
            Operation::Pipe { .. } => {
                clear(&place);
                let _ = Command::new("mkfifo").arg(place).stderr(Stdio::null()).status();
            }
            Operation::Nested { settings, .. } => {
                clear(&place);
                self.nested(&place, settings);
                try_write(&place.join("operators/hello/ci.yaml"), CI.as_bytes());
            }
            Operation::Setting { settings } => {
                let text = fs::read_to_string(&place).unwrap_or_default();
                try_write(&place, format!("{text}{}", self.filled(settings)).as_bytes());
            }
            Operation::Hook { name } => {
                for folder in [".git/hooks", "hooks"] {
                    let place = self.root().join(folder).join(name);
                    let _ = fs::create_dir_all(self.root().join(folder));
                    let _ = fs::copy(self.trap(), place);
                }
            }
        }
    }

    /// Writes a bare repository. A clone can contain one.
    fn nested(&self, place: &Path, settings: &str) {
        let config = format!(
            "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n{}",
            self.filled(settings)
        );
        try_write(&place.join("HEAD"), b"ref: refs/heads/main\n");
        try_write(&place.join("config"), config.as_bytes());
        let _ = fs::create_dir_all(place.join("objects"));
        let _ = fs::create_dir_all(place.join("refs/heads"));
    }

    /// A path in the repository, or `None` if a parent is a link: writing there could change other directories.
    fn place(&self, path: &[u8]) -> Option<PathBuf> {
        let place = self.root().join(OsStr::from_bytes(path));
        let above = place.ancestors().skip(1).take_while(|above| *above != self.root());
        let is_link = |above: &Path| fs::symlink_metadata(above).is_ok_and(|found| found.is_symlink());
        (!above.into_iter().any(is_link)).then_some(place)
    }

    fn filled(&self, text: &str) -> String {
        text.replace("TRAP", self.trap().to_str().unwrap())
            .replace("OUTSIDE", self.outside().to_str().unwrap())
    }

    /// The repository.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// A bundle for `repo release`.
    pub fn bundle(&self) -> PathBuf {
        self.folder.path().join("fresh")
    }

    /// A directory that no command may open.
    pub fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn trap(&self) -> PathBuf {
        self.folder.path().join("trap")
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("mark")
    }

    /// The log of the program. It is empty if the program never ran.
    pub fn ran(&self) -> String {
        fs::read_to_string(self.mark()).unwrap_or_default()
    }

    /// The arguments of each command that reads the repository.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let root = self.root().to_str().unwrap().to_owned();
        let bundle = self.bundle().to_str().unwrap().to_owned();
        [
            "repo check --repo ROOT --base HEAD",
            "repo check --repo ROOT --suite operatorhub --strict-compat",
            "repo release BUNDLE --repo ROOT --dry-run",
            "repo release ROOT/operators/hello/0.0.1 --repo ROOT --dry-run",
            "repo onboard hello --repo ROOT --ocp-versions 4.20-4.20 --image-ref-template r.example.com/{{.Package}}:{{.Version}} --dry-run",
        ]
        .iter()
        .map(|command| {
            let filled = |word: &str| word.replace("ROOT", &root).replace("BUNDLE", &bundle);
            command.split(' ').map(filled).collect()
        })
        .collect()
    }
}

impl Drop for HostileRepository {
    /// Restores the modes that would prevent the removal of the directory.
    fn drop(&mut self) {
        let mut waiting = vec![self.folder.path().to_owned()];
        while let Some(folder) = waiting.pop() {
            let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o755));
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    waiting.push(entry.path());
                }
            }
        }
    }
}

/// A change of the repository.
enum Operation {
    File {
        path: &'static [u8],
        text: &'static str,
    },
    Link {
        path: &'static [u8],
        target: &'static str,
    },
    Mode {
        path: &'static [u8],
        mode: u32,
    },
    Pipe {
        path: &'static [u8],
    },
    Nested {
        path: &'static [u8],
        settings: &'static str,
    },
    Setting {
        settings: &'static str,
    },
    Hook {
        name: &'static str,
    },
}

impl Operation {
    fn read(choices: &mut Choices<'_>) -> Self {
        let kind = choices.byte() % 9;
        let path = choices.of(PATHS);
        match kind {
            0 | 1 => Self::File {
                path,
                text: choices.of(TEXTS),
            },
            2 | 3 => Self::Link {
                path,
                target: choices.of(TARGETS),
            },
            4 => Self::Mode {
                path,
                mode: MODES[usize::from(choices.byte()) % MODES.len()],
            },
            // Plain git would wait for a writer. Git does not store pipes, so a clone cannot contain one.
            5 if !names_git(path) => Self::Pipe { path },
            5 => Self::File {
                path,
                text: choices.of(TEXTS),
            },
            6 => Self::Nested {
                path,
                settings: choices.of(SETTINGS),
            },
            7 => Self::Setting {
                settings: choices.of(SETTINGS),
            },
            _ => Self::Hook {
                name: choices.of(HOOKS),
            },
        }
    }

    fn path(&self) -> &'static [u8] {
        match self {
            Self::Setting { .. } => b".git/config",
            Self::Hook { .. } => b".git/hooks",
            Self::File { path, .. }
            | Self::Link { path, .. }
            | Self::Mode { path, .. }
            | Self::Pipe { path }
            | Self::Nested { path, .. } => path,
        }
    }

    fn is_of_git(&self) -> bool {
        names_git(self.path())
    }
}

/// True if git reads the file for itself.
fn names_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part.starts_with(b".git"))
}

fn csv(version: &str) -> String {
    format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: hello.v{version}\nspec:\n  \
         version: {version}\n"
    )
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Writes a file if possible. Replaces links and pipes instead of writing through them.
fn try_write(path: &Path, content: &[u8]) {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        clear(path);
    }
    let _ = path.parent().map(fs::create_dir_all);
    let _ = fs::write(path, content);
}

fn clear(path: &Path) {
    let _ = path.parent().map(fs::create_dir_all);
    let _ = fs::remove_dir_all(path);
    let _ = fs::remove_file(path);
}
