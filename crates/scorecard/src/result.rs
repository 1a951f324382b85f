//! A test's result, and the list that scorecard prints.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::TestConfiguration;

/// The version of the types.
pub const API_VERSION: &str = "scorecard.operatorframework.io/v1alpha3";

/// Result state of a test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// It passed.
    #[serde(rename = "pass")]
    Pass,
    /// It failed.
    #[serde(rename = "fail")]
    Fail,
    /// It could not be carried out.
    #[serde(rename = "error")]
    Error,
    /// No state or an unknown one. Scorecard treats it as a failure.
    #[default]
    #[serde(other, rename = "")]
    Unknown,
}

impl State {
    /// The state in its printed form. Empty for [`State::Unknown`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Pass => "pass",
            State::Fail => "fail",
            State::Error => "error",
            State::Unknown => "",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestResult {
    /// The check's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Log output, for debugging.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// Result state.
    pub state: State,
    /// Errors.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub errors: Vec<String>,
    /// Suggestions for improvement.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub suggestions: Vec<String>,
    /// When the result was made, in RFC 3339.
    #[serde(rename = "creationTimestamp")]
    pub creation_timestamp: Option<String>,
}

impl TestResult {
    /// A check that has passed so far.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: State::Pass,
            ..Self::default()
        }
    }

    /// Adds an error. The test fails.
    pub fn fail(&mut self, error: impl Into<String>) {
        self.state = State::Fail;
        self.errors.push(error.into());
    }

    /// Notes why the check cannot be carried out.
    pub fn error(&mut self, error: impl Into<String>) {
        self.state = State::Error;
        self.errors.push(error.into());
    }

    /// Adds a suggestion. The state does not change.
    pub fn suggest(&mut self, suggestion: impl Into<String>) {
        self.suggestions.push(suggestion.into());
    }

    /// Adds a line to the log.
    pub fn log(&mut self, line: impl fmt::Display) {
        self.log.push_str(&format!("{line}\n"));
    }
}

/// A test's output: printed as JSON by [`fmt::Display`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TestStatus {
    /// The results.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub results: Vec<TestResult>,
}

impl From<TestResult> for TestStatus {
    fn from(result: TestResult) -> Self {
        Self { results: vec![result] }
    }
}

impl FromIterator<TestResult> for TestStatus {
    fn from_iter<I: IntoIterator<Item = TestResult>>(results: I) -> Self {
        Self {
            results: results.into_iter().collect(),
        }
    }
}

impl fmt::Display for TestStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

/// A test with its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    /// `Test`
    pub kind: String,
    /// [`API_VERSION`]
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// The test's configuration.
    #[serde(default)]
    pub spec: TestConfiguration,
    /// The test's results.
    #[serde(default)]
    pub status: TestStatus,
}

impl Test {
    /// A test of a configuration with its results.
    #[must_use]
    pub fn new(spec: TestConfiguration, status: TestStatus) -> Self {
        Self {
            kind: "Test".to_owned(),
            api_version: API_VERSION.to_owned(),
            spec,
            status,
        }
    }
}

/// All tests of a run. Without any, `items` is null, as scorecard prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestList {
    /// `TestList`
    pub kind: String,
    /// [`API_VERSION`]
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// The tests.
    #[serde(serialize_with = "empty_as_null", deserialize_with = "null_as_default", default)]
    pub items: Vec<Test>,
}

impl TestList {
    /// Returns true if every result of every test is [`State::Pass`].
    #[must_use]
    pub fn passed(&self) -> bool {
        let mut results = self.items.iter().flat_map(|test| &test.status.results);
        results.all(|result| result.state == State::Pass)
    }
}

impl FromIterator<Test> for TestList {
    fn from_iter<I: IntoIterator<Item = Test>>(items: I) -> Self {
        Self {
            kind: "TestList".to_owned(),
            api_version: API_VERSION.to_owned(),
            items: items.into_iter().collect(),
        }
    }
}

fn null_as_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

fn empty_as_null<S: serde::Serializer>(items: &[Test], to: S) -> Result<S::Ok, S::Error> {
    if items.is_empty() {
        to.serialize_none()
    } else {
        items.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_shape_that_scorecard_reads() {
        let mut result = TestResult::new("a");
        result.log("read");
        result.fail("no LICENSE");
        result.suggest("add one");
        let json = serde_json::to_string(&TestStatus::from(result)).unwrap();
        assert_eq!(
            json,
            r#"{"results":[{"name":"a","log":"read\n","state":"fail","errors":["no LICENSE"],"suggestions":["add one"],"creationTimestamp":null}]}"#
        );
    }

    #[test]
    fn a_status_is_read_as_other_programs_print_it() {
        let json = r#"{"results":[{"log":"x","state":"","errors":null,"creationTimestamp":null},{"state":"odd"}]}"#;
        let status: TestStatus = serde_json::from_str(json).unwrap();
        assert_eq!(status.results.len(), 2);
        assert!(status.results.iter().all(|result| result.state == State::Unknown));
        assert_eq!(status.results[0].log, "x");
        assert_eq!(serde_json::from_str::<TestStatus>("{}").unwrap(), TestStatus::default());
    }

    #[test]
    fn a_list_passes_when_all_results_do() {
        let list = |state| -> TestList {
            let result = TestResult {
                state,
                ..TestResult::new("a")
            };
            [Test::new(TestConfiguration::default(), result.into())]
                .into_iter()
                .collect()
        };
        assert!(list(State::Pass).passed());
        for state in [State::Fail, State::Error, State::Unknown] {
            assert!(!list(state).passed(), "{state:?}");
        }
        let none: TestList = [].into_iter().collect();
        assert!(none.passed());
        assert_eq!(
            serde_json::to_string(&none).unwrap(),
            r#"{"kind":"TestList","apiVersion":"scorecard.operatorframework.io/v1alpha3","items":null}"#
        );
    }
}
