//! Comments as Go's parser groups them, and as controller-tools reads their text.

/// A comment with its place.
#[derive(Debug, Clone)]
pub(super) struct Comment {
    /// The text with its slashes.
    pub text: String,
    /// Offset of the first byte.
    pub start: usize,
    /// Lines, counted from 0.
    pub first_line: usize,
    pub last_line: usize,
    /// True if code precedes it on its line.
    pub after_code: bool,
}

impl Comment {
    /// The marker in a comment of one line: the text after the slashes, if it starts with a plus sign.
    pub fn marker(&self) -> Option<&str> {
        let text = self.text.strip_prefix("//")?.trim();
        text.starts_with('+').then_some(text)
    }
}

/// Comments without an empty line or code between them.
#[derive(Debug, Clone, Default)]
pub(super) struct Group(pub Vec<Comment>);

impl Group {
    pub fn start(&self) -> usize {
        self.0.first().map_or(0, |comment| comment.start)
    }

    pub fn first_line(&self) -> usize {
        self.0.first().map_or(0, |comment| comment.first_line)
    }

    pub fn last_line(&self) -> usize {
        self.0.last().map_or(0, |comment| comment.last_line)
    }

    /// Returns true if it follows code on the same line.
    pub fn is_after_code(&self) -> bool {
        self.0.first().is_some_and(|comment| comment.after_code)
    }

    pub fn markers(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0
            .iter()
            .filter_map(|comment| Some((comment.first_line, comment.marker()?)))
    }

    /// The documentation: without markers, directives, lines that start with `TODO` and everything after `---`.
    pub fn documentation(&self) -> String {
        let comments: Vec<&Comment> = self.0.iter().filter(|comment| comment.marker().is_none()).collect();
        let is_block = comments.iter().any(|comment| comment.text.starts_with("/*"));
        let text = text(&comments);
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let mut kept = Vec::new();
        let mut in_code = false;
        for line in lines {
            let line = if is_block { line.trim() } else { line };
            if line.starts_with("```") || line.starts_with("~~~") {
                in_code = !in_code;
            }
            if !in_code {
                if line.starts_with("TODO") {
                    continue;
                }
                if line.starts_with("---") {
                    break;
                }
            }
            kept.push(line);
        }
        kept.join("\n")
    }
}

/// Groups comments as Go's parser does: a comment behind code is a group with others on its line only.
pub(super) fn group(comments: Vec<Comment>, code_between: impl Fn(usize, usize) -> bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for comment in comments {
        let joins = groups.last().is_some_and(|group| {
            let gap = usize::from(!group.is_after_code());
            let end = group.0.last().map_or(0, |last| last.start + last.text.len());
            comment.first_line <= group.last_line() + gap && !comment.after_code && !code_between(end, comment.start)
        });
        match groups.last_mut().filter(|_| joins) {
            Some(group) => group.0.push(comment),
            None => groups.push(Group(vec![comment])),
        }
    }
    groups
}

/// `ast.CommentGroup.Text`.
fn text(comments: &[&Comment]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for comment in comments {
        let body = if let Some(line) = comment.text.strip_prefix("//") {
            match line.strip_prefix(' ') {
                Some(rest) => rest,
                None if is_directive(line) => continue,
                None => line,
            }
        } else {
            let inner = comment.text.strip_prefix("/*").unwrap_or(&comment.text);
            inner.strip_suffix("*/").unwrap_or(inner)
        };
        lines.extend(body.split('\n').map(|line| line.trim_end_matches([' ', '\t', '\r'])));
    }
    let mut kept: Vec<&str> = Vec::new();
    for line in lines {
        if !line.is_empty() || kept.last().is_some_and(|last| !last.is_empty()) {
            kept.push(line);
        }
    }
    if kept.last().is_some_and(|last| !last.is_empty()) {
        kept.push("");
    }
    kept.join("\n")
}

/// `//go:generate`, `//line …` and others of the kind.
fn is_directive(text: &str) -> bool {
    if ["line ", "extern ", "export "]
        .iter()
        .any(|word| text.starts_with(word))
    {
        return true;
    }
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let Some((tool, rest)) = text.split_once(':') else {
        return false;
    };
    !tool.is_empty() && tool.bytes().all(small) && rest.bytes().next().is_some_and(small)
}
