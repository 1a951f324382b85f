//! Projects written into a temporary directory, without compiling them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod adopt;
mod external;
mod pages;
mod webhooks;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use olmkit_scaffold::{
    Api, DeleteApi, Edit, Error, External, Image, Init, License, Source, StorageVersion, create_api, delete_api,
    edit_settings, init, set_storage_version,
};
use tempfile::TempDir;

fn options() -> Init {
    Init {
        domain: "example.com".into(),
        name: Some("memcached-operator".into()),
        license: License::Apache2,
        namespaced: false,
        multigroup: false,
        source: Source::Registry,
    }
}

fn api(group: &str, version: &str, kind: &str) -> Api {
    Api {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: None,
        namespaced: true,
        resource: true,
        controller: None,
        image: None,
        external: External::default(),
        force: false,
    }
}

fn started(options: &Init) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), options).unwrap();
    folder
}

fn read(folder: &TempDir, path: &str) -> String {
    fs::read_to_string(folder.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file with its content.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let content = fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(root).unwrap().to_owned(), content);
                }
            }
        }
    }
    found
}

#[track_caller]
fn same(now: &BTreeMap<PathBuf, Vec<u8>>, before: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, content) in now {
        let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
        let was = before.get(path).map(|content| text(content));
        assert_eq!(Some(text(content)), was, "{}", path.display());
    }
    assert!(now.keys().eq(before.keys()), "{:?} {:?}", now.keys(), before.keys());
}

/// A failed command changes no file.
#[track_caller]
fn refused(folder: &TempDir, api: &Api) -> String {
    let before = files(folder.path());
    let error = create_api(folder.path(), api).unwrap_err();
    assert!(files(folder.path()) == before, "something changed");
    error.to_string()
}

#[test]
fn a_project_has_its_rendered_configuration_at_once() {
    let folder = started(&options());
    assert!(read(&folder, "config/manager/manager.yaml").contains("image: example.com/memcached-operator:v0.0.1"));
    assert!(read(&folder, "config/rbac/leader_election_role.yaml").contains("  - leases\n"));
    assert!(read(&folder, "Cargo.toml").contains("kube-manager = { version ="));
    assert!(!folder.path().join("config/crd").exists());
    assert_eq!(
        read(&folder, "PROJECT")
            .lines()
            .filter(|line| line.starts_with('#'))
            .count(),
        3
    );
}

#[test]
fn a_project_begins_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    init(folder.path(), &options()).unwrap();
    let before = files(folder.path());
    let error = init(folder.path(), &options()).unwrap_err();
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    assert!(files(folder.path()) == before);
}

#[test]
fn a_kind_is_wired_in_everywhere() {
    let folder = started(&options());
    let report = create_api(folder.path(), &api("cache", "v1alpha1", "Memcached")).unwrap();
    assert!(!report.render);
    assert!(read(&folder, "src/api/mod.rs").ends_with("\n\npub mod v1alpha1;\n"));
    assert!(read(&folder, "src/api/v1alpha1/mod.rs").contains("pub mod memcached;"));
    let controllers = read(&folder, "src/controller/mod.rs");
    assert!(
        controllers.contains("    to.add(memcached::controller());\n}"),
        "{controllers}"
    );
    assert!(!controllers.contains("let _"), "{controllers}");
    let definition = read(&folder, "config/crd/bases/cache.example.com_memcacheds.yaml");
    assert!(
        definition.contains("listKind: MemcachedList") && definition.contains("singular: memcached"),
        "{definition}"
    );
    for (path, content) in files(folder.path()) {
        let text = String::from_utf8_lossy(&content).to_lowercase();
        for placeholder in ["xkindx", "xgroupx", "xpluralx", "xsingularx", "xversionx", "{{"] {
            assert!(
                !text.contains(placeholder) || path.starts_with(".github"),
                "{} in {}",
                placeholder,
                path.display()
            );
        }
    }
}

