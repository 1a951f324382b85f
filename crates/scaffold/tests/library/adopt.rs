//! `adopt`, over projects that others have started.

use std::fs;
use std::path::{Path, PathBuf};

use olmkit_scaffold::adopt::Kind;
use olmkit_scaffold::{Source, adopt};
use tempfile::TempDir;

use super::{files, options, read, started};

const MANIFEST: &str = "[package]\nname = \"my-operator\"\nversion = \"0.1.0\"\n\n[dependencies]\nkube = \"3\"\n\
                        schemars = { version = \"1\" }\n";

fn project(texts: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in texts {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Adopts a project, and checks that none of its files changed.
#[track_caller]
fn adopted(folder: &TempDir) -> Kind {
    let before = files(folder.path());
    let adopted = adopt(folder.path(), "example.com", &Source::Registry).unwrap();
    let after = files(folder.path());
    for (path, content) in &before {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
    assert!(adopted.report.changed.is_empty() && adopted.report.removed.is_empty());
    adopted.project
}

#[track_caller]
fn refused(folder: &TempDir, domain: &str) -> String {
    let before = files(folder.path());
    let error = adopt(folder.path(), domain, &Source::Registry).unwrap_err();
    assert!(files(folder.path()) == before, "something changed");
    error.to_string()
}

#[test]
fn a_crate_gets_a_package_that_renders_its_kinds() {
    let kind = |name: &str, more: &str| {
        format!(
            "#[derive(Clone, kube::CustomResource)]\n#[kube(group = \"shop.example.com\", version = \"v1\", kind = \"{name}\"{more})]\n\
             pub struct {name}Spec {{}}\n"
        )
    };
    let lib = format!(
        "pub mod api;\nmod hidden;\npub mod inline {{\n    pub mod deep;\n{}}}\n",
        kind("Basket", "")
    );
    let folder = project(&[
        ("Cargo.toml", MANIFEST),
        ("src/lib.rs", &lib),
        ("src/api.rs", "pub mod v1;\n"),
        ("src/api/v1.rs", &kind("Cache", ", plural = \"cachez\"")),
        ("src/inline/deep/mod.rs", &kind("Deep", "")),
        ("src/hidden.rs", &kind("Hidden", "")),
        ("Makefile", "all:\n\ttrue\n"),
    ]);
    let Kind::Rust(kinds) = adopted(&folder) else { panic!() };
    assert_eq!(kinds, ["api::v1::Cache", "inline::deep::Deep", "inline::Basket"]);
    let main = read(&folder, "olm/src/main.rs");
    for expected in [
        ".api(api::<operator::api::v1::Cache>()?)",
        "grant(\"shop.example.com\", \"cachez/status\"",
        "grant(\"shop.example.com\", \"baskets\"",
    ] {
        assert!(main.contains(expected), "{expected} in {main}");
    }
    let manifest = read(&folder, "olm/Cargo.toml");
    assert!(
        manifest.contains("kube = { version = \"3\"") && manifest.contains("\n[workspace]\n"),
        "{manifest}"
    );
    assert!(read(&folder, "olm.mk").contains("--package my-operator"));
    assert!(read(&folder, "olm/config/package.yaml").contains("displayName: My Operator"));
    let again = refused(&folder, "example.com");
    assert!(again.starts_with("olm.mk exists"), "{again}");
}

#[test]
fn a_project_of_kubebuilder_gets_a_base_and_targets() {
    let file = "domain: shop.io\nlayout:\n- go.kubebuilder.io/v4\nprojectName: shop\nversion: \"3\"\n";
    let go = [
        ("PROJECT", file),
        ("Makefile", "all:\n"),
        ("config/default/kustomization.yaml", "resources: []\n"),
        ("config/samples/kustomization.yaml", "resources: []\n"),
    ];
    let folder = project(&go);
    assert_eq!(adopted(&folder), Kind::Kubebuilder("go.kubebuilder.io/v4".to_owned()));
    let kustomization = read(&folder, "config/manifests/kustomization.yaml");
    assert!(
        kustomization.contains("- bases/shop.clusterserviceversion.yaml\n- ../default\n- ../samples\n")
            && !kustomization.contains("scorecard"),
        "{kustomization}"
    );
    let base = read(&folder, "config/manifests/bases/shop.clusterserviceversion.yaml");
    assert!(
        base.contains("name: shop.v0.0.0") && base.contains("displayName: Shop"),
        "{base}"
    );
    assert!(read(&folder, "olm.mk").contains("IMAGE_TAG_BASE ?= shop.io/shop"));

    let folder = project(&go);
    fs::create_dir(folder.path().join("config/manifests")).unwrap();
    fs::write(
        folder.path().join("config/manifests/kustomization.yaml"),
        "resources: []\n",
    )
    .unwrap();
    adopted(&folder);
    let new: Vec<PathBuf> = files(folder.path()).into_keys().collect();
    assert!(
        new.contains(&PathBuf::from("olm.mk")) && !new.iter().any(|path| path.starts_with("config/manifests/bases"))
    );
}

#[test]
fn a_failed_adoption_changes_no_file() {
    let lib = "pub mod api;\n";
    let private = "#[derive(CustomResource)]\n#[kube(kind = \"Cache\", group = \"a.b\", version = \"v1\")]\nstruct CacheSpec {}\n";
    let without_kube = MANIFEST.replace("kube = \"3\"\n", "");
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "contains neither Cargo.toml nor PROJECT"),
        (&[("Cargo.toml", "[package")], "Cargo.toml: "),
        (&[("Cargo.toml", "[workspace]\n")], "package.name is missing"),
        (&[("Cargo.toml", &without_kube)], "dependencies.kube names no version"),
        (&[("Cargo.toml", MANIFEST)], "src/lib.rs is missing"),
        (&[("Cargo.toml", MANIFEST), ("src/lib.rs", "")], "found no kind"),
        (&[("Cargo.toml", MANIFEST), ("src/lib.rs", "fn (")], "src/lib.rs:1:"),
        (
            &[("Cargo.toml", MANIFEST), ("src/lib.rs", lib), ("src/api.rs", private)],
            "the kind api::Cache is not public",
        ),
        (&[("PROJECT", "a: [")], "PROJECT: "),
        (
            &[("PROJECT", "projectName: ../x\ndomain: a.b\n")],
            "PROJECT: projectName",
        ),
        (
            &[("PROJECT", "projectName: x\ndomain: a.b\n")],
            "config/default/kustomization.yaml is missing",
        ),
    ];
    for (texts, expected) in cases {
        let error = refused(&project(texts), "example.com");
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let domain = refused(&project(&[("Cargo.toml", MANIFEST)]), "a b");
    assert!(domain.starts_with("--domain"), "{domain}");
    let own = refused(&started(&options()), "example.com");
    assert!(own.contains("olmkit update"), "{own}");
    assert!(!Path::new("olm.mk").exists());
}
