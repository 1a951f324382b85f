//! The helper image: one static binary under every name that OLM starts in pods.

use std::path::Path;

use super::recipe::Recipe;
use crate::error::Error;
use crate::layer::{Content, LayerBuilder};
use crate::spec::Platform;

/// The user OLM runs its own workloads as (`--set-workload-user-id`).
pub const HELPER_USER: u64 = 1001;

/// Path of the binary: OLM's opm image needs this name.
pub(super) const PROGRAM: &str = "/bin/opm";
/// The other names below `/bin` that lead to it: the util image of OLM needs `cp`, `cpb` and `copy-content`, and catalog
/// pods are probed through `grpc_health_probe`.
const NAMES: [&str; 4] = ["copy-content", "cp", "cpb", "grpc_health_probe"];

/// The layer that helper and catalog images share: the binary and its names, user names, an empty `/tmp`.
pub fn helper_layer(binary: &Path) -> Result<LayerBuilder, Error> {
    let mut layer = LayerBuilder::new();
    layer.file(PROGRAM, Content::File(binary.to_owned()), true)?;
    for name in NAMES {
        layer.symlink(&format!("/bin/{name}"), "opm")?;
    }
    user_names(&mut layer, "olmkit", HELPER_USER)?;
    // OLM mounts an empty directory here in some pods; in the others it must be writable for any user.
    layer.directory("/tmp", 0o1777)?;
    Ok(layer)
}

/// `/etc/passwd` and `/etc/group` with root and one user: programs that look up their own name find one.
pub(super) fn user_names(layer: &mut LayerBuilder, name: &str, number: u64) -> Result<(), Error> {
    let passwd = format!("root:x:0:0:root:/:/sbin/nologin\n{name}:x:{number}:{number}:{name}:/:/sbin/nologin\n");
    let group = format!("root:x:0:\n{name}:x:{number}:\n");
    layer.file("/etc/passwd", Content::Bytes(passwd.into_bytes()), false)?;
    layer.file("/etc/group", Content::Bytes(group.into_bytes()), false)?;
    Ok(())
}

/// The recipe of the helper image around a static `olmkit-helper` (or `olmkit`) binary. It serves as `--util-image` and `--opmImage` of
/// OLM's catalog-operator and as base of catalog images.
pub fn helper_recipe(binary: &Path, platform: Platform, time: u64) -> Result<Recipe, Error> {
    let mut recipe = Recipe::new(platform, time);
    recipe
        .layers
        .push(("olmkit image build helper".to_owned(), helper_layer(binary)?));
    recipe.config.user = HELPER_USER.to_string();
    recipe.config.env = vec!["PATH=/bin".to_owned()];
    recipe.config.entrypoint = vec![PROGRAM.to_owned()];
    Ok(recipe)
}
