//! `load.sql`: what was written to a folder goes into a database in the right order, by `psql`
//! alone. With the schema, where that was asked for, tables come before their rows, and indexes and
//! constraints after them; else the tables are there already, and triggers and foreign keys rest
//! while rows come.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt::Write;

use pgclinic_cluster::{Catalog, Charset, Cluster, Generated};
use pgclinic_format::Oid;
use pgclinic_model::document::{LargeObjectsAccount, SalvageReport, SequenceAccount, TableAccount};
use pgclinic_model::plural;

use super::error::SalvageError;
use super::folder::Folder;
use super::staging::{QUOTING, STAGE, StagedColumn, Staging, column_names, quoted, staged_columns};
use super::{
    Encoding, Rows, SalvageOptions, catalog_of, databases, described_columns, encoding_of, room_of,
    sequences,
};
use crate::schema::{
    CLOSED_DATABASE, CatalogRoom, Catalogs, Ddl, DescribedColumns, ExtensionTable, SESSION,
    Statement, connected_to, dollar_quoted, encoding_name, extension_table, in_its_database,
    literal, object_details_in,
};
use crate::shape::{MainForks, Origin, Table, database_name};
use crate::stored_types::{OWN_SCHEMA, OwnTypes};

/// The file's name.
const NAME: &str = "load.sql";

/// What a person reads first. The paths in the file begin at the folder.
const HEAD: &str = "\
-- Loads what lies in this directory into the database that psql is connected to. From within the directory:
--   psql -X -d DATABASE -f load.sql
-- Whatever psql reports as an error was not loaded.

";

/// Forms that COPY reads, with what it must be told.
const FORMS: [(&str, &str); 2] = [("csv", "FORMAT csv, HEADER true"), ("copy", "FORMAT text")];

/// Writes what loads the files of a folder.
pub(super) fn write(
    folder: &Folder,
    cluster: &Cluster,
    options: &SalvageOptions,
    account: &SalvageReport,
) -> Result<(), SalvageError> {
    if account.interrupted || !is_wanted(options) {
        return Ok(());
    }
    let part = |(database, _): (Oid, String)| {
        let name = database_name(&cluster.catalog(database));
        // What a schema would make there is named as not written.
        (name != CLOSED_DATABASE || options.ddl.is_none()).then_some(())?;
        let text = of_database(cluster, (database, &name), options, account)?;
        Some((name, encoding_of(cluster, database), text))
    };
    let mut parts: Vec<_> = databases(cluster, &options.selection)
        .into_iter()
        .filter_map(part)
        .collect();
    // psql stops where it cannot connect, and has loaded the others then.
    parts.sort_by_key(|(name, ..)| name == CLOSED_DATABASE);
    let mut text = Statement::from(HEAD.to_owned());
    match parts.as_slice() {
        [] => return Ok(()),
        [(_, _, only)] => text.append(only),
        several => several
            .iter()
            .for_each(|(name, encoding, own)| match &options.ddl {
                Some(_) => in_its_database(name, *encoding, own, &mut text),
                None => connected_to(name, own, &mut text),
            }),
    }
    let mut file = folder.begin(NAME)?;
    file.write_all_of(&text)?;
    file.finish().map(|_| ())
}

/// Whether what was written can be loaded so: rows that nobody sees, and columns that a table does
/// not have, cannot.
fn is_wanted(options: &SalvageOptions) -> bool {
    let is_read = FORMS.iter().any(|(form, _)| *form == options.form.name());
    is_read && options.rows == Rows::Live && !options.dropped && !options.without_catalogs
}

