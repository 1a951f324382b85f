//! Types of expressions before they are run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Most parts of a type. Macros in a row can double a type each time.
const SIZE: usize = 4_096;

/// Maximum levels of a type.
const DEPTH: usize = 300;

/// A type.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Type {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    /// Known to CEL only when the expression is run.
    Dyn,
    /// Known to CEL, but not to us.
    Unknown,
    /// An object with declared fields.
    Object(Arc<ObjectType>),
    /// A type of a library, by its name.
    Opaque(&'static str),
    /// A list, map, optional or type, with its parameters.
    Of(Arc<Compound>),
    /// A type variable.
    Param(u32),
}

/// A parameterized type.
#[derive(Debug, PartialEq)]
pub struct Compound {
    /// The kind of type.
    pub shape: Shape,
    /// Type parameters: one, or two for a map.
    pub args: Vec<Type>,
    size: usize,
    depth: usize,
}

/// Kinds of parameterized types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shape {
    List,
    Map,
    Optional,
    Type,
}

/// An object with declared fields. Two of the same name are the same.
#[derive(Debug, Clone)]
pub struct ObjectType {
    /// Path of the object in its schema.
    pub name: String,
    /// The fields by their escaped names. See [`crate::escape`].
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    /// A parameterized type. [`Type::Unknown`] if it becomes too large.
    pub fn new(shape: Shape, args: Vec<Type>) -> Self {
        let (mut size, mut depth) = (1, 1);
        for arg in &args {
            if let Self::Of(compound) = arg {
                size += compound.size;
                depth = depth.max(compound.depth + 1);
            } else {
                size += 1;
            }
        }
        if size > SIZE || depth > DEPTH {
            return Self::Unknown;
        }
        Self::Of(Arc::new(Compound {
            shape,
            args,
            size,
            depth,
        }))
    }

    /// `list(item)`.
    pub fn list(item: Type) -> Self {
        Self::new(Shape::List, vec![item])
    }

    /// `map(key, value)`.
    pub fn map(key: Type, value: Type) -> Self {
        Self::new(Shape::Map, vec![key, value])
    }

    /// `optional_type(value)`.
    pub fn optional(value: Type) -> Self {
        Self::new(Shape::Optional, vec![value])
    }

    /// The type parameter at a position, if the type has this shape.
    pub(crate) fn part(&self, shape: Shape, at: usize) -> Option<&Type> {
        match self {
            Self::Of(compound) if compound.shape == shape => compound.args.get(at),
            _ => None,
        }
    }

    pub(crate) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Unknown)
    }

    /// Returns true if the type or a part of it is unknown.
    pub(crate) fn holds_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Of(compound) => compound.args.iter().any(Self::holds_unknown),
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compound = match self {
            Self::Null => return f.write_str("null"),
            Self::Bool => return f.write_str("bool"),
            Self::Int => return f.write_str("int"),
            Self::Uint => return f.write_str("uint"),
            Self::Double => return f.write_str("double"),
            Self::String => return f.write_str("string"),
            Self::Bytes => return f.write_str("bytes"),
            Self::Timestamp => return f.write_str("timestamp"),
            Self::Duration => return f.write_str("duration"),
            Self::Dyn | Self::Unknown | Self::Param(_) => return f.write_str("dyn"),
            Self::Object(_) => return f.write_str("object"),
            Self::Opaque(name) => return f.write_str(name),
            Self::Of(compound) => compound,
        };
        f.write_str(match compound.shape {
            Shape::List => "list(",
            Shape::Map => "map(",
            Shape::Optional => "optional_type(",
            Shape::Type => "type(",
        })?;
        for (at, arg) in compound.args.iter().enumerate() {
            f.write_str(if at > 0 { ", " } else { "" })?;
            arg.fmt(f)?;
        }
        f.write_str(")")
    }
}
