//! Channels as a picture: Graphviz text, or SVG laid out here.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::graph;
use super::model::{BUNDLE, CHANNEL, Catalog, PACKAGE};
use crate::object::quoted;

/// Colour of what is deprecated.
const DEPRECATED: &str = "orange";

/// Graphviz text of the channels of a catalog, or of one package.
pub fn dot(catalog: &Catalog, package: Option<&str>) -> String {
    let mut out = String::from("digraph catalog {\n  rankdir=TB;\n  node [shape=box];\n");
    let mut channels: Vec<_> = catalog
        .channels
        .iter()
        .filter(|channel| package.is_none_or(|package| channel.package == package))
        .collect();
    channels.sort_by(|left, right| (&left.package, &left.name).cmp(&(&right.package, &right.name)));
    for channel in channels {
        let id = |name: &str| quoted(&format!("{}/{}/{name}", channel.package, channel.name));
        let heads = graph::heads(channel.entries());
        let skipped: BTreeSet<&str> = channel
            .entries()
            .iter()
            .flat_map(|entry| &entry.skips)
            .map(String::as_str)
            .collect();
        let deprecated: BTreeSet<(&str, &str)> = catalog
            .deprecations
            .iter()
            .filter(|deprecation| deprecation.package == channel.package)
            .flat_map(|deprecation| deprecation.entries.iter().flatten())
            .map(|entry| (entry.schema.as_str(), entry.name.as_str()))
            .collect();
        let gone = deprecated.contains(&(PACKAGE, "")) || deprecated.contains(&(CHANNEL, channel.name.as_str()));
        let fill = if gone { DEPRECATED } else { "white" };
        // Writing to a String cannot fail.
        let label = quoted(&format!("{} {}", channel.package, channel.name));
        let _ = writeln!(
            out,
            "  {} [shape=ellipse, label={label}, style=filled, fillcolor={}];",
            id(""),
            quoted(fill)
        );
        for entry in channel.entries() {
            let name = entry.name.as_str();
            let color = if deprecated.contains(&(BUNDLE, name)) {
                DEPRECATED
            } else if heads.contains(&name) {
                "lightgreen"
            } else if skipped.contains(name) {
                "lightgray"
            } else {
                "white"
            };
            let _ = writeln!(
                out,
                "  {} [label={}, style=filled, fillcolor={}];",
                id(name),
                // A range leads here from more than can be drawn.
                match entry.skip_range.as_str() {
                    "" => quoted(name),
                    range => quoted(&format!("{name}\n{range}")),
                },
                quoted(color)
            );
        }
        let known: BTreeSet<&str> = channel.entries().iter().map(|entry| entry.name.as_str()).collect();
        let sources = channel
            .entries()
            .iter()
            .flat_map(|entry| entry.skips.iter().chain([&entry.replaces]));
        let absent: BTreeSet<&str> = sources
            .map(String::as_str)
            .filter(|name| !name.is_empty() && !known.contains(name))
            .collect();
        for name in absent {
            let label = quoted(&format!("{name}\n(not in the channel)"));
            let _ = writeln!(out, "  {} [label={label}, style=dashed];", id(name));
        }
        for entry in channel.entries() {
            let mut edge = |from: &str, label: &str| {
                let _ = writeln!(out, "  {} -> {} [label={}];", id(from), id(&entry.name), quoted(label));
            };
            for skip in &entry.skips {
                edge(skip, "skips");
            }
            if !entry.replaces.is_empty() {
                edge(&entry.replaces, "replaces");
            }
        }
        for head in heads {
            let _ = writeln!(out, "  {} -> {} [label=\"head\"];", id(head), id(""));
        }
    }
    out.push_str("}\n");
    out
}

/// The same as SVG, laid out from the oldest bundle down to the head.
///
/// # Errors
/// The layout cannot read the graph; a text for the user.
pub fn svg(catalog: &Catalog, package: Option<&str>) -> Result<String, String> {
    let mut parser = layout::gv::DotParser::new(&dot(catalog, package));
    let graph = parser.process()?;
    let mut builder = layout::gv::GraphBuilder::new();
    builder.visit_graph(&graph);
    let mut graph = builder.get();
    let mut writer = layout::backends::svg::SVGWriter::new();
    graph.do_it(false, false, false, &mut writer);
    Ok(writer.finalize())
}
