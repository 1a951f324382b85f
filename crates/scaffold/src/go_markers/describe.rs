//! Entries of `customresourcedefinitions.owned` from types and markers.

use std::cmp::Ordering;

use olmkit::crd::display_name;
use olmkit::object::GroupVersionKind;
use serde_json::{Map, Value, json};

use super::marker::{self, CSV, OnField};
use super::package::Package;
use super::plural::plural;
use super::source::{Field, Source, Type, TypeReference};
use super::{Description, Error};

/// The order of a kind whose marker has none.
const LAST: i64 = i32::MAX as i64;
/// Types within types.
const MOST_LEVELS: usize = 40;
/// Fields of one kind, counted by path.
const MOST_FIELDS: usize = 200_000;

/// The part of a path that represents an embedded type.
const INLINE: &str = "##inline##";
/// The part of a path that represents a field that is not serialized.
const IGNORED: &str = "##ignore##";

pub(super) fn all(packages: &[Package], kinds: &[GroupVersionKind]) -> Result<Vec<Description>, Error> {
    let mut found = Vec::new();
    for (at, package) in packages.iter().enumerate() {
        let Some((group, version)) = &package.group_version else {
            continue;
        };
        for kind in kinds {
            if kind.group != *group || kind.version != *version {
                continue;
            }
            let is_new = !found.iter().any(|known: &Description| known.kind == *kind);
            if let Some((source, kind_type)) = package.find(&kind.kind).filter(|_| is_new) {
                let reader = Reader {
                    packages,
                    root: at,
                    source,
                };
                found.push(reader.describe(kind, kind_type)?);
            }
        }
    }
    sort(&mut found);
    Ok(found)
}

/// Sorts by order, then by name, kind and version, the newest version first.
fn sort(descriptions: &mut [Description]) {
    let text = |one: &Description, field: &str| {
        one.entry
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    descriptions.sort_by(|one, other| {
        one.order
            .cmp(&other.order)
            .then_with(|| text(one, "name").cmp(&text(other, "name")))
            .then_with(|| text(one, "kind").cmp(&text(other, "kind")))
            .then_with(|| compare_versions(&text(other, "version"), &text(one, "version")))
    });
}

/// A field on its path from the kind.
#[derive(Clone)]
struct Placed<'a> {
    field: &'a Field,
    /// The file of the field.
    source: &'a Source,
    path: Vec<String>,
    /// The types around it.
    around: Vec<(usize, &'a str)>,
}

struct Reader<'a> {
    packages: &'a [Package],
    /// The package of the kind.
    root: usize,
    /// The file of the kind.
    source: &'a Source,
}

impl<'a> Reader<'a> {
    fn describe(&self, kind: &GroupVersionKind, found: &'a Type) -> Result<Description, Error> {
        let mut display = display_name(&kind.kind);
        let mut order = LAST;
        let mut resources: Vec<Vec<String>> = Vec::new();
        let mut name = String::new();
        for (line, text) in &found.markers {
            if let Some(arguments) = marker::arguments(text, CSV) {
                let own = marker::on_type(arguments).map_err(|reason| failure(self.source, *line, text, reason))?;
                order = own.order.unwrap_or(order);
                if !own.display_name.is_empty() {
                    display = own.display_name;
                }
                if let Some(short) = own.resources.iter().find(|resource| resource.len() < 2) {
                    let reason = format!("resource {short:?} needs a kind and a version");
                    return Err(failure(self.source, *line, text, reason));
                }
                resources.extend(own.resources);
            } else if let Some(path) = marker::arguments(text, "kubebuilder:resource").and_then(marker::resource_path) {
                name = format!("{path}.{}", kind.group);
            }
        }
        if name.is_empty() {
            name = format!("{}.{}", plural(&kind.kind.to_lowercase()), kind.group);
        }
        let mut entry = Map::new();
        if !found.documentation.is_empty() {
            entry.insert("description".into(), found.documentation.clone().into());
        }
        entry.insert("displayName".into(), display.into());
        entry.insert("kind".into(), kind.kind.clone().into());
        entry.insert("name".into(), name.into());
        if !resources.is_empty() {
            entry.insert("resources".into(), references(resources));
        }
        for (field, key) in [("spec", "specDescriptors"), ("status", "statusDescriptors")] {
            let descriptors = self.descriptors(found, field)?;
            if !descriptors.is_empty() {
                entry.insert(key.into(), descriptors.into());
            }
        }
        entry.insert("version".into(), kind.version.clone().into());
        Ok(Description {
            kind: kind.clone(),
            order,
            entry: Value::Object(entry),
        })
    }

