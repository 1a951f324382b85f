//! Maximum cost of an expression, as the API server estimates it when a CustomResourceDefinition is created. Implements
//! cel-go's estimator and the one that Kubernetes adds. Sizes have a minimum and a maximum. Costs need only the
//! maximum, because no minimum cost affects it.

mod calls;
mod folds;
mod path;
mod size;

use std::collections::HashMap;

use crate::ast::{Binary, Expr, Literal, Node, Select};
use crate::check::{Notes, key};
use crate::library::signature::type_named;
use crate::types::{Shape, Type};
use path::Path;
use size::{Entry, Size};

/// Maximum sizes of the values below a variable, by the names of the fields after the variable. Items of lists, and
/// values and keys of maps have the names `@items`, `@values` and `@keys`. `None` if the schema declares nothing.
pub type Sizes<'s> = &'s dyn Fn(&[&str]) -> Option<u64>;

/// The cost of reading a variable or a field.
const ACCESS: u64 = 1;
/// The cost of a call that does not depend on sizes.
const CALL: u64 = 1;
const NEW_LIST: u64 = 10;
const NEW_MAP: u64 = 30;
/// Cost of each character that is read.
const PER_CHARACTER: f64 = 0.1;

/// Estimates a checked expression. Gives nothing when a type in it is unknown to us.
pub(crate) fn estimate(node: &Node, notes: &Notes, sizes: Sizes<'_>) -> Option<u64> {
    if notes.types.values().any(Type::holds_unknown) {
        return None;
    }
    let mut coster = Coster {
        notes,
        sizes,
        known: HashMap::new(),
        scope: Vec::new(),
    };
    Some(coster.cost(node))
}

/// The known facts about the value of a node.
#[derive(Default, Clone)]
struct ValueFacts {
    path: Option<Path>,
    size: Option<Size>,
    entry: Option<Entry>,
}

/// An argument of a call.
struct Argument<'n> {
    node: &'n Node,
    of: Type,
    cost: u64,
    size: Option<Size>,
    path: Option<Path>,
}

impl Argument<'_> {
    fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

struct Coster<'c> {
    notes: &'c Notes,
    sizes: Sizes<'c>,
    known: HashMap<usize, ValueFacts>,
    /// Variables of macros, the innermost last.
    scope: Vec<(String, ValueFacts)>,
}

