//! The miniature cluster of `pgclinic demo`: one database with three tables, and as little of the
//! rest as a cluster can do without.

use std::path::Path;

use crate::args::Args;
use crate::postgres::{self, Server, Tools};
use crate::repository;
use crate::shell::{self, at};
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "demo-cluster",
    summary: "makes the cluster that `pgclinic demo` carries anew, with an installed server",
    in_ci: None,
    run,
};

/// From the root of the repository.
const ARCHIVE: &str = "crates/cli/src/commands/demo/cluster.tar.zst";
const DATABASE: &str = "shop";
/// The smallest segments, none of which is kept for later.
const WAL: &[&str] = &[
    "min_wal_size=2MB",
    "max_wal_size=4MB",
    "wal_recycle=off",
    "autovacuum=off",
];
const CREATE: &str = "CREATE DATABASE shop TEMPLATE template0";
/// What nobody needs of an empty database, then the tables. Words repeat so that the archive is
/// small.
const TABLES: &[&str] = &[
    "SET client_min_messages = warning",
    "DROP SCHEMA information_schema CASCADE",
    "DELETE FROM pg_collation WHERE collname NOT IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "DELETE FROM pg_description WHERE classoid = 'pg_collation'::regclass AND objoid NOT IN (SELECT oid FROM pg_collation)",
    "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, joined date)",
    "INSERT INTO customers SELECT n, 'Customer ' || n, date '2020-01-01' + n FROM generate_series(1, 1000) n",
    "CREATE TABLE orders (id int PRIMARY KEY, customer int REFERENCES customers, total numeric(10, 2), state text)",
    "INSERT INTO orders SELECT n, 1 + n % 1000, n * 7 % 10000 / 100.0, 'open' FROM generate_series(1, 5000) n",
    "CREATE TABLE documents (id int PRIMARY KEY, body text)",
    "ALTER TABLE documents ALTER body SET STORAGE EXTERNAL",
    "INSERT INTO documents SELECT n, repeat('Terms of order ' || n || '. ', 300) FROM generate_series(1, 60) n",
    "UPDATE orders SET state = 'paid' WHERE id % 50 = 0",
    "DELETE FROM orders WHERE id % 97 = 0",
    "VACUUM (FULL)",
    "VACUUM (FREEZE, ANALYZE)",
    "UPDATE pg_database SET datistemplate = false",
    "DROP DATABASE template1",
    "DROP DATABASE template0",
    "DROP DATABASE postgres",
    "VACUUM (FREEZE) pg_database",
    "SELECT pg_switch_wal()",
    "CHECKPOINT",
];

fn run(words: &[String]) -> Outcome {
    Args::new(words).finish()?;
    let tools = Tools::find().ok_or("there is no installed PostgreSQL")?;
    let scratch = postgres::scratch("demo-cluster")?;
    postgres::give_to_server_user(scratch.path())?;
    let cluster = scratch.path().join("data");
    let options = ["-k", "-E", "UTF8", "--locale=C", "--wal-segsize=1"];
    tools.new_cluster_with(&cluster, &options)?;
    let server = tools.start(&cluster, WAL)?;
    sql(&server, "postgres", CREATE)?;
    for statement in TABLES {
        sql(&server, DATABASE, statement)?;
    }
    server.stop()?;
    std::fs::remove_file(cluster.join("server.log")).map_err(at(&cluster))?;
    let archive = repository::root().join(ARCHIVE);
    pack(&cluster, &archive)?;
    let size = std::fs::metadata(&archive).map_err(at(&archive))?.len();
    println!("{}: {size} bytes", archive.display());
    Ok(())
}

fn sql(server: &Server<'_>, database: &str, statement: &str) -> Outcome {
    let mut psql = server.client("psql");
    psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", database]);
    shell::capture(psql.args(["-c", statement])).map(drop)
}

/// Names without owners or times: the same cluster makes the same archive.
fn pack(cluster: &Path, archive: &Path) -> Outcome {
    let mut tar = shell::command("tar", &["-C"]);
    tar.arg(cluster);
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "-I",
        "zstd -19 --long=23",
        "-cf",
    ]);
    shell::capture(tar.arg(archive).arg(".")).map(drop)
}
