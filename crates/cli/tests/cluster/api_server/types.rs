//! Types as authors of operators write them. Each shows what one rule of the API server is about.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{LocalObjectReference, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Declares a spec and its kind.
macro_rules! kind {
    ($kind:literal, $(#[$about:meta])* $name:ident { $($fields:tt)* }) => {
        #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
        #[kube(group = "rows.example.com", version = "v1", kind = $kind, namespaced)]
        #[serde(rename_all = "camelCase")]
        $(#[$about])*
        pub struct $name { $($fields)* }
    };
}

/// Every variant is an object that names itself. Both have the field `size`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Internal {
    /// On a disk.
    Disk {
        /// In gigabytes.
        size: u32,
        /// The class.
        class: Option<String>,
    },
    /// In memory.
    Memory {
        /// In gigabytes.
        size: u32,
    },
    /// Nowhere.
    Nowhere,
}

/// Adjacently tagged.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "value", rename_all = "camelCase")]
pub enum Adjacent {
    /// A number of seconds.
    Seconds {
        /// Number of items.
        count: i32,
    },
    /// A time of day.
    Daily {
        /// The hour.
        hour: u8,
    },
}

/// Variants distinguished by their fields.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Untagged {
    /// By name.
    Named {
        /// The name.
        name: String,
    },
    /// By labels.
    Selected {
        /// The labels.
        labels: BTreeMap<String, String>,
    },
}

kind!("EnumWithData", EnumWithDataSpec {
    /// External object.
    pub external: Option<ExternalObject>,
    /// Untagged value.
    pub untagged: Option<Untagged>,
});

kind!("TaggedEnum", TaggedEnumSpec {
    /// Internally tagged value.
    pub internal: Internal,
    /// When.
    pub adjacent: Option<Adjacent>,
});

/// Destination of backups: one of two objects.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExternalObject {
    /// A bucket.
    Bucket {
        /// Its address.
        url: String,
        /// Access method.
        access: Option<Access>,
    },
    /// A volume.
    Volume(Volume),
}

/// A claim.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Volume {
    /// Its name.
    #[schemars(length(min = 1))]
    pub claim: String,
}

/// An access method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub enum Access {
    /// By everyone.
    #[default]
    Public,
    /// With a key.
    Private,
}

/// An enum without documentation is one list of names for schemars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
}

kind!("PlainEnum", PlainEnumSpec {
    /// Documented variants are constants for schemars.
    pub access: Access,
    /// One list of names.
    pub level: Level,
    /// Optional ones have a null among them.
    pub other_access: Option<Access>,
    /// The same.
    pub other_level: Option<Level>,
    /// As an element.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// As a map's value.
    #[serde(default)]
    pub accesses: BTreeMap<String, Access>,
});

kind!("AnyValue", AnyValueSpec {
    /// Any value.
    pub value: Value,
    /// An object of anything.
    pub object: serde_json::Map<String, Value>,
    /// A list of anything.
    pub list: Vec<Value>,
    /// Perhaps any value.
    pub perhaps: Option<Value>,
    /// No data.
    #[serde(default)]
    pub empty: Empty,
});

/// A struct without fields.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Empty {}

/// A kind whose status the operator writes.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "rows.example.com",
    version = "v1",
    kind = "Reported",
    plural = "reporteds",
    namespaced
)]
#[kube(
    status = "ReportedStatus",
    scale(spec_replicas_path = ".spec.size", status_replicas_path = ".status.size")
)]
pub struct ReportedSpec {
    /// Number of items.
    #[serde(default)]
    pub size: u32,
}

/// Observed status.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct ReportedStatus {
    /// Number of items.
    #[serde(default)]
    pub size: u32,
    /// Observed conditions.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

kind!("References", ReferencesSpec {
    /// A type.
    pub one: Volume,
    /// The same type again, with its own documentation.
    pub other: Volume,
    /// And in a list.
    pub more: Vec<Volume>,
    /// Fields of another type among these.
    #[serde(flatten)]
    pub common: Common,
});

/// Fields that several kinds have.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Common {
    /// Stops all work.
    #[serde(default)]
    pub paused: bool,
    /// An enum with data among the fields.
    #[serde(flatten)]
    pub target: ExternalObject,
}

kind!("Optionals", OptionalsSpec {
    /// A number.
    pub number: Option<i32>,
    /// A text.
    pub text: Option<String>,
    /// A list.
    pub list: Option<Vec<String>>,
    /// An object.
    pub object: Option<Volume>,
    /// A map of nullable values.
    #[serde(default)]
    pub map: BTreeMap<String, Option<String>>,
    /// A time.
    pub time: Option<Time>,
    /// A port or its name.
    pub port: Option<IntOrString>,
});

kind!("Numbers", NumbersSpec {
    /// 8 bits.
    pub byte: u8,
    /// 16 bits.
    pub port: u16,
    /// 32 bits.
    pub count: u32,
    /// 64 bits.
    pub bytes: u64,
    /// As many bits as the machine has.
    pub size: usize,
    /// 8 bits with a sign.
    pub small: i8,
    /// 16 bits with a sign.
    pub short: i16,
    /// Never zero.
    pub some: std::num::NonZeroU32,
    /// A share.
    #[schemars(range(min = 0.5, max = 1.0))]
    pub share: f64,
    /// Between two bounds.
    #[schemars(range(min = 1, max = 3))]
    pub bounded: i32,
});

