//! Macros that run an expression for each item.

use std::collections::BTreeMap;

use super::{Evaluator, insert, keys};
use crate::ast::{Fold, FoldKind, Node};
use crate::budget::Failure;
use crate::runtime::{ITEM, Outcome};
use crate::value::{Value, compare};

/// The items of a macro's range: the position or key of each, and its value.
enum Range {
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl<'e> Evaluator<'e> {
    pub(super) fn fold(&mut self, fold: &'e Fold) -> Outcome {
        let range = self.eval(&fold.range)?;
        match fold.kind {
            FoldKind::OptMap | FoldKind::OptFlatMap => self.fold_optional(fold, range),
            FoldKind::All => self.quantify(fold, &range, false),
            FoldKind::Exists => self.quantify(fold, &range, true),
            FoldKind::ExistsOne => self.exists_one(fold, &range),
            FoldKind::Map | FoldKind::Filter | FoldKind::TransformList => self.make_list(fold, &range),
            FoldKind::TransformMap | FoldKind::TransformMapEntry => self.make_map(fold, &range),
            FoldKind::SortBy => self.sort_by(fold, &range),
        }
    }

    fn range(&mut self, value: &Value) -> Result<Range, Failure> {
        match value {
            Value::List(list) => {
                self.runtime.budget.allocate(list.items.len().saturating_mul(ITEM))?;
                Ok(Range::List(list.items.clone()))
            }
            Value::Map(map) => {
                self.runtime
                    .budget
                    .allocate(map.entries.len().saturating_mul(2 * ITEM))?;
                Ok(Range::Map(
                    keys(map).into_iter().zip(map.entries.values().cloned()).collect(),
                ))
            }
            Value::Preserved(_) => Err(Failure::undecided("data without a schema")),
            _ => Err(Failure::no_overload()),
        }
    }

    /// Calls `each` with the first variable's value and the item, which are bound to the macro's variables then.
    fn each(
        &mut self,
        fold: &'e Fold,
        range: &Value,
        each: &mut dyn FnMut(&mut Self, &Value, &Value) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let items: Vec<(Value, Value)> = match self.range(range)? {
            Range::Map(items) => items,
            Range::List(items) => {
                let positions = (0_i64..).map(Value::Int);
                positions.zip(items).collect()
            }
        };
        let is_list = matches!(range, Value::List(_));
        let depth = self.scope.len();
        for (first, value) in items {
            self.runtime.budget.step(1)?;
            let item = if is_list { &value } else { &first };
            match &fold.second {
                None => self.scope.push((&fold.variable, item.clone())),
                Some(second) => {
                    self.scope.push((&fold.variable, first.clone()));
                    self.scope.push((second, value.clone()));
                }
            }
            let is_done = each(self, &first, item);
            self.scope.truncate(depth);
            if is_done? {
                break;
            }
        }
        Ok(())
    }

    fn holds(&mut self, node: &'e Node) -> Result<bool, Failure> {
        match self.eval(node)? {
            Value::Bool(value) => Ok(value),
            _ => Err(Failure::no_overload()),
        }
    }

    fn passes(&mut self, fold: &'e Fold) -> Result<bool, Failure> {
        fold.filter.as_ref().map_or(Ok(true), |filter| self.holds(filter))
    }

    /// `all` is decided by the first false, `exists` by the first true. Failures of other items matter only without.
    fn quantify(&mut self, fold: &'e Fold, range: &Value, deciding: bool) -> Outcome {
        let mut failed: Option<Failure> = None;
        let mut decided = false;
        self.each(fold, range, &mut |evaluator, _, _| {
            match evaluator.holds(&fold.body) {
                Ok(value) => decided = value == deciding,
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(failure) => failed = Some(failure.or(failed.take())),
            }
            Ok(decided)
        })?;
        match failed {
            Some(failure) if !decided => Err(failure),
            _ => Ok(Value::Bool(decided == deciding)),
        }
    }

    fn exists_one(&mut self, fold: &'e Fold, range: &Value) -> Outcome {
        let mut count = 0_usize;
        self.each(fold, range, &mut |evaluator, _, _| {
            count += usize::from(evaluator.holds(&fold.body)?);
            Ok(false)
        })?;
        Ok(Value::Bool(count == 1))
    }

    fn make_list(&mut self, fold: &'e Fold, range: &Value) -> Outcome {
        let mut made = Vec::new();
        self.each(fold, range, &mut |evaluator, _, item| {
            if fold.kind == FoldKind::Filter {
                if evaluator.holds(&fold.body)? {
                    made.push(item.clone());
                }
            } else if evaluator.passes(fold)? {
                let value = evaluator.eval(&fold.body)?;
                evaluator.runtime.budget.allocate(ITEM)?;
                made.push(value);
            }
            Ok(false)
        })?;
        self.runtime.list(made)
    }

    fn make_map(&mut self, fold: &'e Fold, range: &Value) -> Outcome {
        let mut made = BTreeMap::new();
        self.each(fold, range, &mut |evaluator, first, _| {
            if !evaluator.passes(fold)? {
                return Ok(false);
            }
            let value = evaluator.eval(&fold.body)?;
            evaluator.runtime.budget.allocate(3 * ITEM)?;
            if fold.kind == FoldKind::TransformMap {
                let key = first.key().ok_or_else(Failure::no_overload)?;
                insert(&mut made, key, value)?;
                return Ok(false);
            }
            let Value::Map(entries) = &value else {
                return Err(Failure::no_overload());
            };
            evaluator
                .runtime
                .budget
                .allocate(entries.entries.len().saturating_mul(3 * ITEM))?;
            for (key, value) in &entries.entries {
                insert(&mut made, key.clone(), value.clone())?;
            }
            Ok(false)
        })?;
        Ok(Value::map(made))
    }

    fn sort_by(&mut self, fold: &'e Fold, range: &Value) -> Outcome {
        let mut made = Vec::new();
        self.each(fold, range, &mut |evaluator, _, item| {
            let key = evaluator.eval(&fold.body)?;
            evaluator.runtime.budget.allocate(2 * ITEM)?;
            made.push((key, item.clone()));
            Ok(false)
        })?;
        let sorted = compare::sorted(made, self.runtime.budget)?;
        self.runtime.list(sorted)
    }

    fn fold_optional(&mut self, fold: &'e Fold, range: Value) -> Outcome {
        let inner = match range {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => (*inner).clone(),
            _ => return Err(Failure::no_overload()),
        };
        self.scope.push((&fold.variable, inner));
        let body = self.eval(&fold.body);
        self.scope.pop();
        match (fold.kind, body?) {
            (FoldKind::OptFlatMap, value) => Ok(value),
            (_, value) => {
                self.runtime.budget.allocate(ITEM)?;
                Ok(Value::some(value))
            }
        }
    }
}
