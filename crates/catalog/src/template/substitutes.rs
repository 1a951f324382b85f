//! `olm.template.substitutes`: bundles that replace others in a catalog.

use std::collections::BTreeSet;

use super::{Bundles, Kind, check_schema, entries, finish};
use crate::model::{Bundle, Catalog, Channel, ChannelEntry};
use crate::objects;
use crate::property;
use crate::render::MigrateLevel;
use crate::render::definitions::field;
use crate::text::Value;
use crate::validate;
use olmkit_base::object::Version;
use olmkit_go::strconv::quote;

pub(super) fn render(document: &Value<'_>, bundles: &dyn Bundles, level: MigrateLevel) -> Result<Catalog, String> {
    check_schema(document, Kind::Substitutes)?;
    let mut catalog = Catalog::from_iter(
        entries(document)
            .map_err(|error| format!("render: unable to create declarative config from entries: {error}"))?,
    );
    if let Some(error) = validate::catalog_verdict(&catalog).opm_text {
        return Err(format!("render: entries are not valid FBC: {error}"));
    }
    let substitutions = substitutions(document);
    unique(&substitutions)?;
    for (name, base) in &substitutions {
        let fail = |error: String| {
            format!(
                "render: error processing substitution {} -> {}: {error}",
                quote(base),
                quote(name)
            )
        };
        substitute(&mut catalog, name, base, bundles, level).map_err(fail)?;
    }
    Ok(catalog)
}

/// Pairs of the substitute's reference and the name of its base.
fn substitutions(document: &Value<'_>) -> Vec<(String, String)> {
    let text = |item: &Value<'_>, key| field(item, key).and_then(Value::as_str).unwrap_or_default().to_owned();
    field(document, "substitutions")
        .map(Value::items)
        .unwrap_or_default()
        .iter()
        .map(|item| (text(item, "name"), text(item, "base")))
        .collect()
}

fn unique(substitutions: &[(String, String)]) -> Result<(), String> {
    let (mut names, mut bases) = (BTreeSet::new(), BTreeSet::new());
    for (name, base) in substitutions {
        if !names.insert(name) {
            return Err(format!("render: duplicate substitution name {}", quote(name)));
        }
        if !bases.insert(base) {
            return Err(format!("render: duplicate substitution base {}", quote(base)));
        }
    }
    Ok(())
}

fn substitute(
    catalog: &mut Catalog,
    name: &str,
    base: &str,
    bundles: &dyn Bundles,
    level: MigrateLevel,
) -> Result<(), String> {
    if name.is_empty() {
        return Err("substitution name cannot be empty".into());
    }
    if base.is_empty() {
        return Err("substitution base cannot be empty".into());
    }
    if name == base {
        return Err(format!(
            "substitution name and base cannot be the same: {}",
            quote(name)
        ));
    }
    let Some(base_bundle) = catalog.bundles.iter().find(|bundle| bundle.name == base) else {
        return Err(format!("base bundle {} does not exist in catalog", quote(base)));
    };
    let rendered = bundles.render(name)?;
    let Some(mut bundle) = rendered.bundles.into_iter().next() else {
        return Err(format!("{} contains no bundle", quote(name)));
    };
    if order_key(base_bundle)? >= order_key(&bundle)? {
        return Err(format!(
            "base bundle {} is not less than substitute bundle {}",
            quote(base),
            quote(name)
        ));
    }
    let package = base_bundle.package.clone();
    for channel in catalog.channels.iter_mut().filter(|channel| channel.package == package) {
        replace(channel, base, &bundle.name);
    }
    finish(&mut bundle, level)?;
    catalog.bundles.push(bundle);
    match validate::catalog_verdict(catalog).opm_text {
        Some(error) => Err(format!("resulting FBC is not valid: {error}")),
        None => Ok(()),
    }
}

/// Version, then release. If the CSV substitutes another, build metadata counts as the release.
fn order_key(bundle: &Bundle) -> Result<(Version, Option<Version>), String> {
    let properties = property::parse(bundle).map_err(|(_, error)| error)?;
    let own = properties.first().cloned().unwrap_or_default();
    let version = Version::parse(&own.version).map_err(|error| error.to_string())?;
    let mut release = own.release;
    if release.is_empty() && substitutes_another(bundle) {
        release = version.build.join(".");
    }
    let release = if release.is_empty() {
        None
    } else {
        Version::parse(&format!("0.0.0-{release}")).ok()
    };
    Ok((version, release))
}

fn substitutes_another(bundle: &Bundle) -> bool {
    let objects = objects::inline(bundle);
    let csv = objects::csv(&objects).and_then(|csv| serde_json::from_str::<serde_json::Value>(csv).ok());
    csv.is_some_and(|csv| csv.pointer("/metadata/annotations/olm.substitutesFor").is_some())
}

/// Replaces the base by its substitute, which skips the base from then on.
fn replace(channel: &mut Channel, base: &str, substitute: &str) {
    let Some(entries) = channel.entries.as_mut() else {
        return;
    };
    let Some(entry) = entries.iter_mut().find(|entry| entry.name == base) else {
        return;
    };
    let old = std::mem::replace(
        entry,
        ChannelEntry {
            name: base.to_owned(),
            ..ChannelEntry::default()
        },
    );
    let mut skips = old.skips;
    skips.push(base.to_owned());
    for entry in entries.iter_mut() {
        if entry.replaces == base {
            substitute.clone_into(&mut entry.replaces);
            entry.skips.push(base.to_owned());
        } else if let Some(skip) = entry.skips.iter_mut().find(|skip| *skip == base) {
            substitute.clone_into(skip);
        }
    }
    entries.push(ChannelEntry {
        name: substitute.to_owned(),
        replaces: old.replaces,
        skips,
        skip_range: old.skip_range,
    });
}
