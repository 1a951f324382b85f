//! `olmkit generate kustomize manifests`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use olmkit::bundle::generate::{self, ProjectFile};
use olmkit::bundle::write;
use olmkit::limits;
use olmkit::object::{GroupVersionKind, PathPart, SetAt as _, dns1123_label_problems};
use olmkit::project::{self, Package};
use serde_json::Value;

use super::answers::{self, Flags};
use super::owned;

/// Generate the base ClusterServiceVersion for a bundle
///
/// Writes `<dir>/bases/<package>.clusterserviceversion.yaml`, and `<dir>/kustomization.yaml` if there is none.
///
/// In a Go project, the kinds that PROJECT lists are described from their Go types: documentation, and the resources, spec and
/// status descriptors of +operator-sdk:csv markers. Without a directory of Go types, their CRDs in crd/bases describe them.
///
/// Prompts for the operator's name, description and so on if there is no base yet, or always with --interactive. Values
/// from flags or config/package.yaml are not prompted for. Without a terminal there are no prompts.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit generate kustomize manifests --package cache-operator"])]
pub struct Args {
    /// Package name [default: that of the PROJECT file].
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Directory with existing kustomize files.
    #[arg(long, value_name = "DIR", default_value = "config/manifests")]
    input_dir: PathBuf,
    /// Directory to write kustomize files to.
    #[arg(long, value_name = "DIR", default_value = "config/manifests")]
    output_dir: PathBuf,
    /// Directory with the Go types of the operator. Their +operator-sdk:csv markers become descriptors.
    #[arg(long, value_name = "DIR", default_value = "api")]
    apis_dir: PathBuf,
    /// Always prompt (true) or never prompt (false).
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    interactive: Option<bool>,
    /// Settings file. Used when it exists.
    #[arg(long, value_name = "FILE", default_value = "config/package.yaml")]
    settings: PathBuf,
    #[command(flatten)]
    flags: Flags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let found = ProjectFile::read(Path::new("."))?;
    let has_project = found.is_some();
    let project = found.unwrap_or_default();
    let is_go = project.layout.split(',').any(|plugin| plugin.starts_with("go"));
    let package = match args
        .package
        .clone()
        .or(Some(project.name))
        .filter(|name| !name.is_empty())
    {
        Some(package) => package,
        None if has_project => directory_name()?,
        None => bail!("no PROJECT file with a projectName here; set the package with --package"),
    };
    let name = format!("{package}.clusterserviceversion.yaml");
    PathPart::new(name.as_str()).with_context(|| format!("package {package:?}"))?;
    let present = args.input_dir.join("bases").join(&name);
    let mut base = base(args, &package, &present)?;
    let kinds: Vec<_> = project
        .resources
        .into_iter()
        .map(|(group, version, kind)| GroupVersionKind::new(group, version, kind))
        .collect();
    if is_go && args.apis_dir.is_dir() {
        owned::describe_types(&mut base, &args.apis_dir, &kinds)?;
    } else if is_go {
        // The directory of a fresh base does not exist yet, so `..` leads nowhere.
        let config = args.input_dir.parent().unwrap_or(Path::new(""));
        owned::describe_definitions(&mut base, &config.join("crd/bases"), &kinds)?;
    }
    let text = olmkit::yaml::to_string(&generate::base_form(&base))?;
    write::file(&args.output_dir.join("bases").join(&name), text.as_bytes())?;
    let kustomization = args.output_dir.join("kustomization.yaml");
    if !kustomization.exists() {
        write::file(&kustomization, kustomization_text(&name).as_bytes())?;
    }
    note!("Kustomize files written to {}", args.output_dir.display());
    Ok(ExitCode::SUCCESS)
}

/// The package of a PROJECT file without a projectName, as in layouts before version 3: the directory's name.
fn directory_name() -> anyhow::Result<String> {
    let directory = std::env::current_dir().context("cannot read the current directory")?;
    let name = directory
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    if dns1123_label_problems(&name).is_empty() {
        return Ok(name);
    }
    bail!(
        "the PROJECT file has no projectName, and the directory's name {name:?} is not a DNS label; set the package with --package"
    )
}

/// The base to write: the present one with new answers, or a new one.
fn base(args: &Args, package: &str, present: &Path) -> anyhow::Result<Value> {
    let exists = present.exists();
    let ask = answers::terminal()
        && args
            .interactive
            .unwrap_or(!exists && !args.flags.any() && !args.settings.exists());
    if args.interactive == Some(true) && !answers::terminal() {
        eprintln!(
            "warning: no terminal for prompts; using flags and {}",
            args.settings.display()
        );
    }
    let mut base = if exists {
        read(present, package)?
    } else {
        generate::bare_base(package)
    };
    let mut settings = if args.settings.exists() {
        Package::load(&args.settings)?
    } else {
        Package::parse("displayName: ''\ndescription: ''\n")?
    };
    if ask {
        answers::ask(&settings, std::io::stdin().lock())?.apply(&mut settings)?;
    }
    args.flags.apply(&mut settings)?;
    if ask || args.flags.any() || args.settings.exists() {
        overlay(&mut base, &project::base(package, &settings)?);
    }
    Ok(base)
}

fn read(path: &Path, package: &str) -> anyhow::Result<Value> {
    let bytes =
        limits::read_file(path, &limits::GENERATE_INPUT).with_context(|| format!("cannot read {}", path.display()))?;
    for node in olmkit::yaml::documents(&bytes) {
        let mut value = node
            .and_then(|node| node.to_json())
            .with_context(|| path.display().to_string())?;
        if value.get("kind").and_then(Value::as_str) != Some("ClusterServiceVersion") {
            continue;
        }
        // Very old bases have this literal name, which is not valid.
        let name = value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if name == format!("{package}.vX.Y.Z") {
            let version = value
                .pointer("/spec/version")
                .and_then(Value::as_str)
                .unwrap_or("0.0.0")
                .to_owned();
            value.set_at(&["metadata", "name"], format!("{package}.v{version}").into());
        }
        return Ok(value);
    }
    bail!("{} has no ClusterServiceVersion", path.display())
}

/// Fields of the answers replace those of the base. Empty answers do not.
fn overlay(base: &mut Value, answers: &Value) {
    let fields = [
        "displayName",
        "description",
        "icon",
        "provider",
        "maintainers",
        "keywords",
        "links",
        "minKubeVersion",
        "replaces",
        "skips",
    ];
    for field in fields {
        let Some(value) = answers.pointer(&format!("/spec/{field}")) else {
            continue;
        };
        if value.as_str() != Some("") {
            base.set_at(&["spec", field], value.clone());
        }
    }
    for (key, value) in answers
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if key != "alm-examples" {
            base.set_at(&["metadata", "annotations", key], value.clone());
        }
    }
}

fn kustomization_text(base: &str) -> String {
    format!(
        "# What a bundle is made of: `kustomize build config/manifests | olmkit generate bundle`.\nresources:\n- \
         bases/{base}\n- ../default\n- ../samples\n- ../scorecard\n"
    )
}
