//! An expression that was read and checked.

use std::collections::BTreeSet;

use crate::ast::{Call, Expr, Node};
use crate::budget::{Budget, Failure};
use crate::check::{self, Notes};
use crate::cost::{self, Sizes};
use crate::env::Env;
use crate::error::ParseError;
use crate::eval;
use crate::library::{Library, signature};
use crate::parser;
use crate::types::Type;
use crate::value::Value;

/// An expression that can be run.
#[derive(Debug, Clone)]
pub struct Program {
    node: Node,
    result: Type,
    libraries: BTreeSet<Library>,
    variables: BTreeSet<String>,
}

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileError {
    /// The API server's compiler rejects the expression too.
    Refused(ParseError),
    /// The expression passes a bound of ours, so nothing is known.
    Undecided(ParseError),
}

impl Program {
    /// Reads and checks an expression.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn compile(env: &Env, text: &str) -> Result<Self, CompileError> {
        Self::compiled(env, text, None).map(|(program, _)| program)
    }

    /// As [`Program::compile`], with the API server's estimate of the maximum cost. `None` if only the server can
    /// compute it. `sizes` supplies the sizes of values, see [`Sizes`].
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn compile_with_cost(env: &Env, text: &str, sizes: Sizes<'_>) -> Result<(Self, Option<u64>), CompileError> {
        Self::compiled(env, text, Some(sizes))
    }

    fn compiled(env: &Env, text: &str, sizes: Option<Sizes<'_>>) -> Result<(Self, Option<u64>), CompileError> {
        let sorted = |error: ParseError| {
            if error.is_limit {
                CompileError::Undecided(error)
            } else {
                CompileError::Refused(error)
            }
        };
        let mut node = parser::parse(text).map_err(sorted)?;
        let mut notes = sizes.map(|_| Notes::default());
        let checked = check::check(env, text, &node, notes.as_mut()).map_err(sorted)?;
        let cost = match (sizes, &notes) {
            (Some(sizes), Some(notes)) => cost::estimate(&node, notes, sizes),
            _ => None,
        };
        link(&mut node, env);
        if env.has(Library::Core) {
            convert_constants(text, &node).map_err(CompileError::Refused)?;
        }
        let program = Self {
            node,
            result: checked.result,
            libraries: checked.libraries,
            variables: checked.variables,
        };
        Ok((program, cost))
    }

    /// The type of the value. [`Type::Unknown`] if only the API server can determine it.
    pub fn result(&self) -> &Type {
        &self.result
    }

    /// The libraries that the expression needs.
    pub fn libraries(&self) -> &BTreeSet<Library> {
        &self.libraries
    }

    /// Returns true if the expression refers to a variable of its environment.
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }

    /// Runs the expression.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&self, variables: &[(&str, Value)], budget: &mut Budget) -> Result<Value, Failure> {
        eval::evaluate(&self.node, variables, budget)?.sound()
    }
}

/// Conversions of constants, which the API server runs at compile time.
const CONVERSIONS: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "uint",
];

/// Runs all conversions of constants.
fn convert_constants(text: &str, node: &Node) -> Result<(), ParseError> {
    let mut result = Ok(());
    node.each(&mut |node| {
        if result.is_err() || !matches!(node.expr, Expr::Call(_)) || !is_constant(node) {
            return;
        }
        let value = eval::evaluate(node, &[], &mut Budget::for_object()).and_then(Value::sound);
        if let Err(Failure::Error(problem)) = value {
            let message = format!("program instantiation failed: {problem}");
            result = Err(ParseError::at(text, node.offset, message));
        }
    });
    result
}

fn is_constant(node: &Node) -> bool {
    match &node.expr {
        Expr::Literal(_) => true,
        Expr::Call(call) => {
            let converts = call.target.is_none() && CONVERSIONS.contains(&call.name.as_str());
            converts && matches!(call.args.as_slice(), [arg] if is_constant(arg))
        }
        _ => false,
    }
}

/// Gives functions and types that have a dot in their name this name, as the checker understood them.
fn link(node: &mut Node, env: &Env) {
    let named = match &node.expr {
        Expr::Select(select) if !select.test => node
            .qualified_name()
            .filter(|name| signature::type_named(name).is_some()),
        _ => None,
    };
    if let Some(name) = named {
        node.expr = Expr::Ident(name);
        return;
    }
    match &mut node.expr {
        Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => link(&mut select.operand, env),
        Expr::Index(index) => {
            link(&mut index.operand, env);
            link(&mut index.index, env);
        }
        Expr::Call(call) => link_call(call, env),
        Expr::Unary(_, operand) => link(operand, env),
        Expr::Binary(_, operands) => {
            link(&mut operands.0, env);
            link(&mut operands.1, env);
        }
        Expr::And(terms) | Expr::Or(terms) | Expr::Message(_, terms) => {
            terms.iter_mut().for_each(|node| link(node, env))
        }
        Expr::Conditional(parts) => parts.iter_mut().for_each(|node| link(node, env)),
        Expr::List(items) => items.iter_mut().for_each(|(_, node)| link(node, env)),
        Expr::Map(entries) => entries.iter_mut().for_each(|entry| {
            link(&mut entry.key, env);
            link(&mut entry.value, env);
        }),
        Expr::Fold(fold) => {
            link(&mut fold.range, env);
            fold.filter.iter_mut().for_each(|node| link(node, env));
            link(&mut fold.body, env);
        }
    }
}

fn link_call(call: &mut Call, env: &Env) {
    let qualified = call
        .target
        .as_ref()
        .and_then(Node::qualified_name)
        .map(|prefix| format!("{prefix}.{}", call.name));
    if let Some(name) = qualified.filter(|name| env.knows(name)) {
        call.name = name;
        call.target = None;
    }
    call.target
        .iter_mut()
        .chain(&mut call.args)
        .for_each(|node| link(node, env));
}
