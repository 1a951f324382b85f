//! Finds the source files of kustomize's output, which does not contain them.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::Error;
use super::input::{self, Document, Input};
use super::kustomization::{file_of, settings};
use super::origin::Origin;
use olmkit_base::files;
use olmkit_base::limits;

/// Kustomizations within kustomizations.
const MOST_LEVELS: usize = 32;

/// Group and kind of an object, and its name.
type Key = (String, String, String);

/// Definitions of a kustomization's objects.
#[derive(Debug, Default)]
struct Places {
    /// By the final name of the object, and by the name in its file; with the namespace.
    objects: HashMap<Key, Vec<(String, Origin)>>,
    /// Number of visited files and directories.
    visits: usize,
}

/// Name prefixes and suffixes from the kustomizations around a file.
#[derive(Debug, Clone, Default)]
struct Names {
    prefix: String,
    suffix: String,
}

impl Input {
    /// Reads kustomize's output for a directory. Each object gets the position of its definition. Objects without one,
    /// such as generated ConfigMaps, get the file of the kustomization.
    ///
    /// # Errors
    /// When the output cannot be read.
    pub fn from_kustomization(output: &[u8], folder: &Path) -> Result<Self, Error> {
        let mut input = Self::from_reader(output)?;
        let mut places = Places::default();
        places.folder(folder, &Names::default(), 0);
        let itself = Origin {
            file: Some(file_of(folder).unwrap_or_else(|| folder.to_owned())),
            line: 0,
        };
        let notices = input.notices.iter_mut().map(|notice| &mut notice.origin);
        notices.for_each(|origin| *origin = itself.clone());
        for document in &mut input.documents {
            document.origin = places.of(document).unwrap_or_else(|| itself.clone());
        }
        Ok(input)
    }
}

impl Places {
    /// Position of an object's definition.
    fn of(&self, document: &Document) -> Option<Origin> {
        let places = self.objects.get(&key(document, document.name()))?;
        let namespace = namespace_of(document);
        // Another namespace may have been set by a kustomization.
        let own = places.iter().find(|(found, _)| found == namespace);
        own.or(places.first()).map(|(_, origin)| origin.clone())
    }

    /// Searches a directory and ignores read errors, because kustomize has already read it and reported them.
    fn folder(&mut self, folder: &Path, around: &Names, level: usize) {
        let file = file_of(folder).filter(|_| level < MOST_LEVELS);
        let Some(settings) = file.and_then(|file| settings(&file)) else {
            return;
        };
        let text = |field: &str| settings.get(field).and_then(Value::as_str).unwrap_or_default();
        let names = Names {
            prefix: format!("{}{}", around.prefix, text("namePrefix")),
            suffix: format!("{}{}", text("nameSuffix"), around.suffix),
        };
        for field in ["resources", "bases", "components"] {
            let listed = settings.get(field).and_then(Value::as_array);
            for resource in listed.into_iter().flatten().filter_map(Value::as_str) {
                let path = files::join(folder, Path::new(resource));
                self.visits += 1;
                if self.visits > limits::BUNDLE_FILES.count() {
                    return;
                }
                // The same directory may be included several times, under several names.
                if path.is_dir() {
                    self.folder(&path, &names, level + 1);
                } else {
                    self.file(&path, &names);
                }
            }
        }
    }

    fn file(&mut self, path: &Path, names: &Names) {
        for document in documents(path).into_iter().flatten() {
            let own = document.name();
            let whole = format!("{}{own}{}", names.prefix, names.suffix);
            let place = (namespace_of(&document).to_owned(), document.origin.clone());
            if whole != own {
                let places = self.objects.entry(key(&document, &whole)).or_default();
                places.push(place.clone());
            }
            // kustomize does not change the names of CRDs and some other kinds.
            self.objects.entry(key(&document, own)).or_default().push(place);
        }
    }
}

/// The documents of a file, its lines counted. None if it is not here or cannot be read.
fn documents(path: &Path) -> Option<Vec<Document>> {
    let bytes = input::read_file(path).ok()?;
    let mut input = Input::default();
    input.add(&bytes, Some(path), false).ok()?;
    Some(input.documents)
}

fn key(document: &Document, name: &str) -> Key {
    let (group, _) = document.group_version();
    (group.to_owned(), document.kind().to_owned(), name.to_owned())
}

fn namespace_of(document: &Document) -> &str {
    let namespace = document.value.pointer("/metadata/namespace");
    namespace.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Two kustomizations, the outer one with a prefix. An object, a CRD, and a generated object.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "config/default/kustomization.yaml",
                "namePrefix: demo-\nresources: [../manager, ../crd, \"https://example.com/far.yaml\"]\n",
            ),
            (
                "config/manager/kustomization.yaml",
                "kind: Component\nnamePrefix: a-\nresources:\n- manager.yaml\n",
            ),
            (
                "config/manager/manager.yaml",
                "# A comment\napiVersion: v1\nkind: Service\nmetadata: {name: manager, namespace: one}\n---\n\
                 apiVersion: v1\nkind: Service\nmetadata: {name: manager, namespace: two}\n",
            ),
            // It names itself.
            (
                "config/crd/Kustomization",
                "kind: Kustomization\nresources: [crd.yaml, ../crd]\n",
            ),
            (
                "config/crd/crd.yaml",
                "\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\n",
            ),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn objects_are_placed_in_the_files_that_define_them() {
        let folder = folder();
        let output = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\n---\n\
                      apiVersion: v1\nkind: ConfigMap\nmetadata: {name: generated-abc}\n---\n\
                      apiVersion: v1\nkind: Service\nmetadata: {name: demo-a-manager, namespace: two}\n---\n\
                      apiVersion: v1\nkind: Service\nmetadata: {name: demo-a-manager, namespace: system}\n";
        let input = Input::from_kustomization(output.as_bytes(), &folder.path().join("config/default")).unwrap();
        let places: Vec<String> = input
            .documents
            .iter()
            .map(|document| {
                document
                    .origin
                    .to_string()
                    .replace(&*folder.path().to_string_lossy(), "")
            })
            .collect();
        assert_eq!(
            places,
            [
                "/config/crd/crd.yaml:2",
                "/config/default/kustomization.yaml",
                "/config/manager/manager.yaml:6",
                "/config/manager/manager.yaml:2",
            ]
        );
    }
}