impl Coster<'_> {
    fn type_of(&self, node: &Node) -> Type {
        self.notes.types.get(&key(node)).cloned().unwrap_or(Type::Dyn)
    }

    fn known(&mut self, node: &Node) -> &mut ValueFacts {
        self.known.entry(key(node)).or_default()
    }

    fn local(&self, name: &str) -> Option<&ValueFacts> {
        self.scope
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, known)| known)
    }

    fn local_of(&self, node: &Node) -> Option<&ValueFacts> {
        match &node.expr {
            Expr::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn path(&self, node: &Node) -> Option<Path> {
        if let Some(local) = self.local_of(node) {
            return local.path.clone();
        }
        self.known.get(&key(node)).and_then(|known| known.path.clone())
    }

    /// The path of the items or values of a node.
    fn path_below(&self, node: &Node, name: &str) -> Path {
        Path::below(self.path(node), name)
    }

    fn size_at(&self, path: Option<&Path>) -> Option<Size> {
        let names = path?.names();
        let below: Vec<&str> = names.iter().skip(1).map(|name| &**name).collect();
        (self.sizes)(&below).map(Size::up_to)
    }

    fn size(&mut self, node: &Node) -> Option<Size> {
        if let Some(size) = self.known.get(&key(node)).and_then(|known| known.size) {
            return Some(size);
        }
        if let Some(size) = written_size(&node.expr) {
            return Some(size);
        }
        if let Some(size) = self.size_at(self.path(node).as_ref()) {
            self.known(node).size = Some(size);
            return Some(size);
        }
        if is_scalar(&self.type_of(node)) {
            return Some(Size::exactly(1));
        }
        self.local_of(node)?.size
    }

    fn size_or_unknown(&mut self, node: &Node) -> Size {
        self.size(node).unwrap_or(Size::UNKNOWN)
    }

    fn set_size(&mut self, node: &Node, size: Option<Size>) {
        if size.is_some() {
            self.known(node).size = size;
        }
    }

    fn entry(&self, node: &Node) -> Option<Entry> {
        let own = self.known.get(&key(node)).and_then(|known| known.entry);
        own.or_else(|| self.local_of(node)?.entry)
    }

    fn set_entry(&mut self, node: &Node, entry: Option<Entry>) {
        if entry.is_some() {
            self.known(node).entry = entry;
        }
    }

    fn copy_sizes(&mut self, to: &Node, from: &Node) {
        let (size, entry) = (self.size(from), self.entry(from));
        self.set_size(to, size);
        self.set_entry(to, entry);
    }

    fn argument<'n>(&mut self, node: &'n Node) -> Argument<'n> {
        let cost = self.cost(node);
        let (path, size) = (self.path(node), self.size(node));
        Argument {
            node,
            of: self.type_of(node),
            cost,
            size,
            path,
        }
    }

    fn cost(&mut self, node: &Node) -> u64 {
        match &node.expr {
            Expr::Literal(_) => 0,
            Expr::Ident(name) => self.ident(node, name),
            Expr::Select(select) => self.select(node, select),
            Expr::Index(index) => {
                let name = if index.optional { "_[?_]" } else { "_[_]" };
                let args = [self.argument(&index.operand), self.argument(&index.index)];
                self.call(node, name, None, &args)
            }
            Expr::Call(call) => self.written_call(node, call),
            Expr::Unary(_, operand) => self.cost(operand).saturating_add(CALL),
            Expr::Binary(operator, operands) => {
                let args = [self.argument(&operands.0), self.argument(&operands.1)];
                // The four comparisons are one function to the table.
                let name = match operator {
                    Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => Binary::Less.name(),
                    other => other.name(),
                };
                self.call(node, name, None, &args)
            }
            Expr::And(terms) | Expr::Or(terms) => sum(terms.iter().map(|term| self.cost(term))),
            Expr::Conditional(parts) => self.conditional(node, parts),
            Expr::List(items) => {
                let mut cost = NEW_LIST;
                let mut value = Size::none(items.is_empty());
                for (_, item) in items {
                    cost = cost.saturating_add(self.cost(item));
                    value = value.union(self.size_or_unknown(item));
                }
                self.set_entry(node, Some(Entry::of_list(value)));
                cost
            }
            Expr::Map(entries) => {
                let mut cost = NEW_MAP;
                let (mut keys, mut values) = (Size::none(entries.is_empty()), Size::none(entries.is_empty()));
                for entry in entries {
                    cost = cost.saturating_add(self.cost(&entry.key));
                    cost = cost.saturating_add(self.cost(&entry.value));
                    keys = keys.union(self.size_or_unknown(&entry.key));
                    values = values.union(self.size_or_unknown(&entry.value));
                }
                self.set_entry(node, Some(Entry::of_map(keys, values)));
                cost
            }
            // Never reached: its type is unknown.
            Expr::Message(_, values) => sum(values.iter().map(|value| self.cost(value))),
            Expr::Fold(fold) => self.fold(node, fold),
        }
    }

    fn ident(&mut self, node: &Node, name: &str) -> u64 {
        if self.local(name).is_none() {
            self.known(node).path = Some(Path::new(name.trim_start_matches('.')));
        }
        ACCESS
    }

    fn select(&mut self, node: &Node, select: &Select) -> u64 {
        if !select.test
            && let Some(name) = node.qualified_name()
            && type_named(&name).is_some()
        {
            return self.ident(node, &name);
        }
        let operand = self.cost(&select.operand);
        if select.test {
            return operand;
        }
        if select.optional {
            let size = self.size(node);
            self.set_size(node, size);
            return operand.saturating_add(CALL);
        }
        let of = self.type_of(&select.operand);
        let access = if matches!(of, Type::Object(_)) || of.part(Shape::Map, 0).is_some() {
            ACCESS
        } else {
            0
        };
        let path = self.path_below(&select.operand, &select.field);
        self.known(node).path = Some(path);
        operand.saturating_add(access)
    }

    fn conditional(&mut self, node: &Node, parts: &[Node; 3]) -> u64 {
        let [condition, yes, no] = parts;
        let condition = self.cost(condition);
        let (yes, no) = (self.argument(yes), self.argument(no));
        let size = yes.size().union(no.size());
        let entry = Entry::union(self.entry(yes.node), self.entry(no.node));
        self.set_entry(node, entry);
        self.set_size(node, Some(size));
        condition.saturating_add(yes.cost.max(no.cost))
    }
}

fn sum(costs: impl Iterator<Item = u64>) -> u64 {
    costs.fold(0, u64::saturating_add)
}

/// The size of a literal.
fn written_size(expr: &Expr) -> Option<Size> {
    let count = match expr {
        Expr::Literal(Literal::String(text)) => text.chars().count(),
        Expr::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Expr::Literal(_) => 1,
        Expr::List(items) => items.len(),
        Expr::Map(entries) => entries.len(),
        _ => return None,
    };
    u64::try_from(count).ok().map(Size::exactly)
}

/// Returns true if all values of a type have one size.
fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.part(Shape::Optional, 0).is_some_and(is_scalar),
    }
}
