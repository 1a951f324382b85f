//! Catalog images: a file-based catalog and the server for it.

use std::path::Path;

use super::helper::{HELPER_USER, PROGRAM, helper_layer};
use super::recipe::Recipe;
use crate::error::Error;
use crate::layer::{Content, LayerBuilder};
use crate::spec::Platform;

/// Label with the path of the file-based catalog in the image. OLM v1 reads nothing else of the image. If an image has
/// no such label, opm and operator-sdk read it as an SQLite index.
pub const CATALOG_CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
const CONFIGS: &str = "/configs";

/// The recipe of a catalog image: the helper image's layer, and the catalog directory at `/configs`.
/// OLM v0 runs it and asks port 50051; OLM v1 only reads the directory.
pub fn catalog_recipe(directory: &Path, binary: &Path, platform: Platform, time: u64) -> Result<Recipe, Error> {
    if !directory.is_dir() {
        return Err(Error::Input(format!(
            "{} is not a directory: give the directory of a file-based catalog",
            directory.display()
        )));
    }
    super::bundle::check_links(directory)?;
    let mut content = LayerBuilder::new();
    content.directory(CONFIGS, 0o755)?.tree(directory, CONFIGS)?;
    let mut recipe = Recipe::new(platform, time);
    recipe
        .layers
        .push(("olmkit image build helper".to_owned(), helper_layer(binary)?));
    recipe.layers.push(("olmkit image build catalog".to_owned(), content));
    recipe
        .config
        .labels
        .insert(CATALOG_CONFIGS_LABEL.to_owned(), CONFIGS.to_owned());
    recipe
        .config
        .exposed_ports
        .insert("50051/tcp".to_owned(), serde_json::json!({}));
    recipe.config.user = HELPER_USER.to_string();
    recipe.config.env = vec!["PATH=/bin".to_owned()];
    recipe.config.entrypoint = vec![PROGRAM.to_owned()];
    recipe.config.cmd = ["serve", CONFIGS].map(str::to_owned).to_vec();
    Ok(recipe)
}

/// Adds a prepared index, so that the server starts without reading the catalog. The index is in a separate layer, so
/// that OLM v1 and mirrors that rewrite `/configs` can ignore it. The server rebuilds an index that no longer fits.
pub fn with_index(mut recipe: Recipe, name: &str, index: Vec<u8>) -> Result<Recipe, Error> {
    const CACHE: &str = "/cache";
    let mut layer = LayerBuilder::new();
    layer
        .directory(CACHE, 0o755)?
        .file(&format!("{CACHE}/{name}"), Content::Bytes(index), false)?;
    recipe.layers.push(("opm serve --cache-only".to_owned(), layer));
    recipe.config.cmd.push(format!("--cache-dir={CACHE}"));
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Readers of the catalog skip the same directories: see `olmkit_catalog::walk`.
    #[test]
    fn only_directories_of_a_running_olmkit_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "schema: olm.package\nname: a\n").unwrap();
        };
        for path in [
            "catalog/.olmkit-file.yaml",
            "catalog/.olmkit-foreign/catalog.yaml",
            "catalog/.olmkit-left/lock",
            "catalog/.olmkit-left/catalog.yaml",
            "catalog/.olmkit-used/lock",
            "catalog/.olmkit-used/catalog.yaml",
            "catalog/other/lock",
            "catalog/other/catalog.yaml",
            "helper",
        ] {
            write(path);
        }
        let held = ["catalog/.olmkit-used/lock", "catalog/other/lock"].map(|path| {
            let lock = fs::File::open(root.path().join(path)).unwrap();
            lock.lock().unwrap();
            lock
        });
        let files = || {
            let (catalog, helper) = (root.path().join("catalog"), root.path().join("helper"));
            let recipe = catalog_recipe(&catalog, &helper, Platform::host(), 0).unwrap();
            let layer = &recipe.layers.last().unwrap().1;
            let files = layer.paths().filter_map(|path| path.strip_prefix("configs/"));
            files.map(str::to_owned).collect::<Vec<_>>()
        };
        let all = [
            ".olmkit-file.yaml",
            ".olmkit-foreign",
            ".olmkit-foreign/catalog.yaml",
            ".olmkit-left",
            ".olmkit-left/catalog.yaml",
            ".olmkit-left/lock",
            ".olmkit-used",
            ".olmkit-used/catalog.yaml",
            ".olmkit-used/lock",
            "other",
            "other/catalog.yaml",
            "other/lock",
        ];
        let expected: Vec<&str> = all.into_iter().filter(|path| !path.contains("used")).collect();
        assert_eq!(files(), expected);
        drop(held);
        assert_eq!(files(), all);
    }
}
