//! Rules that operator-sdk does not have. They warn; they never change operator-sdk's verdict.

mod dependencies;
mod descriptors;
mod examples;
mod features;
mod fields;
mod files;
mod icon;
mod images;
mod olm_v1;
mod permissions;
mod pod_security;
mod pods;
mod release;
mod schemas;
mod upgrade;
mod webhooks;

use super::checked::Checked;
use super::context::Context;
use crate::diagnostics::Severity;

/// Runs all rules.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let families: [fn(&Context<'_>) -> Vec<Checked>; 16] = [
        files::check,
        fields::check,
        dependencies::check,
        icon::check,
        permissions::check,
        webhooks::check,
        images::check,
        pods::check,
        pod_security::check,
        release::check,
        olm_v1::check,
        schemas::check,
        descriptors::check,
        examples::check,
        features::check,
        upgrade::check,
    ];
    families.iter().flat_map(|family| family(context)).collect()
}

fn warning(rule: &'static str, message: impl Into<String>) -> Checked {
    Checked::own(rule, Severity::Warning, message)
}
