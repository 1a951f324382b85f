//! Creates and edits Rust operator projects, as `operator-sdk init` and `create api` do for Go.
//!
//! | module | content |
//! |---|---|
//! | [`init`](mod@init) | creates a project without kinds |
//! | [`create_api`](mod@create_api) | adds a kind: types, reconciler, permissions, sample |
//! | [`settings`] | changes project settings |
//! | [`storage`] | changes a kind's storage version |
//! | [`delete_api`](mod@delete_api) | removes a kind |
//! | [`create_webhook`](mod@create_webhook), [`delete_webhook`](mod@delete_webhook) | add and remove a kind's webhooks |
//! | [`update`](mod@update) | updates a project to the current templates |
//! | [`adopt`](mod@adopt) | adds OLM packaging to an existing project |
//! | [`external`] | adds reconcilers for third-party kinds |
//! | [`go_markers`] | reads kinds from a Go operator's types |
//! | [`project_file`] | the file PROJECT, in kubebuilder's format |
//! | [`names`] | checks names against the API server's, Cargo's and Rust's syntax |
//! | [`edit`] | edits Rust source files. The remaining source stays unchanged |
//! | [`tree`] | collects file changes in memory and writes all or none |
//! | [`config`] | renders `config/` like the project's `make manifests`, without compiling the project |
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
