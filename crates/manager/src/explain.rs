//! Errors on one line.

/// An error and its causes on one line, without repetitions.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The API server's message, or why there was no response: the client's own text for an error response prints all of it
/// as a Rust value.
pub fn request(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => chain(error),
    }
}

/// Why a watch failed.
pub fn watch(error: &kube::runtime::watcher::Error) -> String {
    use kube::runtime::watcher::Error;
    match error {
        Error::InitialListFailed(source) => format!("cannot list: {}", request(source)),
        Error::WatchStartFailed(source) => format!("cannot watch: {}", request(source)),
        Error::WatchFailed(source) => format!("watch closed: {}", request(source)),
        Error::WatchError(status) => format!("the API server closed the watch: {}", status.message),
        error => chain(error),
    }
}
