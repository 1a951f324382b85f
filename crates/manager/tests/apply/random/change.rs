//! Random parts and random changes of objects.
use fastrand::Rng;
use serde_json::{Map, Value};

/// Fields that identify an object, or that clients cannot choose.
const FIXED: [&str; 11] = [
    "/apiVersion",
    "/kind",
    "/metadata",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/uid",
    "/metadata/resourceVersion",
    "/metadata/generation",
    "/metadata/creationTimestamp",
    "/metadata/managedFields",
    "/status",
];

/// `object` without a random part of its fields and entries. The more fields it loses, the likelier the API server rejects it.
pub fn part_of(object: &Value, random: &mut Rng) -> Value {
    let loss = [0.0, 0.02, 0.05, 0.1][random.usize(..4)];
    let mut part = object.clone();
    thin(&mut part, "", loss, random);
    part
}

fn thin(value: &mut Value, path: &str, loss: f64, random: &mut Rng) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let path = format!("{path}/{name}");
            let goes = !FIXED.contains(&&*path) && random.f64() < loss;
            thin(value, &path, loss, random);
            !goes
        }),
        Value::Array(list) => list.retain_mut(|value| {
            thin(value, &format!("{path}/-"), loss, random);
            random.f64() >= loss
        }),
        _ => {}
    }
}

/// Changes one random place of `object`. `template` is an object of the same kind with more fields.
pub fn change(object: &mut Value, template: &Value, random: &mut Rng) {
    let mut paths = Vec::new();
    collect(object, String::new(), &mut paths);
    if paths.is_empty() {
        return;
    }
    let path = &paths[random.usize(..paths.len())];
    let (parent, last) = path.rsplit_once('/').unwrap();
    let last = last.replace("~1", "/").replace("~0", "~");
    let more = template.pointer(path).cloned();
    if random.u8(..5) == 0 {
        match object.pointer_mut(parent).unwrap() {
            Value::Object(map) => drop(map.remove(&last)),
            Value::Array(list) => drop(list.remove(last.parse().unwrap())),
            _ => {}
        }
        return;
    }
    let value = object.pointer_mut(path).unwrap();
    match value {
        Value::Object(map) => extend(map, more, random),
        Value::Array(list) => rearrange(list, more, random),
        scalar => *scalar = another(scalar, random),
    }
}

/// The paths of all values that may change.
fn collect(value: &Value, path: String, paths: &mut Vec<String>) {
    if path == "/status" || path == "/metadata/managedFields" {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let name = name.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                collect(value, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
    if !path.is_empty() && !FIXED.contains(&&*path) {
        paths.push(path);
    }
}

/// Adds a field of the template or an undeclared one, or removes all fields.
fn extend(map: &mut Map<String, Value>, template: Option<Value>, random: &mut Rng) {
    let missing: Vec<(String, Value)> = match template {
        Some(Value::Object(template)) => template
            .into_iter()
            .filter(|(name, _)| !map.contains_key(name))
            .collect(),
        _ => Vec::new(),
    };
    match random.u8(..6) {
        0 => map.clear(),
        1 => drop(map.insert("extra".to_owned(), "1".into())),
        2 => drop(map.insert("extra".to_owned(), "".into())),
        _ if missing.is_empty() => drop(map.insert("more".to_owned(), "2".into())),
        _ => {
            let (name, value) = missing[random.usize(..missing.len())].clone();
            map.insert(name, value);
        }
    }
}

/// Adds an entry, doubles or changes one, moves one, or removes all.
fn rearrange(list: &mut Vec<Value>, template: Option<Value>, random: &mut Rng) {
    let count = list.len();
    match random.u8(..6) {
        0 => list.clear(),
        1 if count > 1 => list.swap(0, count - 1),
        2 if count > 0 => {
            // An entry with another key, most of the time.
            let mut entry = list[random.usize(..count)].clone();
            match &mut entry {
                Value::Object(map) => {
                    let names: Vec<String> = map
                        .iter()
                        .filter(|(_, value)| !value.is_object() && !value.is_array())
                        .map(|(name, _)| name.clone())
                        .collect();
                    if !names.is_empty() {
                        let value = &mut map[&names[random.usize(..names.len())]];
                        *value = another(value, random);
                    }
                }
                value => *value = another(value, random),
            }
            list.insert(random.usize(..=count), entry);
        }
        3 if count > 0 => {
            let entry = list[random.usize(..count)].clone();
            list.insert(random.usize(..=count), entry);
        }
        _ => match template {
            Some(Value::Array(template)) if !template.is_empty() => {
                let entry = template[random.usize(..template.len())].clone();
                list.insert(random.usize(..=count), entry);
            }
            _ if count > 0 => drop(list.remove(random.usize(..count))),
            _ => {}
        },
    }
}

/// `value` without null, which kube-manager takes for an absent field. Only the field `nothing` is nullable.
pub fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| !value.is_null() || name == "nothing");
            map.values_mut().for_each(remove_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// The API server chooses node ports at random.
pub fn without_node_ports(object: &Value) -> Value {
    let mut object = object.clone();
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
    object
}

/// An apply of an empty list or map removes the entries or leaves null, and only the next one stores the empty value.
pub fn without_empty_values(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => {
            let parts = map.iter().filter(|(_, value)| !is_empty(value));
            parts
                .map(|(name, value)| (name.clone(), without_empty_values(value)))
                .collect()
        }
        Value::Array(list) => list.iter().map(without_empty_values).collect(),
        scalar => scalar.clone(),
    }
}

/// Another value, or the same one in another notation.
fn another(value: &Value, random: &mut Rng) -> Value {
    match value {
        Value::Bool(value) => (!value).into(),
        Value::Number(number) => match (number.as_i64(), random.u8(..4)) {
            (Some(_), 0) => 0.into(),
            (Some(number), 1) => number.to_string().into(),
            (Some(number), 2) => (number + 1).into(),
            (Some(number), _) => (number - 1).into(),
            (None, 0) => Value::Null,
            (None, _) => 1.5.into(),
        },
        Value::String(text) => match random.u8(..5) {
            0 => "".into(),
            1 => Value::Null,
            2 => format!("{text}x").into(),
            3 => notation(text).into(),
            _ => "80".into(),
        },
        _ => "text".into(),
    }
}

/// A quantity in another notation. Other strings get another end.
fn notation(text: &str) -> String {
    let number = |suffix: &str| text.strip_suffix(suffix)?.parse::<u64>().ok();
    if let Some(number) = number("Gi") {
        return format!("{}Mi", number * 1024);
    }
    if let Some(number) = number("Mi") {
        return format!("{}Ki", number * 1024);
    }
    if let Some(number) = number("m") {
        return format!("{}u", number * 1000);
    }
    if let Some(number) = number("") {
        return format!("{}m", number * 1000);
    }
    format!("{text}-2")
}
