//! Adding a bundle to the templates of its catalogs, as far as the templates decide whether that works.

use std::collections::BTreeSet;

use olmkit::diagnostics::{Finding, Rule, Severity};

use super::{BundleContext, Check, Found, Run, Suite, at, rule};
use crate::images::list;
use crate::python::text::shown;
use crate::python::{Node, Raise, View, read_document};

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Common, &ADD, Run::Bundle(add)).step()];

static ADD: Rule = rule(
    "pipeline/add-bundle-to-fbc",
    Severity::Error,
    "step",
    "The bundle can be added to the templates of release-config.yaml",
)
.because(
    "The pipeline tries it, and does it after the merge; opm refuses a channel with two heads or an entry that occurs twice.",
    "0.2.0",
)
.example(
    "# the channel already has hello.v0.0.2 as its head\ncatalog_templates:\n- template_name: v4.20.yaml\n  channels: [stable]\n  replaces: hello.v0.0.1",
    "catalog_templates:\n- template_name: v4.20.yaml\n  channels: [stable]\n  replaces: hello.v0.0.2",
);

/// An entry of a channel, reduced to what makes edges.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    replaces: Option<String>,
    skips: Vec<String>,
}

fn add(context: &BundleContext<'_>, found: &mut Found) -> Result<(), Raise> {
    let path = context.bundle.path("release-config.yaml");
    let files = context.bundle.files();
    if !files.is_file(&path) || !context.operator.uses_catalogs()? {
        return Ok(());
    }
    let config = read_document(files, &path)?;
    let mapping = list(context.operator.config()?.view(), &["fbc"], "catalog_mapping")?;
    let name = shown(context.csv()?.item("metadata")?.item("name")?.node);
    for wanted in list(config.view(), &[], "catalog_templates")? {
        let channels = list(wanted, &[], "channels")?;
        let default = wanted.get("defaultChannel")?;
        if !default.is_none() && !channels.iter().any(|channel| channel.node.equals(default.node)) {
            let message = format!("defaultChannel {} is not one of the channels", shown(default.node));
            found.push(at(Finding::of(&ADD, message), default).hint("name one of `channels`"));
        }
        let template = wanted.get("template_name")?;
        let is_mapped = |mapped: &&View<'_>| {
            let name = mapped.node.get("template_name");
            name.is_some_and(|name| name.equals(template.node))
        };
        let kind = mapping
            .iter()
            .find(is_mapped)
            .and_then(|mapped| mapped.node.get("type"));
        let file = format!(
            "operators/{}/catalog-templates/{}",
            context.operator.name,
            shown(template.node)
        );
        // A template that is not there yet will have one entry in each channel.
        if kind.and_then(Node::as_str) != Some("olm.template.basic") || !files.is_file(&file) {
            continue;
        }
        let document = read_document(files, &file)?;
        for channel in &channels {
            in_channel(document.view(), *channel, wanted, &name, found)?;
        }
    }
    Ok(())
}