    fn descriptors(&self, kind: &'a Type, section: &str) -> Result<Vec<Value>, Error> {
        // operator-sdk fails for a kind that has only a status.
        let is_section = |field: &&Field| json_tag(&field.tag).is_some_and(|(name, _)| name == section);
        let Some(start) = kind.fields.iter().find(is_section) else {
            return Ok(Vec::new());
        };
        let mut descriptors: Vec<(i64, String, Value)> = Vec::new();
        let mut count = 0;
        let mut open = vec![Placed {
            field: start,
            source: self.source,
            path: Vec::new(),
            around: Vec::new(),
        }];
        while let Some(placed) = open.pop() {
            for reference in &placed.field.types {
                for (package, name) in self.resolve(reference, placed.source) {
                    let Some((source, inner)) = self.packages.get(package).and_then(|package| package.find(&name))
                    else {
                        continue;
                    };
                    // operator-sdk does not end at a type that contains itself.
                    if placed.around.contains(&(package, inner.name.as_str())) {
                        continue;
                    }
                    count += inner.fields.len();
                    if placed.around.len() > MOST_LEVELS || count > MOST_FIELDS {
                        return Err(Error::TooMuch {
                            path: source.path.clone(),
                        });
                    }
                    for field in &inner.fields {
                        let mut next = Placed {
                            field,
                            source,
                            path: placed.path.clone(),
                            around: placed.around.clone(),
                        };
                        next.around.push((package, inner.name.as_str()));
                        next.path.push(segment(field));
                        descriptors.extend(descriptor(&next, section)?);
                        open.push(next);
                    }
                }
            }
        }
        descriptors.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        Ok(descriptors.into_iter().map(|(_, _, value)| value).collect())
    }

    /// The types that a reference may mean. All names are those of the kind's package, as in operator-sdk, which also takes the
    /// name behind an import for one of the package.
    fn resolve(&self, reference: &TypeReference, source: &Source) -> Vec<(usize, String)> {
        let own = (self.root, reference.name.clone());
        let Some(alias) = &reference.package else {
            return vec![own];
        };
        let mut found: Vec<(usize, String)> = Vec::new();
        found.extend(
            self.import(alias, source)
                .map(|package| (package, reference.name.clone())),
        );
        found.push(own);
        found
    }

    /// The package that an import of the kind's package names. If several files import something under the name, the file of the
    /// reference decides.
    fn import(&self, alias: &str, source: &Source) -> Option<usize> {
        let root = self.packages.get(self.root)?;
        let named = |import: &(Option<String>, String)| {
            let (name, path) = import;
            let own = match (name, self.position(path)) {
                (Some(name), _) => name.clone(),
                (None, Some(at)) => self
                    .packages
                    .get(at)
                    .map(|package| package.name.clone())
                    .unwrap_or_default(),
                (None, None) => path.rsplit('/').next().unwrap_or_default().to_owned(),
            };
            own == alias
        };
        let mut imports: Vec<(&Source, &String)> = Vec::new();
        for file in &root.sources {
            let found = file.imports.iter().filter(|import| named(import));
            imports.extend(found.map(|(_, path)| (file, path)));
        }
        let path = match imports.as_slice() {
            [(_, path)] => Some(*path),
            several => several
                .iter()
                .find(|(file, _)| file.path == source.path)
                .map(|(_, path)| *path),
        };
        self.position(path?)
    }

    fn position(&self, path: &str) -> Option<usize> {
        self.packages.iter().position(|package| package.import_path == path)
    }
}

