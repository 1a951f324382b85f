//! `scorecard --cluster`: a custom test in Rust, kuttl, tests in a shell, a bundle that needs unpacking, and tests that never get a result.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::olmkit::is_interrupted;
use crate::checks::Checks;
use crate::command::Invocation;
use crate::package::{copy, executable, push};
use crate::run::{Namespace, Run, contains, is};
use crate::world::World;

const CUSTOM_TEST: &str = "localhost:5000/olmkit/custom-test:e2e";
const KUTTL: &str = "localhost:5000/olmkit/kuttl:e2e";
/// Image of tests that never start.
const NOTHING: &str = "localhost:5000/olmkit/nothing:1";

/// operator-sdk's image has kuttl 0.15, which current Go does not build, and its program cannot read the report of kuttl 0.25. This
/// script turns kuttl's exit code into a result.
const KUTTL_SCRIPT: &str = r#"#!/bin/sh
cd /tmp
tests=/bundle/tests/scorecard/kuttl state=pass
kubectl-kuttl test $tests --config=$tests/kuttl-test.yaml --namespace="$SCORECARD_NAMESPACE" > /tmp/log 2>&1 || state=fail
echo "{\"results\": [{\"name\": \"kuttl\", \"state\": \"$state\"}]}"
"#;

pub fn scorecard(world: &World, checks: &mut Checks) -> anyhow::Result<()> {
    let run = world.run;
    let card = Card {
        space: &run.namespace("card"),
        bundle: run.work.join("new-bundle"),
        directory: run.work.join("card"),
    };
    fs::create_dir_all(&card.directory)?;
    let space = card.space;
    run.title("scorecard: tests in pods");
    checks.check("the image of a test is built", || push_custom_test(run));
    checks.check("a test in Rust runs in a restricted namespace", || {
        custom_test_runs(&card)
    });
    checks.check("the image of kuttl is built", || push_kuttl(run));
    checks.check("kuttl runs", || kuttl_runs(&card));
    checks.check("a test without a result reports the reason, within its limit", || {
        no_result_is_explained(&card)
    });
    checks.check("Ctrl-C leaves nothing", || {
        let config = card.config("lost");
        let bundle = world.new_bundle();
        let words = format!("scorecard {bundle} --cluster --config {config} --wait-time 5m");
        is_interrupted(space, 3, &words)?;
        card.no_objects()
    });
    checks.check("the namespace admits root", || {
        run.kubectl(&format!(
            "label namespace {} pod-security.kubernetes.io/enforce-",
            space.name
        ))
        .map(drop)
    });
    checks.check("files that a test writes are collected", || files_are_collected(&card));
    checks.check("a bundle with a file above 1 MiB gets into the pod", || {
        large_bundle_is_unpacked(&card)
    });
    checks.check("nothing is left of it", || world.namespace_is_removed(space));
    Ok(())
}

/// Scorecard runs in a namespace.
struct Card<'a> {
    space: &'a Namespace<'a>,
    bundle: PathBuf,
    directory: PathBuf,
}

/// The output of a run.
struct Answer(Value);

impl Card<'_> {
    fn config(&self, name: &str) -> String {
        self.directory.join(format!("{name}.yaml")).display().to_string()
    }

    fn write(&self, name: &str, config: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.config(name), config)?)
    }

    /// A copy of the bundle.
    fn copy(&self, name: &str) -> anyhow::Result<PathBuf> {
        let bundle = self.directory.join(name);
        if bundle.exists() {
            fs::remove_dir_all(&bundle)?;
        }
        copy(self.space.run, &self.bundle, &bundle)?;
        Ok(bundle)
    }

    fn command(&self, name: &str, bundle: &PathBuf, flags: &str) -> Invocation {
        let command = self
            .space
            .kit("scorecard")
            .arg(bundle)
            .words("--cluster -o json --config");
        command.arg(self.config(name)).words(flags)
    }

    /// Runs the configuration. Its tests must pass.
    fn passes(&self, name: &str, flags: &str) -> anyhow::Result<Answer> {
        self.answer(self.command(name, &self.bundle, flags), true)
    }

    /// Runs the configuration. One of its tests must fail.
    fn fails(&self, name: &str, flags: &str) -> anyhow::Result<Answer> {
        self.answer(self.command(name, &self.bundle, flags), false)
    }

    fn answer(&self, command: Invocation, passes: bool) -> anyhow::Result<Answer> {
        let finished = command.finish()?;
        ensure!((finished.code == 0) == passes, "exit code {}", finished.code);
        Ok(Answer(
            serde_json::from_str(&finished.stdout).context("standard output is not JSON")?,
        ))
    }

    fn no_objects(&self) -> anyhow::Result<()> {
        let left = || self.space.kubectl("get pods,configmaps -l app=scorecard-test -o name");
        self.space.run.until(180, "", left)
    }
}

