//! The arguments of markers, in the syntax of controller-tools: `name:a=1,b="x",c={y,z},d=x;y`.

/// The name of the markers of operator-sdk.
pub(super) const CSV: &str = "operator-sdk:csv:customresourcedefinitions";

/// The arguments of a marker on a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OnType {
    pub display_name: String,
    pub resources: Vec<Vec<String>>,
    pub order: Option<i64>,
}

/// The arguments of a marker on a field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OnField {
    pub kind: String,
    pub display_name: String,
    pub descriptors: Vec<String>,
    pub order: Option<i64>,
}

/// The arguments of a marker, if it has a name. The text starts with the plus sign.
pub(super) fn arguments<'a>(marker: &'a str, name: &str) -> Option<&'a str> {
    let rest = marker.strip_prefix('+')?.strip_prefix(name)?;
    let own = rest.strip_prefix(':')?;
    // The last part before the equals sign is the first argument.
    let (key, _) = own.split_once('=')?;
    (!key.contains(':')).then_some(own)
}

/// The value of a marker that has one value and no arguments, such as `+groupName=example.com`.
pub(super) fn value(marker: &str, name: &str) -> Option<Result<String, String>> {
    let rest = marker.strip_prefix('+')?.strip_prefix(name)?.strip_prefix('=')?;
    let mut scanner = Scanner::new(rest);
    let value = scanner.string();
    Some(value.and_then(|value| scanner.end().map(|()| value)))
}

/// Returns true if a text is the marker itself, without a value.
pub(super) fn is(marker: &str, name: &str) -> bool {
    marker.strip_prefix('+').is_some_and(|rest| rest == name)
}

