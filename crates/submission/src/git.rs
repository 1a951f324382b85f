//! A commit as the files of a repository, and the later changes. Runs the `git` command.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use olmkit::git::Repository;
use olmkit::limits;
use olmkit::process::Launcher;

use crate::files::{Files, is_directory, limit, list};

/// The working tree of a git repository.
#[derive(Debug, Clone)]
pub struct Git {
    directory: PathBuf,
    repository: Repository,
}

/// The files of a commit, read when they are needed. Symbolic links and submodules are absent.
#[derive(Debug, Clone)]
pub struct Commit {
    git: Git,
    /// Object names by path.
    files: BTreeMap<String, String>,
}

impl Git {
    /// The repository whose root is a directory.
    pub fn new(directory: &Path, launcher: Launcher) -> Self {
        Self {
            directory: directory.to_path_buf(),
            repository: Repository::new(directory, launcher),
        }
    }

    fn read(&self, arguments: &[&str]) -> io::Result<Vec<u8>> {
        self.repository.read(arguments, &limits::PROGRAM_OUTPUT)
    }

    fn lines(&self, arguments: &[&str]) -> io::Result<Vec<String>> {
        let output = self.read(arguments)?;
        let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// The commit that a reference names.
    ///
    /// # Errors
    /// The string is not a reference, or the commit does not exist.
    pub fn resolve(&self, reference: &str) -> io::Result<String> {
        if !is_reference(reference) {
            let problem = format!("{reference:?} is not the name of a commit; pass a branch such as origin/main");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let prefix = self.read(&["rev-parse", "--show-prefix"]).map_err(|error| {
            if error.kind() == io::ErrorKind::Other {
                let directory = self.directory.display();
                io::Error::other(format!("{directory} is not a git repository: {error}"))
            } else {
                error
            }
        })?;
        if !prefix.trim_ascii().is_empty() {
            let directory = self.directory.display();
            return Err(io::Error::other(format!(
                "{directory} is a directory inside a git repository: pass the repository's root as --repo"
            )));
        }
        let commit = format!("{reference}^{{commit}}");
        let found = self.read(&["rev-parse", "--verify", "--quiet", &commit]).map_err(|error| {
            if error.kind() == io::ErrorKind::Other {
                io::Error::other(format!(
                    "no commit {reference} in the git repository {}: fetch it first (git fetch origin), or pass another one",
                    self.directory.display()
                ))
            } else {
                error
            }
        })?;
        Ok(String::from_utf8_lossy(&found).trim().to_owned())
    }

    /// Files that differ from the last commit, including new ones.
    ///
    /// # Errors
    /// The directory is not the root of a git repository, or has no commit.
    pub fn uncommitted(&self) -> io::Result<Vec<String>> {
        self.resolve("HEAD")?;
        let mut files = self.lines(&["status", "--porcelain", "-z", "--ignore-submodules=dirty"])?;
        files.retain(|entry| match entry.strip_prefix(" M ") {
            Some(path) => !self.repository.is_large_file(":0", path),
            None => true,
        });
        Ok(files)
    }

    /// Commits only the given files, with the author's sign-off. Nothing remains staged if that fails.
    ///
    /// # Errors
    /// Git has no author, a hook rejects the commit, or a file cannot be added.
    pub fn commit_files(&self, files: &[String], title: &str) -> io::Result<()> {
        let with = |command: &[&str]| -> Vec<String> {
            let command = command.iter().map(|part| (*part).to_owned());
            command.chain(["--".to_owned()]).chain(files.iter().cloned()).collect()
        };
        let run = |arguments: &[String]| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.repository.write(&arguments)
        };
        let add = run(&with(&["add", "--all", "--force"]));
        let committed = add.and_then(|_| run(&with(&["commit", "--quiet", "--signoff", "--message", title])));
        if committed.is_err() {
            let _ = run(&with(&["reset", "--quiet"]));
        }
        committed.map(drop)
    }

    /// The current branch. `None` without one.
    pub fn current_branch(&self) -> Option<String> {
        let output = self.read(&["symbolic-ref", "--quiet", "--short", "HEAD"]).ok()?;
        Some(String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// Checks that a branch can be created.
    ///
    /// # Errors
    /// The name cannot be that of a branch, or the branch exists.
    pub fn check_new_branch(&self, branch: &str) -> io::Result<()> {
        let is_sound = is_reference(branch) && self.read(&["check-ref-format", "--branch", branch]).is_ok();
        if !is_sound {
            let problem = format!("{branch:?} cannot be the name of a branch");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let full = format!("refs/heads/{branch}");
        if self.read(&["show-ref", "--verify", "--quiet", &full]).is_ok() {
            let problem = format!("the branch {branch} already exists");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        Ok(())
    }

    /// Creates a branch from the current commit, and commits files as [`Self::commit_files`] does. After a failure, it switches back to the
    /// former branch.
    ///
    /// # Errors
    /// As [`Self::commit_files`], or the branch cannot be created.
    pub fn commit_on_new_branch(&self, branch: &str, files: &[String], title: &str) -> io::Result<()> {
        self.repository.write(&["switch", "--quiet", "--create", branch])?;
        let committed = self.commit_files(files, title);
        if committed.is_err() {
            let _ = self.repository.write(&["switch", "--quiet", "-"]);
            let _ = self.repository.write(&["branch", "--quiet", "--delete", branch]);
        }
        committed
    }

    /// The remote to push to: that of the current branch, the only one, or `origin`.
    pub fn remote(&self) -> String {
        let lines = |arguments: &[&str]| {
            let output = self.read(arguments).unwrap_or_default();
            let text = String::from_utf8_lossy(&output).into_owned();
            text.lines().map(str::to_owned).collect::<Vec<String>>()
        };
        let branch = lines(&["rev-parse", "--abbrev-ref", "HEAD"]).pop().unwrap_or_default();
        let own = lines(&["config", "--get", &format!("branch.{branch}.remote")]).pop();
        let all = lines(&["remote"]);
        let only = || match all.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        own.or_else(only).unwrap_or_else(|| "origin".to_owned())
    }

    /// The files of a commit.
    ///
    /// # Errors
    /// Git cannot list them.
    pub fn commit(&self, commit: &str) -> io::Result<Commit> {
        let mut files = BTreeMap::new();
        for line in self.lines(&["ls-tree", "-r", "-z", "--full-tree", commit])? {
            let Some((head, path)) = line.split_once('\t') else {
                continue;
            };
            let mut head = head.split(' ');
            if let (Some("100644" | "100755"), Some("blob"), Some(object)) = (head.next(), head.next(), head.next()) {
                files.insert(path.to_owned(), object.to_owned());
            }
        }
        Ok(Commit {
            git: self.clone(),
            files,
        })
    }

    /// The files that differ between the merge base with a commit and the working tree, including new ones. With
    /// `renames` a renamed file counts only under its new name, as GitHub lists it.
    ///
    /// # Errors
    /// Git cannot compare them.
    pub fn changed(&self, commit: &str, renames: bool) -> io::Result<Vec<String>> {
        let parted = self.read(&["merge-base", commit, "HEAD"]).map_err(|error| {
            io::Error::other(format!(
                "{error}; the base and HEAD have no common history here: fetch more of it (git fetch --unshallow)"
            ))
        })?;
        let parted = String::from_utf8_lossy(&parted).trim().to_owned();
        let detection = if renames { "--find-renames" } else { "--no-renames" };
        let arguments = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=dirty",
            "--name-only",
            "-z",
            detection,
            &parted,
        ];
        let mut files = self.lines(&arguments)?;
        files.retain(|path| !self.repository.is_large_file(&parted, path));
        files.extend(self.lines(&["ls-files", "--others", "--exclude-standard", "--full-name", "-z"])?);
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// Returns true if a string can name a commit, and cannot be mistaken for a flag or a path.
fn is_reference(text: &str) -> bool {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'+' | b'@' | b'~' | b'^' | b'#')
    };
    !text.is_empty() && text.len() <= 256 && !text.starts_with('-') && !text.contains("..") && text.bytes().all(allowed)
}

impl Files for Commit {
    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        is_directory(&self.files, path)
    }

    fn list(&self, path: &str) -> Vec<String> {
        list(&self.files, path)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let object = self.files.get(path).ok_or(io::ErrorKind::NotFound)?;
        self.git.repository.read(&["cat-file", "blob", object], limit(path))
    }
}

#[cfg(test)]
mod tests {
    use super::is_reference;

    #[test]
    fn only_names_of_commits_reach_git() {
        for text in ["origin/main", "HEAD~2", "v1.0.0", "main@{", "abc123"] {
            assert_eq!(is_reference(text), !text.contains('{'), "{text}");
        }
        for text in ["", "--output=x", "-", "a..b", "a b", "a:b", "a\nb", "a;b", "$(x)"] {
            assert!(!is_reference(text), "{text}");
        }
    }
}
