//! Requests for conversion.
//!
//! One can be of 64 MiB. Its objects are read, converted and written one after the other: all as trees would take many times that.
use std::{fmt, io::Write as _};

use kube::core::Status;
use serde::{
    Deserialize, Deserializer as _,
    de::{self, SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    wanted: String,
    #[serde(borrow)]
    objects: &'a RawValue,
}

pub(super) fn convert(body: &[u8], convert: &impl Fn(Value, &str) -> Result<Value, String>) -> Result<Vec<u8>, String> {
    let review: Review<'_> =
        serde_json::from_slice(body).map_err(|error| format!("not a ConversionReview: {error}"))?;
    let request = review.request.ok_or("a review without a request")?;
    let text = |error: serde_json::Error| error.to_string();
    let uid = serde_json::to_string(&request.uid).map_err(text)?;
    let mut answer = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{{"uid":{uid},"convertedObjects":["#
    )
    .into_bytes();
    let (empty, mut problem) = (answer.len(), None);
    let each = Each {
        convert: |object| match one(object, &request.wanted, convert) {
            Ok(converted) => {
                if answer.len() > empty {
                    answer.push(b',');
                }
                serde_json::to_writer(&mut answer, &converted).is_ok()
            }
            Err(why) => {
                problem = Some(why);
                false
            }
        },
    };
    let read = serde_json::Deserializer::from_str(request.objects.get()).deserialize_seq(each);
    let result = match (problem, read) {
        (None, Ok(())) => Status::success(),
        (Some(why), _) => Status::failure(&why, "BadRequest"),
        (None, Err(error)) => return Err(format!("not a ConversionReview: {error}")),
    };
    if !result.is_success() {
        answer.truncate(empty);
    }
    let result = serde_json::to_string(&result).map_err(text)?;
    write!(answer, r#"],"result":{result}}}}}"#).map_err(|error| error.to_string())?;
    Ok(answer)
}

/// Converts each object of a list while the list is read, until one fails.
struct Each<F> {
    convert: F,
}

impl<'de, F: FnMut(Value) -> bool> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut objects: A) -> Result<(), A::Error> {
        while let Some(object) = objects.next_element::<Value>()? {
            if !(self.convert)(object) {
                return Err(de::Error::custom("an object was not converted"));
            }
        }
        Ok(())
    }
}

/// Converts one object. Fields that the API server lets no webhook change keep their values.
pub(super) fn one(
    object: Value,
    wanted: &str,
    convert: &impl Fn(Value, &str) -> Result<Value, String>,
) -> Result<Value, String> {
    if object.get("apiVersion").is_some_and(|version| version == wanted) {
        return Ok(object);
    }
    let part = |name: &str| object.get(name).cloned().unwrap_or_default();
    let (kind, mut metadata) = (part("kind"), part("metadata"));
    let name = metadata
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let mut new = convert(object, wanted).map_err(|why| format!("{name}: {why}"))?;
    let Some(fields) = new.as_object_mut() else {
        return Err(format!("{name}: the conversion did not make an object"));
    };
    // The API server lets nothing else change.
    for part in ["labels", "annotations"] {
        let made = fields.get_mut("metadata").and_then(|made| made.get_mut(part));
        if let (Some(made @ Value::Object(_)), Some(metadata)) = (made, metadata.as_object_mut()) {
            metadata.insert(part.to_owned(), made.take());
        }
    }
    fields.insert("apiVersion".to_owned(), wanted.into());
    fields.insert("kind".to_owned(), kind);
    fields.insert("metadata".to_owned(), metadata);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn convert(body: Value, convert: &impl Fn(Value, &str) -> Result<Value, String>) -> Result<Value, String> {
        let answer = super::convert(body.to_string().as_bytes(), convert)?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    fn asked(objects: &[Value]) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u1", "desiredAPIVersion": "shop.example.com/v2", "objects": objects}})
    }

    fn object(version: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("shop.example.com/{version}"), "kind": "Cache",
            "metadata": {"name": "sample", "labels": {"a": "b"}}, "spec": spec})
    }

    fn doubled(object: Value, _: &str) -> Result<Value, String> {
        let size = object["spec"]["size"].as_i64().ok_or("spec.size is not a number")?;
        Ok(json!({"spec": {"replicas": size}}))
    }

    #[test]
    fn objects_are_converted_unless_they_are_in_the_version_already() {
        let (old, new) = (object("v1", &json!({"size": 2})), object("v2", &json!({"replicas": 3})));
        let answer = convert(asked(&[old, new.clone()]), &doubled).unwrap();
        assert_eq!(answer["response"]["uid"], "u1");
        assert_eq!(answer["response"]["result"]["status"], "Success");
        let converted = &answer["response"]["convertedObjects"];
        assert_eq!(converted[0], object("v2", &json!({"replicas": 2})));
        assert_eq!(converted[1], new);
    }

    /// A version may lack what another has. An annotation keeps it.
    #[test]
    fn labels_and_annotations_may_change_and_nothing_else_of_the_metadata() {
        let converted = |metadata: Value| {
            let convert_one = |_: Value, _: &str| Ok(json!({"metadata": metadata, "spec": {}}));
            let answer = convert(asked(&[object("v1", &json!({}))]), &convert_one).unwrap();
            answer["response"]["convertedObjects"][0]["metadata"].clone()
        };
        let noted = json!({"name": "other", "uid": "x", "annotations": {"size": "2"}, "labels": {"c": "d"}});
        let expected = json!({"name": "sample", "annotations": {"size": "2"}, "labels": {"c": "d"}});
        assert_eq!(converted(noted), expected);
        assert_eq!(
            converted(json!({"labels": {}})),
            json!({"name": "sample", "labels": {}})
        );
        // Fields that a conversion does not set stay.
        let same = json!({"name": "sample", "labels": {"a": "b"}});
        for silent in [json!({"name": ""}), json!({"labels": null}), Value::Null] {
            assert_eq!(converted(silent), same);
        }
    }

    #[test]
    fn an_object_that_cannot_be_converted_is_named() {
        let answer = convert(asked(&[object("v1", &json!({"size": "x"}))]), &doubled).unwrap();
        assert_eq!(answer["response"]["result"]["status"], "Failure");
        assert_eq!(
            answer["response"]["result"]["message"],
            "sample: spec.size is not a number"
        );
        assert!(convert(json!({}), &doubled).is_err());
    }
}
