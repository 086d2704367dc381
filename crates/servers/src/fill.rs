//! Contents for a cluster: every kind of relation, type, index and row history that PostgreSQL has,
//! small enough to be copied many times.
//!
//! The contents stand in `fill/*.sql`. A blank line ends a batch, which is one transaction unless
//! it says otherwise; a batch may begin with a line that says when it applies (`-- since 14`, `--
//! with hstore`, `-- with xml`, `-- with lz4`) or where it runs (`-- second session`). `{seed}` and
//! `{tablespace}` are replaced.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::make_folder;
use crate::error::{Error, Result};
use crate::message::SqlError;
use crate::server::Server;
use crate::session::{ConnectOptions, Session};

/// Scripts in the order they run: database, file name, contents.
const SCRIPTS: [(&str, &str, &str); 9] = [
    ("postgres", "cluster.sql", include_str!("fill/cluster.sql")),
    (
        "postgres",
        "extensions.sql",
        include_str!("fill/extensions.sql"),
    ),
    (
        "clinic",
        "extensions.sql",
        include_str!("fill/extensions.sql"),
    ),
    (
        "od\"d näme",
        "extensions.sql",
        include_str!("fill/extensions.sql"),
    ),
    ("clinic", "types.sql", include_str!("fill/types.sql")),
    ("clinic", "tables.sql", include_str!("fill/tables.sql")),
    ("clinic", "indexes.sql", include_str!("fill/indexes.sql")),
    ("clinic", "history.sql", include_str!("fill/history.sql")),
    ("od\"d näme", "odd.sql", include_str!("fill/odd.sql")),
];

const LARGE: (&str, &str, &str) = ("clinic", "large.sql", include_str!("fill/large.sql"));

/// What to fill in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FillOptions {
    /// Also a prepared transaction, a replication slot and a table of more than 1 GiB; quickest on
    /// a server started with `wal_level=minimal`.
    pub large: bool,
    /// The same seed gives the same rows.
    pub seed: u64,
}

/// What was filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filled {
    /// The databases that hold something.
    pub databases: Vec<String>,
    /// The folders of tablespaces, outside the data directory.
    pub tablespaces: Vec<PathBuf>,
    /// Batches that this server cannot run, as `file: condition`.
    pub skipped: Vec<String>,
}

/// Fills an empty cluster and writes a checkpoint. The tablespace's folder lies beside the data
/// directory.
pub fn fill(server: &Server, options: FillOptions) -> Result<Filled> {
    let tablespace = make_tablespace(server.pgdata())?;
    let mut filled = Filled {
        tablespaces: vec![tablespace.clone()],
        ..Filled::default()
    };
    let literal = tablespace.to_string_lossy().replace('\'', "''");
    let features = Features::ask(server)?;
    for (database, file, text) in SCRIPTS.into_iter().chain(options.large.then_some(LARGE)) {
        let text = text
            .replace("{seed}", &options.seed.to_string())
            .replace("{tablespace}", &literal);
        run_script(
            server,
            database,
            file,
            &text,
            &features,
            &mut filled.skipped,
        )?;
        if !filled.databases.iter().any(|known| known == database) {
            filled.databases.push(database.to_owned());
        }
    }
    if options.large {
        leave_unfinished(server)?;
    }
    let mut session =
        connect(server, "postgres").map_err(Error::sql("connecting to write a checkpoint"))?;
    session
        .execute("CHECKPOINT")
        .map_err(Error::sql("the checkpoint after filling"))?;
    Ok(filled)
}

/// What outlives a restart outside of the databases: a prepared transaction that has made a table,
/// and a replication slot. Both hold vacuum back, so only the large filling has them.
pub fn leave_unfinished(server: &Server) -> Result<()> {
    let mut session =
        connect(server, "postgres").map_err(Error::sql("connecting to prepare a transaction"))?;
    for statement in [
        "SELECT pg_create_physical_replication_slot('standby', true)",
        "BEGIN",
        "CREATE TABLE public.promised (id int)",
        "INSERT INTO public.promised VALUES (1)",
        "PREPARE TRANSACTION 'promised'",
    ] {
        session
            .execute(statement)
            .map_err(Error::sql("preparing a transaction"))?;
    }
    Ok(())
}

