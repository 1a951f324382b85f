//! Layout of a channel's entries in a picture: one below the other, an upgrade above the entries that it upgrades, and
//! lanes for the edges to the side. The effort is linear in the number of edges for any graph.

use std::collections::{BTreeMap, BTreeSet};

use super::sources;
use crate::model::ChannelEntry;

/// Maximum number of lanes. If more edges overlap, they share lanes.
pub(super) const MOST_LANES: usize = 240;

/// Edges that end at one entry and are drawn as one line, with a branch to each source row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The row of the entry that upgrades.
    pub to: usize,
    /// The rows of the entries that it upgrades, without duplicates.
    pub from: BTreeSet<usize>,
    /// True if it skips them. Else it replaces the only one.
    pub skips: bool,
    /// True if OLM v0 never uses this edge.
    pub ignored: bool,
    /// The lane. None where the rows are neighbours.
    pub lane: Option<usize>,
}

/// The rows and lines of one channel.
#[derive(Debug, Default)]
pub(super) struct Rows<'c> {
    /// Names from the heads down, including those that are not in the channel.
    pub names: Vec<&'c str>,
    /// The edges.
    pub lines: Vec<Line>,
    /// Number of lanes for the lines.
    pub lanes: usize,
}

impl<'c> Rows<'c> {
    /// Computes the layout of a channel's entries. `is_ignored` decides, for the names at both ends, whether OLM v0
    /// ignores an edge.
    pub fn new(entries: &'c [ChannelEntry], is_ignored: impl Fn(&str, &str) -> bool) -> Self {
        let names = order(entries);
        let row: BTreeMap<&str, usize> = names.iter().enumerate().map(|(row, name)| (*name, row)).collect();
        let mut lines = Vec::new();
        for entry in entries {
            let Some(&to) = row.get(entry.name.as_str()) else {
                continue;
            };
            for (sources, skips) in [(std::slice::from_ref(&entry.replaces), false), (&entry.skips, true)] {
                for ignored in [false, true] {
                    let wanted = |name: &&String| is_ignored(name, &entry.name) == ignored;
                    let from: BTreeSet<usize> = sources
                        .iter()
                        .filter(wanted)
                        .filter_map(|name| row.get(name.as_str()).copied())
                        .collect();
                    if !from.is_empty() {
                        lines.push(Line {
                            to,
                            from,
                            skips,
                            ignored,
                            lane: None,
                        });
                    }
                }
            }
        }
        let lanes = assign_lanes(&mut lines);
        Rows { names, lines, lanes }
    }
}

/// An order in which an upgrade precedes the entries that it upgrades, if the graph has no cycles there. Otherwise
/// later entries of the file come first.
fn order(entries: &[ChannelEntry]) -> Vec<&str> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    let mut number = |name, names: &mut Vec<_>| {
        *numbers.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        })
    };
    // From the end of the file, where the newest usually are.
    let numbered: Vec<usize> = entries
        .iter()
        .rev()
        .map(|entry| number(entry.name.as_str(), &mut names))
        .collect();
    let mut below: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (entry, own) in entries.iter().rev().zip(numbered) {
        let sources: BTreeSet<usize> = sources(entry).map(|name| number(name, &mut names)).collect();
        below
            .entry(own)
            .or_default()
            .extend(sources.into_iter().filter(|source| *source != own));
    }
    let mut upgrades = vec![0usize; names.len()];
    for source in below.values().flatten() {
        if let Some(count) = upgrades.get_mut(*source) {
            *count += 1;
        }
    }
    let free = upgrades.iter().enumerate().filter(|(_, count)| **count == 0);
    let mut ready: BTreeSet<usize> = free.map(|(number, _)| number).collect();
    let mut waiting: BTreeSet<usize> = (0..names.len()).filter(|number| !ready.contains(number)).collect();
    let mut ordered = Vec::with_capacity(names.len());
    // If only cycles remain, one of them is entered at any entry.
    while let Some(next) = ready.pop_first().or_else(|| waiting.pop_first()) {
        ordered.push(names.get(next).copied().unwrap_or_default());
        for source in below.get(&next).into_iter().flatten() {
            if let Some(count) = upgrades.get_mut(*source) {
                *count = count.saturating_sub(1);
                if *count == 0 && waiting.remove(source) {
                    ready.insert(*source);
                }
            }
        }
    }
    ordered
}

/// Gives each line a lane that is free at all its heights, until the lanes are used up. Returns their number.
fn assign_lanes(lines: &mut [Line]) -> usize {
    let extent = |line: &Line| {
        let rows = || line.from.iter().copied().chain([line.to]);
        (rows().min().unwrap_or_default(), rows().max().unwrap_or_default())
    };
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // Short lines come first, and so nearest to the entries.
    order.sort_by_key(|at| lines.get(*at).map(|line| (extent(line).0, extent(line).1)));
    let mut ends: Vec<usize> = Vec::new();
    let mut shared = 0;
    for at in order {
        let Some(line) = lines.get_mut(at) else { continue };
        let (first, last) = extent(line);
        if !line.skips && last == first + 1 && line.to == first {
            continue;
        }
        let lane = match ends.iter().position(|end| *end < first) {
            Some(lane) => lane,
            None if ends.len() < MOST_LANES => {
                ends.push(0);
                ends.len() - 1
            }
            None => {
                shared += 1;
                shared % MOST_LANES
            }
        };
        if let Some(end) = ends.get_mut(lane) {
            *end = last.max(*end);
        }
        line.lane = Some(lane);
    }
    ends.len()
}
