//! Images from a root file system directory, for programs that are more than one static file.

use std::path::Path;

use super::recipe::Recipe;
use crate::error::Error;
use crate::layer::LayerBuilder;
use crate::spec::Platform;

/// The recipe of an image whose root is `directory`. Files that are executable stay so, links stay links, and a
/// directory with the sticky bit (`/tmp`) stays writable for everybody. Owners become root. The run configuration is
/// the caller's.
pub fn directory_recipe(directory: &Path, platform: Platform, time: u64) -> Result<Recipe, Error> {
    let mut layer = LayerBuilder::new();
    layer.tree(directory, "/")?;
    let mut recipe = Recipe::new(platform, time);
    recipe.layers.push(("olmkit image build directory".to_owned(), layer));
    Ok(recipe)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Layout;

    #[test]
    fn the_directory_becomes_the_root() {
        let source = tempfile::tempdir().unwrap();
        let tmp = source.path().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        std::fs::set_permissions(&tmp, std::fs::Permissions::from_mode(0o1777)).unwrap();
        std::fs::write(source.path().join("program"), "#!/bin/sh\n").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let platform = Platform::host();

        let recipe = directory_recipe(source.path(), platform.clone(), 0).unwrap();
        let image = recipe.build(&layout).unwrap();
        let image = layout.image(&image, &platform).unwrap();
        let layer = image.manifest.layers.first().unwrap();
        let bytes = flate2::read::GzDecoder::new(layout.open_blob(layer).unwrap());
        let modes: Vec<(String, u32)> = tar::Archive::new(bytes)
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (
                    entry.path().unwrap().display().to_string(),
                    entry.header().mode().unwrap(),
                )
            })
            .collect();
        assert_eq!(modes, [("program".to_owned(), 0o644), ("tmp/".to_owned(), 0o1777)]);
    }
}
