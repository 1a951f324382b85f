//! What commands write into the sources of a project, and look for when they take it out again.

pub(crate) mod api;
pub(crate) mod webhook;

/// The width of lines in projects.
const WIDTH: usize = 120;

/// The two sides of an assignment, on one line if they fit there. Where a break does not help, rustfmt makes none.
fn broken(indent: usize, first: &str, second: &str) -> String {
    let one = indent + first.len() + 1 + second.len();
    match one > WIDTH && indent + 4 + second.len() <= WIDTH {
        true => format!("{first}\n{:1$}{second}", "", indent + 4),
        false => format!("{first} {second}"),
    }
}
