//! Calls of functions and operators.

use super::path::Path;
use super::size::{Entry, Size, scaled};
use super::{ACCESS, Argument, CALL, Coster, NEW_LIST, PER_CHARACTER};
use crate::ast::{Call, Expr, Literal, Node};
use crate::cost::key;
use crate::types::{Shape, Type};

/// Cost of each character of a regular expression, for each character of the input.
const PER_REGEX_CHARACTER: f64 = 0.25;

/// The cost of a call besides its arguments, and the size of its result.
struct Answer {
    cost: u64,
    size: Option<Size>,
}

impl Answer {
    fn plain() -> Self {
        Self::new(CALL)
    }

    fn new(cost: u64) -> Self {
        Self { cost, size: None }
    }

    fn sized(cost: u64, size: Size) -> Self {
        Self { cost, size: Some(size) }
    }

    /// Reads a string once.
    fn reading(size: Size) -> Self {
        Self::new(size.cost(PER_CHARACTER))
    }
}

impl Coster<'_> {
    pub(super) fn written_call(&mut self, node: &Node, call: &Call) -> u64 {
        let name = match self.notes.calls.get(&key(node)) {
            Some((name, _)) => name.clone(),
            None => call.name.clone(),
        };
        if let ("dyn", [arg]) = (name.as_str(), call.args.as_slice()) {
            let cost = self.cost(arg);
            self.copy_sizes(node, arg);
            return cost.saturating_add(CALL);
        }
        let args: Vec<Argument<'_>> = call.args.iter().map(|arg| self.argument(arg)).collect();
        // The part before the dot belongs to the name of some functions.
        let target = call.target.as_ref().filter(|_| !name.contains('.'));
        let target = target.map(|target| self.argument(target));
        self.call(node, &name, target.as_ref(), &args)
    }

    pub(super) fn call(
        &mut self,
        node: &Node,
        name: &str,
        target: Option<&Argument<'_>>,
        args: &[Argument<'_>],
    ) -> u64 {
        let overloads = match self.notes.calls.get(&key(node)) {
            Some((_, overloads)) => overloads.clone(),
            None => Vec::new(),
        };
        let (mut most, mut size) = (0, None);
        for params in &overloads {
            let first = params.first().unwrap_or(&Type::Dyn);
            let answer = match self.kubernetes(name, first, params, target, args) {
                Some(answer) => answer,
                None => self.standard(node, name, params, target, args),
            };
            most = most.max(answer.cost);
            size = match (size, answer.size) {
                (Some(known), Some(own)) => Some(Size::union(known, own)),
                (known, own) => known.or(own),
            };
            if name == "_[_]"
                && let Some(operand) = args.first()
            {
                let below = if is_list(first) {
                    Some("@items")
                } else {
                    first.part(Shape::Map, 0).map(|_| "@values")
                };
                if let Some(below) = below {
                    size = self.entry(operand.node).map(|entry| entry.value);
                    let path = Path::below(self.path(operand.node), below);
                    self.known(node).path = Some(path);
                }
            }
            if size.is_none() {
                size = self.size(node);
            }
        }
        self.set_size(node, size);
        let args = args.iter().fold(most, |sum, arg| sum.saturating_add(arg.cost));
        args.saturating_add(target.map_or(0, |target| target.cost))
    }

    /// The functions of Kubernetes' libraries, and those of cel-go that have an estimate.
    fn kubernetes(
        &mut self,
        name: &str,
        first: &Type,
        params: &[Type],
        target: Option<&Argument<'_>>,
        args: &[Argument<'_>],
    ) -> Option<Answer> {
        let size_of = |at: usize| args.get(at).map(Argument::size);
        Some(match name {
            "sets.contains" | "sets.intersects" | "sets.equivalent" => {
                let factor = if name == "sets.equivalent" { 2.0 } else { 1.0 };
                Answer::new(size_of(0)?.times(size_of(1)?).cost(factor).saturating_add(CALL))
            }
            "slice" => {
                let start = written_number(args.first()?).unwrap_or(0);
                let end = written_number(args.get(1)?).unwrap_or(target?.size().most);
                allocating(1.0, Size::exactly(end.wrapping_sub(start)))
            }
            "lists.range" => allocating(1.0, Size::exactly(written_number(args.first()?).unwrap_or(u64::MAX))),
            "reverse" => allocating(1.0, target?.size()),
            "flatten" => {
                let depth = args
                    .first()
                    .map_or(1, |depth| written_number(depth).unwrap_or(u64::MAX));
                allocating(float(depth), target?.size())
            }
            "distinct" => {
                let size = target?.size();
                allocating(2.0, size.times(size))
            }
            "sort" => {
                let size = target?.size();
                allocating(sort_factor(first.part(Shape::List, 0)), size.times(size))
            }
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
                let target = target?;
                match element(&target.of) {
                    Some(element) => {
                        let mut each = 1;
                        if matches!(element, Type::String | Type::Bytes) {
                            let below = target.path.as_ref().map(copied);
                            let path = below.map(|path| Path::below(Some(path), "@items"));
                            let size = self.size_at(path.as_ref()).unwrap_or(Size::UNKNOWN);
                            each = size.cost(PER_CHARACTER).saturating_add(1);
                        }
                        Answer::new(target.size().most.saturating_mul(each))
                    }
                    None => Answer::reading(target.size()),
                }
            }
            "url" => Answer::sized(size_of(0)?.cost(PER_CHARACTER), size_of(0)?),
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = target?.size();
                Answer::sized(size.cost(PER_CHARACTER), size)
            }
            "replace" => {
                let size = target?.size();
                Answer::sized(size.cost(2.0 * PER_CHARACTER), replaced(size, size_of(0)?, size_of(1)?))
            }
            "split" => {
                let size = target?.size();
                let most = args.get(1).and_then(signed_number).unwrap_or(size.most);
                Answer::sized(size.cost(2.0 * PER_CHARACTER), Size::up_to(most))
            }
            "join" => {
                let target = target?;
                let list = target.size();
                let mut size = Size::exactly(0);
                if element(&target.of).is_some() {
                    let below = target.path.as_ref().map(copied);
                    let path = below.map(|path| Path::below(Some(path), "@items"));
                    let each = self.size_at(path.as_ref()).unwrap_or(Size::UNKNOWN);
                    size = list.times(each);
                }
                if let Some(separator) = size_of(0) {
                    let count = Size {
                        least: list.least.saturating_sub(1),
                        most: list.most.saturating_sub(1),
                    };
                    size = size.plus(separator.times(count));
                }
                Answer::sized(size.cost(PER_CHARACTER), size)
            }
            "find" | "findAll" => {
                let size = target?.size();
                Answer::sized(search(size, size_of(0)?), Size::up_to(size.most))
            }
            "ip" if target.is_some() => Answer::plain(),
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                Answer::reading(size_of(0)?)
            }
            "ip.isCanonical" => Answer::new(size_of(0)?.cost(2.0 * PER_CHARACTER)),
            "containsIP" | "containsCIDR" => {
                // Addresses have 4 or 16 bytes.
                let mut cost = Size::exactly(32).cost(PER_CHARACTER);
                if name == "containsCIDR" {
                    cost += Size::exactly(16).cost(PER_CHARACTER) + CALL;
                }
                if params.get(1) == Some(&Type::String) {
                    cost = cost.saturating_add(size_of(0)?.cost(PER_CHARACTER));
                }
                Answer::new(cost)
            }
            // The longest expression of a format has 128 characters.
            "validate" => Answer::new(scaled(size_of(0)?.cost(PER_CHARACTER), 128.0 * PER_REGEX_CHARACTER)),
            "_==_" => return equal(args),
            _ => return None,
        })
    }

    /// The functions and operators of the language.
    fn standard(
        &mut self,
        node: &Node,
        name: &str,
        params: &[Type],
        target: Option<&Argument<'_>>,
        args: &[Argument<'_>],
    ) -> Answer {
        let plain = Answer::plain;
        let first = params.first().unwrap_or(&Type::Dyn);
        match (name, args) {
            ("format", _) => target.map_or_else(plain, |target| Answer::reading(target.size())),
            ("bytes", [text]) if *first == Type::String => {
                let size = text.size();
                let result = Size {
                    least: size.least,
                    most: size.most.wrapping_mul(4),
                };
                Answer::sized(size.cost(PER_CHARACTER), result)
            }
            ("string", [bytes]) if *first == Type::Bytes => {
                let size = bytes.size();
                let result = Size {
                    least: size.least / 4,
                    most: size.most,
                };
                Answer::sized(size.cost(PER_CHARACTER), result)
            }
            ("strings.quote", [text]) => {
                let size = text.size();
                let result = Size {
                    least: size.least.wrapping_add(2),
                    most: size.most.wrapping_mul(2).wrapping_add(2),
                };
                Answer::sized(size.cost(PER_CHARACTER), result)
            }
            ("startsWith" | "endsWith", [part]) => Answer::reading(part.size()),
            ("@in", [_, list]) if params.get(1).is_some_and(is_list) => Answer::new(list.size().most),
            ("matches", [pattern]) => {
                target.map_or_else(plain, |target| Answer::new(search(target.size(), pattern.size())))
            }
            ("contains", [part]) => target.map_or_else(plain, |target| {
                let (text, part) = (target.size().cost(PER_CHARACTER), part.size().cost(PER_CHARACTER));
                Answer::new(text.saturating_mul(part))
            }),
            ("_+_", [left, right]) if is_text(first) || is_list(first) => {
                let size = left.size().plus(right.size());
                let entry = Entry::union(self.entry(left.node), self.entry(right.node));
                self.set_entry(node, entry);
                if is_text(first) {
                    Answer::sized(size.cost(PER_CHARACTER), size)
                } else {
                    Answer::sized(CALL, size)
                }
            }
            ("_<_", [left, right]) if is_text(first) => compared(left, right),
            ("_==_" | "_!=_", [left, right]) => compared(left, right),
            _ => plain(),
        }
    }

    /// The cost of sorting by a list of keys, and the size that the server takes the result to have.
    pub(super) fn sort(&self, node: &Node, keys: Size) -> (u64, Size) {
        let overloads = self.notes.calls.get(&key(node));
        let factors = overloads
            .into_iter()
            .flat_map(|(_, overloads)| overloads)
            .map(|params| sort_factor(params.get(1).and_then(|keys| keys.part(Shape::List, 0))));
        let factor = factors.fold(2.0, f64::max);
        let size = keys.times(keys);
        (allocating(factor, size).cost, size)
    }
}

