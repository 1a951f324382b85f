//! Operator images: one static binary.

use std::path::Path;

use super::helper::user_names;
use super::recipe::{Base, Recipe};
use crate::error::Error;
use crate::layer::{Content, LayerBuilder};
use crate::spec::Platform;

/// The unprivileged user that images without a distribution agree on.
pub const OPERATOR_USER: u64 = 65532;

/// The recipe of an operator image: the binary at `/<its file name>` as entry point, user names, and the certificate
/// authorities of a bundle file (PEM) where Linux programs look for them.
pub fn operator_recipe(
    binary: &Path,
    authorities: Option<&Path>,
    platform: Platform,
    time: u64,
) -> Result<Recipe, Error> {
    let (path, mut layer) = binary_layer(binary, authorities)?;
    user_names(&mut layer, "nonroot", OPERATOR_USER)?;
    let mut recipe = Recipe::new(platform, time);
    recipe.layers.push(("olmkit image build operator".to_owned(), layer));
    recipe.config.user = format!("{OPERATOR_USER}:{OPERATOR_USER}");
    recipe.config.entrypoint = vec![path];
    Ok(recipe)
}

/// The recipe of an operator image on a base: a separate layer contains the binary and the authorities, if any. The user is
/// the base's unless it has none. All other settings of the base are kept.
pub fn operator_on_base_recipe(
    binary: &Path,
    authorities: Option<&Path>,
    base: Base,
    platform: Platform,
    time: u64,
) -> Result<Recipe, Error> {
    let (path, layer) = binary_layer(binary, authorities)?;
    let mut recipe = Recipe::new(platform, time);
    recipe.layers.push(("olmkit image build operator".to_owned(), layer));
    if base.image.config.config.user.is_empty() {
        recipe.config.user = format!("{OPERATOR_USER}:{OPERATOR_USER}");
    }
    recipe.config.entrypoint = vec![path];
    recipe.base = Some(base);
    Ok(recipe)
}

/// The path of a binary in the image, and a layer with it and the authorities.
fn binary_layer(binary: &Path, authorities: Option<&Path>) -> Result<(String, LayerBuilder), Error> {
    let name = binary
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::Input(format!("{} names no program file", binary.display())))?;
    let path = format!("/{name}");
    let mut layer = LayerBuilder::new();
    layer.file(&path, Content::File(binary.to_owned()), true)?;
    if let Some(authorities) = authorities {
        layer.file(
            "/etc/ssl/certs/ca-certificates.crt",
            Content::File(authorities.to_owned()),
            false,
        )?;
    }
    Ok((path, layer))
}
