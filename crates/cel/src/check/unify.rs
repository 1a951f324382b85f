//! Type unification by the rules of cel-go's checker, with a journal instead of copies.

use std::collections::HashMap;

use crate::types::{Shape, Type};

/// Most comparisons of types in one expression.
const WORK: u64 = 2_000_000;

/// Types bound to the type variables.
#[derive(Default)]
pub(crate) struct Bindings {
    bound: HashMap<u32, Type>,
    journal: Vec<(u32, Option<Type>)>,
    next: u32,
    work: u64,
}

impl Bindings {
    /// A new variable.
    pub(crate) fn fresh(&mut self) -> Type {
        self.fresh_block(1);
        Type::Param(self.next - 1)
    }

    /// Several new variables. Returns the first one's number.
    pub(crate) fn fresh_block(&mut self, count: u32) -> u32 {
        let first = self.next;
        self.next = self.next.saturating_add(count);
        first
    }

    /// Returns true if the types are too many or too large to be compared in reasonable time.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.work > WORK
    }

    fn worked(&mut self) -> bool {
        self.work += 1;
        self.is_exhausted()
    }

    pub(crate) fn mark(&self) -> usize {
        self.journal.len()
    }

    pub(crate) fn roll_back(&mut self, mark: usize) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                Some((variable, Some(before))) => drop(self.bound.insert(variable, before)),
                Some((variable, None)) => drop(self.bound.remove(&variable)),
                None => return,
            }
        }
    }

    fn bind(&mut self, variable: u32, to: Type) {
        let before = self.bound.insert(variable, to);
        self.journal.push((variable, before));
    }

    /// Returns true if a value of type `from` may be used as `to`. Keeps new bindings of variables only then.
    pub(crate) fn is_assignable(&mut self, from: &Type, to: &Type) -> bool {
        let mark = self.mark();
        let fits = self.assign(from, to);
        if !fits {
            self.roll_back(mark);
        }
        fits
    }

    fn assign(&mut self, from: &Type, to: &Type) -> bool {
        if self.worked() {
            return true;
        }
        if let Type::Param(variable) = to {
            match self.substitutes(from, *variable) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Param(variable) = from {
            return self.substitutes(to, *variable).0;
        }
        if from.is_dyn() || to.is_dyn() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Of(left), Type::Of(right)) if left.shape == right.shape => {
                let pairs = left.args.iter().zip(&right.args);
                left.shape == Shape::Type || pairs.into_iter().all(|(left, right)| self.assign(left, right))
            }
            _ => from == to,
        }
    }

    /// Returns true if `variable` may be bound to `wanted`, and whether it already had a binding.
    fn substitutes(&mut self, wanted: &Type, variable: u32) -> (bool, bool) {
        if *wanted == Type::Param(variable) {
            return (true, true);
        }
        if let Some(known) = self.bound.get(&variable).cloned() {
            if *wanted == known {
                return (true, true);
            }
            if !self.assign(wanted, &known) {
                return (false, true);
            }
            let general = most_general(wanted.clone(), known);
            if !self.occurs(variable, &general) {
                self.bind(variable, general);
            }
            return (true, true);
        }
        if self.occurs(variable, wanted) {
            return (false, false);
        }
        self.bind(variable, wanted.clone());
        (true, false)
    }

    fn occurs(&mut self, variable: u32, within: &Type) -> bool {
        if self.worked() {
            return true;
        }
        match within {
            Type::Param(other) if *other == variable => true,
            Type::Param(other) => self
                .bound
                .get(other)
                .cloned()
                .is_some_and(|bound| self.occurs(variable, &bound)),
            Type::Of(compound) => compound.args.iter().any(|arg| self.occurs(variable, arg)),
            _ => false,
        }
    }

    /// The type with its variables resolved. At the end, unbound variables become `dyn`.
    pub(crate) fn resolve(&mut self, of: &Type, is_end: bool) -> Type {
        if self.worked() {
            return Type::Unknown;
        }
        match of {
            Type::Param(variable) => match self.bound.get(variable).cloned() {
                Some(bound) => self.resolve(&bound, is_end),
                None if is_end => Type::Dyn,
                None => of.clone(),
            },
            Type::Of(compound) => {
                let args = compound.args.iter().map(|arg| self.resolve(arg, is_end)).collect();
                Type::new(compound.shape, args)
            }
            other => other.clone(),
        }
    }
}

/// A signature's type with its variables counted from `first`.
pub(crate) fn instantiate(of: &Type, first: u32) -> Type {
    match of {
        Type::Param(variable) => Type::Param(first.saturating_add(*variable)),
        Type::Of(compound) => Type::new(
            compound.shape,
            compound.args.iter().map(|arg| instantiate(arg, first)).collect(),
        ),
        other => other.clone(),
    }
}

fn is_nullable(of: &Type) -> bool {
    match of {
        Type::Null | Type::Object(_) | Type::Opaque(_) | Type::Timestamp | Type::Duration => true,
        Type::Of(compound) => compound.shape == Shape::Optional,
        _ => false,
    }
}

/// The more general of two types that fit each other.
pub(crate) fn most_general(left: Type, right: Type) -> Type {
    if is_less_specific(&left, &right) { left } else { right }
}

fn is_less_specific(left: &Type, right: &Type) -> bool {
    match (left, right) {
        (Type::Dyn | Type::Unknown | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Unknown | Type::Param(_)) => false,
        (Type::Of(left), Type::Of(right)) => {
            left.shape == right.shape
                && (left.shape == Shape::Type
                    || left
                        .args
                        .iter()
                        .zip(&right.args)
                        .all(|(left, right)| is_less_specific(left, right)))
        }
        _ => left == right,
    }
}
