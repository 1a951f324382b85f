//! What runs in pods: the programs of the helper image and of catalog images.

fn main() -> std::process::ExitCode {
    olmkit_cli::helper()
}
