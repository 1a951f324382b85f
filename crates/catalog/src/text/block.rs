//! Values that borrow from the input, from the quick reader of [`olmkit_yaml`].

use std::borrow::Cow;

use super::value::Value;
use olmkit_yaml::Style;
use olmkit_yaml::block::{self, Build, Place, Scalar, Span};
use olmkit_yaml::resolve::{Scalar as Resolved, resolve_plain};

/// Reads one document, or returns `None`. The input must contain only LF line ends.
pub fn read(text: &str) -> Option<Value<'_>> {
    block::read(text, Values)
}

struct Values;

impl<'a> Build<'a> for Values {
    type Key = Cow<'a, str>;
    type Value = Value<'a>;

    /// Keys that are not strings and merges are left to the full reader.
    fn key(&mut self, scalar: Scalar<'a>) -> Option<Cow<'a, str>> {
        let text = scalar.style != Style::Plain || resolve_plain(&scalar.text).1 == Resolved::Text;
        (text && scalar.text != "<<").then_some(scalar.text)
    }

    fn scalar(&mut self, scalar: Scalar<'a>) -> Option<Value<'a>> {
        if scalar.style != Style::Plain {
            return Some(Value::String(scalar.text));
        }
        Some(match resolve_plain(&scalar.text).1 {
            Resolved::Value(olmkit_yaml::Value::Null) => Value::Null,
            Resolved::Value(olmkit_yaml::Value::Bool(value)) => Value::Bool(value),
            Resolved::Value(olmkit_yaml::Value::Integer(value)) => Value::Integer(value),
            Resolved::Value(olmkit_yaml::Value::Unsigned(value)) => Value::Unsigned(value),
            // JSON has no `.inf` and `.nan`: the full reader has the error.
            Resolved::Value(olmkit_yaml::Value::Float(value)) if value.is_finite() => Value::Float(value),
            Resolved::Value(_) => return None,
            Resolved::Text => Value::String(scalar.text),
        })
    }

    fn nothing(&mut self, _: Place) -> Value<'a> {
        Value::Null
    }

    fn sequence(&mut self, items: Vec<Value<'a>>, _: Span, _: Style) -> Value<'a> {
        Value::Sequence(items)
    }

    fn mapping(&mut self, entries: Vec<(Cow<'a, str>, Value<'a>)>, _: Span, _: Style) -> Option<Value<'a>> {
        Some(Value::mapping(entries))
    }
}
