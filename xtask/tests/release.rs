//! The archives of `cargo xtask release` on a loopback server: the GitHub action, the install page and `cargo binstall`'s metadata download,
//! check and unpack them.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const PLATFORMS: [&str; 3] = ["linux-amd64", "linux-arm64", "darwin-arm64"];

/// Replaces GitHub's command line. It downloads from `$SERVER`, and checks the arguments of a verification.
const GH: &str = r#"#!/bin/sh
set -eu
command="$1 $2"; name=$3; shift 3
case $command in
"release download")
  [ "$1 $2" = "--repo $REPOSITORY" ]; shift 2
  while [ $# -gt 0 ]; do
    case $1 in
    --pattern) curl -fsSO "$SERVER/$name/$2"; shift 2 ;;
    --clobber) shift ;;
    *) exit 64 ;;
    esac
  done ;;
"attestation verify")
  [ -s "$name" ]
  [ "$*" = "--repo $REPOSITORY --signer-workflow $REPOSITORY/.github/workflows/release.yml" ] ;;
*) exit 64 ;;
esac
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn write_script(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A release: scripts instead of binaries, packed by `cargo xtask release`, and served on loopback.
struct Release {
    directory: tempfile::TempDir,
    server: String,
}

impl Release {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path();
        for platform in PLATFORMS {
            for name in ["olmkit", "olmkit-helper"] {
                let text = format!("#!/bin/sh\necho {name} {VERSION} {platform}\n");
                write_script(&out.join("programs").join(platform).join(name), &text);
            }
        }
        for (part, file) in [("man", "olmkit.1"), ("completions", "olmkit.bash")] {
            std::fs::create_dir(out.join(part)).unwrap();
            std::fs::write(out.join(part).join(file), "text\n").unwrap();
        }
        for step in ["archives", "checksums"] {
            let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
                .args(["release", step])
                .current_dir(root())
                .env("OUT", out)
                .env("SOURCE_DATE_EPOCH", "0")
                .env_remove("VERSION")
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", printed(&output));
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let served = out.to_owned();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                answer(connection, &served);
            }
        });
        Release { directory, server }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a script as GitHub runs the steps of an action, in an empty home directory.
    fn run(&self, script: &str, home: &Path, variables: &[(&str, &str)]) -> Output {
        let bin = home.join(".bin");
        write_script(&bin.join("gh"), GH);
        let real = output(Command::new("sh").args(["-c", "command -v curl"]));
        let real = real.trim();
        assert!(!real.is_empty(), "curl is not installed");
        // The page names the repository's address.
        let curl = format!(
            "#!/bin/bash\nexec {real} --noproxy '*' \"${{@//{REPOSITORY}\\/releases\\/download/$SERVER}}\"\n",
            REPOSITORY = REPOSITORY.replace('/', "\\/")
        );
        write_script(&bin.join("curl"), &curl);
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(home)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("HOME", home)
            .env("SERVER", &self.server)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }
}

/// Answers one request for a file of the release `vVERSION`.
fn answer(mut connection: TcpStream, directory: &Path) {
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
    let request = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
    let prefix = format!("GET /v{VERSION}/");
    let name = request.strip_prefix(&prefix).and_then(|rest| rest.split(' ').next());
    let name = name.filter(|name| !name.contains('/'));
    let content = name.and_then(|name| std::fs::read(directory.join(name)).ok());
    let status = if content.is_some() { "200 OK" } else { "404 Not Found" };
    let content = content.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    // A client that does not read the answer fails by itself.
    let _ = connection.write_all(&[head.as_bytes(), &content].concat());
}

fn printed(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The script of the step `name` in `action.yml`.
fn step(name: &str) -> String {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let (_, rest) = text.split_once(&format!("    - name: {name}\n")).unwrap();
    let (_, rest) = rest.split_once("      run: |\n").unwrap();
    let lines = rest.lines().map_while(|line| line.strip_prefix("        "));
    lines.collect::<Vec<_>>().join("\n")
}

fn repository_name() -> &'static str {
    REPOSITORY.strip_prefix("https://github.com/").unwrap()
}

