//! The catalog commands, as a user types them, on the bundles of this repository.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const TEMPLATE: &str = "quay.io/example/memcached-operator-bundle:v{{.Version}}";
const OLD: &str = "memcached-operator.v0.0.1";
const NEW: &str = "memcached-operator.v0.1.0";

/// What a command printed, and its exit code.
struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Answer {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    fn refused(self, wanted: &str) {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        assert!(self.err.contains(wanted), "{}", self.err);
    }
}

/// A folder of the user's, with the repository's bundles in it.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Desk(tempfile::tempdir().unwrap());
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        copy(&repository.join("releases/0.0.1/bundle"), &desk.path("old"));
        copy(&repository.join("bundle"), &desk.path("new"));
        // Stands in for the server in images that are not run: the head of a program of this machine, static and empty.
        let mut server = std::fs::read(env!("CARGO_BIN_EXE_olmkit")).unwrap();
        server.truncate(64);
        server[56..58].fill(0);
        std::fs::write(desk.path("server"), server).unwrap();
        desk
    }

    /// With a catalog of both bundles, made by commands.
    fn with_catalog() -> Self {
        let desk = Desk::new();
        std::fs::create_dir_all(desk.path("catalog/memcached-operator")).unwrap();
        let package = desk
            .run(&["catalog", "init", "memcached-operator", "-c", "alpha", "-o", "yaml"])
            .ok();
        std::fs::write(desk.path(SOURCE), package).unwrap();
        for bundle in ["old", "new"] {
            let migrate = ["--migrate-level", "bundle-object-to-csv-metadata"];
            let add = [
                "catalog",
                "add",
                bundle,
                "--channel",
                "alpha",
                "--image-ref-template",
                TEMPLATE,
            ];
            desk.run(&[&add[..], &migrate].concat()).ok();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("OLMKIT_IMAGE_STORE", self.path("store"))
            .env("SOURCE_DATE_EPOCH", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Answer {
        let output = self.command(arguments).output().unwrap();
        Answer {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

const SOURCE: &str = "catalog/memcached-operator/catalog.yaml";

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_catalog_is_made_checked_and_looked_at() {
    let desk = Desk::with_catalog();
    let findings = desk.run(&["catalog", "validate", "catalog"]).ok();
    assert!(findings.contains("note[catalog-image-by-tag]"), "{findings}");
    assert!(findings.contains(&format!("--> {SOURCE}:")), "{findings}");
    assert_eq!(
        desk.run(&["catalog", "validate", "-q", "catalog"]).ok().lines().count(),
        0
    );
    let verdict = desk.run(&["catalog", "validate", "catalog", "-o", "json"]).ok();
    assert_eq!(verdict.split_whitespace().collect::<String>(), "{\"passed\":true}");

    let bundles = desk.run(&["catalog", "list", "bundles", "catalog"]).ok();
    let rows: Vec<Vec<&str>> = bundles.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[2][..4], ["memcached-operator", "alpha", NEW, OLD]);
    let channels = desk.run(&["catalog", "list", "channels", "catalog"]).ok();
    assert!(channels.lines().nth(1).unwrap().ends_with(NEW), "{channels}");
    assert!(
        desk.run(&["catalog", "list", "packages", "catalog"])
            .ok()
            .contains("memcached-operator")
    );

    let steps = desk.run(&["catalog", "path", "catalog", "--from", OLD]).ok();
    assert_eq!(steps, format!("{OLD} -> {NEW} (replaces)\n"));
    desk.run(&["catalog", "path", "catalog", "--from", "9.9"])
        .refused("neither a bundle of the channel nor a version");
    let images = desk.run(&["catalog", "images", "catalog"]).ok();
    assert!(
        images
            .lines()
            .any(|image| image == "quay.io/example/memcached-operator-bundle:v0.0.1"),
        "{images}"
    );
    assert!(
        images
            .lines()
            .any(|image| image.starts_with("docker.io/library/memcached:")),
        "{images}"
    );
}

#[test]
fn additions_that_make_no_sense_are_refused_and_change_nothing() {
    let desk = Desk::with_catalog();
    let before = desk.text(SOURCE);
    desk.run(&["catalog", "add", "new", "--channel", "alpha"])
        .refused("is in the catalog already");
    desk.run(&["catalog", "add", "nowhere", "--channel", "alpha"])
        .refused("there is no file or directory nowhere");
    desk.run(&["catalog", "deprecate", "other", "-m", "x"])
        .refused("olmkit catalog init other");
    desk.run(&[
        "catalog",
        "deprecate",
        "memcached-operator",
        "-m",
        "x",
        "--channel",
        "none",
    ])
    .refused("none");
    desk.run(&["catalog", "validate", "nowhere"]).refused("nowhere");
    desk.run(&["catalog", "render", "nowhere"])
        .refused("there is no file or directory nowhere");
    assert_eq!(desk.text(SOURCE), before);
}

#[test]
fn two_catalogs_are_compared_and_deprecations_are_shown() {
    let desk = Desk::with_catalog();
    copy(&desk.path("catalog"), &desk.path("before"));
    assert_eq!(desk.run(&["catalog", "diff", "before", "catalog"]).ok(), "");
    desk.run(&[
        "catalog",
        "deprecate",
        "memcached-operator",
        "-m",
        "use v0.1: it is better",
        "--bundle",
        OLD,
    ])
    .ok();
    assert!(
        desk.text(SOURCE)
            .starts_with(&desk.text("before/memcached-operator/catalog.yaml"))
    );
    let diff = desk.run(&["catalog", "diff", "before", "catalog"]);
    assert_eq!(diff.code, 1);
    assert!(diff.out.contains("deprecation of bundle"), "{}", diff.out);
    let json = desk.run(&["catalog", "diff", "before", "catalog", "-o", "json"]).out;
    assert!(json.trim_start().starts_with('['), "{json}");
    assert!(
        desk.run(&["catalog", "graph", "catalog"])
            .ok()
            .starts_with("graph LR\n")
    );
    let dot = desk.run(&["catalog", "graph", "catalog", "-o", "dot"]).ok();
    assert!(
        dot.contains(&format!("label=\"{OLD}\", style=filled, fillcolor=\"orange\"")),
        "{dot}"
    );
    let svg = desk.run(&["catalog", "graph", "catalog", "-o", "svg"]).ok();
    assert!(
        svg.starts_with("<?xml") && svg.contains(NEW) && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
}

#[test]
fn a_catalog_is_written_anew_and_turned_into_a_template_and_back() {
    let desk = Desk::with_catalog();
    desk.run(&["catalog", "migrate", "catalog", "anew", "-o", "yaml"]).ok();
    assert_eq!(desk.run(&["catalog", "diff", "catalog", "anew"]).ok(), "");
    let again = desk.run(&["catalog", "migrate", "catalog", "anew"]);
    assert_eq!(again.err.matches("must be empty").count(), 1, "{}", again.err);
    let template = desk
        .run(&["catalog", "template", "convert", "basic", SOURCE, "-o", "yaml"])
        .ok();
    // Bundle references may be directories.
    let local = template
        .replace(
            "image: quay.io/example/memcached-operator-bundle:v0.0.1",
            "image: ./old",
        )
        .replace(
            "image: quay.io/example/memcached-operator-bundle:v0.1.0",
            "image: ./new",
        );
    std::fs::write(desk.path("template.yaml"), local).unwrap();
    let rendered = desk
        .run(&["catalog", "template", "render", "template.yaml", "-o", "yaml"])
        .ok();
    assert_eq!(rendered.matches("schema: olm.bundle\n").count(), 2, "{rendered}");
    desk.run(&["catalog", "dockerfile", "catalog"]).ok();
    assert!(desk.text("catalog.Dockerfile").contains("index.configs.v1=/configs"));
    desk.run(&["catalog", "dockerfile", "catalog"])
        .refused("never overwritten");
}

#[test]
fn under_the_name_opm_the_spelling_is_that_of_opm() {
    let desk = Desk::with_catalog();
    let same = |ours: &[&str], theirs: &[&str]| {
        let theirs = [&["opm"], theirs].concat();
        assert_eq!(desk.run(ours).ok(), desk.run(&theirs).ok(), "{theirs:?}");
    };
    same(&["catalog", "render", "catalog"], &["render", "catalog"]);
    same(
        &["catalog", "list", "bundles", "catalog"],
        &["alpha", "list", "bundles", "catalog"],
    );
    same(&["catalog", "graph", "catalog"], &["alpha", "render-graph", "catalog"]);
    same(
        &["catalog", "template", "convert", "basic", SOURCE],
        &["alpha", "convert-template", "basic", SOURCE],
    );
    assert_eq!(
        desk.run(&["opm", "validate", "catalog"]).ok(),
        "",
        "opm is silent where all is well"
    );
    std::fs::write(
        desk.path("catalog/broken.yaml"),
        "schema: olm.package\nname: q\ndefaultChannel: c\n",
    )
    .unwrap();
    desk.run(&["opm", "validate", "catalog"])
        .refused("invalid package \"q\"");
    desk.run(&["opm", "generate", "dockerfile", "catalog"]).ok();
    assert!(
        desk.run(&["opm", "version"])
            .ok()
            .starts_with("Version: version.Version{")
    );
}

#[test]
fn index_add_makes_a_file_based_catalog() {
    let desk = Desk::new();
    let add = |bundles: &str, tool: &str, more: &[&str]| {
        let first = [
            "opm",
            "index",
            "add",
            "--mode",
            "semver",
            "--binary",
            "server",
            "--bundles",
            bundles,
        ];
        desk.run(&[&first[..], &["--container-tool", tool], more].concat())
    };
    add("old,new", "none", &["--generate"]).ok();
    assert!(desk.text("index.Dockerfile").contains("index.configs.v1=/configs"));
    let list = desk.run(&["catalog", "list", "bundles", "index"]).ok();
    assert!(
        list.lines().any(|line| line.contains(NEW) && line.contains(OLD)),
        "{list}"
    );

    let built = add("old", "none", &["--tag", "registry.example.com/c:v1"]);
    assert!(built.err.contains("file-based catalog"), "{}", built.err);
    assert!(built.ok().starts_with("registry.example.com/c@sha256:"));
    let from = [
        "--from-index",
        "store:registry.example.com/c:v1",
        "--tag",
        "registry.example.com/c:v2",
    ];
    add("new", "none", &from).ok();
    let list = desk
        .run(&["catalog", "list", "bundles", "store:registry.example.com/c:v2"])
        .ok();
    assert!(list.contains(OLD) && list.contains(NEW), "{list}");
    add("old", "none", &from).refused("is in the catalog already");
    add("old", "no-such-tool", &["--tag", "registry.example.com/c:v3"]).refused("--container-tool none");
}

/// A running server, ended when dropped.
struct Server(Child, Vec<String>);

impl Server {
    /// Starts it and waits until it has said what it serves.
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let serve = [
            &["catalog", "serve", "--port", "0", "--termination-log", "none"],
            arguments,
        ]
        .concat();
        let mut child = desk.command(&serve).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = Vec::new();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut waiting = true;
        while waiting {
            let Some(line) = log.next() else { break };
            let line = line.unwrap();
            waiting = !line.contains("channel entries");
            lines.push(line);
        }
        std::thread::spawn(move || log.for_each(drop));
        Server(child, lines)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn catalogs_are_served_from_directories_layouts_and_images() {
    let desk = Desk::with_catalog();
    let tag = "registry.example.com/catalog:v1";
    let build = [
        "image", "build", "catalog", "catalog", "--binary", "server", "--tag", tag,
    ];
    desk.run(&[&build[..], &["--output", "store", "--output", "oci:layout"]].concat())
        .ok();
    let image = format!("store:{tag}");
    for catalog in ["catalog", "layout", "oci:layout", &image] {
        let server = Server::start(&desk, &[catalog]);
        let last = server.1.last().map(String::as_str);
        assert_eq!(
            last,
            Some("1 packages, 2 bundles, 2 channel entries"),
            "{catalog}: {:?}",
            server.1
        );
    }
    desk.run(&["catalog", "serve", "--port", "0", "./nowhere"])
        .refused("./nowhere");
    desk.run(&[
        "image",
        "build",
        "bundle",
        "new",
        "--tag",
        "registry.example.com/bundle:v1",
    ])
    .ok();
    desk.run(&[
        "catalog",
        "serve",
        "--port",
        "0",
        "store:registry.example.com/bundle:v1",
    ])
    .refused("this is a bundle image");
}

#[test]
fn a_wrong_package_is_told_and_the_others_are_served() {
    let desk = Desk::with_catalog();
    std::fs::write(
        desk.path("catalog/broken.yaml"),
        "schema: olm.package\nname: q\ndefaultChannel: c\n",
    )
    .unwrap();
    let server = Server::start(
        &desk,
        &["catalog", "--http=127.0.0.1:0", "--metrics-addr", "127.0.0.1:0"],
    );
    assert!(
        server.1.iter().any(|line| line.starts_with("listening for HTTP on ")),
        "{:?}",
        server.1
    );
    assert_eq!(server.1.last().unwrap(), "1 packages, 2 bundles, 2 channel entries");
    drop(server);
    desk.run(&["catalog", "serve", "--port", "0", "--strict", "catalog"])
        .refused("invalid package \"q\"");
    desk.run(&["catalog", "serve", "--cache-only", "--cache-dir", "cache", "catalog"])
        .refused("invalid package \"q\"");
}
