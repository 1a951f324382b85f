#![doc = include_str!("../README.md")]

pub mod ast;
mod budget;
mod check;
mod cost;
mod env;
mod error;
mod escape;
mod eval;
mod lexer;
mod library;
pub mod limits;
mod literal;
mod operators;
mod parser;
mod program;
mod regex;
mod runtime;
mod token;
mod types;
pub mod value;

pub use budget::{Budget, Failure};
pub use cost::Sizes;
pub use env::Env;
pub use error::ParseError;
pub use escape::escape;
pub use library::{KubernetesVersion, Library};
pub use parser::parse;
pub use program::{CompileError, Program};
pub use regex::GoRegex;
pub use types::{Compound, ObjectType, Shape, Type};
pub use value::Value;
