//! Properties of a bundle, read and printed as Go does it.

use serde_json::Value;
use serde_json::value::RawValue;

/// A property of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Property {
    pub kind: String,
    /// Compact JSON.
    pub value: String,
}

impl Property {
    /// As Go prints it inside a list.
    pub(super) fn json(&self) -> String {
        format!(
            "{{\"type\":{},\"value\":{}}}",
            olmkit_go::json::string(&self.kind),
            self.value
        )
    }
}

/// The properties of an annotation.
pub(super) fn parse(text: &str) -> Result<Vec<Property>, String> {
    if let Err(error) = olmkit_go::json::check(text) {
        return Err(error.message);
    }
    let entries: Option<Vec<&RawValue>> = serde_json::from_str(text).map_err(|_| {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let kind = olmkit_go::json::kind(&value);
        format!("json: cannot unmarshal {kind} into Go value of type []property.Property")
    })?;
    entries
        .unwrap_or_default()
        .into_iter()
        .map(|entry| {
            let value: Value = serde_json::from_str(entry.get()).unwrap_or_default();
            let mut property = property(&value)?;
            // The value is kept as written, without spaces.
            if let Ok(Raw { value: Some(raw) }) = serde_json::from_str(entry.get()) {
                property.value = compact(raw.get());
            }
            Ok(property)
        })
        .collect()
}

#[derive(serde::Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// JSON without spaces, and with HTML characters escaped, as Go prints raw JSON.
fn compact(json: &str) -> String {
    let (mut out, mut in_text, mut escaped) = (String::with_capacity(json.len()), false, false);
    for letter in json.chars() {
        match letter {
            ' ' | '\t' | '\n' | '\r' if !in_text => continue,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
        if letter == '"' && !escaped {
            in_text = !in_text;
        }
        escaped = in_text && letter == '\\' && !escaped;
    }
    out
}

/// One property.
pub(super) fn property(value: &Value) -> Result<Property, String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Err("invalid property: type not set".to_owned()),
        other => {
            let kind = olmkit_go::json::kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type property.property"
            ));
        }
    };
    let kind = match fields.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => {
            let kind = olmkit_go::json::kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field property.type of type string"
            ));
        }
    };
    if kind.is_empty() {
        return Err("invalid property: type not set".to_owned());
    }
    match fields.get("value") {
        None | Some(Value::Null) => Err("invalid property: value not set".to_owned()),
        Some(value) => Ok(Property {
            kind,
            value: olmkit_go::json::marshal(value),
        }),
    }
}
