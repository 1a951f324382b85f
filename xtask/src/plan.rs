//! The jobs of each command, and their costs.

use std::path::Path;

use crate::cargo::Executable;
use crate::job::{Cost, Job, Stage};

/// Compiles programs, tests and examples with one set of features, so that no crate is compiled twice.
pub const BUILD: &str =
    "cargo build --locked --workspace --all-targets --features manifests --message-format json-render-diagnostics";

/// The flags that `cargo test` needs to use what [`BUILD`] compiled.
const SAME_FEATURES: &str = "--locked --workspace --features manifests";

/// A test executable that needs other treatment than the rest.
struct Profile {
    /// Name of its job.
    name: &'static str,
    /// See [`Cost::cores`].
    cores: f64,
    /// See [`Cost::memory`].
    memory: u64,
    /// See [`Cost::seconds`].
    seconds: u64,
    /// Whether it starts control planes and so needs the Go programs.
    control_plane: bool,
    /// Tests that run at the same time for each core. More than one helps if tests mostly wait.
    threads: usize,
}

/// Measured costs of the long test executables. Others count as [`SHORT`].
const PROFILES: &[Profile] = &[
    Profile {
        name: "olmkit-cli cluster",
        cores: 1.0,
        memory: 4000,
        seconds: 540,
        control_plane: true,
        threads: 1,
    },
    Profile {
        name: "memcached-operator operator",
        cores: 1.0,
        memory: 2500,
        seconds: 300,
        control_plane: true,
        threads: 1,
    },
    Profile {
        name: "memcached-operator olm",
        cores: 0.8,
        memory: 2000,
        seconds: 132,
        control_plane: true,
        threads: 1,
    },
    Profile {
        name: "olmkit-cli command",
        cores: 1.5,
        memory: 2000,
        seconds: 100,
        control_plane: false,
        threads: 1,
    },
    Profile {
        name: "kube-manager manager",
        cores: 0.8,
        memory: 1500,
        seconds: 60,
        control_plane: true,
        threads: 1,
    },
    Profile {
        name: "kube-manager servers",
        cores: 0.5,
        memory: 500,
        seconds: 20,
        control_plane: true,
        threads: 1,
    },
    Profile {
        name: "kube-testbed control_plane",
        cores: 0.8,
        memory: 1500,
        seconds: 40,
        control_plane: true,
        threads: 1,
    },
    Profile {
        name: "kube-testbed faults",
        cores: 0.8,
        memory: 1500,
        seconds: 40,
        control_plane: true,
        threads: 1,
    },
];

/// The cost of a test executable that no profile names.
const SHORT: Cost = Cost {
    cores: 1.0,
    memory: 500,
    seconds: 15,
};

/// The Go programs that tests and the node run.
pub fn programs(root: &Path) -> Vec<Job> {
    let compiler = |seconds| Cost {
        cores: 1.0,
        memory: 4000,
        seconds,
    };
    vec![
        Job::new(
            "control plane programs",
            Stage::Build,
            "dev/tools/build.sh control-plane",
            root,
            compiler(900),
        ),
        Job::new(
            "node programs",
            Stage::Build,
            "dev/tools/build.sh all actionlint",
            root,
            compiler(300),
        )
        .after(&["control plane programs"]),
    ]
}

/// The build of all programs and tests.
pub fn build(root: &Path) -> Job {
    Job::new(
        "programs and tests",
        Stage::Build,
        BUILD,
        root,
        Cost {
            cores: 1.5,
            memory: 6000,
            seconds: 1000,
        },
    )
}

/// The checks of format, lints, dependencies, documentation and generated files. Those that run a program wait for the build.
pub fn verify(root: &Path, olmkit: &Path) -> Vec<Job> {
    let job = |name, command: &str, seconds, cores| {
        Job::new(
            name,
            Stage::Verify,
            command,
            root,
            Cost {
                cores,
                memory: 1000,
                seconds,
            },
        )
    };
    let clippy = "cargo clippy --locked --workspace --all-targets --features manifests -- -D warnings";
    vec![
        job("format", "cargo fmt --all --check", 5, 1.0),
        job("dependencies", "dev/deny.sh", 5, 1.0),
        job("Go vectors", "dev/generated-by-go.sh", 20, 1.5).after(&["control plane programs"]),
        job("workflows", "dev/lint-workflows.sh", 5, 1.0).after(&["node programs"]),
        job("lints", clippy, 120, 2.0).after(&["programs and tests"]),
        job("site", "dev/site.sh", 90, 1.5).after(&["programs and tests"]),
        job("rendered files", "dev/rendered.sh", 10, 1.0).after(&["programs and tests"]),
        job(
            "hot functions",
            &format!("dev/layout/hot-functions.sh --check {}", olmkit.display()),
            5,
            1.0,
        )
        .after(&["programs and tests"]),
    ]
}

/// The examples in documentation comments.
pub fn documentation(root: &Path) -> Job {
    let command = format!("cargo test {SAME_FEATURES} --doc");
    Job::new(
        "documentation tests",
        Stage::Test,
        &command,
        root,
        Cost {
            cores: 2.0,
            memory: 3000,
            seconds: 120,
        },
    )
    .after(&["programs and tests"])
}

/// The flows on a real node, with the given programs.
pub fn node(root: &Path, olmkit: &Path, operator: &Path) -> Job {
    Job::new(
        "node",
        Stage::Node,
        "dev/e2e.sh",
        root,
        Cost {
            cores: 0.9,
            memory: 6000,
            seconds: 1100,
        },
    )
    .after(&["programs and tests", "node programs"])
    .set("OLMKIT", olmkit.display().to_string())
    .set("OPERATOR", operator.display().to_string())
}

/// The jobs that run test executables.
pub fn tests(executables: &[Executable], cores: usize) -> Vec<Job> {
    executables.iter().map(|executable| test(executable, cores)).collect()
}

fn test(executable: &Executable, cores: usize) -> Job {
    let name = executable.name();
    let profile = PROFILES.iter().find(|profile| profile.name == name);
    let cost = profile.map_or(SHORT, |profile| Cost {
        cores: profile.cores,
        memory: profile.memory,
        seconds: profile.seconds,
    });
    let mut job = Job::new(&name, Stage::Test, "", &executable.directory, cost)
        .set("CARGO_MANIFEST_DIR", executable.directory.display().to_string());
    job.command = vec![executable.path.display().to_string()];
    job.alone = format!("cargo test --locked -p {} {} --", executable.package, executable.flag());
    if let Some(profile) = profile {
        job = job.set("RUST_TEST_THREADS", (profile.threads * cores).to_string());
    }
    if profile.is_some_and(|profile| profile.control_plane) {
        job = job.after(&["control plane programs"]);
    }
    job
}

/// Whether the test executable starts control planes. `cargo xtask check` leaves these out.
pub fn needs_control_plane(executable: &Executable) -> bool {
    let name = executable.name();
    PROFILES
        .iter()
        .any(|profile| profile.name == name && profile.control_plane)
}
