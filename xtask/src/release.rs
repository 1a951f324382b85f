//! The files of a release: `cargo xtask release`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;

use crate::command::{output, run, variable};

/// A step of a release. The environment variable OUT changes the directory of all files from `dist`.
#[derive(Subcommand)]
pub enum Step {
    /// Print the version in Cargo.toml
    Version {
        /// Fail unless this tag is `v` and the version, and CHANGELOG.md has a dated section for it
        tag: Option<String>,
    },
    /// Print the section of CHANGELOG.md about a version (or Unreleased), as the text of its release
    Notes { version: String },
    /// Build the release binaries for a target into dist/programs/OS-ARCH
    ///
    /// PROFILE changes the cargo profile from dist, for example to dev, which skips ten minutes of link-time optimization. Linux
    /// binaries are static. arm64 is built on an arm64 machine or, with gcc-aarch64-linux-gnu and libc6-dev-arm64-cross, on amd64.
    Build {
        /// Such as x86_64-unknown-linux-gnu
        target: String,
    },
    /// Fail unless binaries are static Linux executables for an architecture
    CheckElf {
        /// amd64 or arm64
        architecture: String,
        #[arg(required = true)]
        programs: Vec<PathBuf>,
    },
    /// Write completion scripts to dist/completions and man pages to dist/man
    ///
    /// OLMKIT names a binary that runs on this machine.
    Completions,
    /// Pack the binaries of each platform with license, README, man pages and completions: dist/olmkit-VERSION-OS-ARCH.tar.gz
    ///
    /// The same input gives the same bytes. SOURCE_DATE_EPOCH changes the time of all entries from the last commit's.
    Archives,
    /// Build the images of olmkit and its helper for linux/amd64 and linux/arm64 from dist/programs, without a container engine
    ///
    /// Writes OCI layouts to dist/images. PUSH=REGISTRY/PATH pushes the images instead. The digests are written to dist/images.txt.
    /// OLMKIT names the binary that builds them, by default that of dist/programs for this machine.
    Images,
    /// Copy the bill of materials (SPDX 2.3) of the olmkit image to dist/olmkit-VERSION.spdx.json
    Sbom,
    /// Write dist/SHA256SUMS for all files of a release, and check it
    Checksums,
}

/// Runs a step in the current directory, which is the repository's.
///
/// # Errors
/// If it fails.
pub fn run_step(step: &Step) -> anyhow::Result<()> {
    let out = PathBuf::from(variable("OUT").unwrap_or_else(|| "dist".to_owned()));
    match step {
        Step::Version { tag } => {
            let version = version()?;
            if let Some(tag) = tag {
                check_tag(tag, &version, &read("CHANGELOG.md")?)?;
            }
            println!("{version}");
            Ok(())
        }
        Step::Notes { version } => {
            let notes = notes(&read("CHANGELOG.md")?, version);
            print!(
                "{}",
                notes.with_context(|| format!("CHANGELOG.md has no section for {version}"))?
            );
            Ok(())
        }
        Step::Build { target } => build(target, &out),
        Step::CheckElf { architecture, programs } => check_elf(architecture, programs),
        Step::Completions => completions(&out),
        Step::Archives => archives(&out),
        Step::Images => images(&out),
        Step::Sbom => sbom(&out),
        Step::Checksums => checksums(&out),
    }
}

fn read(file: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(file).context(file.to_owned())
}

/// The version of the workspace.
fn version() -> anyhow::Result<String> {
    match variable("VERSION") {
        Some(version) => Ok(version),
        None => version_in(&read("Cargo.toml")?).context("Cargo.toml has no version in [workspace.package]"),
    }
}

fn version_in(manifest: &str) -> Option<String> {
    let (_, section) = manifest.split_once("\n[workspace.package]\n")?;
    let mut lines = section.lines().take_while(|line| !line.starts_with('['));
    let version = lines.find_map(|line| line.strip_prefix("version = \""))?;
    Some(version.trim_end_matches('"').to_owned())
}

