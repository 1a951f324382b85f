//! The waivers of `config.yaml`: checks that are skipped for some operators.

use regex::Regex;

use crate::python::Node;
use crate::repository::Repository;

/// Checks that are waived for operators.
#[derive(Debug, Clone, Default)]
pub struct Waivers {
    entries: Vec<(String, Regex)>,
    /// Errors in the file.
    pub problems: Vec<String>,
}

impl Waivers {
    /// Reads them from `config.yaml`: `tests`, a list of `name` and `ignore_operators`.
    pub fn read(repository: &Repository) -> Self {
        let mut waivers = Self::default();
        let Ok(config) = repository.config() else {
            return waivers;
        };
        let Some(tests) = config.root.get("tests") else {
            return waivers;
        };
        for test in tests.items() {
            let Some(name) = test.get("name").and_then(Node::as_str) else {
                continue;
            };
            let patterns = test.get("ignore_operators").map(Node::items).unwrap_or_default();
            for pattern in patterns.iter().filter_map(Node::as_str) {
                match Regex::new(&format!("^(?:{pattern})")) {
                    Ok(regex) => waivers.entries.push((name.to_owned(), regex)),
                    Err(_) => waivers.problems.push(format!(
                        "{}:{}: the waiver of {name} for {pattern:?} is not a pattern that olmkit reads; it is ignored",
                        config.file, test.start.line
                    )),
                }
            }
        }
        waivers
    }

    /// Returns true if a check is waived for an operator.
    pub fn waives(&self, check: &str, operator: &str) -> bool {
        self.entries
            .iter()
            .any(|(name, pattern)| name == check && pattern.is_match(operator))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::files::Memory;

    #[test]
    fn patterns_match_at_the_start() {
        let config = "tests:\n- name: check_operator_name\n  ignore_operators: [foo, '^bar$', '(?=x)']\n";
        let files: Memory = [("config.yaml", config)].into_iter().collect();
        let waivers = Waivers::read(&Repository::new(Arc::new(files)));
        assert!(waivers.waives("check_operator_name", "foo-operator"));
        assert!(!waivers.waives("check_operator_name", "bar-operator"));
        assert!(!waivers.waives("check_pruned_graph", "foo"));
        assert_eq!(waivers.problems.len(), 1);
    }
}
