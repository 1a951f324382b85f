//! The three copying programs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::Error;
use olmkit::yaml;

const ANNOTATIONS_FILE: &str = "annotations.yaml";
/// In bytes. A real file has less than a thousand.
const LARGEST_ANNOTATIONS: u64 = 1 << 20;
const MANIFESTS_KEY: &str = "operators.operatorframework.io.bundle.manifests.v1";
/// File systems of the kernel. A search through an image's root must not descend into them.
const KERNEL_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// `cp [options] SOURCE... TARGET` as far as OLM uses it: permission bits are kept, links given as SOURCE are followed,
/// directories are copied recursively. Options are accepted and ignored.
pub fn copy_files(arguments: &[PathBuf]) -> Result<(), Error> {
    let mut options = true;
    let paths: Vec<&PathBuf> = arguments
        .iter()
        .filter(|argument| {
            if options && argument.as_os_str() == "--" {
                options = false;
                return false;
            }
            !(options && argument.as_os_str().len() > 1 && argument.to_string_lossy().starts_with('-'))
        })
        .collect();
    let Some((target, sources)) = paths.split_last().filter(|(_, sources)| !sources.is_empty()) else {
        return Err(Error::Usage("usage: cp [options] SOURCE... TARGET".to_owned()));
    };
    if sources.len() > 1 && !target.is_dir() {
        return Err(Error::Usage(format!("{} is not a directory", target.display())));
    }
    for source in sources {
        let target = match source.file_name() {
            Some(name) if target.is_dir() => target.join(name),
            _ => (*target).clone(),
        };
        let metadata = fs::metadata(source).map_err(Error::file("copy", source))?;
        if metadata.is_dir() {
            copy_tree(source, &target, Mounts::Copy)?
        } else {
            copy_file(source, &target)?
        }
    }
    Ok(())
}

/// `cpb`: finds the bundle in the image whose root is `root` and copies `metadata/annotations.yaml` and the manifests
/// into `target`. Returns where they were.
///
/// Like the original, it searches for a file named `annotations.yaml` anywhere below the root, in the order of names,
/// and uses the last one. That file's annotation names the manifests.
pub fn copy_bundle(root: &Path, target: &Path) -> Result<(PathBuf, PathBuf), Error> {
    let annotations = find_annotations(root)?.unwrap_or_else(|| root.join("metadata").join(ANNOTATIONS_FILE));
    let directory = manifests_folder(&annotations)?.unwrap_or_else(|| "manifests".to_owned());
    let manifests = inside(root, &annotations, &directory)?;
    if !manifests.is_dir() {
        return Err(Error::Annotations {
            path: annotations,
            reason: format!("the manifests directory {} does not exist", manifests.display()),
        });
    }
    let metadata = target.join("metadata");
    fs::create_dir_all(&metadata).map_err(Error::file("create", &metadata))?;
    copy_file(&annotations, &metadata.join(ANNOTATIONS_FILE))?;
    copy_tree(&manifests, &target.join("manifests"), Mounts::LeaveOut)?;
    Ok((annotations, manifests))
}

/// The directory of the manifests, which must be part of the image: no `..`, no link, and no mounted path, such as the
/// token of the pod's service account.
fn inside(root: &Path, annotations: &Path, directory: &str) -> Result<PathBuf, Error> {
    let refused = |reason: &str| Error::Annotations {
        path: annotations.to_owned(),
        reason: format!("{MANIFESTS_KEY} must be a directory of the bundle image, not {directory:?}: {reason}"),
    };
    let mut path = root.to_owned();
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    let own = device(annotations.parent().unwrap_or(root)).ok();
    for part in Path::new(directory).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => continue,
            _ => return Err(refused("it leads out of the image")),
        }
        if path.is_symlink() {
            return Err(refused("it contains a link"));
        }
        if path.is_dir() && own.is_some() && device(&path).ok() != own {
            return Err(refused("it is mounted into the pod"));
        }
    }
    Ok(path)
}

/// The last `annotations.yaml` in the order of names. Unreadable directories are skipped: an image may contain
/// directories that the user must not enter.
fn find_annotations(root: &Path) -> Result<Option<PathBuf>, Error> {
    let mut found = None;
    let mut walk = walkdir::WalkDir::new(root).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_dir() {
            let path = Path::new("/").join(entry.path().strip_prefix(root).unwrap_or(entry.path()));
            let of_the_kernel = KERNEL_FOLDERS.iter().any(|directory| path == Path::new(directory));
            if of_the_kernel && (root == Path::new("/") || root == Path::new(".")) {
                walk.skip_current_dir();
            }
        } else if entry.file_type().is_file() && entry.file_name() == ANNOTATIONS_FILE {
            found = Some(entry.into_path());
            // The rest of that directory does not count.
            walk.skip_current_dir();
        }
    }
    Ok(found)
}

