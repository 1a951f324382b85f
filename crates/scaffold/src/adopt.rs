//! Adds OLM packaging to an existing project. Its own files do not change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use minijinja::context;
use olmkit::project::{Package, base};
use serde_json::{Value, json};
use syn::punctuated::Punctuated;
use syn::{Item, Lit, Meta, Token, Visibility};

use crate::{Error, Report, Source, Tree, names, project_file, rust_source, templates};

/// The detected kind of project, and the added files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// The files that are new.
    pub report: Report,
    /// The kind of project.
    pub project: Kind,
    /// The next steps.
    pub next: String,
}

/// A kind of project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A crate that uses kube, with the paths of its kinds.
    Rust(Vec<String>),
    /// A project of kubebuilder or operator-sdk, with its layout.
    Kubebuilder(String),
}

/// Includes for `make`.
const MAKEFILE: &str = "olm.mk";

/// Adds OLM packaging to the project in a directory. Image names and the provider use `domain`.
///
/// # Errors
/// When the directory is neither a crate with kinds nor a kubebuilder project, or it already has such files. Then nothing
/// is written.
pub fn adopt(folder: &Path, domain: &str, source: &Source) -> Result<Adopted, Error> {
    let mut tree = Tree::at(folder);
    let (project, next) = match tree.read(project_file::NAME)? {
        Some(text) => kubebuilder(&mut tree, &text)?,
        None => rust(&mut tree, domain, source)?,
    };
    Ok(Adopted {
        report: tree.commit()?,
        project,
        next,
    })
}

/// Writes a file that must not be there.
fn add(tree: &mut Tree, path: &str, text: impl Into<Vec<u8>>) -> Result<(), Error> {
    match tree.has(path)? {
        true => Err(Error::Unsuitable(format!(
            "{path} exists: the project has been adopted already, or uses the name itself; move the file away first"
        ))),
        false => {
            tree.write(path, text);
            Ok(())
        }
    }
}

/// A project of kubebuilder or operator-sdk: a base of the ClusterServiceVersion where there is none, and targets.
fn kubebuilder(tree: &mut Tree, text: &[u8]) -> Result<(Kind, String), Error> {
    let wrong = |error: olmkit_yaml::Error| Error::Project(error.to_string());
    let value = olmkit_yaml::parse(text).map_err(wrong)?.to_json().map_err(wrong)?;
    let known = value.as_object().cloned().unwrap_or_default();
    let layout = project_file::layouts(&known).join(", ");
    if project_file::is_ours(&known) {
        let message = "the project is olmkit's own already; olmkit update brings it up to date";
        return Err(Error::Unsuitable(message.to_owned()));
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let (name, domain) = (text("projectName"), text("domain"));
    names::project(name).map_err(|error| Error::Project(format!("projectName: {error}")))?;
    names::domain(domain).map_err(|error| Error::Project(format!("domain: {error}")))?;
    if !tree.has("config/default/kustomization.yaml")? {
        let message = "config/default/kustomization.yaml is missing: a bundle is made from what kustomize builds of it";
        return Err(Error::Unsuitable(message.to_owned()));
    }
    let image_base = format!("{domain}/{name}");
    add(
        tree,
        MAKEFILE,
        templates::render("adopt/kustomize.mk", context! { name, image_base })?,
    )?;
    let manifests = "config/manifests/kustomization.yaml";
    if !tree.has(manifests)? {
        let file = format!("bases/{name}.clusterserviceversion.yaml");
        let package = Package::parse(&settings(name, domain)?)?;
        let base = olmkit_yaml::to_string(&base(name, &package)?).map_err(wrong)?;
        add(tree, &format!("config/manifests/{file}"), base)?;
        let mut resources = vec![file, "../default".to_owned()];
        for other in ["samples", "scorecard"] {
            if tree.has(format!("config/{other}/kustomization.yaml"))? {
                resources.push(format!("../{other}"));
            }
        }
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": resources,
        });
        tree.write(manifests, olmkit_yaml::to_string(&kustomization).map_err(wrong)?);
    }
    let next = format!("describe the operator in config/manifests/bases/, then: make -f {MAKEFILE} olm-bundle");
    Ok((Kind::Kubebuilder(layout), next))
}

