//! The table of Go types that the reference tools decode manifests into.
//!
//! The fields of a ClusterServiceVersion or a CustomResourceDefinition, their types, and their order determine which
//! values those tools accept and which messages they print. `structs.txt` contains that table. `dev/go-types` prints it
//! from the Go packages (operator-framework/api v0.34.0, Kubernetes 0.33.9).

pub mod convert;
pub mod decode;
pub mod encode;
pub mod restore;
pub mod zero;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

/// JSON decoding of a Go type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A string type with its Go name.
    Text(&'static str),
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `float64`.
    Float64,
    /// `[]byte`, base64 in JSON.
    Bytes,
    /// A slice.
    List(Box<Type>),
    /// A map with string keys.
    Map(Box<Type>),
    /// A pointer.
    Pointer(Box<Type>),
    /// A struct: index into [`Structs`].
    Struct(usize),
    /// A type with a custom JSON decoder.
    Custom(Custom),
}

/// Types with a custom JSON decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Custom {
    /// Any JSON value, unchanged, with the type's Go name: `json.RawMessage`, `v1.JSON`, `v1.FieldsV1`.
    Any(&'static str),
    /// `intstr.IntOrString`.
    IntOrString,
    /// `resource.Quantity`.
    Quantity,
    /// `metav1.Time`.
    Time,
    /// `spec.version` of a ClusterServiceVersion.
    OperatorVersion,
    /// `JSONSchemaPropsOrBool` over the given schema struct.
    SchemaOrBool(usize),
    /// `JSONSchemaPropsOrArray`.
    SchemaOrList(usize),
    /// `JSONSchemaPropsOrStringArray`.
    SchemaOrNames(usize),
}

/// One field of a struct.
#[derive(Debug, Clone)]
pub struct Field {
    /// The JSON name, or the Go name of an embedded struct.
    pub name: &'static str,
    /// True for an embedded struct, whose fields belong to the struct around it.
    pub embedded: bool,
    /// True when an empty value is not printed.
    pub omit_empty: bool,
    /// The field's type.
    pub kind: Type,
    /// The Go name of the type if it is a named list or map, such as `v1.ResourceList`.
    pub named: Option<&'static str>,
}

/// One struct type.
#[derive(Debug, Clone)]
pub struct Struct {
    /// The bare type name, before a field path in error messages.
    pub name: &'static str,
    /// The type name with its package, after `of type` in error messages.
    pub go_name: &'static str,
    /// The fields in source order.
    pub fields: Vec<Field>,
    /// JSON name to the fields that lead there: embedded structs, then the field.
    pub by_name: HashMap<&'static str, Vec<usize>>,
}

