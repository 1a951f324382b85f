//! An operator whose log cannot be written.
use std::{
    fs::File,
    process::{Command, Stdio},
};

/// Logging goes on as if lines were written, and the end is an error, not a panic.
#[test]
fn a_full_device_is_not_the_end_of_the_operator() {
    for (argument, out) in [
        ("--log-level=info", Stdio::null()),
        ("--log-level=loud", Stdio::null()),
        ("--nosuch", Stdio::null()),
        ("--help", full()),
    ] {
        let status = Command::new(env!("CARGO_BIN_EXE_memcached-operator"))
            .arg(argument)
            .env_clear()
            .env("KUBECONFIG", "/nonexistent")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(full())
            .status()
            .unwrap();
        let wanted = match argument {
            "--help" => 0,
            "--nosuch" => 2,
            _ => 1,
        };
        assert_eq!(status.code(), Some(wanted), "{argument}");
    }
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}