/// kube-manager computes conditions, and its permissions are those that olmkit renders.
#[test]
fn conditions_and_permissions_are_left_to_the_libraries() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1alpha1", "Memcached")).unwrap();
    let written = files(&folder.path().join("src"));
    for (path, content) in &written {
        assert!(!path.ends_with("conditions.rs"), "{}", path.display());
        let text = String::from_utf8_lossy(content);
        for own in ["fn grant", "Grant {", "Grant::"] {
            assert!(!text.contains(own), "{own} in {}", path.display());
        }
    }
    let packaging = read(&folder, "src/packaging.rs");
    assert!(packaging.contains("kube_manager::Manager::grants();"), "{packaging}");
}

#[test]
fn hand_edited_sources_keep_their_edits() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1alpha1", "Memcached")).unwrap();
    let mine = "    // Mine:   kept   unchanged.\n    let _unused = ( 1 );\n";
    let path = folder.path().join("src/controller/mod.rs");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("    to.add(memcached", &format!("{mine}    to.add(memcached"));
    fs::write(&path, text).unwrap();
    create_api(folder.path(), &api("cache", "v1alpha1", "Cluster")).unwrap();
    let text = read(&folder, "src/controller/mod.rs");
    assert!(
        text.contains(mine)
            && text.contains("    to.add(memcached::controller());\n    to.add(cluster::controller());\n"),
        "{text}"
    );
    assert!(text.contains("pub mod cluster;\npub mod memcached;\n"), "{text}");
}

#[test]
fn changed_types_are_rendered_by_the_project_only() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1alpha1", "Memcached")).unwrap();
    let crd = "config/crd/bases/cache.example.com_memcacheds.yaml";
    let text = read(&folder, crd).replace("maxLength: 1024", "maxLength: 2048");
    fs::write(folder.path().join(crd), &text).unwrap();
    let report = create_api(folder.path(), &api("cache", "v1", "Other")).unwrap();
    assert!(report.render);
    assert_eq!(read(&folder, crd), text);
    assert!(
        !folder
            .path()
            .join("config/crd/bases/cache.example.com_others.yaml")
            .exists()
    );
}

#[test]
fn a_second_version_joins_the_first() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1alpha1", "Memcached")).unwrap();
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    let packaging = read(&folder, "src/packaging.rs");
    assert!(
        packaging.contains("let api = api.version(v1, \"v1alpha1\")?;\n"),
        "{packaging}"
    );
    assert_eq!(packaging.matches("all.push(").count(), 1);
    let crd = read(&folder, "config/crd/bases/cache.example.com_memcacheds.yaml");
    assert_eq!(crd.matches("served: true").count(), 2);
    assert!(read(&folder, "config/samples/kustomization.yaml").contains("cache_v1_memcached.yaml"));
    assert!(read(&folder, "src/controller/memcached.rs").contains("crate::api::v1alpha1::memcached::Memcached;"));
}

#[test]
fn groups_have_folders_in_a_multigroup_project() {
    let folder = started(&Init {
        multigroup: true,
        ..options()
    });
    create_api(folder.path(), &api("cache", "v1", "Server")).unwrap();
    create_api(folder.path(), &api("web-site", "v1", "Server")).unwrap();
    assert!(read(&folder, "src/controller/mod.rs").contains("to.add(web_site::server::controller());"));
    assert!(read(&folder, "src/api/web_site/v1/mod.rs").contains("pub mod server;"));
    assert!(read(&folder, "src/packaging.rs").contains("fn web_site_server() -> Result<Api, Error>"));
}