/// Adds the bundle to a channel of a basic template, and looks at what becomes of it.
fn in_channel(
    template: View<'_>,
    channel: View<'_>,
    wanted: View<'_>,
    name: &str,
    found: &mut Found,
) -> Result<(), Raise> {
    let new = entry(name.to_owned(), wanted)?;
    let mut entries = Vec::new();
    for blob in list(template, &[], "entries")? {
        let is_channel = blob.node.get("schema").and_then(Node::as_str) == Some("olm.channel");
        if is_channel && blob.node.get("name").is_some_and(|name| name.equals(channel.node)) {
            for item in list(blob, &[], "entries")? {
                entries.push(entry(shown(item.get("name")?.node), item)?);
            }
        }
    }
    let channel_name = shown(channel.node);
    if entries.contains(&new) {
        return Ok(());
    }
    if entries.iter().any(|entry| entry.name == name) {
        let message = format!(
            "the channel {channel_name} of {} already has an other entry {name}",
            template.file
        );
        let hint = "take the entry out of the template, or write into release-config.yaml what it says";
        found.push(at(Finding::of(&ADD, message), channel).hint(hint));
        return Ok(());
    }
    let replaces = wanted.get("replaces")?;
    if let Some(replaced) = &new.replaces
        && !entries.iter().any(|entry| entry.name == *replaced)
    {
        let message = format!(
            "the channel {channel_name} of {} has no {replaced}, which is replaced",
            template.file
        );
        let finding = at(Finding::new(&ADD, Severity::Warning, message), replaces);
        found.push(finding.hint("name the head of the channel, so that its users are offered the update"));
    }
    let before = heads(&entries).len();
    entries.push(new);
    let heads = heads(&entries);
    if heads.len() > 1 && before <= 1 {
        let message = format!(
            "with {name} the channel {channel_name} of {} has {} heads: {}",
            template.file,
            heads.len(),
            heads.into_iter().collect::<Vec<_>>().join(", ")
        );
        let place = if replaces.is_none() { channel } else { replaces };
        found.push(at(Finding::of(&ADD, message), place).hint("set `replaces` to the head that the channel has now"));
    }
    Ok(())
}

fn entry(name: String, view: View<'_>) -> Result<Entry, Raise> {
    let replaces = view.get("replaces")?;
    let mut skips = Vec::new();
    for skip in list(view, &[], "skips")? {
        skips.push(shown(skip.node));
    }
    Ok(Entry {
        name,
        replaces: replaces.is_true().then(|| shown(replaces.node)),
        skips,
    })
}

/// The entries that no other replaces or skips.
fn heads(entries: &[Entry]) -> BTreeSet<&str> {
    let mut heads: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    for entry in entries {
        for older in entry.skips.iter().chain(&entry.replaces) {
            heads.remove(older.as_str());
        }
    }
    heads
}

#[cfg(test)]
mod tests {
    use olmkit::diagnostics::Severity;

    use super::super::fixture::{CI, checks, found};
    use crate::Suite;

    #[test]
    fn the_channel_keeps_one_head() {
        let ci = "fbc:\n  enabled: true\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.20], type: olm.template.basic}\n";
        let template = "schema: olm.template.basic\nentries:\n- {schema: olm.channel, package: hello, name: stable, entries: [{name: \
                        hello.v0.0.0}, {name: old.v1, replaces: hello.v0.0.0}]}\n";
        let errors = |release: &str, severity| {
            let edits = [
                (CI, "", ci),
                ("operators/hello/catalog-templates/a.yaml", "", template),
                ("operators/hello/0.0.1/release-config.yaml", "", release),
            ];
            let mut names = checks(&found(Suite::Common, &edits), severity);
            names.retain(|name| *name == "add-bundle-to-fbc");
            names.len()
        };
        let release =
            |rest: &str| format!("catalog_templates:\n- template_name: a.yaml\n  channels: [stable]\n  {rest}\n");
        for (rest, wrong, warned) in [
            ("replaces: old.v1", 0, 0),
            ("skips: [old.v1]", 0, 0),
            ("replaces: hello.v0.0.0", 1, 0),
            ("replaces: nothing.v1", 1, 1),
            ("skipRange: '<1.0.0'", 1, 0),
            ("{replaces: old.v1, defaultChannel: beta}", 1, 0),
        ] {
            let text = release(rest).replace(
                "  {replaces: old.v1, defaultChannel: beta}",
                "  replaces: old.v1\n  defaultChannel: beta",
            );
            assert_eq!(
                (errors(&text, Severity::Error), errors(&text, Severity::Warning)),
                (wrong, warned),
                "{rest}"
            );
        }
        let again = "catalog_templates:\n- template_name: a.yaml\n  channels: [beta]\n";
        assert_eq!(errors(again, Severity::Error), 0, "a new channel");
    }
}
