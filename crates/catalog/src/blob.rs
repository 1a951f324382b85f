//! Decodes a document to a blob: finds the schema and reads the known ones by type, with opm's error messages.

use super::decode::{Mismatch, Place, fields, string, strings};
use super::meta;
use super::model::{
    BUNDLE, Blob, Bundle, CHANNEL, Channel, ChannelEntry, Custom, DEPRECATIONS, Deprecation, DeprecationEntry, Icon,
    Origin, PACKAGE, PROPERTY_BUNDLE_OBJECT, Package, Property, RelatedImage,
};
use super::text::{Numbers, Value};
use olmkit_go::json::Html;
use olmkit_go::json::names_field;

/// The end of opm's message about a blob without a schema.
pub(super) const MISSING_SCHEMA: &str = "' is missing root schema field";

/// Reads a document as a blob.
///
/// # Errors
/// opm's message: no schema, a key twice in different case, a known schema with a field of the wrong type.
pub fn read(value: &Value<'_>, origin: Origin) -> Result<Blob, String> {
    let meta = meta::read(value)?;
    Ok(match meta.schema.as_str() {
        PACKAGE => Blob::Package(package(value, origin).map_err(|error| format!("parse package: {error}"))?),
        CHANNEL => Blob::Channel(channel(value, origin).map_err(|error| format!("parse channel: {error}"))?),
        BUNDLE => Blob::Bundle(bundle(value, origin).map_err(|error| format!("parse bundle: {error}"))?),
        DEPRECATIONS => {
            Blob::Deprecation(deprecation(value, origin).map_err(|error| format!("parse deprecation: {error}"))?)
        }
        "" => return Err(format!("object '{}{MISSING_SCHEMA}", json_line(value))),
        _ => Blob::Custom(Custom {
            schema: meta.schema,
            package: meta.package,
            name: meta.name,
            json: value.to_json(Numbers::Float64, Html::Plain),
            origin,
        }),
    })
}

/// A blob's JSON as opm keeps it. Empty for an empty document.
pub fn json_line(value: &Value<'_>) -> String {
    match value {
        Value::Null => String::new(),
        other => other.to_json(Numbers::Float64, Html::Plain) + "\n",
    }
}

fn package(value: &Value<'_>, origin: Origin) -> Result<Package, String> {
    let mut mismatch = Mismatch::default();
    let root = Place::root("declcfg.Package");
    let mut package = Package {
        origin,
        ..Package::default()
    };
    for (key, value) in fields(value, "declcfg.Package", &root, &mut mismatch) {
        let at = |field| root.field("Package", field);
        match key {
            key if names_field(key, "name") => string(value, &mut package.name, &at("name"), &mut mismatch),
            key if names_field(key, "defaultChannel") => {
                string(
                    value,
                    &mut package.default_channel,
                    &at("defaultChannel"),
                    &mut mismatch,
                );
            }
            key if names_field(key, "icon") => package.icon = icon(value, &at("icon"), &mut mismatch),
            key if names_field(key, "description") => {
                string(value, &mut package.description, &at("description"), &mut mismatch);
            }
            key if names_field(key, "properties") => {
                package.properties = properties(value, &at("properties"), &mut mismatch);
            }
            _ => {}
        }
    }
    mismatch.finish(package)
}

