//! Channels as Graphviz text.

use std::fmt::Write as _;

use olmkit_go::strconv::quote;

use super::{Marks, Selection, channels};
use crate::catalog::model::{Catalog, Channel};

/// Graphviz text of the selected channels of a catalog.
pub fn dot(catalog: &Catalog, selection: Selection<'_>) -> String {
    let mut out = String::from("digraph catalog {\n  rankdir=TB;\n  node [shape=box];\n");
    for channel in channels(catalog, selection) {
        draw(catalog, channel, &mut out);
    }
    out.push_str("}\n");
    out
}

// Writing to a String cannot fail.
fn draw(catalog: &Catalog, channel: &Channel, out: &mut String) {
    let id = |name: &str| quote(&format!("{}/{}/{name}", channel.package, channel.name));
    let marks = Marks::of(catalog, channel);
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
    }
    for name in &marks.absent {
        let label = quote(&format!("{name}\n(not in the channel)"));
        let _ = writeln!(out, "  {} [label={label}, style=dashed];", id(name));
    }
    for entry in channel.entries() {
        let mut edge = |from: &str, label: &str| {
            let _ = writeln!(out, "  {} -> {} [label={}];", id(from), id(&entry.name), quote(label));
        };
        for skip in &entry.skips {
            edge(skip, "skips");
        }
        if !entry.replaces.is_empty() {
            edge(&entry.replaces, "replaces");
        }
    }
    for head in &marks.heads {
        let _ = writeln!(out, "  {} -> {} [label=\"head\"];", id(head), id(""));
    }
}
