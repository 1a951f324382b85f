//! `catalog add` and `catalog deprecate`: changes a catalog's source in place. Unrelated lines keep their comments and
//! their order.

use std::borrow::Cow;

use olmkit_base::object::{Document, shell_word};
use olmkit_go::strconv::quote;
use olmkit_yaml::{self as yaml, Node};

use super::model::{Bundle, ChannelEntry};
use super::text::stream;

/// Why a catalog cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The target does not exist, or already has the requested state.
    #[error("{0}")]
    Refused(String),
    /// The input is not a catalog.
    #[error("{message} (line {line})")]
    Text {
        /// The error.
        message: String,
        /// Line, counted from 1.
        line: usize,
    },
    /// The file is JSON or a form of YAML that cannot be extended without rewriting it.
    #[error("{0}: only block-style YAML can be changed in place; see `catalog render -o yaml`")]
    Form(String),
}

/// The edges of a new entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edges {
    /// The replaced entry. If not given, the version decides.
    pub replaces: Option<String>,
    /// Entries it skips.
    pub skips: Vec<String>,
    /// Version range it skips.
    pub skip_range: String,
}

/// A change to the entry of the next higher version, which makes the new entry reachable or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Above {
    /// This entry now replaces the new one.
    Replaces(String),
    /// This entry now skips the new one.
    Skips(String),
}

/// The position of a new bundle in one channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// The upgrade edges of the new entry.
    pub edges: Edges,
    /// The change to another entry, if the new bundle does not become the head.
    pub above: Option<Above>,
    /// The newest entry above which the new bundle becomes the head although its version is lower.
    pub lowers: Option<String>,
}

/// A document of the source.
struct Part {
    node: Node,
    /// First line in the text, counted from 0.
    start: usize,
}

fn parts(text: &str) -> Result<Vec<Part>, Error> {
    if stream::is_json(text) {
        return Err(Error::Form("the catalog is JSON".into()));
    }
    let (documents, error) = stream::documents(text);
    if let Some(error) = error {
        return Err(Error::Text {
            message: error.message,
            line: error.line,
        });
    }
    documents
        .iter()
        .map(|document| {
            let fail = |message: String| Error::Text {
                message,
                line: document.line,
            };
            let own = stream::at_line(text, document.line).ok_or_else(|| fail("cannot be found again".into()))?;
            let node = yaml::parse(own.as_bytes()).map_err(|error| fail(error.to_string()))?;
            Ok(Part {
                node,
                start: document.line.saturating_sub(1),
            })
        })
        .collect()
}

fn is(part: &Part, entries: &[(&str, &str)]) -> bool {
    entries
        .iter()
        .all(|(key, value)| part.node.get(key).and_then(Node::as_str) == Some(*value))
}

/// Adds a bundle at the position from [`placement::place`](super::placement::place): an entry at the end of the
/// channel, and its blob, given as YAML, at the end of the file. A channel that does not exist is created.
///
/// # Errors
/// The catalog lacks the package, or the file cannot be changed in place.
pub fn add(text: &str, bundle: &Bundle, blob: &str, channel: &str, placement: &Placement) -> Result<String, Error> {
    let package = bundle.package.as_str();
    let all = parts(text)?;
    if !all
        .iter()
        .any(|part| is(part, &[("schema", "olm.package"), ("name", package)]))
    {
        return Err(Error::Refused(format!(
            "the catalog has no package {package}: start with `catalog init {}`",
            shell_word(package)
        )));
    }
    let is_channel = |part: &&Part| {
        is(
            part,
            &[("schema", "olm.channel"), ("package", package), ("name", channel)],
        )
    };
    let found = all.iter().find(is_channel);
    let text = match (found, &placement.above) {
        (Some(part), Some(above)) => Cow::Owned(change_entry(text, part, above, &bundle.name)?),
        _ => Cow::Borrowed(text),
    };
    let all = parts(&text)?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let entry = ChannelEntry {
        name: bundle.name.clone(),
        replaces: placement.edges.replaces.clone().unwrap_or_default(),
        skips: placement.edges.skips.clone(),
        skip_range: placement.edges.skip_range.clone(),
    };
    match all.iter().find(is_channel) {
        Some(part) => {
            let list = part
                .node
                .get("entries")
                .ok_or_else(|| Error::Refused(format!("channel {channel} has no entries")))?;
            let (at, indent) = list_end(part, list, &lines)?;
            let text: Vec<String> = entry_lines(&entry)
                .into_iter()
                .map(|line| format!("{indent}{line}"))
                .collect();
            lines.splice(at..at, text);
        }
        None => {
            let mut text = vec!["---".to_owned(), "entries:".to_owned()];
            text.extend(entry_lines(&entry));
            text.extend([
                format!("name: {}", scalar(channel)),
                format!("package: {}", scalar(package)),
                "schema: olm.channel".into(),
            ]);
            lines.extend(text);
        }
    }
    Ok(lines.join("\n") + "\n" + blob)
}

