//! Which schema keywords and formats a CustomResourceDefinition may hold.

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

/// Keywords that a schema inside `allOf`, `anyOf`, `oneOf` or `not` may hold: those that test a value. Everything that
/// specifies (type, defaults, descriptions) has its place outside.
/// Source: structural schemas, "Extend the Kubernetes API with CustomResourceDefinitions".
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

/// Formats the API server knows (apiextensions, `supportedFormats`) and that mean the same there as in schemars.
/// `duration` is missing on purpose: schemars means ISO 8601 ("PT1H"), the server means Go's ("1h") and would refuse
/// every value the program writes.
pub(super) const FORMATS: &[&str] = &[
    "bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "double", "email", "float",
    "hexcolor", "hostname", "int32", "int64", "ipv4", "ipv6", "isbn", "isbn10", "isbn13", "mac", "password",
    "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5",
];
