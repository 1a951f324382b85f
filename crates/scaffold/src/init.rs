//! A new project.

use std::fs;
use std::path::Path;

use minijinja::context;

use crate::project_file::{self, ProjectFile};
use crate::{Error, Report, Source, Tree, config, names, record, templates};

/// The settings of a new project.
#[derive(Debug, Clone)]
pub struct Init {
    /// Domain of the API groups, such as `example.com`.
    pub domain: String,
    /// Name of the project. Defaults to the name of the directory.
    pub name: Option<String>,
    /// Under which license.
    pub license: License,
    /// True if the operator watches only the namespace that it runs in.
    pub namespaced: bool,
    /// True if each group has a directory.
    pub multigroup: bool,
    /// Where olmkit's libraries come from.
    pub source: Source,
}

/// The license of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum License {
    /// Apache License, version 2.0.
    #[default]
    Apache2,
    /// To be decided by the author.
    None,
}

/// Files of a project: where, and from which template.
const FILES: &[(&str, &str)] = &[
    (".cargo/config.toml", "project/cargo-config.toml"),
    (".dockerignore", "project/dockerignore"),
    (".github/workflows/test.yml", "project/workflow.yml"),
    (".gitignore", "project/gitignore"),
    ("Cargo.toml", "project/Cargo.toml"),
    ("Dockerfile", "project/Dockerfile"),
    ("Makefile", "project/Makefile"),
    ("README.md", "project/README.md"),
    ("config/icon.svg", "project/icon.svg"),
    ("config/package.yaml", "project/package.yaml"),
    ("rustfmt.toml", "project/rustfmt.toml"),
    ("src/api/mod.rs", "project/api_mod.rs"),
    ("src/bin/manifests.rs", "project/bin_manifests.rs"),
    ("src/controller/mod.rs", "project/controller_mod.rs"),
    ("src/lib.rs", "project/lib.rs"),
    ("src/main.rs", "project/main.rs"),
    ("src/packaging.rs", "project/packaging.rs"),
    ("src/webhook/mod.rs", "project/webhook_mod.rs"),
    ("tests/cluster.rs", "project/cluster_test.rs"),
];

/// Writes a project into an empty directory or a fresh clone. Existing files do not change.
///
/// # Errors
/// When a name is not acceptable, the directory contains a file that a fresh clone does not have, or a file cannot be written.
/// Nothing is written then.
pub fn init(folder: &Path, options: &Init) -> Result<Report, Error> {
    is_fresh(folder)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => folder_name(folder)?,
    };
    names::project(&name)?;
    names::domain(&options.domain)?;
    let file = ProjectFile::new(&options.domain, &name, options.multigroup, options.namespaced);
    let mut tree = Tree::at(folder);
    sources(&mut tree, &file, options)?;
    let kept = tree.keep_existing()?;
    record::finish(&mut tree, None, file)?;
    let report = tree.commit()?;
    Ok(Report { kept, ..report })
}

/// Adds the files of a project to a tree, except for `config/` and PROJECT.
pub(crate) fn sources(tree: &mut Tree, file: &ProjectFile, options: &Init) -> Result<(), Error> {
    let license = match options.license {
        License::Apache2 => "apache2",
        License::None => "none",
    };
    let variables = context! {
        name => file.name(),
        crate_name => file.name().replace('-', "_"),
        display_name => names::display(file.name()),
        domain => file.domain(),
        provider => file.domain(),
        image_base => config::image_base(file),
        namespaced => file.namespaced(),
        multigroup => file.multigroup(),
        license,
        sources => context! {
            project => options.source.dependency("crates/project"),
            manager => options.source.dependency("crates/manager"),
        },
    };
    for (path, template) in FILES {
        tree.write(*path, templates::render(template, variables.clone())?);
    }
    if options.license == License::Apache2 {
        tree.write("LICENSE", include_str!("../templates/LICENSE-APACHE"));
    }
    Ok(())
}

/// Accepts the files that `operator-sdk init` accepts too: hidden ones, Markdown, and those with names in capitals, such as
/// LICENSE and CODEOWNERS.
fn is_fresh(folder: &Path) -> Result<(), Error> {
    let reading = |source| Error::Io {
        action: "read",
        path: folder.to_owned(),
        source,
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(reading)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(reading)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    match names.into_iter().find(|name| !belongs_to_clone(name)) {
        None => Ok(()),
        Some(entry) => Err(Error::NotEmpty {
            directory: folder.to_owned(),
            entry,
        }),
    }
}

/// Returns true if a fresh clone of a repository may have a file or directory of this name.
fn belongs_to_clone(name: &str) -> bool {
    // LICENSE, LICENSE-MIT, LICENSE.txt
    let stem = name.split(['.', '-', '_']).next().unwrap_or_default();
    let capitals = !stem.is_empty() && stem.chars().all(|letter| letter.is_ascii_uppercase());
    name.starts_with('.') || name.ends_with(".md") || (capitals && stem != project_file::NAME)
}

fn folder_name(folder: &Path) -> Result<String, Error> {
    let full = std::path::absolute(folder).map_err(|source| Error::Io {
        action: "read",
        path: folder.to_owned(),
        source,
    })?;
    let name = full.file_name().map(|name| name.to_string_lossy().to_lowercase());
    name.ok_or_else(|| Error::Usage("this directory has no name; pass --project-name".to_owned()))
}
