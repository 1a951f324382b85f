//! Removes objects and waits until they are deleted.

use std::time::{Duration, Instant};

use super::Error;
use super::client::{Cluster, ObjectRef};
use super::reporter::ProgressLog;

/// Removes objects and reports each removed one; `removed` collects them. Returns the objects that still exist at the
/// end of the time limit.
///
/// # Errors
/// [`Error::Request`].
pub async fn remove(
    cluster: &Cluster,
    objects: &[ObjectRef],
    deadline: Instant,
    removed: &mut Vec<ObjectRef>,
    progress: &mut ProgressLog<'_>,
) -> Result<Vec<ObjectRef>, Error> {
    let mut waiting = Vec::new();
    for object in objects {
        if cluster.delete(object).await? {
            waiting.push(object.clone());
        }
    }
    let mut pause = Duration::from_millis(100);
    loop {
        let mut left = Vec::new();
        for object in waiting {
            match cluster.get(&object).await? {
                Some(found) => {
                    // OLM creates its Operator object again while any object has the label.
                    if found.pointer("/metadata/deletionTimestamp").is_none() {
                        cluster.delete(&object).await?;
                    }
                    left.push(object);
                }
                None => {
                    progress.done(format!("{object}: removed"));
                    removed.push(object);
                }
            }
        }
        waiting = left;
        let Some(first) = waiting.first() else {
            return Ok(waiting);
        };
        if Instant::now() > deadline {
            return Ok(waiting);
        }
        progress.waiting(format!("{first} to be deleted"));
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}
