//! `olm.semver`: channels and edges that follow from the versions of the bundles.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::{Bundles, Kind};
use crate::model::{Bundle, Catalog, Channel, ChannelEntry, Icon, PROPERTY_CSV_METADATA, Package};
use crate::objects;
use crate::property;
use crate::render::definitions::field;
use crate::text::{Numbers, Value};
use olmkit_base::object::Version;
use olmkit_go::json::Html;
use olmkit_go::json::names_field;
use olmkit_go::strconv::quote;

/// Maturity of a list of bundles. Later ones are preferred for the default channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Archetype {
    Candidate,
    Fast,
    Stable,
}

const ARCHETYPES: [(Archetype, &str); 3] = [
    (Archetype::Candidate, "candidate"),
    (Archetype::Fast, "fast"),
    (Archetype::Stable, "stable"),
];

/// A kind of channel. Minor beats major for the default channel where nothing else decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    Major,
    Minor,
}

#[derive(Debug, Default)]
struct Template {
    major: bool,
    minor: bool,
    preference: Option<String>,
    images: BTreeMap<usize, Vec<String>>,
}

pub(super) fn render(document: &Value<'_>, bundles: &dyn Bundles) -> Result<Catalog, String> {
    let template = read(document).map_err(|error| format!("render: unable to read file: {error}"))?;
    let references: BTreeSet<&String> = template.images.values().flatten().collect();
    let rendered: Vec<(String, Bundle)> = references
        .into_par_iter()
        .map(|reference| {
            let catalog = bundles.render(reference)?;
            let count = catalog.bundles.len();
            match <[Bundle; 1]>::try_from(catalog.bundles) {
                Ok([bundle]) => Ok((reference.clone(), bundle)),
                Err(_) => Err(format!(
                    "bundle reference {} resulted in {count} bundles, expected 1",
                    quote(reference)
                )),
            }
        })
        .collect::<Result<_, String>>()?;
    if rendered.is_empty() {
        return Err("render: no bundles specified or no bundles could be rendered".into());
    }
    let by_reference: BTreeMap<&str, &Bundle> = rendered
        .iter()
        .map(|(reference, bundle)| (reference.as_str(), bundle))
        .collect();
    let (package, versions) = versions(&template, &by_reference)
        .map_err(|error| format!("render: unable to post-process bundle info: {error}"))?;
    let (channels, default) = channels(&template, &package, &versions);
    let mut catalog = Catalog {
        packages: vec![Package {
            name: package,
            default_channel: default,
            ..Package::default()
        }],
        channels,
        bundles: rendered.into_iter().map(|(_, bundle)| bundle).collect(),
        ..Catalog::default()
    };
    describe(&mut catalog);
    Ok(catalog)
}

fn read(document: &Value<'_>) -> Result<Template, String> {
    let mut template = Template::default();
    let unknown = |key: &str| {
        format!(
            "error unmarshaling JSON: while decoding JSON: json: unknown field {}",
            quote(key)
        )
    };
    let mut schema = "";
    for (key, value) in document.entries() {
        let archetype = ARCHETYPES.iter().position(|(_, name)| names_field(key, name));
        if names_field(key, "schema") {
            schema = value.as_str().unwrap_or_default();
        } else if names_field(key, "generateMajorChannels") {
            template.major = *value == Value::Bool(true);
        } else if names_field(key, "generateMinorChannels") {
            template.minor = *value == Value::Bool(true);
        } else if names_field(key, "defaultChannelTypePreference") {
            template.preference = value.as_str().map(str::to_lowercase);
        } else if let Some(archetype) = archetype {
            template.images.insert(archetype, images(value, &unknown)?);
        } else {
            return Err(unknown(key));
        }
    }
    if schema != Kind::Semver.schema() {
        return Err(format!(
            "readFile: input file has unknown schema, should be {}",
            quote(Kind::Semver.schema())
        ));
    }
    if !template.major && !template.minor {
        template.minor = true;
    }
    match template
        .preference
        .as_deref()
        .filter(|preference| !preference.is_empty())
    {
        None => {}
        Some("minor") if template.minor => {}
        Some("major") if template.major => {}
        Some(preference @ ("minor" | "major")) => {
            return Err(format!(
                "schema attribute mismatch: DefaultChannelTypePreference set to '{preference}' doesn't make sense if \
                 not generating {preference}-version channels"
            ));
        }
        Some(other) => return Err(format!("unknown DefaultChannelTypePreference: {}", quote(other))),
    }
    Ok(template)
}

