//! The command line: one file for each command group. A file turns flags into one library call and its result into
//! output. No logic lives here.

#[macro_use]
mod terminal;

mod adopt;
mod catalog;
mod cleanup;
mod cluster_args;
mod completion;
mod config;
mod console;
mod crd;
mod create;
mod delete;
mod diagnose;
mod edit;
mod explain;
mod extension;
mod fixes;
mod generate;
mod groups;
mod health_probe;
mod image;
mod in_order;
mod in_pod;
mod index_add;
mod init;
mod kind_args;
mod many;
mod migrate;
mod olm;
mod opm;
mod pflag;
mod policy;
mod progress;
mod registry_flags;
mod repo;
mod run;
mod runtime;
mod scorecard;
mod signals;
mod stdin;
mod subscribe;
mod unified;
mod update;
mod version;

/// The commands of `olmkit bundle`, one file each. [`BundleCommand`] lists them.
mod bundle {
    pub mod diff;
    pub mod output;
    pub mod rbac;
    pub mod render;
    pub mod source;
    pub mod text;
    pub mod unpack;
    pub mod validate;
}

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};
use olmkit::limits::Chosen;

/// The program `olmkit`. It is also opm, operator-sdk and each of the programs in pods if it is called by their names:
/// `olmkit cpb …` is the same as `cpb …`.
pub fn olmkit() -> ExitCode {
    olmkit::temporary::on_first_use(signals::clean_up);
    olmkit::process::on_first_start(signals::clean_up);
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|name| name == "operator-sdk") {
        arguments.remove(0);
    }
    exit_code(run_in_pod(&arguments).unwrap_or_else(|| run(&arguments)))
}

/// Runs a command of olmkit, or of opm if only opm has it: `OPM` may be olmkit under its own name in Makefiles.
fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let is_operator_sdk = called(arguments) == "operator-sdk";
    let cli = pflag::parse::<Cli>(arguments).or_else(|error| without_plugins(error, arguments));
    let is_usage_error = match &cli {
        Ok(cli) => matches!(cli.command, Command::Alpha { .. }),
        Err(error) => error.use_stderr(),
    };
    if is_usage_error && !is_operator_sdk {
        match pflag::parse::<opm::Opm>(arguments) {
            Ok(opm) => return opm.run(),
            Err(error) if opm::only_opm_has(arguments) => terminal::exit(&error),
            Err(_) => {}
        }
    }
    cli.unwrap_or_else(|error| exit::<Cli>(&error, is_operator_sdk))
        .run(is_operator_sdk)
}

/// Parses a command line without `--plugins`, which all commands of operator-sdk accept. Only `init` and `create api`
/// have a use for it. Returns any other error.
fn without_plugins(error: clap::Error, arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let unknown = error.get(ContextKind::InvalidArg);
    if !matches!(unknown, Some(ContextValue::String(flag)) if flag == "--plugins") {
        return Err(error);
    }
    let mut rest = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word.clone());
            rest.extend(words.by_ref().cloned());
        } else if word == "--plugins" {
            // A flag without its value stays an error.
            if words.next().is_none() {
                return Err(error);
            }
        } else if !word.as_encoded_bytes().starts_with(b"--plugins=") {
            rest.push(word.clone());
        }
    }
    let cli = pflag::parse::<Cli>(&rest)?;
    if cli.is_of_operator_sdk() {
        return Ok(cli);
    }
    Err(error)
}

/// The name that the program was called by.
fn called(arguments: &[OsString]) -> &OsStr {
    let program = arguments.first().map(Path::new).and_then(Path::file_name);
    program.unwrap_or_default()
}

/// The programs in pods without the rest, which no pod needs: a fraction of the size.
pub fn helper() -> ExitCode {
    olmkit::temporary::on_first_use(signals::clean_up);
    olmkit::process::on_first_start(signals::clean_up);
    let arguments: Vec<OsString> = std::env::args_os().collect();
    exit_code(run_in_pod(&arguments).unwrap_or_else(|| {
        eprintln!("error: unknown program name; call olmkit-helper as opm, cp, cpb, copy-content or grpc_health_probe");
        Ok(ExitCode::from(2))
    }))
}

