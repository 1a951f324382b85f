//! Channels as Graphviz text.

use std::fmt::Write as _;

use olmkit_go::strconv::quote;

use super::{Deprecated, IGNORED, Marks, V0, deprecated, drawn};
use crate::model::{Catalog, Channel};
use crate::selection::{Selection, too_large};
use olmkit_base::limits;

/// The selected channels of a catalog in Graphviz format.
///
/// # Errors
/// The minimum edge is unknown, or the text is larger than [`limits::GRAPH_TEXT`]. A text for the user.
pub fn dot(catalog: &Catalog, selection: &Selection) -> Result<String, String> {
    let (channels, v0) = drawn(catalog, selection)?;
    let mut out = String::from("digraph catalog {\n  rankdir=TB;\n  node [shape=box];\n");
    let deprecated = deprecated(catalog);
    for channel in &channels {
        draw(&deprecated, channel, v0.as_ref(), &mut out)?;
    }
    out.push_str("}\n");
    Ok(out)
}

// Writing to a String cannot fail.
fn draw(deprecated: &Deprecated<'_>, channel: &Channel, v0: Option<&V0<'_>>, out: &mut String) -> Result<(), String> {
    let id = |name: &str| quote(&format!("{}/{}/{name}", channel.package, channel.name));
    let marks = Marks::new(deprecated, channel, v0);
    let label = quote(&format!("{} {}", channel.package, channel.name));
    let _ = writeln!(
        out,
        "  {} [shape=ellipse, label={label}, style=filled, fillcolor={}];",
        id(""),
        quote(marks.channel())
    );
    for entry in channel.entries() {
        let name = entry.name.as_str();
        let _ = writeln!(
            out,
            "  {} [label={}, style=filled, fillcolor={}];",
            id(name),
            // A range leads here from more than can be drawn.
            match entry.skip_range.as_str() {
                "" => quote(name),
                range => quote(&format!("{name}\n{range}")),
            },
            quote(marks.entry(name))
        );
        check(out)?;
    }
    for name in &marks.absent {
        let label = quote(&format!("{name}\n(not in the channel)"));
        let _ = writeln!(out, "  {} [label={label}, style=dashed];", id(name));
        check(out)?;
    }
    for entry in channel.entries() {
        let mut edge = |from: &str, label: &str| {
            let ignored = match marks.is_ignored(from, &entry.name) {
                true => format!(", style=dashed, color={IGNORED}"),
                false => String::new(),
            };
            let _ = writeln!(
                out,
                "  {} -> {} [label={}{ignored}];",
                id(from),
                id(&entry.name),
                quote(label)
            );
            check(out)
        };
        for skip in &entry.skips {
            edge(skip, "skips")?;
        }
        if !entry.replaces.is_empty() {
            edge(&entry.replaces, "replaces")?;
        }
    }
    for head in &marks.heads {
        let _ = writeln!(out, "  {} -> {} [label=\"head\"];", id(head), id(""));
        check(out)?;
    }
    Ok(())
}

/// Each line repeats the names of package and channel, which may be long.
fn check(text: &str) -> Result<(), String> {
    if text.len() > limits::GRAPH_TEXT.count() {
        return Err(too_large());
    }
    Ok(())
}
