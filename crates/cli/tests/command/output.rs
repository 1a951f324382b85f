//! Output while a command works, and the output that `--quiet` omits.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use clap::CommandFactory as _;
use test_support::demo_bundle;

use crate::hostile::TERMINAL;

/// A directory of bundles, and a command that validates the last of them only after an event.
fn directory(bundles: usize, before_the_last: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..bundles {
        demo_bundle::copy(&directory.path().join("bundles"), &format!("b{number:02}"), &[]);
    }
    let last = bundles - 1;
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in *b{last:02}) {before_the_last} ;; esac\n\
         echo '{{\"Warnings\": [{{\"Level\": \"Warning\", \"Detail\": \"looked at\"}}]}}'\n"
    );
    let program = directory.path().join("program");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn olmkit(directory: &Path, arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("olmkit"));
    command
        .args(arguments.split(' '))
        .current_dir(directory)
        .env("HOME", directory)
        .env("OLMKIT_IMAGE_STORE", directory.join("store"))
        .stdin(Stdio::null());
    command
}

fn run(directory: &Path, arguments: &str) -> Output {
    olmkit(directory, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const VALIDATE: &str = "bundle validate --recursive bundles --alpha-select-external ./program";

/// The last bundle is validated only after the findings of the first were read.
#[test]
fn findings_are_printed_while_others_are_looked_for() {
    for (output, bundles) in [
        ("concise", 12),
        ("github", 12),
        ("full", 12),
        ("text", 4),
        ("text --fail-on warning", 12),
    ] {
        let wait = "i=0; while [ ! -e go ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; [ -e go ] || exit 1";
        let directory = directory(bundles, wait);
        let mut child = olmkit(directory.path(), &format!("{VALIDATE} -o {output}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (mut first, start) = (String::new(), Instant::now());
        while !first.contains("b00") {
            assert!(stdout.read_line(&mut first).unwrap() > 0, "{output}: {first}");
        }
        assert!(start.elapsed().as_secs() < 50, "{output}");
        fs::write(directory.path().join("go"), "").unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        let is_success = child.wait().unwrap().success();
        assert_eq!(is_success, !output.contains("--fail-on"), "{output}: {first}{rest}");
        let all = first + &rest;
        let places: Vec<usize> = (0..bundles)
            .map(|number| all.find(&format!("b{number:02}")).unwrap())
            .collect();
        assert!(places.is_sorted(), "{output}: {all}");
    }
}

#[test]
fn long_work_is_shown_on_a_terminal() {
    let directory = directory(3, "sleep 2");
    let shown = |more: &str| {
        let output = Command::new("python3")
            .args(["-c", TERMINAL])
            .arg(assert_cmd::cargo::cargo_bin("olmkit"))
            .args(format!("{VALIDATE} -o concise{more}").split(' '))
            .current_dir(directory.path())
            .env("HOME", directory.path())
            .output()
            .unwrap();
        text(&output.stdout)
    };
    let all = shown("");
    assert!(all.contains("validating: 2 of 3 bundles"), "{}", all.escape_debug());
    assert!(all.contains("looked at"), "{all}");
    let quiet = shown(" -q");
    assert!(!quiet.contains("validating"), "{}", quiet.escape_debug());
    assert!(quiet.contains("looked at"), "{quiet}");
}

#[test]
fn long_work_prints_a_line_every_ten_seconds_elsewhere() {
    let directory = directory(3, "sleep 12");
    let quiet = olmkit(directory.path(), &format!("{VALIDATE} -q"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = run(directory.path(), VALIDATE);
    let errors = text(&output.stderr);
    let lines: Vec<&str> = errors.lines().filter(|line| line.starts_with("validating: ")).collect();
    assert_eq!(lines, ["validating: 2 of 3 bundles, 0.2/s"], "{errors}");
    let quiet = quiet.wait_with_output().unwrap();
    assert_eq!(text(&quiet.stderr), "");
    assert_eq!(text(&quiet.stdout), text(&output.stdout));
}

/// Every command has the flag, and there is one meaning of it.
#[test]
fn quiet_leaves_results_and_errors() {
    fn without(command: &clap::Command) -> Vec<String> {
        let is_quiet = |argument: &clap::Arg| argument.get_long() == Some("quiet") && argument.get_short() == Some('q');
        let own = (!command.get_arguments().any(is_quiet)).then(|| command.get_name().to_owned());
        let below = command.get_subcommands().filter(|below| below.get_name() != "help");
        own.into_iter().chain(below.flat_map(without)).collect()
    }
    let mut root = olmkit_cli::Cli::command();
    root.build();
    assert_eq!(without(&root), Vec::<String>::new());
    let directory = tempfile::tempdir().unwrap();
    demo_bundle::copy(directory.path(), "bundle", &[]);
    let blob = "schema: olm.package\nname: demo\ndefaultChannel: stable\n";
    fs::create_dir(directory.path().join("catalog")).unwrap();
    fs::write(directory.path().join("catalog/catalog.yaml"), blob).unwrap();
    for (arguments, talks, has_result) in [
        ("bundle validate bundle", true, false),
        ("bundle unpack bundle -o unpacked", true, false),
        ("bundle rbac --for-installer bundle -n demo", false, true),
        ("catalog dockerfile catalog", true, false),
        (
            "catalog add bundle --to catalog --channel stable --create-channel",
            true,
            false,
        ),
        ("catalog migrate catalog migrated", true, false),
        ("catalog list packages catalog", false, true),
        ("image build bundle bundle -t registry.test/b:v1", false, true),
        ("image prune", true, false),
        ("catalog list packages nosuch", true, false),
    ] {
        let is_error = arguments.contains("nosuch");
        let quiet = run(directory.path(), &format!("{arguments} -q"));
        assert_eq!(
            quiet.status.success(),
            !is_error,
            "{arguments}: {}",
            text(&quiet.stderr)
        );
        assert_eq!(
            quiet.stderr.is_empty(),
            !is_error,
            "{arguments}: {}",
            text(&quiet.stderr)
        );
        assert_eq!(
            !quiet.stdout.is_empty(),
            has_result,
            "{arguments}: {}",
            text(&quiet.stdout)
        );
        for made in ["unpacked", "migrated", "catalog.Dockerfile"] {
            let path = directory.path().join(made);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        if arguments.starts_with("catalog add") {
            continue;
        }
        let loud = run(directory.path(), arguments);
        assert_eq!(text(&loud.stdout), text(&quiet.stdout), "{arguments}");
        assert_eq!(!loud.stderr.is_empty(), talks, "{arguments}: {}", text(&loud.stderr));
        for made in ["unpacked", "migrated"] {
            let _ = fs::remove_dir_all(directory.path().join(made));
        }
    }
}

/// The exit code and standard error do not depend on whether a reader such as `head` closes the pipe early.
#[test]
fn a_closed_pipe_changes_neither_exit_code_nor_errors() {
    let directory = tempfile::tempdir().unwrap();
    let repository = test_support::repository("");
    let here = |name: &str| repository.join(name).display().to_string();
    let (bundle, catalog) = (here("bundle"), here("catalog"));
    demo_bundle::copy(directory.path(), "broken", &[]);
    let broken = directory.path().join("broken");
    fs::write(broken.join("metadata/annotations.yaml"), "annotations: {}\n").unwrap();
    let built = run(
        directory.path(),
        &format!("image build bundle {bundle} -t localhost/x:1"),
    );
    assert!(built.status.success(), "{}", text(&built.stderr));
    let commands = [
        "image inspect store:localhost/x:1".to_owned(),
        "image inspect store:localhost/x:1 -o json".to_owned(),
        "image list".to_owned(),
        format!("catalog images {catalog}"),
        format!("catalog images {catalog} -o json"),
        format!("catalog list packages {catalog}"),
        format!("catalog list bundles {catalog}"),
        format!("catalog graph {catalog}"),
        format!("catalog render {catalog}"),
        format!("catalog render {catalog} -o yaml"),
        format!("catalog validate {catalog}"),
        format!("bundle validate {bundle} -o json"),
        format!("bundle validate {}", broken.display()),
        format!("bundle validate {} -o sarif", broken.display()),
        format!("bundle render --olmv1 {bundle} -n demo"),
        format!("bundle rbac --for-installer {bundle} -n demo"),
        format!("bundle diff {bundle} {bundle}"),
        "explain CSV-1".to_owned(),
        "completion bash".to_owned(),
        "version".to_owned(),
        "image --help".to_owned(),
        format!("image build bundle {bundle} -t localhost/y:1"),
    ];
    for arguments in &commands {
        let open = run(directory.path(), arguments);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = olmkit(directory.path(), arguments).stdout(writer).output().unwrap();
        assert_eq!(
            (closed.status.code(), text(&closed.stderr)),
            (open.status.code(), text(&open.stderr)),
            "{arguments}"
        );
        assert!(
            matches!(open.status.code(), Some(0 | 1)),
            "{arguments}: {}",
            text(&open.stderr)
        );
    }
    let failed = run(directory.path(), &format!("bundle validate {}", broken.display()));
    assert_eq!(failed.status.code(), Some(1), "a failure is among them");
}