fn manifests_folder(annotations: &Path) -> Result<Option<String>, Error> {
    let size = super::regular(annotations)?.len();
    if size > LARGEST_ANNOTATIONS {
        return Err(Error::TooLarge {
            limit: LARGEST_ANNOTATIONS,
            size,
            path: annotations.to_owned(),
        });
    }
    let bytes = fs::read(annotations).map_err(Error::file("read", annotations))?;
    let invalid = |reason: String| Error::Annotations {
        path: annotations.to_owned(),
        reason,
    };
    let document = yaml::parse(&bytes)
        .and_then(|node| node.to_json())
        .map_err(|error| invalid(error.to_string()))?;
    let map = document
        .get("annotations")
        .and_then(serde_json::Value::as_object)
        .ok_or_else(|| invalid("it has no map named \"annotations\"".to_owned()))?;
    match map.get(MANIFESTS_KEY) {
        None => Ok(None),
        Some(serde_json::Value::String(directory)) => Ok(Some(directory.trim_start_matches('/').to_owned())),
        Some(_) => Err(invalid(format!("{MANIFESTS_KEY} is not a string"))),
    }
}

/// `copy-content`: replaces each target by a copy of its source.
pub fn copy_content(pairs: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
    for (from, to) in pairs {
        match fs::symlink_metadata(to) {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(to).map_err(Error::file("remove", to))?,
            Ok(_) => fs::remove_file(to).map_err(Error::file("remove", to))?,
            Err(_) => {}
        }
        let metadata = fs::metadata(from).map_err(Error::file("copy", from))?;
        if metadata.is_dir() {
            copy_tree(from, to, Mounts::Copy)?
        } else {
            copy_file(from, to)?
        }
    }
    Ok(())
}

/// True if the content of file systems that are mounted below a directory is copied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mounts {
    Copy,
    LeaveOut,
}

