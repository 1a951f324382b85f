//! Requests for admission.
use std::{future::Future, ops::Range};

use hyper::body::Bytes;
use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
    response::{StatusCause, StatusDetails},
};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Map, Value, value::RawValue};

/// The operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Review<T> {
    /// The object as it would be. Absent on delete.
    pub object: Option<T>,
    /// The current object. Absent on create.
    pub old_object: Option<T>,
    /// The request: operation, user, namespace, whether it is a dry run.
    pub request: AdmissionRequest<DynamicObject>,
}

/// A request is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    message: String,
    field: Option<String>,
}

impl Denied {
    /// With a reason for the user.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: None,
        }
    }

    /// Because of the value of a field, such as `spec.size`.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: Some(field.into()),
        }
    }

    /// As the API server answers itself: 422 for a wrong value, 403 otherwise.
    fn apply(self, mut response: AdmissionResponse, subject: StatusDetails) -> AdmissionResponse {
        let status = &mut response.result;
        match self.field {
            None => {
                status.code = 403;
                status.reason = "Forbidden".to_owned();
            }
            Some(field) => {
                status.code = 422;
                status.reason = "Invalid".to_owned();
                status.details = Some(StatusDetails {
                    causes: vec![StatusCause {
                        reason: "FieldValueInvalid".to_owned(),
                        message: self.message.clone(),
                        field: field.clone(),
                    }],
                    ..subject
                });
                return response.deny(format!("{field}: {}", self.message));
            }
        }
        response.deny(self.message)
    }
}

/// Warnings that the API server shows to the user although the request is allowed: for fields that are deprecated or have no effect.
/// `()` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings(Vec<String>);

impl From<()> for Warnings {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<Vec<String>> for Warnings {
    fn from(texts: Vec<String>) -> Self {
        Self(texts)
    }
}

/// A request in its parts.
struct ParsedRequest<'a, T> {
    /// The object as it was sent.
    raw: Option<&'a RawValue>,
    /// The object's names, for a refusal.
    subject: StatusDetails,
    response: AdmissionResponse,
    review: Result<Review<T>, String>,
    /// The object is being deleted already.
    leaving: bool,
}

/// The objects of a request, which are read as what they are.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    request: Option<Objects<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Objects<'a> {
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

