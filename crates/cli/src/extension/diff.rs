//! `olmkit extension diff`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::catalog::render::reference::{Options, render_one};
use olmkit::object::UntrustedText;
use olmkit::olmv1::{self, Bundle, Gates, Installed, Policy, Request, Resolution, Source, VersionRange};
use olmkit::validate::olm_v1::{BlockedChange, blocked_changes};
use olmkit_cluster::Cluster;
use olmkit_cluster::v1::ExtensionState;
use serde_json::Value;

use super::PolicyName;
use crate::bundle::source;
use crate::catalog::{images::RegistryImages, resolve};
use crate::cluster_args::Output;
use crate::console::stopped;
use crate::crd;
use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples!["olmkit extension diff cache-operator", "olmkit extension diff cache-operator --version 1.3.0"])]
pub struct Args {
    /// ClusterExtension
    name: String,
    /// Target version or range [default: the highest reachable version]
    #[arg(long, value_name = "RANGE")]
    version: Option<String>,
    /// Channels to choose from [default: those of the ClusterExtension]
    #[arg(long, value_delimiter = ',', value_name = "CHANNEL")]
    channels: Vec<String>,
    /// Upgrade constraint policy [default: as in the ClusterExtension]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    #[command(flatten)]
    form: crd::Form,
    /// Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config, else the pod's account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let version = args.version.as_deref().map(VersionRange::parse).transpose()?;
    let looked = block_on(async {
        let cluster = Cluster::connect(args.kubeconfig.as_deref(), None).await?;
        ExtensionState::read(&cluster, &args.name).await
    })?;
    let seen = match looked {
        Ok(seen) => seen,
        Err(error) => return stopped(error, Output::Text),
    };
    let extension = seen
        .extension
        .as_ref()
        .with_context(|| format!("there is no ClusterExtension {}", args.name))?;
    let (name, installed) = seen.installed().with_context(|| {
        format!(
            "ClusterExtension {} has nothing installed; see olmkit extension status",
            args.name
        )
    })?;
    let sources = sources(&seen, &args.registry)?;
    let resolution = olmv1::resolve(&request(args, extension, &seen, version)?, &sources);
    let mut out = crate::terminal::styled_output();
    let Some(chosen) = resolution.chosen() else {
        return refused(&resolution, sources.len() > 1);
    };
    if chosen.bundle == name {
        writeln!(
            out,
            "{} is already the newest version offered",
            UntrustedText::new(name)
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let line = format!(
        "{name} ({installed}) -> {} ({}) from ClusterCatalog {}",
        chosen.bundle,
        chosen.version.as_deref().unwrap_or_default(),
        chosen.catalog
    );
    writeln!(out, "{}", UntrustedText::new(&line))?;
    for deprecation in &resolution.deprecations {
        writeln!(out, "{}", UntrustedText::new(deprecation))?;
    }
    let new = source::for_olm_v1(&chosen.image, &args.registry)?;
    let old = old_bundle(&seen, &sources, name, &args.registry);
    match &old {
        Ok(old) => {
            for line in olmv1::summary(old, &new)?.to_string().lines() {
                writeln!(out, "{}", UntrustedText::new(line))?;
            }
        }
        Err(error) => {
            let error = crate::error_message(error);
            note!(
                "note: cannot read the installed bundle, so only CRDs are compared: {}",
                UntrustedText::new(&error)
            );
        }
    }
    let refusal = refusal(&new, extension, &seen);
    let changes = blocked(&seen, old.as_ref().ok(), &new)?;
    let ended = crd::print(&changes, args.form, &mut out)?;
    Ok(match refusal {
        Some(text) => {
            eprintln!(
                "OLM v1 rejects {}: {}",
                UntrustedText::new(&chosen.bundle),
                UntrustedText::new(&text)
            );
            ExitCode::FAILURE
        }
        None => ended,
    })
}

/// The catalogs that the ClusterExtension selects, from their images.
fn sources(seen: &ExtensionState, registry: &RegistryFlags) -> anyhow::Result<Vec<Source>> {
    let images = RegistryImages::new(registry);
    let mut sources = Vec::new();
    for catalog in seen.selected() {
        if text(catalog, "/spec/availabilityMode") == "Unavailable" {
            continue;
        }
        let name = text(catalog, "/metadata/name");
        let resolved = text(catalog, "/status/resolvedSource/image/ref");
        let image = if resolved.is_empty() {
            text(catalog, "/spec/source/image/ref")
        } else {
            resolved
        };
        let priority = catalog.pointer("/spec/priority").and_then(Value::as_i64).unwrap_or(0);
        sources.push(Source {
            name: name.to_owned(),
            priority: i32::try_from(priority).unwrap_or(0),
            catalog: render_one(image, &Options::default(), &images)
                .with_context(|| format!("cannot read ClusterCatalog {name} from its image {image}"))?,
        });
    }
    anyhow::ensure!(
        !sources.is_empty(),
        "ClusterExtension {} selects no ClusterCatalog",
        seen.name
    );
    Ok(sources)
}

fn request(
    args: &Args,
    extension: &Value,
    seen: &ExtensionState,
    version: Option<VersionRange>,
) -> anyhow::Result<Request> {
    let channels = extension
        .pointer("/spec/source/catalog/channels")
        .and_then(Value::as_array);
    let channels = channels
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned);
    let is_certified = match args.policy {
        Some(policy) => policy == PolicyName::SelfCertified,
        None => text(extension, "/spec/source/catalog/upgradeConstraintPolicy") == "SelfCertified",
    };
    let installed = seen
        .installed()
        .map(|(name, version)| Installed::new(name, version))
        .transpose()?;
    Ok(Request {
        package: seen.package().to_owned(),
        version,
        channels: if args.channels.is_empty() {
            channels.collect()
        } else {
            args.channels.clone()
        },
        installed,
        policy: if is_certified {
            Policy::SelfCertified
        } else {
            Policy::CatalogProvided
        },
    })
}

fn refused(resolution: &Resolution, several: bool) -> anyhow::Result<ExitCode> {
    resolve::print(resolution, several)?;
    if let Some(refusal) = &resolution.refusal {
        eprintln!("OLM v1 installs nothing: {}", UntrustedText::new(&refusal.to_string()));
    }
    Ok(ExitCode::FAILURE)
}

/// The installed bundle, from the image that OLM v1 names, or from a catalog's image of that name.
fn old_bundle(
    seen: &ExtensionState,
    sources: &[Source],
    name: &str,
    registry: &RegistryFlags,
) -> anyhow::Result<Bundle> {
    let of_catalog = || {
        let mut bundles = sources.iter().flat_map(|source| &source.catalog.bundles);
        bundles
            .find(|bundle| bundle.package == seen.package() && bundle.name == name)
            .map(|bundle| bundle.image.as_str())
    };
    let image = seen
        .installed_image()
        .or_else(of_catalog)
        .context("no catalog has it any more")?;
    source::for_olm_v1(image, registry)
}

/// The reason why OLM v1 rejects the new bundle.
fn refusal(new: &Bundle, extension: &Value, seen: &ExtensionState) -> Option<String> {
    let mut options = olmv1::Options::new(&seen.place.namespace);
    match extension.pointer("/spec/config/inline") {
        Some(config) => options.config = config.clone(),
        None => options.gates = Gates::default(),
    }
    olmv1::render(new, &options).err().map(|error| error.to_string())
}

/// Changes that block the upgrade of the CRDs in the cluster.
fn blocked(seen: &ExtensionState, old: Option<&Bundle>, new: &Bundle) -> anyhow::Result<Vec<BlockedChange>> {
    let live = |name: &str| seen.crds.iter().find(|crd| text(crd, "/metadata/name") == name);
    let before = |name: &str| old?.definitions.iter().find(|object| object.name() == name);
    let mut changes = Vec::new();
    for object in &new.definitions {
        if let Some(live) = live(object.name()) {
            changes.extend(blocked_changes(live, before(object.name()), object, "the cluster")?);
        }
    }
    Ok(changes)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
