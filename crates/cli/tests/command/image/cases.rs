//! Scripts with cases from public bug reports, from a directory next to the repository.

use std::path::Path;
use std::process::Command;

#[test]
fn all_cases_of_the_scripts_are_right() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/oci");
    let Ok(entries) = std::fs::read_dir(&scripts) else {
        println!("skipped: {} does not exist", scripts.display());
        return;
    };
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: python3 is missing");
        return;
    }
    let olmkit = assert_cmd::cargo::cargo_bin!("olmkit");
    let folder = tempfile::tempdir().unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".py") && name.starts_with(|letter: char| letter.is_ascii_digit())
    });
    paths.sort();
    for path in paths {
        let output = Command::new("python3")
            .arg("-B")
            .arg(&path)
            .env("OLMKIT", olmkit)
            .env("TMPDIR", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let wrong: Vec<&str> = text.lines().filter(|line| line.starts_with("WRONG")).collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", path.display());
        assert_eq!(wrong, [""; 0], "{}\n{text}", path.display());
        assert!(text.contains("RIGHT"), "{}: {text}", path.display());
    }
}
