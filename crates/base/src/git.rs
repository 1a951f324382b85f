//! Runs git in a repository that may come from an untrusted author.
//!
//! A repository's settings can make git start programs. A clone cannot bring settings for itself, but it can contain a
//! bare repository in a subdirectory, and an archive can contain anything. So a call that only reads starts no other
//! program: no hook, no file system monitor, no filter, no signature check, no external diff, no transport. It asks no
//! server for missing objects either.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::files::Directory;
use crate::limits::{self, Limit};
use crate::process::{Environment, Launcher, Run};

/// Settings for each call. They have precedence over those of the repository.
const ALWAYS: &[&str] = &[
    // Only a `.git` marks a repository. Git 2.38 and newer honor this. `refuse_bare` covers older versions.
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Further settings for calls that only read.
const READING: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "status.submoduleSummary=false",
    "fetch.recurseSubmodules=false",
    "protocol.allow=never",
];

/// git variables that do not depend on the repository: the user's settings, and the committer.
const READ_VARIABLES: Environment = Environment::Only(&[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "SYSTEMROOT",
]);
/// Variables that name another repository, set another configuration or start programs. A hook of git sets some of them.
const NOT_WRITTEN_WITH: Environment = Environment::Except(&[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_*",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_VALUE_*",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_*",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_TRACE*",
    "GIT_WORK_TREE",
]);
/// Reading is a matter of seconds, also in the largest operator repositories.
const READ_TIME: Duration = Duration::from_secs(300);
/// Git reads whole files of a repository into memory. A link from such a file can lead to a device, such as /dev/zero.
const READ_MEMORY: u64 = 1 << 30;
/// Files in a git directory that git reads before anything else. An archive can contain a pipe or a link to a device in their place.
const GIT_FILES: [&str; 12] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];

/// A directory in which git runs.
#[derive(Debug, Clone)]
pub struct Repository {
    directory: PathBuf,
    launcher: Launcher,
    /// Settings that disable programs in the repository's settings.
    drivers: Arc<OnceLock<Vec<String>>>,
}

impl Repository {
    /// The repository that contains a directory.
    pub fn new(directory: &Path, launcher: Launcher) -> Self {
        Self {
            directory: directory.to_path_buf(),
            launcher,
            drivers: Arc::default(),
        }
    }

    /// The output of a read-only command, up to a limit. Git starts no other program for it.
    ///
    /// # Errors
    /// Git cannot be run or reports an error.
    pub fn read(&self, arguments: &[&str], limit: &'static Limit) -> io::Result<Vec<u8>> {
        let mut settings: Vec<String> = READING.iter().map(|setting| (*setting).to_owned()).collect();
        let drivers = match self.drivers.get() {
            Some(drivers) => drivers,
            None => {
                let drivers = self.drivers(&settings)?;
                self.drivers.get_or_init(|| drivers)
            }
        };
        settings.extend(drivers.iter().cloned());
        success(self.run(&settings, arguments, Some(limit))?, arguments)
    }

    /// Returns true if a file of the working tree has the content of a pointer of Git Large File Storage (LFS). Git
    /// would run the filter, which is disabled here. `revision` is a commit, or `:0` for the index.
    pub fn is_large_file(&self, revision: &str, path: &str) -> bool {
        let has_filters = self.drivers.get().is_some_and(|drivers| !drivers.is_empty());
        has_filters && self.large_file(revision, path).unwrap_or_default()
    }

    fn large_file(&self, revision: &str, path: &str) -> io::Result<bool> {
        let object = format!("{revision}:{path}");
        let pointer = self.read(&["cat-file", "blob", &object], &limits::LFS_POINTER)?;
        let pointer = limits::text(pointer)?;
        let field = |name: &str| pointer.lines().find_map(|line| line.strip_prefix(name));
        let (Some(_), Some(hash), Some(size)) = (
            field("version https://git-lfs.github.com/spec/v1"),
            field("oid sha256:"),
            field("size "),
        ) else {
            return Ok(false);
        };
        let file = Directory::open(&self.directory)?.file(Path::new(path))?;
        if size.parse() != Ok(file.metadata()?.len()) {
            return Ok(false);
        }
        let mut sha256 = Sha256::new();
        let mut from = io::BufReader::with_capacity(64 << 10, file);
        loop {
            let bytes = from.fill_buf()?;
            let count = bytes.len();
            if count == 0 {
                break;
            }
            sha256.update(bytes);
            from.consume(count);
        }
        let digest = sha256.finalize();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(digest == hash.trim())
    }

