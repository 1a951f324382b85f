//! `olmkit repo check`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use olmkit::policy::Judged;
use olmkit::validate::source::Source;
use olmkit_submission::{
    Change, Checked, Git, Options, PreflightResults, Repository, Waivers, certification_hash, check_bundle,
    check_catalogs, check_operator, preflight_operator_rules, static_checks,
};
use rayon::prelude::*;

use super::image::{self, Policy};
use super::outcome::Outcome;
use super::output::{self, Format};
use super::suite::{Kind, OpenShiftFlags};
use crate::bundle::output::FailOn;
use crate::fixes::FixFlags;
use crate::policy::{Chosen, PolicyFlags};
use crate::progress::{Progress, Unit};
use crate::registry_flags::RegistryFlags;

/// Run the checks of a hosted operator repository
///
/// Runs what the pipelines of community-operators-prod, certified-operators and redhat-marketplace-operators run on a pull request,
/// but for their hosted services. The verdict is theirs, except where it is known to be wrong; such findings say so. Other suites
/// have the rules of operatorhub.io, and preflight's for bundles and images.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit repo check --operator hello-operator", "olmkit repo check --base origin/main", "olmkit repo check --operator hello-operator --bundle 0.0.3 --strict-compat -o pipeline-json", "olmkit repo check --suite preflight --operator hello-operator --bundle 0.0.3 -o preflight-json", "olmkit repo check --suite preflight --image oci:layout --policy scratch-nonroot"])]
pub struct Args {
    /// Root of the repository: the directory with `operators`
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Check one operator [default: all operators]
    #[arg(long, value_name = "NAME", conflicts_with = "base")]
    operator: Option<String>,
    /// Check one bundle of the operator [default: all bundles]
    #[arg(long, value_name = "VERSION", requires = "operator")]
    bundle: Option<String>,
    /// Check what changed since this branch or commit, and the change as a whole
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Rules of a kind of repository [default: by `organization` in config.yaml]
    #[arg(long)]
    suite: Option<Kind>,
    /// Check an image instead of the repository, with preflight's rules: REFERENCE, oci:DIR, oci-archive:FILE, dockerfile:FILE, …
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["operator", "bundle", "base", "strict_compat"])]
    image: Option<String>,
    /// Container policy for the image
    #[arg(long, value_enum, default_value_t, requires = "image")]
    policy: Policy,
    /// Skip a check, such as check_using_fbc; may be given several times
    #[arg(long, value_name = "CHECK")]
    skip: Vec<String>,
    #[command(flatten)]
    versions: OpenShiftFlags,
    /// Give exactly the verdict of the hosted pipeline, its known defects included
    #[arg(long)]
    strict_compat: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Severity from which the command exits with 1 [default: error]
    #[arg(long, value_enum, env = "OLMKIT_FAIL_ON")]
    fail_on: Option<FailOn>,
    /// Omit source lines from text output
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    fixes: FixFlags,
    #[command(flatten)]
    selection: PolicyFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// What to check of one operator.
pub struct Target {
    pub operator: String,
    pub bundles: Bundles,
    pub catalogs: Vec<String>,
}

