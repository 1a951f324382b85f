//! Label selectors, as Kubernetes parses them: `suite=operatorframework`, `name in (a, b)`, `!x`, `name!=y`.

use std::collections::BTreeMap;

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// A selector: all requirements must be met. Without any it selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// Parses a selector.
    ///
    /// # Errors
    /// If the string is not a selector.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser {
            tokens: tokens(text),
            at: 0,
        };
        let mut requirements = Vec::new();
        loop {
            match parser.peek() {
                None => break,
                Some(Token::Word(_) | Token::Symbol("!")) => requirements.push(parser.requirement()?),
                Some(other) => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
            match parser.next() {
                None => break,
                Some(Token::Symbol(",")) => {
                    if !matches!(parser.peek(), Some(Token::Word(_) | Token::Symbol("!"))) {
                        let found = parser.peek().map_or("", Token::text);
                        return Err(format!("found '{found}', expected: identifier after ','"));
                    }
                }
                Some(other) => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
        Ok(Self { requirements })
    }

    /// True if nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// True when labels meet all requirements.
    pub fn matches(&self, labels: &BTreeMap<&str, &str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(requirement.key.as_str());
            let listed = value.is_some_and(|value| requirement.values.iter().any(|other| other == value));
            let compare = |test: fn(i64, i64) -> bool| {
                let left = value.and_then(|value| value.parse().ok());
                let right = requirement.values.first().and_then(|value| value.parse().ok());
                left.zip(right).is_some_and(|(left, right)| test(left, right))
            };
            match requirement.operator {
                Operator::In => listed,
                Operator::NotIn => !listed,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
                Operator::GreaterThan => compare(|left, right| left > right),
                Operator::LessThan => compare(|left, right| left < right),
            }
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Symbol(symbol) => symbol,
        }
    }
}

const SYMBOLS: [&str; 10] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<", "\0"];

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            out.push(Token::Symbol(symbol));
            rest = rest.get(symbol.len()..).unwrap_or_default();
        } else {
            let special = |c: char| c.is_whitespace() || "=!(),><".contains(c);
            let (word, after) = rest.split_at(rest.find(special).unwrap_or(rest.len()));
            out.push(Token::Word(word.to_string()));
            rest = after;
        }
        rest = rest.trim_start();
    }
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == Some(&Token::Symbol("!"));
        if negated {
            self.at += 1;
        }
        let Some(Token::Word(key)) = self.next() else {
            return Err("found '', expected: identifier".to_string());
        };
        if let Some(fault) = crate::object::qualified_name_problems(&key).first() {
            return Err(format!("key: Invalid value: {key:?}: {fault}"));
        }
        if negated || matches!(self.peek(), None | Some(Token::Symbol(","))) {
            let operator = if negated {
                Operator::DoesNotExist
            } else {
                Operator::Exists
            };
            return Ok(Requirement {
                key,
                operator,
                values: Vec::new(),
            });
        }
        let operator = match self.next() {
            Some(Token::Symbol("=" | "==")) => Operator::In,
            Some(Token::Symbol("!=")) => Operator::NotIn,
            Some(Token::Symbol(">")) => Operator::GreaterThan,
            Some(Token::Symbol("<")) => Operator::LessThan,
            Some(Token::Word(word)) if word == "in" => return self.set(key, Operator::In),
            Some(Token::Word(word)) if word == "notin" => return self.set(key, Operator::NotIn),
            other => {
                let found = other.as_ref().map_or("", Token::text);
                return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        let value = match self.peek() {
            Some(Token::Word(_)) => match self.next() {
                Some(Token::Word(word)) => word,
                _ => String::new(),
            },
            None | Some(Token::Symbol(",")) => String::new(),
            Some(other) => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        self.check_values(&key, operator, std::slice::from_ref(&value))?;
        Ok(Requirement {
            key,
            operator,
            values: vec![value],
        })
    }

    fn set(&mut self, key: String, operator: Operator) -> Result<Requirement, String> {
        if self.next() != Some(Token::Symbol("(")) {
            return Err("found something else, expected: '('".to_string());
        }
        let mut values = Vec::new();
        let mut expect_value = true;
        loop {
            match self.next() {
                Some(Token::Word(word)) if expect_value => {
                    values.push(word);
                    expect_value = false;
                }
                Some(Token::Symbol(",")) => {
                    if expect_value {
                        values.push(String::new());
                    }
                    expect_value = true;
                }
                Some(Token::Symbol(")")) => {
                    if expect_value {
                        values.push(String::new());
                    }
                    break;
                }
                other => {
                    let found = other.as_ref().map_or("", Token::text);
                    return Err(format!("found '{found}', expected: ',', ')' or identifier"));
                }
            }
        }
        self.check_values(&key, operator, &values)?;
        Ok(Requirement { key, operator, values })
    }

    fn check_values(&self, key: &str, operator: Operator, values: &[String]) -> Result<(), String> {
        for (at, value) in values.iter().enumerate() {
            if let Some(fault) = crate::object::label_value_problems(value).first() {
                return Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {fault}"));
            }
            let wants_number = matches!(operator, Operator::GreaterThan | Operator::LessThan);
            if wants_number && value.parse::<i64>().is_err() {
                return Err(format!(
                    "values[{at}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select() {
        let labels = BTreeMap::from([("name", "capabilities"), ("suite", "operatorframework")]);
        for good in [
            "",
            "suite=operatorframework",
            "name in (a, capabilities)",
            "name!=x,suite",
            "!missing",
            "name notin (x)",
            "name==capabilities",
        ] {
            assert!(Selector::parse(good).expect(good).matches(&labels), "{good}");
        }
        for other in [
            "name=x",
            "!suite",
            "missing",
            "name in ()",
            "suite notin (operatorframework)",
        ] {
            assert!(!Selector::parse(other).expect(other).matches(&labels), "{other}");
        }
        for bad in ["name in x", "=x", "a b", "name=x,", "na/me/x=1", "a=b=c", "name in (x"] {
            assert!(Selector::parse(bad).is_err(), "{bad}");
        }
    }
}
