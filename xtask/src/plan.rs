//! The jobs of each command, and their costs.

use std::path::Path;

use crate::cargo::Executable;
use crate::job::{Cost, Job, Stage};

/// The flags of every call of cargo. Calls with other flags select other features of shared dependencies, and compile them a
/// second time.
const FLAGS: &str = "--locked --workspace --features manifests";

/// Programs for the tests on a node. The example makes cargo select the features of tests too.
const PROGRAMS: &str =
    "--bin olmkit --bin olmkit-helper --bin memcached-operator --bin manifests --bin node --example custom_test";

/// Name of the job that compiles [`PROGRAMS`].
const PROGRAMS_JOB: &str = "programs";

/// Name of the job that builds the Go programs of a control plane.
const GO_JOB: &str = "control plane programs";

/// Name of the job that builds the other Go programs.
const NODE_JOB: &str = "node programs";

/// Name of the job that renders `config/`, `bundle/` and `catalog/` in a copy.
const RENDERED_JOB: &str = "rendered files";

/// Name of the job that compiles all tests. Its output names the executables.
pub const TESTS_JOB: &str = "tests";

/// The compiler of this repository's crates. Both compile dependencies with rustc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiler {
    /// rustc. A build finds what `cargo build` and `cargo test` have compiled, and lints check all crates once more.
    Rustc,
    /// Clippy's driver, which is rustc with lints. One compilation makes programs, tests and warnings.
    Clippy,
}