/// The field that marks an object as being deleted.
#[derive(Deserialize)]
struct Leaving {
    metadata: Option<LeavingMeta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeavingMeta {
    deletion_timestamp: Option<IgnoredAny>,
}

/// `body` with `null` in the places of `objects`: a tree of an object can take twenty times the memory of its text.
fn without(body: &[u8], objects: &Objects<'_>) -> Vec<u8> {
    let place = |raw: &RawValue| {
        let start = (raw.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
        Some(start..start + raw.get().len())
    };
    let mut places: Vec<Range<usize>> = [objects.object, objects.old_object]
        .into_iter()
        .flatten()
        .filter_map(place)
        .collect();
    places.sort_by_key(|place| place.start);
    let (mut rest, mut at) = (Vec::new(), 0);
    for place in places {
        rest.extend_from_slice(body.get(at..place.start).unwrap_or_default());
        rest.extend_from_slice(b"null");
        at = place.end;
    }
    rest.extend_from_slice(body.get(at..).unwrap_or_default());
    rest
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<ParsedRequest<'_, T>, String> {
    let invalid = |error: serde_json::Error| format!("not an AdmissionReview: {error}");
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(invalid)?;
    let objects = envelope.request.unwrap_or_default();
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(&without(body, &objects)).map_err(invalid)?;
    let request: AdmissionRequest<DynamicObject> =
        review.try_into().map_err(|_| "a review without a request".to_owned())?;
    let response = AdmissionResponse::from(&request);
    let subject = StatusDetails {
        name: request.name.clone(),
        group: request.kind.group.clone(),
        kind: request.kind.kind.clone(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    };
    let typed = |raw: Option<&RawValue>| {
        let typed = raw.map(|raw| serde_json::from_str::<T>(raw.get()));
        typed.transpose().map_err(|error| error.to_string())
    };
    let review = match (typed(objects.object), typed(objects.old_object)) {
        (Err(error), _) => Err(error),
        // A stored object may be older than the type. Users must be able to repair or delete it.
        (Ok(object), old_object) => Ok(Review {
            object,
            old_object: old_object.unwrap_or_default(),
            request,
        }),
    };
    let leaving = objects.old_object.is_some_and(|old| {
        let old = serde_json::from_str::<Leaving>(old.get());
        old.is_ok_and(|old| old.metadata.is_some_and(|meta| meta.deletion_timestamp.is_some()))
    });
    Ok(ParsedRequest {
        raw: objects.object,
        subject,
        response,
        review,
        leaving,
    })
}

fn write(response: AdmissionResponse) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&response.into_review()).map_err(|error| error.to_string())
}

/// An object that the operator's type cannot hold.
fn unreadable(error: &str) -> Denied {
    Denied::new(format!("cannot read the object: {error}"))
}

pub(super) async fn validate<T, R, W>(body: Bytes, validate: impl FnOnce(Review<T>) -> R) -> Result<Vec<u8>, String>
where
    T: DeserializeOwned,
    R: Future<Output = Result<W, Denied>>,
    W: Into<Warnings>,
{
    let ParsedRequest {
        subject,
        mut response,
        review,
        leaving,
        ..
    } = read::<T>(&body)?;
    // A slow hook must not keep the text too.
    drop(body);
    let answer = match review {
        Ok(review) => validate(review).await.map(Into::into),
        // Its finalizers are removed by updates: to deny them would keep it for ever.
        Err(_) if leaving => Ok(Warnings::default()),
        Err(error) => Err(unreadable(&error)),
    };
    write(match answer {
        Ok(Warnings(texts)) => {
            response.warnings = Some(texts).filter(|texts| !texts.is_empty());
            response
        }
        Err(denied) => denied.apply(response, subject),
    })
}

pub(super) async fn mutate<T, R>(body: Bytes, mutate: impl FnOnce(T, Review<T>) -> R) -> Result<Vec<u8>, String>
where
    T: DeserializeOwned + Serialize,
    R: Future<Output = Result<T, Denied>>,
{
    let asked = read::<T>(&body)?;
    let mut review = match asked.review {
        Ok(review) => review,
        Err(_) if asked.leaving => return write(asked.response),
        Err(error) => return write(unreadable(&error).apply(asked.response, asked.subject)),
    };
    let (Some(object), Some(raw)) = (review.object.take(), asked.raw) else {
        // Nothing to change on delete.
        return write(asked.response);
    };
    let text = |error: serde_json::Error| error.to_string();
    let before = serde_json::to_value(&object).map_err(text)?;
    let after = match mutate(object, review).await {
        Ok(object) => serde_json::to_value(object).map_err(text)?,
        Err(denied) => return write(denied.apply(asked.response, asked.subject)),
    };
    let Some(change) = change(&before, &after) else {
        return write(asked.response);
    };
    let raw: Value = serde_json::from_str(raw.get()).map_err(text)?;
    let mut changed = raw.clone();
    json_patch::merge(&mut changed, &change);
    let patch = json_patch::diff(&raw, &changed);
    write(asked.response.with_patch(patch).map_err(|error| error.to_string())?)
}

/// The JSON merge patch that leads from one value to another.
fn change(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut found = Map::new();
    for (name, value) in new {
        let part = match old.get(name) {
            Some(before) => change(before, value),
            None => Some(value.clone()),
        };
        found.extend(part.map(|part| (name.clone(), part)));
    }
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    found.extend(gone.map(|name| (name.clone(), Value::Null)));
    (!found.is_empty()).then_some(Value::Object(found))
}

impl<T> Review<T> {
    /// The operation on the object.
    pub fn operation(&self) -> &Operation {
        &self.request.operation
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Cache {
        spec: Spec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize)]
    struct Spec {
        size: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
    }

    /// The answer of a webhook to a review.
    async fn validate<T, R, W>(body: Value, validate: impl FnOnce(Review<T>) -> R) -> Result<Value, String>
    where
        T: DeserializeOwned,
        R: Future<Output = Result<W, Denied>>,
        W: Into<Warnings>,
    {
        let answer = super::validate(body.to_string().into(), validate).await?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    async fn mutate<T, R>(body: Value, mutate: impl FnOnce(T, Review<T>) -> R) -> Result<Value, String>
    where
        T: DeserializeOwned + Serialize,
        R: Future<Output = Result<T, Denied>>,
    {
        let answer = super::mutate(body.to_string().into(), mutate).await?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    fn asked(operation: &str, object: Value, old: Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u1", "operation": operation, "name": "sample", "namespace": "shop", "dryRun": false,
                "kind": {"group": "shop.example.com", "version": "v1", "kind": "Cache"},
                "resource": {"group": "shop.example.com", "version": "v1", "resource": "caches"},
                "userInfo": {"username": "alice"},
                "object": object, "oldObject": old,
            },
        })
    }

    fn cache(size: Value) -> Value {
        json!({"apiVersion": "shop.example.com/v1", "kind": "Cache", "metadata": {"name": "sample"},
            "spec": {"size": size, "unknown": {"to": "the type"}}})
    }

    async fn odd(review: Review<Cache>) -> Result<(), Denied> {
        match review.object {
            Some(cache) if cache.spec.size % 2 == 0 => Err(Denied::field("spec.size", "must be odd")),
            None if review.request.user_info.username.as_deref() == Some("alice") => Err(Denied::new("not alice")),
            _ => Ok(()),
        }
    }

    #[tokio::test]
    async fn an_allowed_request_may_have_warnings() {
        let warn = async |review: Review<Cache>| {
            let image = review.object.and_then(|cache| cache.spec.image);
            let text = image.map(|image| format!("spec.image {image} has no effect"));
            Ok::<Vec<String>, Denied>(text.into_iter().collect())
        };
        let mut object = cache(json!(1));
        let quiet = validate(asked("CREATE", object.clone(), Value::Null), warn)
            .await
            .unwrap();
        assert_eq!(quiet["response"].get("warnings"), None);
        object["spec"]["image"] = "a:1".into();
        let loud = validate(asked("CREATE", object, Value::Null), warn).await.unwrap();
        assert_eq!(loud["response"]["allowed"], true);
        assert_eq!(loud["response"]["warnings"], json!(["spec.image a:1 has no effect"]));
    }

