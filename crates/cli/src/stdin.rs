//! Reads standard input.

use std::io::IsTerminal as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::mpsc;
use std::time::Duration;

/// A pipe or a file, not a terminal and not `/dev/null`.
pub fn is_redirected() -> bool {
    if std::io::stdin().is_terminal() {
        return false;
    }
    std::fs::metadata("/dev/stdin").is_ok_and(|about| {
        let kind = about.file_type();
        kind.is_fifo() || kind.is_file() || kind.is_socket()
    })
}

/// Returns true if standard input is a pipe with data. CI systems pass an open pipe without data, which does not count
/// as input, so a short wait decides.
pub fn has_data() -> bool {
    let is_pipe = std::fs::metadata("/dev/stdin").is_ok_and(|about| about.file_type().is_fifo());
    if !is_pipe {
        return false;
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let read = std::io::Read::read(&mut std::io::stdin(), &mut [0u8; 1]);
        let _ = sender.send(read.is_ok_and(|count| count > 0));
    });
    receiver.recv_timeout(Duration::from_millis(200)).unwrap_or(false)
}