fn is_text(of: &Type) -> bool {
    matches!(of, Type::String | Type::Bytes)
}

fn is_list(of: &Type) -> bool {
    of.part(Shape::List, 0).is_some()
}

/// The copy of a path whose names no other path changes.
fn copied(path: &Path) -> Path {
    let names = path.names();
    let mut names = names.iter();
    let first = Path::new(names.next().map_or("", |name| &**name));
    names.fold(first, |path, name| Path::below(Some(path), name))
}

/// The type of the items of a list, or of the keys of a map.
fn element(of: &Type) -> Option<&Type> {
    match of {
        Type::Of(compound) => compound.args.first(),
        _ => None,
    }
}

fn sort_factor(of: Option<&Type>) -> f64 {
    if of.is_some_and(is_text) {
        2.0 + PER_CHARACTER
    } else {
        2.0
    }
}

/// A call that creates a list.
fn allocating(factor: f64, size: Size) -> Answer {
    let cost = size.cost(factor).saturating_add(CALL).saturating_add(NEW_LIST);
    Answer::sized(cost, size)
}

/// A search for a regular expression.
fn search(text: Size, pattern: Size) -> u64 {
    let text = text.plus(Size::exactly(1)).cost(PER_CHARACTER);
    text.saturating_mul(pattern.cost(PER_REGEX_CHARACTER))
}

