//! The schemas of several databases in one file for `psql`.

use pgclinic_cluster::{Cluster, Database};
use pgclinic_format::Oid;
use pgclinic_model::document::NotChecked;

use super::catalog::DescribedColumns;
use super::ddl::Ddl;
use super::identifier::{Quoting, literal};
use super::long_text::{CatalogRoom, Statement};

/// Databases that every cluster has; one that nobody changed is left out.
const FROM_INITDB: [&str; 3] = ["postgres", CLOSED_DATABASE, "template1"];
/// The one that no server lets anybody in: psql stops where it cannot connect.
pub(crate) const CLOSED_DATABASE: &str = "template0";

/// What is written for `--ddl`.
#[derive(Default)]
pub(crate) struct SchemaFile {
    parts: Vec<Part>,
    /// What the file does not hold, and why.
    pub(crate) not_written: Vec<NotChecked>,
}

struct Part {
    name: String,
    encoding: Option<i32>,
    ddl: Ddl,
}

impl SchemaFile {
    /// Adds the schema of a database.
    pub(crate) fn add(
        &mut self,
        cluster: &Cluster,
        oid: Oid,
        room: &CatalogRoom,
        described: &DescribedColumns,
    ) {
        let Some(database) = cluster.databases.get(&oid) else {
            return;
        };
        let name = display_name(database);
        let ddl = Ddl::within(cluster, oid, room, described);
        if FROM_INITDB.contains(&name.as_str()) && ddl.is_bare() {
            return;
        }
        if name == CLOSED_DATABASE {
            self.not_written.push(NotChecked {
                what: format!("in the schema file: what was changed in database {name}"),
                why: "nobody can connect to it, and psql stops where it cannot".into(),
                inherent: false,
            });
            return;
        }
        let refused = ddl.refused.iter().map(|refused| NotChecked {
            what: format!("in the schema file: {} of database {name}", refused.what),
            why: refused.why.clone(),
            inherent: false,
        });
        self.not_written.extend(refused);
        self.not_written.extend(ddl.gaps(&name));
        self.parts.push(Part {
            name,
            encoding: database.encoding,
            ddl,
        });
    }

    /// The file. Of one database it holds the schema alone; of several it makes each and goes
    /// there.
    pub(crate) fn text(&self) -> Statement {
        if let [part] = self.parts.as_slice() {
            return part.ddl.file();
        }
        let mut file = Statement::default();
        for part in &self.parts {
            in_its_database(&part.name, part.encoding, &part.ddl.file(), &mut file);
        }
        file
    }
}

/// Makes a database, goes there, and goes on with this.
pub(crate) fn in_its_database(
    name: &str,
    encoding: Option<i32>,
    text: &Statement,
    file: &mut Statement,
) {
    // psql reads a command to the end of its line.
    if !FROM_INITDB.contains(&name) && !name.contains(['\n', '\r']) {
        let quoted = Quoting { major: 18 }.name(name);
        let encoding = encoding_clause(encoding);
        file.push(&format!(
            "\nCREATE DATABASE {quoted} TEMPLATE template0{encoding};"
        ));
    }
    connected_to(name, text, file);
}

/// Goes to a database, and goes on with this.
pub(crate) fn connected_to(name: &str, text: &Statement, file: &mut Statement) {
    if name.contains(['\n', '\r']) {
        file.push(&format!(
            "-- A database whose name has several lines: {}\n",
            name.escape_default()
        ));
        return;
    }
    let quoted = Quoting { major: 18 }.name(name);
    file.push(&format!("\n\\connect {quoted}\n\n"));
    file.append(text);
}

/// Every server takes UTF-8; the text of the file is UTF-8 in any case.
fn encoding_clause(encoding: Option<i32>) -> String {
    const UTF8: i32 = 6;
    match encoding {
        Some(UTF8) => format!(" ENCODING {}", literal("UTF8")),
        _ => String::new(),
    }
}

fn display_name(database: &Database) -> String {
    let number = || database.oid.to_string();
    database.name.clone().unwrap_or_else(number)
}
