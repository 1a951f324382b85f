//! Parses an expression: recursive descent for brackets, and an explicit stack for operators.

mod macros;
mod primary;

use crate::ast::{Binary, Expr, Index, Literal, Node, Select, Unary};
use crate::error::ParseError;
use crate::lexer::Lexer;
use crate::limits;
use crate::token::Token;

/// Reads an expression.
///
/// # Errors
/// A syntax error with its position, or an exceeded limit of [`limits`].
pub fn parse(text: &str) -> Result<Node, ParseError> {
    // A character has at least one byte, so most expressions need no count.
    if text.len() > limits::EXPRESSION_CHARACTERS {
        let size = text.chars().count();
        if size > limits::EXPRESSION_CHARACTERS {
            let limit = limits::EXPRESSION_CHARACTERS;
            let message = format!("expression code point size exceeds limit: size: {size}, limit {limit}");
            return Err(ParseError::at(text, 0, message));
        }
    }
    let mut lexer = Lexer::new(text);
    let (offset, token) = lexer.next()?;
    let mut parser = Parser {
        text,
        lexer,
        offset,
        token,
        depth: 0,
    };
    let node = parser.expression()?;
    match parser.token {
        Token::End => Ok(node),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// Where `token` starts.
    offset: usize,
    /// The next token.
    token: Token,
    /// Open brackets and branches around the token.
    depth: usize,
}

/// An operator that waits for its right operand.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Binary(Binary),
}

impl Operator {
    fn from_token(token: &Token) -> Option<Self> {
        let punct = match token {
            Token::Punct(punct) => punct,
            Token::Ident(name) if name == "in" => return Some(Self::Binary(Binary::In)),
            _ => return None,
        };
        Some(match *punct {
            "||" => Self::Or,
            "&&" => Self::And,
            "==" => Self::Binary(Binary::Equal),
            "!=" => Self::Binary(Binary::NotEqual),
            "<" => Self::Binary(Binary::Less),
            "<=" => Self::Binary(Binary::LessEqual),
            ">" => Self::Binary(Binary::Greater),
            ">=" => Self::Binary(Binary::GreaterEqual),
            "+" => Self::Binary(Binary::Add),
            "-" => Self::Binary(Binary::Subtract),
            "*" => Self::Binary(Binary::Multiply),
            "/" => Self::Binary(Binary::Divide),
            "%" => Self::Binary(Binary::Modulo),
            _ => return None,
        })
    }

    /// Higher binds tighter.
    fn strength(self) -> u8 {
        match self {
            Self::Or => 0,
            Self::And => 1,
            Self::Binary(Binary::Add | Binary::Subtract) => 3,
            Self::Binary(Binary::Multiply | Binary::Divide | Binary::Modulo) => 4,
            Self::Binary(_) => 2,
        }
    }
}

