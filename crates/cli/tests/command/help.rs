//! Help, versions and closed pipes: what every command has in common.

use std::process::{Command, Stdio};

fn olmkit(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_olmkit"))
        .args(arguments)
        .output()
        .unwrap()
}

fn help(path: &[String]) -> String {
    let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
    arguments.push("--help");
    let output = olmkit(&arguments);
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands below a command, with their summaries.
fn commands(help: &str) -> Vec<(String, String)> {
    // The help of olmkit has several lists, up to its options.
    let list = match help.split_once("\nCommands:\n") {
        Some((_, list)) => list.split("\n\n").next().unwrap_or_default(),
        None if help.contains("\nUsage: olmkit [OPTIONS] <COMMAND>\n") => {
            let (_, lists) = help.split_once("<COMMAND>\n").unwrap();
            lists.split_once("\nOptions:").unwrap().0
        }
        None => return Vec::new(),
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for line in list.lines().filter(|line| line.starts_with("  ")) {
        let text = line.trim();
        match (
            line.starts_with("  ") && !line.starts_with("   "),
            text.split_once("  "),
        ) {
            (true, Some((name, summary))) => found.push((name.to_owned(), summary.trim().to_owned())),
            // A summary that is continued.
            _ => {
                if let Some((_, summary)) = found.last_mut() {
                    summary.push(' ');
                    summary.push_str(text);
                }
            }
        }
    }
    found.retain(|(name, _)| name != "help");
    found
}

/// Every command with its help. `check` gets its path, the summary in the list above it, and its help.
fn walk(path: &mut Vec<String>, check: &mut impl FnMut(&[String], &str, &str)) {
    for (name, summary) in commands(&help(path)) {
        path.push(name);
        check(path, &summary, &help(path));
        walk(path, check);
        path.pop();
    }
}

#[test]
fn every_command_has_a_sentence_of_its_own_and_an_example() {
    let (mut pages, mut examples) = (0, 0);
    walk(&mut Vec::new(), &mut |path, summary, help| {
        pages += 1;
        let first: String = help
            .lines()
            .take_while(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        // The list names aliases behind the sentence.
        let summary = summary.split(" [alias").next().unwrap_or_default();
        assert_eq!(first, summary, "{path:?}");
        assert!(
            help.contains(&format!("Usage: olmkit {}", path.join(" "))),
            "{path:?}: {help}"
        );
        if !commands(help).is_empty() {
            return;
        }
        let Some((_, shown)) = help.split_once("Examples:\n") else {
            panic!("olmkit {} has no example", path.join(" "));
        };
        for example in shown.lines().filter(|line| !line.is_empty()) {
            examples += 1;
            let called = format!("olmkit {}", path.join(" "));
            assert!(example.contains(&called), "{example:?} does not show {called}");
        }
    });
    assert!(pages > 50 && examples > 40, "{pages} pages, {examples} examples");
}

/// The rules of the writing guide for help: a short first line, and a text that describes when to use the command.
#[test]
fn every_command_has_a_short_first_line_and_a_long_text() {
    let mut wrong = Vec::new();
    walk(&mut Vec::new(), &mut |path, summary, help| {
        let name = path.join(" ");
        if summary.chars().count() > 60 {
            wrong.push(format!(
                "{name}: the first line is longer than 60 characters: {summary}"
            ));
        }
        let before = help.split("\n\nUsage:").next().unwrap_or_default();
        if commands(help).is_empty() && !before.contains("\n\n") {
            wrong.push(format!("{name}: no long text"));
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Examples must remain valid as flags change: the parser accepts each command line.
#[test]
fn every_example_is_a_valid_command_line() {
    let directory = tempfile::tempdir().unwrap();
    walk(&mut Vec::new(), &mut |path, _, help| {
        let Some((_, shown)) = help.split_once("Examples:\n") else {
            return;
        };
        for example in shown.lines().filter(|line| !line.is_empty()) {
            // The olmkit part of a pipeline, without shell syntax.
            let own = example
                .split(" | ")
                .find(|part| part.trim_start().starts_with("olmkit "))
                .unwrap();
            let own = own.split(" > ").next().unwrap_or_default();
            let words: Vec<String> = shlex(own);
            let output = Command::new("timeout")
                .args(["600", env!("CARGO_BIN_EXE_olmkit")])
                .args(&words[1..])
                .current_dir(directory.path())
                .env_clear()
                .env("HOME", directory.path())
                .env("OLMKIT_IMAGE_STORE", directory.path().join("store"))
                .env("KUBECONFIG", directory.path().join("none"))
                // No host is contacted: all requests go to a proxy that rejects them.
                .env("HTTPS_PROXY", "http://127.0.0.1:9")
                .env("HTTP_PROXY", "http://127.0.0.1:9")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            // Neither a panic nor the end of the time.
            assert!(!matches!(output.status.code(), Some(101 | 124)), "{example}: {errors}");
            for wrong in [
                "unexpected argument",
                "unrecognized subcommand",
                "invalid value",
                "required arguments",
                "cannot be used with",
            ] {
                assert!(!errors.contains(wrong), "{path:?}: {example}: {errors}");
            }
        }
    });
}

/// Words of a command line with single and double quotes.
pub fn shlex(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.trim().chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (' ', None) => words.push(String::new()),
            (c, _) => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn the_version_is_that_of_the_program() {
    for arguments in [
        &["--version"][..],
        &["bundle", "validate", "--version"],
        &["catalog", "-V"],
    ] {
        let output = olmkit(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("olmkit {}\n", env!("CARGO_PKG_VERSION")), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for arguments in [&["completion", "bash"][..], &["explain"], &["catalog", "--help"]] {
        ends_when_its_reader_is_gone(Command::new(env!("CARGO_BIN_EXE_olmkit")).args(arguments), 0);
    }
}

/// Runs a command whose standard output has no reader: it ends with its usual exit code and without an error message.
pub fn ends_when_its_reader_is_gone(command: &mut Command, code: i32) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
    assert_eq!(output.status.code(), Some(code), "{command:?}");
}

#[test]
fn colours_and_the_log_are_chosen_for_every_command() {
    let empty = tempfile::tempdir().unwrap();
    let directory = empty.path().to_str().unwrap();
    let validated = |color: &str| olmkit(&["bundle", "validate", directory, "--color", color]).stdout;
    assert!(validated("always").contains(&0x1b), "colours were asked for");
    assert!(!validated("never").contains(&0x1b));
    assert!(!validated("auto").contains(&0x1b), "a pipe is no terminal");
    // Port 1 rejects connections.
    let absent = ["image", "digest", "127.0.0.1:1/a/b:1"];
    let quiet = olmkit(&absent);
    let verbose = olmkit(&[&absent[..], &["--verbose"]].concat());
    let log = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).contains("DEBUG registry");
    assert!(!log(&quiet), "{}", String::from_utf8_lossy(&quiet.stderr));
    assert!(log(&verbose), "{}", String::from_utf8_lossy(&verbose.stderr));
}