/// A hash input for caches: the contents of all scripts.
pub fn contents() -> String {
    let scripts = SCRIPTS.iter().chain([&LARGE]);
    scripts
        .map(|(database, file, text)| format!("{database} {file}\n{text}\n"))
        .collect()
}

fn make_tablespace(pgdata: &Path) -> Result<PathBuf> {
    let name = pgdata.file_name().unwrap_or_default().to_string_lossy();
    let folder = pgdata.with_file_name(format!("{name}-annex"));
    make_folder(&folder, 0o700)?;
    let owner = std::fs::metadata(pgdata).map_err(Error::io("examine", pgdata))?;
    chown(&folder, Some(owner.uid()), Some(owner.gid()))
        .map_err(Error::io("change the owner of", &folder))?;
    Ok(folder)
}

fn connect(server: &Server, database: &str) -> std::result::Result<Session, SqlError> {
    let options = ConnectOptions {
        wall_limit: Duration::from_secs(600),
        ..ConnectOptions::default()
    };
    server.connect_with(database, &options)
}

/// What this server can do beyond its major's common ground.
struct Features {
    major: u16,
    names: Vec<String>,
}

impl Features {
    fn ask(server: &Server) -> Result<Self> {
        let mut session =
            connect(server, "postgres").map_err(Error::sql("connecting to fill the cluster"))?;
        let sql = "SELECT name FROM pg_available_extensions \
                   UNION ALL SELECT 'lz4' FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)";
        let rows = session
            .query(sql)
            .map_err(Error::sql("asking for the extensions"))?;
        let mut names: Vec<String> = rows.into_iter().flatten().flatten().collect();
        // Only trying tells whether libxml was built in.
        names.extend(
            session
                .query("SELECT '<a/>'::xml")
                .is_ok()
                .then(|| "xml".to_owned()),
        );
        Ok(Self {
            major: server.installation().major,
            names,
        })
    }

    fn allow(&self, condition: &str) -> bool {
        match condition.split_once(' ') {
            Some(("since", major)) => major.parse().is_ok_and(|major: u16| self.major >= major),
            Some(("with", name)) => self.names.iter().any(|known| known == name),
            _ => true,
        }
    }
}

fn run_script(
    server: &Server,
    database: &str,
    file: &str,
    text: &str,
    features: &Features,
    skipped: &mut Vec<String>,
) -> Result<()> {
    let open =
        || connect(server, database).map_err(Error::sql(format!("connecting to fill {database}")));
    let (mut first, mut second) = (open()?, None);
    for batch in text
        .split("\n\n")
        .map(str::trim)
        .filter(|batch| !batch.is_empty())
    {
        let head = batch
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("-- "))
            .unwrap_or_default();
        if !features.allow(head) {
            skipped.push(format!("{file}: {head}"));
            continue;
        }
        let session = if head == "second session" {
            if second.is_none() {
                second = Some(open()?);
            }
            second.as_mut().unwrap_or(&mut first)
        } else {
            &mut first
        };
        let what = || {
            format!(
                "filling {database} from {file} ({})",
                batch
                    .lines()
                    .find(|line| !line.starts_with("--"))
                    .unwrap_or(head)
            )
        };
        session.execute(batch).map_err(|source| Error::Sql {
            what: what(),
            source,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_one_of_the_known_ones() {
        let features = Features {
            major: 14,
            names: vec!["xml".to_owned()],
        };
        assert!(features.allow("since 14") && !features.allow("since 15"));
        assert!(features.allow("with xml") && !features.allow("with lz4"));
        assert!(
            features.allow("The pending list of a GIN index"),
            "other comments are only comments"
        );
    }
}