/// The part of one database: its schema, rows and sequences.
fn of_database(
    cluster: &Cluster,
    (database, name): (Oid, &str),
    options: &SalvageOptions,
    account: &SalvageReport,
) -> Option<Statement> {
    let catalog = catalog_of(cluster, database, options);
    let shared = cluster.catalog(0);
    if catalog.is_blind() {
        return None;
    }
    let tables = account.tables.iter();
    let tables = tables.filter(|table| table.database == name);
    if options.ddl.is_none() && !tables.clone().any(|table| table.kind == "table") {
        return None;
    }
    let room = match &options.ddl {
        Some(_) => room_of(options),
        None => CatalogRoom::brief(),
    };
    let described = described_columns(cluster, &catalog, &options.given);
    let catalogs = Catalogs::read_with(cluster, (&catalog, &shared), &room, &described);
    let ddl = options.ddl.as_ref().map(|_| Ddl::of_catalogs(&catalogs));
    let is_table = |table: &&TableAccount| {
        let is_made_one = |ddl: &Ddl| ddl.made_tables.contains(&table.oid);
        table.kind == "table" || ddl.as_ref().is_some_and(is_made_one)
    };
    let tables: Vec<&TableAccount> = tables.filter(is_table).collect();
    let own = account.sequences.iter();
    let own = own.filter(|sequence| sequence.database == name);
    let script = Script {
        catalogs: &catalogs,
        catalog: &catalog,
        described: &described,
        files: MainForks::of_database(cluster, database),
        encoding: encoding_of_files(cluster, database, options),
        options,
        ddl: ddl.as_ref(),
    };
    let is_uncertain = |table: &&TableAccount| {
        table.rows.written > 0 && table.rows.uncertain >= table.rows.written
    };
    let (uncertain, tables): (Vec<_>, Vec<_>) = tables.into_iter().partition(is_uncertain);
    let left_out = uncertain.iter().map(|table| {
        let name = format!("{}.{}", table.schema, table.table);
        format!(
            "-- Not loaded, as all its rows are uncertain: {}\n",
            name.replace('\n', " ")
        )
    });
    let rows = left_out.collect::<String>() + &script.rows(&tables);
    let sequences: Vec<SequenceAccount> = own.cloned().collect();
    let known = sequences::read_all(cluster, &catalog, &script.files, &options.selection);
    let values = known.with_values(sequences).script();
    let mut objects = account.large_objects.iter();
    let objects = objects.find(|objects| objects.database == name);
    let rows = rows + &objects.map_or_else(String::new, large_objects);
    let settings = settings_of(options);
    Some(match &ddl {
        Some(ddl) => {
            if tables.is_empty() && ddl.is_bare() {
                return None;
            }
            let mut text = ddl.before_data.clone();
            text.push(&format!("\n{settings}{rows}{values}\n"));
            text.append(&ddl.after_data);
            if objects.is_some() {
                text.push(&object_details(&catalogs));
            }
            text
        }
        None => Statement::from(format!(
            "{SESSION}{settings}\
             -- Triggers and foreign keys rest while rows come; this takes a superuser.\n\
             SET session_replication_role = replica;\n\
             {rows}{values}SET session_replication_role = origin;\n"
        )),
    })
}

/// Extracts the file of the large objects beside itself, and puts them back under their numbers.
fn large_objects(account: &LargeObjectsAccount) -> String {
    const COMMENT: &str =
        "-- Large objects: the directory they are extracted to may be removed afterwards.";
    let directory = account.file.strip_suffix(".tar").unwrap_or(&account.file);
    let variable = literal(directory);
    let (directory, file) = (shell_quoted(directory), shell_quoted(&account.file));
    format!(
        "\n{COMMENT}\n\\! mkdir -p {directory} && tar -xf {file} -C {directory}\n\
         \\set directory {variable}\n\\i :directory/restore.sql\n"
    )
}

/// Names of files are encoded and hold no quote; one that did would end the word.
fn shell_quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', "'\\''"))
}

/// Owners, rights and comments of the large objects.
fn object_details(catalogs: &Catalogs<'_>) -> String {
    let mut details = String::new();
    let mut each = |what: &str, detail: Result<String, String>| {
        match detail {
            Ok(statement) => {
                let _written = writeln!(details, "{statement}");
            }
            Err(why) => omit(&mut details, what, &why),
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = object_details_in(catalogs, &mut each);
    details
}

/// What makes the text of the files mean what it says.
fn settings_of(options: &SalvageOptions) -> String {
    let settings = options.text.of_session().into_iter();
    let set = settings.map(|(name, value)| match (name.as_str(), value.as_str()) {
        // A list of names, each quoted by itself.
        ("search_path", schemas) if !schemas.is_empty() => {
            format!("SET search_path = {schemas};\n")
        }
        _ => format!("SET {name} = {};\n", literal(&value)),
    });
    set.collect()
}

/// The encoding of the files: that of the database where its bytes were kept.
fn encoding_of_files(cluster: &Cluster, database: Oid, options: &SalvageOptions) -> &'static str {
    const UTF8: &str = "UTF8";
    let own = encoding_of(cluster, database);
    let is_kept = options.encoding == Encoding::Raw || Charset::kept(own).is_some();
    let name = own.and_then(|own| encoding_name(own.into()));
    name.filter(|_| is_kept).unwrap_or(UTF8)
}

struct Script<'c> {
    catalogs: &'c Catalogs<'c>,
    catalog: &'c Catalog,
    /// Columns that it does not give.
    described: &'c DescribedColumns,
    files: MainForks,
    /// Of the files.
    encoding: &'static str,
    options: &'c SalvageOptions,
    /// The schema, where it is loaded too.
    ddl: Option<&'c Ddl>,
}

