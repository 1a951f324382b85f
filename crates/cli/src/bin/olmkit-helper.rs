//! The binary of the helper image and of catalog images, which runs in pods.

fn main() -> std::process::ExitCode {
    olmkit_cli::helper()
}
