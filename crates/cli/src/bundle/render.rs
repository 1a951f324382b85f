//! `olmkit bundle render`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use olmkit::bundle::install::CertificateProvider;
use olmkit::limits;
use olmkit::object::SetAt as _;
use olmkit::olmv1::{self, Bundle, Options, RenderError};
use serde_json::Value;

use super::source;
use crate::registry_flags::RegistryFlags;

/// Render the objects that OLM v1 applies for a bundle
///
/// Prints the objects of operator-controller 1.11 in its order, for kubectl, Argo CD or Flux. --watch-namespace and --config
/// need its experimental features.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit bundle render --olmv1 bundle --install-namespace cache", "olmkit bundle render --olmv1 bundle --install-namespace cache --watch-namespace shop"])]
pub struct Args {
    /// Render as OLM v1 does.
    #[arg(long, required = true)]
    olmv1: bool,
    #[command(flatten)]
    how: How,
    /// Name of the owning ClusterExtension, for the objects' labels.
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

/// Render options.
#[derive(clap::Args)]
pub struct How {
    /// A bundle: directory or image (REFERENCE, store:…, oci:…, oci-archive:…, docker-archive:…).
    pub bundle: String,
    /// Namespace for the operator.
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub install_namespace: String,
    /// The only namespace to watch [default: all].
    #[arg(long, value_name = "NAMESPACE")]
    watch_namespace: Option<String>,
    /// Configuration of the ClusterExtension (`spec.config.inline`), as YAML or JSON.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Provider of webhook certificates. OLM v1 rejects webhooks if it is none, but they are rendered.
    #[arg(long, value_enum, default_value_t = Provider::CertManager)]
    cert_provider: Provider,
    #[command(flatten)]
    registry: RegistryFlags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Provider {
    CertManager,
    ServiceCa,
    None,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (_, mut objects) = args.how.render()?;
    if let Some(owner) = &args.owner {
        for object in &mut objects {
            for (key, value) in [("owner-kind", "ClusterExtension"), ("owner-name", owner)] {
                let key = format!("olm.operatorframework.io/{key}");
                object.set_at(&["metadata", "labels", &key], value.into());
            }
        }
    }
    print(&objects)
}

/// Prints objects as YAML documents.
pub fn print(objects: &[Value]) -> anyhow::Result<ExitCode> {
    let mut out = crate::terminal::document();
    for (at, object) in objects.iter().enumerate() {
        let separator = if at > 0 { "---\n" } else { "" };
        write!(out, "{separator}{}", olmkit::yaml::to_string(object)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl How {
    /// The bundle, and its objects.
    pub fn render(&self) -> anyhow::Result<(Bundle, Vec<Value>)> {
        let bundle = source::for_olm_v1(&self.bundle, &self.registry)?;
        let mut options = Options::new(&self.install_namespace);
        options.config = config(self)?;
        options.certificates = match self.cert_provider {
            Provider::CertManager => Some(CertificateProvider::CertManager),
            Provider::ServiceCa => Some(CertificateProvider::ServiceCa),
            Provider::None => None,
        };
        let rendered = match olmv1::render(&bundle, &options) {
            Err(RenderError::NoCertificates) => {
                note!("note: without a certificate provider OLM v1 rejects this bundle; mount certificates yourself");
                olmv1::objects(&bundle, &options)
            }
            rendered => rendered,
        };
        let objects = match rendered {
            Ok(objects) => objects,
            Err(error) => bail!("OLM v1 rejects {}: {error}", self.bundle),
        };
        if options.config.is_object() {
            note!("note: OLM v1 reads spec.config only with its experimental manifests");
        }
        Ok((bundle, objects))
    }
}

/// The configuration of the flags: the file, and the namespace to watch.
fn config(args: &How) -> anyhow::Result<Value> {
    let mut config = Value::Null;
    if let Some(path) = &args.config {
        let bytes = limits::read_file(path, &limits::BUNDLE_BYTES)
            .with_context(|| format!("cannot read {}", path.display()))?;
        config = olmkit::yaml::parse(&bytes)
            .and_then(|node| node.to_json())
            .with_context(|| format!("{} is not YAML", path.display()))?;
    }
    if let Some(namespace) = &args.watch_namespace {
        config.set_at(&["watchNamespace"], namespace.as_str().into());
    }
    Ok(config)
}
