//! Fixes of a generated bundle belong into the files that it is generated from: the base of the ClusterServiceVersion.

use serde_json::Value;

use super::facts::{OWNED, text};
use super::{Action, Document, Fix, Fixed, FixedFile, Proposal};
use crate::bundle::load::{self, Tree};

/// The base that `generate bundle` starts from, `config/manifests/bases/NAME.clusterserviceversion.yaml`.
#[derive(Debug, Clone)]
pub struct Base {
    /// Its path.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The fixes of a bundle that apply to its base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FixedBase {
    /// The base, if it changes.
    pub file: Option<FixedFile>,
    /// The fixes that were applied to it.
    pub made: Vec<Fix>,
    /// The fixes of values that do not come from the base.
    pub elsewhere: Vec<Fix>,
}

/// Parts of the ClusterServiceVersion that `generate bundle` writes over those of the base.
const GENERATED: [&str; 4] = [
    "/spec/install",
    "/spec/webhookdefinitions",
    "/spec/relatedImages",
    "/metadata/annotations/alm-examples",
];

impl Fixed {
    /// Applies the fixes to the base of the bundle, as far as their values come from it. Writes nothing.
    #[must_use]
    pub fn in_base(&self, tree: &Tree, base: &Base) -> FixedBase {
        let mut fixed = FixedBase::default();
        let reading = load::read(tree.clone(), "");
        let csv = reading.bundle.csv();
        let mut document = Document::read(&base.bytes);
        for proposal in &self.proposals {
            let moved = csv
                .filter(|csv| csv.path == proposal.fix.file)
                .zip(document.as_mut())
                .and_then(|(csv, document)| moved(proposal, &csv.value, document.value())?.apply(document));
            match moved {
                Some(()) => fixed.made.push(Fix {
                    file: base.path.clone(),
                    ..proposal.fix.clone()
                }),
                None => fixed.elsewhere.push(proposal.fix.clone()),
            }
        }
        let before = String::from_utf8_lossy(&base.bytes).into_owned();
        fixed.file = document
            .map(|document| document.text().to_owned())
            .filter(|after| *after != before)
            .map(|after| FixedFile {
                path: base.path.clone(),
                before,
                after,
            });
        fixed
    }
}

/// The same fix for the base. `None` if it changes a value that the base does not have.
fn moved(proposal: &Proposal, csv: &Value, base: &Value) -> Option<Proposal> {
    let at = |pointer: &str, key: &str| {
        let whole = format!("{pointer}/{}", crate::object::pointer_part(key));
        let is_generated = GENERATED.iter().any(|generated| is_below(&whole, generated));
        if is_generated {
            None
        } else {
            pointer_in_base(pointer, csv, base)
        }
    };
    let actions = proposal.actions.iter().map(|action| {
        Some(match action {
            // The generator writes the bundle's file without such spaces.
            Action::StripBlanks => return None,
            Action::Add { map, key, value } => Action::Add {
                map: at(map, key)?,
                key: key.clone(),
                value: value.clone(),
            },
            Action::Append { map, key, items } => Action::Append {
                map: at(map, key)?,
                key: key.clone(),
                items: items.clone(),
            },
            Action::Replace { at: pointer, text } => {
                let (parent, key) = pointer.rsplit_once('/')?;
                let moved = format!("{}/{key}", at(parent, key)?);
                // The base must have the value that the fix is about.
                base.pointer(&moved)
                    .filter(|value| csv.pointer(pointer) == Some(value))?;
                Action::Replace {
                    at: moved,
                    text: text.clone(),
                }
            }
        })
    });
    Some(Proposal {
        actions: actions.collect::<Option<_>>()?,
        ..proposal.clone()
    })
}

fn is_below(pointer: &str, parent: &str) -> bool {
    pointer
        .strip_prefix(parent)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The pointer in the base. The base may list owned APIs in another order.
fn pointer_in_base(pointer: &str, csv: &Value, base: &Value) -> Option<String> {
    let moved = match pointer.strip_prefix(OWNED).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) => {
            let (index, rest) = rest
                .split_once('/')
                .map_or((rest, String::new()), |(index, rest)| (index, format!("/{rest}")));
            let entry = csv.pointer(&format!("{OWNED}/{index}"))?;
            let is_same = |other: &Value| {
                ["name", "version", "kind"]
                    .iter()
                    .all(|key| text(other, key) == text(entry, key))
            };
            let index = base.pointer(OWNED)?.as_array()?.iter().position(is_same)?;
            format!("{OWNED}/{index}{rest}")
        }
        None => pointer.to_owned(),
    };
    base.pointer(&moved)?;
    Some(moved)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn proposal(actions: Vec<Action>) -> Proposal {
        crate::fix::proposal("manifests/csv.yaml", "title", true, "group", actions)
    }

    #[test]
    fn fixes_move_to_the_entry_of_the_same_api_and_stay_out_of_generated_parts() {
        let csv = json!({"spec": {"displayName": "A", "install": {"spec": {}}, "customresourcedefinitions": {"owned": [
            {"name": "as", "version": "v1", "kind": "A"}, {"name": "bs", "version": "v1", "kind": "B"}]}}});
        let base = json!({"spec": {"displayName": "A", "customresourcedefinitions": {"owned": [
            {"name": "bs", "version": "v1", "kind": "B"}]}}});
        let append = |index: usize| {
            proposal(vec![Action::Append {
                map: format!("{OWNED}/{index}"),
                key: "specDescriptors".into(),
                items: vec![json!({"path": "size"})],
            }])
        };
        let Some(found) = moved(&append(1), &csv, &base) else {
            panic!("the base has B")
        };
        assert!(matches!(&found.actions[..], [Action::Append { map, .. }] if map == &format!("{OWNED}/0")));
        assert_eq!(moved(&append(0), &csv, &base), None);

        let replace = |text: &str, at: &str| {
            proposal(vec![Action::Replace {
                at: at.into(),
                text: text.into(),
            }])
        };
        assert!(moved(&replace("B", "/spec/displayName"), &csv, &base).is_some());
        assert_eq!(moved(&replace("B", "/spec/description"), &csv, &base), None);
        let add = proposal(vec![Action::Add {
            map: "/spec/install/spec".into(),
            key: "a".into(),
            value: json!(1),
        }]);
        assert_eq!(moved(&add, &csv, &base), None);
        let other = json!({"spec": {"displayName": "Other"}});
        assert_eq!(moved(&replace("B", "/spec/displayName"), &csv, &other), None);
    }
}