impl Parser<'_> {
    /// Reads the next token. Returns the previous one.
    fn advance(&mut self) -> Result<Token, ParseError> {
        let (offset, token) = self.lexer.next()?;
        self.offset = offset;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, punct: &str) -> bool {
        matches!(self.token, Token::Punct(found) if found == punct)
    }

    /// Reads `punct` if it is next.
    fn take(&mut self, punct: &str) -> Result<bool, ParseError> {
        let found = self.is(punct);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, punct: &str) -> Result<(), ParseError> {
        if self.take(punct)? {
            return Ok(());
        }
        Err(self.error(format!("{} expecting '{punct}'", self.described())))
    }

    fn described(&self) -> String {
        let shown = match &self.token {
            Token::End => return "mismatched input '<EOF>'".to_owned(),
            Token::Punct(punct) => (*punct).to_owned(),
            Token::Ident(name) => name.clone(),
            Token::Escaped(name) => format!("`{name}`"),
            Token::Int(digits) => digits.clone(),
            Token::Uint(value) => format!("{value}u"),
            Token::Double(value) => value.to_string(),
            Token::String(_) => "string".to_owned(),
            Token::Bytes(_) => "bytes".to_owned(),
        };
        let short: String = shown.chars().take(40).collect();
        format!("mismatched input '{short}'")
    }

    fn unexpected(&self) -> ParseError {
        self.error(self.described())
    }

    fn error(&self, problem: String) -> ParseError {
        ParseError::syntax(self.text, self.offset, problem)
    }

    fn too_deep(&self, offset: usize) -> ParseError {
        let message = format!("expression recursion limit exceeded: {}", limits::DEPTH);
        ParseError::limit(self.text, offset, message)
    }

    /// Makes a node, unless the tree becomes too high.
    fn node(&self, offset: usize, expr: Expr) -> Result<Node, ParseError> {
        let height = expr.height_below() + 1;
        self.checked(Node { offset, height, expr })
    }

    fn checked(&self, node: Node) -> Result<Node, ParseError> {
        if node.height > limits::DEPTH {
            return Err(self.too_deep(node.offset));
        }
        Ok(node)
    }

    /// `a ? b : c`, or an expression that binds tighter.
    fn expression(&mut self) -> Result<Node, ParseError> {
        self.depth += 1;
        if self.depth > limits::DEPTH {
            return Err(self.too_deep(self.offset));
        }
        let condition = self.operators()?;
        let node = if self.is("?") {
            self.branches(condition)?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    fn branches(&mut self, condition: Node) -> Result<Node, ParseError> {
        let offset = self.offset;
        self.advance()?;
        let yes = self.operators()?;
        self.expect(":")?;
        let no = self.expression()?;
        self.node(offset, Expr::Conditional(Box::new([condition, yes, no])))
    }

    /// Operators with two operands, without recursion for their precedence.
    fn operators(&mut self) -> Result<Node, ParseError> {
        let mut operands = vec![self.unary()?];
        let mut waiting: Vec<(usize, Operator)> = Vec::new();
        while let Some(operator) = Operator::from_token(&self.token) {
            let offset = self.offset;
            self.advance()?;
            self.reduce(&mut operands, &mut waiting, operator.strength())?;
            waiting.push((offset, operator));
            operands.push(self.unary()?);
        }
        self.reduce(&mut operands, &mut waiting, 0)?;
        operands.pop().ok_or_else(|| self.unexpected())
    }

    /// Joins the operands of all pending operators that bind at least as tight as `strength`.
    fn reduce(
        &self,
        operands: &mut Vec<Node>,
        waiting: &mut Vec<(usize, Operator)>,
        strength: u8,
    ) -> Result<(), ParseError> {
        while let Some((offset, operator)) = waiting.pop_if(|(_, operator)| operator.strength() >= strength) {
            let (Some(right), Some(left)) = (operands.pop(), operands.pop()) else {
                return Err(self.unexpected());
            };
            let node = match (operator, left) {
                (Operator::Binary(binary), left) => self.node(offset, Expr::Binary(binary, Box::new((left, right))))?,
                // A chain remains one node, whose height need not be recomputed for each term.
                (
                    Operator::And,
                    Node {
                        expr: Expr::And(mut terms),
                        height,
                        ..
                    },
                ) => {
                    let height = height.max(right.height + 1);
                    terms.push(right);
                    self.checked(Node {
                        offset,
                        height,
                        expr: Expr::And(terms),
                    })?
                }
                (
                    Operator::Or,
                    Node {
                        expr: Expr::Or(mut terms),
                        height,
                        ..
                    },
                ) => {
                    let height = height.max(right.height + 1);
                    terms.push(right);
                    self.checked(Node {
                        offset,
                        height,
                        expr: Expr::Or(terms),
                    })?
                }
                (Operator::And, left) => self.node(offset, Expr::And(vec![left, right]))?,
                (Operator::Or, left) => self.node(offset, Expr::Or(vec![left, right]))?,
            };
            operands.push(node);
        }
        Ok(())
    }

    /// `!x`, `-x`, or an expression that binds tighter. An even number of signs has no effect.
    fn unary(&mut self) -> Result<Node, ParseError> {
        let offset = self.offset;
        for (punct, operator) in [("!", Unary::Not), ("-", Unary::Negate)] {
            let mut count = 0_usize;
            while self.take(punct)? {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            let is_literal = matches!(self.token, Token::Int(_) | Token::Double(_));
            if operator == Unary::Negate && !count.is_multiple_of(2) && is_literal {
                return self.member(offset, true);
            }
            let is_negative_literal = operator == Unary::Not && self.take("-")?;
            let operand = self.member(self.offset, is_negative_literal)?;
            if count.is_multiple_of(2) {
                return Ok(operand);
            }
            return self.node(offset, Expr::Unary(operator, Box::new(operand)));
        }
        self.member(offset, false)
    }

    /// A value with its fields, items and methods.
    fn member(&mut self, offset: usize, is_negative: bool) -> Result<Node, ParseError> {
        let mut node = if is_negative {
            self.negative_literal(offset)?
        } else {
            self.primary()?
        };
        loop {
            let offset = self.offset;
            if self.take(".")? {
                node = self.selection(offset, node)?;
            } else if self.take("[")? {
                let optional = self.take("?")?;
                let index = self.expression()?;
                self.expect("]")?;
                let operand = node;
                node = self.node(
                    offset,
                    Expr::Index(Box::new(Index {
                        operand,
                        index,
                        optional,
                    })),
                )?;
            } else {
                return Ok(node);
            }
        }
    }

    fn selection(&mut self, offset: usize, operand: Node) -> Result<Node, ParseError> {
        let optional = self.take("?")?;
        if !matches!(self.token, Token::Ident(_) | Token::Escaped(_)) {
            return Err(self.unexpected());
        }
        let at = self.offset;
        let is_plain = matches!(self.token, Token::Ident(_));
        let (Token::Ident(field) | Token::Escaped(field)) = self.advance()? else {
            return Err(self.unexpected());
        };
        if is_plain && ["in", "true", "false", "null"].contains(&field.as_str()) {
            return Err(ParseError::syntax(
                self.text,
                at,
                format!("no viable alternative at input '.{field}'"),
            ));
        }
        if self.is("(") && !optional && is_plain {
            return self.method(offset, operand, field);
        }
        let select = Select {
            operand,
            field,
            test: false,
            optional,
        };
        let node = self.node(offset, Expr::Select(Box::new(select)))?;
        self.selected_message(offset, node)
    }

    fn negative_literal(&mut self, offset: usize) -> Result<Node, ParseError> {
        let literal = match self.advance()? {
            Token::Int(digits) => self.int(offset, &digits, true)?,
            Token::Double(value) => Literal::Double(-value),
            _ => return Err(self.unexpected()),
        };
        self.node(offset, Expr::Literal(literal))
    }

    fn int(&self, offset: usize, digits: &str, is_negative: bool) -> Result<Literal, ParseError> {
        let value = crate::literal::int(digits, is_negative);
        let invalid = || ParseError::at(self.text, offset, "invalid int literal".to_owned());
        value.map(Literal::Int).ok_or_else(invalid)
    }
}