/// The settings without an icon, which people choose.
fn settings(name: &str, domain: &str) -> Result<String, Error> {
    let display_name = names::display(name);
    let namespaced = false;
    let variables = context! { name, domain, display_name, provider => domain, namespaced };
    let text = templates::render("project/package.yaml", variables)?;
    Ok(text
        .lines()
        .filter(|line| !line.starts_with("icon:"))
        .map(|line| format!("{line}\n"))
        .collect())
}

/// A crate: adds a second package, which renders everything from the crate's types.
fn rust(tree: &mut Tree, domain: &str, source: &Source) -> Result<(Kind, String), Error> {
    names::domain(domain)?;
    if !tree.has("Cargo.toml")? {
        return Err(Error::Unsuitable(format!(
            "{} contains neither Cargo.toml nor PROJECT: adopt is for crates that use kube, and projects of kubebuilder or \
             operator-sdk",
            tree.root().display()
        )));
    }
    let text = tree.text("Cargo.toml")?;
    let manifest: toml::Table = text
        .parse()
        .map_err(|error| Error::Unsuitable(format!("Cargo.toml: {error}")))?;
    let name = manifest.get("package").and_then(|package| package.get("name"));
    let Some(name) = name.and_then(toml::Value::as_str) else {
        let message = "Cargo.toml: package.name is missing; run this in the directory of the operator's crate";
        return Err(Error::Unsuitable(message.to_owned()));
    };
    names::project(name).map_err(|error| Error::Unsuitable(format!("Cargo.toml: package.name: {error}")))?;
    let (kube, schemars) = (requirement(&manifest, "kube")?, requirement(&manifest, "schemars")?);
    if !tree.has("src/lib.rs")? {
        let message = "src/lib.rs is missing: move the modules with the kinds from src/main.rs into a library, which other \
                       programs of the crate can use";
        return Err(Error::Unsuitable(message.to_owned()));
    }
    let mut found = LibraryKinds::default();
    found.file(tree, Path::new("src/lib.rs"), &[], 0)?;
    if found.kinds.is_empty() {
        return Err(Error::Unsuitable(match found.hidden.first() {
            Some(hidden) => format!("the kind {hidden} is not public; declare it and its modules pub"),
            None => "found no kind: no public type derives CustomResource in the modules of src/lib.rs".to_owned(),
        }));
    }
    let pair = |(group, plural): &(String, String)| vec![group.clone(), plural.clone()];
    let resources: Vec<Vec<String>> = found.resources.iter().map(pair).collect();
    let variables = context! {
        name,
        domain,
        image_base => format!("{domain}/{name}"),
        source => source.dependency("crates/project"),
        kube => format!("{kube:?}"),
        schemars => format!("{schemars:?}"),
        kinds => found.kinds.clone(),
        resources => resources,
    };
    for (path, template) in [
        (MAKEFILE, "adopt/rust.mk"),
        ("olm/Cargo.toml", "adopt/Cargo.toml"),
        ("olm/src/main.rs", "adopt/main.rs"),
    ] {
        add(tree, path, templates::render(template, variables.clone())?)?;
    }
    add(tree, "olm/.gitignore", "/target\n")?;
    add(tree, "olm/config/package.yaml", settings(name, domain)?)?;
    let next = format!(
        "check grants and manager in olm/src/main.rs, describe the operator in olm/config/package.yaml, then: make -f \
         {MAKEFILE} bundle"
    );
    Ok((Kind::Rust(found.kinds), next))
}

/// The version that a crate asks for.
fn requirement(manifest: &toml::Table, name: &str) -> Result<String, Error> {
    let dependency = manifest.get("dependencies").and_then(|all| all.get(name));
    let version = match dependency {
        Some(toml::Value::String(version)) => Some(version.as_str()),
        Some(table) => table.get("version").and_then(toml::Value::as_str),
        None => None,
    };
    version.map(str::to_owned).ok_or_else(|| {
        Error::Unsuitable(format!(
            "Cargo.toml: dependencies.{name} names no version; the kinds are read with the operator's own {name}"
        ))
    })
}

