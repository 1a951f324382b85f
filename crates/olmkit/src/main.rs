//! The `olmkit` command.

fn main() -> std::process::ExitCode {
    olmkit::program::olmkit()
}
