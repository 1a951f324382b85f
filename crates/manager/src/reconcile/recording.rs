//! A context without an API server.
use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use super::{Change, Error, Object, object::typed};
use crate::{
    ObjectKey,
    apply::{Report, set},
};

/// The objects that exist, and those that were applied.
#[derive(Default)]
pub struct Recording(Mutex<Records>);

#[derive(Default)]
struct Records {
    existing: HashMap<String, BTreeMap<ObjectKey, Value>>,
    applied: Vec<(String, ObjectKey, Value)>,
    env: HashMap<&'static str, String>,
    observed: Vec<Arc<dyn Any + Send + Sync>>,
}

fn kind<C: Object>() -> String {
    format!("{}/{}", C::group(&()), C::kind(&()))
}

fn kind_of(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    format!("{group}/{}", text("kind"))
}

impl Recording {
    pub fn exists<C: Object>(&self, object: &C) {
        if let Ok(value) = serde_json::to_value(object) {
            self.lock()
                .existing
                .entry(kind::<C>())
                .or_default()
                .insert(ObjectKey::of(object), value);
        }
    }

    pub fn observe<T: Send + Sync + 'static>(&self, projection: T) {
        self.lock().observed.push(Arc::new(projection));
    }

    pub fn observed<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        let observed = self.lock().observed.clone();
        observed.into_iter().filter_map(|entry| entry.downcast().ok()).collect()
    }

    pub fn set_env(&self, variable: &'static str, value: String) {
        self.lock().env.insert(variable, value);
    }

    pub fn env(&self, variable: &str) -> Option<String> {
        self.lock().env.get(variable).cloned()
    }

    /// Records `desired`. The answer has the status of the object that exists.
    pub fn apply(&self, key: &ObjectKey, desired: Value) -> Result<Report, Error> {
        if key.name.is_empty() {
            return Err(Error::rejected(
                "NameMissing",
                "an object without a name cannot be applied",
            ));
        }
        let kind = kind_of(&desired);
        let mut records = self.lock();
        records.applied.push((kind.clone(), key.clone(), desired.clone()));
        let objects = records.existing.entry(kind).or_default();
        let before = objects.get(key).cloned();
        let change = if before.is_some() {
            Change::Unchanged
        } else {
            Change::Created
        };
        let mut object = desired;
        if let Some(status) = before.as_ref().and_then(|before| before.get("status")) {
            set(&mut object, &["status"], status.clone());
        }
        objects.insert(key.clone(), object.clone());
        Ok(Report {
            object,
            change,
            conflict: None,
            writes: 0,
        })
    }

    /// Records `desired`, unless the object exists.
    pub fn create_once(&self, key: &ObjectKey, desired: Value) -> Result<Report, Error> {
        let of_kind = |records: &Records| records.existing.get(&kind_of(&desired))?.get(key).cloned();
        let existing = of_kind(&self.lock());
        match existing {
            None => self.apply(key, desired),
            Some(object) => Ok(Report {
                object,
                change: Change::Unchanged,
                conflict: None,
                writes: 0,
            }),
        }
    }

    pub fn applied<C: Object>(&self) -> Vec<C> {
        let records = self.lock();
        let of_kind = records.applied.iter().filter(|(known, _, _)| *known == kind::<C>());
        of_kind.filter_map(|(_, _, object)| typed(object).ok()).collect()
    }

    pub fn get<C: Object>(&self, key: &ObjectKey) -> Option<C> {
        let records = self.lock();
        typed(records.existing.get(&kind::<C>())?.get(key)?).ok()
    }

    pub fn all<C: Object>(&self) -> Vec<C> {
        let records = self.lock();
        let objects = records
            .existing
            .get(&kind::<C>())
            .into_iter()
            .flat_map(BTreeMap::values);
        objects.filter_map(|object| typed(object).ok()).collect()
    }

    pub fn delete<C: Object>(&self, key: &ObjectKey) -> bool {
        let mut records = self.lock();
        records
            .existing
            .get_mut(&kind::<C>())
            .is_some_and(|objects| objects.remove(key).is_some())
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
