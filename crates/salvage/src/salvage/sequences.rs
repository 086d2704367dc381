//! The values of a database's sequences: in the account, and as a script that sets them.

use std::collections::BTreeMap;
use std::fmt::Write;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, RelKind, Relation};
use pgclinic_format::Fork;
use pgclinic_model::Selection;
use pgclinic_model::document::SequenceAccount;

use super::plan::is_relation_of_the_system;
use crate::schema::{CatalogRoom, Catalogs, SequenceColumns};
use crate::sequence_page::{SequenceValue, value_of_file};
use crate::shape::{MainForks, database_name};

/// The sequences of a database.
#[derive(Default)]
pub(crate) struct Sequences {
    /// What their pages say.
    pub(crate) found: Vec<SequenceAccount>,
    /// Those whose pages say nothing.
    pub(crate) lost: Vec<LostSequence>,
    /// By schema and name, what sets those behind their columns whose values are lost or in doubt.
    columns: BTreeMap<(String, String), SequenceColumns>,
}

/// A sequence whose value is lost.
pub(crate) struct LostSequence {
    pub(crate) schema: String,
    pub(crate) name: String,
    /// For the account.
    pub(crate) what: String,
    pub(crate) why: String,
}

/// What the pages of sequences say, and where one says nothing, or nothing that can be trusted,
/// which columns tell how far it was.
pub(crate) fn read_all(
    cluster: &Cluster,
    catalog: &Catalog,
    files: &MainForks,
    selection: &Selection,
) -> Sequences {
    let mut all = Sequences::default();
    let mut doubtful = Vec::new();
    let wanted = catalog.relations.values().filter(|relation| {
        let by_number =
            selection.filenodes.is_empty() || selection.filenodes.contains(&relation.filenode);
        relation.kind == RelKind::Sequence
            && by_number
            && !is_relation_of_the_system(relation)
            && selection.takes_name(&relation.schema, &relation.name)
    });
    for relation in wanted {
        match read(cluster, catalog, files, relation) {
            Ok(sequence) => {
                doubtful.extend(sequence.doubt.is_some().then_some(relation));
                all.found.push(sequence);
            }
            Err(why) => {
                doubtful.push(relation);
                let database = catalog.database;
                let (schema, name) = (relation.schema.clone(), relation.name.clone());
                let what = format!("sequence {schema}.{name} of database {database}");
                all.lost.push(LostSequence {
                    schema,
                    name,
                    what,
                    why,
                });
            }
        }
    }
    let found = |a: &SequenceAccount, b: &SequenceAccount| {
        (&a.schema, &a.sequence).cmp(&(&b.schema, &b.sequence))
    };
    all.found.sort_by(found);
    all.ask_columns(cluster, catalog, &doubtful);
    all
}

impl Sequences {
    fn ask_columns(&mut self, cluster: &Cluster, catalog: &Catalog, doubtful: &[&Relation]) {
        if doubtful.is_empty() {
            return;
        }
        let shared = cluster.catalog(0);
        let catalogs = Catalogs::read(cluster, catalog, &shared, &CatalogRoom::brief());
        for relation in doubtful {
            let name = (relation.schema.clone(), relation.name.clone());
            let columns = SequenceColumns::of(&catalogs, relation.oid);
            self.columns.extend(columns.map(|columns| (name, columns)));
        }
        for sequence in &mut self.found {
            let name = (sequence.schema.clone(), sequence.sequence.clone());
            if let (Some(doubt), Some(columns)) = (&mut sequence.doubt, self.columns.get(&name)) {
                doubt.push_str(&format!("; {}", goes_on(columns)));
            }
        }
        for sequence in &mut self.lost {
            let name = (sequence.schema.clone(), sequence.name.clone());
            let more = match self.columns.get(&name) {
                Some(columns) => goes_on(columns),
                None => STARTS_AGAIN.to_owned(),
            };
            sequence.why.push_str(&format!(": {more}"));
        }
    }

