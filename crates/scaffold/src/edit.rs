//! Edits of Rust sources: the parser finds the position, the text is inserted, and nothing else changes.

use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;

use syn::spanned::Spanned as _;
use syn::{FnArg, Item, ItemFn, Pat, Stmt};

use crate::{Error, rust_source};

/// A Rust file that is being changed.
#[derive(Debug, Clone)]
pub struct RustFile<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> RustFile<'a> {
    /// A file. `path` is for messages.
    ///
    /// # Errors
    /// When it does not parse.
    pub fn new(path: &'a Path, text: String) -> Result<Self, Error> {
        let file = Self { path, text };
        file.parse()?;
        Ok(file)
    }

    /// The changed text.
    pub fn into_text(self) -> String {
        self.text
    }

    fn parse(&self) -> Result<syn::File, Error> {
        rust_source::parse(self.path, &self.text)
    }

    /// Adds `pub mod NAME;` among the modules, sorted as rustfmt sorts them. A module that is there stays.
    ///
    /// # Errors
    /// When the file does not parse.
    pub fn add_module(&mut self, name: &str) -> Result<(), Error> {
        let file = self.parse()?;
        let modules: Vec<(String, Range<usize>)> = file
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Mod(module) if module.content.is_none() => {
                    Some((module.ident.to_string(), module.span().byte_range()))
                }
                _ => None,
            })
            .collect();
        if modules.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        let line = format!("pub mod {name};\n");
        let before = modules.iter().find(|(known, _)| natural(name, known) == Ordering::Less);
        if let Some((_, range)) = before {
            self.insert(self.line_start(range.start), &line);
        } else if let Some((_, range)) = modules.last() {
            self.insert(self.line_end(range.end), &line);
        } else if let Some(first) = file.items.first() {
            let at = self.line_start(first.span().byte_range().start);
            self.insert(at, &format!("{line}\n"));
        } else {
            let gap = if self.text.is_empty() || self.text.ends_with("\n\n") {
                ""
            } else {
                "\n"
            };
            self.insert(self.text.len(), &format!("{gap}{line}"));
        }
        Ok(())
    }

    /// Adds statements at the end of a function, before the expression that it returns. A statement `let _ = …;` of the
    /// scaffold, which suppresses a compiler warning about an empty function, is removed.
    ///
    /// # Errors
    /// When the file has no such function.
    pub fn add_statements(&mut self, function: &str, statements: &[String]) -> Result<(), Error> {
        let found = self.function(function, statements)?;
        let present = |text: &str| {
            self.text
                .get(found.block.span().byte_range())
                .is_some_and(|body| body.contains(text))
        };
        let fresh: Vec<String> = statements
            .iter()
            .filter(|statement| !present(statement))
            .map(|statement| format!("    {statement}\n"))
            .collect();
        let braces = found.block.brace_token.span;
        let place = match found.block.stmts.last() {
            Some(tail @ Stmt::Expr(_, None)) => tail.span().byte_range().start,
            Some(Stmt::Macro(tail)) if tail.semi_token.is_none() => tail.span().byte_range().start,
            _ => braces.close().byte_range().start,
        };
        let line = self.line_start(place);
        if line > braces.open().byte_range().start {
            self.insert(line, &fresh.concat());
        } else if !fresh.is_empty() {
            // The body is on the line of the opening brace.
            self.insert(place, &format!("\n{}", fresh.concat()));
        }
        if let Some(placeholder) = placeholder(&found) {
            let range = self.line_start(placeholder.start)..self.line_end(placeholder.end);
            self.text.replace_range(range, "");
        }
        Ok(())
    }

    /// Replaces the value of a constant.
    ///
    /// # Errors
    /// When the file has no such constant.
    pub fn set_constant(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let file = self.parse()?;
        let found = file.items.iter().find_map(|item| match item {
            Item::Const(constant) if constant.ident == name => Some(constant.expr.span().byte_range()),
            _ => None,
        });
        let range = found.ok_or_else(|| Error::Place {
            path: self.path.to_owned(),
            place: format!("constant `{name}`"),
            text: format!("{name} = {value}"),
        })?;
        self.text.replace_range(range, value);
        Ok(())
    }

    /// Adds an item at the end of the file, before its tests.
    ///
    /// # Errors
    /// When the file does not parse.
    pub fn add_function(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let file = self.parse()?;
        if find(&file, name).is_some() {
            return Ok(());
        }
        let tests = file.items.iter().find_map(|item| match item {
            Item::Mod(module) if module.ident == "tests" => Some(module.span().byte_range().start),
            _ => None,
        });
        match tests {
            Some(start) => self.insert(self.line_start(start), &format!("{text}\n")),
            None => self.insert(self.text.len(), &format!("\n{text}")),
        }
        Ok(())
    }

    /// Adds items before a function, unless the file has a function of that name. Without that place, at the end.
    ///
    /// # Errors
    /// When the file does not parse.
    pub fn add_function_before(&mut self, name: &str, text: &str, before: &str) -> Result<(), Error> {
        let file = self.parse()?;
        if find(&file, name).is_some() {
            return Ok(());
        }
        match find(&file, before) {
            Some(function) => {
                let at = self.line_start(function.span().byte_range().start);
                self.insert(at, &format!("{text}\n"));
                Ok(())
            }
            None => self.add_function(name, text),
        }
    }

    /// Removes `pub mod NAME;`, if it is there.
    ///
    /// # Errors
    /// When the file does not parse.
    pub fn remove_module(&mut self, name: &str) -> Result<(), Error> {
        let file = self.parse()?;
        let found = file.items.iter().find_map(|item| match item {
            Item::Mod(module) if module.content.is_none() && module.ident == name => Some(module.span().byte_range()),
            _ => None,
        });
        if let Some(range) = found {
            self.remove_lines(range);
        }
        Ok(())
    }

    /// Removes statements that are on separate lines and have their original form. A parameter that is no longer used gets
    /// its statement `let _ = …;` back.
    ///
    /// # Errors
    /// When the file does not parse.
    pub fn remove_statements(&mut self, function: &str, statements: &[String]) -> Result<(), Error> {
        let Some(found) = find(&self.parse()?, function) else {
            return Ok(());
        };
        for statement in found.block.stmts.iter().rev() {
            let range = statement.span().byte_range();
            let text = self.text.get(range.clone()).unwrap_or_default();
            if statements.iter().any(|wanted| wanted == text) {
                self.text
                    .replace_range(self.line_start(range.start)..self.line_end(range.end), "");
            }
        }
        let Some(left) = find(&self.parse()?, function) else {
            return Ok(());
        };
        let body = self
            .text
            .get(left.block.span().byte_range())
            .unwrap_or_default()
            .to_owned();
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric() && c != '_')
                .map(str::to_owned)
                .collect()
        };
        let used = words(&body);
        for input in &left.sig.inputs {
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(name) = &*typed.pat
                && !used.contains(&name.ident.to_string())
            {
                let open = self.line_end(left.block.brace_token.span.open().byte_range().start);
                self.insert(open, &format!("    let _ = {};\n", name.ident));
            }
        }
        Ok(())
    }

    /// Replaces statements of a function, each given as old and new text.
    ///
    /// # Errors
    /// When the file has no such function, or the function lacks one of the statements.
    pub fn replace_statements(&mut self, function: &str, pairs: &[(String, String)]) -> Result<(), Error> {
        for (old, new) in pairs {
            let found = self.function(function, std::slice::from_ref(new))?;
            let mut ranges = found.block.stmts.iter().map(|statement| statement.span().byte_range());
            let range = ranges.find(|range| self.text.get(range.clone()) == Some(old));
            let range = range.ok_or_else(|| Error::Place {
                path: self.path.to_owned(),
                place: format!("statement `{old}` in the function `{function}`"),
                text: new.clone(),
            })?;
            self.text.replace_range(range, new);
        }
        Ok(())
    }

    /// Removes a function with its documentation, if it is there.
    ///
    /// # Errors
    /// When the file does not parse.
    pub fn remove_function(&mut self, name: &str) -> Result<(), Error> {
        if let Some(found) = find(&self.parse()?, name) {
            self.remove_lines(found.span().byte_range());
        }
        Ok(())
    }

    /// Removes the lines of an item, and one of the two empty lines around it.
    fn remove_lines(&mut self, range: Range<usize>) {
        let (start, end) = (self.line_start(range.start), self.line_end(range.end));
        self.text.replace_range(start..end, "");
        let blank_before = self.text.get(..start).is_some_and(|before| before.ends_with("\n\n"));
        let rest = self.text.get(start..).unwrap_or_default();
        if blank_before && (rest.is_empty() || rest.starts_with('\n')) {
            self.text.replace_range(start - 1..start, "");
        }
    }

    fn function(&self, name: &str, wanted: &[String]) -> Result<ItemFn, Error> {
        find(&self.parse()?, name).ok_or_else(|| Error::Place {
            path: self.path.to_owned(),
            place: format!("function `{name}`"),
            text: wanted.join("\n"),
        })
    }

    fn insert(&mut self, at: usize, text: &str) {
        self.text.insert_str(at, text);
    }

    /// The start of the line at a position, with attributes and whitespace before it.
    fn line_start(&self, at: usize) -> usize {
        self.text
            .get(..at)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |newline| newline + 1)
    }

    /// Where the line after a place begins.
    fn line_end(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.find('\n').map_or(self.text.len(), |newline| at + newline + 1)
    }
}

