//! Finds the type of an expression, and the errors that the API server's compiler reports.

mod fold;
mod literals;
mod unify;

use std::collections::{BTreeSet, HashMap};

use crate::ast::{Binary, Call, Expr, Literal, Node, Select, Unary};
use crate::env::Env;
use crate::error::ParseError;
use crate::lexer::RESERVED;
use crate::library::Library;
use crate::library::signature::{Overload, type_named};
use crate::types::{Shape, Type};
use unify::{Bindings, instantiate, most_general};

/// Result of checking an expression.
pub(crate) struct Checked {
    pub(crate) result: Type,
    pub(crate) libraries: BTreeSet<Library>,
    pub(crate) variables: BTreeSet<String>,
}

/// The checker's results for each node, by its address.
#[derive(Default)]
pub(crate) struct Notes {
    /// The type of each value.
    pub(crate) types: HashMap<usize, Type>,
    /// The name of each function and the parameters of all its matching signatures.
    pub(crate) calls: HashMap<usize, (String, Vec<Vec<Type>>)>,
}

/// Checks an expression. With `notes`, keeps what the type and overload found at each node.
///
/// # Errors
/// The API server's compiler error.
pub(crate) fn check(env: &Env, text: &str, node: &Node, notes: Option<&mut Notes>) -> Result<Checked, ParseError> {
    let mut checker = Checker {
        env,
        text,
        scope: Vec::new(),
        bindings: Bindings::default(),
        aggregates: Vec::new(),
        exempt: 0,
        libraries: BTreeSet::from([Library::Standard]),
        variables: BTreeSet::new(),
        notes: notes.is_some().then(Notes::default),
    };
    let result = checker.check(node)?;
    let result = checker.bindings.resolve(&result, true);
    checker.check_aggregates()?;
    let result = if checker.bindings.is_exhausted() {
        Type::Unknown
    } else {
        result
    };
    if let (Some(wanted), Some(mut found)) = (notes, checker.notes.take()) {
        for of in found.types.values_mut() {
            *of = checker.bindings.resolve(of, true);
        }
        *wanted = found;
    }
    Ok(Checked {
        result,
        libraries: checker.libraries,
        variables: checker.variables,
    })
}

struct Checker<'c> {
    env: &'c Env,
    text: &'c str,
    /// Variables of macros, the innermost last.
    scope: Vec<(&'c str, Type)>,
    bindings: Bindings,
    /// Lists, or keys or values of maps, whose types must be equal: position and type of each.
    aggregates: Vec<Vec<(usize, Type)>>,
    /// Number of enclosing `format` calls, which accept a mixed list.
    exempt: usize,
    libraries: BTreeSet<Library>,
    variables: BTreeSet<String>,
    notes: Option<Notes>,
}

impl<'c> Checker<'c> {
    fn refuse(&self, node: &Node, message: String) -> ParseError {
        ParseError::at(self.text, node.offset, message)
    }

