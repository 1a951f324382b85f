//! The comments of a YAML document, so that a change can verify that it lost none.

use std::collections::HashMap;

use super::scalars::each_scalar;
use olmkit_yaml::{Node, Style};

/// All comments in order: the text after a `#` at the start of a line or after a space, outside scalars.
pub fn comments<'t>(text: &'t str, documents: &[Node]) -> Vec<(usize, &'t str)> {
    let mut scalars: Vec<&Node> = Vec::new();
    for node in documents {
        each_scalar(node, &mut |scalar| scalars.push(scalar));
    }
    // For each line the columns that belong to scalars.
    let mut covered: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
    for scalar in scalars {
        let (from, to) = (scalar.start.line as usize, scalar.end.line as usize);
        let is_block = matches!(scalar.style, Style::Literal | Style::Folded);
        for line in from..=to {
            let is_first = line == from;
            let start = if is_first { scalar.start.column as usize - 1 } else { 0 };
            let end = match (is_block, line == to) {
                // Behind `|` there may be a comment.
                (true, _) if is_first => start + 1,
                (false, false) => usize::MAX,
                (true, false) => usize::MAX,
                (_, true) => scalar.end.column as usize - 1,
            };
            covered.entry(line).or_default().push((start, end));
        }
    }
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let spans = covered.get(&(at + 1)).map(Vec::as_slice).unwrap_or_default();
        let mut before = ' ';
        for (column, (offset, c)) in line.char_indices().enumerate() {
            let in_scalar = spans.iter().any(|(from, to)| (*from..*to).contains(&column));
            if c == '#' && before.is_whitespace() && !in_scalar {
                found.push((at + 1, line.get(offset..).unwrap_or_default().trim_end()));
                break;
            }
            before = c;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_not_texts() {
        let text = "# head\na: 'x # no' # one\nb: | # two\n  # no\n  no # no\n# three\nc:\n- d#no # four\n- \"e\n  # no\" # five\n#";
        let node = olmkit_yaml::parse(text.as_bytes()).unwrap();
        assert_eq!(
            comments(text, &[node])
                .into_iter()
                .map(|(_, comment)| comment)
                .collect::<Vec<_>>(),
            ["# head", "# one", "# two", "# three", "# four", "# five", "#"]
        );
    }
}
