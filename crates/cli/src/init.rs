//! `olmkit init`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use olmkit::object::UntrustedText;
use olmkit_scaffold::{Error, Init, License, Source};

use crate::create::{scaffolded, show};

/// Create an operator project in Rust
///
/// Generates a project with build, tests and packaging. Asks no questions and needs no network. The directory must be empty or
/// a fresh clone: hidden files, Markdown files and LICENSE are kept. Next, add a kind with `olmkit create api`.
///
/// For an operator in Go or an operator from a Helm chart or Ansible roles, start with operator-sdk or kubebuilder, and run
/// `olmkit adopt` in that project.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit init --domain example.com",
    "olmkit init --domain example.com --project-name cache-operator --directory cache-operator"
])]
pub struct Args {
    /// Domain for API groups, such as example.com
    #[arg(long, default_value = "my.domain")]
    domain: String,
    /// Project name [default: the directory's name]
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,
    /// License of the project
    #[arg(long, value_enum, default_value = "apache2")]
    license: Licenses,
    /// Watch only the namespace that the operator runs in
    #[arg(long)]
    namespaced: bool,
    /// Use one directory per API group
    #[arg(long)]
    multigroup: bool,
    /// Source of olmkit's libraries: registry, git:URL[#TAG] or path:DIRECTORY
    #[arg(long, env = "OLMKIT_SOURCE", default_value = "registry")]
    source: String,
    /// Project directory
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
    #[command(flatten)]
    other: OtherLanguages,
}

// The flags of operator-sdk's plugins. No doc comment: it would become the command's help.
#[derive(clap::Args)]
struct OtherLanguages {
    /// Not supported: olmkit scaffolds operators in Rust only
    #[arg(long, hide = true, value_delimiter = ',')]
    plugins: Vec<String>,
    /// Not supported: Go modules
    #[arg(long, hide = true)]
    repo: Option<String>,
    /// Not supported: Go modules
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fetch_deps: Option<bool>,
    /// Not supported: the version of Go
    #[arg(long, hide = true)]
    skip_go_version_check: bool,
    /// Not supported: copyright headers of Go files
    #[arg(long, hide = true)]
    owner: Option<String>,
    /// Ignored (operator-sdk compatibility): PROJECT files have version 3
    #[arg(long = "project-version", hide = true, value_parser = ["3"])]
    _project_version: Option<String>,
    /// Not supported: API group of an operator from a Helm chart or Ansible roles
    #[arg(long, hide = true)]
    group: Option<String>,
    /// Not supported: API version of an operator from a Helm chart or Ansible roles
    #[arg(long = "version", hide = true)]
    api_version: Option<String>,
    /// Not supported: kind of an operator from a Helm chart or Ansible roles
    #[arg(long, hide = true)]
    kind: Option<String>,
    /// Not supported: Helm charts
    #[arg(long, hide = true)]
    helm_chart: Option<String>,
    /// Not supported: Helm charts
    #[arg(long, hide = true)]
    helm_chart_repo: Option<String>,
    /// Not supported: Helm charts
    #[arg(long, hide = true)]
    helm_chart_version: Option<String>,
    /// Not supported: Ansible roles
    #[arg(long, hide = true)]
    generate_role: bool,
    /// Not supported: Ansible playbooks
    #[arg(long, hide = true)]
    generate_playbook: bool,
}

impl OtherLanguages {
    /// A requested project type that olmkit does not scaffold: the flag, and the name of the plugin for `operator-sdk
    /// init`.
    fn asked(&self) -> Option<(String, &str)> {
        // Keys are such as helm, helm.sdk.operatorframework.io/v1 and go.kubebuilder.io/v4.
        if let Some(plugin) = self.plugins.first().filter(|_| !self.is_rust()) {
            return Some((format!("--plugins={}", self.plugins.join(",")), plugin));
        }
        let go = [
            ("--repo", self.repo.is_some()),
            ("--fetch-deps", self.fetch_deps.is_some()),
            ("--skip-go-version-check", self.skip_go_version_check),
            ("--owner", self.owner.is_some()),
        ];
        let helm = [
            ("--helm-chart", self.helm_chart.is_some()),
            ("--helm-chart-repo", self.helm_chart_repo.is_some()),
            ("--helm-chart-version", self.helm_chart_version.is_some()),
        ];
        let ansible = [
            ("--generate-role", self.generate_role),
            ("--generate-playbook", self.generate_playbook),
        ];
        let first = |flags: &[(&str, bool)]| {
            flags
                .iter()
                .find(|(_, given)| *given)
                .map(|(flag, _)| (*flag).to_owned())
        };
        let of = |plugin, flag: Option<String>| flag.map(|flag| (flag, plugin));
        of("go", first(&go))
            .or_else(|| of("helm", first(&helm)))
            .or_else(|| of("ansible", first(&ansible)))
    }

    fn is_rust(&self) -> bool {
        self.plugins.iter().all(|plugin| plugin == "rust")
    }
}

/// Points users of other languages to operator-sdk.
fn elsewhere(flag: &str, plugin: &str) -> Error {
    let start = match plugin.split(['.', '/']).next() {
        Some("helm") => "an operator from a Helm chart",
        Some("ansible") => "an operator from Ansible roles",
        Some("go" | "kustomize" | "declarative") => "an operator in Go",
        _ => "other operators",
    };
    Error::Usage(format!(
        "{flag}: olmkit init scaffolds operators in Rust; start {start} with `operator-sdk init --plugins={plugin}` of \
         operator-sdk itself, then run `olmkit adopt` in that project"
    ))
}

#[derive(Clone, Copy, ValueEnum)]
enum Licenses {
    /// Apache License, version 2.0
    Apache2,
    /// No license file
    None,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        if let Some((flag, plugin)) = args.other.asked() {
            return Err(elsewhere(&UntrustedText::new(&flag).to_string(), plugin));
        }
        if args.other.group.is_some() || args.other.api_version.is_some() || args.other.kind.is_some() {
            return Err(Error::Usage(
                "--group, --version and --kind belong to `olmkit create api`; run it after olmkit init".to_owned(),
            ));
        }
        let report = olmkit_scaffold::init(
            &args.directory,
            &Init {
                domain: args.domain.clone(),
                name: args.project_name.clone(),
                license: match args.license {
                    Licenses::Apache2 => License::Apache2,
                    Licenses::None => License::None,
                },
                namespaced: args.namespaced,
                multigroup: args.multigroup,
                source: args.source.parse::<Source>()?,
            },
        )?;
        show(&report);
        note_unreleased(&args.source);
        note!("Next: olmkit create api --group GROUP --version v1alpha1 --kind KIND");
        Ok(())
    })
}

/// Reports a project that Cargo cannot build, because olmkit's libraries are in no registry yet.
pub fn note_unreleased(source: &str) {
    if source == "registry" && !olmkit_scaffold::IS_RELEASED {
        note!(
            "note: olmkit's libraries have no release yet, so Cargo cannot download them; pass --source path:DIRECTORY \
             with a checkout of olmkit"
        );
    }
}
