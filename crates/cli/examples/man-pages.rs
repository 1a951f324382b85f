//! Writes a man page for `olmkit` and for each of its commands to a directory: `cargo run --example man-pages
//! DIRECTORY`. An example and not a command, because only packagers need the pages.

use std::path::PathBuf;

use clap::CommandFactory as _;

fn main() -> anyhow::Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.ok_or_else(|| anyhow::anyhow!("usage: man-pages DIRECTORY"))?;
    std::fs::create_dir_all(&directory)?;
    clap_mangen::generate_to(olmkit_cli::Cli::command(), &directory)?;
    Ok(())
}
