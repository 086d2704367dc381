//! The contents of the drill's clusters (`crates/servers/src/fill/*.sql`), run by `psql` on any
//! server: a batch that this server cannot run fails, and the others stand.

use std::path::Path;
use std::process::Command;

use super::workshop::folder_of_server;
use crate::postgres::{Server, Tools};
use crate::repository;
use crate::shell::{self, at};
use crate::task::Outcome;

/// Database and script, in the order they run.
const SCRIPTS: [(&str, &str); 9] = [
    ("postgres", "cluster.sql"),
    ("postgres", "extensions.sql"),
    ("clinic", "extensions.sql"),
    ("od\"d näme", "extensions.sql"),
    ("clinic", "types.sql"),
    ("clinic", "tables.sql"),
    ("clinic", "indexes.sql"),
    ("clinic", "history.sql"),
    ("od\"d näme", "odd.sql"),
];

/// Fills a new cluster through the `psql` of `client`; scripts and a tablespace lie in `folder`.
pub(super) fn fill(client: &Tools, server: &Server<'_>, folder: &Path) -> Outcome {
    let tablespace = folder.join(format!("annex-{}", name_of(server.folder())));
    folder_of_server(&tablespace)?;
    for (number, (database, script)) in SCRIPTS.into_iter().enumerate() {
        let path = repository::root()
            .join("crates/servers/src/fill")
            .join(script);
        let text = std::fs::read_to_string(&path)
            .map_err(at(&path))?
            .replace("{seed}", "0")
            .replace("{tablespace}", &tablespace.to_string_lossy());
        let file = folder.join(format!("fill-{number}-{script}"));
        std::fs::write(&file, text).map_err(at(&file))?;
        shell::output(psql(client, server, database).arg("-f").arg(&file))?;
    }
    Ok(())
}

/// `psql` of one installation, talking to the server of another; statements may fail.
pub(super) fn psql(client: &Tools, server: &Server<'_>, database: &str) -> Command {
    let mut psql = client.command("psql");
    psql.arg("-h").arg(server.folder());
    psql.args([
        "-X",
        "-q",
        "-U",
        "postgres",
        "-o",
        "/dev/null",
        "-d",
        database,
    ]);
    psql
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
