//! Text templates with variables. An undefined variable is an error.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value};

use crate::Error;

macro_rules! templates {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../templates/", $path, ".j2")))),*]
    };
}

const TEXTS: &[(&str, &str)] = templates![
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

/// A template with its variables filled in.
pub fn render(name: &str, variables: Value) -> Result<String, Error> {
    let environment = match &*ENVIRONMENT {
        Ok(environment) => environment,
        Err(error) => {
            let message = format!("{error:#}");
            return Err(minijinja::Error::new(error.kind(), message).into());
        }
    };
    let mut text = environment.get_template(name)?.render(variables)?;
    // The engine removes the last newline of a template.
    text.push('\n');
    Ok(text)
}
