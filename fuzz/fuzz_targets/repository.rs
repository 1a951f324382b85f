//! Any files as a repository of operators: every check of every suite ends, yamllint's and PyYAML's readers with them.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use olmkit_submission::{Memory, Options, Repository, Suite, check_bundle, check_catalogs, check_operator, packages};

const MOST_FILES: usize = 30;

fuzz_target!(|data: &[u8]| {
    let _ = packages(data);
    let repository = Repository::new(Arc::new(files(data).into_iter().collect::<Memory>()));
    for strict_compat in [false, true] {
        let options = Options {
            suites: vec![
                Suite::Common,
                Suite::Community,
                Suite::Isv,
                Suite::OperatorHub,
                Suite::Preflight,
            ],
            pull_request: true,
            strict_compat,
            ..Options::default()
        };
        let Some(operator) = repository.operator("hello") else {
            continue;
        };
        let _ = check_operator(&repository, &operator, &options);
        for version in ["0.0.1", "0.0.2"] {
            let _ = check_bundle(&repository, &operator, version, &options);
        }
        let _ = check_catalogs(&repository, &repository.catalogs_of("hello"), &options);
    }
});

/// Lines `@ path` begin a file of the operator `hello`, or of the repository; without any, the text is a ClusterServiceVersion.
fn files(data: &[u8]) -> Vec<(String, Vec<u8>)> {
    let csv = "operators/hello/0.0.1/manifests/hello.clusterserviceversion.yaml";
    let mut files = vec![
        ("operators/hello/0.0.1/metadata/annotations.yaml".to_owned(), Vec::new()),
        (csv.to_owned(), Vec::new()),
    ];
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let path = line.strip_prefix(b"@ ").and_then(|path| std::str::from_utf8(path).ok());
        match path {
            Some(path) if files.len() < MOST_FILES => {
                let path = path.trim();
                let root = ["config.yaml", "catalogs/", "operators/"];
                let prefix = match path {
                    path if root.iter().any(|root| path.starts_with(root)) => "",
                    "ci.yaml" => "operators/hello/",
                    path if path.starts_with("catalog-templates/") || path.starts_with("0.0.2/") => "operators/hello/",
                    _ => "operators/hello/0.0.1/",
                };
                files.push((format!("{prefix}{path}"), Vec::new()));
            }
            _ => {
                if let Some((_, content)) = files.last_mut() {
                    content.extend_from_slice(line);
                }
            }
        }
    }
    files
}