fn check_tag(tag: &str, version: &str, changelog: &str) -> anyhow::Result<()> {
    ensure!(
        tag == format!("v{version}"),
        "the tag is {tag}, but the version in Cargo.toml is {version}"
    );
    let heading = format!("## [{version}] - ");
    let is_dated = |line: &str| {
        let date = line.strip_prefix(&heading);
        date.is_some_and(|date| date.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    ensure!(
        changelog.lines().any(is_dated),
        "CHANGELOG.md has no section for {version} with a date"
    );
    Ok(())
}

/// The lines of a version's section, without link targets.
fn notes(changelog: &str, version: &str) -> Option<String> {
    let heading = format!("[{version}]");
    let mut lines = changelog.lines();
    lines.find(|line| line.strip_prefix("## ").and_then(|title| title.split(' ').next()) == Some(&heading))?;
    let is_target = |line: &&str| line.starts_with('[') && line.contains("]: ");
    let section: Vec<&str> = lines
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| !is_target(line))
        .collect();
    (!section.is_empty()).then(|| section.join("\n") + "\n")
}

/// Operating system and architecture of a release target.
fn platform(target: &str) -> Option<(&'static str, &'static str)> {
    let system = match target {
        _ if target.contains("-linux-") => "linux",
        _ if target.ends_with("-apple-darwin") => "darwin",
        _ => return None,
    };
    let architecture = match target.split('-').next()? {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        _ => return None,
    };
    Some((system, architecture))
}

fn build(target: &str, out: &Path) -> anyhow::Result<()> {
    let (system, architecture) = platform(target).with_context(|| format!("no release is made for {target}"))?;
    let profile = variable("PROFILE").unwrap_or_else(|| "dist".to_owned());
    let home = std::env::var("HOME").context("HOME is not set")?;
    let cargo_home = variable("CARGO_HOME").unwrap_or_else(|| format!("{home}/.cargo"));
    let here = std::env::current_dir()?;
    // The paths of this machine are not in the binaries, so two builds of one commit are equal.
    let mut flags = format!(
        "--remap-path-prefix={}=. --remap-path-prefix={home}=~ --remap-path-prefix={cargo_home}=~/.cargo",
        here.display()
    );
    if system == "linux" {
        flags = format!("-C target-feature=+crt-static -C relocation-model=static {flags}");
    }
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--locked",
        "--profile",
        &profile,
        "--target",
        target,
        "-p",
        "olmkit-cli",
        "--bins",
    ]);
    cargo.env("RUSTFLAGS", flags);
    if target == "aarch64-unknown-linux-gnu" && std::env::consts::ARCH != "aarch64" {
        for name in [
            "CC_aarch64_unknown_linux_gnu",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
        ] {
            cargo.env(name, "aarch64-linux-gnu-gcc");
        }
    }
    run(&mut cargo)?;
    let directory = if profile == "dev" { "debug" } else { &profile };
    let built = PathBuf::from(variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".to_owned()));
    let programs = out.join("programs").join(format!("{system}-{architecture}"));
    std::fs::create_dir_all(&programs)?;
    let mut made = Vec::new();
    for name in ["olmkit", "olmkit-helper"] {
        let program = programs.join(name);
        let from = built.join(target).join(directory).join(name);
        run(Command::new("install").args(["-m", "755"]).arg(from).arg(&program))?;
        made.push(program);
    }
    if system == "linux" {
        check_elf(architecture, &made)?;
    }
    run(Command::new("ls").arg("-l").arg(programs))
}

fn check_elf(architecture: &str, programs: &[PathBuf]) -> anyhow::Result<()> {
    let machine = match architecture {
        "amd64" => "X86-64",
        "arm64" => "AArch64",
        other => bail!("unknown architecture {other}"),
    };
    for program in programs {
        let readelf = |flags: &[&str]| output(Command::new("readelf").args(flags).arg(program));
        let header = readelf(&["--file-header"])?;
        let is_built = header
            .lines()
            .any(|line| line.contains("Machine:") && line.contains(machine));
        ensure!(is_built, "{} is not built for {machine}", program.display());
        let segments = readelf(&["--wide", "--program-headers"])?;
        let is_dynamic = segments.split_whitespace().any(|word| word == "INTERP");
        ensure!(!is_dynamic, "{} needs a dynamic linker", program.display());
        println!("{}: {machine}, static", program.display());
    }
    Ok(())
}

fn completions(out: &Path) -> anyhow::Result<()> {
    let olmkit = variable("OLMKIT").context("set OLMKIT to the olmkit that prints its completions")?;
    let (completions, man) = (out.join("completions"), out.join("man"));
    std::fs::create_dir_all(&completions)?;
    std::fs::create_dir_all(&man)?;
    for (shell, file) in [("bash", "olmkit.bash"), ("zsh", "_olmkit"), ("fish", "olmkit.fish")] {
        let script = output(Command::new(&olmkit).args(["completion", shell]))?;
        std::fs::write(completions.join(file), script)?;
    }
    let arguments = ["run", "--locked", "-q", "-p", "olmkit-cli", "--example", "man-pages"];
    run(Command::new("cargo").args(arguments).arg(&man))?;
    for page in ["olmkit.1", "olmkit-bundle-validate.1"] {
        let is_written = std::fs::metadata(man.join(page)).is_ok_and(|page| page.len() > 0);
        ensure!(is_written, "man pages are missing");
    }
    let pages = std::fs::read_dir(&man)?.count();
    let scripts = std::fs::read_dir(&completions)?.count();
    println!("{pages} man pages, {scripts} completion scripts");
    Ok(())
}

