//! The checks of the hosted operator repositories on a pull request, on your machine: the static checks of bundles,
//! operators and catalogs, and the rules on the change itself. [`publish`] migrates operators and bundles to file-based
//! catalogs.
//!
//! The originals are Python. `strict_compat` reproduces their results word for word, including bugs. Otherwise the
//! result is correct where theirs is not, and the finding mentions the difference. No network, no asynchronous runtime.
//!
//! ```
//! use std::sync::Arc;
//! use olmkit_submission::{Memory, Options, Repository, Suite, check_operator};
//!
//! let files: Memory = [("operators/hello/ci.yaml", "updateGraph: legacy\n")].into_iter().collect();
//! let repository = Repository::new(Arc::new(files));
//! let operator = repository.operator("hello").ok_or("the repository has it")?;
//! let options = Options { suites: vec![Suite::Community], ..Options::default() };
//! let found = check_operator(&repository, &operator, &options);
//! assert!(found.iter().any(|checked| checked.check == "check_ci_upgrade_graph"));
//! # Ok::<(), &str>(())
//! ```

mod bundle;
mod certification_hash;
mod change;
mod change_rules;
mod checked;
mod checks;
mod container;
mod deletion;
mod dockerfile;
mod files;
mod git;
mod graph;
mod hub_change;
mod images;
mod overlay;
mod platforms;
mod preflight_results;
pub mod publish;
mod python;
mod repository;
mod run;
mod versions;
mod waivers;
mod yamllint;

pub use certification_hash::certification_hash;
pub use change::{Change, Summary};
pub use checked::Checked;
pub use checks::{Options, Suite};
pub use container::{
    Change as LayerChange, Compared, Container, ContainerOutcome, LayerFiles, Layers, Modified, Package, Policy,
    check_container, check_dockerfile, distribution, packages, packages_with_files,
};
pub use files::{Files, Folder, Memory};
pub use git::{Commit, Git};
pub use overlay::{Changes, Overlay};
pub use platforms::{Platform, Platforms};
pub use preflight_results::{PreflightResults, preflight_operator_rules};
pub use repository::{Operator, Repository};
pub use run::{check_bundle, check_catalogs, check_operator, find_rule, rules, static_checks};
pub use waivers::Waivers;
