//! A kind that `create api` is asked for.

use crate::project_file::Image;

/// A kind to create.
#[derive(Debug, Clone)]
pub struct Api {
    /// The group without the project's domain, `cache`.
    pub group: String,
    /// The version, `v1alpha1`.
    pub version: String,
    /// The kind, `Memcached`.
    pub kind: String,
    /// The plural, if it is not regular.
    pub plural: Option<String>,
    /// True if objects have a namespace.
    pub namespaced: bool,
    /// True to write the types.
    pub resource: bool,
    /// True to write a reconciler. By default, it is written unless another version of the kind has one.
    pub controller: Option<bool>,
    /// The image that objects of the kind run: `--plugins deploy-image`.
    pub image: Option<Image>,
    /// Origin of an external kind. Not needed for Kubernetes' own kinds.
    pub external: External,
    /// True to overwrite files.
    pub force: bool,
}

/// Origin of an external kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct External {
    /// The Rust module of the type, `cert_manager::v1`.
    pub path: Option<String>,
    /// The domain of the group. The group alone if it is not given.
    pub domain: Option<String>,
    /// The dependency that has the type, `NAME@VERSION`.
    pub module: Option<String>,
}
