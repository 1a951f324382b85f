//! The syntax tree of an expression. Macros have dedicated nodes.

/// A node with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Bytes before the node's token.
    pub offset: usize,
    /// Depth of the tree from here on, at most [`crate::limits::DEPTH`].
    pub height: usize,
    /// The expression.
    pub expr: Expr,
}

/// The kinds of nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A name; with a leading dot if it was written so.
    Ident(String),
    /// `operand.field`, `operand.?field` or `has(operand.field)`.
    Select(Box<Select>),
    /// `operand[index]` or `operand[?index]`.
    Index(Box<Index>),
    /// `name(…)` or `target.name(…)`.
    Call(Box<Call>),
    /// `!x` or `-x`.
    Unary(Unary, Box<Node>),
    /// An operator with two operands.
    Binary(Binary, Box<(Node, Node)>),
    /// `a && b && …`.
    And(Vec<Node>),
    /// `a || b || …`.
    Or(Vec<Node>),
    /// `condition ? yes : no`.
    Conditional(Box<[Node; 3]>),
    /// `[a, ?b]`; whether an element is optional.
    List(Vec<(bool, Node)>),
    /// `{a: b, ?c: d}`.
    Map(Vec<Entry>),
    /// `Name{field: value}`: the type name and the field values.
    Message(String, Vec<Node>),
    /// A macro that runs an expression for items.
    Fold(Box<Fold>),
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// A field of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// The value.
    pub operand: Node,
    /// The field.
    pub field: String,
    /// True if the field is there, instead of its value.
    pub test: bool,
    /// The value as an optional.
    pub optional: bool,
}

/// An item of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The value.
    pub operand: Node,
    /// The position or key.
    pub index: Node,
    /// The item as an optional.
    pub optional: bool,
}

/// A function call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Expression before the dot.
    pub target: Option<Node>,
    /// The function.
    pub name: String,
    /// Arguments between the parentheses.
    pub args: Vec<Node>,
}

/// An entry of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// True if the value is an optional.
    pub optional: bool,
    /// The key.
    pub key: Node,
    /// The value.
    pub value: Node,
}

/// Operators with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unary {
    Not,
    Negate,
}

/// Operators with two operands, without `&&` and `||`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
}

impl Binary {
    /// The name under which cel-go declares the operator.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "_+_",
            Self::Subtract => "_-_",
            Self::Multiply => "_*_",
            Self::Divide => "_/_",
            Self::Modulo => "_%_",
            Self::Equal => "_==_",
            Self::NotEqual => "_!=_",
            Self::Less => "_<_",
            Self::LessEqual => "_<=_",
            Self::Greater => "_>_",
            Self::GreaterEqual => "_>=_",
            Self::In => "@in",
        }
    }
}

/// Result of a macro over its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
    SortBy,
    OptMap,
    OptFlatMap,
}

/// A macro over the items of a list, the keys of a map or the value of an optional.
#[derive(Debug, Clone, PartialEq)]
pub struct Fold {
    /// Kind of result.
    pub kind: FoldKind,
    /// The list or map that the macro iterates over.
    pub range: Node,
    /// The variable for the item, or the first of two: position or key.
    pub variable: String,
    /// The second of two variables: the value.
    pub second: Option<String>,
    /// Condition for items to include.
    pub filter: Option<Node>,
    /// Expression evaluated for each item.
    pub body: Node,
}

impl Expr {
    /// The largest height below this node.
    pub(crate) fn height_below(&self) -> usize {
        let most = |nodes: &mut dyn Iterator<Item = &Node>| nodes.map(|node| node.height).max().unwrap_or(0);
        match self {
            Self::Literal(_) | Self::Ident(_) => 0,
            Self::Select(select) => select.operand.height,
            Self::Index(index) => index.operand.height.max(index.index.height),
            Self::Call(call) => most(&mut call.target.iter().chain(&call.args)),
            Self::Unary(_, operand) => operand.height,
            Self::Binary(_, operands) => operands.0.height.max(operands.1.height),
            Self::And(terms) | Self::Or(terms) | Self::Message(_, terms) => most(&mut terms.iter()),
            Self::Conditional(parts) => most(&mut parts.iter()),
            Self::List(items) => most(&mut items.iter().map(|(_, node)| node)),
            Self::Map(entries) => most(&mut entries.iter().flat_map(|entry| [&entry.key, &entry.value])),
            Self::Fold(fold) => most(&mut [&fold.range, &fold.body].into_iter().chain(&fold.filter)),
        }
    }
}

impl Node {
    /// `a.b.c` as a string, if the node is a name or a chain of selections from one.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.expr {
            Expr::Ident(name) => Some(name.trim_start_matches('.').to_owned()),
            Expr::Select(select) if !select.test && !select.optional => {
                let mut name = select.operand.qualified_name()?;
                name.push('.');
                name.push_str(&select.field);
                Some(name)
            }
            _ => None,
        }
    }

    /// Calls `visit` for this node and each below it.
    pub fn each<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        visit(self);
        match &self.expr {
            Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select(select) => select.operand.each(visit),
            Expr::Index(index) => {
                index.operand.each(visit);
                index.index.each(visit);
            }
            Expr::Call(call) => call.target.iter().chain(&call.args).for_each(|node| node.each(visit)),
            Expr::Unary(_, operand) => operand.each(visit),
            Expr::Binary(_, operands) => {
                operands.0.each(visit);
                operands.1.each(visit);
            }
            Expr::And(terms) | Expr::Or(terms) | Expr::Message(_, terms) => {
                terms.iter().for_each(|node| node.each(visit));
            }
            Expr::Conditional(parts) => parts.iter().for_each(|node| node.each(visit)),
            Expr::List(items) => items.iter().for_each(|(_, node)| node.each(visit)),
            Expr::Map(entries) => entries.iter().for_each(|entry| {
                entry.key.each(visit);
                entry.value.each(visit);
            }),
            Expr::Fold(fold) => {
                fold.range.each(visit);
                fold.filter.iter().for_each(|node| node.each(visit));
                fold.body.each(visit);
            }
        }
    }
}
