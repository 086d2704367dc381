//! The values of a database's sequences: in the account, and as a script that sets them.

use std::fmt::Write;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, RelKind, Relation};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::sequence::{COLUMNS, SEQUENCE_MAGIC, magic};
use pgclinic_format::{Attributes, Fork, HeapTuple, LpFlags, Page, attribute::Attribute};
use pgclinic_model::Selection;
use pgclinic_model::document::SequenceAccount;

use super::plan::is_of_the_system;
use crate::shape::{MainForks, database_name};

/// What a sequence's page says; why it says nothing, otherwise.
pub(crate) fn read_all(
    cluster: &Cluster,
    catalog: &Catalog,
    files: &MainForks,
    selection: &Selection,
) -> (Vec<SequenceAccount>, Vec<(String, String)>) {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    let wanted = catalog.relations.values().filter(|relation| {
        let by_number =
            selection.filenodes.is_empty() || selection.filenodes.contains(&relation.filenode);
        relation.kind == RelKind::Sequence
            && by_number
            && !is_of_the_system(relation.oid, &relation.schema)
            && selection.takes_name(&relation.schema, &relation.name)
    });
    for relation in wanted {
        match read(cluster, catalog, files, relation) {
            Ok(sequence) => found.push(sequence),
            Err(why) => {
                let database = catalog.database;
                let what = format!(
                    "sequence {} of database {database}",
                    relation.qualified_name()
                );
                lost.push((what, why));
            }
        }
    }
    found.sort_by(|a, b| (&a.schema, &a.sequence).cmp(&(&b.schema, &b.sequence)));
    (found, lost)
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
    let Said {
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
        let Said {
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

/// What the page of a sequence says.
struct Said {
    last_value: i64,
    is_called: bool,
    /// Why it may be wrong.
    doubt: Option<String>,
}

fn value_of_file(cluster: &Cluster, files: &ForkFiles) -> Result<Said, String> {
    let path = files.path(0);
    let mut bytes = vec![0; usize::try_from(cluster.build.block_size).unwrap_or(8192)];
    let read = cluster.source().read_at(&path, 0, &mut bytes);
    let read = read.map_err(|error| error.to_string())?;
    let page = Page::parse(bytes.get(..read).unwrap_or_default());
    let page = page.ok_or("its file is empty")?;
    let (last_value, is_called) = value(page).ok_or("its page holds no sequence")?;
    let is_hurt =
        cluster.checksums() == Some(true) && page.pd_checksum() != page_checksum(page.bytes(), 0);
    Ok(Said {
        last_value,
        is_called,
        doubt: is_hurt
            .then(|| "the checksum of its page is wrong: the value was taken as it is".into()),
    })
}

fn value(page: Page<'_>) -> Option<(i64, bool)> {
    (magic(page) == Some(SEQUENCE_MAGIC)).then_some(())?;
    let mut pointers = page.line_pointers();
    let (_, pointer) = pointers.find(|(_, pointer)| pointer.flags() == LpFlags::Normal)?;
    let tuple = HeapTuple::parse(page.item(pointer)?)?;
    let mut values = Attributes::new(tuple, &COLUMNS).filter_map(|attribute| match attribute {
        Ok(Attribute::Value(range)) => tuple.bytes().get(range),
        _ => None,
    });
    let last_value = i64::from_le_bytes(*values.next()?.first_chunk()?);
    let is_called = *values.nth(1)?.first()?;
    (is_called <= 1).then_some((last_value, is_called == 1))
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
