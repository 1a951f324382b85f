//! Types of macros.

use super::Checker;
use crate::ast::{Fold, FoldKind, Node};
use crate::error::ParseError;
use crate::library::Library;
use crate::types::{Shape, Type};

/// Types of the variables of a macro.
struct Items {
    first: Type,
    second: Type,
    /// Type of the only variable, if a macro has one.
    only: Type,
}

impl<'c> Checker<'c> {
    pub(super) fn fold(&mut self, node: &'c Node, fold: &'c Fold) -> Result<Type, ParseError> {
        self.fold_library(node, fold)?;
        let range = self.check(&fold.range)?;
        let range = self.bindings.resolve(&range, false);
        if matches!(fold.kind, FoldKind::OptMap | FoldKind::OptFlatMap) {
            return self.fold_optional(node, fold, &range);
        }
        let items = self.items(&fold.range, &range)?;
        let known = self.scope.len();
        if let Some(second) = &fold.second {
            self.scope.push((&fold.variable, items.first.clone()));
            self.scope.push((second, items.second.clone()));
        } else {
            self.scope.push((&fold.variable, items.only.clone()));
        }
        let result = self.fold_body(node, fold, &items, &range);
        self.scope.truncate(known);
        result
    }

    fn fold_library(&mut self, node: &Node, fold: &Fold) -> Result<(), ParseError> {
        let (library, name) = match fold.kind {
            FoldKind::OptMap => (Library::Optional, "optMap"),
            FoldKind::OptFlatMap => (Library::Optional, "optFlatMap"),
            FoldKind::SortBy => (Library::Lists, "sortBy"),
            FoldKind::TransformList => (Library::TwoVariables, "transformList"),
            FoldKind::TransformMap => (Library::TwoVariables, "transformMap"),
            FoldKind::TransformMapEntry => (Library::TwoVariables, "transformMapEntry"),
            FoldKind::All if fold.second.is_some() => (Library::TwoVariables, "all"),
            FoldKind::Exists if fold.second.is_some() => (Library::TwoVariables, "exists"),
            FoldKind::ExistsOne if fold.second.is_some() => (Library::TwoVariables, "exists_one"),
            _ => return Ok(()),
        };
        if !self.env.has(library) {
            return Err(self.undeclared(node, name));
        }
        self.libraries.insert(library);
        Ok(())
    }

    fn items(&mut self, node: &Node, range: &Type) -> Result<Items, ParseError> {
        if let Some(item) = range.part(Shape::List, 0) {
            let (second, only) = (item.clone(), item.clone());
            return Ok(Items {
                first: Type::Int,
                second,
                only,
            });
        }
        if let (Some(key), Some(value)) = (range.part(Shape::Map, 0), range.part(Shape::Map, 1)) {
            let (first, only) = (key.clone(), key.clone());
            return Ok(Items {
                first,
                second: value.clone(),
                only,
            });
        }
        let any = match range {
            Type::Unknown => Type::Unknown,
            Type::Dyn => Type::Dyn,
            Type::Param(_) => {
                self.bindings.is_assignable(&Type::Dyn, range);
                Type::Dyn
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err(self.refuse(node, message));
            }
        };
        let (first, second) = (any.clone(), any.clone());
        Ok(Items {
            first,
            second,
            only: any,
        })
    }

    fn fold_body(&mut self, node: &'c Node, fold: &'c Fold, items: &Items, range: &Type) -> Result<Type, ParseError> {
        if let Some(filter) = &fold.filter {
            self.bool(filter)?;
        }
        match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => {
                self.bool(&fold.body)?;
                Ok(Type::Bool)
            }
            FoldKind::Filter => {
                self.bool(&fold.body)?;
                Ok(Type::list(items.only.clone()))
            }
            FoldKind::Map | FoldKind::TransformList => {
                let body = self.check(&fold.body)?;
                Ok(Type::list(self.bindings.resolve(&body, false)))
            }
            FoldKind::TransformMap => {
                let body = self.check(&fold.body)?;
                Ok(Type::map(items.first.clone(), self.bindings.resolve(&body, false)))
            }
            FoldKind::TransformMapEntry => {
                let body = self.check(&fold.body)?;
                let entry = Type::map(self.bindings.fresh(), self.bindings.fresh());
                if !self.bindings.is_assignable(&body, &entry) {
                    return Err(self.no_overload(node, "cel.@mapInsert", false, &[entry, body]));
                }
                Ok(self.bindings.resolve(&entry, false))
            }
            FoldKind::SortBy => {
                let body = self.check(&fold.body)?;
                let keys = Type::list(self.bindings.resolve(&body, false));
                let list = if range.is_dyn() {
                    range.clone()
                } else {
                    Type::list(items.only.clone())
                };
                self.call_named(node, "@sortByAssociatedKeys", true, &[list, keys])
            }
            FoldKind::OptMap | FoldKind::OptFlatMap => Ok(Type::Unknown),
        }
    }

    fn fold_optional(&mut self, node: &'c Node, fold: &'c Fold, range: &Type) -> Result<Type, ParseError> {
        let inner = self.call_named(node, "value", true, std::slice::from_ref(range))?;
        self.scope.push((&fold.variable, inner));
        let body = self.check(&fold.body);
        self.scope.pop();
        let body = body?;
        let body = self.bindings.resolve(&body, false);
        if fold.kind == FoldKind::OptMap {
            return Ok(Type::optional(body));
        }
        let wanted = Type::optional(self.bindings.fresh());
        if !self.bindings.is_assignable(&body, &wanted) {
            return Err(self.no_overload(node, "_?_:_", false, &[Type::Bool, body, wanted]));
        }
        Ok(body)
    }
}
