//! Channels as SVG.

use std::fmt::Write as _;

use super::rows::{Line, Rows};
use super::{Deprecated, IGNORED, Marks, V0, deprecated, drawn, sources};
use crate::model::{Catalog, Channel, ChannelEntry};
use crate::selection::Selection;
use olmkit_base::limits;
use olmkit_base::object::UntrustedText;

/// Pixels from one row to the next.
const ROW: usize = 34;
/// Pixels of a box from top to bottom.
const HEIGHT: usize = 24;
/// Pixels from one lane to the next.
const LANE: usize = 10;
/// Pixels around everything.
const MARGIN: usize = 20;
/// Pixels of a character, about.
const CHARACTER: usize = 8;
/// Maximum length of names, and of notes after them, in characters. The full text is in a tooltip.
const LONGEST: usize = 50;
/// Meaning of the colors and lines.
const LEGEND: &str = "green: head; grey: skipped; orange: deprecated; dashed box: not in the channel; \
                      solid line: replaces; dashed line: skips; red line: ignored by OLM v0";

/// The selected channels as one SVG image, one below the other, each from its head down to the oldest bundle. It is at most
/// 4,000 pixels wide.
///
/// # Errors
/// The minimum edge is unknown, nothing is selected, or more edges than [`limits::PICTURE_EDGES`]. A text for the user.
pub fn svg(catalog: &Catalog, selection: &Selection) -> Result<String, String> {
    let (channels, v0) = drawn(catalog, selection)?;
    if channels.is_empty() {
        return Err(nothing(selection));
    }
    let edges: usize = channels
        .iter()
        .flat_map(|channel| channel.entries())
        .map(|entry| sources(entry).count() + 1)
        .sum();
    if edges > limits::PICTURE_EDGES.count() {
        return Err(format!(
            "the picture would have {edges} entries and edges, {}; or select a package or channel",
            limits::PICTURE_EDGES.exceeded()
        ));
    }
    let deprecated = deprecated(catalog);
    let mut body = String::new();
    let (mut width, mut top) = (LEGEND.len() * CHARACTER, MARGIN + ROW);
    for channel in &channels {
        let panel = Panel::new(&deprecated, channel, v0.as_ref(), top);
        width = width.max(panel.width());
        panel.draw(&mut body);
        top = panel.bottom() + ROW;
    }
    let (width, height) = (width + 2 * MARGIN, top + MARGIN);
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"monospace\" font-size=\"13\">\n<defs><marker id=\"arrow\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" \
         refY=\"4\" orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\"/></marker></defs>\n<rect width=\"{width}\" height=\"{height}\" \
         fill=\"white\"/>\n<text x=\"{MARGIN}\" y=\"{MARGIN}\" fill=\"gray\">{LEGEND}</text>\n{body}</svg>\n"
    ))
}

fn nothing(selection: &Selection) -> String {
    let name = |name: &str| UntrustedText::new(name).to_string();
    match (&selection.package, &selection.channel) {
        (None, None) => "the catalog has no channels; there is nothing to draw".to_owned(),
        (Some(package), None) => format!(
            "the catalog has no channel of package {}; `olmkit catalog list packages` shows what it has",
            name(package)
        ),
        (_, Some(channel)) => format!(
            "the catalog has no channel {} there; `olmkit catalog list channels` shows what it has",
            name(channel)
        ),
    }
}

/// One channel of the picture. Writing to its string cannot fail.
struct Panel<'c> {
    title: String,
    marks: Marks<'c>,
    entries: &'c [ChannelEntry],
    rows: Rows<'c>,
    /// Note after each name: its range.
    notes: Vec<&'c str>,
    /// Width of a box in pixels.
    box_width: usize,
    top: usize,
}

impl<'c> Panel<'c> {
    fn new(deprecated: &'c Deprecated<'c>, channel: &'c Channel, v0: Option<&V0<'_>>, top: usize) -> Self {
        let marks = Marks::new(deprecated, channel, v0);
        let rows = Rows::new(channel.entries(), |from, to| marks.is_ignored(from, to));
        let ranges: std::collections::BTreeMap<&str, &str> = channel
            .entries()
            .iter()
            .map(|entry| (entry.name.as_str(), entry.skip_range.as_str()))
            .collect();
        let note = |name: &&str| ranges.get(name).copied().unwrap_or("(not in the channel)");
        let notes: Vec<&str> = rows.names.iter().map(note).collect();
        Panel {
            title: format!("{} {}", channel.package, channel.name),
            box_width: box_width(&rows.names, &notes),
            notes,
            entries: channel.entries(),
            marks,
            rows,
            top,
        }
    }

