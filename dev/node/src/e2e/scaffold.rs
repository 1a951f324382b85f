//! An operator with webhooks, scaffolded and built as its author would, is installed from its image. It answers the API server with
//! the certificate that OLM gives it.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::checks::Checks;
use crate::package::{executable, publish, push, reach};
use crate::run::{Namespace, Run, contains, is};
use crate::world::World;

const IMAGE: &str = "registry.example.com/scaffolded:v0.0.1";
const BUNDLE_IMAGE: &str = "registry.example.com/scaffolded-bundle:v0.0.1";
/// The image of upstream's scorecard tests, which a scaffold names.
const UPSTREAM_IMAGE: &str = "quay.io/operator-framework/scorecard-test:v1.42.3";
/// These tests, with the tar that unpacks the bundle for them.
const SCORECARD_IMAGE: &str = "localhost:5000/olmkit/scorecard-test:e2e";

pub fn scaffold(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    let space = &run.namespace("scaffolded");
    run.title("an operator with webhooks that was just scaffolded");
    // Outside this repository, or cargo would look for the project in its workspace.
    let folder = tempfile::tempdir()?;
    let project = &folder.path().join("scaffolded");
    checks.check("it is built, packaged and pushed", || build(run, project));
    checks.check("its bundle is installed from its image", || {
        space.create_restricted()?;
        world.push_helper()?;
        let image = reach(run, BUNDLE_IMAGE);
        space
            .kit(&format!("run bundle {image} --helper-image {}", World::HELPER))
            .run()?;
        run.until(180, "Succeeded", || space.csv_phase("scaffolded.v0.0.1"))
    });
    checks.check("upstream's scorecard has the same results for it in pods", || {
        scorecards_agree(space, project)
    });
    checks.check("its webhooks complete and reject objects", || webhooks_answer(space));
    checks.check("nothing is left of it", || {
        space.kubectl("delete widget --all --timeout=300s")?;
        space.kit("cleanup scaffolded").run()?;
        world.namespace_is_removed(space)
    });
    Ok(())
}

fn build(run: &Run, project: &Path) -> anyhow::Result<()> {
    fs::create_dir(project)?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| run.root.join("target"), PathBuf::from);
    let step = |program: &str, words: &str| {
        let step = run.program(program).directory(project).words(words);
        step.env("OLMKIT_SOURCE", format!("path:{}", run.root.display()))
            .env("CARGO_TARGET_DIR", &target)
    };
    let olmkit = run.olmkit.to_string_lossy();
    step(&olmkit, "init --domain example.com").run()?;
    step(&olmkit, "create api --group cache --version v1 --kind Widget").run()?;
    let webhook = "create webhook --group cache --version v1 --kind Widget --defaulting --programmatic-validation";
    step(&olmkit, webhook).run()?;
    share_compiled_crates(run, project)?;
    let built = step("cargo", "build --quiet --bin scaffolded --message-format=json").run()?;
    step("make", "-s bundle")
        .arg(format!("OLMKIT={olmkit}"))
        .arg(format!("IMG={IMAGE}"))
        .run()?;
    // Upstream's operator-sdk reads PROJECT for every command.
    let upstream = run.cache.join("bin/operator-sdk");
    for words in [
        "version",
        "bundle validate bundle",
        "generate bundle --input-dir config --version 0.0.1 --output-dir upstream",
    ] {
        step(&upstream.to_string_lossy(), words).run()?;
    }
    publish(run, "operator", &executable(&built)?, IMAGE)?;
    publish(run, "bundle", &project.join("bundle"), BUNDLE_IMAGE)
}

/// With this repository's lock file, development profile and target directory, cargo reuses compiled crates.
fn share_compiled_crates(run: &Run, project: &std::path::Path) -> anyhow::Result<()> {
    fs::copy(run.root.join("Cargo.lock"), project.join("Cargo.lock"))?;
    let manifest = project.join("Cargo.toml");
    let own = without_tables(&fs::read_to_string(&manifest)?, |table| {
        table.starts_with("[profile.dev")
    });
    let ours = without_tables(&fs::read_to_string(run.root.join("Cargo.toml"))?, |table| {
        !table.starts_with("[profile.dev")
    });
    fs::write(manifest, format!("{own}\n{ours}"))?;
    Ok(())
}