fn find(file: &syn::File, name: &str) -> Option<ItemFn> {
    file.items.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == name => Some(function.clone()),
        _ => None,
    })
}

/// The statement `let _ = parameter;` at the beginning of a function.
fn placeholder(function: &ItemFn) -> Option<Range<usize>> {
    let Some(Stmt::Local(local)) = function.block.stmts.first() else {
        return None;
    };
    let syn::Expr::Path(value) = &*local.init.as_ref()?.expr else {
        return None;
    };
    let is_parameter = function.sig.inputs.iter().any(|input| match input {
        FnArg::Typed(typed) => matches!(&*typed.pat, Pat::Ident(name) if value.path.is_ident(&name.ident)),
        FnArg::Receiver(_) => false,
    });
    (matches!(local.pat, Pat::Wild(_)) && is_parameter).then(|| local.span().byte_range())
}

/// Compares names as rustfmt sorts modules: numbers by their value.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let (a, b) = (digits(one), digits(other));
        if a > 0 && b > 0 {
            let (left, right) = (one.get(..a).unwrap_or(one), other.get(..b).unwrap_or(other));
            let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
            let order = left.len().cmp(&right.len()).then_with(|| left.cmp(right));
            if order != Ordering::Equal {
                return order;
            }
            (one, other) = (one.get(a..).unwrap_or(""), other.get(b..).unwrap_or(""));
            continue;
        }
        let (mut left, mut right) = (one.chars(), other.chars());
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => (one, other) = (left.as_str(), right.as_str()),
            (a, b) => return a.cmp(&b),
        }
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(text: &str, change: impl FnOnce(&mut RustFile<'_>) -> Result<(), Error>) -> Result<String, Error> {
        let mut file = RustFile::new(Path::new("src/x.rs"), text.to_owned())?;
        change(&mut file)?;
        file.parse()?;
        Ok(file.into_text())
    }

    #[test]
    fn modules_are_sorted_in() {
        let add = |text: &str, name: &str| edit(text, |file| file.add_module(name)).unwrap();
        assert_eq!(add("//! Doc.\n", "v1"), "//! Doc.\n\npub mod v1;\n");
        assert_eq!(
            add("//! Doc.\n\nuse a::b;\n", "v1"),
            "//! Doc.\n\npub mod v1;\n\nuse a::b;\n"
        );
        let two = "//! Doc.\n\n/// Old.\npub mod v1;\npub mod v10;\n\nuse a::b;\n";
        assert_eq!(add(two, "v2"), two.replace("v1;\n", "v1;\npub mod v2;\n"));
        assert_eq!(add(two, "v1"), two);
        assert_eq!(add(two, "v1alpha1"), two.replace("v1;\n", "v1;\npub mod v1alpha1;\n"));
        assert_eq!(add(two, "a"), two.replace("/// Old", "pub mod a;\n/// Old"));
        assert_eq!(add(two, "z"), two.replace("v10;\n", "v10;\npub mod z;\n"));
    }

    #[test]
    fn statements_go_before_the_result() {
        let add = |text: &str| edit(text, |file| file.add_statements("f", &["new();".into()])).unwrap();
        assert_eq!(
            add("fn f(a: A) {\n    let _ = a;\n}\n"),
            "fn f(a: A) {\n    new();\n}\n"
        );
        let mine = "fn f() -> A {\n    // Mine.\n    old( ) ;\n    Ok(())\n}\n";
        assert_eq!(add(mine), mine.replace("    Ok", "    new();\n    Ok"));
        assert_eq!(add(&add(mine)), add(mine), "not twice");
        assert_eq!(add("fn f() {}\n"), "fn f() {\n    new();\n}\n");
        assert_eq!(add("fn f() -> A { a }\n"), "fn f() -> A { \n    new();\na }\n");
    }

    #[test]
    fn an_edit_names_missing_code() {
        let error = edit("fn g() {}\n", |file| file.add_statements("f", &["new();".into()])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "src/x.rs: cannot find function `f`; restore it, so that the command can insert this code:\nnew();"
        );
        let error = edit("fn g( {\n", |file| file.add_module("a")).unwrap_err();
        assert!(error.to_string().starts_with("src/x.rs:"), "{error}");
    }

    #[test]
    fn removal_restores_the_file_before_an_addition() {
        let texts = [
            "//! Doc.\n\nuse a::b;\n\nfn f(a: A) {\n    let _ = a;\n}\n",
            "//! Doc.\n\npub mod a;\npub mod z;\n\n// Mine.\nfn f(a: A) {\n    a.x( );\n}\n",
        ];
        for text in texts {
            let changed = edit(text, |file| {
                file.add_module("m")?;
                file.add_statements("f", &["a.y();".into(), "m(a);".into()])?;
                file.add_function("g", "/// New.\nfn g() {}\n")
            });
            let back = edit(&changed.unwrap(), |file| {
                file.remove_function("g")?;
                file.remove_statements("f", &["a.y();".into(), "m(a);".into()])?;
                file.remove_module("m")
            });
            assert_eq!(back.unwrap(), text);
        }
    }

    #[test]
    fn constants_get_another_value() {
        let set = |text: &str| edit(text, |file| file.set_constant("A", "true"));
        assert_eq!(
            set("pub const A: bool = /* no */ false; // x\n").unwrap(),
            "pub const A: bool = /* no */ true; // x\n"
        );
        assert!(
            set("const B: bool = false;\n")
                .unwrap_err()
                .to_string()
                .contains("constant `A`")
        );
    }

    #[test]
    fn functions_go_before_the_tests() {
        let add = |text: &str| edit(text, |file| file.add_function("g", "fn g() {}\n")).unwrap();
        assert_eq!(add("fn f() {}\n"), "fn f() {}\n\nfn g() {}\n");
        let tested = "fn f() {}\n\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(add(tested), tested.replace("#[cfg", "fn g() {}\n\n#[cfg"));
        assert_eq!(add("fn g() { 1; }\n"), "fn g() { 1; }\n");
    }
}
