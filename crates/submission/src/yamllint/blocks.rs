//! Indentation, keys and anchors.

use std::collections::HashSet;

use olmkit_yaml::EventKind;

use super::{First, Source, UnplacedProblem};

/// A list or mapping that is being read.
struct Open {
    is_mapping: bool,
    /// True if it is in brackets.
    is_flow: bool,
    /// The column of its entries.
    indent: usize,
    /// The column of the first mark in the line where it begins.
    line_indent: usize,
    /// True if an entry was read.
    has_entry: bool,
    /// True if the next node is the value of a key.
    is_value: bool,
    /// The line of the key or dash that the next node belongs to.
    line: usize,
    keys: HashSet<String>,
}

impl Open {
    fn new(is_mapping: bool) -> Self {
        Self {
            is_mapping,
            is_flow: false,
            indent: 0,
            line_indent: 0,
            has_entry: false,
            is_value: false,
            line: 0,
            keys: HashSet::new(),
        }
    }
}

/// Each block is indented by the same number of spaces. A list may start at the column of its key.
pub(super) fn indentation(source: &Source<'_>) -> Vec<UnplacedProblem> {
    let mut walk = Indentation {
        source,
        step: None,
        found: source.first(),
    };
    let mut open: Vec<Open> = Vec::new();
    for event in &source.events {
        let start = event.source.start;
        let new = match &event.data {
            EventKind::DocumentStart | EventKind::DocumentEnd => {
                open.clear();
                continue;
            }
            EventKind::End => {
                let ended = open
                    .pop()
                    .filter(|ended| ended.is_flow && source.is_first_in_line(start));
                if let Some(ended) = ended {
                    walk.expect(ended.line_indent, start);
                }
                finished(&mut open);
                continue;
            }
            EventKind::Start { mapping, .. } => Some(Open::new(*mapping)),
            EventKind::Scalar { .. } if event.source.is_empty() => {
                finished(&mut open);
                continue;
            }
            EventKind::Scalar { .. } | EventKind::Alias(_) => None,
        };
        let last = source.text.as_bytes().get(event.source.end.saturating_sub(1));
        let is_flow = new.is_some() && !event.source.is_empty() && matches!(last, Some(b'{' | b'['));
        let is_list = new.as_ref().is_some_and(|new| !new.is_mapping) && !is_flow;
        match open.last_mut() {
            Some(parent) if parent.is_flow => walk.in_flow(parent, start),
            Some(parent) => walk.in_block(parent, is_list, start),
            None if new.is_some() && source.is_first_in_line(start) => walk.expect(0, start),
            None => {}
        }
        let line = source.line(start);
        if let Some(new) = new {
            open.push(Open {
                is_flow,
                indent: source.indent(start),
                line_indent: source.line_indent(start),
                line,
                ..new
            });
        } else {
            if let Some(last) = open.last_mut()
                && !last.is_value
            {
                last.line = line;
            }
            finished(&mut open);
        }
    }
    walk.found.found
}

struct Indentation<'a> {
    source: &'a Source<'a>,
    /// The indentation of one level, which the first level determines.
    step: Option<usize>,
    found: First,
}

impl Indentation<'_> {
    fn expect(&mut self, wanted: usize, start: usize) {
        let indent = self.source.indent(start);
        if indent != wanted {
            let message = format!("wrong indentation: expected {wanted} but found {indent}");
            self.found.push("indentation", message, start);
        }
    }

    /// A column one level below another.
    fn below(&mut self, outer: usize, found: usize) -> usize {
        match found.checked_sub(outer).filter(|width| *width > 0) {
            Some(width) => outer + *self.step.get_or_insert(width),
            None => outer + self.step.unwrap_or(2),
        }
    }

    /// Contents of a list or mapping in brackets: aligned with the first entry, or one level below the line of the
    /// bracket.
    fn in_flow(&mut self, parent: &mut Open, start: usize) {
        if parent.is_mapping && parent.is_value {
            return;
        }
        let indent = self.source.indent(start);
        if !parent.has_entry {
            parent.has_entry = true;
            parent.indent = if self.source.line(start) == parent.line {
                indent
            } else {
                self.below(parent.line_indent, indent)
            };
        }
        if self.source.is_first_in_line(start) {
            self.expect(parent.indent, start);
        }
    }

    /// Content on a separate line below a key or a dash.
    fn in_block(&mut self, parent: &Open, is_list: bool, start: usize) {
        let is_below = self.source.line(start) > parent.line && self.source.is_first_in_line(start);
        if !is_below || (parent.is_mapping && !parent.is_value) {
            return;
        }
        let indent = self.source.indent(start);
        if is_list && parent.is_mapping && indent == parent.indent {
            return;
        }
        let wanted = self.below(parent.indent, indent);
        self.expect(wanted, start);
    }
}

/// A value of the innermost collection is complete.
fn finished(open: &mut [Open]) {
    if let Some(last) = open.last_mut()
        && last.is_mapping
    {
        last.is_value = !last.is_value;
    }
}

/// No key twice, and no alias before its anchor.
pub(super) fn keys_and_anchors(source: &Source<'_>) -> Vec<UnplacedProblem> {
    let mut found = source.first();
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: HashSet<&str> = HashSet::new();
    for event in &source.events {
        let start = event.source.start;
        let anchor = match &event.data {
            EventKind::Scalar { anchor, .. } | EventKind::Start { anchor, .. } => anchor.as_deref(),
            _ => None,
        };
        anchors.extend(anchor);
        match &event.data {
            EventKind::DocumentStart | EventKind::DocumentEnd => {
                open.clear();
                anchors.clear();
            }
            EventKind::End => {
                open.pop();
                finished(&mut open);
            }
            EventKind::Start { mapping, .. } => open.push(Open::new(*mapping)),
            EventKind::Alias(name) => {
                if !anchors.contains(name.as_str()) {
                    let message = format!("found undeclared alias \"{name}\"");
                    found.push("anchors", message, start);
                }
                finished(&mut open);
            }
            EventKind::Scalar { text, .. } => {
                if let Some(last) = open.last_mut()
                    && last.is_mapping
                    && !last.is_value
                    && text != "<<"
                    && !last.keys.insert(text.clone())
                {
                    let message = format!("duplication of key \"{text}\" in mapping");
                    found.push("key-duplicates", message, start);
                }
                finished(&mut open);
            }
        }
    }
    found.found
}
