//! Questions, on a terminal that Python's `pty` pretends.

use std::process::Command;

use serde_json::json;

use super::support::Folder;

/// Runs the command of its arguments on a terminal and types the next answer whenever a question waits.
const TYPIST: &str = r#"
import os, pty, sys
answers = os.environ["ANSWERS"].split("|")
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
shown, questions = b"", 0
while True:
    try:
        read = os.read(terminal, 4096)
    except OSError:
        break
    if not read:
        break
    shown += read
    while shown.count(b"\n> ") > questions:
        answer = answers[questions] if questions < len(answers) else ""
        os.write(terminal, answer.encode() + b"\n")
        questions += 1
print(shown.decode())
print("questions:", questions)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn a_terminal_is_asked_for_a_new_base_only() {
    let directory = Folder::new();
    directory.write(
        "PROJECT",
        "projectName: example-operator\nlayout:\n- go.kubebuilder.io/v4\nversion: \"3\"\n",
    );
    let run = || {
        Command::new("python3")
            .args(["-c", TYPIST])
            .arg(assert_cmd::cargo::cargo_bin("olmkit"))
            .args(["generate", "kustomize", "manifests"])
            .env(
                "ANSWERS",
                "Example|Does it.|ACME|https://acme.example.com|a, b|Jo:jo@example.com|",
            )
            .current_dir(directory.path("."))
            .output()
    };
    let Ok(output) = run() else {
        println!("skipped: no python3 on PATH, which pretends the terminal");
        return;
    };
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{shown}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(shown.contains("Display name for the operator (required)"), "{shown}");
    assert!(shown.contains("questions: 7"), "{shown}");
    let base = directory.manifest("config/manifests/bases/example-operator.clusterserviceversion.yaml");
    assert_eq!(base["spec"]["displayName"], "Example");
    assert_eq!(
        base["spec"]["provider"],
        json!({"name": "ACME", "url": "https://acme.example.com"})
    );
    assert_eq!(base["spec"]["keywords"], json!(["a", "b"]));
    assert_eq!(
        base["spec"]["maintainers"],
        json!([{"email": "jo@example.com", "name": "Jo"}])
    );

    let again = run().unwrap();
    let shown = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(
        shown.contains("questions: 0"),
        "a base that exists is not asked about: {shown}"
    );
}