/// Copies a directory. Links below it remain links. Permission bits are kept, except that directories are writable for
/// their owner while they are filled.
fn copy_tree(from: &Path, to: &Path, mounts: Mounts) -> Result<(), Error> {
    let mut folders = Vec::new();
    for entry in walkdir::WalkDir::new(from)
        .follow_root_links(true)
        .same_file_system(mounts == Mounts::LeaveOut)
        .sort_by_file_name()
    {
        let entry = entry.map_err(|error| Error::File {
            action: "read",
            path: error.path().unwrap_or(from).to_owned(),
            source: error.into(),
        })?;
        let below = entry.path().strip_prefix(from).unwrap_or(entry.path());
        let target = if below.as_os_str().is_empty() {
            to.to_owned()
        } else {
            to.join(below)
        };
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target).map_err(Error::file("create", &target))?;
            let metadata = fs::metadata(entry.path()).map_err(Error::file("read", entry.path()))?;
            folders.push((target, metadata.permissions()));
        } else if entry.file_type().is_symlink() {
            let link = fs::read_link(entry.path()).map_err(Error::file("read", entry.path()))?;
            let _ = fs::remove_file(&target);
            symlink(link, &target).map_err(Error::file("create", &target))?;
        } else {
            super::regular(entry.path())?;
            copy_file(entry.path(), &target)?;
        }
    }
    for (directory, permissions) in folders.into_iter().rev() {
        // A directory of another owner, such as a volume's root, keeps its permissions.
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(permissions.mode() | 0o700));
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), Error> {
    // Opening a pipe or a device would wait, or never end.
    let metadata = fs::metadata(from).map_err(Error::file("copy", from))?;
    if !metadata.is_file() {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file");
        return Err(Error::file("copy", from)(source));
    }
    // A running program cannot be written to, but replaced.
    let _ = fs::remove_file(to);
    fs::copy(from, to).map(|_| ()).map_err(Error::file("copy", from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn annotations(directory: &str) -> String {
        format!("annotations:\n  {MANIFESTS_KEY}: {directory}\n")
    }

    #[test]
    fn manifests_are_part_of_the_image() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let secret = root.join("run/secrets/..2026");
        fs::create_dir_all(&secret).unwrap();
        fs::write(secret.join("token"), "secret").unwrap();
        symlink("..2026", root.join("run/secrets/..data")).unwrap();
        symlink("run/secrets", root.join("short")).unwrap();
        fs::create_dir_all(root.join("deep/manifests")).unwrap();
        fs::create_dir_all(root.join("metadata")).unwrap();
        let annotations = root.join("metadata/annotations.yaml");
        for refused in [
            "run/secrets/..data/",
            "run/secrets/..data/.",
            "short",
            "../x",
            "deep/../run",
        ] {
            assert!(inside(root, &annotations, refused).is_err(), "{refused}");
        }
        for fine in ["deep/manifests/", "./deep/./manifests", "manifests/"] {
            assert!(inside(root, &annotations, fine).is_ok(), "{fine}");
        }
        let mounted = inside(Path::new("/"), &annotations, "proc/sys")
            .unwrap_err()
            .to_string();
        assert!(mounted.contains("mounted into the pod"), "{mounted}");
    }

    #[test]
    fn cp_takes_the_words_that_olm_gives() {
        let directory = image(&[("bin/olmkit", "program")]);
        let path = |name: &str| directory.path().join(name);
        fs::set_permissions(path("bin/olmkit"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("olmkit", path("bin/cpb")).unwrap();
        fs::create_dir(path("util")).unwrap();
        copy_files(&["-Rv".into(), path("bin/cpb"), path("util/cpb")]).unwrap();
        let metadata = fs::symlink_metadata(path("util/cpb")).unwrap();
        assert!(metadata.is_file() && metadata.permissions().mode() & 0o111 == 0o111);
        copy_files(&[path("bin/olmkit"), path("util")]).unwrap();
        assert_eq!(fs::read_to_string(path("util/olmkit")).unwrap(), "program");
        assert!(copy_files(&[path("bin/olmkit")]).is_err());
        assert!(
            copy_files(&[path("absent"), path("util")])
                .unwrap_err()
                .to_string()
                .contains("absent")
        );
    }

    #[test]
    fn cpb_copies_annotations_and_manifests_only() {
        let image = image(&[
            ("metadata/annotations.yaml", &annotations("deploy/")),
            ("metadata/properties.yaml", "p"),
            ("deploy/a.yaml", "a"),
            ("deploy/sub/b.yaml", "b"),
            ("manifests/wrong.yaml", "w"),
        ]);
        let target = tempfile::tempdir().unwrap();
        copy_bundle(image.path(), target.path()).unwrap();
        let mut files: Vec<String> = walkdir::WalkDir::new(target.path())
            .into_iter()
            .flatten()
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(target.path()).unwrap().display().to_string())
            .collect();
        files.sort();
        assert_eq!(
            files,
            ["manifests/a.yaml", "manifests/sub/b.yaml", "metadata/annotations.yaml"]
        );
    }

    #[test]
    fn the_last_annotations_file_wins() {
        let image = image(&[
            ("a/annotations.yaml", &annotations("first")),
            ("z/annotations.yaml", &annotations("last")),
            ("first/f.yaml", ""),
            ("last/l.yaml", ""),
        ]);
        let target = tempfile::tempdir().unwrap();
        let (found, manifests) = copy_bundle(image.path(), target.path()).unwrap();
        assert_eq!(found, image.path().join("z/annotations.yaml"));
        assert_eq!(manifests, image.path().join("last"));
    }

    #[test]
    fn cpb_neither_waits_for_a_pipe_nor_follows_a_link_to_its_annotations() {
        let root = image(&[
            ("metadata/annotations.yaml", &annotations("manifests/")),
            ("manifests/a.yaml", "kind: A\n"),
        ]);
        let pipe = root.path().join("manifests/pipe.yaml");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let target = tempfile::tempdir().unwrap();
        let error = copy_bundle(root.path(), target.path()).unwrap_err().to_string();
        assert!(error.contains("pipe.yaml"), "{error}");
        fs::remove_file(&pipe).unwrap();
        fs::remove_file(root.path().join("metadata/annotations.yaml")).unwrap();
        symlink("/dev/zero", root.path().join("metadata/annotations.yaml")).unwrap();
        let error = copy_bundle(root.path(), target.path()).unwrap_err().to_string();
        assert!(
            error.contains("annotations.yaml") && error.contains("only regular files"),
            "{error}"
        );
    }

    #[test]
    fn an_image_without_a_bundle_is_an_error() {
        let image = image(&[("a.txt", "")]);
        let target = tempfile::tempdir().unwrap();
        let error = copy_bundle(image.path(), target.path()).unwrap_err().to_string();
        assert!(error.contains("metadata/annotations.yaml"), "{error}");
    }

    #[test]
    fn copy_content_replaces_what_was_there() {
        let directory = image(&[("configs/p/catalog.yaml", "new"), ("out/old.yaml", "old")]);
        let pair = (directory.path().join("configs"), directory.path().join("out"));
        copy_content(&[pair]).unwrap();
        assert!(!directory.path().join("out/old.yaml").exists());
        assert_eq!(
            fs::read_to_string(directory.path().join("out/p/catalog.yaml")).unwrap(),
            "new"
        );
    }
}
