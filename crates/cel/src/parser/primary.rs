//! Primary expressions: literals, names, calls and brackets.

use super::Parser;
use crate::ast::{Call, Entry, Expr, Literal, Node};
use crate::error::ParseError;
use crate::lexer::RESERVED;
use crate::token::Token;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Result<Node, ParseError> {
        let offset = self.offset;
        match &self.token {
            Token::Punct("(") => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Punct("[") => self.list(),
            Token::Punct("{") => self.map(),
            Token::Punct(".") => {
                self.advance()?;
                self.name(offset, ".")
            }
            Token::Ident(_) => self.name(offset, ""),
            Token::Punct(_) | Token::Escaped(_) | Token::End => Err(self.unexpected()),
            _ => self.constant(offset),
        }
    }

    fn constant(&mut self, offset: usize) -> Result<Node, ParseError> {
        let literal = match self.advance()? {
            Token::Int(digits) => self.int(offset, &digits, false)?,
            Token::Uint(value) => Literal::Uint(value),
            Token::Double(value) => Literal::Double(value),
            Token::String(text) => Literal::String(text),
            Token::Bytes(bytes) => Literal::Bytes(bytes),
            _ => return Err(self.unexpected()),
        };
        self.node(offset, Expr::Literal(literal))
    }

    /// A word: a constant, a variable, a function or a message.
    fn name(&mut self, offset: usize, dot: &str) -> Result<Node, ParseError> {
        if !matches!(self.token, Token::Ident(_)) {
            return Err(self.unexpected());
        }
        let Token::Ident(name) = self.advance()? else {
            return Err(self.unexpected());
        };
        let constant = match name.as_str() {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = constant.filter(|_| dot.is_empty()) {
            return self.node(offset, Expr::Literal(literal));
        }
        if RESERVED.contains(&name.as_str()) {
            return Err(ParseError::at(
                self.text,
                offset,
                format!("reserved identifier: {name}"),
            ));
        }
        if self.is("(") {
            return self.function(offset, format!("{dot}{name}"));
        }
        if let Some(message) = self.message(offset, &name)? {
            return Ok(message);
        }
        self.node(offset, Expr::Ident(format!("{dot}{name}")))
    }

    /// `Name{…}`. A message whose name has dots is read as a selection first. See [`Self::selected_message`].
    fn message(&mut self, offset: usize, name: &str) -> Result<Option<Node>, ParseError> {
        if !self.is("{") {
            return Ok(None);
        }
        let values = self.message_fields()?;
        self.node(offset, Expr::Message(name.to_owned(), values)).map(Some)
    }

    fn message_fields(&mut self) -> Result<Vec<Node>, ParseError> {
        self.expect("{")?;
        let mut values = Vec::new();
        while !self.is("}") {
            self.take("?")?;
            if !matches!(self.token, Token::Ident(_) | Token::Escaped(_)) {
                return Err(self.unexpected());
            }
            self.advance()?;
            self.expect(":")?;
            values.push(self.expression()?);
            if !self.take(",")? {
                break;
            }
        }
        self.expect("}")?;
        Ok(values)
    }

    /// `a.b.Name{…}`, when `node` is a chain of names and a brace follows.
    pub(super) fn selected_message(&mut self, offset: usize, node: Node) -> Result<Node, ParseError> {
        let name = node.qualified_name().filter(|_| self.is("{"));
        match name {
            None => Ok(node),
            Some(name) => {
                let values = self.message_fields()?;
                self.node(offset, Expr::Message(name, values))
            }
        }
    }

    /// The arguments of a call, with the parentheses.
    pub(super) fn arguments(&mut self) -> Result<Vec<Node>, ParseError> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.take(")")? {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if !self.take(",")? {
                break;
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    fn function(&mut self, offset: usize, name: String) -> Result<Node, ParseError> {
        let args = self.arguments()?;
        if name == "has" && args.len() == 1 {
            return self.has(offset, args);
        }
        self.node(
            offset,
            Expr::Call(Box::new(Call {
                target: None,
                name,
                args,
            })),
        )
    }

    pub(super) fn method(&mut self, offset: usize, target: Node, name: String) -> Result<Node, ParseError> {
        let args = self.arguments()?;
        if let Some(kind) = super::macros::kind_of(&name, args.len()) {
            return self.fold(offset, kind, target, args);
        }
        let target = Some(target);
        self.node(offset, Expr::Call(Box::new(Call { target, name, args })))
    }

    fn list(&mut self) -> Result<Node, ParseError> {
        let offset = self.offset;
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.is("]") {
            let optional = self.take("?")?;
            items.push((optional, self.expression()?));
            if !self.take(",")? {
                break;
            }
        }
        self.expect("]")?;
        self.node(offset, Expr::List(items))
    }

    fn map(&mut self) -> Result<Node, ParseError> {
        let offset = self.offset;
        self.expect("{")?;
        let mut entries = Vec::new();
        while !self.is("}") {
            let optional = self.take("?")?;
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry { optional, key, value });
            if !self.take(",")? {
                break;
            }
        }
        self.expect("}")?;
        self.node(offset, Expr::Map(entries))
    }
}
