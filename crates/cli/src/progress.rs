//! Progress on stderr: a bar, lines, or nothing.

use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as Style};
use pgclinic_model::Progress;

use crate::env::Terminal;
use crate::output::{OutputArgs, ProgressStyle};

/// What is printed of progress without a bar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    None,
    Tenths,
    Bytes,
}

/// A line of bytes says so many more than the one before, or a hundredth more.
const BYTES_STEP: u64 = 1 << 20;

/// While nobody knows how much lies ahead: no share, and no time left.
const UNKNOWN_TOTAL: &str = "{spinner} {bytes} read, {bytes_per_sec}, {elapsed}";
/// The share of all that lies ahead.
const KNOWN_TOTAL: &str = "{spinner} {bar:32} {percent} %, {elapsed}, {eta} left";
/// All that was foreseen is read, and the run looks at more than that.
const LAST_PART: &str = "{spinner} {bar:32} 99 %, {elapsed}, the last part";
/// Without a total, plain progress has a line at this many bytes, and at each doubling of them.
const FIRST_LINE_BYTES: u64 = 256 << 20;

/// A bar that may be hidden, and the flag that stops the run. It never falls back, and is full when
/// the run is over.
pub(crate) struct Bar {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
    lines: Lines,
    told: std::sync::Mutex<u64>,
    /// Bytes that lay ahead until everything was foreseen; nothing where steps are counted.
    bytes: Option<Ahead>,
}

/// Bytes of a run.
#[derive(Default)]
struct Ahead {
    expected: AtomicU64,
    /// All of them were expected.
    is_foreseen: AtomicBool,
    is_last_part: AtomicBool,
}

impl Bar {
    /// For bytes.
    pub(crate) fn of_bytes(
        output: &OutputArgs,
        terminal: Terminal,
        interrupted: &Arc<AtomicBool>,
    ) -> Self {
        let mut bar = Bar::new(output, terminal, interrupted, 0);
        bar.bar.unset_length();
        bar.bytes = Some(Ahead::default());
        bar.style(UNKNOWN_TOTAL);
        bar
    }

    /// For so many steps with a word each.
    pub(crate) fn of_steps(
        output: &OutputArgs,
        terminal: Terminal,
        interrupted: &Arc<AtomicBool>,
        steps: u64,
    ) -> Self {
        let bar = Bar::new(output, terminal, interrupted, steps);
        bar.style("{spinner} {bar:24} {pos} of {len}, {msg}");
        bar
    }

    fn new(
        output: &OutputArgs,
        terminal: Terminal,
        interrupted: &Arc<AtomicBool>,
        length: u64,
    ) -> Self {
        let shown = match output.progress {
            _ if output.quiet => false,
            ProgressStyle::Auto => terminal.stderr,
            ProgressStyle::Bar => true,
            ProgressStyle::Plain | ProgressStyle::Bytes | ProgressStyle::None => false,
        };
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        if shown {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        let lines = match output.progress {
            ProgressStyle::Plain if !output.quiet => Lines::Tenths,
            ProgressStyle::Bytes if !output.quiet => Lines::Bytes,
            _ => Lines::None,
        };
        Bar {
            bar,
            interrupted: Arc::clone(interrupted),
            lines,
            told: std::sync::Mutex::new(0),
            bytes: None,
        }
    }

    fn style(&self, template: &str) {
        let style = Style::with_template(template).unwrap_or_else(|_| Style::default_bar());
        self.bar.set_style(style.progress_chars("=> "));
    }

    /// One step of this name is done.
    pub(crate) fn step(&self, name: &str) {
        self.bar.set_message(name.to_owned());
        self.bar.inc(1);
        self.line();
    }

    /// So many steps are done, and one of this name begins.
    pub(crate) fn at(&self, done: usize, name: &str) {
        self.bar
            .set_position(u64::try_from(done).unwrap_or(u64::MAX));
        self.bar.set_message(name.to_owned());
    }

    /// A line above the bar, or among the lines of plain progress.
    pub(crate) fn tell(&self, line: &str) {
        if self.lines != Lines::None || !self.bar.is_hidden() {
            self.bar.suspend(|| {
                let _unheard = writeln!(stderr(), "{line}");
            });
        }
    }

    /// Prints above the bar.
    pub(crate) fn above(&self, print: &mut dyn FnMut()) {
        self.bar.suspend(print);
    }

    fn line(&self) {
        match self.lines {
            Lines::None => {}
            Lines::Tenths => self.line_of_tenth(),
            Lines::Bytes => self.line_of_bytes(),
        }
    }

    fn line_of_bytes(&self) {
        let position = self.bar.position();
        let mut told = self.told.lock().expect("no thread panics with it");
        if position >= *told + BYTES_STEP + *told / 100 {
            *told = position;
            let _unheard = writeln!(stderr(), "{position} bytes done");
        }
    }

    /// A line for every tenth of the way; for every doubling of the bytes where nobody knows it.
    fn line_of_tenth(&self) {
        let position = self.bar.position();
        let mut told = self.told.lock().expect("no thread panics with it");
        match self.bar.length() {
            Some(length) => {
                let tenth = position * 10 / length.max(1);
                if tenth > *told {
                    *told = tenth;
                    let _unheard = writeln!(stderr(), "{} % done", tenth * 10);
                }
            }
            None if position >= told.saturating_mul(2).max(FIRST_LINE_BYTES) => {
                *told = position;
                let _unheard = writeln!(stderr(), "{} MiB read", position >> 20);
            }
            None => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        // What comes after all was foreseen moves the end of no bar.
        if let Some(ahead) = &self.bytes
            && !ahead.is_foreseen.load(Ordering::Relaxed)
        {
            ahead.expected.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn foresee(&self) {
        let Some(ahead) = &self.bytes else {
            return;
        };
        let expected = ahead.expected.load(Ordering::Relaxed);
        if expected > 0 && !ahead.is_foreseen.swap(true, Ordering::Relaxed) {
            *self.told.lock().expect("no thread panics with it") = 0;
            self.bar.set_length(expected);
            self.style(KNOWN_TOTAL);
        }
    }

    fn advance(&self, bytes: u64) {
        match (&self.bytes, self.bar.length()) {
            (Some(ahead), Some(length)) => {
                // A hundredth is kept for the end, so that 100 % never stands there before it.
                let most = length - length.div_ceil(100);
                let left = most.saturating_sub(self.bar.position());
                self.bar.inc(bytes.min(left));
                if bytes > left && !ahead.is_last_part.swap(true, Ordering::Relaxed) {
                    self.style(LAST_PART);
                }
            }
            _ => self.bar.inc(bytes),
        }
        self.line();
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar() -> Bar {
        Bar {
            bar: ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()),
            interrupted: Arc::default(),
            lines: Lines::None,
            told: std::sync::Mutex::new(0),
            bytes: Some(Ahead::default()),
        }
    }

    #[test]
    fn no_share_is_shown_before_all_is_foreseen_and_none_falls_back() {
        let bar = bar();
        bar.bar.unset_length();
        bar.expect(100);
        bar.advance(40);
        assert_eq!(bar.bar.length(), None);
        bar.expect(100);
        bar.foresee();
        assert_eq!((bar.bar.position(), bar.bar.length()), (40, Some(200)));
        bar.expect(1000);
        bar.advance(500);
        assert_eq!((bar.bar.position(), bar.bar.length()), (198, Some(200)));
    }
}