fn images(archetype: &Value<'_>, unknown: &dyn Fn(&str) -> String) -> Result<Vec<String>, String> {
    let mut images = Vec::new();
    for (key, value) in archetype.entries() {
        if !names_field(key, "bundles") {
            return Err(unknown(key));
        }
        for bundle in value.items() {
            for (key, value) in bundle.entries() {
                if !names_field(key, "image") {
                    return Err(unknown(key));
                }
                images.push(match value {
                    Value::String(text) => text.as_ref().to_owned(),
                    // The reader converts it to a string.
                    other => other.to_json(Numbers::Keep, Html::Plain),
                });
            }
        }
    }
    Ok(images)
}

/// Bundle names and versions of each archetype.
type Versions = BTreeMap<usize, Vec<(String, Version)>>;

fn versions(template: &Template, bundles: &BTreeMap<&str, &Bundle>) -> Result<(String, Versions), String> {
    let mut package: Option<String> = None;
    let mut versions = Versions::new();
    for (archetype, images) in &template.images {
        let mut found: BTreeMap<String, Version> = BTreeMap::new();
        for image in images {
            let Some(bundle) = bundles.get(image.as_str()) else {
                continue;
            };
            let name = quote(&bundle.name);
            let properties =
                property::parse(bundle).map_err(|(_, error)| format!("parse properties for bundle {name}: {error}"))?;
            let [own] = properties.as_slice() else {
                return Err(format!(
                    "bundle {name} has multiple \"olm.package\" properties, expected exactly 1"
                ));
            };
            let version = Version::parse(&own.version)
                .map_err(|error| format!("bundle {name} has invalid version {}: {error}", quote(&own.version)))?;
            let known = package.get_or_insert_with(|| own.package.clone());
            if *known != own.package {
                let (other, known) = (quote(&own.package), quote(known));
                return Err(format!("bundle {other} does not belong to this package: {known}"));
            }
            if found.insert(bundle.name.clone(), version).is_some() {
                return Err(format!("duplicate bundle name {name}"));
            }
        }
        let mut found: Vec<(String, Version)> = found.into_iter().collect();
        found.sort_by(|left, right| left.1.cmp(&right.1));
        unordered(&found)?;
        versions.insert(*archetype, found);
    }
    Ok((package.unwrap_or_default(), versions))
}

/// Versions that are equal up to build metadata have no order.
fn unordered(sorted: &[(String, Version)]) -> Result<(), String> {
    for pair in sorted.windows(2) {
        if let [(_, left), (_, right)] = pair
            && left == right
        {
            let (left, right) = (quote(&right.to_string()), quote(&left.to_string()));
            return Err(format!(
                "encountered bundle versions which differ only by build metadata, which cannot be ordered: bundle \
                 version {left} cannot be compared to {right}"
            ));
        }
    }
    Ok(())
}

/// A bundle's position in one run of channels.
struct Tuple<'v> {
    archetype: usize,
    stream: Stream,
    channel: String,
    name: &'v str,
    version: &'v Version,
}

/// Rank of a channel as default: archetype, version, preferred stream, stream.
type Rank<'a> = (usize, &'a Version, bool, Stream);

