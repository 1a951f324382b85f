//! Numeric ranges of a type and a format, as the API server validates them since Kubernetes 1.36. Earlier releases
//! ignore the formats of numbers.

use serde_json::Value;

use super::flag;

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
    /// The numbers that the types and the format of a schema allow. Several types allow all numbers.
    pub(super) fn new(types: &[&str], format: &str) -> Self {
        match (types, format) {
            (["integer"], "int32") => Self::Int32,
            (["integer"], _) => Self::Int64,
            (["number"], "float") => Self::Float,
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

    /// Bounds that no number of a schema with this range satisfies, with their keywords and the correct range.
    pub(super) fn impossible_bounds(self, schema: &Value, types: &[&str]) -> Vec<(&'static str, f64, &'static str)> {
        let allows_numbers = types.is_empty() || types.iter().any(|kind| matches!(*kind, "integer" | "number"));
        KEYWORDS
            .into_iter()
            .filter_map(|keyword| {
                let bound = schema.get(keyword)?.as_f64()?;
                if allows_numbers && keyword == "multipleOf" && bound <= 0.0 {
                    return Some((keyword, bound, "positive number"));
                }
                (!self.holds(bound)).then_some((keyword, bound, self.name()))
            })
            .collect()
    }
}

/// Keywords with a number that the API server compares with numbers.
const KEYWORDS: [&str; 3] = ["minimum", "maximum", "multipleOf"];

/// The types that the API server checks in objects: `x-kubernetes-int-or-string` replaces the declared type.
pub(super) fn types_of_objects(schema: &Value) -> &'static [&'static str] {
    if flag(schema, "x-kubernetes-int-or-string") {
        &["integer", "string"]
    } else {
        declared_types(schema)
    }
}

/// The declared type of a schema. Any value fits an empty list.
pub(super) fn declared_types(schema: &Value) -> &'static [&'static str] {
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => &["array"],
        Some("boolean") => &["boolean"],
        Some("integer") => &["integer"],
        Some("number") => &["number"],
        Some("object") => &["object"],
        Some("string") => &["string"],
        _ => &[],
    }
}

/// Bounds that reject each number in an object, with their keywords and the correct range.
pub(crate) fn impossible_bounds(schema: &Value) -> Vec<(&'static str, f64, &'static str)> {
    if !KEYWORDS.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Vec::new();
    }
    let types = types_of_objects(schema);
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    Range::new(types, format).impossible_bounds(schema, types)
}

/// Returns true if a value is an integer for the API server.
pub(super) fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_whole)
}

/// Returns true if a floating-point number is an integer or nearly one, and exact.
fn is_whole(number: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let rounded = number.round();
    number.abs() <= LARGEST && (number - rounded).abs() <= 1e-9 * rounded.abs()
}

/// Returns true if a number is a multiple of a positive step. The server divides integers by the integer part of the step.
pub(super) fn is_multiple(integer: Option<i64>, value: f64, step: f64) -> bool {
    if let Some(integer) = integer {
        #[expect(clippy::cast_possible_truncation, reason = "as the API server does")]
        let step = if step < 9.2e18 { step as i64 } else { 0 };
        return step > 0 && integer % step == 0;
    }
    is_whole(if step < 1.0 { 1.0 / step * value } else { value / step })
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
            let range = Range::new(&[kind], format);
            assert!(range.holds(fits), "{kind} {format} {fits}");
            assert!(!range.holds(does_not), "{kind} {format} {does_not}");
        }
        let range = Range::new(&["number"], "int32");
        assert!(range.holds(1e300) && range.holds(0.5));
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
