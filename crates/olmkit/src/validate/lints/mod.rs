//! Lints: rules that operator-sdk does not have. They warn and never change operator-sdk's result.

pub(crate) mod admission;
pub(crate) mod certificates;
pub(crate) mod dependencies;
pub(crate) mod descriptors;
pub(crate) mod examples;
pub(crate) mod features;
pub(crate) mod fields;
pub(crate) mod files;
mod grouping;
pub(crate) mod icon;
pub(crate) mod images;
pub(crate) mod olm_v1;
pub(crate) mod permissions;
pub(crate) mod placeholders;
pub(crate) mod pod_security;
pub(crate) mod pods;
pub(crate) mod release;
pub(crate) mod schemas;
pub(crate) mod upgrade;
pub(crate) mod webhooks;

use super::checked::Checked;
use super::context::Context;

/// Runs all lints. Those without evidence only on request.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let families: [fn(&Context<'_>) -> Vec<Checked>; 19] = [
        admission::check,
        files::check,
        fields::check,
        dependencies::check,
        icon::check,
        permissions::check,
        webhooks::check,
        certificates::check,
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
        placeholders::check,
    ];
    let found = families.iter().flat_map(|family| family(context));
    let asked_for = |checked: &Checked| context.options.unproven || !checked.on_request;
    grouping::fold(found.filter(asked_for).collect())
}
