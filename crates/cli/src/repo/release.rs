//! `olmkit repo release`

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use olmkit::bundle::load::{Limits, Tree};
use olmkit::catalog::difference::write_summary;
use olmkit::limits;
use olmkit::object::{UntrustedText, shell_word};
use olmkit::process::Launcher;
use olmkit_submission::publish::{add_to_catalogs, place};
use olmkit_submission::{Changes, Git, Repository};

use super::pending::{self, Pending, Pulled};
use super::suite::{Kind, OpenShiftFlags};
use super::target::{Bundles, Target};
use crate::registry_flags::RegistryFlags;
use crate::terminal;

/// Add a bundle to the repository or publish it to its catalogs
///
/// A bundle from another directory is copied to `operators/NAME/VERSION`. With --image, an existing bundle is added to
/// the templates and catalogs that its release-config.yaml names, as the pipeline does after a merge. The result is
/// checked before it is written, and committed on a new branch. The command to push it is printed. The pipeline accepts
/// one of the two in a pull request.
#[derive(clap::Args)]
#[command(after_help = examples!["olmkit repo release ../hello-operator/bundle", "olmkit repo release ../hello-operator/bundle --dry-run", "olmkit repo release operators/hello-operator/0.0.3 --image quay.io/example/hello-operator:0.0.3"])]
pub struct Args {
    /// The bundle: a directory with `manifests` and `metadata`
    bundle: PathBuf,
    /// Root of the repository: the directory with `operators`
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Add the bundle, which is in the repository, to templates and catalogs under this image
    #[arg(long, value_name = "IMAGE", conflicts_with = "release_config")]
    image: Option<String>,
    /// File to copy as release-config.yaml of the bundle
    #[arg(long, value_name = "FILE")]
    release_config: Option<PathBuf>,
    /// Rules to apply, by kind of repository [default: by config.yaml and categories.json]
    #[arg(long)]
    suite: Option<Kind>,
    /// Branch for the commit. Created unless it is the current one [default: NAME-VERSION, with -catalogs for --image]
    #[arg(long, value_name = "NAME", conflicts_with = "no_commit")]
    branch: Option<String>,
    /// Print the files that would be written without writing them
    #[arg(long)]
    dry_run: bool,
    /// Write the files without a commit
    #[arg(long)]
    no_commit: bool,
    #[command(flatten)]
    versions: OpenShiftFlags,
    #[command(flatten)]
    registry: RegistryFlags,
}

/// The files to write and to commit.
struct Release {
    target: Target,
    version: String,
    changes: Changes,
    title: String,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let platforms = match args.versions.platforms(Some(&args.repo)) {
        Ok(platforms) => platforms,
        Err(problem) => {
            eprintln!("error: {problem}");
            return Ok(ExitCode::from(2));
        }
    };
    let (files, repository) = super::open(&args.repo)?;
    let git = Git::new(&args.repo, Launcher::default());
    let uncommitted = git.uncommitted()?;
    if let Some(first) = uncommitted.first() {
        anyhow::bail!(
            "the repository has uncommitted changes, such as {first:?}; commit or stash them first, so that the release is \
             the only change"
        );
    }
    let kind = args.suite.unwrap_or_else(|| Kind::new(&repository));
    let release = match &args.image {
        Some(image) => catalogs(args, &repository, image)?,
        None => placement(args, &repository, kind)?,
    };
    let branch = args.branch.clone().unwrap_or_else(|| {
        let end = if args.image.is_some() { "-catalogs" } else { "" };
        format!("{}-{}{end}", release.target.operator, release.version)
    });
    let on_branch = !args.no_commit && git.current_branch().as_deref() != Some(branch.as_str());
    if on_branch {
        git.check_new_branch(&branch)
            .context("cannot create the branch for the release; choose another one with --branch")?;
    }
    let pending = Pending {
        root: &args.repo,
        files,
        changes: release.changes,
        kind,
    };
    let changed = pending.files()?;
    anyhow::ensure!(
        !changed.is_empty(),
        "nothing to release: templates and catalogs already contain the bundle"
    );
    if !pending.is_accepted(&release.target, platforms)? {
        eprintln!("nothing is written: the pipeline would reject the change");
        return Ok(ExitCode::FAILURE);
    }
    pending::print(&changed)?;
    let out = &mut terminal::output();
    writeln!(out, "title: {}", UntrustedText::new(&release.title))?;
    if on_branch {
        writeln!(out, "branch: {}", UntrustedText::new(&branch))?;
    }
    if args.dry_run {
        note!("dry run: nothing is written");
        return Ok(ExitCode::SUCCESS);
    }
    let undo = pending.write()?;
    if args.no_commit {
        return Ok(ExitCode::SUCCESS);
    }
    let paths: Vec<String> = pending.changes.keys().cloned().collect();
    // Asked before the switch: a new branch has no remote.
    let remote = git.remote();
    let committed = if on_branch {
        git.commit_on_new_branch(&branch, &paths, &release.title)
    } else {
        git.commit_files(&paths, &release.title)
    };
    if let Err(error) = committed {
        undo.run().context("the files cannot be restored")?;
        return Err(anyhow::Error::from(error).context("the release is not committed; nothing is changed"));
    }
    let push = format!(
        "git push --set-upstream {} {}",
        shell_word(&remote),
        shell_word(&branch)
    );
    writeln!(out, "push with: {}", UntrustedText::new(&push))?;
    Ok(ExitCode::SUCCESS)
}

