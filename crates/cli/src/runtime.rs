//! The runtime of commands that use a registry or a cluster.

/// Runs a future to its end on a runtime of this thread.
pub fn block_on<F: Future>(future: F) -> anyhow::Result<F::Output> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}