/// The descriptor of a field with its order and path, if a marker asks for one in this section.
fn descriptor(placed: &Placed<'_>, section: &str) -> Result<Option<(i64, String, Value)>, Error> {
    let mut own: Vec<OnField> = Vec::new();
    for (line, text) in &placed.field.markers {
        if let Some(arguments) = marker::arguments(text, CSV) {
            own.push(marker::on_field(arguments).map_err(|reason| failure(placed.source, *line, text, reason))?);
        }
    }
    own.retain(|marker| marker.kind == section);
    let Some(path) = path(&placed.path).filter(|_| !own.is_empty()) else {
        return Ok(None);
    };
    let order = own.iter().rev().find_map(|marker| marker.order).unwrap_or(i64::MAX);
    let display = own
        .iter()
        .map(|marker| &marker.display_name)
        .find(|name| !name.is_empty());
    let display = display.cloned().unwrap_or_else(|| display_name(&placed.field.name));
    let descriptors: Vec<&String> = own.iter().flat_map(|marker| &marker.descriptors).collect();
    let mut value = Map::new();
    if !placed.field.documentation.is_empty() {
        value.insert("description".into(), placed.field.documentation.clone().into());
    }
    if !display.is_empty() {
        value.insert("displayName".into(), display.into());
    }
    value.insert("path".into(), path.clone().into());
    if !descriptors.is_empty() {
        value.insert("x-descriptors".into(), json!(descriptors));
    }
    Ok(Some((order, path, Value::Object(value))))
}

/// The part of a field in a path.
fn segment(field: &Field) -> String {
    let Some(first) = field.name.chars().next() else {
        return INLINE.into();
    };
    if first.is_lowercase() {
        return IGNORED.into();
    }
    let mut own = field.name.clone();
    if let Some((name, options)) = json_tag(&field.tag) {
        if options.iter().any(|option| option == "inline") {
            return INLINE.into();
        }
        if name == "-" && options.is_empty() {
            return IGNORED.into();
        }
        if !name.is_empty() {
            own = name;
        }
    }
    if field.is_list { format!("{own}[0]") } else { own }
}

/// The path of parts. None if the field has no place in the JSON.
fn path(parts: &[String]) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        match part.as_str() {
            IGNORED => return None,
            INLINE if is_last => return None,
            INLINE => {}
            part if is_last => kept.push(part.strip_suffix("[0]").unwrap_or(part)),
            part => kept.push(part),
        }
    }
    Some(kept.join("."))
}

/// Name and options of the `json` tag.
fn json_tag(tag: &str) -> Option<(String, Vec<String>)> {
    let mut rest = tag;
    loop {
        rest = rest.trim_start_matches(' ');
        let (key, after) = rest.split_once(':')?;
        if !after.starts_with('"') {
            return None;
        }
        let mut escaped = false;
        let end = after.char_indices().skip(1).find_map(|(at, character)| {
            let is_end = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            is_end.then_some(at + 1)
        })?;
        let (value, after) = after.split_at_checked(end)?;
        if key == "json" {
            let value = marker::unquote(value)?;
            let mut parts = value.split(',').map(str::to_owned);
            let name = parts.next().unwrap_or_default();
            return Some((name, parts.collect()));
        }
        rest = after;
    }
}

/// The resources of a kind, sorted by name, kind and version.
fn references(resources: Vec<Vec<String>>) -> Value {
    let mut all: Vec<[String; 3]> = resources
        .into_iter()
        .map(|resource| {
            let part = |at: usize| resource.get(at).map(|text| text.trim().to_owned()).unwrap_or_default();
            let name = if resource.len() == 3 { part(2) } else { String::new() };
            [name, part(0), part(1)]
        })
        .collect();
    all.sort_by(|[name, kind, version], [other_name, other_kind, other_version]| {
        (name, kind)
            .cmp(&(other_name, other_kind))
            .then_with(|| compare_versions(other_version, version))
    });
    let entries = all
        .into_iter()
        .map(|[name, kind, version]| json!({"kind": kind, "name": name, "version": version}));
    Value::Array(entries.collect())
}

/// Kubernetes' order of versions: `v10` after `v2`, `v1` after `v1beta1`, other strings before all versions.
fn compare_versions(one: &str, other: &str) -> Ordering {
    match (version_key(one), version_key(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Strings that are not versions are in reverse order.
        (None, None) => other.cmp(one),
    }
}

/// Stability, major and minor number.
fn version_key(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at_checked(end)?;
    let major = major.parse().ok()?;
    let level = |rest: &str, word: &str, rank: u8| {
        let minor = rest.strip_prefix(word)?;
        let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| (rank, major, minor.parse().unwrap_or(0)))
    };
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    level(rest, "beta", 1).or_else(|| level(rest, "alpha", 0))
}

fn failure(source: &Source, line: usize, marker: &str, reason: String) -> Error {
    Error::Marker {
        path: source.path.clone(),
        line: line + 1,
        marker: marker.to_owned(),
        reason,
    }
}
