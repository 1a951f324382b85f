//! Writes the projects of Rust operators, as `operator-sdk init` and `create api` write those of Go operators.
//!
//! | module | what it does |
//! |---|---|
//! | [`init`](mod@init) | a complete project without kinds |
//! | [`create_api`](mod@create_api) | a kind: types, reconciler, permissions, sample |
//! | [`settings`] | changes of a project's settings |
//! | [`storage`] | moves the storage version of a kind |
//! | [`delete_api`](mod@delete_api) | takes a kind out again |
//! | [`create_webhook`](mod@create_webhook), [`delete_webhook`](mod@delete_webhook) | webhooks of a kind |
//! | [`update`](mod@update) | the files of a project as a newer version of this crate writes them |
//! | [`adopt`](mod@adopt) | what OLM needs, for projects that this crate did not start |
//! | [`external`] | reconcilers of kinds that others define |
//! | [`go_markers`] | descriptions of kinds from the Go types of an operator |
//! | [`project_file`] | the file PROJECT, in kubebuilder's format |
//! | [`names`] | which names the API server, Cargo and Rust accept |
//! | [`edit`] | changes of Rust sources at places that a parser finds. Everything else stays as the author wrote it |
//! | [`tree`] | changes of files, collected in memory and then made all or none |
//! | [`config`] | `config/` as the project's own `make manifests` renders it, without compiling the project |
//!
//! No function asks questions, prints, or uses the network.

pub mod adopt;
mod api;
mod collisions;
pub mod config;
pub mod create_api;
pub mod create_webhook;
pub mod delete_api;
pub mod delete_webhook;
pub mod edit;
mod error;
pub mod external;
pub mod go_markers;
pub mod init;
mod layout;
mod manifest;
mod modules;
pub mod names;
pub mod project_file;
mod record;
mod rust_source;
pub mod settings;
mod source;
pub mod storage;
mod templates;
mod texts;
pub mod tree;
mod twin;
pub mod update;

pub use adopt::{Adopted, adopt};
pub use create_api::{Api, create_api};
pub use create_webhook::{Webhook, create_webhook};
pub use delete_api::{DeleteApi, delete_api};
pub use delete_webhook::{DeleteWebhook, delete_webhook};
pub use error::Error;
pub use external::External;
pub use init::{Init, License, init};
pub use project_file::{Foreign, Image, ProjectFile, Resource};
pub use settings::{Edit, edit as edit_settings};
pub use source::{IS_RELEASED, Source};
pub use storage::{StorageVersion, set_storage_version};
pub use tree::Tree;
pub use update::{Updated, update};

/// The changes of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that are new, sorted.
    pub created: Vec<std::path::PathBuf>,
    /// Files that changed, sorted.
    pub changed: Vec<std::path::PathBuf>,
    /// Files that are gone, sorted.
    pub removed: Vec<std::path::PathBuf>,
    /// Files that [`init`] would have written but that were there, sorted.
    pub kept: Vec<std::path::PathBuf>,
    /// True if `make manifests` has to render `config/`, because it was not what the project's first state renders.
    pub render: bool,
}