fn icon(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> Option<Icon> {
    if *value == Value::Null {
        return None;
    }
    let mut icon = Icon::default();
    for (key, value) in fields(value, "declcfg.Icon", place, mismatch) {
        if names_field(key, "base64data") {
            match value {
                Value::Null => icon.data = None,
                Value::String(text) => match olmkit_go::base64::decode(text) {
                    Ok(bytes) => icon.data = Some(normal_base64(text, &bytes)),
                    Err(error) => mismatch.report_text(error),
                },
                other => mismatch.report(other, "[]uint8", &place.field("Icon", "base64data")),
            }
        } else if names_field(key, "mediatype") {
            string(value, &mut icon.media_type, &place.field("Icon", "mediatype"), mismatch);
        }
    }
    Some(icon)
}

/// The string in its normal form: without the line ends that reading skips.
fn normal_base64(text: &str, bytes: &[u8]) -> String {
    use base64::Engine as _;
    if text.contains(['\r', '\n']) {
        base64::engine::general_purpose::STANDARD.encode(bytes)
    } else {
        text.to_owned()
    }
}

fn channel(value: &Value<'_>, origin: Origin) -> Result<Channel, String> {
    let mut mismatch = Mismatch::default();
    let root = Place::root("declcfg.Channel");
    let mut channel = Channel {
        origin,
        ..Channel::default()
    };
    for (key, value) in fields(value, "declcfg.Channel", &root, &mut mismatch) {
        let at = |field| root.field("Channel", field);
        match key {
            key if names_field(key, "name") => string(value, &mut channel.name, &at("name"), &mut mismatch),
            key if names_field(key, "package") => string(value, &mut channel.package, &at("package"), &mut mismatch),
            key if names_field(key, "entries") => {
                let place = at("entries");
                channel.entries = list(value, "[]declcfg.ChannelEntry", &place, &mut mismatch, channel_entry);
            }
            key if names_field(key, "properties") => {
                channel.properties = properties(value, &at("properties"), &mut mismatch);
            }
            _ => {}
        }
    }
    mismatch.finish(channel)
}

fn channel_entry(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> ChannelEntry {
    let mut entry = ChannelEntry::default();
    for (key, value) in fields(value, "declcfg.ChannelEntry", place, mismatch) {
        let at = |field| place.field("ChannelEntry", field);
        match key {
            key if names_field(key, "name") => string(value, &mut entry.name, &at("name"), mismatch),
            key if names_field(key, "replaces") => string(value, &mut entry.replaces, &at("replaces"), mismatch),
            key if names_field(key, "skips") => strings(value, &mut entry.skips, &at("skips"), mismatch),
            key if names_field(key, "skipRange") => string(value, &mut entry.skip_range, &at("skipRange"), mismatch),
            _ => {}
        }
    }
    entry
}

fn bundle(value: &Value<'_>, origin: Origin) -> Result<Bundle, String> {
    let mut mismatch = Mismatch::default();
    let root = Place::root("declcfg.Bundle");
    let mut bundle = Bundle {
        origin,
        ..Bundle::default()
    };
    for (key, value) in fields(value, "declcfg.Bundle", &root, &mut mismatch) {
        let at = |field| root.field("Bundle", field);
        match key {
            key if names_field(key, "name") => string(value, &mut bundle.name, &at("name"), &mut mismatch),
            key if names_field(key, "package") => string(value, &mut bundle.package, &at("package"), &mut mismatch),
            key if names_field(key, "image") => string(value, &mut bundle.image, &at("image"), &mut mismatch),
            key if names_field(key, "properties") => {
                bundle.properties = properties(value, &at("properties"), &mut mismatch);
            }
            key if names_field(key, "relatedImages") => {
                let place = at("relatedImages");
                bundle.related_images =
                    list(value, "[]declcfg.RelatedImage", &place, &mut mismatch, related_image).unwrap_or_default();
            }
            _ => {}
        }
    }
    mismatch.finish(bundle)
}

fn related_image(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> RelatedImage {
    let mut image = RelatedImage::default();
    for (key, value) in fields(value, "declcfg.RelatedImage", place, mismatch) {
        if names_field(key, "name") {
            string(value, &mut image.name, &place.field("RelatedImage", "name"), mismatch);
        } else if names_field(key, "image") {
            string(value, &mut image.image, &place.field("RelatedImage", "image"), mismatch);
        }
    }
    image
}

/// Reads a list of properties.
fn properties(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> Vec<Property> {
    list(value, "[]property.Property", place, mismatch, property).unwrap_or_default()
}

fn property(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> Property {
    let mut property = Property::default();
    for (key, value) in fields(value, "property.Property", place, mismatch) {
        if names_field(key, "type") {
            string(value, &mut property.kind, &place.field("Property", "type"), mismatch);
        } else if names_field(key, "value") {
            property.value = Some(value.to_json(Numbers::Float64, Html::Plain));
        }
    }
    property
}

fn deprecation(value: &Value<'_>, origin: Origin) -> Result<Deprecation, String> {
    let mut mismatch = Mismatch::default();
    let root = Place::root("declcfg.Deprecation");
    let mut deprecation = Deprecation {
        origin,
        ..Deprecation::default()
    };
    for (key, value) in fields(value, "declcfg.Deprecation", &root, &mut mismatch) {
        let at = |field| root.field("Deprecation", field);
        if names_field(key, "package") {
            string(value, &mut deprecation.package, &at("package"), &mut mismatch);
        } else if names_field(key, "entries") {
            let place = at("entries");
            deprecation.entries = list(
                value,
                "[]declcfg.DeprecationEntry",
                &place,
                &mut mismatch,
                deprecation_entry,
            );
        }
    }
    mismatch.finish(deprecation)
}

fn deprecation_entry(value: &Value<'_>, place: &Place<'_>, mismatch: &mut Mismatch) -> DeprecationEntry {
    let mut entry = DeprecationEntry::default();
    for (key, value) in fields(value, "declcfg.DeprecationEntry", place, mismatch) {
        if names_field(key, "message") {
            string(
                value,
                &mut entry.message,
                &place.field("DeprecationEntry", "message"),
                mismatch,
            );
        } else if names_field(key, "reference") {
            let place = place.field("DeprecationEntry", "reference");
            for (key, value) in fields(value, "declcfg.PackageScopedReference", &place, mismatch) {
                if names_field(key, "schema") {
                    string(
                        value,
                        &mut entry.schema,
                        &place.field("PackageScopedReference", "schema"),
                        mismatch,
                    );
                } else if names_field(key, "name") {
                    string(
                        value,
                        &mut entry.name,
                        &place.field("PackageScopedReference", "name"),
                        mismatch,
                    );
                }
            }
        }
    }
    entry
}

/// Reads a list, item by item. `None` for `null` and for anything but a list.
fn list<T>(
    value: &Value<'_>,
    wanted: &str,
    place: &Place<'_>,
    mismatch: &mut Mismatch,
    item: impl Fn(&Value<'_>, &Place<'_>, &mut Mismatch) -> T,
) -> Option<Vec<T>> {
    match value {
        Value::Null => None,
        Value::Sequence(items) => Some(items.iter().map(|value| item(value, place, mismatch)).collect()),
        other => {
            mismatch.report(other, wanted, place);
            None
        }
    }
}

/// Checks the inline objects of a bundle, which opm converts to JSON when it reads a catalog.
///
/// # Errors
/// opm's error for the first object that is not base64 of JSON or YAML.
pub fn check_objects(bundle: &Bundle) -> Result<(), String> {
    for (index, property) in bundle.properties.iter().enumerate() {
        if property.kind == PROPERTY_BUNDLE_OBJECT {
            super::objects::decode(property).map_err(|error| {
                let Bundle { package, name, .. } = bundle;
                format!(
                    "read bundle objects: package \"{package}\", bundle \"{name}\": {}",
                    error.at(index)
                )
            })?;
        }
    }
    Ok(())
}
