//! `olmkit repo check`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use olmkit::process::Launcher;
use olmkit::validate::source::Source;
use olmkit_submission::{
    Change, Git, Options, PreflightResults, Repository, Waivers, certification_hash, preflight_operator_rules,
    static_checks,
};

use super::format::Format;
use super::image::{self, Policy};
use super::outcome::Outcome;
use super::results::{Results, Settings};
use super::suite::{Kind, OpenShiftFlags};
use super::target::{self, Bundles, Target};
use crate::bundle::output::FailOn;
use crate::fixes::FixFlags;
use crate::policy::PolicyFlags;
use crate::progress::{Progress, Unit};
use crate::registry_flags::RegistryFlags;

/// Run the checks of a hosted operator repository
///
/// Runs the static checks that the pipelines of community-operators-prod, certified-operators and
/// redhat-marketplace-operators run on a pull request, except their hosted services. The result is the same, unless a
/// check is known to be wrong. Such findings mention it. Other suites run the rules of operatorhub.io and preflight.
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
    /// Check the changes since this branch or commit, and the change as a whole
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Rules to apply, by kind of repository [default: by config.yaml and categories.json]
    #[arg(long)]
    suite: Option<Kind>,
    /// Check an image instead of the repository, with preflight's rules: REFERENCE, oci:DIR, oci-archive:FILE, dockerfile:FILE,
    /// …
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["operator", "bundle", "base", "strict_compat"])]
    image: Option<String>,
    /// Container policy for the image
    #[arg(long, value_enum, default_value_t, requires = "image")]
    policy: Policy,
    /// Skip a check, such as check_using_fbc. Repeatable
    #[arg(long, value_name = "CHECK")]
    skip: Vec<String>,
    #[command(flatten)]
    versions: OpenShiftFlags,
    /// Reproduce the result of the hosted pipeline exactly, including its known defects
    #[arg(long)]
    strict_compat: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Lowest severity that makes the command fail [default: error]
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

impl Args {
    fn printing(&self) -> Settings<'_> {
        Settings {
            root: &self.repo,
            format: self.output,
            short: self.short,
            strict_compat: self.strict_compat,
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(problem) = wrong_usage(args) {
        eprintln!("error: {problem}");
        return Ok(ExitCode::from(2));
    }
    if let Some(image) = &args.image {
        return run_image(args, image);
    }
    let (_, repository) = super::open(&args.repo)?;
    let kind = args.suite.unwrap_or_else(|| Kind::new(&repository));
    let options = match options(args, kind) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let chosen = match args.selection.choose(args.fail_on) {
        Ok(chosen) => chosen,
        Err(code) => return Ok(code),
    };
    let mut before = Outcome {
        not_checked: kind.not_checked(),
        ..Outcome::default()
    };
    let targets = match &args.base {
        Some(base) => changed(args, (kind, base), &repository, &options, &mut before)?,
        None => targets(args, &repository)?,
    };
    if let Some(code) = fix(args, &targets)? {
        return Ok(code);
    }
    let waivers = if args.strict_compat {
        Waivers::default()
    } else {
        Waivers::read(&repository)
    };
    for problem in &waivers.problems {
        eprintln!("warning: {problem}");
    }
    let mut results = Results::new(args.printing(), &chosen, target::bundles(&targets, &repository), before);
    let progress = Progress::begin("checking", Unit::Things(targets.len() as u64, "operators"));
    let check = |target: &Target| {
        let mut outcome = target::check(target, &repository, &options, &waivers);
        outcome.preflight = preflight(args, &repository, &outcome)?;
        progress.step();
        Ok(outcome)
    };
    target::check_each(&targets, check, |operator, outcome| {
        progress.suspend(|| results.add(operator, outcome))
    })?;
    drop(progress);
    results.end()
}

/// The result for one bundle in preflight's shape, if it is wanted.
fn preflight(args: &Args, repository: &Repository, outcome: &Outcome) -> anyhow::Result<Option<PreflightResults>> {
    let (Some(operator), Some(version), Format::PreflightJson) = (&args.operator, &args.bundle, args.output) else {
        return Ok(None);
    };
    let name = format!("operators/{operator}/{version}");
    let hash = certification_hash(repository, operator, version)
        .with_context(|| format!("reading {} failed", args.repo.join(&name).display()))?;
    let results = PreflightResults::new(&name, &preflight_operator_rules(), &outcome.found);
    Ok(Some(results.with_certification_hash(hash)))
}

/// Fixes the bundles that are selected or new. `Some` ends the run.
fn fix(args: &Args, targets: &[Target]) -> anyhow::Result<Option<ExitCode>> {
    let folder = |target: &Target| match &target.bundles {
        Bundles::One(Some(version)) => Some(args.repo.join("operators").join(&target.operator).join(version)),
        _ => None,
    };
    let folders = targets.iter().filter_map(folder).filter(|folder| folder.is_dir());
    let sources: Vec<Source> = folders.map(|folder| Source::directory(&folder)).collect();
    args.fixes.run(&sources, crate::fixes::Command::Validate)
}

/// Conflicts between flags that clap cannot express.
fn wrong_usage(args: &Args) -> Option<&'static str> {
    let is_preflight = args.suite == Some(Kind::Preflight);
    if args.image.is_some() && args.suite.is_some_and(|kind| kind != Kind::Preflight) {
        return Some("--image requires --suite preflight");
    }
    if args.fixes.is_wanted() && args.bundle.is_none() && args.base.is_none() {
        return Some("--fix and --diff require --bundle or --base: a released bundle must not change");
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
    let chosen = match args.selection.choose(args.fail_on) {
        Ok(chosen) => chosen,
        Err(code) => return Ok(code),
    };
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
    let mut results = Results::new(args.printing(), &chosen, 0, Outcome::default());
    results.add(image, outcome)?;
    results.end()
}

fn options(args: &Args, kind: Kind) -> Result<Options, String> {
    let suites = kind.suites();
    let platforms = args
        .versions
        .platforms((!args.strict_compat).then_some(args.repo.as_path()))?;
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

/// The operators and bundles of --operator and --bundle, or everything.
fn targets(args: &Args, repository: &Repository) -> anyhow::Result<Vec<Target>> {
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

/// The targets that a change affects. Checks the change itself as well.
fn changed(
    args: &Args,
    (kind, base): (Kind, &str),
    repository: &Repository,
    options: &Options,
    outcome: &mut Outcome,
) -> anyhow::Result<Vec<Target>> {
    let git = Git::new(&args.repo, Launcher::default());
    let commit = git.resolve(base)?;
    // GitHub lists a renamed file under its new name only, and so the pipeline does not see the deletion.
    let files = git.changed(&commit, args.strict_compat)?;
    let base = Repository::new(Arc::new(git.commit(&commit)?));
    let found = kind.check_change(repository, &base, &files);
    let change = Change::detect(repository, &base, &files);
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
