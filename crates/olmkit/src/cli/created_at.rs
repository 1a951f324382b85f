//! The time that is written into what is made.

use anyhow::Context as _;

/// `SOURCE_DATE_EPOCH` when it is set, else the time of the last commit, else the clock; RFC 3339 in UTC. A build from the
/// same sources gives the same time in the first two cases.
pub fn now() -> anyhow::Result<String> {
    let time = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => {
            let seconds: i64 = seconds.trim().parse().with_context(|| {
                format!("SOURCE_DATE_EPOCH is {seconds:?}; it must be a number of seconds since 1970")
            })?;
            jiff::Timestamp::from_second(seconds).context("SOURCE_DATE_EPOCH is out of range")?
        }
        Err(_) => commit_time().unwrap_or_else(jiff::Timestamp::now),
    };
    Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn commit_time() -> Option<jiff::Timestamp> {
    let output = std::process::Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .output()
        .ok()?;
    let seconds: i64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    jiff::Timestamp::from_second(seconds).ok()
}
