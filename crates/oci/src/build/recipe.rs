//! From a recipe to blobs.

use std::collections::BTreeMap;

use crate::archive::check_layer_count;
use crate::error::Error;
use crate::layer::LayerBuilder;
use crate::layout::{Image, Layout};
use crate::spec::{
    Descriptor, History, ImageConfig, Index, Manifest, MediaTypes, Platform, RootFs, RunConfig, media_type,
};

/// The content and settings of an image to build.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The platform of the image.
    pub platform: Platform,
    /// Family of media types.
    pub media_types: MediaTypes,
    /// Layers, lowest first. Each with its line in the image's history.
    pub layers: Vec<(String, LayerBuilder)>,
    /// Run configuration. On top of a base image, only what is set here replaces the base's settings.
    pub config: RunConfig,
    /// Annotations of the manifest (OCI only; Docker's format has none).
    pub annotations: BTreeMap<String, String>,
    /// Time of the image and of every entry, in seconds since 1970.
    pub time: u64,
    /// The image to build upon.
    pub base: Option<Base>,
}

/// A base image, read from a layout.
#[derive(Debug, Clone)]
pub struct Base {
    /// Where its blobs are.
    pub layout: Layout,
    /// The image for the recipe's platform.
    pub image: Image,
    /// How it was named. Recorded in the annotations.
    pub name: String,
}

impl Recipe {
    /// An image with nothing in it.
    pub fn new(platform: Platform, time: u64) -> Self {
        Self {
            platform,
            media_types: MediaTypes::default(),
            layers: Vec::new(),
            config: RunConfig::default(),
            annotations: BTreeMap::new(),
            time,
            base: None,
        }
    }

    /// Writes layers, configuration and manifest. Returns the manifest's descriptor with its platform set.
    pub fn build(&self, layout: &Layout) -> Result<Descriptor, Error> {
        let (mut config, mut layers) = self.foundation(layout)?;
        for (step, layer) in self.layers.iter().filter(|(_, layer)| !layer.is_empty()) {
            let mut blob = layout.blob_writer()?;
            let written = layer.write(&mut blob, self.time)?;
            layout.store(blob)?;
            layers.push(Descriptor::new(self.media_types.layer(), written.digest, written.size));
            config.rootfs.diff_ids.push(written.diff_id);
            config.history.push(History {
                created: config.created.clone(),
                created_by: Some(step.clone()),
                ..History::default()
            });
        }
        let bytes = serde_json::to_vec(&config).map_err(Error::document("image configuration"))?;
        let manifest = Manifest {
            schema_version: 2,
            media_type: Some(self.media_types.manifest().to_owned()),
            artifact_type: None,
            config: layout.write_blob(self.media_types.config(), &bytes)?,
            layers,
            subject: None,
            annotations: self.manifest_annotations(),
        };
        let bytes = serde_json::to_vec(&manifest).map_err(Error::document("image manifest"))?;
        let mut descriptor = layout.write_blob(self.media_types.manifest(), &bytes)?;
        descriptor.platform = Some(self.platform.clone());
        Ok(descriptor)
    }

    /// Configuration and layers to start from: those of the base image, or none.
    fn foundation(&self, layout: &Layout) -> Result<(ImageConfig, Vec<Descriptor>), Error> {
        let created = Some(timestamp(self.time)?);
        let Some(base) = &self.base else {
            let config = ImageConfig {
                created,
                author: None,
                architecture: self.platform.architecture.clone(),
                os: self.platform.os.clone(),
                variant: self.platform.variant.clone(),
                config: self.config.clone(),
                rootfs: RootFs::default(),
                history: Vec::new(),
                other: serde_json::Map::new(),
            };
            return Ok((config, Vec::new()));
        };
        let what = || format!("base image {}", base.name);
        check_layer_count(what, base.image.manifest.layers.len(), &base.image.config)?;
        let mut layers = Vec::new();
        for layer in &base.image.manifest.layers {
            let kind = self.family_layer(&layer.media_type)?.to_owned();
            if layer.foreign_url().is_none() {
                layout.adopt(&base.layout.blob_path(&layer.digest), &layer.digest)?;
            }
            // Addresses of nondistributable layers stay.
            layers.push(Descriptor {
                media_type: kind,
                ..layer.clone()
            });
        }
        let mut config = base.image.config.clone();
        config.created = created;
        merge(&mut config.config, &self.config);
        Ok((config, layers))
    }

