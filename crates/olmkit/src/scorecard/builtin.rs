//! The program `scorecard-test`, which is in the image of that name: a name on its command line selects one of six tests.

use std::cell::OnceCell;

use olmkit_scorecard::{TestConfiguration, TestResult};

use super::csv::Csv;
use super::rules::{Answer, SC_1};
use super::{descriptors, examples, resources, schemas, validation};
use crate::bundle::Object;
use crate::bundle::load::{self, Entry, Reading};
use crate::diagnostics::Finding;
use crate::object::Reference;

/// The built-in tests.
pub(super) const NAMES: [&str; 6] = [
    "basic-check-spec",
    "olm-bundle-validation",
    "olm-crds-have-validation",
    "olm-crds-have-resources",
    "olm-spec-descriptors",
    "olm-status-descriptors",
];

/// The image and program of the built-in tests.
const PROGRAM: &str = "scorecard-test";

/// A call of the program of the built-in tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Builtin {
    /// The requested test, which may be unknown. `None` without arguments.
    pub name: Option<String>,
}

impl Builtin {
    /// The built-in test for an image and its command. Any registry, tag and digest of the image is accepted.
    #[must_use]
    pub fn from_test(test: &TestConfiguration) -> Option<Self> {
        let last = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
        let image = test.image.parse::<Reference>().ok()?;
        let command = test.entrypoint.first().map(|command| last(command));
        let is_program = last(image.repository()) == PROGRAM && command.is_some_and(|command| command == PROGRAM);
        is_program.then(|| Self {
            name: test.entrypoint.get(1).cloned(),
        })
    }
}

/// A bundle as the built-in tests see it.
#[derive(Debug)]
pub struct Bundle<'a> {
    /// The input of `bundle validate`.
    pub(super) reading: &'a Reading,
    loaded: OnceCell<Result<Vec<Object>, String>>,
}

impl<'a> Bundle<'a> {
    /// A bundle that was read.
    #[must_use]
    pub fn new(reading: &'a Reading) -> Self {
        Self {
            reading,
            loaded: OnceCell::new(),
        }
    }

    /// The bundle's files with their paths from its root, in order.
    pub fn files(&self) -> impl Iterator<Item = (String, &'a [u8])> + use<'a> {
        self.reading
            .bundle
            .tree
            .walk("")
            .filter_map(|(path, entry)| match entry {
                Entry::File(bytes) => Some((path, bytes.as_slice())),
                _ => None,
            })
    }

    /// The objects: of the directory of the ClusterServiceVersion that the walk over the whole bundle meets last, wherever it is.
    fn objects(&self) -> &Result<Vec<Object>, String> {
        self.loaded.get_or_init(|| {
            let bundle = &self.reading.bundle;
            let (objects, fatal) = load::directory(&bundle.tree, &bundle.root, ".");
            let fatal = fatal.or_else(|| bundle.metadata.annotations.is_empty().then(|| self.no_metadata()));
            fatal.map_or(Ok(objects), Err)
        })
    }

    fn no_metadata(&self) -> String {
        let fatal = self.reading.fatal.clone();
        fatal.unwrap_or_else(|| format!("metadata not found in {}", self.reading.bundle.root))
    }

    /// The result of a built-in test.
    #[must_use]
    pub fn run(&self, builtin: &Builtin) -> TestResult {
        self.answer(builtin).result
    }

    /// The result of a built-in test, and its findings with positions and names.
    #[must_use]
    pub fn answer(&self, builtin: &Builtin) -> Answer {
        let name = builtin.name.as_deref().unwrap_or_default();
        if builtin.name.is_none() {
            return ended(TestResult::new(""), "test name argument is required", Vec::new());
        }
        let mut answer = Answer {
            result: TestResult::new(name),
            findings: Vec::new(),
        };
        let objects = match self.objects() {
            Ok(objects) => objects,
            Err(fatal) => {
                let problems = match self.reading.problems.as_slice() {
                    [] => vec![
                        Finding::from_rule(&SC_1, fatal.clone()).hint("the tests read every directory of the bundle"),
                    ],
                    problems => problems.to_vec(),
                };
                return ended(answer.result, fatal, problems);
            }
        };
        let csv = Csv::new(objects);
        match name {
            "basic-check-spec" => examples::check_spec(&csv, &mut answer),
            "olm-bundle-validation" => validation::check(self.reading, &mut answer),
            "olm-crds-have-validation" => schemas::check(&csv, objects, &mut answer),
            "olm-crds-have-resources" => resources::check(&csv, &mut answer),
            "olm-spec-descriptors" => descriptors::check_spec(&csv, &mut answer),
            "olm-status-descriptors" => descriptors::check_status(&csv, &mut answer),
            _ => {
                answer.result.name.clear();
                answer
                    .result
                    .fail(format!("Valid tests for this image include: {}", NAMES.join(", ")));
            }
        }
        answer
    }
}

/// The program of the built-in tests ended before it had a result.
fn ended(mut result: TestResult, text: &str, findings: Vec<Finding>) -> Answer {
    result.fail(text);
    result.log(text);
    Answer { result, findings }
}
