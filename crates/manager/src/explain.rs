//! Errors in one line for people.

/// An error with its causes in one line, each said once.
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

/// What the API server answered, or why it did not: the client's own text for a refusal prints the whole answer as a
/// Rust value.
pub fn request(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => chain(error),
    }
}

/// Why a watch broke.
pub fn watch(error: &kube::runtime::watcher::Error) -> String {
    use kube::runtime::watcher::Error;
    match error {
        Error::InitialListFailed(source) => format!("cannot list: {}", request(source)),
        Error::WatchStartFailed(source) => format!("cannot watch: {}", request(source)),
        Error::WatchFailed(source) => format!("the watch ended: {}", request(source)),
        Error::WatchError(status) => format!("the server ended the watch: {}", status.message),
        error => chain(error),
    }
}
