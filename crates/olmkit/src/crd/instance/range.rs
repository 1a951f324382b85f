//! Numeric ranges of a type and a format, as the API server validates them since Kubernetes 1.36. Earlier releases
//! ignore the formats of numbers.

use serde_json::Value;

/// The numbers of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// Whole numbers of 32 bits.
    Int32,
    /// Whole numbers of 64 bits.
    Int64,
    /// Numbers that do not overflow in single precision.
    Float,
    /// All numbers.
    Any,
}

impl Range {
    /// The numbers that type and format of a schema allow.
    pub(super) fn of(schema: &Value) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), text("format")) {
            ("integer", "int32") => Self::Int32,
            ("integer", _) => Self::Int64,
            ("number", "float") => Self::Float,
            _ => Self::Any,
        }
    }

    /// Returns true if a number is in the range. The server prints a floating-point number and parses it as one of the
    /// format, so the bound 9223372036854775807, which it stores in floating point, does not fit 64 bits.
    pub(super) fn holds(self, number: f64) -> bool {
        match self {
            Self::Int32 => number.to_string().parse::<i32>().is_ok(),
            Self::Int64 => number.to_string().parse::<i64>().is_ok(),
            #[expect(clippy::cast_possible_truncation, reason = "that is the question")]
            Self::Float => (number as f32).is_finite(),
            Self::Any => true,
        }
    }

    /// Name of a number in the range.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Int32 => "32-bit integer",
            Self::Int64 => "64-bit integer",
            Self::Float => "number in single precision",
            Self::Any => "number",
        }
    }
}

/// Bounds of a schema that are outside its own type and format, with their keywords and the correct range.
pub(crate) fn impossible_bounds(schema: &Value) -> Vec<(&'static str, f64, &'static str)> {
    const KEYWORDS: [&str; 3] = ["minimum", "maximum", "multipleOf"];
    if !KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Vec::new();
    }
    let range = Range::of(schema);
    KEYWORDS
        .into_iter()
        .filter_map(|keyword| {
            let bound = schema.get(keyword)?.as_f64()?;
            (!range.holds(bound)).then_some((keyword, bound, range.name()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_are_those_of_the_format() {
        for (kind, format, fits, does_not) in [
            ("integer", "int32", 2_147_483_647.0, 2_147_483_648.0),
            ("integer", "int64", -9e18, 9_223_372_036_854_775_807.0),
            ("integer", "", 4_294_967_295.0, 0.5),
            ("number", "float", 3.4e38, 3.5e38),
        ] {
            let range = Range::of(&json!({"type": kind, "format": format}));
            assert!(range.holds(fits), "{kind} {format} {fits}");
            assert!(!range.holds(does_not), "{kind} {format} {does_not}");
        }
        let text = Range::of(&json!({"type": "number", "format": "int32"}));
        assert!(text.holds(1e300) && text.holds(0.5));
    }

    #[test]
    fn impossible_bounds_are_named() {
        let schema = json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 4_294_967_295_u32});
        assert_eq!(
            impossible_bounds(&schema),
            [("maximum", 4_294_967_295.0, "32-bit integer")]
        );
        assert_eq!(
            impossible_bounds(&json!({"type": "integer", "format": "int64", "maximum": 4_294_967_295_u32})),
            []
        );
    }
}
