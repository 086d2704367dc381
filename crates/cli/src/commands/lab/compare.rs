//! `lab compare`: two folders of one experiment, with one thing changed in between.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pgclinic_lab::compare::{Group, Joined, Recorded, Source, compare, joined};
use pgclinic_report::{Document, LAB};

use super::arguments::JudgeArgs;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;

/// A group by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum GroupName {
    /// Version and build of the servers
    Server,
    /// Settings of the servers
    Settings,
    /// What the arms are distinguished by
    Arms,
    /// Who makes the load, and how
    Load,
    /// Processor, memory, disk, kernel, mount options
    Machine,
}

impl From<GroupName> for Group {
    fn from(name: GroupName) -> Self {
        match name {
            GroupName::Server => Group::Server,
            GroupName::Settings => Group::Settings,
            GroupName::Arms => Group::Arms,
            GroupName::Load => Group::Load,
            GroupName::Machine => Group::Machine,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A directory of `lab run` or `lab merge`: what there was before
    before: PathBuf,
    /// Another one of the same experiment: what there is now
    after: PathBuf,
    /// Allowed differences
    ///
    /// Kinds of difference that are known not to matter. More than one other difference is refused.
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    allow: Vec<GroupName>,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    arguments.output.refuse_early(LAB, &[])?;
    let folders = [&arguments.before, &arguments.after];
    let [one, other] = folders.map(|path| side(path));
    let (one, other) = (one?, other?);
    let names = folders.map(|path| path.display().to_string());
    let allowed: Vec<Group> = arguments.allow.iter().copied().map(Group::from).collect();
    let command = format!("pgclinic lab compare {} {}", names[0], names[1]);
    let about = arguments.judge.about(names.join(", "), command);
    let places =
        folders.map(|folder| seen_from_the_page(folder, arguments.output.output.as_deref()));
    let before = recorded(&one, &names[0], &places[0]);
    let after = recorded(&other, &names[1], &places[1]);
    let document = Document::Experiment(compare(&before, &after, &allowed, &about)?);
    Ok(arguments.output.give(document, Exit::Healthy, world))
}

/// What a directory holds, all machines of it where it was merged.
fn side(path: &Path) -> Result<Joined, Failure> {
    let sources = Source::open(path)?;
    let recorded: Vec<Recorded<'_>> = sources.iter().map(Source::recorded).collect();
    Ok(joined(&recorded)?)
}

fn recorded<'a>(side: &'a Joined, name: &'a str, place: &'a str) -> Recorded<'a> {
    Recorded {
        name,
        place,
        plan: &side.plan,
        results: &side.results,
        unreadable: &side.unreadable,
    }
}

/// A directory relative to the page, where it lies below the page's directory; else its whole path.
/// On stdout the page belongs to the current directory.
fn seen_from_the_page(folder: &Path, page: Option<&Path>) -> String {
    let whole = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let home = page
        .and_then(Path::parent)
        .filter(|home| !home.as_os_str().is_empty());
    let (folder, home) = (whole(folder), whole(home.unwrap_or(Path::new("."))));
    let below = folder.strip_prefix(&home).unwrap_or(&folder);
    below.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_below_the_page_is_named_from_there() {
        let home = tempfile::tempdir().expect("a directory");
        let folder = home.path().join("lab/run");
        std::fs::create_dir_all(&folder).expect("a directory");
        let seen = |page: &Path| seen_from_the_page(&folder, Some(page));
        assert_eq!(seen(&home.path().join("page.html")), "lab/run");
        let elsewhere = home.path().join("lab/run/inside/page.html");
        assert!(Path::new(&seen(&elsewhere)).is_absolute());
    }
}
