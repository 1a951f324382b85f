//! Keys that OLM and opm ignore, because the blob's schema does not have them.

use olmkit_go::json::names_field;

use super::model::{BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE, UnknownKey};
use super::text::Value;
use olmkit_base::limits;
use olmkit_base::object::pointer_part;

/// Most unknown keys that are kept for each blob.
const MOST: usize = 100;

/// The keys below a value.
enum Shape {
    /// Any, such as the value of a property.
    Any,
    /// A map with these keys.
    Map(&'static [(&'static str, Shape)]),
    /// A list of such items.
    List(&'static Shape),
    /// Another shape, which may contain this one.
    See(&'static Shape),
    /// A property: a map whose type decides about its value.
    Property,
}

use Shape::{Any, List, Map, Property, See};

const PROPERTY_KEYS: [&str; 2] = ["type", "value"];
const PROPERTIES: Shape = List(&Property);

const PACKAGE_KEYS: Shape = Map(&[
    ("schema", Any),
    ("name", Any),
    ("package", Any),
    ("defaultChannel", Any),
    ("icon", Map(&[("base64data", Any), ("mediatype", Any)])),
    ("description", Any),
    ("properties", PROPERTIES),
]);
const CHANNEL_KEYS: Shape = Map(&[
    ("schema", Any),
    ("name", Any),
    ("package", Any),
    (
        "entries",
        List(&Map(&[
            ("name", Any),
            ("replaces", Any),
            ("skips", Any),
            ("skipRange", Any),
        ])),
    ),
    ("properties", PROPERTIES),
]);
const BUNDLE_KEYS: Shape = Map(&[
    ("schema", Any),
    ("name", Any),
    ("package", Any),
    ("image", Any),
    ("properties", PROPERTIES),
    ("relatedImages", List(&Map(&[("name", Any), ("image", Any)]))),
]);
const DEPRECATIONS_KEYS: Shape = Map(&[
    ("schema", Any),
    ("name", Any),
    ("package", Any),
    (
        "entries",
        List(&Map(&[
            ("message", Any),
            ("reference", Map(&[("schema", Any), ("name", Any)])),
        ])),
    ),
]);

const GVK: Shape = Map(&[("group", Any), ("kind", Any), ("version", Any)]);
const REQUIRED_PACKAGE: Shape = Map(&[("packageName", Any), ("versionRange", Any)]);
static CONSTRAINTS: Shape = Map(&[("constraints", List(&CONSTRAINT))]);
static CONSTRAINT: Shape = Map(&[
    ("failureMessage", Any),
    ("gvk", GVK),
    ("package", REQUIRED_PACKAGE),
    ("cel", Map(&[("rule", Any)])),
    ("all", See(&CONSTRAINTS)),
    ("any", See(&CONSTRAINTS)),
    ("not", See(&CONSTRAINTS)),
]);
const CSV_METADATA: Shape = Map(&[
    ("annotations", Any),
    ("apiServiceDefinitions", Any),
    ("crdDescriptions", Any),
    ("description", Any),
    ("displayName", Any),
    ("installModes", Any),
    ("keywords", Any),
    ("labels", Any),
    ("links", Any),
    ("maintainers", Any),
    ("maturity", Any),
    ("minKubeVersion", Any),
    ("nativeAPIs", Any),
    ("provider", Any),
]);
const PACKAGE_VALUE: Shape = Map(&[("packageName", Any), ("version", Any), ("release", Any)]);

/// The property types that OLM reads, with the shapes of their values.
static PROPERTY_TYPES: [(&str, &Shape); 12] = [
    ("olm.package", &PACKAGE_VALUE),
    ("olm.package.required", &REQUIRED_PACKAGE),
    ("olm.gvk", &GVK),
    ("olm.gvk.required", &GVK),
    ("olm.constraint", &CONSTRAINT),
    ("olm.csv.metadata", &CSV_METADATA),
    ("olm.bundle.object", &Any),
    ("olm.maxOpenShiftVersion", &Any),
    ("olm.substitutesFor", &Any),
    ("olm.deprecated", &Any),
    ("olm.label", &Any),
    ("olm.label.required", &Any),
];

/// The unknown keys of a blob, none for a custom schema.
pub fn unknown(schema: &str, value: &Value<'_>) -> Vec<UnknownKey> {
    let mut found = Vec::new();
    let shape = match schema {
        PACKAGE => &PACKAGE_KEYS,
        CHANNEL => &CHANNEL_KEYS,
        BUNDLE => &BUNDLE_KEYS,
        DEPRECATIONS => &DEPRECATIONS_KEYS,
        _ => return found,
    };
    walk(shape, value, &mut String::new(), &mut found);
    found
}

fn walk(shape: &Shape, value: &Value<'_>, pointer: &mut String, found: &mut Vec<UnknownKey>) {
    let length = pointer.len();
    match (shape, value) {
        (Map(keys), Value::Mapping(entries)) => {
            for (key, value) in entries {
                let known = keys.iter().find(|(name, _)| names_field(key, name));
                if let Some((_, Any)) = known {
                    continue;
                }
                pointer.push('/');
                pointer.push_str(&pointer_part(key));
                match known {
                    Some((_, shape)) => walk(shape, value, pointer, found),
                    None => add(
                        found,
                        pointer,
                        key,
                        nearest(key, keys.iter().map(|(name, _)| *name)),
                        false,
                    ),
                }
                pointer.truncate(length);
            }
        }
        (List(item), Value::Sequence(items)) => {
            for (index, value) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                walk(item, value, pointer, found);
                pointer.truncate(length);
            }
        }
        (See(shape), value) => walk(shape, value, pointer, found),
        (Property, Value::Mapping(entries)) => {
            let kind = entries.iter().find(|(key, _)| names_field(key, "type"));
            let kind = kind.and_then(|(_, value)| value.as_str()).unwrap_or_default();
            let known = PROPERTY_TYPES.iter().find(|(name, _)| *name == kind);
            for (key, value) in entries {
                pointer.push('/');
                pointer.push_str(&pointer_part(key));
                let name = PROPERTY_KEYS.iter().find(|name| names_field(key, name));
                match (name, known) {
                    (Some(&"value"), Some((_, shape))) => walk(shape, value, pointer, found),
                    (Some(&"type"), None) => {
                        if let Some(meant) = meant_type(kind) {
                            add(found, pointer, kind, Some(meant), true);
                        }
                    }
                    (Some(_), _) => {}
                    (None, _) => add(found, pointer, key, nearest(key, PROPERTY_KEYS.iter().copied()), false),
                }
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// Adds an unknown key or property type, unless there are very many.
fn add(found: &mut Vec<UnknownKey>, pointer: &str, key: &str, meant: Option<&'static str>, is_type: bool) {
    if found.len() < MOST {
        found.push(UnknownKey {
            pointer: limits::path(pointer),
            key: limits::name(key),
            meant,
            is_type,
        });
    }
}

/// The property type that was probably meant by another one, which differs in case or in a few characters.
fn meant_type(kind: &str) -> Option<&'static str> {
    if kind.len() > LONGEST {
        return None;
    }
    let lower = kind.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &lower);
    let known = PROPERTY_TYPES.iter().map(|(name, _)| (*name, distance(name)));
    Some(
        known
            .filter(|(_, distance)| *distance <= 2)
            .min_by_key(|(_, distance)| *distance)?
            .0,
    )
}

/// The known schema that was probably meant by another one: it differs in case or in a few characters.
pub fn meant_schema(schema: &str) -> Option<&'static str> {
    const KNOWN: [&str; 4] = [PACKAGE, CHANNEL, BUNDLE, DEPRECATIONS];
    let lower = schema.to_lowercase();
    if schema.len() > LONGEST {
        return None;
    }
    let is_close = |known: &&&str| {
        let bare = known.trim_start_matches("olm.");
        strsim::damerau_levenshtein(known, &lower) <= 2 || strsim::damerau_levenshtein(bare, &lower) <= 1
    };
    KNOWN.iter().find(is_close).copied()
}

/// Returns true if a schema has the prefix that is reserved for OLM.
pub fn is_reserved(schema: &str) -> bool {
    schema
        .get(..4)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("olm."))
}

