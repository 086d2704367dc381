//! Progress on stderr: a bar, lines, or nothing.

use std::io::{Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// A bar that may be hidden, and the flag that stops the run.
pub(crate) struct Bar {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
    lines: Lines,
    told: std::sync::Mutex<u64>,
}

impl Bar {
    /// For bytes.
    pub(crate) fn of_bytes(
        output: &OutputArgs,
        terminal: Terminal,
        interrupted: &Arc<AtomicBool>,
    ) -> Self {
        let bar = Bar::new(output, terminal, interrupted, 0);
        bar.style("{spinner} {bar:32} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
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

    /// With plain progress, a line for every tenth of the way.
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

    fn line_of_tenth(&self) {
        let tenth = self.bar.position() * 10 / self.bar.length().unwrap_or(0).max(1);
        let mut told = self.told.lock().expect("no thread panics with it");
        if tenth > *told {
            *told = tenth;
            let _unheard = writeln!(stderr(), "{} % done", tenth * 10);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        self.bar.inc_length(bytes);
    }

    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
        self.line();
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
