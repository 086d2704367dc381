//! `lab learn`: the shape of a person's own table, and SQL for a bounded copy of it.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pgclinic_lab::learned::{look, statements};

use crate::exit::{Exit, Failure};
use crate::target::open_cluster;
use crate::world::World;

/// In which form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// A table for people
    Text,
    /// The shape, for programs
    Json,
    /// Statements that make the copy
    Sql,
}

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A data directory that no server is using
    target: PathBuf,
    /// The table, as schema.name
    #[arg(long, value_name = "NAME")]
    relation: String,
    /// Its database, where more than one has such a table
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Form of the answer
    #[arg(long, value_enum, value_name = "FORM", default_value_t = Form::Text)]
    format: Form,
    /// Name of the copy
    #[arg(long, value_name = "NAME", default_value = "learned")]
    table: String,
    /// Rows of the copy at most
    #[arg(long, value_name = "N", default_value = "100000")]
    rows: NonZeroU64,
}

pub(super) fn run(arguments: &Arguments, world: &mut World<'_>) -> Result<Exit, Failure> {
    let cluster = open_cluster(&arguments.target, None)?;
    let shape = look(&cluster, arguments.database.as_deref(), &arguments.relation)?;
    let text = match arguments.format {
        Form::Text => shape.to_string(),
        Form::Json => serde_json::to_string_pretty(&shape)? + "\n",
        Form::Sql => {
            let all = statements(&shape, &arguments.table, arguments.rows.get());
            all.join(";\n") + ";\n"
        }
    };
    world.stdout.write_all(text.as_bytes())?;
    Ok(Exit::Healthy)
}
