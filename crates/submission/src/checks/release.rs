//! Adds a bundle to the templates of its catalogs, as far as the templates decide whether that is possible.

use std::cmp::Ordering;

use olmkit::catalog::graph::heads;
use olmkit::catalog::model::ChannelEntry;
use olmkit::diagnostics::{Finding, Rule, Severity};

use super::schema::{RELEASE_CONFIG, errors};
use super::{BundleContext, Check, Findings, Run, Suite, at, rule};
use crate::images::list;
use crate::python::text::shown;
use crate::python::{Node, Raise, View, read_document};

pub(super) static CHECKS: &[Check] = &[Check::new(Suite::Common, &ADD, Run::Bundle(add)).step()];

static ADD: Rule = rule(
    "pipeline/add-bundle-to-fbc",
    Severity::Error,
    "step",
    "The bundle must be addable to the templates in release-config.yaml",
)
.because(
    "The pipeline tries it, and does it after the merge. opm rejects a channel with two heads or a duplicate entry.",
    "0.1.0",
)
.example(
    "# the channel already has hello.v0.0.2 as its head\ncatalog_templates:\n- template_name: v4.20.yaml\n  channels: [stable]\n  replaces: hello.v0.0.1",
    "catalog_templates:\n- template_name: v4.20.yaml\n  channels: [stable]\n  replaces: hello.v0.0.2",
);

fn add(context: &BundleContext<'_>, found: &mut Findings) -> Result<(), Raise> {
    let path = context.bundle.path("release-config.yaml");
    let files = context.bundle.files();
    if !files.is_file(&path) || !context.operator.uses_catalogs()? {
        return Ok(());
    }
    let config = read_document(files, &path)?;
    if !errors(&config.root, &RELEASE_CONFIG).is_empty() {
        // The check of the schema reports it, and the pipeline does not reach this step.
        return Ok(());
    }
    let mapping = list(context.operator.config()?.view(), &["fbc"], "catalog_mapping")?;
    let name = shown(context.csv()?.item("metadata")?.item("name")?.node);
    let before = found.len();
    for wanted in list(config.view(), &[], "catalog_templates")? {
        let channels = list(wanted, &[], "channels")?;
        let default = wanted.get("defaultChannel")?;
        if !default.is_none() && !channels.iter().any(|channel| channel.node.equals(default.node)) {
            let message = format!("defaultChannel {} is not one of the channels", shown(default.node));
            found.push(at(Finding::from_rule(&ADD, message), default).hint("name one of `channels`"));
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
        // A new template will have one entry in each channel.
        if kind.and_then(Node::as_str) != Some("olm.template.basic") || !files.is_file(&file) {
            continue;
        }
        let document = read_document(files, &file)?;
        for channel in &channels {
            in_channel(document.view(), *channel, wanted, &name, found)?;
        }
    }
    if found.len() > before && is_released(context, &name) {
        // The templates have moved on, and the pipeline does not add the bundle again.
        found.truncate(before);
    }
    Ok(())
}

/// Returns true if a catalog of the operator names the bundle. If the whole repository is checked, a newer bundle in a catalog is evidence
/// too: catalogs drop old bundles.
fn is_released(context: &BundleContext<'_>, name: &str) -> bool {
    let repository = context.repository;
    let read = |path: String| {
        let (catalog, operator) = path.split_once('/')?;
        let file = repository.operator_catalog_file(catalog, operator)?;
        let bytes = repository.files().read(&file).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let newer = if context.options.pull_request {
        Vec::new()
    } else {
        newer_names(context)
    };
    let mut texts = repository
        .catalogs_of(&context.operator.name)
        .into_iter()
        .filter_map(read);
    texts.any(|text| names(&text, name) || newer.iter().any(|newer| names(&text, newer)))
}

/// The names of the operator's bundles with a higher version, with and without the usual v.
fn newer_names(context: &BundleContext<'_>) -> Vec<String> {
    let Ok(Ok(own)) = context.bundle.name().map(|name| name.semantic.as_ref()) else {
        return Vec::new();
    };
    let mut newer = Vec::new();
    for name in context.operator.bundles.iter().filter_map(|bundle| bundle.name().ok()) {
        if name
            .semantic
            .as_ref()
            .is_ok_and(|other| other.order(own) == Ordering::Greater)
        {
            let (operator, version) = (&name.operator, &name.version);
            newer.extend([format!("{operator}.v{version}"), format!("{operator}.{version}")]);
        }
    }
    newer
}

/// Returns true if a text contains the name, and not as part of a longer one.
fn names(text: &str, name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        ![before, after].into_iter().flatten().any(is_of_name)
    })
}

/// Adds the bundle to a channel of a basic template, and checks the result.
fn in_channel(
    template: View<'_>,
    channel: View<'_>,
    wanted: View<'_>,
    name: &str,
    found: &mut Findings,
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
            "the channel {channel_name} of {} already has a different entry {name}",
            template.file
        );
        let hint = "remove the entry from the template, or copy its fields to release-config.yaml";
        found.push(at(Finding::from_rule(&ADD, message), channel).hint(hint));
        return Ok(());
    }
    let replaces = wanted.get("replaces")?;
    if !new.replaces.is_empty() && !entries.iter().any(|entry| entry.name == new.replaces) {
        let message = format!(
            "the channel {channel_name} of {} does not contain the replaced {}",
            template.file, new.replaces
        );
        let finding = at(Finding::new(&ADD, Severity::Warning, message), replaces);
        found.push(finding.hint("use the channel head, so that OLM offers its users the upgrade"));
    }
    let before = heads(&entries).len();
    entries.push(new);
    let heads = heads(&entries);
    if heads.len() > 1 && before <= 1 {
        let message = format!(
            "with {name} the channel {channel_name} of {} has {} heads: {}",
            template.file,
            heads.len(),
            heads.join(", ")
        );
        let place = if replaces.is_none() { channel } else { replaces };
        found.push(at(Finding::from_rule(&ADD, message), place).hint("set `replaces` to the current channel head"));
    }
    Ok(())
}