/// The time of the entries in archives and images.
fn epoch() -> anyhow::Result<String> {
    match variable("SOURCE_DATE_EPOCH") {
        Some(epoch) => Ok(epoch),
        None => Ok(output(Command::new("git").args(["log", "-1", "--format=%ct"]))?
            .trim()
            .to_owned()),
    }
}

fn archives(out: &Path) -> anyhow::Result<()> {
    let (version, epoch) = (version()?, epoch()?);
    let programs = std::fs::read_dir(out.join("programs")).context("no binaries; run cargo xtask release build")?;
    let platforms: BTreeSet<PathBuf> = programs
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    for programs in platforms {
        let platform = programs.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("olmkit-{version}-{platform}");
        let stage = tempfile::tempdir()?;
        let directory = stage.path().join(&name);
        run(Command::new("cp").arg("-r").arg(&programs).arg(&directory))?;
        run(Command::new("cp")
            .arg("-r")
            .args(["LICENSE", "README.md", "CHANGELOG.md"])
            .args([out.join("man"), out.join("completions")])
            .arg(&directory))?;
        let archive = out.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(stage.path())
            .args([
                "--sort=name",
                "--owner=0",
                "--group=0",
                "--numeric-owner",
                "--mode=u+rwX,go+rX,go-w",
            ])
            .arg(format!("--mtime=@{epoch}"))
            .args(["-cf", "-", &name])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run tar")?;
        let packed = tar.stdout.take().context("tar has no output")?;
        run(Command::new("gzip")
            .arg("-9n")
            .stdin(packed)
            .stdout(std::fs::File::create(&archive)?))?;
        ensure!(tar.wait()?.success(), "tar failed");
        println!("{}", archive.display());
    }
    Ok(())
}

fn images(out: &Path) -> anyhow::Result<()> {
    let (version, epoch) = (version()?, epoch()?);
    let architecture = if std::env::consts::ARCH == "aarch64" {
        "arm64"
    } else {
        "amd64"
    };
    let own = out.join(format!("programs/linux-{architecture}/olmkit"));
    let olmkit = variable("OLMKIT").map_or(own, PathBuf::from);
    let push = variable("PUSH");
    let base = push.as_deref().unwrap_or("registry.example.com/olmkit");
    let authorities = variable("AUTHORITIES").unwrap_or_else(|| "/etc/ssl/certs/ca-certificates.crt".to_owned());
    let revision = output(Command::new("git").args(["rev-parse", "HEAD"]))?;
    let mut digests = String::new();
    for image in ["olmkit", "olmkit-helper"] {
        let binary = format!("{}/programs/{{os}}-{{arch}}/{image}", out.display());
        let tag = format!("{base}/{image}:v{version}");
        let layout = format!("oci:{}/images/{image}", out.display());
        let (place, from) = match push {
            Some(_) => ("push", tag.as_str()),
            None => (layout.as_str(), layout.as_str()),
        };
        if push.is_none() {
            let directory = out.join("images").join(image);
            if directory.exists() {
                std::fs::remove_dir_all(&directory)?;
            }
            std::fs::create_dir_all(out.join("images"))?;
        }
        let mut build = Command::new(&olmkit);
        match image {
            "olmkit" => build.args(["image", "build", "operator", &binary, "--authorities", &authorities]),
            _ => build.args(["image", "build", "helper", "--binary", &binary]),
        };
        run(build
            .args([
                "--tag",
                &tag,
                "--output",
                place,
                "--platform",
                "linux/amd64,linux/arm64",
            ])
            .args([
                "--sbom",
                "Cargo.lock:olmkit-cli",
                "--source",
                env!("CARGO_PKG_REPOSITORY"),
            ])
            .args(["--revision", revision.trim()])
            .env("SOURCE_DATE_EPOCH", &epoch))?;
        let digest = output(Command::new(&olmkit).args(["image", "digest", from]))?;
        writeln!(digests, "{base}/{image} {}", digest.trim())?;
    }
    std::fs::write(out.join("images.txt"), &digests)?;
    print!("{digests}");
    Ok(())
}