impl Answer {
    /// A field of the first result of a test.
    fn field(&self, test: usize, field: &str) -> &str {
        let result = format!("/items/{test}/status/results/0/{field}");
        self.0.pointer(&result).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_error(&self, test: usize, words: &str) -> anyhow::Result<()> {
        is(self.field(test, "state"), "error")?;
        contains(self.field(test, "errors/0"), words)
    }
}

/// The example of the crate olmkit-scorecard, as a static program alone in an image. The flags are those of the build of all programs
/// and tests, so that cargo compiles no dependency again.
fn push_custom_test(run: &Run) -> anyhow::Result<()> {
    let built = run
        .program("cargo")
        .words("build -q --locked --workspace --features manifests --example custom_test --message-format=json")
        .run()?;
    let program = executable(&built)?;
    run.olmkit("image build operator")
        .arg(program)
        .args(["--tag", CUSTOM_TEST])
        .run()?;
    push(run, CUSTOM_TEST)
}

fn custom_test_runs(card: &Card) -> anyhow::Result<()> {
    card.space.create_restricted()?;
    card.write(
        "custom",
        &format!(
            r#"stages:
- parallel: true
  tests:
  - {{image: "{CUSTOM_TEST}", entrypoint: [/custom_test, csv-has-icon], labels: {{suite: custom, test: icon}}}}
  - {{image: "{CUSTOM_TEST}", entrypoint: [/custom_test, bundle-has-license], labels: {{suite: custom, test: license}}}}
  - {{image: "quay.io/operator-framework/scorecard-test:v1.42.3", entrypoint: [scorecard-test, basic-check-spec], labels: {{suite: basic}}}}
"#
        ),
    )?;
    // The bundle has no license.
    let answer = card.fails("custom", "--wait-time 60s")?;
    is(answer.field(0, "state"), "pass")?;
    is(answer.field(1, "state"), "fail")?;
    is(answer.field(2, "state"), "pass")?;
    is(answer.field(1, "errors/0"), "the bundle has no file LICENSE")?;
    card.passes("custom", "--selector test=icon")?;
    card.no_objects()
}

fn push_kuttl(run: &Run) -> anyhow::Result<()> {
    let script = run.work.join("entrypoint");
    fs::write(&script, KUTTL_SCRIPT)?;
    run.program("chmod").arg("+x").arg(&script).run()?;
    run.kit("image build files --base localhost:5000/dev/busybox:1 --user 1001 --entrypoint /bin/entrypoint")
        .arg("--add")
        .arg(format!(
            "{}:/bin/kubectl-kuttl",
            run.cache.join("bin/kubectl-kuttl").display()
        ))
        .arg("--add")
        .arg(format!("{}:/bin/entrypoint", script.display()))
        .args(["--tag", KUTTL])
        .run()?;
    push(run, KUTTL)
}

fn kuttl_runs(card: &Card) -> anyhow::Result<()> {
    let space = card.space;
    let bundle = card.copy("kuttl")?;
    let tests = bundle.join("tests/scorecard/kuttl");
    let test = tests.join("config-map");
    fs::create_dir_all(&test)?;
    fs::write(
        tests.join("kuttl-test.yaml"),
        "{apiVersion: kuttl.dev/v1beta1, kind: TestSuite, timeout: 10}\n",
    )?;
    let object = |answer: &str| {
        format!(r#"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: kuttl}}, data: {{answer: "{answer}"}}}}"#)
    };
    fs::write(test.join("00-make.yaml"), object("42"))?;
    fs::write(test.join("00-assert.yaml"), object("42"))?;
    let config = format!(
        "serviceaccount: kuttl\nstages:\n- tests: [{{image: \"{KUTTL}\", labels: {{suite: kuttl, test: kuttl}}}}]\n"
    );
    let name = "kuttl";
    card.write(name, &config)?;
    space.kubectl("create serviceaccount kuttl")?;
    space.kubectl(&format!(
        "create rolebinding kuttl --clusterrole=admin --serviceaccount={}:kuttl",
        space.name
    ))?;
    let flags = "--wait-time 60s";
    let passed = card.answer(card.command(name, &bundle, flags), true)?;
    is(passed.field(0, "state"), "pass")?;
    // A result that differs from the expected one.
    fs::write(test.join("00-assert.yaml"), object("43"))?;
    let failed = card.answer(card.command(name, &bundle, flags), false)?;
    is(failed.field(0, "state"), "fail")?;
    space.kubectl("delete configmap kuttl --ignore-not-found")?;
    space.kubectl("delete rolebinding,serviceaccount kuttl")?;
    Ok(())
}

fn no_result_is_explained(card: &Card) -> anyhow::Result<()> {
    let busybox = &card.space.run.busybox;
    card.write(
        "lost",
        &format!(
            r#"stages:
- parallel: true
  tests:
  - {{image: "{NOTHING}", labels: {{test: image}}}}
  - {{image: {busybox}, entrypoint: [sleep, "300"], labels: {{test: slow}}}}
"#
        ),
    )?;
    let start = Instant::now();
    let answer = card.fails("lost", "--wait-time 15s")?;
    ensure!(
        start.elapsed() < Duration::from_secs(150),
        "it took {} s",
        start.elapsed().as_secs()
    );
    answer.is_error(0, &format!("cannot pull {NOTHING}"))?;
    answer.is_error(1, "the test runs and has not ended")?;
    let legacy = card.fails("lost", "--wait-time 15s --pod-security legacy --selector test=slow")?;
    legacy.is_error(0, "violates PodSecurity")?;
    card.no_objects()
}

fn files_are_collected(card: &Card) -> anyhow::Result<()> {
    let run = card.space.run;
    let busybox = &run.busybox;
    card.write(
        "storage",
        &format!(
            r#"stages:
- tests:
  - image: {busybox}
    entrypoint: [sh, -c, 'find /bundle -type f > $SCORECARD_STORAGE/files && echo "{{\"results\": [{{\"name\": \"shell\", \"state\": \"pass\"}}]}}"']
    labels: {{suite: shell, test: files}}
    storage: {{spec: {{mountPath: {{path: /out}}}}}}
"#
        ),
    )?;
    let output = card.directory.join("out");
    let flags = format!(
        "--test-output {} --storage-image {busybox} --pod-security legacy",
        output.display()
    );
    card.passes("storage", &flags)?;
    let sorted = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let expected = run.program("find").words(". -type f").directory(&card.bundle).run()?;
    let expected = expected
        .lines()
        .map(|line| line.replacen('.', "/bundle", 1))
        .collect::<Vec<_>>()
        .join("\n");
    let collected = fs::read_to_string(output.join("shell/files/files"))?;
    is(&sorted(&collected), &sorted(&expected))?;
    card.no_objects()
}

fn large_bundle_is_unpacked(card: &Card) -> anyhow::Result<()> {
    let run = card.space.run;
    let bundle = card.copy("large")?;
    let large = bundle.join("tests/large");
    run.program("sh")
        .args(["-c", "head -c 3000000 /dev/urandom | base64 > \"$0\""])
        .arg(&large)
        .run()?;
    let busybox = &run.busybox;
    // containerd loses the output of a container that ends while its start is being reported ("reading from a closed fifo").
    card.write(
        "large",
        &format!(
            r#"stages:
- tests: [{{image: {busybox}, entrypoint: [sh, -c, 'echo "{{\"results\": [{{\"name\": \"$(sha256sum < /bundle/tests/large)\", \"state\": \"pass\"}}]}}"; sleep 2'], labels: {{test: large}}}}]
"#
        ),
    )?;
    let flags = format!("--untar-image {busybox} --pod-security legacy");
    let answer = card.answer(card.command("large", &bundle, &flags), true)?;
    let sum = run.program("sh").args(["-c", "sha256sum < \"$0\""]).arg(&large).run()?;
    is(answer.field(0, "name"), &sum)
}