fn channels(template: &Template, package: &str, versions: &Versions) -> (Vec<Channel>, String) {
    let mut tuples = Vec::new();
    let mut channels: BTreeMap<String, Channel> = BTreeMap::new();
    let preferred = match template.preference.as_deref() {
        Some("major") => Stream::Major,
        Some("minor") => Stream::Minor,
        _ if template.minor => Stream::Minor,
        _ => Stream::Major,
    };
    // The best candidate so far: the first bundle of each channel is one.
    let mut default: Option<(Rank, String)> = None;
    for (archetype, bundles) in versions {
        let archetype_name = ARCHETYPES.get(*archetype).map(|(_, name)| *name).unwrap_or_default();
        for (name, version) in bundles {
            for (stream, wanted) in [(Stream::Major, template.major), (Stream::Minor, template.minor)] {
                if !wanted {
                    continue;
                }
                let channel = match stream {
                    Stream::Major => format!("{archetype_name}-v{}", version.major),
                    Stream::Minor => format!("{archetype_name}-v{}.{}", version.major, version.minor),
                };
                let blob = channels.entry(channel.clone()).or_insert_with(|| {
                    let rank = (*archetype, version, stream == preferred, stream);
                    // A version below 0.0.0 loses against opm's starting point.
                    let best = default.as_ref().map(|(rank, _)| rank);
                    if *version >= Version::default() && best.is_none_or(|best| rank > *best) {
                        default = Some((rank, channel.clone()));
                    }
                    Channel {
                        name: channel.clone(),
                        package: package.to_owned(),
                        ..Channel::default()
                    }
                });
                blob.entries.get_or_insert_default().push(ChannelEntry {
                    name: name.clone(),
                    ..ChannelEntry::default()
                });
                tuples.push(Tuple {
                    archetype: *archetype,
                    stream,
                    channel,
                    name,
                    version,
                });
            }
        }
    }
    link(&mut tuples, &mut channels);
    (
        channels.into_values().collect(),
        default.map(|(_, name)| name).unwrap_or_default(),
    )
}

/// Sets the edges of the highest patch of each minor version: it replaces that of the previous minor version, and skips
/// everything before it within its major version.
fn link(tuples: &mut [Tuple<'_>], channels: &mut BTreeMap<String, Channel>) {
    tuples.sort_by(|left, right| {
        (left.archetype, left.stream, left.version).cmp(&(right.archetype, right.stream, right.version))
    });
    let run = |tuple: &Tuple<'_>| (tuple.archetype, tuple.stream, tuple.version.major);
    for group in tuples.chunk_by(|left, right| run(left) == run(right)) {
        let mut earlier: Vec<&str> = Vec::new();
        let mut last_of_minor: Option<&str> = None;
        for minor in group.chunk_by(|left, right| left.version.minor == right.version.minor) {
            let Some((highest, lower)) = minor.split_last() else {
                continue;
            };
            earlier.extend(lower.iter().map(|tuple| tuple.name));
            let entry = channels
                .get_mut(&highest.channel)
                .and_then(|channel| channel.entries.as_mut())
                .and_then(|entries| entries.iter_mut().find(|entry| entry.name == highest.name));
            if let Some(entry) = entry {
                entry.replaces = last_of_minor.unwrap_or_default().to_owned();
                entry.skips = earlier
                    .iter()
                    .filter(|name| Some(**name) != last_of_minor)
                    .map(|name| (*name).to_owned())
                    .collect();
                entry.skips.sort();
            }
            earlier.push(highest.name);
            last_of_minor = Some(highest.name);
        }
    }
}

/// Icon and description of the package, from the CSV of the default channel's last entry.
fn describe(catalog: &mut Catalog) {
    let Some(package) = catalog.packages.first_mut() else {
        return;
    };
    let last = catalog
        .channels
        .iter()
        .find(|channel| channel.name == package.default_channel)
        .and_then(|channel| channel.entries().last());
    let Some(bundle) = last.and_then(|last| catalog.bundles.iter().find(|bundle| bundle.name == last.name)) else {
        return;
    };
    let objects = objects::inline(bundle);
    let csv = objects::csv(&objects).and_then(|csv| serde_json::from_str::<serde_json::Value>(csv).ok());
    if let Some(csv) = csv.map(Value::from) {
        let spec = field(&csv, "spec");
        package.description = text(spec.and_then(|spec| field(spec, "description")));
        let icon = spec
            .and_then(|spec| field(spec, "icon"))
            .and_then(|icons| icons.items().first());
        package.icon = icon.map(|icon| Icon {
            data: Some(text(field(icon, "base64data"))),
            media_type: text(field(icon, "mediatype")),
        });
    } else if let Some(property) = bundle
        .properties
        .iter()
        .find(|property| property.kind == PROPERTY_CSV_METADATA)
    {
        let metadata = property::value(property).unwrap_or(Value::Null);
        package.description = text(field(&metadata, "description"));
    }
}

fn text(value: Option<&Value<'_>>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}
