//! Databases of several encodings, locales and providers in one cluster, with text in every index
//! that takes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::recipe::{Recipe, Unmade};
use super::super::workshop::{Workshop, sql, sql_file};
use crate::postgres::Server;
use crate::shell::{self, at};

pub(super) const RECIPE: Recipe = Recipe {
    name: "encodings",
    summary: "UTF8 (C, en_US, ICU), LATIN1, SQL_ASCII, EUC_JP databases with text indexes",
    quick: true,
    make,
};

const WORDS: &str = include_str!("words.sql");
const ACCENTS: &str = include_str!("accents.sql");
const WIDE: &str = include_str!("wide.sql");
const BYTES: &str = include_str!("bytes.sql");

/// Compiled locales of glibc: name and character set.
const LOCALES: [(&str, &str); 2] = [("en_US.UTF-8", "UTF-8"), ("en_US.ISO-8859-1", "ISO-8859-1")];

/// Databases, how each is made, and what is run in it.
const DATABASES: [(&str, &str, &[&str]); 7] = [
    (
        "plain",
        "ENCODING 'UTF8' LOCALE 'C'",
        &[WORDS, ACCENTS, WIDE],
    ),
    (
        "english",
        "ENCODING 'UTF8' LOCALE 'en_US.UTF-8'",
        &[WORDS, ACCENTS, WIDE],
    ),
    (
        "icu",
        "ENCODING 'UTF8' LOCALE 'en_US.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'",
        &[WORDS, ACCENTS, WIDE],
    ),
    ("latin", "ENCODING 'LATIN1' LOCALE 'C'", &[WORDS, ACCENTS]),
    (
        "latin_english",
        "ENCODING 'LATIN1' LOCALE 'en_US.ISO-8859-1'",
        &[WORDS, ACCENTS],
    ),
    ("ascii", "ENCODING 'SQL_ASCII' LOCALE 'C'", &[WORDS, BYTES]),
    ("japanese", "ENCODING 'EUC_JP' LOCALE 'C'", &[WORDS]),
];

const SETTINGS: &[&str] = &["fsync=off", "autovacuum=off", "log_min_messages=fatal"];

fn make(shop: &Workshop, folder: &Path) -> Result<(), Unmade> {
    let locales = compile_locales(folder)?;
    let tools = shop
        .installed()?
        .with_variable("LOCPATH", &locales.to_string_lossy());
    let cluster = folder.join("stopped");
    let arguments = ["-k", "-E", "UTF8", "--locale=en_US.UTF-8"];
    tools.new_cluster_with(&cluster, &arguments)?;
    let server = tools.start(&cluster, SETTINGS)?;
    for (name, how, scripts) in DATABASES {
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 {how}");
        sql(&server, "postgres", &create)?;
        for (at_index, script) in scripts.iter().enumerate() {
            run(&server, name, folder, at_index, script)?;
        }
        sql(&server, name, "VACUUM")?;
    }
    server.stop()?;
    Ok(())
}

/// Locales of our own, so that the machine's need not be changed.
fn compile_locales(folder: &Path) -> Result<PathBuf, Unmade> {
    let locales = folder.join("locales");
    std::fs::create_dir(&locales).map_err(at(&locales))?;
    for (name, charset) in LOCALES {
        let mut localedef = Command::new("localedef");
        localedef
            .args(["-i", "en_US", "-f", charset])
            .arg(locales.join(name));
        // Warnings make another exit code; the result is what counts.
        let said = shell::output(&mut localedef);
        if !locales.join(name).join("LC_COLLATE").exists() {
            let why = said.map_or_else(|error| error, |output| shell::both(&output));
            return Err(Unmade::Lacking(format!(
                "locale {name} cannot be compiled: {}",
                why.trim()
            )));
        }
    }
    Ok(locales)
}

fn run(
    server: &Server<'_>,
    database: &str,
    folder: &Path,
    number: usize,
    script: &str,
) -> Result<(), String> {
    let file = folder.join(format!("{database}-{number}.sql"));
    let text = format!(
        "SET client_encoding = '{}';\n{script}",
        client_encoding(script)
    );
    std::fs::write(&file, text).map_err(at(&file))?;
    sql_file(server, database, &file)
}

/// The scripts are UTF-8; bytes of no encoding go as they are.
fn client_encoding(script: &str) -> &'static str {
    if script == BYTES { "SQL_ASCII" } else { "UTF8" }
}
