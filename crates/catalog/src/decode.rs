//! Typed reading of JSON values with the rules and the error messages of Go's `encoding/json`.
//!
//! Field names match without regard to case, `null` does not change a field, the first mismatch is the reported error,
//! and reading continues after it.

use super::text::Value;
use olmkit_go::json;

/// Position in the Go structs of the value being read, for error messages.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    /// The Go type's name: `Channel`.
    structure: &'static str,
    /// The JSON name of the field: `entries`. Empty at the root.
    field: &'static str,
}

impl<'a> Place<'a> {
    /// The root: a Go type with its package, as in `property.GVK`.
    pub const fn root(structure: &'static str) -> Self {
        Place {
            parent: None,
            structure,
            field: "",
        }
    }

    /// A field of the struct `structure` that is read at this place.
    pub fn field(&'a self, structure: &'static str, field: &'static str) -> Place<'a> {
        Place {
            parent: Some(self),
            structure,
            field,
        }
    }

    fn path(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.path(out);
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(self.field);
        }
    }
}

/// Collects the first mismatch.
#[derive(Debug, Default)]
pub struct Mismatch(Option<String>);

impl Mismatch {
    /// Reports a value that does not fit the Go type `wanted`.
    pub fn report(&mut self, value: &Value<'_>, wanted: &str, place: &Place<'_>) {
        if self.0.is_some() {
            return;
        }
        let kind = value.go_kind();
        self.0 = Some(match place.parent {
            None => json::mismatch(kind, "value", place.structure),
            Some(_) => {
                let mut path = String::new();
                place.path(&mut path);
                json::mismatch(kind, &format!("struct field {}.{path}", place.structure), wanted)
            }
        });
    }

    /// Reports an error with its own message.
    pub fn report_text(&mut self, text: impl Into<String>) {
        self.0.get_or_insert_with(|| text.into());
    }

    /// Returns true if something did not fit.
    pub fn found(&self) -> bool {
        self.0.is_some()
    }

    /// The result, or the first mismatch.
    ///
    /// # Errors
    /// Go's message for the first mismatch.
    pub fn finish<T>(self, value: T) -> Result<T, String> {
        self.0.map_or(Ok(value), Err)
    }
}

/// Reads a string field.
pub fn string(value: &Value<'_>, out: &mut String, place: &Place<'_>, mismatch: &mut Mismatch) {
    match value {
        Value::Null => {}
        Value::String(text) => *out = text.as_ref().to_owned(),
        other => mismatch.report(other, "string", place),
    }
}

/// Reads a list of strings.
pub fn strings(value: &Value<'_>, out: &mut Vec<String>, place: &Place<'_>, mismatch: &mut Mismatch) {
    match value {
        Value::Null => out.clear(),
        Value::Sequence(items) => {
            *out = items
                .iter()
                .map(|item| {
                    let mut text = String::new();
                    string(item, &mut text, place, mismatch);
                    text
                })
                .collect();
        }
        other => mismatch.report(other, "[]string", place),
    }
}

/// The entries of a value that Go reads into a struct. Nothing if it is not a map.
pub fn fields<'v, 'a>(
    value: &'v Value<'a>,
    wanted: &str,
    place: &Place<'_>,
    mismatch: &mut Mismatch,
) -> &'v [(std::borrow::Cow<'a, str>, Value<'a>)] {
    match value {
        Value::Mapping(entries) => entries,
        Value::Null => &[],
        other => {
            mismatch.report(other, wanted, place);
            &[]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatches_read_as_in_go() {
        let root = Place::root("declcfg.Channel");
        let entries = root.field("Channel", "entries");
        let replaces = entries.field("ChannelEntry", "replaces");
        let mut mismatch = Mismatch::default();
        string(&Value::Integer(1), &mut String::new(), &replaces, &mut mismatch);
        assert_eq!(
            mismatch.finish(()).unwrap_err(),
            "json: cannot unmarshal number into Go struct field ChannelEntry.entries.replaces of type string"
        );
    }
}
