//! The `olmkit` command.

fn main() -> std::process::ExitCode {
    olmkit_cli::olmkit()
}
