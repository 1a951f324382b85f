//! Images that catalog commands read: from registries, the image store, layouts and archives.

use olmkit::catalog::render::reference::{CONFIGS_LABEL, Directory, Images, Unpacked};
use olmkit_oci::registry::Platforms;
use olmkit_oci::spec::Platform;
use olmkit_oci::{Location, fetch};

use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

/// Images by reference, read with the flags of the command.
pub struct RegistryImages<'f> {
    flags: &'f RegistryFlags,
}

impl<'f> RegistryImages<'f> {
    pub fn new(flags: &'f RegistryFlags) -> Self {
        RegistryImages { flags }
    }

    fn read(&self, reference: &str) -> anyhow::Result<Unpacked> {
        let location: Location = reference.parse()?;
        let platform = Platform::host();
        let client = self.flags.client()?;
        let fetched = block_on(fetch(&client, &location, &Platforms::One(platform.clone())))??;
        let labels = fetched.image(&platform)?.config.config.labels;
        let directory = olmkit::temporary::Directory::new("catalog")?;
        // Base images have many other files.
        let mut names = vec!["manifests", "metadata"];
        names.extend(labels.get(CONFIGS_LABEL).map(String::as_str));
        fetched.unpack_reachable(&platform, directory.path(), &names)?;
        Ok(Unpacked {
            directory: Directory::Temporary(directory),
            labels,
        })
    }
}

impl Images for RegistryImages<'_> {
    fn unpack(&self, reference: &str) -> Result<Unpacked, String> {
        self.read(reference).map_err(|error| crate::error_message(&error))
    }
}

#[cfg(test)]
mod tests {
    use olmkit_oci::Layout;
    use olmkit_oci::build::Recipe;
    use olmkit_oci::layer::{Content, LayerBuilder};

    use super::*;

    #[test]
    fn only_the_catalog_of_an_image_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let mut layer = LayerBuilder::new();
        let others = (0..500).map(|number| format!("/usr/lib/{number}/file"));
        for path in others.chain(["/configs/demo/catalog.yaml".to_owned()]) {
            layer.file(&path, Content::Bytes(b"{}".to_vec()), false).unwrap();
        }
        let mut recipe = Recipe::new(Platform::host(), 0);
        recipe.layers.push(("files".to_owned(), layer));
        recipe
            .config
            .labels
            .insert(CONFIGS_LABEL.to_owned(), "/configs".to_owned());
        layout.set("v1", &recipe.build(&layout).unwrap()).unwrap();
        let reference = format!("oci:{}:v1", folder.path().display());
        let unpacked = RegistryImages::new(&RegistryFlags::default())
            .unpack(&reference)
            .unwrap();
        let entries = walkdir::WalkDir::new(unpacked.directory.path()).min_depth(1);
        let root = unpacked.directory.path().display().to_string();
        let names: Vec<String> = entries
            .into_iter()
            .map(|entry| entry.unwrap().path().display().to_string().replace(&root, ""))
            .collect();
        assert_eq!(names, ["/configs", "/configs/demo", "/configs/demo/catalog.yaml"]);
    }
}
