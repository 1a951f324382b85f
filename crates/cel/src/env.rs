//! Declarations that an expression may refer to.

use std::collections::BTreeSet;

use crate::library::Library;
use crate::library::signature::{self, Overload};
use crate::types::Type;

/// Variables and functions.
#[derive(Debug)]
pub struct Env {
    libraries: BTreeSet<Library>,
    variables: Vec<(String, Type)>,
    functions: Vec<(String, Overload)>,
}

impl Env {
    /// Standard CEL only.
    pub fn standard() -> Self {
        Self {
            libraries: BTreeSet::from([Library::Standard]),
            variables: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// The environment of Kubernetes for CustomResourceDefinitions, with the libraries of all versions.
    pub fn kubernetes() -> Self {
        Self {
            libraries: Library::ALL.into(),
            ..Self::standard()
        }
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable_of(mut self, name: &str, of: Type) -> Self {
        self.variables.push((name.to_owned(), of));
        self
    }

    /// Adds a function without a receiver. It can be checked; to run it is undecided.
    #[must_use]
    pub fn function_of(mut self, name: &str, params: Vec<Type>, result: Type) -> Self {
        let overload = Overload {
            library: Library::Standard,
            is_member: false,
            params,
            result,
            variables: 0,
        };
        self.functions.push((name.to_owned(), overload));
        self
    }

    pub(crate) fn has(&self, library: Library) -> bool {
        self.libraries.contains(&library)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, of)| of)
    }

    pub(crate) fn overloads<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Overload> {
        // The four comparisons take the same types.
        let listed = match name {
            "_<=_" | "_>_" | "_>=_" => "_<_",
            other => other,
        };
        let own = self
            .functions
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, overload)| overload);
        let known = signature::overloads(listed)
            .iter()
            .filter(|overload| self.has(overload.library));
        known.chain(own)
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.overloads(name).next().is_some()
    }
}
