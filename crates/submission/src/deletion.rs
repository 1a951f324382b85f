//! The rules on bundles that a change deletes.

use std::collections::{BTreeMap, BTreeSet};

use olmkit::diagnostics::{Finding, Rule, Severity};
use olmkit_yaml::Position;

use crate::change::{Pair, first_bundle};
use crate::checks::{CHANGE_SUITE, rule};
use crate::python::{Node, Raise, read_stream};
use crate::repository::Repository;

pub(crate) static DELETED: Rule = rule(
    "pipeline/check_deleted_bundles",
    Severity::Error,
    CHANGE_SUITE,
    "A change may delete bundles only if the operator has file-based catalogs and no catalog contains them",
)
.because("A catalog would reference an image without a bundle.", "0.1.0");

/// Checks the bundles that a change deletes.
pub(crate) fn check(
    deleted: &BTreeSet<Pair>,
    head: &Repository,
    base: &Repository,
    found: &mut Vec<Finding>,
) -> Result<(), Raise> {
    let operators: BTreeSet<&String> = deleted.iter().map(|(operator, _)| operator).collect();
    for name in operators {
        let Some(operator) = base.operator(name) else { continue };
        if !operator.uses_catalogs()? {
            let message = format!(
                "The PR deletes an existing operator: Operator({name}). This feature is only allowed for bundles with FBC \
                     enabled."
            );
            found.push(first_bundle(&DELETED, message, deleted).hint("restore the bundle"));
        }
    }
    let mut in_catalogs: BTreeMap<&String, Vec<InCatalog>> = BTreeMap::new();
    for (operator, version) in deleted {
        let Some(there) = base.operator(operator) else { continue };
        let Some(bundle) = there.bundle(version) else { continue };
        let csv = bundle.csv()?;
        let name = csv.view().item("metadata")?.item("name")?;
        let catalogs = in_catalogs.entry(operator);
        for there in catalogs.or_insert_with(|| published(head, operator)) {
            let bundles = there.bundles.as_ref().map_err(Clone::clone)?;
            let Some((_, at)) = bundles.iter().find(|(own, _)| own.equals(name.node)) else {
                continue;
            };
            let message = format!(
                "The PR deletes a bundle ({operator}/{version}) that is in use by a catalog (Catalog({}))",
                there.catalog
            );
            let hint = "remove the bundle from the catalog first, in a separate pull request";
            found.push(
                Finding::from_rule(&DELETED, message)
                    .file(&there.file)
                    .at(*at)
                    .hint(hint),
            );
        }
    }
    Ok(())
}

/// An operator's contents in a catalog.
struct InCatalog {
    catalog: String,
    file: String,
    /// The names of the bundles, with their places.
    bundles: Result<Vec<(Node, Position)>, Raise>,
}

/// Each catalog's contents for an operator. The files are read once, regardless of the number of deleted bundles.
fn published(repository: &Repository, operator: &str) -> Vec<InCatalog> {
    let in_catalog = |catalog: String| {
        let file = repository.operator_catalog_file(&catalog, operator)?;
        let bundles = bundle_names(repository, &file);
        Some(InCatalog { catalog, file, bundles })
    };
    repository.catalogs().into_iter().filter_map(in_catalog).collect()
}

fn bundle_names(repository: &Repository, file: &str) -> Result<Vec<(Node, Position)>, Raise> {
    let mut names = Vec::new();
    for document in read_stream(repository.files(), file)? {
        let blob = document.view();
        if blob.get("schema")?.node.as_str() == Some("olm.bundle") {
            let name = blob.get("name")?;
            names.push((name.node.clone(), name.at));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::{Change, Files, Memory, Repository};

    /// Counts how often catalogs are read.
    struct Counted(Memory, Arc<AtomicUsize>);

    impl Files for Counted {
        fn is_file(&self, path: &str) -> bool {
            self.0.is_file(path)
        }

        fn is_directory(&self, path: &str) -> bool {
            self.0.is_directory(path)
        }

        fn list(&self, path: &str) -> Vec<String> {
            self.0.list(path)
        }

        fn read(&self, path: &str) -> io::Result<Vec<u8>> {
            if path.starts_with("catalogs/") {
                self.1.fetch_add(1, Ordering::Relaxed);
            }
            self.0.read(path)
        }
    }

    #[test]
    fn catalogs_are_read_once_however_many_bundles_are_deleted() {
        let ci = ("operators/a/ci.yaml".to_owned(), "fbc: {enabled: true}\n".to_owned());
        let catalog = |name: &str| {
            let blob = |version: usize| format!("---\nschema: olm.bundle\nname: a.v{version}\n");
            (format!("catalogs/{name}/a/catalog.yaml"), blob(3) + &blob(5))
        };
        let published = [ci, catalog("v4.20"), catalog("v4.21")];
        let bundles: Vec<(String, String)> = (0..8)
            .flat_map(|version| {
                let directory = format!("operators/a/{version}");
                let csv = format!("metadata:\n  name: a.v{version}\n");
                [
                    (format!("{directory}/manifests/a.clusterserviceversion.yaml"), csv),
                    (
                        format!("{directory}/metadata/annotations.yaml"),
                        "annotations: {}\n".to_owned(),
                    ),
                ]
            })
            .collect();
        let files: Vec<String> = bundles.iter().map(|(path, _)| path.clone()).collect();
        let base: Memory = published.iter().cloned().chain(bundles).collect();
        let count = Arc::new(AtomicUsize::new(0));
        let head = Repository::new(Arc::new(Counted(published.into_iter().collect(), Arc::clone(&count))));
        let base = Repository::new(Arc::new(base));
        let found = Change::detect(&head, &base, &files).check(&head, &base);
        let places: Vec<String> = found
            .iter()
            .map(|checked| {
                let file = checked.finding.file.as_ref().unwrap().display();
                format!("{file}:{}", checked.finding.position.unwrap().line)
            })
            .collect();
        let wanted = ["v4.20", "v4.21"].map(|name| format!("catalogs/{name}/a/catalog.yaml"));
        let [first, second] = &wanted;
        assert_eq!(
            places,
            [
                format!("{first}:3"),
                format!("{second}:3"),
                format!("{first}:6"),
                format!("{second}:6")
            ]
        );
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }
}
