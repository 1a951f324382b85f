//! Builds images: a recipe (layers, configuration, platform) becomes blobs in a layout, without a daemon and with the
//! same digests for the same input everywhere.

mod bundle;
mod catalog;
mod directory;
mod helper;
mod operator;
mod program;
mod recipe;

pub use bundle::{bundle_labels, bundle_recipe};
pub use catalog::{CATALOG_CONFIGS_LABEL, catalog_recipe, with_index};
pub use directory::directory_recipe;
pub use helper::{HELPER_USER, helper_layer, helper_recipe};
pub use operator::{OPERATOR_USER, operator_on_base_recipe, operator_recipe};
pub use program::{check_program, path_for, program_for, program_on_base};
pub use recipe::{Base, Recipe, build_index, source_date_epoch, timestamp};