/// Build, package, validate and run Kubernetes operators with the Operator Lifecycle Manager (OLM).
#[derive(Parser)]
#[command(
    name = "olmkit",
    version,
    propagate_version = true,
    help_template = groups::help_template(),
    after_help = concat!("Documentation: ", env!("CARGO_PKG_REPOSITORY"), "/tree/main/docs")
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Change an input limit, such as catalog-file=512MiB. docs/reference/limits.md lists them
    #[arg(
        long = "limit",
        global = true,
        help_heading = "Global options",
        value_name = "NAME=VALUE",
        env = "OLMKIT_LIMIT",
        value_delimiter = ','
    )]
    limits: Vec<String>,
    /// Log each request to registries and clusters on standard error
    #[arg(long, global = true, help_heading = "Global options")]
    verbose: bool,
    /// Print only results, warnings and errors
    #[arg(short, long, global = true, help_heading = "Global options")]
    quiet: bool,
    /// Colorize output: auto (on a terminal), always or never
    #[arg(long, global = true, help_heading = "Global options", value_name = "WHEN", hide_possible_values = true, value_enum, default_value_t = terminal::Color::Auto)]
    color: terminal::Color,
}

/// One variant for each command group. The variant's type lives in the group's file.
#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Add OLM packaging to an existing operator.
    Adopt(adopt::Args),
    /// Validate bundles, and unpack them to plain manifests.
    #[command(subcommand)]
    Bundle(BundleCommand),
    /// Create, validate, inspect and serve file-based catalogs.
    Catalog(catalog::Args),
    /// Uninstall an operator and its custom resources
    ///
    /// Deletes the Subscription, the custom resources while the operator can still finalize them, CRDs, the
    /// ClusterServiceVersion and the objects that OLM leaves. All custom resources of the package are deleted. Run it
    /// with --dry-run first.
    Cleanup(cleanup::Args),
    /// Print a completion script for a shell
    ///
    /// Use it once to complete commands and flags with the tab key.
    Completion(completion::Args),
    /// Show the effective configuration.
    Config(config::Args),
    /// Compare CustomResourceDefinitions.
    Crd(crd::Args),
    /// Add an API or webhooks to a project.
    Create(create::Args),
    /// Remove an API or webhooks from a project.
    Delete(delete::Args),
    /// Change the settings of a project.
    Edit(edit::Args),
    /// Show the documentation of a validation rule
    ///
    /// Use it to understand a finding: prints the reason for the rule, the available fix, and a wrong and a correct example.
    Explain(explain::Args),
    /// Install, inspect and uninstall operators with OLM v1.
    Extension(extension::Args),
    /// Generate a bundle or its kustomize files.
    Generate(generate::Args),
    /// Show why an operator is not installed or not running
    ///
    /// Read-only. Use it if an installation or upgrade does not finish. Prints each cause with the object, the likely
    /// reason, a fix, events and log lines, for OLM v0 and v1. Exits with 1 if there is an error.
    Diagnose(diagnose::Args),
    /// Build, copy and inspect images without a container daemon.
    Image(Box<image::Args>),
    /// Create an operator project in Rust.
    Init(init::Args),
    /// Prepare to move operators from OLM v0 to OLM v1.
    Migrate(migrate::Args),
    /// Install, check and uninstall OLM itself.
    Olm(olm::Args),
    /// Check an operator repository and publish bundles to it.
    Repo(repo::Args),
    /// Install or upgrade an operator from a bundle.
    Run(run::Args),
    /// Run the scorecard tests of a bundle
    Scorecard(Box<scorecard::Args>),
    /// Install a package from a catalog of the cluster
    ///
    /// Use it for a published operator. Creates the OperatorGroup if it is missing and the Subscription, and waits
    /// until the operator runs. To test your own bundle, use `run bundle`.
    Subscribe(subscribe::Args),
    /// Update a project to the current templates.
    Update(update::Args),
    /// Print the version
    ///
    /// With -o json, also prints the platform, and the operator-sdk and opm versions that olmkit is compatible with.
    Version(version::Args),
    /// Commands of operator-sdk and opm that olmkit does not have. Prints the replacement
    #[command(hide = true, visible_alias = "pkgman-to-bundle", visible_alias = "registry")]
    Alpha {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<OsString>,
    },
}

#[derive(Subcommand)]
#[command(defer = true)]
enum BundleCommand {
    /// Compare two versions of a bundle
    Diff(Box<bundle::diff::Args>),
    /// Print the minimal RBAC for installing a bundle with OLM v1
    Rbac(Box<bundle::rbac::Args>),
    /// Render the objects that OLM v1 applies for a bundle
    Render(Box<bundle::render::Args>),
    /// Convert a bundle to plain manifests for kubectl
    Unpack(Box<bundle::unpack::Args>),
    /// Validate operator bundles
    ///
    /// Use it before you build or submit a bundle. Passes and fails the same bundles as `operator-sdk bundle validate`.
    /// Each finding shows the source line and how to fix it.
    Validate(Box<bundle::validate::Args>),
}

