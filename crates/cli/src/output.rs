//! Where a document goes: stdout, or a file that appears whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pgclinic_check::rule_named;
use pgclinic_measure::figure_kinds;
use pgclinic_report::{Document, FORMATS, Format, Neighbour, Options, RuleText, by_name};

use crate::destination::{self, folder_of, is_special, not_written};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::neighbours;
use crate::privacy::PrivacyArgs;

/// Columns of lines that go to a file or another program.
pub(crate) const PIPE_COLUMNS: u16 = 100;
/// What a document in a file is called.
pub(crate) const REPORT: &str = "report";

/// When to use colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How progress is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ProgressStyle {
    /// A bar on a terminal, nothing elsewhere.
    Auto,
    /// A bar.
    Bar,
    /// A line now and then.
    Plain,
    /// Bytes, a line now and then: for a program that waits for this one.
    #[value(hide = true)]
    Bytes,
    /// Nothing.
    None,
}

/// The arguments of every command that gives out a document.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format: text, json, html and some others
    ///
    /// text, json, html; prometheus for check, measure and watch; nagios for watch; jsonl, sarif
    /// and junit for check. JSON is the master form: `pgclinic report` makes the others from it
    /// later.
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_default_value = true, hide_possible_values = true, value_parser = ["text", "json", "html", "prometheus", "nagios", "jsonl", "sarif", "junit"])]
    pub format: String,
    /// Write the document to this file, not to stdout
    ///
    /// The file is written whole or not at all, and never into the target.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub color: Color,
    /// Progress
    ///
    /// It goes to stderr.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressStyle::Auto)]
    pub progress: ProgressStyle,
    /// Print only errors, and nothing of a healthy check
    #[arg(long, short)]
    pub quiet: bool,
    /// Print more on stderr
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    #[command(flatten)]
    pub privacy: PrivacyArgs,
}

impl OutputArgs {
    /// Refuses, before any work is done, a form that documents of this schema lack, and an output
    /// that cannot be written or that lies in one of the targets.
    pub(crate) fn refuse_early(&self, schema: &str, targets: &[&Path]) -> Result<(), Failure> {
        self.form_of(schema)?;
        self.refuse_path_early(targets)
    }

    /// The same where the schema is not known yet.
    pub(crate) fn refuse_path_early(&self, targets: &[&Path]) -> Result<(), Failure> {
        self.privacy.refuse_early()?;
        let path = self.output.as_deref();
        path.map_or(Ok(()), |path| {
            destination::refuse_early(path, REPORT, targets)
        })
    }

    /// The same in a run that makes the directory `made` itself.
    pub(crate) fn refuse_early_beside(&self, schema: &str, made: &Path) -> Result<(), Failure> {
        self.form_of(schema)?;
        self.privacy.refuse_early()?;
        let path = self.output.as_deref();
        path.map_or(Ok(()), |path| {
            destination::refuse_early_beside(made, path, REPORT, &[])
        })
    }