    #[tokio::test]
    async fn a_wrong_value_is_denied_as_the_api_server_does_it() {
        let fine = validate(asked("CREATE", cache(json!(1)), Value::Null), odd)
            .await
            .unwrap();
        assert_eq!(fine["response"]["allowed"], true);
        assert_eq!(fine["response"]["uid"], "u1");
        assert_eq!(fine["apiVersion"], "admission.k8s.io/v1");
        let wrong = validate(asked("CREATE", cache(json!(2)), Value::Null), odd)
            .await
            .unwrap();
        assert_eq!(wrong["response"]["allowed"], false);
        assert_eq!(wrong["response"]["status"]["code"], 422);
        assert_eq!(wrong["response"]["status"]["message"], "spec.size: must be odd");
        assert_eq!(
            wrong["response"]["status"]["details"]["causes"][0]["field"],
            "spec.size"
        );
        let delete = validate(asked("DELETE", Value::Null, cache(json!(1))), odd)
            .await
            .unwrap();
        assert_eq!(delete["response"]["status"]["code"], 403);
        assert_eq!(delete["response"]["status"]["message"], "not alice");
    }

    #[tokio::test]
    async fn an_object_of_another_shape_is_denied_but_an_old_one_does_not_count() {
        let wrong = validate(asked("CREATE", cache(json!("many")), Value::Null), odd)
            .await
            .unwrap();
        assert_eq!(wrong["response"]["allowed"], false);
        let message = wrong["response"]["status"]["message"].as_str().unwrap();
        assert!(message.starts_with("cannot read the object: invalid type"), "{message}");
        let repaired = validate(asked("UPDATE", cache(json!(3)), cache(json!("many"))), odd)
            .await
            .unwrap();
        assert_eq!(repaired["response"]["allowed"], true);
        assert!(validate(json!({"kind": "Pod"}), odd).await.is_err());
    }

    /// Its finalizers are removed by updates.
    #[tokio::test]
    async fn an_unreadable_object_that_is_being_deleted_may_be_updated() {
        let mut old = cache(json!("many"));
        let unreadable = old.clone();
        let update = |old: &Value| asked("UPDATE", unreadable.clone(), old.clone());
        for (time, allowed) in [(Value::Null, false), (json!("2024-01-01T00:00:00Z"), true)] {
            old["metadata"]["deletionTimestamp"] = time;
            let validated = validate(update(&old), odd).await.unwrap();
            assert_eq!(validated["response"]["allowed"], allowed);
            let mutated = mutate(update(&old), with_image).await.unwrap();
            assert_eq!(mutated["response"]["allowed"], allowed);
            assert_eq!(mutated["response"]["patch"], Value::Null);
        }
        // A readable one is still reviewed.
        old["spec"]["size"] = json!(1);
        let wrong = validate(asked("UPDATE", cache(json!(2)), old), odd).await.unwrap();
        assert_eq!(wrong["response"]["allowed"], false);
    }

    async fn with_image(mut cache: Cache, review: Review<Cache>) -> Result<Cache, Denied> {
        assert_eq!(review.operation(), &Operation::Create);
        if cache.spec.size > 9 {
            return Err(Denied::new("too many"));
        }
        cache.spec.image.get_or_insert_with(|| "memcached".to_owned());
        Ok(cache)
    }

    #[tokio::test]
    async fn a_change_keeps_what_the_type_does_not_know() {
        let changed = mutate(asked("CREATE", cache(json!(1)), Value::Null), with_image)
            .await
            .unwrap();
        assert_eq!(changed["response"]["patchType"], "JSONPatch");
        let patch: Vec<u8> = serde_json::from_value(changed["response"]["patch"].clone()).unwrap();
        let patch: Value = serde_json::from_slice(&patch).unwrap();
        assert_eq!(
            patch,
            json!([{"op": "add", "path": "/spec/image", "value": "memcached"}])
        );

        let mut same = cache(json!(1));
        same["spec"]["image"] = "own".into();
        let same = mutate(asked("CREATE", same, Value::Null), with_image).await.unwrap();
        assert_eq!(same["response"]["patch"], Value::Null);
        let denied = mutate(asked("CREATE", cache(json!(10)), Value::Null), with_image)
            .await
            .unwrap();
        assert_eq!(denied["response"]["status"]["message"], "too many");
    }

    #[test]
    fn a_change_names_what_is_new_and_what_is_gone() {
        let (before, after) = (
            json!({"a": {"b": 1, "c": 2}, "d": [1]}),
            json!({"a": {"b": 1}, "d": [2], "e": null}),
        );
        assert_eq!(
            change(&before, &after),
            Some(json!({"a": {"c": null}, "d": [2], "e": null}))
        );
        assert_eq!(change(&after, &after), None);
    }
}
