//! opm's tree of messages.

use std::fmt;

use olmkit_base::limits;

/// A message with messages below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    message: String,
    below: Vec<Tree>,
}

impl Tree {
    /// A single message.
    pub fn leaf(message: impl Into<String>) -> Self {
        Tree {
            message: limits::message(message),
            below: Vec::new(),
        }
    }

    /// A parent message, or `None` without children.
    pub fn over(message: impl Into<String>, mut below: Vec<Tree>) -> Option<Self> {
        if below.is_empty() {
            return None;
        }
        below.sort();
        Some(Tree {
            message: format!("{}:", limits::message(message)),
            below,
        })
    }

    fn write(&self, formatter: &mut fmt::Formatter<'_>, prefix: &str) -> fmt::Result {
        formatter.write_str(&self.message)?;
        for (index, below) in self.below.iter().enumerate() {
            let last = index + 1 == self.below.len();
            let (branch, bar) = if last {
                ("└── ", "    ")
            } else {
                ("├── ", "│   ")
            };
            write!(formatter, "\n{prefix}{branch}")?;
            below.write(formatter, &format!("{prefix}{bar}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_drawn_as_opm_draws_them() {
        let channel = Tree::over(
            "invalid channel \"c\"",
            vec![Tree::leaf("no channel head found in graph")],
        )
        .unwrap();
        let package = Tree::over("invalid package \"p\"", vec![Tree::leaf("z"), channel]).unwrap();
        assert_eq!(
            package.to_string(),
            "invalid package \"p\":\n├── invalid channel \"c\":\n│   └── no channel head found in graph\n└── z"
        );
    }
}