#[test]
fn rejected_apis_change_no_file() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    let taken = refused(&folder, &api("cache", "v1", "Memcached"));
    assert_eq!(
        taken,
        "cache.example.com/v1 Memcached exists; --force overwrites its files"
    );
    let second = refused(&folder, &api("web", "v1", "Site"));
    assert!(second.contains("olmkit edit --multigroup"), "{second}");
    let mut other = api("cache", "v1", "Other");
    other.plural = Some("memcacheds".into());
    assert!(refused(&folder, &other).contains("choose another with --plural"));
    let mut scope = api("cache", "v2", "Memcached");
    scope.namespaced = false;
    assert!(refused(&folder, &scope).contains("same scope"));
    assert!(refused(&folder, &api("Cache", "v1", "A")).starts_with("--group \"Cache\""));
    assert!(refused(&folder, &api("cache", "1", "A")).starts_with("--version \"1\""));
    assert!(refused(&folder, &api("cache", "v1", "a")).starts_with("--kind \"a\""));
}

#[test]
fn a_source_that_does_not_parse_is_named_with_its_line() {
    let folder = started(&options());
    let path = folder.path().join("src/controller/mod.rs");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\n<<<<<<< HEAD\n")).unwrap();
    let line = text.lines().count() + 2;
    let error = refused(&folder, &api("cache", "v1", "Memcached"));
    assert!(
        error.starts_with(&format!("src/controller/mod.rs:{line}:1: ")),
        "{error}"
    );
    fs::write(&path, text.replace("pub fn add_all", "pub fn add_some")).unwrap();
    let error = refused(&folder, &api("cache", "v1", "Memcached"));
    assert!(
        error.contains("cannot find function `add_all`") && error.contains("to.add(memcached::controller());"),
        "{error}"
    );
}

#[test]
fn a_file_in_the_way_is_kept_without_force() {
    let folder = started(&options());
    fs::write(folder.path().join("src/controller/memcached.rs"), "// mine\n").unwrap();
    let error = refused(&folder, &api("cache", "v1", "Memcached"));
    assert_eq!(error, "src/controller/memcached.rs exists; --force overwrites it");
    let mut forced = api("cache", "v1", "Memcached");
    forced.force = true;
    create_api(folder.path(), &forced).unwrap();
    create_api(folder.path(), &forced).unwrap();
    assert_eq!(
        read(&folder, "src/controller/mod.rs")
            .matches("memcached::controller")
            .count(),
        1
    );
    assert_eq!(read(&folder, "src/packaging.rs").matches("fn memcached()").count(), 1);
}

#[test]
fn a_folder_without_project_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap_err();
    assert!(matches!(error, Error::NoProject { .. }), "{error}");
}

#[test]
fn settings_change_sources_and_configuration() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    let before = files(folder.path());
    let on = Edit {
        multigroup: Some(true),
        namespaced: Some(true),
    };
    assert!(!edit_settings(folder.path(), on).unwrap().render);
    assert!(read(&folder, "src/packaging.rs").contains("NAMESPACED: bool = true;"));
    assert!(read(&folder, "config/package.yaml").ends_with("installModes: [OwnNamespace]\n"));
    let role = read(&folder, "config/rbac/role.yaml");
    assert!(
        role.contains("\nkind: Role\n") && role.contains("  - memcacheds\n"),
        "{role}"
    );
    assert!(read(&folder, "config/rbac/role_binding.yaml").contains("\nkind: RoleBinding\n"));
    let csv = "config/manifests/bases/memcached-operator.clusterserviceversion.yaml";
    assert!(
        read(&folder, csv).contains("- supported: false\n    type: AllNamespaces"),
        "{}",
        read(&folder, csv)
    );
    let off = Edit {
        multigroup: Some(false),
        namespaced: Some(false),
    };
    assert!(!edit_settings(folder.path(), off).unwrap().render);
    same(&files(folder.path()), &before);
}

#[test]
fn known_kinds_stay_where_they_are_when_groups_get_folders() {
    let folder = started(&options());
    create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
    let edit = Edit {
        multigroup: Some(true),
        namespaced: None,
    };
    edit_settings(folder.path(), edit).unwrap();
    create_api(folder.path(), &api("web", "v1", "Site")).unwrap();
    create_api(folder.path(), &api("cache", "v2", "Memcached")).unwrap();
    assert!(folder.path().join("src/api/v2/memcached.rs").exists());
    assert!(folder.path().join("src/api/web/v1/site.rs").exists());
    assert!(read(&folder, "src/packaging.rs").contains("fn web_site()"));
    let off = Edit {
        multigroup: Some(false),
        namespaced: None,
    };
    let error = edit_settings(folder.path(), off).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the project has the groups cache.example.com, web.example.com"
    );
}

