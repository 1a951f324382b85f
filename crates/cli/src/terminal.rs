//! The only access to standard output and standard error. Output contains untrusted names and messages. They cannot
//! control the terminal, or the workflow that runs the command.
//!
//! `println!` and its kin are those of this file in every module of the crate.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use olmkit::limits;
use olmkit::object::UntrustedText;
use serde::Serialize;
use tracing_subscriber::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Prints to standard output, as the macro of the standard library does, through [`output`].
#[allow(unused_macros)] // whoever needs it must not meet that of the standard library
macro_rules! print {
    ($($argument:tt)*) => { $crate::terminal::print(&mut $crate::terminal::output(), format_args!($($argument)*), "") };
}

/// Prints a line to standard output through [`output`].
macro_rules! println {
    ($($argument:tt)*) => { $crate::terminal::print(&mut $crate::terminal::output(), format_args!($($argument)*), "\n") };
}

/// Prints to standard error through [`errors`].
macro_rules! eprint {
    ($($argument:tt)*) => { $crate::terminal::print(&mut $crate::terminal::errors(), format_args!($($argument)*), "") };
}

/// Prints a line to standard error through [`errors`].
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::terminal::print(&mut $crate::terminal::errors(), format_args!($($argument)*), "\n") };
}

/// Prints a line to standard error that is neither result nor error: progress and next steps. Not with `--quiet`.
macro_rules! note {
    ($($argument:tt)*) => { if !$crate::terminal::is_quiet() { eprintln!($($argument)*) } };
}

/// True if [`note!`] and progress are silent.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Decides for the whole process that only results and errors are printed.
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Returns true if only results and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// When the output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR or TERM=dumb is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Decides for the whole process.
pub fn set_color(color: Color) {
    match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// From now on our crates log to standard error: requests too, or warnings only.
pub fn log(requests: bool) {
    let level = if requests {
        tracing::Level::DEBUG
    } else {
        tracing::Level::WARN
    };
    let ours = ["olmkit_cluster", "olmkit_oci"].map(|name| (name, level));
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_target(false)
        .with_writer(errors);
    let log = match requests {
        true => log.boxed(),
        false => log.without_time().boxed(),
    };
    let filter = tracing_subscriber::filter::Targets::new().with_targets(ours);
    // A test may have set one before.
    let _ = tracing_subscriber::registry().with(log).with(filter).try_init();
}

/// Standard output as text, without styles. Long names, which untrusted input may repeat in each line, are shortened.
pub fn output() -> Text<impl Write> {
    Text::new(stdout(), Styles::Refused).shortened(limits::quoted)
}

/// Standard output for JSON, which means the same afterwards, and for lists that a program reads. Nothing is shortened.
pub fn data() -> Text<impl Write> {
    Text::new(stdout(), Styles::Refused)
}

/// Prints a result as JSON.
///
/// # Errors
/// Prints a result as JSON.
pub fn json(result: &(impl Serialize + ?Sized)) -> anyhow::Result<()> {
    let mut out = data();
    serde_json::to_writer_pretty(&mut out, result)?;
    Ok(writeln!(out)?)
}

/// Standard output for text with our styles. The caller wraps untrusted parts in [`UntrustedText`], because colors pass
/// through. They are removed if the output is not a terminal.
pub fn styled_output() -> Text<impl Write> {
    let output = anstream::AutoStream::auto(io::stdout().lock());
    let styles = match output.current_choice() {
        anstream::ColorChoice::Never => Styles::Removed,
        _ => Styles::Kept,
    };
    Text::new(Output(output), styles).shortened(limits::quoted)
}

/// Standard output for machine-readable documents: YAML, Mermaid, SVG, scripts. Their writers escape untrusted parts,
/// so files and pipes receive the output unchanged.
pub fn document() -> Box<dyn Write> {
    if io::stdout().is_terminal() {
        Box::new(Text::new(stdout(), Styles::Refused))
    } else {
        Box::new(stdout())
    }
}

/// Standard output for our workflow commands, whose writer escapes untrusted parts.
pub fn workflow_commands() -> impl Write {
    stdout()
}

/// Standard output, which every function above writes to.
fn stdout() -> Output<io::StdoutLock<'static>> {
    Output(io::stdout().lock())
}

