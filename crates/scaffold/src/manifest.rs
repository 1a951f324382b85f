//! Cargo.toml: read, and edited in place.

use crate::{Error, Tree};

/// The file.
pub(crate) const FILE: &str = "Cargo.toml";

/// Its values.
pub(crate) fn parse(text: &str) -> Result<toml::Table, Error> {
    text.parse().map_err(|error| Error::Usage(format!("{FILE}: {error}")))
}

/// Adds a line for a dependency at the beginning of a table, unless the table has one of that name. `missing` makes the text where there is
/// no such table.
pub(crate) fn depend(
    tree: &mut Tree,
    table: &str,
    (name, line): (&str, &str),
    missing: impl FnOnce(&str) -> Option<String>,
) -> Result<(), Error> {
    let mut text = tree.text(FILE)?;
    let manifest = parse(&text)?;
    let known = manifest.get(table);
    if known.is_some_and(|known| known.get(name).is_some()) {
        return Ok(());
    }
    let heading = format!("\n[{table}]\n");
    if let Some(at) = text.find(&heading) {
        text.insert_str(at + heading.len(), line);
    } else {
        let made = if known.is_none() { missing(&text) } else { None };
        text =
            made.ok_or_else(|| Error::Usage(format!("{FILE}: found no [{table}]; add there: {}", line.trim_end())))?;
    }
    tree.write(FILE, text);
    Ok(())
}