#[test]
fn a_kind_runs_an_image() {
    let folder = started(&options());
    let image = Image {
        image: "docker.io/library/memcached:1.6".into(),
        container_command: "memcached,-m,64".into(),
        container_port: "11222".into(),
        run_as_user: "1001".into(),
    };
    let mut memcached = api("cache", "v1", "Memcached");
    memcached.image = Some(image.clone());
    create_api(folder.path(), &memcached).unwrap();
    let types = read(&folder, "src/api/v1/memcached.rs");
    assert!(types.contains("DEFAULT_CONTAINER_PORT: i32 = 11222;"), "{types}");
    let crd = read(&folder, "config/crd/bases/cache.example.com_memcacheds.yaml");
    assert!(crd.contains("default: 11222"), "{crd}");
    assert!(read(&folder, "config/manager/manager.yaml").contains("RELATED_IMAGE_MEMCACHED"));
    assert!(read(&folder, "PROJECT").contains("containerCommand: memcached,-m,64"));
    let mut bare = api("cache", "v1", "Web");
    bare.image = Some(Image {
        container_port: String::new(),
        ..image.clone()
    });
    create_api(folder.path(), &bare).unwrap();
    let types = read(&folder, "src/api/v1/web.rs");
    assert!(
        !types.to_lowercase().contains("port:") && types.contains("    pub size: i32,\n}\n"),
        "{types}"
    );
    assert!(!read(&folder, "config/crd/bases/cache.example.com_webs.yaml").contains("containerPort"));
    for (port, user, command) in [
        ("0", "", ""),
        ("65536", "", ""),
        ("", "0", ""),
        ("", "root", ""),
        ("", "", "a\nb"),
    ] {
        let mut wrong = api("cache", "v1", "Wrong");
        wrong.image = Some(Image {
            container_port: port.into(),
            run_as_user: user.into(),
            container_command: command.into(),
            ..image.clone()
        });
        refused(&folder, &wrong);
    }
}

fn deletion(version: &str, kind: &str, force: bool) -> DeleteApi {
    DeleteApi {
        group: "cache".into(),
        version: version.into(),
        kind: kind.into(),
        force,
    }
}

#[test]
fn deleting_a_kind_undoes_what_creating_it_did() {
    for multigroup in [false, true] {
        let folder = started(&Init {
            multigroup,
            ..options()
        });
        let empty = files(folder.path());
        create_api(folder.path(), &api("cache", "v1", "Memcached")).unwrap();
        let path = folder.path().join("src/controller/mod.rs");
        let mine = fs::read_to_string(&path)
            .unwrap()
            .replace("pub fn add_all", "// Mine.\npub fn add_all");
        fs::write(&path, mine).unwrap();
        let one = files(folder.path());
        create_api(folder.path(), &api("cache", "v2", "Memcached")).unwrap();
        let mut web = api("cache", "v1", "Web");
        web.image = Some(Image {
            image: "example.com/web:1".into(),
            ..Image::default()
        });
        create_api(folder.path(), &web).unwrap();
        let stored = delete_api(folder.path(), &deletion("v1", "Memcached", false)).unwrap_err();
        assert!(
            stored
                .to_string()
                .contains("olmkit edit --storage-version VERSION --group=cache --kind=Memcached"),
            "{stored}"
        );
        delete_api(folder.path(), &deletion("v1", "Web", false)).unwrap();
        delete_api(folder.path(), &deletion("v2", "Memcached", false)).unwrap();
        let left = files(folder.path());
        same(&left, &one);
        let controller = match multigroup {
            true => "src/controller/cache/memcached.rs",
            false => "src/controller/memcached.rs",
        };
        let path = folder.path().join(controller);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}// Mine.\n")).unwrap();
        let changed = delete_api(folder.path(), &deletion("v1", "Memcached", false)).unwrap_err();
        assert!(
            changed.to_string().contains("has changed since it was created"),
            "{changed}"
        );
        delete_api(folder.path(), &deletion("v1", "Memcached", true)).unwrap();
        let mut left = files(folder.path());
        let sources = left.get_mut(Path::new("src/controller/mod.rs")).unwrap();
        *sources = String::from_utf8(sources.clone())
            .unwrap()
            .replace("// Mine.\n", "")
            .into_bytes();
        // The hash of that file is of what was generated when it was last untouched.
        let mut empty = empty;
        for files in [&mut left, &mut empty] {
            let project = files.get_mut(Path::new("PROJECT")).unwrap();
            let text = String::from_utf8(project.clone()).unwrap();
            let lines = text.lines().filter(|line| !line.contains("src/controller/mod.rs:"));
            *project = lines.collect::<Vec<_>>().join("\n").into_bytes();
        }
        same(&left, &empty);
        assert!(delete_api(folder.path(), &deletion("v1", "Memcached", false)).is_err());
    }
}