/// Changes the entry above a new one in the source of its channel.
fn change_entry(text: &str, channel: &Part, above: &Above, new: &str) -> Result<String, Error> {
    let (Above::Replaces(name) | Above::Skips(name)) = above;
    let failed = || Error::Form(format!("the entry {name} at line {}", channel.start + 1));
    let entries = channel.node.get("entries").map(Node::items).unwrap_or_default();
    let is_named = |item: &Node| item.get("name").and_then(Node::as_str) == Some(name);
    let index = entries.iter().position(is_named).ok_or_else(failed)?;
    let start: usize = text.split_inclusive('\n').take(channel.start).map(str::len).sum();
    let (head, rest) = text.split_at_checked(start).ok_or_else(failed)?;
    let own = stream::at_line(text, channel.start + 1).ok_or_else(failed)?;
    let tail = rest.strip_prefix(&*own).ok_or_else(failed)?;
    let mut document = Document::read(own.as_bytes()).ok_or_else(failed)?;
    let entry = format!("/entries/{index}");
    let changed = match above {
        Above::Replaces(_) if entries.get(index).is_some_and(|entry| entry.get("replaces").is_some()) => {
            document.replace(&format!("{entry}/replaces"), new)
        }
        Above::Replaces(_) => document.add(&entry, "replaces", &new.into()),
        Above::Skips(_) => document.append(&entry, "skips", &[new.into()]),
    };
    changed.ok_or_else(failed)?;
    Ok(format!("{head}{}{tail}", document.text()))
}

/// The line after the last item of a list, and the indentation of its items.
fn list_end(part: &Part, list: &Node, lines: &[String]) -> Result<(usize, String), Error> {
    let item = list
        .items()
        .last()
        .ok_or_else(|| Error::Form("the list is empty".into()))?;
    let first = part.start + item.start.line as usize - 1;
    let line = lines.get(first).map(String::as_str).unwrap_or_default();
    let indent: String = line.chars().take_while(|character| *character == ' ').collect();
    if !line.trim_start().starts_with('-') {
        return Err(Error::Form(format!(
            "the list at line {} is not in block style",
            first + 1
        )));
    }
    // The item continues while lines are indented deeper than its dash. Comments and empty lines after it are not part
    // of it.
    let mut end = first + 1;
    for (offset, line) in lines.iter().enumerate().skip(first + 1) {
        let depth = line.len() - line.trim_start().len();
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if depth <= indent.len() {
            break;
        }
        end = offset + 1;
    }
    Ok((end, indent))
}

fn entry_lines(entry: &ChannelEntry) -> Vec<String> {
    let mut lines = vec![format!("- name: {}", scalar(&entry.name))];
    if !entry.replaces.is_empty() {
        lines.push(format!("  replaces: {}", scalar(&entry.replaces)));
    }
    if !entry.skip_range.is_empty() {
        lines.push(format!("  skipRange: {}", scalar(&entry.skip_range)));
    }
    if !entry.skips.is_empty() {
        lines.push("  skips:".into());
        lines.extend(entry.skips.iter().map(|skip| format!("  - {}", scalar(skip))));
    }
    lines
}

/// A string as a YAML scalar on one line.
fn scalar(text: &str) -> String {
    match yaml::to_string(text) {
        Ok(written) if !written.trim_end().contains('\n') => written.trim_end().to_owned(),
        _ => quote(text),
    }
}