/// Places the bundle.
fn placement(args: &Args, repository: &Repository, kind: Kind) -> anyhow::Result<Release> {
    if let Some((operator, version)) = inside(args) {
        anyhow::bail!(
            "operators/{operator}/{version} already exists in the repository; to add it to its catalogs, pass its image as --image"
        );
    }
    let is_bundle = args.bundle.join("manifests").is_dir() && args.bundle.join("metadata").is_dir();
    anyhow::ensure!(
        is_bundle,
        "{} is not a bundle: it has no directories `manifests` and `metadata`",
        args.bundle.display()
    );
    let tree = Tree::from_dir(&args.bundle, Limits::default())?;
    let read = |path: &PathBuf| {
        limits::read_named(path, &limits::SETTINGS_FILE).with_context(|| format!("cannot read {}", path.display()))
    };
    let release_config = args.release_config.as_ref().map(read).transpose()?;
    let placed = place(repository, &tree, release_config)?;
    for path in &placed.left_out {
        eprintln!(
            "omitted, because it is not part of a bundle: {}",
            UntrustedText::new(path)
        );
    }
    if kind != Kind::Operatorhub && placed.has_no_release_config() {
        advise_release_config(repository, &placed.operator);
    }
    Ok(Release {
        title: format!("operator {} ({})", placed.operator, placed.version),
        target: Target {
            operator: placed.operator,
            bundles: Bundles::One(Some(placed.version.clone())),
            catalogs: Vec::new(),
        },
        version: placed.version,
        changes: placed.changes,
    })
}

/// Explains release-config.yaml to the author of an operator with file-based catalogs, whose bundle has none.
fn advise_release_config(repository: &Repository, operator: &str) {
    let templates = repository.catalog_templates(operator);
    let Some(first) = templates.first() else { return };
    let (name, first) = (UntrustedText::new(operator), UntrustedText::new(first));
    eprintln!(
        "warning: the bundle has no release-config.yaml, so after the merge the pipeline adds it to no catalog of {name}. Pass \
         --release-config FILE with the templates and channels for the bundle, such as:\n  catalog_templates:\n  - template_name: \
         {first}\n    channels: [stable]\n    replaces: CHANNEL-HEAD"
    );
    if templates.len() > 1 {
        let all = templates.join(", ");
        eprintln!("ci.yaml maps these templates to catalogs: {}", UntrustedText::new(&all));
    }
}

/// Adds the bundle to templates and catalogs.
fn catalogs(args: &Args, repository: &Repository, image: &str) -> anyhow::Result<Release> {
    let Some((operator, version)) = inside(args).filter(|(operator, version)| repository.has_bundle(operator, version))
    else {
        anyhow::bail!(
            "--image requires a bundle of the repository, such as operators/NAME/VERSION; {} is not one",
            args.bundle.display()
        );
    };
    let of_bundle = (operator.as_str(), version.as_str(), image);
    let additions = add_to_catalogs(repository, &args.repo, of_bundle, &Pulled::new(&args.registry))?;
    let out = &mut terminal::output();
    let mut summaries: Vec<(Vec<u8>, Vec<&str>)> = Vec::new();
    for (catalog, packages) in &additions.differences {
        let mut summary = Vec::new();
        write_summary(packages, false, &mut summary)?;
        match summaries.iter_mut().find(|(known, _)| *known == summary) {
            Some((_, catalogs)) => catalogs.push(catalog.as_str()),
            None => summaries.push((summary, vec![catalog.as_str()])),
        }
    }
    for (summary, catalogs) in summaries.iter().filter(|(summary, _)| !summary.is_empty()) {
        writeln!(out, "{}:", UntrustedText::new(&catalogs.join(", ")))?;
        out.write_all(summary)?;
    }
    let names = additions.differences.keys();
    Ok(Release {
        title: format!("Add {operator} {version} to FBC"),
        target: Target {
            catalogs: names.map(|name| format!("{name}/{operator}")).collect(),
            bundles: Bundles::One(None),
            operator,
        },
        version,
        changes: additions.changes,
    })
}

/// Operator and version, if the bundle is one of the repository.
fn inside(args: &Args) -> Option<(String, String)> {
    let operators = args.repo.join("operators").canonicalize().ok()?;
    let bundle = args.bundle.canonicalize().ok()?;
    let mut parts = bundle.strip_prefix(&operators).ok()?.components();
    let mut next = || Some(parts.next()?.as_os_str().to_str()?.to_owned());
    let (operator, version) = (next()?, next()?);
    next().is_none().then_some((operator, version))
}