/// Runs the step of the action that installs olmkit. Returns its result, and the directory that it adds to PATH.
fn install_by_action(release: &Release, system: &str, architecture: &str) -> (Output, String) {
    let home = tempfile::tempdir_in(release.directory.path()).unwrap().keep();
    let added = home.join("path");
    let place = (home.display().to_string(), added.display().to_string());
    let result = release.run(
        &step("Install olmkit"),
        &home,
        &[
            ("VERSION", VERSION),
            ("REPOSITORY", repository_name()),
            ("RUNNER_OS", system),
            ("RUNNER_ARCH", architecture),
            ("RUNNER_TEMP", &place.0),
            ("GITHUB_PATH", &place.1),
        ],
    );
    (result, std::fs::read_to_string(added).unwrap_or_default())
}

#[test]
fn the_action_installs_a_release() {
    let release = Release::new();
    for (system, architecture, platform) in [
        ("Linux", "X64", "linux-amd64"),
        ("Linux", "ARM64", "linux-arm64"),
        ("macOS", "ARM64", "darwin-arm64"),
    ] {
        let (result, added) = install_by_action(&release, system, architecture);
        assert!(result.status.success(), "{}", printed(&result));
        let version = output(Command::new(Path::new(added.trim()).join("olmkit")).arg("version"));
        assert_eq!(version, format!("olmkit {VERSION} {platform}\n"));
    }
    let (result, added) = install_by_action(&release, "macOS", "X64");
    assert!(!result.status.success() && added.is_empty(), "{}", printed(&result));
}

#[test]
fn the_action_rejects_an_archive_with_another_checksum() {
    let release = Release::new();
    let archive = release.file(&format!("olmkit-{VERSION}-linux-amd64.tar.gz"));
    let other = std::fs::read(release.file(&format!("olmkit-{VERSION}-linux-arm64.tar.gz"))).unwrap();
    std::fs::write(archive, other).unwrap();
    let (result, added) = install_by_action(&release, "Linux", "X64");
    assert!(!result.status.success() && added.is_empty(), "{}", printed(&result));
    assert!(printed(&result).contains("FAILED"), "{}", printed(&result));
}

#[test]
fn the_install_page_installs_a_release() {
    let release = Release::new();
    let page = std::fs::read_to_string(root().join("docs/start/install.md")).unwrap();
    let (_, block) = page
        .split_once("release.rs::the_install_page_installs_a_release -->\n```sh\n")
        .unwrap();
    let (script, _) = block.split_once("\n```\n").unwrap();
    let home = release.file("home");
    std::fs::create_dir(&home).unwrap();
    let result = release.run(script, &home, &[]);
    assert!(result.status.success(), "{}", printed(&result));
    let version = output(Command::new(home.join(".local/bin/olmkit")).arg("version"));
    assert_eq!(version, format!("olmkit {VERSION} linux-amd64\n"));
}

#[test]
fn cargo_binstall_downloads_a_release() {
    let release = Release::new();
    let manifest = std::fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap();
    let home = release.file("home");
    std::fs::create_dir(&home).unwrap();
    let fill = |text: &str| {
        let values = BTreeMap::from([
            ("{ repo }", REPOSITORY),
            ("{ version }", VERSION),
            ("{ bin }", "olmkit"),
            ("{ binary-ext }", ""),
        ]);
        let filled = values
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        filled.trim_end_matches('"').to_owned()
    };
    let urls = manifest.lines().filter_map(|line| line.strip_prefix("pkg-url = \""));
    let binaries = manifest.lines().filter_map(|line| line.strip_prefix("bin-dir = \""));
    let mut installed = 0;
    for (url, binary) in urls.zip(binaries) {
        let script = format!("curl -fsSL '{}' | tar -xz; ./'{}' version", fill(url), fill(binary));
        let result = release.run(&script, &home, &[]);
        assert!(result.status.success(), "{url}: {}", printed(&result));
        assert!(printed(&result).starts_with(&format!("olmkit {VERSION} ")));
        installed += 1;
    }
    assert_eq!(installed, PLATFORMS.len());
}
