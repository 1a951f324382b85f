//! Macros. The API server estimates the loops to which they expand: the cost added here for each item is that of the
//! loop's accumulator.

use super::path::Path;
use super::size::{Entry, Size};
use super::{ACCESS, CALL, Coster, NEW_LIST, NEW_MAP, ValueFacts, is_scalar, sum};
use crate::ast::{Fold, FoldKind, Node};
use crate::types::Shape;

impl Coster<'_> {
    pub(super) fn fold(&mut self, node: &Node, fold: &Fold) -> u64 {
        match fold.kind {
            FoldKind::OptMap | FoldKind::OptFlatMap => self.fold_optional(node, fold),
            FoldKind::SortBy => self.sort_by(node, fold),
            _ => self.fold_items(node, fold),
        }
    }

    fn fold_items(&mut self, node: &Node, fold: &Fold) -> u64 {
        let range = self.cost(&fold.range);
        let items = self.push_items(fold);
        let condition = match fold.kind {
            FoldKind::Filter => self.cost(&fold.body),
            _ => fold.filter.as_ref().map_or(0, |filter| self.cost(filter)),
        };
        let body = match fold.kind {
            FoldKind::Filter => ACCESS,
            _ => self.cost(&fold.body),
        };
        let value = self.body_size(fold);
        self.scope.truncate(items);
        // The loop's start value, its step for each item, and its result.
        let (start, step, result) = match fold.kind {
            FoldKind::All => (0, sum([2 * ACCESS + CALL, body].into_iter()), ACCESS),
            FoldKind::Exists => (0, sum([2 * ACCESS + 2 * CALL, body].into_iter()), ACCESS),
            FoldKind::ExistsOne => (0, body.saturating_add(ACCESS + CALL), ACCESS + CALL),
            FoldKind::TransformMap => (NEW_MAP, body.saturating_add(2 * ACCESS + CALL), ACCESS),
            FoldKind::TransformMapEntry => (NEW_MAP, body.saturating_add(ACCESS + CALL), ACCESS),
            _ => (NEW_LIST, body.saturating_add(NEW_LIST + ACCESS + CALL), ACCESS),
        };
        let step = condition.saturating_add(step);
        let count = self.size_or_unknown(&fold.range);
        match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => self.set_size(node, Some(Size::exactly(1))),
            FoldKind::TransformMap | FoldKind::TransformMapEntry => self.set_size(node, Some(count)),
            _ => {
                self.set_size(node, Some(count));
                let start = Entry::of_list(Size::exactly(0));
                self.set_entry(node, Entry::union(Some(start), Some(Entry::of_list(value))));
            }
        }
        sum([range, start, result, count.most.saturating_mul(step)].into_iter())
    }

    /// The size of what a macro collects for each item, while its variables are there.
    fn body_size(&mut self, fold: &Fold) -> Size {
        if fold.kind != FoldKind::Filter {
            return self.size_or_unknown(&fold.body);
        }
        let item = self.local(&fold.variable).cloned().unwrap_or_default();
        let of = self.type_of(&fold.range);
        let item_type = of.part(Shape::List, 0).or_else(|| of.part(Shape::Map, 0));
        let scalar = item_type.is_some_and(is_scalar).then(|| Size::exactly(1));
        let size = self.size_at(item.path.as_ref()).or(scalar).or(item.size);
        size.unwrap_or(Size::UNKNOWN)
    }

    /// Adds the variables of a macro. Returns the previous number.
    fn push_items(&mut self, fold: &Fold) -> usize {
        let before = self.scope.len();
        let entry = self.entry(&fold.range);
        let is_list = entry.map_or_else(
            || self.type_of(&fold.range).part(Shape::List, 0).is_some(),
            |entry| entry.is_list,
        );
        let path = self.path(&fold.range);
        let mut push = |name: &str, below: &str, size: Option<Size>| {
            let known = ValueFacts {
                path: Some(Path::below(path.clone(), below)),
                size,
                entry: None,
            };
            self.scope.push((name.to_owned(), known));
        };
        let (keys, values) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        if let Some(second) = &fold.second {
            push(&fold.variable, if is_list { "@indices" } else { "@keys" }, keys);
            push(second, if is_list { "@items" } else { "@values" }, values);
        } else if is_list {
            push(&fold.variable, "@items", values);
        } else {
            push(&fold.variable, "@keys", keys);
        }
        before
    }

    /// `a.optMap(x, b)` is `a.hasValue() ? optional.of(b) : optional.none()`, where x is `a.value()`.
    fn fold_optional(&mut self, node: &Node, fold: &Fold) -> u64 {
        let target = self.cost(&fold.range);
        let inner = self.type_of(&fold.range).part(Shape::Optional, 0).cloned();
        let size = inner.as_ref().is_some_and(is_scalar).then(|| Size::exactly(1));
        let known = ValueFacts {
            size,
            ..ValueFacts::default()
        };
        self.scope.push((fold.variable.clone(), known));
        let body = self.cost(&fold.body);
        let body_size = self.size_or_unknown(&fold.body);
        self.scope.pop();
        let of = self.type_of(node);
        let empty = if is_scalar(&of) {
            Size::exactly(1)
        } else {
            Size::UNKNOWN
        };
        let (wrapped, size) = match fold.kind {
            FoldKind::OptMap => (CALL, empty),
            _ => (0, body_size.union(empty)),
        };
        self.set_size(node, Some(size));
        sum([CALL, target, wrapped, NEW_LIST, CALL, target, body].into_iter())
    }

    /// `a.sortBy(x, b)` sorts `a` by the list `a.map(x, b)`.
    fn sort_by(&mut self, node: &Node, fold: &Fold) -> u64 {
        let target = self.cost(&fold.range);
        let items = self.push_items(fold);
        let body = self.cost(&fold.body);
        self.scope.truncate(items);
        let count = self.size_or_unknown(&fold.range);
        let step = body.saturating_add(NEW_LIST + ACCESS + CALL);
        let keys = sum([ACCESS, NEW_LIST, ACCESS, count.most.saturating_mul(step)].into_iter());
        let (sort, size) = self.sort(node, count);
        self.set_size(node, Some(size));
        sum([NEW_LIST, target, ACCESS, keys, sort].into_iter())
    }
}