pub enum Bundles {
    All,
    One(Option<String>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(problem) = wrong_usage(args) {
        eprintln!("Error: {problem}");
        return Ok(ExitCode::from(2));
    }
    if let Some(image) = &args.image {
        return run_image(args, image);
    }
    let (_, repository) = super::open(&args.repo)?;
    let kind = args.suite.unwrap_or_else(|| Kind::of(&repository));
    let options = match options(args, kind) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("Error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut outcome = Outcome {
        not_checked: kind.not_checked(),
        ..Outcome::default()
    };
    let targets = match &args.base {
        Some(base) => changed(args, (kind, base), &repository, &options, &mut outcome)?,
        None => chosen(args, &repository)?,
    };
    if let Some(code) = fix(args, &targets)? {
        return Ok(code);
    }
    let waivers = if args.strict_compat {
        Waivers::default()
    } else {
        Waivers::of(&repository)
    };
    for problem in &waivers.problems {
        eprintln!("warning: {problem}");
    }
    let progress = Progress::begin("checking", Unit::Things(targets.len() as u64, "operators"));
    let checked: Vec<Outcome> = targets
        .par_iter()
        .map(|target| {
            let outcome = check(target, &repository, &options, &waivers);
            progress.step();
            outcome
        })
        .collect();
    drop(progress);
    for one in checked {
        outcome.operators += one.operators;
        outcome.bundles += one.bundles;
        outcome.catalogs += one.catalogs;
        outcome.found.extend(one.found);
        outcome.waived.extend(one.waived);
    }
    if let (Some(operator), Some(version), Format::PreflightJson) = (&args.operator, &args.bundle, args.output) {
        let name = format!("operators/{operator}/{version}");
        let rules = preflight_operator_rules();
        let hash = certification_hash(&repository, operator, version)
            .with_context(|| format!("reading {} failed", args.repo.join(&name).display()))?;
        let results = PreflightResults::new(&name, &rules, &outcome.found);
        outcome.preflight = Some(results.with_certification_hash(hash));
    }
    finish(args, outcome)
}

/// Fixes the bundles that are checked alone or new; `Some` ends the run.
fn fix(args: &Args, targets: &[Target]) -> anyhow::Result<Option<ExitCode>> {
    let folder = |target: &Target| match &target.bundles {
        Bundles::One(Some(version)) => Some(args.repo.join("operators").join(&target.operator).join(version)),
        _ => None,
    };
    let folders = targets.iter().filter_map(folder).filter(|folder| folder.is_dir());
    args.fixes
        .run(&folders.map(|folder| Source::directory(&folder)).collect::<Vec<_>>())
}

/// Prints the outcome and decides how the run ends.
fn finish(args: &Args, mut outcome: Outcome) -> anyhow::Result<ExitCode> {
    let chosen = match args.selection.choose(args.fail_on) {
        Ok(chosen) => chosen,
        Err(code) => return Ok(code),
    };
    // The verdicts of the originals stay theirs, whatever a project wants to hear.
    let is_original = args.strict_compat || matches!(args.output, Format::PipelineJson | Format::PreflightJson);
    if !is_original {
        judge(&chosen, &mut outcome, &args.repo);
        if chosen.writes_baseline() {
            chosen.write_baseline(&[&output::report(&outcome, &args.repo)])?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let worst = chosen.fails_from(false);
    let failed = outcome.found.iter().any(|checked| checked.finding.severity <= worst);
    output::print(outcome, &args.repo, args.output, args.short)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Lets the policy decide which findings count.
fn judge(chosen: &Chosen, outcome: &mut Outcome, repository: &Path) {
    let mut judge = chosen.policy.judge();
    for mut checked in std::mem::take(&mut outcome.found) {
        let lasting = output::file_in(repository, &checked.finding);
        match judge.one_in(lasting, checked.finding, true) {
            Judged::Kept(finding) => {
                checked.finding = finding;
                outcome.found.push(checked);
            }
            Judged::Suppressed(suppressed) => outcome.suppressed.push(suppressed),
            Judged::Dropped => {}
        }
    }
}

/// Flags that do not go together in ways that clap does not know.
fn wrong_usage(args: &Args) -> Option<&'static str> {
    let is_preflight = args.suite == Some(Kind::Preflight);
    if args.image.is_some() && args.suite.is_some_and(|kind| kind != Kind::Preflight) {
        return Some("--image goes with --suite preflight only");
    }
    if args.fixes.is_wanted() && args.bundle.is_none() && args.base.is_none() {
        return Some("--fix and --diff go with --bundle or --base: a bundle that is released does not change");
    }
    let is_one = args.image.is_some() || (is_preflight && args.bundle.is_some());
    if args.output == Format::PreflightJson && !is_one {
        return Some(
            "-o preflight-json is the result for one bundle or image: pass --suite preflight with --operator and --bundle, or --image",
        );
    }
    None
}

/// Checks an image with a container policy of preflight.
fn run_image(args: &Args, image: &str) -> anyhow::Result<ExitCode> {
    let mut checked = image::check(image, args.policy, &args.registry)?;
    let skips = |name: &str| args.skip.iter().any(|skip| skip.rsplit('/').next() == Some(name));
    checked.found.retain(|one| !skips(one.check));
    let rules: Vec<_> = checked
        .checked
        .into_iter()
        .filter(|rule| !skips(rule.id.rsplit('/').next().unwrap_or(rule.id)))
        .collect();
    let results = PreflightResults::new(image, &rules, &checked.found);
    let outcome = Outcome {
        images: 1,
        not_checked: checked.not_checked,
        preflight: (args.output == Format::PreflightJson).then_some(results),
        found: checked.found,
        ..Outcome::default()
    };
    finish(args, outcome)
}

fn options(args: &Args, kind: Kind) -> Result<Options, String> {
    let suites = kind.suites();
    let platforms = args.versions.platforms()?;
    let mut skip = Vec::new();
    for name in &args.skip {
        match olmkit_submission::find_rule(name) {
            Some(rule) => skip.push(rule.id.rsplit('/').next().unwrap_or(rule.id).to_owned()),
            None => {
                let known: Vec<&str> = suites.iter().flat_map(|suite| static_checks(*suite)).collect();
                return Err(format!("--skip: no check {name:?}; known are {}", known.join(", ")));
            }
        }
    }
    Ok(Options {
        strict_compat: args.strict_compat,
        platforms,
        skip,
        suites,
        pull_request: args.bundle.is_some() || args.base.is_some(),
    })
}

/// What --operator and --bundle name, or everything.
fn chosen(args: &Args, repository: &Repository) -> anyhow::Result<Vec<Target>> {
    let names = match &args.operator {
        Some(name) => {
            anyhow::ensure!(
                repository.has_operator(name),
                "no operator {name:?} in {}: operators/{name} has neither a ci.yaml nor a bundle (a directory with `manifests` \
                 and `metadata`)",
                args.repo.display()
            );
            vec![name.clone()]
        }
        None => repository.operators(),
    };
    if let (Some(operator), Some(version)) = (&args.operator, &args.bundle) {
        anyhow::ensure!(
            repository.has_bundle(operator, version),
            "no bundle {version:?} of {operator}: operators/{operator}/{version} lacks `manifests` or `metadata`"
        );
    }
    let target = |operator: String| Target {
        bundles: match &args.bundle {
            Some(version) => Bundles::One(Some(version.clone())),
            None => Bundles::All,
        },
        catalogs: repository.catalogs_of(&operator),
        operator,
    };
    Ok(names.into_iter().map(target).collect())
}

/// What a change touches; checks the change itself as well.
fn changed(
    args: &Args,
    (kind, base): (Kind, &str),
    repository: &Repository,
    options: &Options,
    outcome: &mut Outcome,
) -> anyhow::Result<Vec<Target>> {
    let git = Git::new(&args.repo);
    let commit = git.resolve(base)?;
    // GitHub lists a renamed file under its new name only, and so the pipeline does not see the deletion.
    let files = git.changed(&commit, args.strict_compat)?;
    let base = Repository::new(Arc::new(git.commit(&commit)?));
    let change = Change::detect(repository, &base, &files);
    let found = match kind {
        Kind::Operatorhub => change.check_operator_hub(repository, &base, &files),
        Kind::Preflight => Vec::new(),
        _ => change.check(repository, &base),
    };
    let refused = !found.is_empty();
    outcome.found = found;
    outcome
        .found
        .retain(|checked| !options.skip.iter().any(|name| name == checked.check));
    if args.strict_compat && (refused || !change.touches_bundle_or_catalog()) {
        return Ok(Vec::new());
    }
    let (operator, bundle) = change.target();
    Ok(operator
        .map(|operator| Target {
            operator,
            bundles: Bundles::One(bundle),
            catalogs: change.affected_catalogs(),
        })
        .into_iter()
        .collect())
}

/// Checks one operator, its bundles and its part of catalogs.
pub fn check(target: &Target, repository: &Repository, options: &Options, waivers: &Waivers) -> Outcome {
    let mut outcome = Outcome::default();
    let mut all = Vec::new();
    if let Some(operator) = repository.operator(&target.operator) {
        outcome.operators = 1;
        all.extend(check_operator(repository, &operator, options));
        let versions = match &target.bundles {
            Bundles::All => operator.versions(),
            Bundles::One(version) => version.iter().cloned().collect(),
        };
        outcome.bundles = versions.len();
        let of_bundles: Vec<Vec<Checked>> = versions
            .par_iter()
            .map(|version| check_bundle(repository, &operator, version, options))
            .collect();
        all.extend(of_bundles.into_iter().flatten());
    }
    outcome.catalogs = target.catalogs.len();
    all.extend(check_catalogs(repository, &target.catalogs, options));
    for checked in all {
        if waivers.waives(checked.check, &target.operator) {
            outcome.waived.push((target.operator.clone(), checked));
        } else {
            outcome.found.push(checked);
        }
    }
    outcome
}