/// Images carry the bill of materials below `/usr/share/sbom`. It is copied from there, so that the two cannot differ.
fn sbom(out: &Path) -> anyhow::Result<()> {
    let member = "usr/share/sbom/olmkit-cli.spdx.json";
    let blobs = out.join("images/olmkit/blobs/sha256");
    for blob in std::fs::read_dir(&blobs).with_context(|| blobs.display().to_string())? {
        let blob = blob?.path();
        // Not every blob is an archive.
        let listed = Command::new("tar")
            .arg("-tzf")
            .arg(&blob)
            .stderr(Stdio::null())
            .output()?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let Some(member) = listed.lines().find(|name| name.ends_with(member)) else {
            continue;
        };
        let text = output(Command::new("tar").arg("-xzOf").arg(&blob).arg(member))?;
        ensure!(text.contains("\"SPDX-2.3\""), "the bill of materials is not SPDX 2.3");
        let file = out.join(format!("olmkit-{}.spdx.json", version()?));
        std::fs::write(&file, &text)?;
        println!("{}: {} elements", file.display(), text.matches("\"SPDXID\"").count());
        return Ok(());
    }
    bail!("no layer of the image contains {member}; run cargo xtask release images first")
}

fn checksums(out: &Path) -> anyhow::Result<()> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(out).with_context(|| out.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_released = name.ends_with(".tar.gz") || name.ends_with(".spdx.json");
        names.extend((is_released && entry.file_type()?.is_file()).then_some(name));
    }
    ensure!(!names.is_empty(), "{} has no files of a release", out.display());
    let sums = output(Command::new("sha256sum").args(&names).current_dir(out))?;
    std::fs::write(out.join("SHA256SUMS"), &sums)?;
    run(Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(out))?;
    print!("{sums}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str =
        "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - 2026-11-26\n\n- old\n\n[0.2.0]: https://example.com\n";

    #[test]
    fn the_version_is_the_workspaces() {
        let manifest = "[workspace]\n\n[workspace.package]\nedition = \"2024\"\nversion = \"0.2.0\"\n\n[package]\nversion = \"1.0.0\"\n";
        assert_eq!(version_in(manifest).as_deref(), Some("0.2.0"));
        assert_eq!(
            version_in("[workspace]\n[workspace.package]\n[package]\nversion = \"1.0.0\"\n"),
            None
        );
    }

    #[test]
    fn a_tag_needs_its_version_and_a_dated_section() {
        assert!(check_tag("v0.2.0", "0.2.0", CHANGELOG).is_ok());
        assert!(check_tag("v0.2.1", "0.2.0", CHANGELOG).is_err());
        assert!(check_tag("v0.3.0", "0.3.0", CHANGELOG).is_err());
        assert!(check_tag("v0.2.0", "0.2.0", "## [0.2.0] - soon\n").is_err());
    }

    #[test]
    fn notes_are_one_section() {
        assert_eq!(notes(CHANGELOG, "0.2.0").as_deref(), Some("\n- old\n\n"));
        assert_eq!(notes(CHANGELOG, "Unreleased").as_deref(), Some("\n- new\n\n"));
        assert_eq!(notes(CHANGELOG, "0.1.0"), None);
    }

    #[test]
    fn cargo_binstall_finds_the_archive_of_each_released_target() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workflow = std::fs::read_to_string(root.join(".github/workflows/release.yml")).unwrap();
        let manifest = std::fs::read_to_string(root.join("crates/cli/Cargo.toml")).unwrap();
        let targets: Vec<&str> = workflow
            .lines()
            .filter_map(|line| line.split_once("{ target: ")?.1.split_once(','))
            .map(|(target, _)| target)
            .collect();
        assert_eq!(targets.len(), 3, "{targets:?}");
        for target in targets {
            let (system, architecture) = platform(target).unwrap();
            let name = format!("olmkit-{{ version }}-{system}-{architecture}");
            let settings = format!(
                "[package.metadata.binstall.overrides.{target}]\n\
                 pkg-url = \"{{ repo }}/releases/download/v{{ version }}/{name}.tar.gz\"\n\
                 bin-dir = \"{name}/{{ bin }}{{ binary-ext }}\"\n"
            );
            assert!(manifest.contains(&settings), "{settings}");
        }
    }

    #[test]
    fn platforms_have_the_names_of_images() {
        assert_eq!(platform("x86_64-unknown-linux-gnu"), Some(("linux", "amd64")));
        assert_eq!(platform("aarch64-apple-darwin"), Some(("darwin", "arm64")));
        assert_eq!(platform("x86_64-pc-windows-msvc"), None);
    }
}
