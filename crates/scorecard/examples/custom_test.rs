//! A custom scorecard test with two checks: `custom-test bundle-has-license`, `custom-test csv-has-icon`.

use std::path::Path;
use std::process::ExitCode;

use olmkit_scorecard::{TestResult, TestStatus, bundle_directory};

const CHECKS: [&str; 2] = ["bundle-has-license", "csv-has-icon"];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    // Scorecard mounts the bundle at /bundle. Another directory serves to try the test out.
    let bundle = std::env::args().nth(2).map_or_else(bundle_directory, Into::into);
    println!("{}", TestStatus::from(check(&name, &bundle)));
    ExitCode::SUCCESS
}

fn check(name: &str, bundle: &Path) -> TestResult {
    let mut result = TestResult::new(name);
    match name {
        "bundle-has-license" => {
            if !bundle.join("LICENSE").is_file() {
                result.fail("the bundle has no file LICENSE");
                result.suggest("copy the LICENSE of the project to the bundle");
            }
        }
        "csv-has-icon" => match csv_text(bundle) {
            Ok(text) if text.contains("base64data:") => result.log("the ClusterServiceVersion has an icon"),
            Ok(_) => result.fail("the ClusterServiceVersion has no icon"),
            Err(error) => result.error(format!("cannot read the manifests: {error}")),
        },
        _ => result.error(format!("unknown test {name:?}; there are {}", CHECKS.join(", "))),
    }
    result
}

/// The content of the file with the ClusterServiceVersion.
fn csv_text(bundle: &Path) -> std::io::Result<String> {
    for entry in std::fs::read_dir(bundle.join("manifests"))? {
        let text = std::fs::read_to_string(entry?.path())?;
        if text.contains("kind: ClusterServiceVersion") {
            return Ok(text);
        }
    }
    Err(std::io::Error::other("no file has a ClusterServiceVersion"))
}

#[cfg(test)]
mod tests {
    use olmkit_scorecard::State;

    use super::check;

    #[test]
    fn each_check_has_its_states() {
        let bundle = std::env::temp_dir().join(format!("custom-test-{}", std::process::id()));
        std::fs::create_dir_all(bundle.join("manifests")).unwrap();
        assert_eq!(check("bundle-has-license", &bundle).state, State::Fail);
        std::fs::write(bundle.join("LICENSE"), "").unwrap();
        assert_eq!(check("bundle-has-license", &bundle).state, State::Pass);
        assert_eq!(check("csv-has-icon", &bundle).state, State::Error);
        let file = bundle.join("manifests/csv.yaml");
        std::fs::write(&file, "kind: ClusterServiceVersion\n").unwrap();
        assert_eq!(check("csv-has-icon", &bundle).state, State::Fail);
        std::fs::write(
            &file,
            "kind: ClusterServiceVersion\nspec:\n  icon:\n  - base64data: AA==\n",
        )
        .unwrap();
        assert_eq!(check("csv-has-icon", &bundle).state, State::Pass);
        assert_eq!(check("other", &bundle).state, State::Error);
        std::fs::remove_dir_all(&bundle).unwrap();
    }
}