    /// The media type of a base layer in this recipe's family: the two families differ in names only.
    fn family_layer(&self, media_type: &str) -> Result<&'static str, Error> {
        let families = [
            (media_type::OCI_LAYER_GZIP, media_type::DOCKER_LAYER_GZIP),
            (media_type::OCI_LAYER, media_type::DOCKER_LAYER),
            (media_type::OCI_LAYER_ZSTD, media_type::DOCKER_LAYER_ZSTD),
            (media_type::OCI_FOREIGN_GZIP, media_type::DOCKER_FOREIGN_GZIP),
            (media_type::OCI_FOREIGN, media_type::DOCKER_FOREIGN),
        ];
        let found = families
            .into_iter()
            .find(|(oci, docker)| [*oci, *docker].contains(&media_type));
        match (self.media_types, found) {
            (MediaTypes::Oci, Some((oci, _))) => Ok(oci),
            (MediaTypes::Docker, Some((_, docker))) => Ok(docker),
            (MediaTypes::Oci, None) if media_type == media_type::OCI_FOREIGN_ZSTD => Ok(media_type::OCI_FOREIGN_ZSTD),
            _ => Err(Error::Refused {
                what: "base image".to_owned(),
                reason: format!("a layer of media type {media_type:?} has no counterpart in the media types asked for"),
            }),
        }
    }

    fn manifest_annotations(&self) -> BTreeMap<String, String> {
        if self.media_types == MediaTypes::Docker {
            return BTreeMap::new();
        }
        let mut annotations = self.annotations.clone();
        if let Some(base) = &self.base {
            let set = |annotations: &mut BTreeMap<String, String>, key: &str, value: String| {
                annotations
                    .entry(format!("org.opencontainers.image.base.{key}"))
                    .or_insert(value);
            };
            set(&mut annotations, "name", base.name.clone());
            set(&mut annotations, "digest", base.image.descriptor.digest.to_string());
        }
        annotations
    }
}

/// Lays settings over those of a base image: what is set wins, lists of the environment and labels are merged.
fn merge(base: &mut RunConfig, over: &RunConfig) {
    if !over.entrypoint.is_empty() {
        // As with a Dockerfile: a new entry point makes the base's arguments meaningless.
        base.entrypoint = over.entrypoint.clone();
        base.cmd = Vec::new();
    }
    if !over.cmd.is_empty() {
        base.cmd = over.cmd.clone();
    }
    if !over.user.is_empty() {
        base.user = over.user.clone();
    }
    if !over.working_dir.is_empty() {
        base.working_dir = over.working_dir.clone();
    }
    for setting in &over.env {
        let name = setting.split('=').next().unwrap_or_default();
        base.env.retain(|old| old.split('=').next() != Some(name));
        base.env.push(setting.clone());
    }
    base.labels.extend(over.labels.clone());
    base.exposed_ports.extend(over.exposed_ports.clone());
}

/// Writes an index over images for several platforms.
pub fn build_index(
    layout: &Layout,
    media_types: MediaTypes,
    mut manifests: Vec<Descriptor>,
    annotations: BTreeMap<String, String>,
) -> Result<Descriptor, Error> {
    manifests.sort_by(|one, two| one.platform.cmp(&two.platform));
    let index = Index {
        schema_version: 2,
        media_type: Some(media_types.index().to_owned()),
        manifests,
        annotations: if media_types == MediaTypes::Oci {
            annotations
        } else {
            BTreeMap::new()
        },
    };
    layout.write_blob(
        media_types.index(),
        &serde_json::to_vec(&index).map_err(Error::document("image index"))?,
    )
}

/// The time that images and their entries get: the value of `SOURCE_DATE_EPOCH`
/// (<https://reproducible-builds.org/specs/source-date-epoch/>), 0 without it.
pub fn source_date_epoch(value: Option<&str>) -> Result<u64, Error> {
    value.map_or(Ok(0), |value| {
        value.trim().parse().map_err(|_| {
            Error::Input(format!(
                "SOURCE_DATE_EPOCH={value:?} is not a number of seconds since 1970-01-01"
            ))
        })
    })
}

