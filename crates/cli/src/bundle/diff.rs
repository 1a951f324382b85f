//! `olmkit bundle diff`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use olmkit::diagnostics::Finding;
use olmkit::olmv1::{self, Object};
use olmkit::validate::olm_v1::upgrade_findings;

use super::source;
use crate::crd;
use crate::registry_flags::RegistryFlags;

/// Compare a bundle with an earlier one: what users gain, lose and must grant, and whether OLM v1 lets them upgrade
///
/// The exit status is 1 if OLM v1 blocks the upgrade because of a CRD.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit bundle diff releases/0.1.0 bundle", "olmkit bundle diff quay.io/example/cache-operator-bundle:v1 bundle"])]
pub struct Args {
    /// The earlier bundle: directory or image.
    #[arg(value_name = "OLD")]
    old: String,
    /// The later bundle: directory or image.
    #[arg(value_name = "NEW")]
    new: String,
    /// Omit source lines.
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    registry: RegistryFlags,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let old = source::for_olm_v1(&args.old, &args.registry)?;
    let new = source::for_olm_v1(&args.new, &args.registry)?;
    let summary = olmv1::summary(&old, &new);
    let mut out = crate::terminal::styled_output();
    if summary.is_empty() {
        writeln!(
            out,
            "no differences in versions, definitions, webhooks, images and permissions"
        )?;
    } else {
        // Names in a bundle are as its author wrote them.
        for line in summary.to_string().lines() {
            writeln!(out, "{}", olmkit::object::UntrustedText::new(line))?;
        }
    }
    let findings = compare((&args.old, &old.definitions), (&args.new, &new.definitions));
    crd::print(findings, args.short, &mut out)
}

/// What blocks the upgrade of definitions of the same names; files are named below the folders.
pub fn compare(old: (&str, &[Object]), new: (&str, &[Object])) -> Vec<Finding> {
    let below = |folder: &str, objects: &[Object]| -> Vec<Object> {
        let in_folder = |object: &Object| {
            let mut object = object.clone();
            object.path = format!("{}/{}", folder.trim_end_matches('/'), object.path);
            object
        };
        objects.iter().map(in_folder).collect()
    };
    let (before, now) = (below(old.0, old.1), below(new.0, new.1));
    let by_name: BTreeMap<&str, &Object> = before.iter().map(|object| (object.name(), object)).collect();
    now.iter()
        .filter_map(|object| Some((by_name.get(object.name())?, object)))
        .flat_map(|(old_object, object)| upgrade_findings(&old_object.value, Some(old_object), object, old.0))
        .collect()
}
