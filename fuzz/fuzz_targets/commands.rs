//! The commands that read files, run over a directory of any files: none panics. `-close_fd_mask=3` controls their
//! output.
#![no_main]

use std::fs;
use std::path::{Component, Path, PathBuf};

use clap::Parser as _;
use libfuzzer_sys::fuzz_target;

const MOST_FILES: usize = 30;

/// The directory with the files is the working directory, and represents a bundle, a catalog, a repository and a
/// project at the same time.
const COMMANDS: &[&str] = &[
    "bundle validate .",
    "bundle validate . --strict --profile olmv1 -o sarif",
    "bundle validate . --fix --unsafe-fixes -o concise",
    "bundle validate --recursive . -o junit",
    "bundle validate . --baseline baseline.json -o json",
    "bundle diff . other",
    "bundle render --olmv1 . -n demo --config config.yaml",
    "bundle rbac --for-installer . -n demo",
    "bundle unpack .",
    "bundle unpack . -o unpacked",
    "crd diff manifests other/manifests",
    "scorecard . --built-in -o xunit",
    "scorecard . --list --config config.yaml",
    "config --config olmkit.toml",
    "catalog validate . -o sarif",
    "catalog validate catalog.yaml",
    "catalog render . -o yaml",
    "catalog graph . -o svg",
    "catalog graph . -o dot --draw-v0-semantics",
    "catalog graph .",
    "catalog list bundles .",
    "catalog images .",
    "catalog diff . other",
    "catalog path . --from a",
    "catalog resolve --olmv1 demo .",
    "catalog migrate . migrated",
    "catalog add . --to other --channel stable",
    "catalog template render catalog.yaml",
    "catalog template convert basic catalog.yaml",
    "catalog dockerfile .",
    "repo check --repo .",
    "repo check --repo . --suite operatorhub",
    "repo check --repo . --suite preflight -o pipeline-json --strict-compat",
    "generate bundle --input-dir manifests --package demo --version 0.1.0",
    "generate kustomize manifests --package demo",
    "adopt --domain example.com",
    "update --dry-run",
    "edit --multigroup",
    "create api --group g --version v1 --kind K",
    "delete api --group g --version v1 --kind K",
    "image inspect oci:.",
    "image inspect oci-archive:image.tar",
    "image copy oci:. oci-archive:copy.tar",
    "image build bundle . -t registry.test/b:v1 -o oci:layout",
    "image build catalog . -t registry.test/c:v1 -o oci:layout",
    "image build directory . -t registry.test/d:v1 -o oci:layout",
    "image build files -t registry.test/f:v1 --base oci:. --add manifests:/manifests -o docker-archive:files.tar",
    "image build operator binary -t registry.test/o:v1 --sbom Cargo.lock:demo -o oci:layout",
    "image copy docker-archive:image.tar oci:copy",
    "image diff oci:. oci-archive:image.tar",
    "image digest docker-archive:image.tar",
    "bundle unpack oci-archive:image.tar -o unpacked",
    "bundle validate docker-archive:image.tar",
    "bundle validate . --against other",
    "catalog init demo -d README.md -i icon.svg -c stable -o yaml",
    "catalog deprecate demo --bundle a.v1 -m gone --in .",
    "catalog graph . -o mermaid",
    "catalog template convert semver catalog.yaml",
];

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let work = folder.path().join("work");
    fs::create_dir(&work).expect("a directory");
    write(&work, rest);
    // The working directory is the process's, and libFuzzer runs one input at a time.
    let before = std::env::current_dir().expect("it is there");
    std::env::set_current_dir(&work).expect("it was made");
    let command = COMMANDS[usize::from(*first) % COMMANDS.len()];
    let words = std::iter::once("olmkit").chain(command.split(' '));
    let cli = olmkit_cli::Cli::try_parse_from(words).expect("the command is sound");
    if let Err(error) = cli.run(false) {
        let _ = format!("{error:#}");
    }
    std::env::set_current_dir(before).expect("it was there");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("it is there").collect();
    assert_eq!(names.len(), 1, "{command} wrote outside its directory: {names:?}");
});

/// A line `@ path` begins a file. Everything before the first is a catalog.
fn write(work: &Path, data: &[u8]) {
    let mut files = vec![(PathBuf::from("catalog.yaml"), Vec::new())];
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let path = line.strip_prefix(b"@ ").and_then(|path| std::str::from_utf8(path).ok());
        match path {
            Some(path) if files.len() < MOST_FILES => files.push((PathBuf::from(path.trim()), Vec::new())),
            _ => {
                if let Some((_, content)) = files.last_mut() {
                    content.extend_from_slice(line);
                }
            }
        }
    }
    for (path, content) in files {
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if content.is_empty() || !is_inside || path.components().count() > 8 {
            continue;
        }
        let path = work.join(path);
        let made = path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok());
        if made {
            let _ = fs::write(path, content);
        }
    }
}