    fn width(&self) -> usize {
        let title = self.title.chars().count().min(LONGEST) * CHARACTER;
        title.max(self.box_width + (self.rows.lanes + 2) * LANE)
    }

    fn bottom(&self) -> usize {
        self.y(self.rows.names.len())
    }

    /// The middle of a row.
    fn y(&self, row: usize) -> usize {
        self.top + (row + 1) * ROW
    }

    fn draw(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{}\" font-weight=\"bold\"{}>{}</text>",
            self.top + 5,
            match self.marks.channel() {
                "white" => String::new(),
                color => format!(" fill=\"{color}\""),
            },
            escaped(&cut(&self.title))
        );
        for line in &self.rows.lines {
            self.line(line, out);
        }
        for (row, (name, note)) in self.rows.names.iter().zip(&self.notes).enumerate() {
            let dashes = if self.marks.absent.contains(name) {
                " stroke-dasharray=\"4\""
            } else {
                ""
            };
            let (y, width) = (self.y(row), self.box_width);
            let _ = writeln!(
                out,
                "<g><title>{}</title><rect x=\"{MARGIN}\" y=\"{}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"4\" fill=\"{}\" \
                 stroke=\"black\"{dashes}/><text x=\"{}\" y=\"{}\"><tspan>{}</tspan><tspan dx=\"{}\" \
                 fill=\"dimgray\">{}</tspan></text></g>",
                escaped(&format!("{name} {note}")),
                y - HEIGHT / 2,
                self.marks.entry(name),
                MARGIN + CHARACTER,
                y + 5,
                escaped(&cut(name)),
                2 * CHARACTER,
                escaped(&cut(note))
            );
        }
        if self.entries.is_empty() {
            let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{}\">(no entries)</text>", self.y(0));
        }
    }

    fn line(&self, line: &Line, out: &mut String) {
        let Some(lane) = line.lane else {
            let x = MARGIN + 2 * CHARACTER;
            let (from, to) = (self.y(line.to + 1) - HEIGHT / 2, self.y(line.to) + HEIGHT / 2);
            let stroke = if line.ignored { IGNORED } else { "black" };
            let _ = writeln!(
                out,
                "<path d=\"M{x},{from} V{to}\" stroke=\"{stroke}\" fill=\"none\" marker-end=\"url(#arrow)\"/>"
            );
            return;
        };
        let edge = MARGIN + self.box_width;
        let x = edge + (lane + 1) * LANE + LANE / 2;
        // From the farthest row to the entry, with a branch to each other row.
        let target = self.y(line.to);
        let farthest = line.from.iter().copied().max_by_key(|row| row.abs_diff(line.to));
        let start = self.y(farthest.unwrap_or(line.to));
        let mut path = format!("M{edge},{start} H{x} V{target} H{edge}");
        for row in line.from.iter().filter(|row| Some(**row) != farthest) {
            let _ = write!(path, " M{edge},{y} H{x}", y = self.y(*row));
        }
        // The arrow belongs to the end of the first part.
        let (main, branches) = path
            .split_once(" M")
            .map_or((path.as_str(), ""), |(main, rest)| (main, rest));
        let style = match (line.skips, line.ignored) {
            (true, true) => format!("stroke=\"{IGNORED}\" stroke-dasharray=\"4 2\""),
            (true, false) => "stroke=\"gray\" stroke-dasharray=\"4 2\"".to_owned(),
            (false, true) => format!("stroke=\"{IGNORED}\""),
            (false, false) => "stroke=\"black\"".to_owned(),
        };
        let _ = writeln!(
            out,
            "<path d=\"{main}\" {style} fill=\"none\" marker-end=\"url(#arrow)\"/>"
        );
        if !branches.is_empty() {
            let _ = writeln!(out, "<path d=\"M{branches}\" {style} fill=\"none\"/>");
        }
    }
}

/// Width in pixels of a box that fits each of the names with its note.
fn box_width(names: &[&str], notes: &[&str]) -> usize {
    let length = |text: &str| text.chars().take(LONGEST).count();
    let longest = names
        .iter()
        .zip(notes)
        .map(|(name, note)| length(name) + length(note))
        .max();
    (longest.unwrap_or_default() + 4) * CHARACTER
}

/// A label that fits its box.
fn cut(label: &str) -> String {
    if label.chars().count() <= LONGEST {
        return label.to_owned();
    }
    label.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// Content of an element. Characters that XML does not allow are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in UntrustedText::new(text).to_string().chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
