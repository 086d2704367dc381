//! A database of a stopped cluster that is hurt, salvaged with its schema, and loaded into a new
//! server.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_model::Glob;
use pgclinic_model::document::SalvageReport;
use pgclinic_servers::{Checksums, Server, StopMode};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

use super::{Lines, copied, open_folder, options, psql, salvaged, session};

const PAGE: usize = 8192;

/// A stopped cluster with the database `shop`.
pub(crate) struct Shop {
    pub(crate) copy: TempCopy,
    /// What COPY gave of its tables.
    pub(crate) truth: BTreeMap<String, Lines>,
    /// What it answered to a question.
    pub(crate) answer: Vec<Vec<String>>,
}

/// The shop that these statements make.
pub(crate) fn shop(statements: &[&str], question: &str) -> Shop {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    new_database(&running, "shop");
    let mut own = session(&running, "shop");
    for statement in statements {
        own.execute(statement).expect(statement);
    }
    let truth = by_table(copied(&running, "shop", ""));
    let answer = own.query(question).expect(question).into_iter();
    let answer = answer.map(|row| row.into_iter().map(Option::unwrap_or_default).collect());
    let answer = answer.collect();
    drop(own);
    running.stop(StopMode::Fast).expect("stopped");
    Shop {
        copy,
        truth,
        answer,
    }
}

pub(crate) fn new_database(server: &Server, name: &str) {
    let made = format!("CREATE DATABASE {name} TEMPLATE template0");
    let made = session(server, "postgres").execute(&made);
    made.expect("a database");
}

/// Tables by schema and name.
fn by_table(copied: BTreeMap<String, Lines>) -> BTreeMap<String, Lines> {
    let named = copied.into_iter();
    let named = named.map(|(file, lines)| match file.split_once('/') {
        Some((_, table)) => (table.to_owned(), lines),
        None => (file, lines),
    });
    named.collect()
}

/// Zeroes a page of a file.
pub(crate) fn zero(pgdata: &Path, path: &str, block: u64) {
    let file = OpenOptions::new().write(true).open(pgdata.join(path));
    let file = file.expect("a file");
    let written = file.write_all_at(&[0; PAGE], block * PAGE as u64);
    written.expect("written");
}

/// What became of a shop.
pub(crate) struct Again {
    pub(crate) report: SalvageReport,
    /// Of which psql complained.
    pub(crate) said: String,
    pub(crate) found: BTreeMap<String, Lines>,
    /// It runs, with the database `again`; nothing to be compared is in its directory.
    pub(crate) server: Server,
    _copy: TempCopy,
}

/// Salvages the shop and loads it by the psql at `tool`.
pub(crate) fn again(shop: &Shop, tool: &Path) -> Again {
    let folder = open_folder();
    let out = folder.path().join("out");
    let mut options = options(&out, "copy");
    options.selection.databases = vec![Glob::new("shop")];
    options.ddl = Some(folder.path().join("schema.sql"));
    let report = salvaged(&shop.copy.pgdata, &options);
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let server = copy.start().expect("a server");
    new_database(&server, "again");
    let said = psql(tool, &server, "again", &out);
    let found = by_table(copied(&server, "again", ""));
    Again {
        report,
        said,
        found,
        server,
        _copy: copy,
    }
}