/// RFC 3339 spelling of a time in seconds since 1970.
pub fn timestamp(seconds: u64) -> Result<String, Error> {
    i64::try_from(seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map(|time| time.to_string())
        .ok_or_else(|| Error::Input(format!("SOURCE_DATE_EPOCH={seconds} is beyond the year 9999")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Content;

    fn recipe(path: &str) -> Recipe {
        let mut recipe = Recipe::new("linux/amd64".parse().unwrap(), 0);
        let mut layer = LayerBuilder::new();
        layer.file(path, Content::Bytes(b"content".to_vec()), false).unwrap();
        recipe.layers.push(("add a file".to_owned(), layer));
        recipe
    }

    #[test]
    fn the_same_recipe_gives_the_same_digest() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let digests = folders.map(|folder| {
            recipe("/a")
                .build(&Layout::create(folder.path()).unwrap())
                .unwrap()
                .digest
        });
        assert_eq!(digests[0], digests[1]);
    }

    #[test]
    fn a_base_keeps_its_layers_and_lends_its_settings() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("base")).unwrap();
        let mut base = recipe("/base");
        base.config.user = "7".to_owned();
        base.config.cmd = vec!["old".to_owned()];
        base.config.env = vec!["PATH=/bin".to_owned(), "A=1".to_owned()];
        let descriptor = base.build(&layout).unwrap();
        let image = layout.image(&descriptor, &base.platform).unwrap();

        let mut top = recipe("/top");
        top.media_types = MediaTypes::Docker;
        top.config.entrypoint = vec!["/top".to_owned()];
        top.config.env = vec!["A=2".to_owned()];
        top.base = Some(Base {
            layout: layout.clone(),
            image: image.clone(),
            name: "r.io/base:v1".to_owned(),
        });
        let result = Layout::create(&folder.path().join("top")).unwrap();
        let built = top.build(&result).unwrap();
        let built = result.image(&built, &top.platform).unwrap();
        assert_eq!(built.manifest.layers.len(), 2);
        assert_eq!(built.manifest.layers[0].digest, image.manifest.layers[0].digest);
        assert!(
            built
                .manifest
                .layers
                .iter()
                .all(|layer| layer.media_type == media_type::DOCKER_LAYER_GZIP)
        );
        assert!(result.has_blob(&image.manifest.layers[0].digest));
        assert_eq!(built.config.config.user, "7");
        assert_eq!(built.config.config.env, ["PATH=/bin", "A=2"]);
        assert!(built.config.config.cmd.is_empty());
        assert_eq!(built.config.rootfs.diff_ids.len(), 2);
    }

    #[test]
    fn fields_of_the_base_that_are_not_set_stay() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("base")).unwrap();
        let mut base = recipe("/base");
        let fields = serde_json::json!({"Volumes": {"/data": {}}, "StopSignal": "SIGINT", "StopTimeout": 7, "Shell": ["/bin/bash"],
            "Healthcheck": {"Test": ["CMD", "/probe"]}, "OnBuild": ["RUN x"], "New": {"Deep": [1, null]}});
        base.config.other = fields.as_object().unwrap().clone();
        let descriptor = base.build(&layout).unwrap();
        let mut image = layout.image(&descriptor, &base.platform).unwrap();
        image.config.other.insert("os.version".to_owned(), "10.0.1".into());
        image.config.history[0].other.insert("author".to_owned(), "me".into());
        let url = serde_json::json!(["https://mcr.test/blob"]);
        let mut foreign = Descriptor::new(media_type::DOCKER_FOREIGN_GZIP, crate::sha256(b"gone"), 4);
        foreign.other.insert("urls".to_owned(), url.clone());
        image.manifest.layers.insert(0, foreign);

        let mut top = recipe("/top");
        let on = |image: &Image| Base {
            layout: layout.clone(),
            image: image.clone(),
            name: "r.io/base:v1".to_owned(),
        };
        top.base = Some(on(&image));
        let result = Layout::create(&folder.path().join("top")).unwrap();
        let error = top.build(&result).unwrap_err().to_string();
        assert!(
            error.contains("its manifest has 2 layers, its configuration 1"),
            "{error}"
        );
        image.config.rootfs.diff_ids.insert(0, crate::sha256(b"plain"));
        top.base = Some(on(&image));
        let built = top.build(&result).unwrap();
        let built = result.image(&built, &top.platform).unwrap();
        assert_eq!(&built.config.config.other, fields.as_object().unwrap());
        assert_eq!(built.config.other["os.version"], "10.0.1");
        assert_eq!(built.config.history[0].other["author"], "me");
        assert_eq!(built.manifest.layers[0].media_type, media_type::OCI_FOREIGN_GZIP);
        assert_eq!(built.manifest.layers[0].other["urls"], url);
    }

    #[test]
    fn times_are_spelled_as_rfc_3339() {
        assert_eq!(timestamp(0).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(1_700_000_000).unwrap(), "2023-11-14T22:13:20Z");
        assert!(source_date_epoch(Some("yesterday")).is_err());
        assert_eq!(source_date_epoch(Some("12\n")).unwrap(), 12);
    }
}