/// A writer whose reader may close the pipe, as `head` does. The rest of the output is then discarded: the command still does
/// all of its work, reports no error and keeps its exit code.
struct Output<W: Write>(W);

/// The result of writing `all`, unless the reader has closed the pipe.
fn unless_closed<T>(result: io::Result<T>, all: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(all),
        result => result,
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// Standard error, which limits each line to the length of a message.
pub fn errors() -> Text<impl Write> {
    Text::new(io::stderr().lock(), Styles::Refused).shortened(|line| Cow::Owned(limits::message(line)))
}

/// Ends the process with clap's output: an error, the help or the version. The arguments in an error are untrusted.
pub fn exit(error: &clap::Error) -> ! {
    if error.use_stderr() {
        let mut errors = Text::new(anstream::AutoStream::auto(io::stderr().lock()), Styles::Kept);
        print_rendered(&mut errors, error);
    } else {
        print_rendered(&mut styled_output(), error);
    }
    std::process::exit(error.exit_code())
}

/// Ends the process successfully, with the help that an error consists of.
pub fn exit_with_help(error: &clap::Error) -> ! {
    print_rendered(&mut styled_output(), error);
    std::process::exit(0)
}

fn print_rendered(to: &mut dyn Write, error: &clap::Error) {
    print(to, format_args!("{}", error.render().ansi()), "");
}

/// Implements the macros. A write error is dropped, because no reader is left.
pub fn print(to: &mut dyn Write, text: std::fmt::Arguments<'_>, end: &str) {
    let _ = to
        .write_fmt(text)
        .and_then(|()| to.write_all(end.as_bytes()))
        .and_then(|()| to.flush());
}

/// The examples at the end of a command's help.
macro_rules! examples {
    ($($example:literal),+ $(,)?) => { concat!("Examples:" $(, "\n  ", $example)+) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Styles {
    Kept,
    /// Read as those that are kept, and not written: one write for each text, where [`anstream::AutoStream`] needs one for each
    /// piece between two styles.
    Removed,
    Refused,
}

/// A text writer that keeps line ends and tabs, and escapes the same characters as [`UntrustedText`], and GitHub's
/// workflow commands: `::` at the beginning of a line and `##[` anywhere.
///
/// It writes whole lines. The rest after the last line end is written when it is flushed or dropped.
pub struct Text<W: Write> {
    inner: W,
    styles: Styles,
    shorten: Shorten,
    pending: Vec<u8>,
}

/// Shortens a line before it is shown.
type Shorten = for<'l> fn(&'l str) -> Cow<'l, str>;

impl<W: Write> Text<W> {
    fn new(inner: W, styles: Styles) -> Self {
        Self {
            inner,
            styles,
            shorten: |line| Cow::Borrowed(line),
            pending: Vec::new(),
        }
    }

    fn shortened(mut self, shorten: Shorten) -> Self {
        self.shorten = shorten;
        self
    }

    fn write_pending(&mut self, upto: usize) -> io::Result<()> {
        let bytes: Vec<u8> = self.pending.drain(..upto).collect();
        let text = String::from_utf8_lossy(&bytes);
        let mut safe = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            self.add_line(&(self.shorten)(line), &mut safe);
        }
        if self.styles == Styles::Removed {
            safe = anstream::adapter::strip_str(&safe).to_string();
        }
        self.inner.write_all(safe.as_bytes())
    }

    fn add_line(&self, line: &str, safe: &mut String) {
        let line = line.replace("##[", "#\\u0023[");
        let (blanks, rest) = line.split_at(self.indentation(&line));
        match rest.strip_prefix("::") {
            Some(rest) => {
                self.add(blanks, safe);
                safe.push_str("\\u003a:");
                self.add(rest, safe);
            }
            None => self.add(&line, safe),
        }
    }

    /// Number of bytes at the start of a line that the runner ignores: spaces, and styles, which may be removed later.
    fn indentation(&self, line: &str) -> usize {
        let mut rest = line.trim_start();
        while self.styles != Styles::Refused
            && let Some(after) = rest.strip_prefix("\u{1b}[")
            && let Some(after) = after.trim_start_matches(is_of_style).strip_prefix('m')
        {
            rest = after.trim_start();
        }
        line.len() - rest.len()
    }

    fn add(&self, text: &str, safe: &mut String) {
        let mut rest = text;
        while self.styles != Styles::Refused
            && let Some((before, after)) = rest.split_once("\u{1b}[")
            && let Some(end) = after.find(|c| !is_of_style(c))
        {
            safe.push_str(&UntrustedText::lines(before).to_string());
            let (numbers, tail) = after.split_at(end);
            // Sequences for colors and weights end in an m. All others move the cursor, query or answer.
            if let Some(tail) = tail.strip_prefix('m') {
                safe.push_str("\u{1b}[");
                safe.push_str(numbers);
                safe.push('m');
                rest = tail;
            } else {
                safe.push_str("\\u001b[");
                rest = after;
            }
        }
        safe.push_str(&UntrustedText::lines(rest).to_string());
    }
}

/// Returns true if a character is allowed inside a style sequence.
fn is_of_style(c: char) -> bool {
    matches!(c, '0'..='9' | ';' | ':')
}

impl<W: Write> Write for Text<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            let upto = self.pending.len() - bytes.len() + end + 1;
            self.write_pending(upto)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_pending(self.pending.len())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Text<W> {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]], styles: Styles) -> String {
        let mut out = Vec::new();
        let mut text = Text::new(&mut out, styles);
        for piece in pieces {
            text.write_all(piece).unwrap();
        }
        drop(text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_to_a_terminal_become_visible() {
        let hostile = "a\u{1b}]52;c;cm0=\u{7}\u{9b}2J\r\u{202e}b\tc\n";
        let shown = "a\\u001b]52;c;cm0=\\u0007\\u009b2J\\r\\u202eb\tc\n";
        for styles in [Styles::Refused, Styles::Kept] {
            assert_eq!(written(&[hostile.as_bytes()], styles), shown);
            // For any split of the input.
            let bytes: Vec<&[u8]> = hostile.as_bytes().chunks(1).collect();
            assert_eq!(written(&bytes, styles), shown);
        }
        assert_eq!(written(&[b"\xff\xfe"], Styles::Refused), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn styles_pass_where_they_are_wanted_and_nothing_else_that_begins_so() {
        let text = "\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{1b}[?25l\u{1b}[31\n";
        assert_eq!(
            written(&[text.as_bytes()], Styles::Kept),
            "\u{1b}[1;31mred\u{1b}[0m \\u001b[2J\\u001b[?25l\\u001b[31\n"
        );
        assert!(!written(&[text.as_bytes()], Styles::Refused).contains('\u{1b}'));
    }

    #[test]
    fn no_line_is_a_workflow_command() {
        let text = "a ::b\n::error::c\n \t::debug::d\nx ##[error]e\n";
        assert_eq!(
            written(&[text.as_bytes()], Styles::Refused),
            "a ::b\n\\u003a:error::c\n \t\\u003a:debug::d\nx #\\u0023[error]e\n"
        );
        // Nor when the styles before it are removed.
        assert_eq!(
            written(&[b"\x1b[1m  \x1b[0m ::error::c\n"], Styles::Kept),
            "\u{1b}[1m  \u{1b}[0m \\u003a:error::c\n"
        );
    }
}