/// The fields of a channel entry that decide the heads.
fn entry(name: String, view: View<'_>) -> Result<ChannelEntry, Raise> {
    let replaces = view.get("replaces")?;
    let mut skips = Vec::new();
    for skip in list(view, &[], "skips")? {
        skips.push(shown(skip.node));
    }
    let replaces = replaces.is_true().then(|| shown(replaces.node));
    Ok(ChannelEntry {
        name,
        replaces: replaces.unwrap_or_default(),
        skips,
        ..ChannelEntry::default()
    })
}

#[cfg(test)]
mod tests {
    use olmkit::diagnostics::Severity;

    use crate::checks::fixture::{CI, checks, found, found_with};
    use crate::{Options, Suite};

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

    #[test]
    fn only_the_schema_reports_wrong_types() {
        let ci = "fbc:\n  enabled: true\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.20], type: olm.template.basic}\n";
        for (release, wanted) in [
            (
                "catalog_templates:\n- {template_name: a.yaml, channels: stable}\n",
                ["check_validate_schema_bundle_release_config"],
            ),
            (
                "catalog_templates:\n- {template_name: a.yaml, channels: [stable], replaces: old.v1, defaultChannel: beta}\n",
                ["add-bundle-to-fbc"],
            ),
        ] {
            let edits = [(CI, "", ci), ("operators/hello/0.0.1/release-config.yaml", "", release)];
            assert_eq!(
                checks(&found(Suite::Common, &edits), Severity::Error),
                wanted,
                "{release}"
            );
        }
    }

    #[test]
    fn a_released_bundle_is_not_added_again() {
        let ci = "fbc:\n  enabled: true\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.20], type: olm.template.basic}\n";
        let template = "schema: olm.template.basic\nentries:\n- {schema: olm.channel, package: hello, name: stable, entries: \
                        [{name: hello.v0.0.2}]}\n";
        let release = "catalog_templates:\n- {template_name: a.yaml, channels: [stable], replaces: hello.v0.0.0}\n";
        for (catalog, wanted) in [
            ("schema: olm.bundle\nname: hello.v0.0.1\n", 0),
            (
                "schema: olm.channel\nentries: [{name: hello.v0.0.2, skips: [hello.v0.0.1]}]\n",
                0,
            ),
            (
                "schema: olm.bundle\nname: hello.v0.0.10\n---\nname: other-hello.v0.0.1\n",
                1,
            ),
        ] {
            let edits = [
                (CI, "", ci),
                ("operators/hello/catalog-templates/a.yaml", "", template),
                ("operators/hello/0.0.1/release-config.yaml", "", release),
                ("catalogs/v4.20/hello/catalog.yaml", "", catalog),
            ];
            let mut errors = checks(&found(Suite::Common, &edits), Severity::Error);
            errors.retain(|name| *name == "add-bundle-to-fbc");
            assert_eq!(errors.len(), wanted, "{catalog}");
        }
    }

    #[test]
    fn a_bundle_that_catalogs_have_dropped_is_not_added_again() {
        let ci = "fbc:\n  enabled: true\n  catalog_mapping:\n  - {template_name: a.yaml, catalog_names: [v4.20], type: olm.template.basic}\n";
        let template = "schema: olm.template.basic\nentries:\n- {schema: olm.channel, package: hello, name: stable, entries: \
                        [{name: hello.v0.0.2}]}\n";
        let newer = include_str!("fixture.yaml").replace("hello.v0.0.1", "hello.v0.0.2");
        let edits = [
            (CI, "", ci),
            ("operators/hello/catalog-templates/a.yaml", "", template),
            (
                "operators/hello/0.0.1/release-config.yaml",
                "",
                "catalog_templates:\n- {template_name: a.yaml, channels: [stable], replaces: hello.v0.0.0}\n",
            ),
            (
                "operators/hello/0.0.2/manifests/hello.clusterserviceversion.yaml",
                "",
                newer.as_str(),
            ),
            (
                "operators/hello/0.0.2/metadata/annotations.yaml",
                "",
                "annotations: {}\n",
            ),
            (
                "catalogs/v4.20/hello/catalog.yaml",
                "",
                "schema: olm.bundle\nname: hello.v0.0.2\n",
            ),
        ];
        // In a pull request it can be the backport that is being released.
        for (pull_request, wanted) in [(false, 0), (true, 1)] {
            let options = Options {
                suites: vec![Suite::Common],
                pull_request,
                ..Options::default()
            };
            let mut errors = checks(&found_with(&options, &edits), Severity::Error);
            errors.retain(|name| *name == "add-bundle-to-fbc");
            assert_eq!(errors.len(), wanted, "{pull_request}");
        }
    }
}
