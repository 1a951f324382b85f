//! Code that commands add to the sources of a project, and search for when they remove it.

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

/// The widest arguments of a call that rustfmt leaves on one line.
const CALL: usize = WIDTH * 60 / 100;

/// The head of a function up to its brace.
fn function(indent: usize, name: &str, arguments: &[&str], result: &str) -> String {
    let line = format!("{:indent$}{name}({}) -> {result} {{", "", arguments.join(", "));
    if line.len() <= WIDTH {
        return line;
    }
    let each: String = arguments
        .iter()
        .map(|argument| format!("{:indent$}    {argument},\n", ""))
        .collect();
    format!("{:indent$}{name}(\n{each}{:indent$}) -> {result} {{", "", "")
}

/// The body of a function that is a chain of calls. Two calls are too wide for rustfmt to leave them on one line.
fn chain(name: &str, arguments: &[&str], calls: &[&str]) -> String {
    let joined = arguments.join(", ");
    let short = joined.len() <= CALL;
    let first = match short {
        true => format!("    {name}({joined})"),
        false => format!("    {name}(\n        {},\n    )", arguments.join(",\n        ")),
    };
    if short && let [call] = calls {
        let line = format!("{first}{call}");
        if line.len() <= WIDTH {
            return line;
        }
    }
    let indent = if short { "        " } else { "    " };
    let calls: String = calls.iter().map(|call| format!("\n{indent}{call}")).collect();
    format!("{first}{calls}")
}
