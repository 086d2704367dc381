//! `pgclinic watch diff BEFORE AFTER`: mark, work, mark, where the work is no command of ours.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use pgclinic_model::document::{WATCH_SCHEMA, WatchDocument};
use pgclinic_report::Document;
use pgclinic_watch::grown;

use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::OutputArgs;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Document of the first mark
    ///
    /// As `pgclinic watch URL --once --format json --output FILE` writes it.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// Document of the second mark
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    arguments.output.refuse_early(WATCH_SCHEMA, &[])?;
    let [before, after] = [&arguments.before, &arguments.after].map(|path| read(path));
    let document = grown(&before?, after?).map_err(Failure::new)?;
    let document = Document::Watch(document);
    Ok(arguments.output.give(document, Exit::Healthy, world))
}

fn read(path: &Path) -> Result<WatchDocument, Failure> {
    let failed = |why: String| Failure::new(format!("cannot read {}: {why}", path.display()));
    let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
    match Document::from_json(&bytes) {
        Ok(Document::Watch(own)) => Ok(own),
        Ok(other) => Err(failed(format!(
            "it is a document of {}, and not of {WATCH_SCHEMA}",
            other.schema()
        ))),
        Err(error) => Err(failed(error.to_string())),
    }
}
