//! Texts with variables. An undefined variable is an error.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value};

use crate::Error;

/// The version of the templates that new projects are written from. A new version keeps those files of the one before that
/// differ, in a folder of its number: `update` merges with them.
pub const NEWEST: u32 = 3;

macro_rules! templates {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../templates/", $path, ".j2")))),*]
    };
}

const TEXTS: &[(&str, &str)] = templates![
    "1/project/Cargo.toml",
    "1/project/Makefile",
    "1/project/README.md",
    "1/project/lib.rs",
    "1/project/options.rs",
    "1/project/packaging.rs",
    "1/project/run.rs",
    "2/api/controller.rs",
    "2/api/conversion.rs",
    "2/api/defaulting.rs",
    "2/api/foreign.rs",
    "2/api/validation.rs",
    "2/project/Cargo.toml",
    "2/project/Dockerfile",
    "2/project/Makefile",
    "2/project/README.md",
    "2/project/cluster_test.rs",
    "2/project/controller_mod.rs",
    "2/project/lib.rs",
    "2/project/main.rs",
    "2/project/manager.rs",
    "2/project/options.rs",
    "2/project/packaging.rs",
    "2/project/permissions.rs",
    "2/project/run.rs",
    "2/project/webhook_mod.rs",
    "2/project/workflow.yml",
    "adopt/Cargo.toml",
    "adopt/kustomize.mk",
    "adopt/main.rs",
    "adopt/rust.mk",
    "api/controller.rs",
    "api/conversion.rs",
    "api/defaulting.rs",
    "api/foreign.rs",
    "api/validation.rs",
    "project/Cargo.toml",
    "project/Dockerfile",
    "project/Makefile",
    "project/README.md",
    "project/api_mod.rs",
    "project/bin_manifests.rs",
    "project/cargo-config.toml",
    "project/cluster_test.rs",
    "project/controller_mod.rs",
    "project/dockerignore",
    "project/gitignore",
    "project/icon.svg",
    "project/lib.rs",
    "project/main.rs",
    "project/package.yaml",
    "project/packaging.rs",
    "project/permissions.rs",
    "project/rustfmt.toml",
    "project/webhook_mod.rs",
    "project/workflow.yml",
];

static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    for (name, text) in TEXTS {
        environment.add_template(name, text)?;
    }
    Ok(environment)
});

/// A template of the newest version with its variables filled in.
pub fn current(name: &str, variables: Value) -> Result<String, Error> {
    render(NEWEST, name, variables)
}

/// A template of a version with its variables filled in.
pub fn render(version: u32, name: &str, variables: Value) -> Result<String, Error> {
    let environment = match &*ENVIRONMENT {
        Ok(environment) => environment,
        Err(error) => {
            let message = format!("{error:#}");
            return Err(minijinja::Error::new(error.kind(), message).into());
        }
    };
    // The first later version that has changed the file keeps what it was before.
    let older = (version..NEWEST).map(|version| format!("{version}/{name}"));
    let kept = older.filter_map(|name| environment.get_template(&name).ok()).next();
    let template = match kept {
        Some(template) => template,
        None => environment.get_template(name)?,
    };
    let mut text = template.render(variables)?;
    // The engine removes the last newline of a template.
    text.push('\n');
    Ok(text)
}