impl Compiler {
    /// The same job, with this compiler.
    fn of(self, job: Job) -> Job {
        match self {
            Compiler::Rustc => job,
            Compiler::Clippy => job.set("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
        }
    }
}

/// A test executable that takes long or needs the Go programs.
struct Profile {
    /// Name of its job.
    name: &'static str,
    /// Its cost.
    cost: Cost,
    /// True if it starts control planes and so needs the Go programs.
    control_plane: bool,
    /// Tests that run at the same time for each core. More than one helps if tests mostly wait.
    threads: usize,
}

impl Profile {
    /// A test executable that starts control planes.
    const fn control_plane(name: &'static str, cost: Cost, threads: usize) -> Profile {
        Profile {
            name,
            cost,
            control_plane: true,
            threads,
        }
    }
}

/// The measured costs of long test executables. Others count as [`SHORT`].
const PROFILES: &[Profile] = &[
    Profile::control_plane("olmkit-cli cluster", Cost::new(1.1, 4000, 1070), 1),
    Profile::control_plane("memcached-operator operator", Cost::new(0.7, 2500, 420), 1),
    Profile::control_plane("memcached-operator olm", Cost::new(0.7, 2000, 132), 1),
    Profile::control_plane("kube-manager apply", Cost::new(0.8, 1500, 60), 1),
    Profile::control_plane("kube-manager manager", Cost::new(0.8, 1500, 60), 1),
    Profile::control_plane("kube-manager servers", Cost::new(0.9, 2000, 60), 1),
    Profile::control_plane("kube-manager reconcile", Cost::new(0.8, 1500, 60), 1),
    Profile::control_plane("kube-testbed control_plane", Cost::new(0.8, 1500, 40), 1),
    Profile::control_plane("kube-testbed faults", Cost::new(0.8, 1500, 40), 1),
    Profile::control_plane("kube-testbed first", Cost::new(0.8, 1500, 40), 1),
    Profile::control_plane("kube-testbed proxy", Cost::new(0.8, 1500, 40), 1),
    Profile::control_plane("valkey-operator valkey", Cost::new(0.8, 1500, 60), 1),
];

/// The cost of a test executable that no profile names.
const SHORT: Cost = Cost::new(1.0, 500, 15);

/// The Go programs that tests and the node run.
pub fn programs(root: &Path) -> Vec<Job> {
    let job = |name, command, seconds| {
        Job::new(name, Stage::Build, command, root, Cost::new(1.0, 4000, seconds)).with_precedence()
    };
    vec![
        job(GO_JOB, "dev/tools/build.sh control-plane", 900),
        job(NODE_JOB, "dev/tools/build.sh all actionlint", 300).after(&[GO_JOB]),
    ]
}

/// The builds: first the programs for the tests on a node, because these take longest, then all tests.
pub fn build(root: &Path, compiler: Compiler) -> Vec<Job> {
    let job = |name, command: &str, seconds| {
        let cost = Cost::new(1.5, 6000, seconds);
        compiler.of(Job::new(name, Stage::Build, command, root, cost))
    };
    vec![
        job(PROGRAMS_JOB, &format!("cargo build {FLAGS} {PROGRAMS}"), 2000).with_precedence(),
        job(
            TESTS_JOB,
            &format!("cargo build {FLAGS} --all-targets --message-format json-render-diagnostics"),
            1500,
        )
        .after(&[PROGRAMS_JOB]),
    ]
}

/// The checks of format, lints, dependencies, documentation and generated files. Those that run a program wait for the build.
pub fn verify(root: &Path, xtask: &Path, compiler: Compiler) -> Vec<Job> {
    let job = |name, command: &str, seconds, cores| {
        Job::new(name, Stage::Verify, command, root, Cost::new(cores, 1000, seconds))
    };
    let task = |arguments: &str| format!("{} {arguments}", xtask.display());
    let clippy = format!("cargo clippy {FLAGS} --all-targets -- -D warnings");
    let mut lints = match compiler {
        Compiler::Rustc => job("lints", &clippy, 120, 2.0),
        // Compiles nothing: cargo prints the warnings of the build again.
        Compiler::Clippy => job("lints", &task(&format!("warnings -- {FLAGS} --all-targets")), 5, 1.0),
    };
    lints.alone = clippy;
    // On a new machine the job compiles cargo-deny, which must not be the last thing that happens.
    let deny = if crate::dependencies::is_built() { 5 } else { 300 };
    vec![
        job("format", "cargo fmt --all --check", 5, 1.0),
        job("prose", &task("prose"), 5, 1.0),
        job("dependencies", &task("dependencies"), deny, 1.0),
        job("Go vectors", &task("go-files"), 20, 1.5).after(&[GO_JOB]),
        job("workflows", &task("workflows"), 5, 1.0).after(&[NODE_JOB]),
        compiler.of(lints).after(&[TESTS_JOB]),
        job("sizes", &task("lines"), 5, 1.0).after(&[PROGRAMS_JOB]),
        job("site", &task("site"), 90, 1.5).after(&[TESTS_JOB]),
        job(RENDERED_JOB, &task("rendered"), 10, 1.0)
            .after(&[PROGRAMS_JOB])
            .with_precedence(),
    ]
}

/// The examples in documentation comments.
pub fn documentation(root: &Path, compiler: Compiler) -> Job {
    let command = format!("cargo test {FLAGS} --doc");
    let cost = Cost::new(2.0, 3000, 120);
    let job = Job::new("documentation tests", Stage::Test, &command, root, cost);
    compiler.of(job).after(&[TESTS_JOB])
}

/// The flows on a real node, run by the program of `dev/node` with the other two programs. They take longest, and they wait
/// most of the time. So they and all that they wait for have precedence.
pub fn node(root: &Path, node: &Path, olmkit: &Path, operator: &Path) -> Job {
    let command = format!("{} e2e", node.display());
    let mut job = Job::new("node", Stage::Node, &command, root, Cost::new(0.6, 6000, 2000))
        // The demo renders the files in place, so nothing may copy them at that time.
        .after(&[PROGRAMS_JOB, NODE_JOB, RENDERED_JOB])
        .with_precedence()
        .set("OLMKIT", olmkit.display().to_string())
        .set("OPERATOR", operator.display().to_string())
        // `make build`, which the demo calls, then uses flags and compiler of the build above.
        .set("TESTS", "1");
    "make e2e".clone_into(&mut job.alone);
    job
}

/// The jobs that run test executables.
pub fn tests(executables: &[Executable], cores: usize) -> Vec<Job> {
    executables.iter().map(|executable| test(executable, cores)).collect()
}

fn test(executable: &Executable, cores: usize) -> Job {
    let name = executable.name();
    let profile = PROFILES.iter().find(|profile| profile.name == name);
    let cost = profile.map_or(SHORT, |profile| profile.cost);
    let mut job = Job::new(&name, Stage::Test, "", &executable.directory, cost)
        .set("CARGO_MANIFEST_DIR", executable.directory.display().to_string());
    job.command = vec![executable.path.display().to_string()];
    job.alone = format!("cargo test --locked -p {} {} --", executable.package, executable.flag());
    if let Some(profile) = profile {
        job = job.set("RUST_TEST_THREADS", (profile.threads * cores).to_string());
    }
    if profile.is_some_and(|profile| profile.control_plane) {
        job = job.after(&[GO_JOB]);
    }
    job
}

/// Returns true if the test executable starts control planes. `cargo xtask check` leaves these out.
pub fn needs_control_plane(executable: &Executable) -> bool {
    let name = executable.name();
    PROFILES
        .iter()
        .any(|profile| profile.name == name && profile.control_plane)
}
