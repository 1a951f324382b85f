//! Flags that every kind of built image takes.

use std::path::PathBuf;

use olmkit_oci::Reference;
use olmkit_oci::build::{Recipe, timestamp};
use olmkit_oci::layer::Content;
use olmkit_oci::layer::LayerBuilder;
use olmkit_oci::sbom::spdx;
use olmkit_oci::spec::{MediaTypes, Platform};

use super::output::Output;

#[derive(clap::Args)]
pub struct BuildFlags {
    /// The image's name
    #[arg(short, long, value_name = "REFERENCE")]
    pub tag: Reference,
    /// Destination: store, push, oci:DIRECTORY, oci-archive:FILE or docker-archive:FILE. Repeatable
    #[arg(short, long, value_name = "PLACE", default_value = "store")]
    pub output: Vec<Output>,
    /// Platforms, such as linux/amd64,linux/arm64. Several make an index [default: linux on this machine's architecture]
    #[arg(long, value_delimiter = ',', value_name = "OS/ARCH")]
    pub platform: Vec<Platform>,
    /// Add or replace a label
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    label: Vec<(String, String)>,
    /// Add or replace an annotation of the manifest
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    annotation: Vec<(String, String)>,
    /// Source URL for the annotation org.opencontainers.image.source
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Source revision for the annotation org.opencontainers.image.revision
    #[arg(long, value_name = "COMMIT")]
    revision: Option<String>,
    /// Add an SPDX bill of materials for this Cargo.lock package below /usr/share/sbom
    #[arg(long, value_name = "CARGO-LOCK:PACKAGE")]
    sbom: Option<String>,
    /// Use Docker media types, which do not support annotations, instead of OCI
    #[arg(long, conflicts_with_all = ["annotation", "source", "revision"])]
    docker: bool,
}

impl BuildFlags {
    /// The family of media types.
    pub fn media_types(&self) -> MediaTypes {
        if self.docker {
            MediaTypes::Docker
        } else {
            MediaTypes::Oci
        }
    }

    /// The platforms to build for. This machine's if none is named.
    pub fn platforms(&self) -> Vec<Platform> {
        if self.platform.is_empty() {
            vec![Platform::host()]
        } else {
            self.platform.clone()
        }
    }

    /// Annotations of manifests and index.
    pub fn annotations(&self, time: u64) -> anyhow::Result<Vec<(String, String)>> {
        let key = |name: &str| format!("org.opencontainers.image.{name}");
        let mut annotations = vec![(key("created"), timestamp(time)?)];
        annotations.extend(self.source.iter().map(|source| (key("source"), source.clone())));
        annotations.extend(self.revision.iter().map(|revision| (key("revision"), revision.clone())));
        annotations.extend(self.annotation.iter().cloned());
        Ok(annotations)
    }

    /// Lays the flags over a recipe.
    pub fn apply(&self, recipe: &mut Recipe) -> anyhow::Result<()> {
        recipe.media_types = self.media_types();
        recipe.config.labels.extend(self.label.iter().cloned());
        recipe.annotations.extend(self.annotations(recipe.time)?);
        if let Some(sbom) = &self.sbom {
            let (lock, package) = sbom.rsplit_once(':').unwrap_or(("Cargo.lock", sbom));
            let document = spdx(&PathBuf::from(lock), package, recipe.time)?;
            let mut layer = LayerBuilder::new();
            layer.file(
                &format!("/usr/share/sbom/{package}.spdx.json"),
                Content::Bytes(document),
                false,
            )?;
            recipe.layers.push(("olmkit image build --sbom".to_owned(), layer));
        }
        Ok(())
    }
}

pub fn key_value(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("{text:?} is not KEY=VALUE"))
}
