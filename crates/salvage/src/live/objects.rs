//! The large objects of a running server: the pages of `pg_largeobject` are read as the rows of any
//! table are, range by range where the server refuses some of them, and put together here.

use std::fs::File;
use std::io::{self, BufReader, Read};

use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_LARGEOBJECT, PG_LARGEOBJECT_METADATA};
use pgclinic_model::document::{LargeObjectsAccount, TableAccount};

use super::rows_out::RowsOut;
use super::snapshots::Reader;
use super::table_file::TableFile;
use super::table_rows::TableRows;
use super::tables::LiveTable;
use super::{Live, filenode_of, leave_locked, locks, witnesses};
use crate::formats::form_named;
use crate::salvage::large_objects::{Objects, file_of, write};
use crate::salvage::{SalvageError, SalvageOptions, not_salvaged};

const OID: Oid = 26;
const INT4: Oid = 23;
const BYTEA: Oid = 17;

/// Whether the role may read the pages, blocks of both relations, and the size of a block.
const QUESTION: &str = "\
SELECT pg_catalog.has_table_privilege('pg_catalog.pg_largeobject', 'SELECT'), \
  pg_catalog.pg_relation_size('pg_catalog.pg_largeobject') / b, \
  pg_catalog.pg_relation_size('pg_catalog.pg_largeobject_metadata') / b, b \
FROM CAST(pg_catalog.current_setting('block_size') AS bigint) b";

/// Writes them into one file; nothing where there are none.
pub(super) fn salvage<'a>(
    live: &Live<'a>,
    kept: &mut Option<Reader<'a>>,
    lost: &mut Vec<pgclinic_model::document::NotChecked>,
) -> Result<Option<LargeObjectsAccount>, SalvageError> {
    let answer = match live.ask(kept, &|reader| reader.query(QUESTION))? {
        Ok(answer) => answer,
        Err(error) => {
            lost.push(not_salvaged("large objects", &error.to_string()));
            return Ok(None);
        }
    };
    let Some(
        [
            Some(may_read),
            Some(pages),
            Some(metadata),
            Some(block_size),
        ],
    ) = answer.first().map(Vec::as_slice)
    else {
        return Ok(None);
    };
    let number = |text: &String| text.parse::<u32>().unwrap_or(0);
    let (pages, metadata, block_size) = (number(pages), number(metadata), number(block_size));
    if may_read != "t" && metadata > 0 {
        let why = "the role may not read pg_largeobject: a superuser may, and a member of pg_read_all_data";
        lost.push(not_salvaged("large objects", why));
        return Ok(None);
    }
    let columns = [("loid", OID), ("pageno", INT4), ("data", BYTEA)];
    let relations = [
        LiveTable::of_system(
            "pg_largeobject_metadata",
            PG_LARGEOBJECT_METADATA,
            &[("oid", OID)],
            metadata,
        ),
        LiveTable::of_system("pg_largeobject", PG_LARGEOBJECT, &columns, pages),
    ];
    let mut objects = Objects::new(live.options, block_size)?;
    let name = format!("{}/large_objects", crate::encoded(&live.target.database));
    let file = file_of(live.options.form, &name);
    let mut log = String::new();
    let mut accounts = Vec::new();
    for relation in &relations {
        let part = format!("{file}.{}", relation.name);
        let (refused, account) = gather(live, relation, &part, kept, &mut objects)?;
        log.push_str(&refused);
        accounts.extend(account);
    }
    live.write_log(&file, &log)?;
    // What the server gives of a page of zeros is nothing: indexes know what stood there.
    let asked = witnesses::ask_of_objects(live, &relations, accounts)?;
    // What the catalogs in the files lack was told when tables were asked for.
    for gap in asked.gaps {
        if !lost.contains(&gap) {
            lost.push(gap);
        }
    }
    for account in asked.tables {
        objects.lose_rows(&account);
    }
    if objects.is_empty() {
        return Ok(None);
    }
    let database = live.target.database.clone();
    write(objects, database, live.options, &live.folder, &name).map(Some)
}

/// Brings the rows of one relation into a file that never gets its name, and from there to the
/// objects; what the server refused, and the account of the relation, unless others hold it.
fn gather<'a>(
    live: &Live<'a>,
    relation: &LiveTable,
    part: &str,
    kept: &mut Option<Reader<'a>>,
    objects: &mut Objects,
) -> Result<(String, Option<TableAccount>), SalvageError> {
    let options = SalvageOptions {
        form: form_named("binary").expect("a form of the register"),
        ..live.options.clone()
    };
    let account = live.open_account(relation);
    let rows = TableRows::together(live.folder.begin(part)?);
    let mut work = TableFile::new(rows, account, live.way, RowsOut::Binary);
    live.read_rows(relation, &mut work, &options, kept)?;
    let rows = work.files.file().read_back()?;
    let read = each_row(rows, &mut |fields| {
        let number = |at: usize| {
            let field: &Vec<u8> = fields.get(at)?.as_ref()?;
            Some(u32::from_be_bytes(*field.first_chunk()?))
        };
        let Some(oid) = number(0) else {
            return Ok(());
        };
        match (relation.oid, number(1), fields.get(2)) {
            (PG_LARGEOBJECT, Some(page), Some(Some(data))) => objects.add_page(oid, page, data),
            _ => {
                objects.add(oid);
                Ok(())
            }
        }
    });
    read.map_err(|error| work.files.file().cannot_read(error))??;
    if let Some(error) = &work.locked {
        leave_locked(&mut work.account, &locks::why(error));
        objects.leave_out_of_reach();
    }
    objects.lose(relation.oid, std::mem::take(&mut work.account.places));
    work.account.filenode = filenode_of(relation, kept).unwrap_or(0);
    let account = Some(work.account).filter(|_| work.locked.is_none());
    Ok((work.log, account))
}

/// Takes the values of a row.
type EachRow<'e> = &'e mut dyn FnMut(&[Option<Vec<u8>>]) -> Result<(), SalvageError>;

/// The rows of a file of `COPY (FORMAT binary)` without head and end. Stops at the first error of
/// the caller's.
fn each_row(rows: File, each: EachRow<'_>) -> io::Result<Result<(), SalvageError>> {
    let mut rows = BufReader::with_capacity(1 << 20, rows);
    let mut fields = Vec::new();
    while let Some(count) = read_or_end(&mut rows)? {
        fields.clear();
        for _ in 0..count {
            let mut length = [0; 4];
            rows.read_exact(&mut length)?;
            // -1 is null.
            fields.push(match u32::try_from(i32::from_be_bytes(length)) {
                Err(_) => None,
                Ok(length) => {
                    let mut field = Vec::new();
                    rows.by_ref()
                        .take(u64::from(length))
                        .read_to_end(&mut field)?;
                    Some(field)
                }
            });
        }
        if let Err(error) = each(&fields) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// The count of columns of the next row; nothing at the end.
fn read_or_end(rows: &mut impl Read) -> io::Result<Option<u16>> {
    let mut count = [0; 2];
    match rows.read_exact(&mut count) {
        Ok(()) => Ok(Some(u16::from_be_bytes(count))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