pub(super) fn on_type(arguments: &str) -> Result<OnType, String> {
    let mut found = OnType::default();
    parse(arguments, |name, scanner| {
        match name {
            "displayName" => found.display_name = scanner.string()?,
            "resources" => found.resources = scanner.list(|inner| inner.list(Scanner::string))?,
            "order" => found.order = Some(scanner.integer()?),
            _ => {
                return Err(format!(
                    "unknown argument {name:?}; use displayName, resources or order"
                ));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn on_field(arguments: &str) -> Result<OnField, String> {
    let mut found = OnField::default();
    parse(arguments, |name, scanner| {
        match name {
            "type" => found.kind = scanner.string()?,
            "displayName" => found.display_name = scanner.string()?,
            "xDescriptors" => found.descriptors = scanner.list(Scanner::string)?,
            "order" => found.order = Some(scanner.integer()?),
            _ => {
                return Err(format!(
                    "unknown argument {name:?}; use type, displayName, xDescriptors or order"
                ));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The `path` of `+kubebuilder:resource`. Other arguments are not checked.
pub(super) fn resource_path(arguments: &str) -> Option<String> {
    let mut path = None;
    let _ = parse(arguments, |name, scanner| {
        let values = scanner.list(Scanner::string)?;
        if name == "path" {
            path = values.into_iter().next();
        }
        Ok(())
    });
    path
}

fn parse(
    arguments: &str,
    mut argument: impl FnMut(&str, &mut Scanner<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut scanner = Scanner::new(arguments);
    loop {
        let name = scanner.scan()?;
        if !name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            return Err(format!("expected an argument name, got {name:?}"));
        }
        scanner.expect("=")?;
        argument(name, &mut scanner)?;
        if scanner.rest.is_empty() {
            return Ok(());
        }
        scanner.expect(",")?;
    }
}

/// Go's text/scanner, as far as markers need it.
struct Scanner<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, rest: text }
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.chars().next()
    }

    /// The next token: a name, a number, a quoted string, or one character. It is empty at the end.
    fn scan(&mut self) -> Result<&'a str, String> {
        let Some(first) = self.peek() else { return Ok("") };
        let rest = self.rest;
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = match first {
            '"' => quoted_length(rest).ok_or("a string is not terminated")?,
            '`' => {
                2 + rest
                    .get(1..)
                    .and_then(|text| text.find('`'))
                    .ok_or("a string is not terminated")?
            }
            _ if is_word(first) => rest.find(|character: char| !is_word(character)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, rest) = rest.split_at_checked(length).unwrap_or((rest, ""));
        self.rest = rest;
        Ok(token)
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        match self.scan()? {
            token if token == expected => Ok(()),
            token => Err(format!("expected {expected:?}, got {token:?}")),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(format!("extra arguments: {:?}", self.rest)),
        }
    }

    /// A quoted string, or everything up to a separator.
    fn string(&mut self) -> Result<String, String> {
        let start = match self.peek() {
            Some(_) => self.text.len() - self.rest.len(),
            None => return Ok(String::new()),
        };
        let first = self.scan()?;
        if first.starts_with(['"', '`']) {
            return unquote(first).ok_or_else(|| format!("cannot parse the string {first}"));
        }
        let mut end = self.text.len() - self.rest.len();
        while self.peek().is_some_and(|next| ![',', ';', ':', '}'].contains(&next)) {
            self.scan()?;
            end = self.text.len() - self.rest.len();
        }
        Ok(self.text.get(start..end).unwrap_or_default().to_owned())
    }

    fn integer(&mut self) -> Result<i64, String> {
        let negative = self.rest.starts_with('-');
        if negative {
            self.scan()?;
        }
        let token = self.scan()?;
        let text = if negative {
            format!("-{token}")
        } else {
            token.to_owned()
        };
        text.parse().map_err(|_| format!("expected an integer, got {token:?}"))
    }

    /// `{a,b}` or `a;b`.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        if self.peek() == Some('{') {
            self.scan()?;
            while self.peek().is_some_and(|next| next != '}') {
                items.push(item(self)?);
                if self.peek() == Some('}') {
                    break;
                }
                self.expect(",")?;
            }
            self.expect("}")?;
            return Ok(items);
        }
        while self.peek().is_some_and(|next| next != ',' && next != '}') {
            items.push(item(self)?);
            match self.peek() {
                None | Some(',' | '}') => break,
                Some(_) => self.expect(";")?,
            }
        }
        Ok(items)
    }
}

/// The length of a string with its quotes.
fn quoted_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            b'\n' => return None,
            _ => {}
        }
    }
    None
}

/// Go's `strconv.Unquote` for strings.
pub(super) fn unquote(text: &str) -> Option<String> {
    if let Some(raw) = text.strip_prefix('`') {
        return Some(raw.strip_suffix('`')?.replace('\r', ""));
    }
    let mut inner = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut bytes = Vec::new();
    while let Some(character) = inner.next() {
        if character != '\\' {
            bytes.extend(character.to_string().bytes());
            continue;
        }
        let plain = match inner.next()? {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' => b'\\',
            '"' => b'"',
            'x' => u8::try_from(digits(&mut inner, 2, 16)?).ok()?,
            length @ ('u' | 'U') => {
                let code = digits(&mut inner, if length == 'u' { 4 } else { 8 }, 16)?;
                bytes.extend(char::from_u32(code)?.to_string().bytes());
                continue;
            }
            first @ '0'..='7' => {
                let code = first.to_digit(8)? * 64 + digits(&mut inner, 2, 8)?;
                u8::try_from(code).ok()?
            }
            _ => return None,
        };
        bytes.push(plain);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn digits(text: &mut std::str::Chars<'_>, count: usize, base: u32) -> Option<u32> {
    (0..count).try_fold(0u32, |value, _| {
        value.checked_mul(base)?.checked_add(text.next()?.to_digit(base)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn arguments_have_the_syntax_of_controller_tools() {
        let marker = "+operator-sdk:csv:customresourcedefinitions:type=spec,displayName=\"A, \\\"b\\\"\",\
                      xDescriptors={\"urn:a:b\",plain words},order=-2";
        let found = on_field(arguments(marker, CSV).unwrap()).unwrap();
        assert_eq!(
            found,
            OnField {
                kind: "spec".into(),
                display_name: "A, \"b\"".into(),
                descriptors: list(&["urn:a:b", "plain words"]),
                order: Some(-2),
            }
        );
        let found = on_field("type=status,xDescriptors=\"a\";`b` ;c").unwrap();
        assert_eq!(found.descriptors, list(&["a", "b", "c"]));
        let found = on_type("resources={{Pod,v1,\" a\"}, {Deployment,apps/v1}},displayName=Two words").unwrap();
        assert_eq!(
            found.resources,
            [list(&["Pod", "v1", " a"]), list(&["Deployment", "apps/v1"])]
        );
        assert_eq!(found.display_name, "Two words");
    }

    #[test]
    fn invalid_arguments_are_reported() {
        for (arguments, expected) in [
            ("type=spec,displayname=x", "unknown argument \"displayname\""),
            ("displayName=\"x", "a string is not terminated"),
            ("order=x", "expected an integer"),
            ("xDescriptors={a", "expected \",\""),
            ("type=spec,order", "expected \"=\""),
        ] {
            let error = on_field(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments}: {error}");
        }
        // A string without quotes ends at a separator only.
        assert_eq!(on_field("type=spec displayName=x").unwrap().kind, "spec displayName=x");
    }

    #[test]
    fn names_must_match_in_full() {
        assert_eq!(arguments("+operator-sdk:csv:other:type=spec", CSV), None);
        assert_eq!(
            arguments("+operator-sdk:csv:customresourcedefinitions:a:type=spec", CSV),
            None
        );
        assert_eq!(
            value("+groupName=example.com", "groupName"),
            Some(Ok("example.com".into()))
        );
        assert_eq!(value("+groupNames=example.com", "groupName"), None);
        assert_eq!(
            resource_path("scope=Cluster,path=widgets,shortName=w;wi").as_deref(),
            Some("widgets")
        );
    }
}