fn compared(left: &Argument<'_>, right: &Argument<'_>) -> Answer {
    Answer::new(scaled(left.size().most.min(right.size().most), PER_CHARACTER))
}

/// The equality of values of libraries, which is cheap.
fn equal(args: &[Argument<'_>]) -> Option<Answer> {
    let [left, right] = args else { return None };
    if left.of != right.of {
        return None;
    }
    match left.of {
        Type::Opaque("net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver") => Some(Answer::new(ACCESS)),
        Type::Opaque("kubernetes.NamedFormat") => Some(Answer::new(Size::exactly(64).cost(PER_CHARACTER))),
        Type::Opaque("kubernetes.URL") => {
            let most = right.size.map_or(1, |size| size.most);
            Some(Answer::new(scaled(most, PER_CHARACTER)))
        }
        _ => None,
    }
}

/// The size of a string in which each part is replaced.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    /// How many parts of a string of this size are replaced, and how much of it remains.
    fn parts(size: u64, part: u64, is_kept: bool) -> (u64, u64) {
        if part == 0 {
            (size.saturating_add(1), size)
        } else if is_kept {
            (0, size)
        } else {
            (size.div_ceil(part), 0)
        }
    }
    let (mut count, mut kept) = (Size::exactly(0), Size::exactly(0));
    (count.most, kept.most) = parts(text.most, from.least, to.most <= from.least);
    (count.least, kept.least) = parts(text.least, from.most, from.most <= to.least);
    count.times(to).plus(kept)
}

/// A number that is written out. Negative ones count as 0.
fn written_number(arg: &Argument<'_>) -> Option<u64> {
    match arg.node.expr {
        Expr::Literal(Literal::Int(number)) => Some(u64::try_from(number).unwrap_or(0)),
        _ => None,
    }
}

/// As [`written_number`], but negative ones wrap around.
fn signed_number(arg: &Argument<'_>) -> Option<u64> {
    match arg.node.expr {
        Expr::Literal(Literal::Int(number)) => Some(number.cast_unsigned()),
        _ => None,
    }
}

#[allow(clippy::cast_precision_loss, clippy::as_conversions)]
fn float(number: u64) -> f64 {
    number as f64
}