/// Kinds in the modules of a library.
#[derive(Default)]
struct LibraryKinds {
    /// Paths of types, without the crate.
    kinds: Vec<String>,
    /// Group and plural of each.
    resources: BTreeSet<(String, String)>,
    hidden: Vec<String>,
    /// The files that were read.
    files: BTreeSet<PathBuf>,
}

/// No library has more files.
const MOST_FILES: usize = 5_000;

/// Modules are not nested deeper.
const DEEPEST: usize = 32;

impl LibraryKinds {
    /// Reads a file and the files of its modules.
    fn file(&mut self, tree: &Tree, path: &Path, modules: &[String], depth: usize) -> Result<(), Error> {
        if depth > DEEPEST {
            return Ok(());
        }
        // Links can lead to the same modules again and again.
        if self.files.len() >= MOST_FILES {
            return Err(Error::Unsuitable(format!(
                "src/lib.rs has more than {MOST_FILES} modules"
            )));
        }
        if !self.files.insert(path.to_owned()) {
            return Ok(());
        }
        let text = tree.text(path)?;
        let file = rust_source::parse(path, &text)?;
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder = match stem.as_str() {
            "lib" | "mod" => parent.to_owned(),
            stem => parent.join(stem),
        };
        self.items(tree, &file.items, &folder, modules, depth)
    }

    fn items(
        &mut self,
        tree: &Tree,
        items: &[Item],
        folder: &Path,
        modules: &[String],
        depth: usize,
    ) -> Result<(), Error> {
        for item in items {
            match item {
                Item::Mod(module) if matches!(module.vis, Visibility::Public(_)) => {
                    let name = module.ident.to_string();
                    let inner: Vec<String> = modules.iter().cloned().chain([name.clone()]).collect();
                    if let Some((_, items)) = &module.content {
                        self.items(tree, items, &folder.join(&name), &inner, depth + 1)?;
                        continue;
                    }
                    let places: [PathBuf; 2] = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
                    for place in places {
                        if tree.has(&place)? {
                            self.file(tree, &place, &inner, depth + 1)?;
                            break;
                        }
                    }
                }
                Item::Struct(found) if derives_custom_resource(&found.attrs) => {
                    let (kind, group) = (attribute(&found.attrs, "kind"), attribute(&found.attrs, "group"));
                    // Both are names: they go into a program.
                    let Some(kind) = kind.filter(|kind| syn::parse_str::<syn::Ident>(kind).is_ok()) else {
                        continue;
                    };
                    let path = modules
                        .iter()
                        .cloned()
                        .chain([kind.clone()])
                        .collect::<Vec<_>>()
                        .join("::");
                    match found.vis {
                        Visibility::Public(_) => {
                            self.kinds.push(path);
                            let plural = attribute(&found.attrs, "plural").unwrap_or_else(|| names::plural_of(&kind));
                            let is_name = |name: &str| name.split('.').all(names::is_label);
                            let resource = group.map(|group| (group, plural));
                            self.resources
                                .extend(resource.filter(|(group, plural)| is_name(group) && is_name(plural)));
                        }
                        _ => self.hidden.push(path),
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn derives_custom_resource(attributes: &[syn::Attribute]) -> bool {
    let derives = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"));
    derives
        .filter_map(|derive| {
            derive
                .parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated)
                .ok()
        })
        .flatten()
        .any(|path| path.segments.last().is_some_and(|last| last.ident == "CustomResource"))
}

/// The text of `#[kube(NAME = "…")]`.
fn attribute(attributes: &[syn::Attribute], name: &str) -> Option<String> {
    let of_kube = attributes.iter().filter(|attribute| attribute.path().is_ident("kube"));
    of_kube
        .filter_map(|kube| {
            kube.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .ok()
        })
        .flatten()
        .find_map(|meta| match meta {
            Meta::NameValue(pair) if pair.path.is_ident(name) => match pair.value {
                syn::Expr::Lit(literal) => match literal.lit {
                    Lit::Str(text) => Some(text.value()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
}