/// Longer words are not considered misspelled keys.
const LONGEST: usize = 100;

fn nearest(key: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    if key.len() > LONGEST {
        return None;
    }
    let alike = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &key.to_lowercase());
    let names = known
        .map(|name| (name, alike(name)))
        .filter(|(_, alike)| *alike >= 0.85);
    Some(names.max_by(|left, right| left.1.total_cmp(&right.1))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::stream;

    fn found(schema: &str, text: &str) -> Vec<(String, Option<&'static str>)> {
        let value = stream::json(text).unwrap();
        unknown(schema, &value)
            .into_iter()
            .map(|key| (key.pointer, key.meant))
            .collect()
    }

    #[test]
    fn misspelled_keys_are_found_at_every_level() {
        assert_eq!(
            found(
                CHANNEL,
                r#"{"schema": "olm.channel", "pakage": "p", "entries": [{"name": "a"}, {"Name": "b", "skip": ["a"], "comment": 1}]}"#
            ),
            [
                ("/entries/1/comment".to_owned(), None),
                ("/entries/1/skip".to_owned(), Some("skips")),
                ("/pakage".to_owned(), Some("package")),
            ]
        );
        assert_eq!(
            found(
                BUNDLE,
                r#"{"relatedImage": [], "properties": [{"typ": "a", "value": {"anything": 1}}]}"#
            ),
            [
                ("/properties/0/typ".to_owned(), Some("type")),
                ("/relatedImage".to_owned(), Some("relatedImages")),
            ]
        );
        let properties = r#"{"properties": [
            {"type": "olm.gvk.require", "value": {"group": "a"}},
            {"type": "olm.package.required", "value": {"packageName": "p", "range": "1.x"}},
            {"type": "olm.constraint", "value": {"failureMesage": "x", "all": {"constraints": [{"gvk": {"kinds": 1}}]}}},
            {"type": "olm.csv.metadata", "value": {"displayNam": "x", "annotations": {"any": "y"}}},
            {"type": "olm.maxopenshiftversion", "value": "4.20"},
            {"type": "olm.maxOpenShiftVersion", "value": "4.20"},
            {"type": "example.com/any", "value": {"any": 1}}
        ]}"#;
        assert_eq!(
            found(BUNDLE, properties),
            [
                ("/properties/0/type".to_owned(), Some("olm.gvk.required")),
                ("/properties/1/value/range".to_owned(), None),
                (
                    "/properties/2/value/all/constraints/0/gvk/kinds".to_owned(),
                    Some("kind")
                ),
                ("/properties/2/value/failureMesage".to_owned(), Some("failureMessage")),
                ("/properties/3/value/displayNam".to_owned(), Some("displayName")),
                ("/properties/4/type".to_owned(), Some("olm.maxOpenShiftVersion")),
            ]
        );
        assert_eq!(
            found(
                DEPRECATIONS,
                r#"{"entries": [{"messages": "m", "reference": {"nam": "a"}}]}"#
            ),
            [
                ("/entries/0/messages".to_owned(), Some("message")),
                ("/entries/0/reference/nam".to_owned(), Some("name")),
            ]
        );
        assert_eq!(
            found(
                PACKAGE,
                r#"{"defaultchannel": "c", "icon": {"mediaType": "a", "data": ""}}"#
            ),
            [("/icon/data".to_owned(), None)]
        );
        assert_eq!(found("example.com/custom", r#"{"anything": 1}"#), []);
    }

    #[test]
    fn schemas_are_misspelled_or_custom() {
        assert_eq!(meant_schema("olm.chanel"), Some(CHANNEL));
        assert_eq!(meant_schema("Olm.Bundle"), Some(BUNDLE));
        assert_eq!(meant_schema("package"), Some(PACKAGE));
        assert_eq!(meant_schema("olm.deprecation"), Some(DEPRECATIONS));
        assert_eq!(meant_schema("io.openshift.operators.lifecycles.v1alpha1"), None);
        assert!(is_reserved("olm.catalog.deprecation") && is_reserved("OLM.x") && !is_reserved("olmx"));
    }
}