impl Cli {
    /// Returns true for a command that operator-sdk has too.
    fn is_of_operator_sdk(&self) -> bool {
        matches!(
            self.command,
            Command::Bundle(BundleCommand::Validate(_))
                | Command::Cleanup(_)
                | Command::Completion(_)
                | Command::Create(_)
                | Command::Edit(_)
                | Command::Generate(_)
                | Command::Olm(_)
                | Command::Run(_)
                | Command::Scorecard(_)
                | Command::Version(_)
        )
    }

    /// Runs the chosen command. `Ok` carries the exit code of a command that ran to its end: 0 fine, 1 findings.
    pub fn run(self, is_operator_sdk: bool) -> anyhow::Result<ExitCode> {
        terminal::set_color(self.color);
        terminal::set_quiet(self.quiet);
        terminal::log(self.verbose);
        if let Err(error) = Chosen::parse(&self.limits).and_then(Chosen::apply) {
            eprintln!("error: --limit: {error}");
            return Ok(ExitCode::from(2));
        }
        match self.command {
            Command::Adopt(args) => adopt::run(&args),
            Command::Bundle(BundleCommand::Diff(args)) => bundle::diff::run(&args),
            Command::Bundle(BundleCommand::Rbac(args)) => bundle::rbac::run(&args),
            Command::Bundle(BundleCommand::Render(args)) => bundle::render::run(&args),
            Command::Bundle(BundleCommand::Unpack(args)) => bundle::unpack::run(&args),
            Command::Bundle(BundleCommand::Validate(args)) => bundle::validate::run(&args),
            Command::Catalog(args) => catalog::run(&args),
            Command::Cleanup(args) => cleanup::run(&args),
            Command::Completion(args) => completion::run(&args, is_operator_sdk),
            Command::Config(args) => config::run(&args),
            Command::Crd(args) => crd::run(&args),
            Command::Create(args) => create::run(&args),
            Command::Delete(args) => delete::run(&args),
            Command::Edit(args) => edit::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Extension(args) => extension::run(&args),
            Command::Generate(args) => generate::run(&args),
            Command::Diagnose(args) => diagnose::run(&args),
            Command::Image(args) => image::run(&args),
            Command::Init(args) => init::run(&args),
            Command::Migrate(args) => migrate::run(&args),
            Command::Olm(args) => olm::run(&args),
            Command::Repo(args) => repo::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Scorecard(args) => scorecard::run(&args),
            Command::Subscribe(args) => subscribe::run(&args),
            Command::Update(args) => update::run(&args),
            Command::Version(args) => version::run(&args, is_operator_sdk),
            Command::Alpha { .. } => {
                eprintln!(
                    "error: olmkit does not have this command; see docs/reference/drop-in.md for its replacement"
                );
                Ok(ExitCode::from(2))
            }
        }
    }
}

/// Ends the process with the help, the version or a usage error.
fn exit<P: Parser>(error: &clap::Error, is_operator_sdk: bool) -> ! {
    use clap::error::ErrorKind;

    let is_tool = is_operator_sdk || P::command().get_name() == "opm";
    if is_tool && error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // The tools print the help of a command that only has subcommands.
        terminal::exit_with_help(error);
    }
    if error.kind() == ErrorKind::DisplayVersion {
        // A command has the program's version.
        match P::command().get_name() {
            "opm" => println!("{}", version::opm()),
            _ if is_operator_sdk => println!("{}", version::operator_sdk()),
            name => println!("{name} {}", env!("CARGO_PKG_VERSION")),
        }
        std::process::exit(0);
    }
    terminal::exit(error)
}

/// Runs the program that the binary's name or its first argument selects. `None` when neither is known.
fn run_in_pod(arguments: &[OsString]) -> Option<anyhow::Result<ExitCode>> {
    for skipped in 0..2 {
        let name = arguments
            .get(skipped)
            .map(Path::new)
            .and_then(Path::file_name)
            .unwrap_or_default();
        let rest = || arguments.iter().skip(skipped).cloned().collect();
        if name == "opm" {
            let rest: Vec<OsString> = rest();
            let opm = pflag::parse::<opm::Opm>(&rest).unwrap_or_else(|error| exit::<opm::Opm>(&error, false));
            return Some(opm.run());
        }
        if name == "grpc_health_probe" {
            return Some(health_probe::run(rest()));
        }
        if let Some(result) = in_pod::command::run(&name.to_string_lossy(), rest()) {
            return Some(result);
        }
    }
    None
}

fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {}", error_message(&error));
        ExitCode::FAILURE
    })
}

/// An error and its causes on one line. Most messages contain the message of their cause already. Those are not
/// repeated.
fn error_message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod documentation;

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::error_message;

    #[test]
    fn each_cause_is_printed_once() {
        let error = anyhow!("no such file")
            .context("read a: no such file")
            .context("b cannot be served");
        assert_eq!(error_message(&error), "b cannot be served: read a: no such file");
    }
}
