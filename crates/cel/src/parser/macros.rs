//! Macros: calls that bind variables or inspect the form of their argument.

use super::Parser;
use crate::ast::{Expr, Fold, FoldKind, Node};
use crate::error::ParseError;

/// The macro for a method with this number of arguments.
pub(super) fn kind_of(name: &str, arguments: usize) -> Option<FoldKind> {
    Some(match (name, arguments) {
        ("all", 2 | 3) => FoldKind::All,
        ("exists", 2 | 3) => FoldKind::Exists,
        ("exists_one" | "existsOne", 2 | 3) => FoldKind::ExistsOne,
        ("map", 2 | 3) => FoldKind::Map,
        ("filter", 2) => FoldKind::Filter,
        ("transformList", 3 | 4) => FoldKind::TransformList,
        ("transformMap", 3 | 4) => FoldKind::TransformMap,
        ("transformMapEntry", 3 | 4) => FoldKind::TransformMapEntry,
        ("sortBy", 2) => FoldKind::SortBy,
        ("optMap", 2) => FoldKind::OptMap,
        ("optFlatMap", 2) => FoldKind::OptFlatMap,
        _ => return None,
    })
}

/// Returns true if the macro binds two variables.
fn has_second(kind: FoldKind, arguments: usize) -> bool {
    match kind {
        FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => arguments == 3,
        FoldKind::TransformList | FoldKind::TransformMap | FoldKind::TransformMapEntry => true,
        _ => false,
    }
}

impl Parser<'_> {
    pub(super) fn has(&self, offset: usize, args: Vec<Node>) -> Result<Node, ParseError> {
        match args.into_iter().next().map(|node| node.expr) {
            Some(Expr::Select(mut select)) if !select.test && !select.optional => {
                select.test = true;
                self.node(offset, Expr::Select(select))
            }
            _ => Err(ParseError::at(
                self.text,
                offset,
                "invalid argument to has() macro".to_owned(),
            )),
        }
    }

    pub(super) fn fold(&self, offset: usize, kind: FoldKind, range: Node, args: Vec<Node>) -> Result<Node, ParseError> {
        let has_second = has_second(kind, args.len());
        let mut args = args.into_iter();
        let variable = self.variable(args.next(), offset)?;
        let second = if has_second {
            let second = self.variable(args.next(), offset)?;
            if second == variable {
                return Err(ParseError::at(
                    self.text,
                    offset,
                    format!("duplicate variable name: {second}"),
                ));
            }
            Some(second)
        } else {
            None
        };
        let mut rest: Vec<Node> = args.collect();
        let body = rest.pop().ok_or_else(|| self.unexpected())?;
        let fold = Fold {
            kind,
            range,
            variable,
            second,
            filter: rest.pop(),
            body,
        };
        self.node(offset, Expr::Fold(Box::new(fold)))
    }

    fn variable(&self, node: Option<Node>, offset: usize) -> Result<String, ParseError> {
        let at = node.as_ref().map_or(offset, |node| node.offset);
        match node.map(|node| node.expr) {
            Some(Expr::Ident(name)) if !name.starts_with('.') && name != "__result__" => Ok(name),
            _ => Err(ParseError::at(
                self.text,
                at,
                "argument must be a simple name".to_owned(),
            )),
        }
    }
}
