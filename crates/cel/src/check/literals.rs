//! Checks of constants: lists and maps of one type, times and durations.

use super::Checker;
use crate::ast::{Call, Expr, Literal, Node};
use crate::budget::Failure;
use crate::error::ParseError;
use crate::library::Library;
use crate::regex::GoRegex;
use crate::types::{Shape, Type};
use crate::value::time;

impl<'c> Checker<'c> {
    /// A list or a map.
    pub(super) fn aggregate(&mut self, node: &'c Node) -> Result<Type, ParseError> {
        match &node.expr {
            Expr::List(items) => {
                let mut elements = Vec::with_capacity(items.len());
                for (optional, item) in items {
                    elements.push((item.offset, self.element(item, *optional)?));
                }
                Ok(Type::list(self.common(elements)))
            }
            Expr::Map(entries) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in entries {
                    keys.push((entry.key.offset, self.element(&entry.key, false)?));
                    values.push((entry.value.offset, self.element(&entry.value, entry.optional)?));
                }
                let key = self.common(keys);
                Ok(Type::map(key, self.common(values)))
            }
            _ => Ok(Type::Unknown),
        }
    }

    fn element(&mut self, node: &'c Node, optional: bool) -> Result<Type, ParseError> {
        let found = self.check(node)?;
        if !optional {
            return Ok(found);
        }
        self.uses(node, Library::Optional, "?")?;
        let found = self.bindings.resolve(&found, false);
        match found.part(Shape::Optional, 0) {
            Some(inner) => Ok(inner.clone()),
            None if found.is_dyn() => Ok(found),
            None => Err(self.refuse(
                node,
                format!("expected type 'optional_type({found})' but found '{found}'"),
            )),
        }
    }

    fn common(&mut self, elements: Vec<(usize, Type)>) -> Type {
        let mut known = None;
        for (_, found) in &elements {
            known = Some(self.join(known, found.clone()));
        }
        if self.exempt == 0 && elements.len() > 1 && self.env.has(Library::Core) {
            self.aggregates.push(elements);
        }
        match known {
            None => self.bindings.fresh(),
            Some(known) => known,
        }
    }

    /// The API server rejects lists and maps of mixed types, although CEL supports them.
    pub(super) fn check_aggregates(&mut self) -> Result<(), ParseError> {
        for elements in std::mem::take(&mut self.aggregates) {
            let mut wanted: Option<Type> = None;
            for (offset, found) in elements {
                let found = self.bindings.resolve(&found, true);
                if found.holds_unknown() || self.bindings.is_exhausted() {
                    break;
                }
                match &wanted {
                    None => wanted = Some(found),
                    Some(wanted) if *wanted != found => {
                        let message = format!("expected type '{wanted}' but found '{found}'");
                        return Err(ParseError::at(self.text, offset, message));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// The compiler reads constant arguments of `duration` and `timestamp`, and constant regular expressions. The
    /// server reads the first argument of `matches`, which is the string if there is no receiver, and then every
    /// expression.
    pub(super) fn check_literal(&self, call: &Call) -> Result<(), ParseError> {
        if !self.env.has(Library::Core) {
            return Ok(());
        }
        for (at, node) in call.args.iter().enumerate() {
            let Expr::Literal(Literal::String(text)) = &node.expr else {
                continue;
            };
            let refuse = |message: String| Err(ParseError::at(self.text, node.offset, message));
            match (call.name.as_str(), call.target.is_some(), at) {
                ("duration", false, 0) if time::parse_duration(text).is_none() => {
                    return refuse("invalid duration argument".to_owned());
                }
                ("timestamp", false, 0) if time::Timestamp::parse(text).is_none() => {
                    return refuse("invalid timestamp argument".to_owned());
                }
                ("matches", false, _) | ("matches" | "find" | "findAll", true, 0) => {
                    // If only Go can decide, nothing is reported.
                    if let Err(Failure::Error(problem)) = GoRegex::check(text) {
                        return refuse(format!("invalid {} argument: {problem}", call.name));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