kind!("Formats", FormatsSpec {
    /// ISO 8601 for schemars, Go's for the server.
    #[schemars(extend("format" = "duration"))]
    pub period: String,
    /// A time of day.
    #[schemars(extend("format" = "partial-date-time"))]
    pub at: String,
    /// An address.
    #[schemars(url)]
    pub address: String,
    /// Seconds and nanoseconds.
    pub timeout: Option<std::time::Duration>,
    /// A network address of either family.
    pub ip: Option<std::net::IpAddr>,
    /// One letter.
    pub letter: Option<char>,
});

kind!("Closed", #[serde(deny_unknown_fields)] ClosedSpec {
    /// A field.
    pub name: String,
    /// A map.
    pub labels: BTreeMap<String, String>,
    /// A closed object in an open list.
    #[serde(default)]
    pub parts: Vec<ClosedPart>,
});

/// Accepts only its declared fields.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedPart {
    /// The name.
    pub name: String,
}

kind!("OpenMap", OpenMapSpec {
    /// A field.
    pub name: String,
    /// Everything else.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
});

kind!("Keys", KeysSpec {
    /// By number.
    pub by_number: BTreeMap<u16, Port>,
    /// By the name of an enum's variant.
    pub by_level: BTreeMap<Level, u32>,
});

/// Vectors distinguished by their elements, numbers by their range.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// Names.
    Names(Vec<String>),
    /// Parts.
    Parts(Vec<ClosedPart>),
}

/// A small number, or a negative one.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Small {
    /// Small.
    Byte(u8),
    /// Negative.
    Negative(#[schemars(range(max = -1))] i64),
}

/// A value in one field, with a type for each variant.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", content = "value", rename_all = "camelCase")]
pub enum Content {
    /// A claim.
    Volume(Volume),
    /// A pair.
    Pair(Pair),
}

kind!("Variants", VariantsSpec {
    /// Lists.
    pub lists: Option<OneOrMany>,
    /// Numbers.
    pub number: Option<Small>,
    /// References.
    pub content: Option<Content>,
    /// An enum in a list.
    #[serde(default)]
    pub contents: Vec<Content>,
});

kind!("Sets", SetsSpec {
    /// Names, each once.
    pub names: BTreeSet<String>,
    /// Values of an enum, each once.
    #[serde(default)]
    pub levels: BTreeSet<Level>,
    /// Objects: the server compares scalars only.
    #[serde(default)]
    pub pairs: BTreeSet<Pair>,
    /// A tuple.
    pub range: Option<(i32, i32)>,
    /// An array of fixed length.
    pub triple: Option<[u8; 3]>,
});

/// Two numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub struct Pair {
    /// One.
    pub one: i32,
    /// Two.
    pub two: i32,
}

kind!("Defaults", DefaultsSpec {
    /// A text with a default.
    #[serde(default = "image")]
    pub image: String,
    /// A number with a default.
    #[serde(default = "replicas")]
    pub replicas: u32,
    /// An object with a default that contains unset options.
    #[serde(default)]
    pub tuning: Tuning,
    /// An enum with a default.
    #[serde(default)]
    pub access: Access,
});

fn image() -> String {
    "example.com/image:v1".into()
}

fn replicas() -> u32 {
    3
}

/// Runtime settings.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tuning {
    /// Number of threads.
    pub threads: u16,
    /// Perhaps a limit.
    pub limit: Option<u64>,
    /// A share.
    pub share: f32,
    /// Perhaps more.
    pub more: Option<Volume>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            threads: 4,
            limit: None,
            share: 1.0,
            more: None,
        }
    }
}

kind!("ListMap", ListMapSpec {
    /// Ports by name and protocol.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "protocol"]))]
    pub ports: Vec<Port>,
    /// Conditions by type, of Kubernetes' own type.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
});

/// A port.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Port {
    /// Its name: a key that the type leaves optional.
    #[serde(default)]
    pub name: String,
    /// A key with a default.
    #[serde(default = "tcp")]
    pub protocol: String,
    /// Its number.
    pub number: u16,
}

fn tcp() -> String {
    "TCP".into()
}

kind!("Rules",
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self.low <= self.high", "message": "low is above high"},
        {"rule": "self.names.all(name, name.startsWith('a'))"},
    ]))]
    RulesSpec {
    /// The lower end.
    pub low: i32,
    /// The upper end.
    pub high: i32,
    /// Bounded, so that the server can estimate the cost of the rule.
    #[schemars(length(max = 10), inner(length(max = 20)))]
    pub names: Vec<String>,
    /// Immutable; but this test makes no update.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "is immutable"}]))]
    pub class: Option<String>,
});

kind!("Embedded", EmbeddedSpec {
    /// A whole pod.
    pub template: Option<Box<PodTemplateSpec>>,
    /// Quantities.
    pub resources: Option<ResourceRequirements>,
    /// A Secret's name.
    pub secret: Option<LocalObjectReference>,
    /// An object of any kind.
    #[schemars(extend("x-kubernetes-embedded-resource" = true, "x-kubernetes-preserve-unknown-fields" = true))]
    pub object: Option<serde_json::Map<String, Value>>,
});

kind!("WholePod", WholePodSpec {
    /// A pod.
    pub template: PodTemplateSpec,
});