impl Struct {
    /// The field with an exact JSON name, without those of embedded structs.
    pub fn own_field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// All structs. A struct is parsed when it is first used: most bundles need few of them.
#[derive(Debug)]
pub struct Structs {
    heads: Vec<Head>,
    structs: Vec<OnceLock<Struct>>,
    /// `Type::Struct` of each struct, so that a type can be lent out.
    types: Vec<Type>,
    index: HashMap<&'static str, usize>,
    /// True if an unset time is omitted instead of printed as null.
    omits_zero_times: bool,
}

/// A struct in the table.
#[derive(Debug, Clone, Copy)]
struct Head {
    key: &'static str,
    go_name: &'static str,
    /// One line for each field.
    fields: &'static str,
}

/// Structs of bundle metadata, which are small enough to be written here.
const METADATA: &str = "\
AnnotationMetadata bundle.AnnotationMetadata
 annotations {}string
AnnotationsFile manifests.AnnotationsFile
 annotations ManifestsAnnotations
ManifestsAnnotations manifests.Annotations
 operators.operatorframework.io.bundle.package.v1 string
 operators.operatorframework.io.bundle.channels.v1 string
 operators.operatorframework.io.bundle.channel.default.v1 string
DependenciesFile registry.DependenciesFile
 dependencies []Dependency
Dependency registry.Dependency
 type string
 value !RawMessage
GVKDependency registry.GVKDependency
 group string
 kind string
 version string
PackageDependency registry.PackageDependency
 packageName string
 version string
LabelDependency registry.LabelDependency
 label string
CelConstraint registry.CelConstraint
 cel *Cel
Cel registry.Cel
 rule string
CSVMetadata property.CSVMetadata
 annotations? {}string
 apiServiceDefinitions? APIServiceDefinitions
 crdDescriptions? CustomResourceDefinitions
 description? string
 displayName? string
 installModes? []InstallMode
 keywords? []string
 labels? {}string
 links? []AppLink
 maintainers? []Maintainer
 maturity? string
 minKubeVersion? string
 nativeAPIs? []GroupVersionKind
 provider? AppLink
PackageProperty property.Property
 type string
 value string
PropertiesFile source.RegistryV1Properties
 properties []!RawMessage
CategoriesFile struct
 categories []string
scorecard.Configuration v1alpha3.Configuration
 kind string
 apiVersion string
 metadata scorecard.Metadata
 stages []scorecard.StageConfiguration
 storage scorecard.Storage
 serviceaccount string
scorecard.Metadata struct
 name string
scorecard.StageConfiguration v1alpha3.StageConfiguration
 parallel bool
 tests []scorecard.TestConfiguration
scorecard.TestConfiguration v1alpha3.TestConfiguration
 image string
 uniqueID string
 entrypoint []string
 labels {}string
 storage scorecard.Storage
scorecard.Storage v1alpha3.Storage
 spec scorecard.StorageSpec
scorecard.StorageSpec v1alpha3.StorageSpec
 mountPath scorecard.MountPath
scorecard.MountPath v1alpha3.MountPath
 path string
";

static STRUCTS: LazyLock<Structs> = LazyLock::new(|| Structs::parse(&[include_str!("structs.txt"), METADATA]));

/// Additions of Kubernetes 0.36, with which OLM v1 is built: a later struct of the same name replaces the earlier one.
static NEWER: LazyLock<Structs> = LazyLock::new(|| Structs {
    omits_zero_times: true,
    ..STRUCTS.with(include_str!("structs-0.36.txt"))
});

/// The table.
pub fn structs() -> &'static Structs {
    &STRUCTS
}

/// The table of the types that OLM v1 1.11 decodes bundles into (Kubernetes 0.36).
pub fn newer() -> &'static Structs {
    &NEWER
}

impl Structs {
    /// The struct type with a table name, for example `ClusterServiceVersion` or `v1beta1.CustomResourceDefinition`.
    pub fn get(&self, key: &str) -> Option<&Type> {
        self.index.get(key).and_then(|&index| self.types.get(index))
    }

    /// The struct with a table name.
    pub fn structure(&self, key: &str) -> Option<&Struct> {
        self.at(*self.index.get(key)?)
    }

    /// The name of a type in Go's error messages.
    pub fn go_name(&self, kind: &Type) -> String {
        match kind {
            Type::Text(name) => (*name).to_string(),
            Type::Bool => "bool".to_string(),
            Type::Int32 => "int32".to_string(),
            Type::Int64 => "int64".to_string(),
            Type::Float64 => "float64".to_string(),
            Type::Bytes => "[]uint8".to_string(),
            Type::List(inner) => format!("[]{}", self.go_name(inner)),
            Type::Map(inner) => format!("map[string]{}", self.go_name(inner)),
            Type::Pointer(inner) => format!("*{}", self.go_name(inner)),
            Type::Struct(at) => self.at(*at).map_or_else(String::new, |entry| entry.go_name.to_string()),
            Type::Custom(custom) => match custom {
                Custom::Any(go_name) => (*go_name).to_string(),
                Custom::IntOrString => "intstr.IntOrString".to_string(),
                Custom::Quantity => "resource.Quantity".to_string(),
                Custom::Time => "v1.Time".to_string(),
                Custom::OperatorVersion => "version.OperatorVersion".to_string(),
                Custom::SchemaOrBool(_) => "v1.JSONSchemaPropsOrBool".to_string(),
                Custom::SchemaOrList(_) => "v1.JSONSchemaPropsOrArray".to_string(),
                Custom::SchemaOrNames(_) => "v1.JSONSchemaPropsOrStringArray".to_string(),
            },
        }
    }