/// Deprecates a package, channel or bundle: adds to the package's deprecations, or begins them.
///
/// # Errors
/// It is deprecated already, or is not in the catalog.
pub fn deprecate(text: &str, package: &str, schema: &str, name: &str, message: &str) -> Result<String, Error> {
    let parts = parts(text)?;
    let exists = if schema == "olm.package" {
        parts
            .iter()
            .any(|part| is(part, &[("schema", schema), ("name", package)]))
    } else {
        parts
            .iter()
            .any(|part| is(part, &[("schema", schema), ("package", package), ("name", name)]))
    };
    let what = if name.is_empty() { package } else { name };
    if !exists {
        return Err(Error::Refused(format!("the catalog has no {schema} {what}")));
    }
    let mut item = vec![format!("- message: {}", scalar(message)), "  reference:".into()];
    if !name.is_empty() {
        item.push(format!("    name: {}", scalar(name)));
    }
    item.push(format!("    schema: {schema}"));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    match parts
        .iter()
        .find(|part| is(part, &[("schema", "olm.deprecations"), ("package", package)]))
    {
        Some(part) => {
            let list = part
                .node
                .get("entries")
                .ok_or_else(|| Error::Form("the deprecations have no entries".into()))?;
            let known = list.items().iter().any(|item| {
                let reference = |key| {
                    item.pointer(&format!("/reference/{key}"))
                        .and_then(Node::as_str)
                        .unwrap_or_default()
                };
                reference("schema") == schema && reference("name") == name
            });
            if known {
                return Err(Error::Refused(format!("{what} is already deprecated")));
            }
            let (at, indent) = list_end(part, list, &lines)?;
            lines.splice(at..at, item.into_iter().map(|line| format!("{indent}{line}")));
        }
        None => {
            lines.extend(["---".to_owned(), "entries:".to_owned()]);
            lines.extend(item);
            lines.extend([
                format!("package: {}", scalar(package)),
                "schema: olm.deprecations".into(),
            ]);
        }
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\n# the only channel\nschema: olm.channel\n\
        name: c\npackage: p\nentries:\n  # the first\n  - name: p.v1 # ours\n  # behind\npropertiesx: 1\n";

    fn bundle() -> Bundle {
        Bundle {
            name: "p.v2".into(),
            package: "p".into(),
            ..Bundle::default()
        }
    }

    #[test]
    fn additions_leave_everything_else_as_it_is() {
        let placement = Placement {
            edges: Edges {
                replaces: Some("p.v1".into()),
                ..Edges::default()
            },
            ..Placement::default()
        };
        let text = add(CATALOG, &bundle(), "---\nschema: olm.bundle\n", "c", &placement).unwrap();
        let expected =
            CATALOG.replace("# ours\n", "# ours\n  - name: p.v2\n    replaces: p.v1\n") + "---\nschema: olm.bundle\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_suggested_command_quotes_the_package() {
        let bundle = Bundle {
            package: "$(id)".into(),
            ..bundle()
        };
        let error = add(CATALOG, &bundle, "", "c", &Placement::default()).unwrap_err();
        assert!(
            error.to_string().ends_with("start with `catalog init '$(id)'`"),
            "{error}"
        );
    }

    #[test]
    fn the_entry_above_is_changed_in_every_layout() {
        let text = |entries: &str| {
            format!(
                "schema: olm.package\nname: p\n---\n# channel\nschema: olm.channel\npackage: p\nname: c\nentries:\n{entries}"
            )
        };
        let changed = |entries: &str, above: Above| {
            let placement = Placement {
                above: Some(above),
                ..Placement::default()
            };
            let text = add(&text(entries), &bundle(), "---\nschema: olm.bundle\n", "c", &placement).unwrap();
            text.split_once("entries:\n").unwrap().1.to_owned()
        };
        let replaces = || Above::Replaces("p.v3".into());
        let end = "- name: p.v2\n---\nschema: olm.bundle\n";
        for (before, after) in [
            (
                "- name: p.v3 # new\n  replaces: p.v1 # old\n",
                "- name: p.v3 # new\n  replaces: p.v2 # old\n",
            ),
            (
                "- name: p.v3\n  replaces: 'p.v1'\n",
                "- name: p.v3\n  replaces: 'p.v2'\n",
            ),
            ("- {name: p.v3, replaces: p.v1}\n", "- {name: p.v3, replaces: p.v2}\n"),
            ("- name: p.v3\n", "- name: p.v3\n  replaces: p.v2\n"),
        ] {
            assert_eq!(changed(before, replaces()), format!("{after}{end}"));
        }
        for (before, after) in [
            (
                "- name: p.v3\n  skips:\n  - p.v1\n",
                "- name: p.v3\n  skips:\n  - p.v1\n  - p.v2\n",
            ),
            ("- name: p.v3\n", "- name: p.v3\n  skips:\n  - p.v2\n"),
        ] {
            assert_eq!(changed(before, Above::Skips("p.v3".into())), format!("{after}{end}"));
        }
    }

    #[test]
    fn deprecations_are_begun_and_continued() {
        let once = deprecate(CATALOG, "p", "olm.channel", "c", "use d: it is better").unwrap();
        assert!(once.ends_with(
            "---\nentries:\n- message: 'use d: it is better'\n  reference:\n    name: c\n    schema: olm.channel\n\
             package: p\nschema: olm.deprecations\n"
        ));
        let twice = deprecate(&once, "p", "olm.package", "", "gone").unwrap();
        assert!(
            twice.contains(
                "    schema: olm.channel\n- message: gone\n  reference:\n    schema: olm.package\npackage: p\n"
            )
        );
        assert!(deprecate(&twice, "p", "olm.package", "", "gone").is_err());
    }
}