    /// Nothing is known of any.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.columns.is_empty()
    }

    /// The same with these values in the place of those that were found.
    pub(crate) fn with_values(mut self, found: Vec<SequenceAccount>) -> Self {
        self.found = found;
        self
    }

    /// Of all of them.
    pub(crate) fn script(&self) -> String {
        let found = self.found.iter().map(|own| self.script_of(own));
        let lost = self.lost.iter().map(|own| self.script_of_lost(own));
        found.chain(lost).collect()
    }

    /// Sets one that was found, and moves it on where its value is in doubt.
    pub(crate) fn script_of(&self, sequence: &SequenceAccount) -> String {
        let name = (sequence.schema.clone(), sequence.sequence.clone());
        let columns = self.columns.get(&name).map(|columns| &columns.statement);
        let columns = columns.map(|statement| format!("{statement}\n"));
        script(std::slice::from_ref(sequence)) + &columns.unwrap_or_default()
    }

    fn script_of_lost(&self, sequence: &LostSequence) -> String {
        let name = (sequence.schema.clone(), sequence.name.clone());
        let words = format!("{}: {}", sequence.what, sequence.why).replace(['\n', '\r'], " ");
        let columns = self.columns.get(&name).map(|columns| &columns.statement);
        let statement = columns.map(|statement| format!("{statement}\n"));
        format!("-- {words}\n{}", statement.unwrap_or_default())
    }

    /// What sets a sequence behind its columns.
    pub(crate) fn statement_of_lost(&self, sequence: &LostSequence) -> Option<&str> {
        let name = (sequence.schema.clone(), sequence.name.clone());
        self.columns.get(&name).map(|own| own.statement.as_str())
    }
}

/// Of a lost sequence that no column tells of.
const STARTS_AGAIN: &str = "no column is known to take its values, so that it starts again";

fn goes_on(columns: &SequenceColumns) -> String {
    let columns = columns.columns.join(", ");
    format!("it goes on after the last value of {columns} that is loaded")
}

fn read(
    cluster: &Cluster,
    catalog: &Catalog,
    files: &MainForks,
    relation: &Relation,
) -> Result<SequenceAccount, String> {
    let mut own = files.of(catalog, relation).clone();
    // A server that starts on a backup, or a standby that is promoted, takes the init fork for it.
    if files.leave_out(cluster, catalog, relation) {
        own.fork = Fork::Init;
    }
    let SequenceValue {
        last_value,
        is_called,
        doubt,
    } = value_of_file(cluster, &own)?;
    let bounds = catalog.sequence(relation.oid);
    let is_outside = bounds.is_some_and(|of| !(of.min..=of.max).contains(&last_value));
    let outside = || is_outside.then(|| "the value is outside the bounds of the sequence".into());
    Ok(SequenceAccount {
        database: database_name(catalog),
        schema: relation.schema.clone(),
        sequence: relation.name.clone(),
        last_value,
        is_called,
        doubt: doubt.or_else(outside),
    })
}

/// The values of sequences of which only the files are known: their numbers stand for their names.
pub(super) fn of_files(
    cluster: &Cluster,
    database: &str,
    files: &[ForkFiles],
) -> Vec<SequenceAccount> {
    let known = files.iter().filter_map(|files| {
        let SequenceValue {
            last_value,
            is_called,
            doubt,
        } = value_of_file(cluster, files).ok()?;
        Some(SequenceAccount {
            database: database.to_owned(),
            schema: String::new(),
            sequence: files.filenode.to_string(),
            last_value,
            is_called,
            doubt,
        })
    });
    known.collect()
}

/// A script that gives sequences of these names their values.
pub(crate) fn script(sequences: &[SequenceAccount]) -> String {
    let mut script = String::new();
    for sequence in sequences {
        let name = [&sequence.schema, &sequence.sequence]
            .map(|part| format!("\"{}\"", part.replace('"', "\"\"")))
            .join(".");
        let name = name.replace('\'', "''");
        if let Some(doubt) = &sequence.doubt {
            let _written = writeln!(script, "-- {doubt}");
        }
        // Writing to a String cannot fail.
        let _written = writeln!(
            script,
            "SELECT pg_catalog.setval('{name}', {}, {});",
            sequence.last_value, sequence.is_called
        );
    }
    script
}