    /// The form that was asked for, of documents that have it.
    fn form_of(&self, schema: &str) -> Result<&'static dyn Format, Failure> {
        let name = &self.format;
        let form =
            by_name(name).ok_or_else(|| Failure::new(format!("there is no form {name:?}")))?;
        if form.renders(schema) {
            return Ok(form);
        }
        let others = FORMATS.iter().filter(|form| form.renders(schema));
        let others: Vec<&str> = others.map(|form| form.name()).collect();
        Err(Failure::new(format!(
            "documents of {schema} have no form {name}: --format takes {} here",
            others.join(", ")
        )))
    }

    /// What is well need not be reported: nobody asked for a file, or for a form that programs
    /// read.
    pub(crate) fn is_silent(&self) -> bool {
        self.quiet && self.output.is_none() && self.format == "text"
    }

    /// Writes the document and gives the exit code of the run, which came to this verdict. Whoever
    /// waits for a report that cannot be written learns so from the code, whatever stands in it.
    pub(crate) fn give(&self, mut document: Document, verdict: Exit, world: &mut Env<'_>) -> Exit {
        match self.close(&mut document, world) {
            Ok(()) => self.give_again(&document, verdict, world),
            Err(failure) => world.report_failed(&failure),
        }
    }

    /// The same of a document that is closed.
    pub(crate) fn give_again(
        &self,
        document: &Document,
        verdict: Exit,
        world: &mut Env<'_>,
    ) -> Exit {
        match self.write_again(document, world) {
            Ok(()) => verdict,
            Err(failure) => world.report_failed(&failure),
        }
    }

    /// Writes the document of this run where it was asked for.
    pub(crate) fn write(
        &self,
        document: &mut Document,
        world: &mut Env<'_>,
    ) -> Result<(), Failure> {
        self.close(document, world)?;
        self.write_again(document, world)
    }

    /// Says in the document when and where it was made, and leaves in it what it may hold.
    pub(crate) fn close(&self, document: &mut Document, world: &Env<'_>) -> Result<(), Failure> {
        world.date(document);
        self.privacy.apply(document)
    }

    /// The reports that a page leads to; one with pseudonyms names no other.
    fn neighbours(&self, document: &Document) -> Vec<Neighbour> {
        let is_redacted = document.tool().contains.is_some_and(|own| own.redacted);
        match &self.output {
            Some(path) if self.format == "html" && !is_redacted && !is_special(path) => {
                neighbours::beside(path)
            }
            _ => Vec::new(),
        }
    }

    /// Writes a document that is closed.
    pub(crate) fn write_again(
        &self,
        document: &Document,
        world: &mut Env<'_>,
    ) -> Result<(), Failure> {
        let form = self.form_of(document.schema())?;
        let page = self.output.as_deref();
        let is_page = self.format == "html";
        let linked = is_page
            .then(|| neighbours::without_dead_links(document, page))
            .flatten();
        let document = linked.as_ref().unwrap_or(document);
        let to_terminal = self.output.is_none() && world.terminal.stdout;
        let color = match self.color {
            Color::Auto => self.output.is_none() && world.terminal.may_be_coloured(),
            Color::Always => true,
            Color::Never => false,
        };
        let width = if to_terminal {
            world.terminal.width
        } else {
            PIPE_COLUMNS
        };
        let options = Options {
            color,
            width,
            screen_rows: to_terminal.then_some(world.terminal.height),
            pretty: true,
            explain: &manual,
            figures: &figure_kinds(),
            neighbours: &self.neighbours(document),
            refresh_s: None,
        };
        match &self.output {
            Some(path) => write_file(path, REPORT, |out| form.render(document, &options, out)),
            None => {
                let mut out = BufWriter::new(&mut *world.stdout);
                let written = form
                    .render(document, &options, &mut out)
                    .and_then(|()| out.flush());
                written
                    .or_else(closed_pipe)
                    .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))
            }
        }
    }
}

/// The manual page of a rule.
pub(crate) fn manual(rule: &str) -> Option<RuleText> {
    rule_named(rule).map(|rule| RuleText {
        summary: rule.summary,
        explain: rule.explain,
    })
}

/// Whoever closed the pipe has seen enough.
pub(crate) fn closed_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Ok(())
    } else {
        Err(error)
    }
}

/// Writes a file under a name beside its own and renames it when it is whole. `what` it is, in one
/// word.
pub(crate) fn write_file(
    path: &Path,
    what: &str,
    render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failure =
        |error: io::Error| not_written(path, what, &format!("{error}; nothing of it was kept"));
    if is_special(path) {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(failure)?);
        return render(&mut out).and_then(|()| out.flush()).map_err(failure);
    }
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path)).map_err(failure)?;
    let mut out = BufWriter::new(file.as_file_mut());
    render(&mut out)
        .and_then(|()| out.flush())
        .map_err(failure)?;
    drop(out);
    file.as_file().sync_all().map_err(failure)?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(open).map_err(failure)?;
    file.persist(path).map_err(|error| failure(error.error))?;
    Ok(())
}