/// A table with what is known of it.
struct Loaded<'a> {
    account: &'a TableAccount,
    table: Table,
    staged: Vec<StagedColumn>,
    extension: Option<ExtensionTable>,
}

impl Script<'_> {
    fn rows(&self, tables: &[&TableAccount]) -> String {
        let mut own = OwnTypes::new(self.catalogs);
        let mut script = String::new();
        let loaded: Vec<Loaded<'_>> = self
            .in_order(tables)
            .into_iter()
            .filter_map(|account| {
                if account.file.is_none() {
                    let name = QUOTING.qualified(&account.schema, &account.table);
                    omit(&mut script, &name, "its file was not written whole");
                    return None;
                }
                let is_refused = |ddl: &Ddl| ddl.refused_relations.contains(&account.oid);
                if self.ddl.is_some_and(is_refused) {
                    let name = QUOTING.qualified(&account.schema, &account.table);
                    omit(&mut script, &name, "the table is not written");
                    return None;
                }
                let loaded = self.describe(account, &mut own);
                if loaded.is_none() {
                    let name = QUOTING.qualified(&account.schema, &account.table);
                    omit(
                        &mut script,
                        &name,
                        "its columns are not those of the catalogs",
                    );
                }
                loaded
            })
            .collect();
        let types: Vec<String> = own
            .in_order()
            .map(|(_, own)| format!("\nBEGIN;\n{}COMMIT;\n", own.statements))
            .collect();
        if !types.is_empty() {
            let _written = write!(
                script,
                "\n-- Types that read stored bytes: values of types whose text is not known to pgclinic. This takes a superuser.\n\
                 CREATE SCHEMA {OWN_SCHEMA};\n{}",
                types.concat()
            );
        }
        for loaded in &loaded {
            self.load(loaded, &mut script);
        }
        if !types.is_empty() {
            let _written = write!(script, "\nDROP SCHEMA {OWN_SCHEMA} CASCADE;\n");
        }
        script
    }

    /// A table comes after those that its foreign keys name; where they name each other, by name.
    fn in_order<'a>(&self, tables: &[&'a TableAccount]) -> Vec<&'a TableAccount> {
        let mut waiting: BTreeMap<(&str, &str, Oid), &'a TableAccount> = tables
            .iter()
            .map(|table| {
                (
                    (table.schema.as_str(), table.table.as_str(), table.oid),
                    *table,
                )
            })
            .collect();
        let mut open: BTreeSet<Oid> = tables.iter().map(|table| table.oid).collect();
        let needs = |table: Oid| -> Vec<Oid> {
            let keys = self.catalogs.rows("pg_constraint", "conrelid", table);
            let keys = keys.iter().filter(|row| row.letter("contype") == 'f');
            let named = keys.map(|row| row.oid("confrelid"));
            named.filter(|named| *named != table).collect()
        };
        let needs: BTreeMap<Oid, Vec<Oid>> =
            open.iter().map(|table| (*table, needs(*table))).collect();
        let mut ordered = Vec::with_capacity(tables.len());
        while !waiting.is_empty() {
            let is_free = |table: &TableAccount| {
                let needed = needs.get(&table.oid);
                needed.is_none_or(|needed| needed.iter().all(|other| !open.contains(other)))
            };
            let free: Vec<_> = waiting
                .iter()
                .filter(|(_, table)| is_free(table))
                .map(|(key, _)| *key)
                .collect();
            let next = if free.is_empty() {
                waiting.keys().take(1).copied().collect()
            } else {
                free
            };
            for key in next {
                ordered.extend(waiting.remove(&key));
                open.remove(&key.2);
            }
        }
        ordered
    }

    /// Nothing where the file was written by other columns.
    fn describe<'a>(
        &self,
        account: &'a TableAccount,
        own: &mut OwnTypes<'_>,
    ) -> Option<Loaded<'a>> {
        let relation = self.catalog.relations.get(&account.oid)?;
        let choice = self.options.column_choice();
        let table = match self.described.get(&account.oid) {
            Some(given) => Table::of_given(&self.files, self.catalog, relation, choice, given),
            None => Table::of(&self.files, self.catalog, relation, choice),
        };
        let table = table.ok()?;
        let names = table.columns.iter().map(|column| &column.name);
        if !names.eq(account.columns.iter()) {
            return None;
        }
        Some(Loaded {
            account,
            staged: staged_columns(&table, own),
            extension: extension_table(self.catalogs, account.oid),
            table,
        })
    }

    /// The attributes that the server computes.
    fn computed(&self, table: &Table) -> BTreeSet<usize> {
        let relation = self.catalog.relations.get(&table.oid);
        let columns = relation.and_then(|relation| relation.columns.as_ref());
        let columns = columns.into_iter().flatten().enumerate();
        let computed = columns.filter(|(_, column)| column.generated != Generated::No);
        computed.map(|(attribute, _)| attribute).collect()
    }

    fn load(&self, loaded: &Loaded<'_>, script: &mut String) {
        let Loaded {
            account,
            table,
            staged,
            extension,
        } = loaded;
        let name = quoted(table);
        let is_left = |known: &&ExtensionTable| known.users_rows.is_none();
        if let Some(known) = extension.as_ref().filter(is_left) {
            let why = format!("extension {} fills it by itself", known.extension);
            let _written = write!(script, "\n-- {}: {}\n", one_line(&name), one_line(&why));
            return;
        }
        let _written = write!(script, "\n-- {}\n", one_line(&name));
        if let Some(file) = &account.suspect_file {
            let rows = account.rows.suspect;
            let what = format!("{rows} of {name} in {file}", rows = plural(rows, "row"));
            omit(
                script,
                &what,
                "they may not be what they say: see their reasons",
            );
        }
        for StagedColumn { column, conversion } in staged {
            if let (Err(why), Some(column)) = (conversion, table.columns.get(*column)) {
                let what = format!("column {} of {name}", QUOTING.name(&column.name));
                omit(script, &what, why);
            }
        }
        let computed = self.computed(table);
        let is_computed = |at: usize| match table.columns.get(at).map(|column| column.origin) {
            Some(Origin::Attribute(attribute)) => computed.contains(&attribute),
            _ => false,
        };
        let staging = Staging::of(table, staged, extension.as_ref(), &is_computed);
        let columns = column_names(table);
        let list = if columns.is_empty() {
            String::new()
        } else {
            format!(" ({})", columns.join(", "))
        };
        let file = literal(account.file.as_deref().unwrap_or_default());
        let form = self.options.form.name();
        let how = FORMS.iter().find(|(known, _)| *known == form);
        let how = how.map_or("", |(_, how)| how);
        let copy = |to: &str| {
            format!(
                "\\copy {to}{list} FROM {file} WITH ({how}, ENCODING '{}')\n",
                self.encoding
            )
        };
        let statements = match &staging {
            None => copy(&name),
            Some(staging) => format!(
                "BEGIN;\n{};\n{}{};\n{}COMMIT;\n",
                staging.create,
                copy(STAGE),
                staging.insert,
                staging.missing.as_deref().map_or(String::new(), warning)
            ),
        };
        // psql reads a command of its own to the end of its line.
        if copy(&name).trim_end().contains(['\n', '\r']) {
            return omit(script, &name, "its names have several lines");
        }
        script.push_str(&statements);
    }
}

/// psql says it too, where somebody only looks at what it says.
fn omit(script: &mut String, what: &str, why: &str) {
    let told = one_line(&format!("NOT LOADED: {what}: {why}"));
    // Within its quotes psql reads backslashes.
    let quoted = literal(&told.replace('\\', "\\\\"));
    let _written = write!(script, "\n-- {told}\n\\warn {quoted}\n");
}

/// Says how many rows an extension has others in the place of.
fn warning(question: &str) -> String {
    let body = format!(
        "\nDECLARE\n  left_out bigint := ({question});\nBEGIN\n  IF left_out > 0 THEN\n    \
         RAISE WARNING '% left out: the extension brings others with the same keys', CASE left_out WHEN 1 THEN '1 row was' ELSE left_out || ' rows were' END;\n  END IF;\nEND "
    );
    format!("DO {};\n", dollar_quoted(&body))
}

/// Whatever stands in a name, a comment stays a comment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
