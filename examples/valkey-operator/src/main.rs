//! Runs the operator.
use clap::Parser as _;
use kube_manager::{Manager, log, options::Options};
use valkey_operator::{NAME, controller::controller};

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    manager: Options,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Flags::parse().manager;
    let level = log::init(&options)?;
    let manager = Manager::builder(NAME).options(options).log_level(level).start().await?;
    manager.add(controller());
    Ok(manager.run().await?)
}
