//! `olmkit repo check`

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use olmkit::diagnostics::Severity;
use olmkit::limits;
use olmkit_submission::{
    Change, Checked, Folder, Git, Options, Platforms, Repository, Suite, Waivers, check_bundle, check_catalogs,
    check_operator, static_checks,
};
use rayon::prelude::*;

use super::output::{self, Format};
use crate::bundle::output::FailOn;

/// Run the checks of a hosted operator repository
///
/// Runs what the pipelines of community-operators-prod, certified-operators and redhat-marketplace-operators run on a pull request,
/// but for their hosted services. The verdict is theirs, except where it is known to be wrong; such findings say so.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit repo check --operator hello-operator", "olmkit repo check --base origin/main", "olmkit repo check --operator hello-operator --bundle 0.0.3 --strict-compat -o pipeline-json"])]
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
    /// Skip a check, such as check_using_fbc; may be given several times
    #[arg(long, value_name = "CHECK")]
    skip: Vec<String>,
    /// Take only these versions of OpenShift for supported, such as 4.14-4.22
    #[arg(long, value_name = "RANGE")]
    ocp_versions: Option<String>,
    /// JSON file with the versions of OpenShift, instead of the table of this release
    #[arg(long, value_name = "FILE")]
    platforms: Option<PathBuf>,
    /// Give exactly the verdict of the hosted pipeline, its known defects included
    #[arg(long)]
    strict_compat: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
    /// Severity from which the command exits with 1
    #[arg(long, value_enum, default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// Omit source lines from text output
    #[arg(long)]
    short: bool,
}

/// A kind of repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// community-operators-prod
    Community,
    /// certified-operators
    Certified,
    /// redhat-marketplace-operators
    Marketplace,
}

/// What one run looked at and found.
#[derive(Default)]
pub struct Outcome {
    pub operators: usize,
    pub bundles: usize,
    pub catalogs: usize,
    pub found: Vec<Checked>,
    /// Findings that config.yaml waives, with their operators.
    pub waived: Vec<(String, Checked)>,
}

/// What to check of one operator.
struct Target {
    operator: String,
    bundles: Bundles,
    catalogs: Vec<String>,
}

enum Bundles {
    All,
    One(Option<String>),
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let folder = Folder::open(&args.repo).with_context(|| format!("cannot open {}", args.repo.display()))?;
    let repository = Repository::new(Arc::new(folder));
    anyhow::ensure!(
        repository.is_repository(),
        "{} is not an operator repository: it has no directory `operators`; pass its root as --repo",
        args.repo.display()
    );
    let options = match options(args, &repository) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("Error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let mut outcome = Outcome::default();
    let targets = match &args.base {
        Some(base) => changed(args, base, &repository, &options, &mut outcome)?,
        None => chosen(args, &repository)?,
    };
    let waivers = if args.strict_compat {
        Waivers::default()
    } else {
        Waivers::of(&repository)
    };
    for problem in &waivers.problems {
        eprintln!("warning: {problem}");
    }
    let checked: Vec<Outcome> = targets
        .par_iter()
        .map(|target| check(target, &repository, &options, &waivers))
        .collect();
    for one in checked {
        outcome.operators += one.operators;
        outcome.bundles += one.bundles;
        outcome.catalogs += one.catalogs;
        outcome.found.extend(one.found);
        outcome.waived.extend(one.waived);
    }
    let worst = match args.fail_on {
        FailOn::Error => Severity::Error,
        FailOn::Warning => Severity::Warning,
    };
    let failed = outcome.found.iter().any(|checked| checked.finding.severity <= worst);
    output::print(outcome, &args.repo, args.output, args.short)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn options(args: &Args, repository: &Repository) -> Result<Options, String> {
    let kind = args
        .suite
        .unwrap_or_else(|| match repository.organization().as_deref() {
            Some("certified-operators") => Kind::Certified,
            Some("redhat-marketplace") => Kind::Marketplace,
            _ => Kind::Community,
        });
    let suites = match kind {
        Kind::Community => vec![Suite::Community, Suite::Common],
        Kind::Certified | Kind::Marketplace => vec![Suite::Isv, Suite::Common],
    };
    let mut platforms = match &args.platforms {
        None => Platforms::default(),
        Some(path) => {
            let text = limits::read_named(path, &limits::SETTINGS_FILE)
                .map_err(|error| format!("--platforms {}: {error}", path.display()))?;
            Platforms::parse(&String::from_utf8_lossy(&text))
                .map_err(|error| format!("--platforms {}: {error}", path.display()))?
        }
    };
    if let Some(range) = &args.ocp_versions {
        platforms
            .select(range)
            .map_err(|error| format!("--ocp-versions: {error}"))?;
    }
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
    base: &str,
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
    let found = change.check(repository, &base);
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

fn check(target: &Target, repository: &Repository, options: &Options, waivers: &Waivers) -> Outcome {
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