    fn undeclared(&self, node: &Node, name: &str) -> ParseError {
        self.refuse(node, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn check(&mut self, node: &'c Node) -> Result<Type, ParseError> {
        let found = self.check_inner(node)?;
        if let Some(notes) = &mut self.notes {
            notes.types.insert(key(node), found.clone());
        }
        Ok(found)
    }

    fn check_inner(&mut self, node: &'c Node) -> Result<Type, ParseError> {
        match &node.expr {
            Expr::Literal(literal) => Ok(type_of_literal(literal)),
            Expr::Ident(name) => self.ident(node, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Index(index) => {
                let name = if index.optional { "_[?_]" } else { "_[_]" };
                let args = [self.check(&index.operand)?, self.check(&index.index)?];
                self.call_named(node, name, false, &args)
            }
            Expr::Call(call) => self.call(node, call),
            Expr::Unary(operator, operand) => {
                let name = if *operator == Unary::Not { "!_" } else { "-_" };
                let args = [self.check(operand)?];
                self.call_named(node, name, false, &args)
            }
            Expr::Binary(operator, operands) => {
                let args = [self.check(&operands.0)?, self.check(&operands.1)?];
                self.binary(node, *operator, &args)
            }
            Expr::And(terms) | Expr::Or(terms) => {
                for term in terms {
                    self.bool(term)?;
                }
                Ok(Type::Bool)
            }
            Expr::Conditional(parts) => self.conditional(node, parts),
            Expr::List(_) | Expr::Map(_) => self.aggregate(node),
            Expr::Message(_, values) => {
                for value in values {
                    self.check(value)?;
                }
                Ok(Type::Unknown)
            }
            Expr::Fold(fold) => self.fold(node, fold),
        }
    }

    /// Checks an expression that must be a boolean.
    fn bool(&mut self, node: &'c Node) -> Result<(), ParseError> {
        let found = self.check(node)?;
        if self.bindings.is_assignable(&found, &Type::Bool) {
            return Ok(());
        }
        let found = self.bindings.resolve(&found, true);
        Err(self.refuse(node, format!("expected type 'bool' but found '{found}'")))
    }

    fn conditional(&mut self, node: &'c Node, parts: &'c [Node; 3]) -> Result<Type, ParseError> {
        let [condition, yes, no] = parts;
        let args = [self.check(condition)?, self.check(yes)?, self.check(no)?];
        let [condition, yes, no] = &args;
        let result = self.bindings.fresh();
        let fits = self.bindings.is_assignable(condition, &Type::Bool)
            && self.bindings.is_assignable(yes, &result)
            && self.bindings.is_assignable(no, &result);
        if !fits {
            return Err(self.no_overload(node, "_?_:_", false, &args));
        }
        Ok(self.bindings.resolve(&result, false))
    }

    fn ident(&mut self, node: &Node, name: &str) -> Result<Type, ParseError> {
        let local = self.scope.iter().rev().find(|(known, _)| *known == name);
        if let Some((_, found)) = local {
            return Ok(found.clone());
        }
        let name = name.trim_start_matches('.');
        if let Some(found) = self.env.variable(name) {
            self.variables.insert(name.to_owned());
            return Ok(found.clone());
        }
        type_named(name).ok_or_else(|| self.undeclared(node, name))
    }

    fn select(&mut self, node: &'c Node, select: &'c Select) -> Result<Type, ParseError> {
        if !select.test
            && let Some(name) = node.qualified_name()
            && let Some(found) = type_named(&name)
        {
            return Ok(found);
        }
        if select.optional {
            self.uses(node, Library::Optional, ".?")?;
        }
        let operand = self.check(&select.operand)?;
        let operand = self.bindings.resolve(&operand, false);
        let (target, is_optional) = match operand.part(Shape::Optional, 0) {
            Some(inner) => (inner.clone(), true),
            None => (operand, false),
        };
        let field = self.field(node, &target, &select.field)?;
        if select.test {
            return Ok(Type::Bool);
        }
        if select.optional || is_optional {
            return Ok(Type::optional(field));
        }
        Ok(field)
    }

    fn field(&mut self, node: &Node, target: &Type, field: &str) -> Result<Type, ParseError> {
        if let Some(value) = target.part(Shape::Map, 1) {
            return Ok(value.clone());
        }
        match target {
            Type::Object(object) => match object.fields.get(field) {
                Some(found) => Ok(found.clone()),
                None => match RESERVED
                    .contains(&field)
                    .then(|| object.fields.get(&format!("__{field}__")))
                {
                    Some(Some(found)) => {
                        self.uses(node, Library::Keywords, field)?;
                        Ok(found.clone())
                    }
                    _ => Err(self.refuse(node, format!("undefined field '{field}'"))),
                },
            },
            Type::Param(_) => {
                self.bindings.is_assignable(&Type::Dyn, target);
                Ok(Type::Dyn)
            }
            Type::Dyn | Type::Unknown => Ok(target.clone()),
            other => Err(self.refuse(node, format!("type '{other}' does not support field selection"))),
        }
    }

    /// Notes that the expression needs a library.
    fn uses(&mut self, node: &Node, library: Library, syntax: &str) -> Result<(), ParseError> {
        if !self.env.has(library) {
            return Err(self.refuse(node, format!("unsupported syntax '{syntax}'")));
        }
        self.libraries.insert(library);
        Ok(())
    }

    fn binary(&mut self, node: &Node, operator: Binary, args: &[Type; 2]) -> Result<Type, ParseError> {
        self.call_named(node, operator.name(), false, args)
    }

    fn call(&mut self, node: &'c Node, call: &'c Call) -> Result<Type, ParseError> {
        let is_format = call.name == "format";
        self.exempt += usize::from(is_format);
        let result = self.call_inner(node, call);
        self.exempt -= usize::from(is_format);
        result
    }

    fn call_inner(&mut self, node: &'c Node, call: &'c Call) -> Result<Type, ParseError> {
        self.check_literal(call)?;
        let mut args = Vec::with_capacity(call.args.len() + 1);
        let Some(target) = &call.target else {
            for arg in &call.args {
                args.push(self.check(arg)?);
            }
            return self.call_named(node, call.name.trim_start_matches('.'), false, &args);
        };
        let qualified = target.qualified_name().map(|prefix| format!("{prefix}.{}", call.name));
        if let Some(name) = qualified.filter(|name| self.env.knows(name)) {
            for arg in &call.args {
                args.push(self.check(arg)?);
            }
            return self.call_named(node, &name, false, &args);
        }
        args.push(self.check(target)?);
        for arg in &call.args {
            args.push(self.check(arg)?);
        }
        self.call_named(node, &call.name, true, &args)
    }

    fn call_named(&mut self, node: &Node, name: &str, is_member: bool, args: &[Type]) -> Result<Type, ParseError> {
        if !self.env.knows(name) {
            return Err(self.undeclared(node, name));
        }
        let env = self.env;
        let mut result: Option<Type> = None;
        let mut library: Option<Library> = None;
        for overload in env.overloads(name).filter(|overload| overload.is_member == is_member) {
            let Some(found) = self.apply(overload, args) else {
                continue;
            };
            if let Some(notes) = &mut self.notes {
                let call = notes
                    .calls
                    .entry(key(node))
                    .or_insert_with(|| (name.to_owned(), Vec::new()));
                call.1.push(overload.params.clone());
            }
            library = Some(library.map_or(overload.library, |known| known.min(overload.library)));
            result = Some(match result {
                None => found,
                Some(known) if known.is_dyn() || known == found => known,
                // With known arguments, it would be one of them.
                Some(_) if found == Type::Unknown || args.iter().any(Type::holds_unknown) => Type::Unknown,
                Some(_) => Type::Dyn,
            });
        }
        self.libraries.extend(library);
        result.ok_or_else(|| self.no_overload(node, name, is_member, args))
    }

    fn apply(&mut self, overload: &Overload, args: &[Type]) -> Option<Type> {
        if overload.params.len() != args.len() {
            return None;
        }
        let first = self.bindings.fresh_block(overload.variables);
        let mark = self.bindings.mark();
        for (arg, param) in args.iter().zip(&overload.params) {
            if !self.bindings.is_assignable(arg, &instantiate(param, first)) {
                self.bindings.roll_back(mark);
                return None;
            }
        }
        Some(self.bindings.resolve(&instantiate(&overload.result, first), false))
    }

    fn no_overload(&mut self, node: &Node, name: &str, is_member: bool, args: &[Type]) -> ParseError {
        let shown: Vec<String> = args
            .iter()
            .map(|arg| self.bindings.resolve(arg, true).to_string())
            .collect();
        let shown = match shown.split_first() {
            Some((target, rest)) if is_member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.refuse(
            node,
            format!("found no matching overload for '{name}' applied to '{shown}'"),
        )
    }

    /// The common type of elements.
    fn join(&mut self, known: Option<Type>, found: Type) -> Type {
        match known {
            None => found,
            Some(known) if self.bindings.is_assignable(&known, &found) => most_general(known, found),
            Some(_) => Type::Dyn,
        }
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// Identifies a node: nodes do not move between the check and the estimate.
pub(crate) fn key(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}