/// The lines of a TOML document outside the tables with these titles. Lines before the first table belong to a table without a title.
fn without_tables(document: &str, removed: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut kept = !removed("");
    for line in document.lines() {
        if line.starts_with('[') {
            kept = !removed(line);
        }
        if kept {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// `operator-sdk scorecard` runs upstream's tests in pods of a restricted namespace. olmkit runs the same tests in its own process.
fn scorecards_agree(space: &Namespace, project: &Path) -> anyhow::Result<()> {
    let run = space.run;
    let program = run.cache.join("bin/scorecard-test");
    run.kit("image build files --base localhost:5000/dev/busybox:1 --user 1001 --add")
        .arg(format!("{}:/bin/scorecard-test", program.display()))
        .args(["--tag", SCORECARD_IMAGE])
        .run()?;
    push(run, SCORECARD_IMAGE)?;
    let config = fs::read_to_string(project.join("bundle/tests/scorecard/config.yaml"))?;
    ensure!(config.contains(UPSTREAM_IMAGE), "the bundle has other tests");
    fs::write(
        project.join("scorecard.yaml"),
        config.replace(UPSTREAM_IMAGE, SCORECARD_IMAGE),
    )?;
    let theirs = run
        .inside("operator-sdk")
        .directory(project)
        .words("scorecard bundle -o json --pod-security restricted --config scorecard.yaml --wait-time 180s")
        .args(["--untar-image", SCORECARD_IMAGE, "-n", &space.name])
        .finish()?;
    let ours = run.olmkit("scorecard bundle -o json").directory(project).finish()?;
    let (theirs, ours) = (states(&theirs.stdout)?, states(&ours.stdout)?);
    ensure!(
        theirs.len() == 6 && theirs == ours,
        "upstream: {theirs:?}, olmkit: {ours:?}"
    );
    Ok(())
}

fn entries<'v>(value: &'v Value, path: &str) -> impl Iterator<Item = &'v Value> {
    let list = value.pointer(path).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Name and state of each result, sorted.
fn states(output: &str) -> anyhow::Result<Vec<(String, String)>> {
    let list: Value = serde_json::from_str(output).context("standard output is not JSON")?;
    let tests = entries(&list, "/items");
    let results = tests.flat_map(|test| entries(test, "/status/results"));
    let text = |result: &Value, field: &str| {
        let text = result.get(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut states: Vec<_> = results
        .map(|result| (text(result, "name"), text(result, "state")))
        .collect();
    states.sort();
    Ok(states)
}

fn widget(name: &str) -> String {
    format!(
        r#"{{"apiVersion": "cache.example.com/v1", "kind": "Widget", "metadata": {{"name": "{name}"}}, "spec": {{"message": "Hello"}}}}"#
    )
}

fn webhooks_answer(space: &Namespace) -> anyhow::Result<()> {
    let run = space.run;
    space.apply(&widget("here"))?;
    is(
        &space.get("widget here", r"{.metadata.labels.app\.kubernetes\.io/part-of}")?,
        "scaffolded",
    )?;
    run.until(180, "Hello", || space.get("configmap widget-here", "{.data.message}"))?;
    run.until(180, "True", || {
        space.get("widget here", "{.status.conditions[?(@.type==\"Available\")].status}")
    })?;
    let refused = space.command("apply -f -").input(widget(&"x".repeat(64))).finish()?;
    ensure!(refused.code != 0, "accepted: {}", refused.text());
    contains(&refused.text(), "at most 63 characters, since labels hold the name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_selected_by_their_titles() {
        let document = "a = 1\n[profile.dev]\nb = 2\n[profile.release]\nc = 3\n";
        let dev = |table: &str| table.starts_with("[profile.dev");
        assert_eq!(without_tables(document, dev), "a = 1\n[profile.release]\nc = 3\n");
        assert_eq!(without_tables(document, |table| !dev(table)), "[profile.dev]\nb = 2\n");
    }
}