    /// Runs a command that changes the repository, with the user's hooks, filters and signatures.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn write(&self, arguments: &[&str]) -> io::Result<()> {
        success(self.run(&[], arguments, None)?, arguments).map(drop)
    }

    /// Each filter and each hook has a name in the settings, and can only be switched off by it.
    fn drivers(&self, settings: &[String]) -> io::Result<Vec<String>> {
        let arguments = ["config", "--null", "--name-only", "--get-regexp", r"^(filter|hook)\."];
        let ended = self.run(settings, &arguments, Some(&limits::SETTINGS_FILE))?;
        // Git exits with 1 if there is none.
        if ended.status.code() == Some(1) {
            return Ok(Vec::new());
        }
        let mut off = Vec::new();
        let mut last = String::new();
        for name in success(ended, &arguments)?.split(|byte| *byte == 0) {
            let name = String::from_utf8_lossy(name);
            let Some((driver, _)) = name.rsplit_once('.') else {
                continue;
            };
            if driver == last {
                continue;
            }
            // `-c` ends a name at the first `=`, so git would set another one.
            if driver.contains(['=', '\u{fffd}']) {
                let reason =
                    format!("the settings of the repository name a driver {driver:?}, which cannot be switched off");
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            let switches: &[&str] = if driver.starts_with("hook.") {
                &["enabled=false", "command=true"]
            } else {
                &["clean=", "smudge=", "process=", "required=false"]
            };
            off.extend(switches.iter().map(|switch| format!("{driver}.{switch}")));
            last = driver.to_owned();
        }
        Ok(off)
    }

    fn run(
        &self,
        settings: &[String],
        arguments: &[&str],
        reads: Option<&'static Limit>,
    ) -> io::Result<crate::process::Ended> {
        refuse_bare(&self.directory)?;
        let environment = if reads.is_some() {
            READ_VARIABLES
        } else {
            NOT_WRITTEN_WITH
        };
        let mut run = Run::new(OsStr::new("git"), environment);
        let set = ALWAYS.iter().copied().chain(settings.iter().map(String::as_str));
        run.arguments = vec!["-C".into(), self.directory.clone().into_os_string()];
        run.arguments
            .extend(set.flat_map(|setting| ["-c", setting]).map(OsString::from));
        run = run.arguments(arguments);
        run.variables = vec![
            ("LC_ALL".into(), "C".into()),
            ("GIT_OPTIONAL_LOCKS".into(), "0".into()),
            ("GIT_TERMINAL_PROMPT".into(), "0".into()),
        ];
        // Hooks and signatures may ask for a passphrase.
        run.prompts = reads.is_none();
        if let Some(limit) = reads {
            run.output = limit;
            run.time = READ_TIME;
            run.memory = Some(READ_MEMORY);
            // Neither a partial clone nor a submodule leads to a fetch: no transport is allowed.
            run.variables.push(("GIT_ALLOW_PROTOCOL".into(), "none".into()));
            run.variables.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
            run.variables.push(("GIT_NO_REPLACE_OBJECTS".into(), "1".into()));
        }
        self.launcher.run(run).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                io::Error::new(error.kind(), format!("cannot run git: {error}; install git"))
            }
            _ => io::Error::new(
                error.kind(),
                format!("git {}: {error}", arguments.first().unwrap_or(&"")),
            ),
        })
    }
}

fn success(ended: crate::process::Ended, arguments: &[&str]) -> io::Result<Vec<u8>> {
    if ended.status.success() {
        return Ok(ended.output);
    }
    let errors = String::from_utf8_lossy(&ended.errors);
    let first = errors.trim().lines().next().unwrap_or_default();
    Err(io::Error::other(format!(
        "git {}: {first}",
        arguments.first().unwrap_or(&"")
    )))
}

/// A directory that git takes for a bare repository, with settings of an unknown author.
fn refuse_bare(directory: &Path) -> io::Result<()> {
    let directory = directory.canonicalize()?;
    for ancestor in directory.ancestors() {
        let has = |name: &str| ancestor.join(name).symlink_metadata().is_ok();
        let is_git_directory = ancestor.file_name() == Some(OsStr::new(".git"));
        if !is_git_directory && has("HEAD") && (has("objects") || has("commondir")) {
            let reason = format!(
                "{} is a bare git repository, whose settings could start programs; pass a directory of a working tree",
                ancestor.display()
            );
            return Err(io::Error::other(reason));
        }
        if has(".git") {
            refuse_special(&ancestor.join(".git"))?;
            break;
        }
    }
    Ok(())
}

/// Rejects pipes and devices, which may never end, in a git directory.
fn refuse_special(git: &Path) -> io::Result<()> {
    let files = GIT_FILES.iter().map(|name| git.join(name));
    for path in std::iter::once(git.to_owned()).chain(files) {
        let is_special = |kind: std::fs::Metadata| !kind.is_file() && !kind.is_dir();
        if path.metadata().is_ok_and(is_special) {
            let reason = format!("{} is not a regular file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
    }
    Ok(())
}
