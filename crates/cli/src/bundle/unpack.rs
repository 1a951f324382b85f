//! `olmkit bundle unpack`

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use olmkit::bundle::unpack::{Target, unpack};
use olmkit::bundle::{Bundle, load, write};
use olmkit::files::Stage;
use olmkit::object::{PathPart, shell_word};
use serde_json::Value;

use crate::registry_flags::RegistryFlags;

/// Convert a bundle to plain manifests for kubectl
///
/// Prints the manifests, or writes one file per object with --output-dir. If the bundle has webhooks, the cluster needs
/// cert-manager.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit bundle unpack bundle | kubectl apply -f -", "olmkit bundle unpack quay.io/example/cache-operator-bundle:v1 -n cache --output-dir manifests"])]
pub struct Args {
    /// A bundle: directory or image (REFERENCE, store:…, oci:…, oci-archive:…, docker-archive:…).
    bundle: String,
    /// Write files into this directory instead of printing.
    #[arg(short, long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Namespace for the operator [default: the one the bundle suggests, else <package>-system].
    #[arg(short, long)]
    namespace: Option<String>,
    /// Namespaces to watch, comma-separated [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// Omit the Namespace object.
    #[arg(long)]
    no_namespace: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Keeps the pulled files until the manifests are written.
    let folder = olmkit::temporary::Directory::new("bundle")?;
    let bundle = load(&super::source::directory(&args.bundle, folder.path(), &args.registry)?)?;
    let manifests = manifests(args, &bundle)?;
    for note in notes(&bundle, &manifests) {
        note!("note: {note}");
    }
    match &args.output_dir {
        Some(output) => write_files(output, &manifests)?,
        None => {
            let mut out = crate::terminal::document();
            for (at, manifest) in manifests.iter().enumerate() {
                let separator = if at > 0 { "---\n" } else { "" };
                write!(out, "{separator}{}", olmkit::yaml::to_string(manifest)?)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn manifests(args: &Args, bundle: &Bundle) -> anyhow::Result<Vec<Value>> {
    let Some(csv) = bundle.csv() else {
        bail!("{} has no ClusterServiceVersion", args.bundle)
    };
    let suggested = csv
        .value
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get("operatorframework.io/suggested-namespace"))
        .and_then(Value::as_str);
    let namespace = args
        .namespace
        .clone()
        .or_else(|| suggested.map(str::to_owned))
        .unwrap_or_else(|| format!("{}-system", bundle.package()));
    let target = Target {
        namespace,
        watched: args.watch_namespaces.clone(),
        create_namespace: !args.no_namespace,
    };
    let others: Vec<Value> = bundle
        .objects
        .iter()
        .filter(|object| object.kind() != "ClusterServiceVersion" && !object.value.is_null())
        .map(|object| Value::clone(&object.value))
        .collect();
    Ok(unpack(&csv.value, &others, &target)?)
}

/// Prerequisites of the cluster, and OLM features that manifests cannot reproduce.
fn notes(bundle: &Bundle, manifests: &[Value]) -> Vec<String> {
    let text = |value: &Value, pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let mut notes = Vec::new();
    if manifests
        .iter()
        .any(|manifest| text(manifest, "/apiVersion").starts_with("cert-manager.io/"))
    {
        notes.push(
            "the webhooks' certificates come from cert-manager: install it first (https://cert-manager.io)".into(),
        );
    }
    let csv = bundle.csv();
    let served = csv.and_then(|csv| csv.value.pointer("/spec/apiservicedefinitions/owned"));
    for api in served.and_then(Value::as_array).into_iter().flatten() {
        notes.push(format!(
            "the API {}/{} is omitted: OLM registers it with an APIService and a certificate; write both for this cluster",
            text(api, "/group"),
            text(api, "/version")
        ));
    }
    notes
}

/// One file for each object. The number in front preserves the order for `kubectl apply -f DIR`.
fn write_files(output: &Path, manifests: &[Value]) -> anyhow::Result<()> {
    let width = manifests.len().to_string().len();
    // A new directory appears with all its files at the same time. Files in an existing directory are kept.
    let stage = (!output.exists()).then(|| Stage::beside(output)).transpose()?;
    for (at, manifest) in manifests.iter().enumerate() {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/name").replace(['/', ':'], "-");
        let file = format!("{:0width$}_{}_{name}.yaml", at + 1, text("/kind").to_lowercase());
        let file = PathPart::new(file)?;
        let text = olmkit::yaml::to_string(manifest)?;
        match &stage {
            Some(stage) => drop(stage.write(file.as_ref(), text.as_bytes())?),
            None => write::file(&output.join(file), text.as_bytes())?,
        }
    }
    if let Some(stage) = stage {
        stage.take_place(&[])?;
    }
    note!(
        "{} manifests in {}; install them with kubectl apply -f {}",
        manifests.len(),
        output.display(),
        shell_word(&output.display().to_string())
    );
    Ok(())
}
