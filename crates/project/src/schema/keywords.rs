//! Schema keywords and formats that a CustomResourceDefinition may contain.

use olmkit_base::object::is_string_format;

/// The keywords of `JSONSchemaProps` that the API server accepts and acts on. Others are dropped.
pub(super) const KEPT: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Keywords that a schema inside `allOf`, `anyOf`, `oneOf` or `not` may contain: value validations. Specifications
/// (type, defaults, descriptions) belong outside. Source: structural schemas, "Extend the Kubernetes API with
/// CustomResourceDefinitions".
pub(super) const VALUE_VALIDATIONS: &[&str] = &[
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "x-kubernetes-validations",
];

/// Returns true if the API server supports a format with the same meaning as in schemars. `duration` is not one of them:
/// schemars means ISO 8601 ("PT1H"). The server means Go's durations ("1h"), and would reject every value that the
/// program writes.
pub(super) fn is_kept_format(name: &str) -> bool {
    matches!(name, "double" | "float" | "int32" | "int64") || name != "duration" && is_string_format(name)
}
