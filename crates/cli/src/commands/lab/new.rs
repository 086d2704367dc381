//! `lab new`: a commented experiment to change.

use std::path::PathBuf;

use clap::Args;
use pgclinic_lab::TEMPLATE;

use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::output::write_file;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The file to write; it must not be there yet
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let file = &arguments.file;
    if file.exists() {
        return Err(Failure::new(format!(
            "{} is there already; name a new file",
            file.display()
        )));
    }
    write_file(file, "experiment", |out| out.write_all(TEMPLATE.as_bytes()))?;
    let name = file.display();
    let next = format!(
        "wrote {name}; `pgclinic lab plan {name}` says what it costs, `pgclinic lab run {name}` runs it\n"
    );
    world.write(next.as_bytes())?;
    Ok(Exit::Healthy)
}