/// A stored version is deleted in two steps: another version becomes the stored one, then it is deleted.
#[test]
fn the_storage_version_moves_and_the_old_one_is_deleted() {
    let wanted = |version: &str| StorageVersion {
        group: "cache".into(),
        version: version.into(),
        kind: "Memcached".into(),
    };
    for multigroup in [false, true] {
        let folder = started(&Init {
            multigroup,
            ..options()
        });
        // Another kind has the same versions, and so equal statements.
        for (version, kind) in [
            ("v1alpha1", "Widget"),
            ("v1alpha1", "Memcached"),
            ("v1", "Widget"),
            ("v1", "Memcached"),
            ("v2", "Memcached"),
        ] {
            create_api(folder.path(), &api("cache", version, kind)).unwrap();
        }
        let before = files(folder.path());
        let report = set_storage_version(folder.path(), &wanted("v1")).unwrap();
        assert!(!report.render);
        let again = set_storage_version(folder.path(), &wanted("v1")).unwrap_err();
        assert_eq!(again.to_string(), "v1 is the storage version of Memcached already");
        let crd = read(&folder, "config/crd/bases/cache.example.com_memcacheds.yaml");
        let stored = crd
            .split("storage: true")
            .next()
            .unwrap()
            .rfind("\n    name: ")
            .unwrap();
        assert!(crd[stored..].starts_with("\n    name: v1\n"), "{crd}");
        let packaging = read(&folder, "src/packaging.rs");
        for expected in [
            "let api = api.version(v1alpha1, \"v1\")?;",
            "let api = api.version(v2, \"v1\")?;",
            "let api = api.version(v1, \"v1alpha1\")?;",
        ] {
            assert_eq!(packaging.matches(expected).count(), 1, "{expected} in {packaging}");
        }
        let controller = match multigroup {
            true => "src/controller/cache/memcached.rs",
            false => "src/controller/memcached.rs",
        };
        assert!(read(&folder, controller).contains("::v1::memcached::Memcached;"));
        set_storage_version(folder.path(), &wanted("v1alpha1")).unwrap();
        set_storage_version(folder.path(), &wanted("v1")).unwrap();
        delete_api(folder.path(), &deletion("v1alpha1", "Memcached", false)).unwrap();
        assert!(!read(&folder, "config/crd/bases/cache.example.com_memcacheds.yaml").contains("v1alpha1"));
        delete_api(folder.path(), &deletion("v2", "Memcached", false)).unwrap();
        // The controller is that of v1: unchanged, so it is deleted without --force.
        delete_api(folder.path(), &deletion("v1", "Memcached", false)).unwrap();
        assert!(before.len() > files(folder.path()).len());
    }
}
