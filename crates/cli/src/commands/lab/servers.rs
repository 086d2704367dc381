//! `lab servers`: every PostgreSQL on this machine, with what it was built with.

use clap::Args;
use pgclinic_servers::{Installation, everywhere, io_uring_forbidden};

use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(super) struct Arguments {}

pub(super) fn run(_arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    world.print(&list(&everywhere()))?;
    Ok(Exit::Healthy)
}

fn list(servers: &[Installation]) -> String {
    let mut text: String = servers.iter().map(line).collect();
    if servers.is_empty() {
        text.push_str("none is installed; the first run fetches one\n");
    }
    if let Some(why) = io_uring_forbidden() {
        text.push_str(&format!("\nio_uring cannot be used here: {why}\n"));
    }
    text.push_str(
        "\nGive a directory to `pgclinic lab run` with --server; majors that are not here are fetched. \
         `cargo xtask servers` makes some with lz4, jit and io_uring.\n",
    );
    text
}

fn line(server: &Installation) -> String {
    let mut has = server.features().names();
    has.extend(
        ["pg_dump", "psql", "pgbench"]
            .iter()
            .filter(|tool| server.tool(tool).is_some()),
    );
    format!(
        "{:7} {}\n        {}\n",
        server.version,
        server.bindir.display(),
        has.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_servers_is_told_what_comes() {
        assert!(list(&[]).starts_with("none is installed"));
    }
}