    /// The number of structs.
    pub fn count(&self) -> usize {
        self.structs.len()
    }

    /// A struct by its index.
    pub fn at(&self, index: usize) -> Option<&Struct> {
        Some(self.structs.get(index)?.get_or_init(|| self.parse_struct(index)))
    }

    /// The type of the field with an exact JSON name.
    pub fn field<'t>(&'t self, entry: &'t Struct, name: &str) -> Option<&'t Type> {
        self.along(entry, entry.by_name.get(name)?)
    }

    /// The type of the field that a path of [`Struct::by_name`] leads to.
    pub fn along<'t>(&'t self, entry: &'t Struct, path: &[usize]) -> Option<&'t Type> {
        let mut at = entry;
        let mut kind = None;
        for step in path {
            let field = at.fields.get(*step)?;
            kind = Some(&field.kind);
            if let Type::Struct(inner) = field.kind {
                at = self.at(inner)?;
            }
        }
        kind
    }

    fn parse(tables: &[&'static str]) -> Self {
        let heads: Vec<Head> = tables.iter().flat_map(|table| parse_heads(table)).collect();
        let index = heads.iter().enumerate().map(|(at, head)| (head.key, at)).collect();
        Self::of(heads, index)
    }

    /// These structs and those of a table.
    fn with(&self, table: &'static str) -> Self {
        let (mut heads, mut index) = (self.heads.clone(), self.index.clone());
        for head in parse_heads(table) {
            index.insert(head.key, heads.len());
            heads.push(head);
        }
        Self::of(heads, index)
    }

    fn of(heads: Vec<Head>, index: HashMap<&'static str, usize>) -> Self {
        Self {
            structs: heads.iter().map(|_| OnceLock::new()).collect(),
            types: (0..heads.len()).map(Type::Struct).collect(),
            heads,
            index,
            omits_zero_times: false,
        }
    }

    /// Returns true if an unset time is omitted instead of printed as null.
    pub fn omits_zero_times(&self) -> bool {
        self.omits_zero_times
    }

    fn parse_struct(&self, at: usize) -> Struct {
        let (key, go_name, lines) = self
            .heads
            .get(at)
            .map_or(("", "", ""), |head| (head.key, head.go_name, head.fields));
        let fields: Vec<Field> = lines.lines().map(|line| self.parse_field(line)).collect();
        let mut by_name = HashMap::with_capacity(fields.len());
        self.collect_names(&fields, &mut Vec::new(), &mut by_name);
        Struct {
            name: key.rsplit('.').next().unwrap_or(key),
            go_name,
            fields,
            by_name,
        }
    }

    fn parse_field(&self, line: &'static str) -> Field {
        let line = line.trim_start_matches(' ');
        let (name, kind) = line.split_once(' ').unwrap_or((line, ""));
        let (name, embedded) = name.strip_prefix('<').map_or((name, false), |name| (name, true));
        let (name, omit_empty) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
        let bare = kind.trim_start_matches('*');
        let named = bare
            .strip_prefix(['[', '{'])
            .and_then(|rest| rest.split([']', '}']).next())
            .filter(|name| !name.is_empty());
        Field {
            name,
            embedded,
            omit_empty,
            kind: parse_type(kind, &self.index),
            named,
        }
    }

    /// Field names as encoding/json sees them: those of embedded structs belong to the outer struct, the outer ones win.
    fn collect_names(&self, fields: &[Field], path: &mut Vec<usize>, names: &mut HashMap<&'static str, Vec<usize>>) {
        for (position, field) in fields.iter().enumerate() {
            path.push(position);
            match (&field.kind, field.embedded) {
                (Type::Struct(inner), true) => {
                    let inner = self.at(*inner).map_or(&[][..], |inner| &inner.fields);
                    self.collect_names(inner, path, names);
                }
                _ => {
                    let shorter = names.get(field.name).is_none_or(|known| known.len() > path.len());
                    if shorter {
                        names.insert(field.name, path.clone());
                    }
                }
            }
            path.pop();
        }
    }
}

/// Finds the structs in a table: an unindented line names one, the lines below are its fields.
fn parse_heads(table: &'static str) -> Vec<Head> {
    let mut heads = Vec::new();
    let mut rest = table;
    while let Some((line, below)) = rest.split_once('\n') {
        let mut end = 0;
        while below.get(end..).is_some_and(|fields| fields.starts_with(' ')) {
            let line = below.as_bytes().get(end..).unwrap_or_default();
            end += memchr::memchr(b'\n', line).map_or(line.len(), |length| length + 1);
        }
        let (fields, behind) = below.split_at_checked(end).unwrap_or((below, ""));
        if let Some((key, go_name)) = line.split_once(' ') {
            heads.push(Head { key, go_name, fields });
        }
        rest = behind;
    }
    heads
}

fn parse_type(text: &'static str, index: &HashMap<&'static str, usize>) -> Type {
    let inner = |rest: &'static str| Box::new(parse_type(rest, index));
    if let Some(rest) = text.strip_prefix('*') {
        return Type::Pointer(inner(rest));
    }
    if let Some((_, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return Type::List(inner(rest));
    }
    if let Some((_, rest)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        return Type::Map(inner(rest));
    }
    if let Some(custom) = text.strip_prefix('!') {
        return Type::Custom(parse_custom(custom, index));
    }
    match text {
        "string" => Type::Text("string"),
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float64" => Type::Float64,
        "bytes" => Type::Bytes,
        _ => match (text.strip_prefix("string:"), index.get(text)) {
            (Some(go_name), _) => Type::Text(go_name),
            (None, Some(&at)) => Type::Struct(at),
            (None, None) => Type::Custom(Custom::Any(text)),
        },
    }
}

fn parse_custom(name: &'static str, index: &HashMap<&'static str, usize>) -> Custom {
    let (package, bare) = name.split_once('.').unwrap_or(("", name));
    let schema = || match package {
        "v1beta1" => index.get("v1beta1.JSONSchemaProps"),
        _ => index.get("v1.JSONSchemaProps"),
    };
    match (bare, schema()) {
        ("IntOrString", _) => Custom::IntOrString,
        ("Quantity", _) => Custom::Quantity,
        ("Time", _) => Custom::Time,
        ("OperatorVersion", _) => Custom::OperatorVersion,
        ("JSONSchemaPropsOrBool", Some(&at)) => Custom::SchemaOrBool(at),
        ("JSONSchemaPropsOrArray", Some(&at)) => Custom::SchemaOrList(at),
        ("JSONSchemaPropsOrStringArray", Some(&at)) => Custom::SchemaOrNames(at),
        ("RawMessage", _) => Custom::Any("json.RawMessage"),
        ("FieldsV1", _) => Custom::Any("v1.FieldsV1"),
        _ => Custom::Any(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_in_the_table_is_known() {
        let known = ["RawMessage", "FieldsV1", "v1.JSON", "v1beta1.JSON"];
        for line in include_str!("structs.txt").lines().chain(METADATA.lines()) {
            let Some((_, kind)) = line.strip_prefix(' ').and_then(|field| field.split_once(' ')) else {
                continue;
            };
            let bare = kind
                .trim_start_matches('*')
                .rsplit([']', '}'])
                .next()
                .unwrap_or_default()
                .trim_start_matches('*');
            let any = matches!(parse_type(bare, &structs().index), Type::Custom(Custom::Any(_)));
            assert!(
                !any || known.contains(&bare.trim_start_matches('!')),
                "unknown type in: {line}"
            );
        }
    }

    #[test]
    fn names_of_embedded_structs_belong_to_the_outer_struct() {
        let Some(&Type::Struct(at)) = structs().get("ClusterServiceVersion") else {
            panic!("no ClusterServiceVersion")
        };
        let entry = structs().at(at).expect("struct");
        assert_eq!(entry.by_name.get("kind").map(Vec::len), Some(2));
        assert_eq!(entry.by_name.get("spec").map(Vec::len), Some(1));
    }
}
