//! Files of columns hold what the server that the tables are from says that they hold.

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_spill::MemoryPlan;

use crate::common;
use crate::reading;

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, UInt32Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, TimeUnit};
use common::{options, salvaged, session};
use pgclinic_salvage::encoded;
use pgclinic_servers::{Checksums, Session, StopMode};
use pgclinic_testkit::{copy_of, seed, server};
use reading::read;

/// Rows as words, sorted.
type Rows = Vec<Vec<Option<String>>>;

/// What the server calls a value of this kind: the bytes that it sends where they have a fixed
/// width, else its text.
fn asked(data_type: &DataType, value: &str) -> String {
    let send = match data_type {
        DataType::Boolean => "boolsend",
        DataType::Int16 => "int2send",
        DataType::Int32 => "int4send",
        DataType::Int64 => "int8send",
        DataType::Float32 => "float4send",
        DataType::Float64 => "float8send",
        DataType::Date32 => "date_send",
        DataType::Time64(TimeUnit::Microsecond) => "time_send",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_send",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamptz_send",
        DataType::FixedSizeBinary(16) => "uuid_send",
        DataType::Binary => "byteasend",
        DataType::List(element) => {
            let element = asked(element.data_type(), "e");
            return format!(
                "CASE WHEN {value} IS NOT NULL THEN (SELECT coalesce(string_agg(coalesce({element}, '-'), ',' ORDER BY n), '') \
                 FROM unnest({value}) WITH ORDINALITY u(e, n)) END"
            );
        }
        DataType::UInt32 | DataType::Utf8 | DataType::Decimal128(..) => {
            // A row of nulls is null to IS NULL, and has a text.
            return format!("CASE WHEN num_nulls({value}) = 0 THEN format('%s', {value}) END");
        }
        other => panic!("nothing is written as {other}"),
    };
    format!("encode({send}({value}), 'hex')")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same of a value that was read.
fn shown(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => hex(&[u8::from(array.as_boolean().value(row))]),
        DataType::Int16 => hex(&array.as_primitive::<Int16Type>().value(row).to_be_bytes()),
        DataType::Int32 => hex(&array.as_primitive::<Int32Type>().value(row).to_be_bytes()),
        DataType::Int64 => hex(&array.as_primitive::<Int64Type>().value(row).to_be_bytes()),
        DataType::Float32 => hex(&array.as_primitive::<Float32Type>().value(row).to_be_bytes()),
        DataType::Float64 => hex(&array.as_primitive::<Float64Type>().value(row).to_be_bytes()),
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row) - 10_957;
            hex(&days.to_be_bytes())
        }
        DataType::Time64(_) => {
            let time = array.as_primitive::<Time64MicrosecondType>().value(row);
            hex(&time.to_be_bytes())
        }
        DataType::Timestamp(..) => {
            let time = array.as_primitive::<TimestampMicrosecondType>().value(row);
            hex(&(time - 946_684_800_000_000).to_be_bytes())
        }
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(row)),
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(row);
            let elements = (0..list.len()).map(|at| shown(&list, at).unwrap_or("-".into()));
            elements.collect::<Vec<String>>().join(",")
        }
        other => panic!("nothing is written as {other}"),
    })
}

fn rows_of(batches: &[RecordBatch]) -> Rows {
    let mut rows = Rows::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let columns = batch.columns().iter();
            rows.push(columns.map(|column| shown(column, row)).collect());
        }
    }
    rows.sort();
    rows
}

/// What a table must have been written as, given the columns of its file.
fn expected(session: &mut Session, table: &str, fields: &[&Field]) -> Rows {
    let asked: Vec<String> = fields
        .iter()
        .map(|field| match field.name().as_str() {
            "" => "NULL::text".into(),
            name => {
                let quoted = format!("\"{}\"", name.replace('"', "\"\""));
                asked(field.data_type(), &quoted)
            }
        })
        .collect();
    let sql = format!("SELECT {} FROM ONLY {table}", asked.join(", "));
    let mut rows = session
        .query(&sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows.sort();
    rows
}

const TABLES: &str = "SELECT quote_ident(nspname) || '.' || quote_ident(relname), nspname, relname FROM pg_class \
     JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'm') AND nspname !~ '^pg_' \
     AND nspname <> 'information_schema' AND relpersistence = 'p' ORDER BY 1";

/// Holds every file of a database to its table.
fn compare(session: &mut Session, database: &str, destination: &Path, extension: &str) -> usize {
    let tables = session.query(TABLES).expect("the tables");
    for table in &tables {
        let [Some(quoted), Some(schema), Some(name)] = table.as_slice() else {
            panic!("{table:?}");
        };
        let file = format!("{}.{}.{extension}", encoded(schema), encoded(name));
        let (schema, batches) = read(&destination.join(encoded(database)).join(file));
        let fields: Vec<&Field> = schema.fields().iter().map(|field| field.as_ref()).collect();
        let (found, expected) = (rows_of(&batches), expected(session, quoted, &fields));
        let differs = |(found, expected): &(&Vec<_>, &Vec<_>)| found != expected;
        if let Some((found, expected)) = found.iter().zip(&expected).find(differs) {
            let at = found
                .iter()
                .zip(expected)
                .position(|(found, expected)| found != expected);
            let at = at.expect("a difference");
            panic!(
                "{quoted}.{}: found {:?}, expected {:?}",
                fields[at].name(),
                found[at],
                expected[at]
            );
        }
        assert_eq!(found.len(), expected.len(), "{quoted}");
    }
    tables.len()
}

fn columns_equal_the_server(major: u16, form: &str) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, form));
    assert_eq!(
        account.outcome,
        Outcome::Whole,
        "{:?}",
        account.not_salvaged
    );
    assert!(account.tables.iter().all(|table| table.file.is_some()));
    let mut running = copy.start().expect("a server");
    for database in ["clinic", "od\"d näme"] {
        let mut session = session(&running, database);
        assert!(
            compare(&mut session, database, &destination, form) > 0,
            "{database}"
        );
    }
    running.stop(StopMode::Fast).expect("stopped");
}

#[test]
fn parquet_of_13() {
    columns_equal_the_server(13, "parquet");
}

#[test]
fn parquet_of_18() {
    columns_equal_the_server(18, "parquet");
}

#[test]
fn arrow_of_15() {
    columns_equal_the_server(15, "arrow");
}

const ODD: &str = "CREATE TABLE odd (day date, moment timestamptz, hour time, price numeric(6,2), many int[], free numeric, fine date, list numeric(5,1)[]);
     INSERT INTO odd VALUES ('infinity', 'now', '24:00', 12.5, '{1,NULL,3}', 1, '4713-01-01 BC', '{1.5}'),
     ('2020-01-02', '-infinity', '12:00', 'NaN', '[0:1]={1,2}', 'Infinity', '294276-12-31', '{}'), (NULL, NULL, NULL, NULL, '{{1},{2}}', NULL, NULL, NULL);
     CREATE TABLE usual (day date, moment timestamptz, hour time, price numeric(6,2), many int[], words text[], raw bytea, id uuid, small smallint, large bigint, \
       single real, double float8, flag bool, document json, days date[], ids uuid[], flags bool[], moments timestamp[], blobs bytea[], hours time[]);
     INSERT INTO usual VALUES ('4713-01-01 BC', 'now', '23:59:59.999999', -9999.99, '{1,NULL,3}', '{a,NULL,\"\",ä}', '\\x00ff', \
       '01234567-89ab-cdef-0123-456789abcdef', -32768, 9223372036854775807, 'NaN', '-Infinity', true, '{\"a\": 1}', '{2000-01-01,NULL}', \
       '{01234567-89ab-cdef-0123-456789abcdef}', '{t,f,NULL}', '{2000-01-01 00:00:01}', '{\"\\\\x01\"}', '{12:00}');
     INSERT INTO usual (large) SELECT n FROM generate_series(1, 200000) n;";

/// One value without a place makes a column one of texts, and the account tells which and why.
#[test]
fn columns_fall_back_as_a_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    session.execute(ODD).expect("tables");
    let raw =
        "CREATE DATABASE bytes ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    session.execute(raw).expect("a database");
    let mut bytes = common::session(&running, "bytes");
    let lie = "CREATE TABLE lies (words text, list text[]); INSERT INTO lies VALUES ('fine', '{fine}'), (E'n\\xE4h', ARRAY[E'n\\xE4h'])";
    bytes.execute(lie).expect("a table");
    drop((session, bytes));
    running.stop(StopMode::Fast).expect("stopped");
    for form in ["parquet", "arrow"] {
        let folder = tempfile::tempdir().expect("a directory");
        let destination = folder.path().join("out");
        let mut options = options(&destination, form);
        // So little that there are many row groups.
        options.memory = MemoryPlan::new(8 << 20);
        // The other one has values that do not fit in that.
        options.selection.databases = vec![Glob::new("postgres"), Glob::new("bytes")];
        let account = salvaged(&copy.pgdata, &options);
        assert_eq!(account.outcome, Outcome::Whole, "{account:?}");
        assert_eq!(
            fallen(&account, "odd"),
            [
                "day text infinity",
                "hour text 24:00:00, which is not within a day",
                "many text",
                "moment text infinity",
                "price text NaN, which a decimal does not have"
            ]
        );
        assert_eq!(fallen(&account, "usual"), [""; 0]);
        let lies = "binary bytes that are no text in the encoding of the database";
        assert_eq!(
            fallen(&account, "lies"),
            [format!("list {lies}"), format!("words {lies}")]
        );
        let (_, batches) = read(&destination.join(format!("bytes/public.lies.{form}")));
        let expected = [
            [hex(b"fine"), hex(b"{fine}")],
            [hex(b"n\xE4h"), hex(b"{n\xE4h}")],
        ];
        assert_eq!(
            rows_of(&batches),
            expected.map(|row| row.map(Some).to_vec())
        );
        let mut running = copy.start().expect("a server");
        let mut session = common::session(&running, "postgres");
        assert!(compare(&mut session, "postgres", &destination, form) >= 2);
        drop(session);
        running.stop(StopMode::Fast).expect("stopped");
        let left: Vec<_> = std::fs::read_dir(destination.join("postgres"))
            .expect("a directory")
            .flatten()
            .collect();
        assert!(
            left.iter()
                .all(|entry| !entry.file_name().to_string_lossy().ends_with(".part"))
        );
    }
}

/// Columns of a table that are not what their types have, each with as what and why.
fn fallen(account: &SalvageReport, table: &str) -> Vec<String> {
    let table = account
        .tables
        .iter()
        .find(|one| one.table == table)
        .expect("a table");
    let words = table.columns_as.iter().map(|column| {
        let why = column.why.trim_start_matches("it holds ");
        // Which of two reasons is met first depends on the threads.
        let why = if why.starts_with("an array") { "" } else { why };
        format!("{} {} {why}", column.column, column.written_as)
            .trim_end()
            .to_owned()
    });
    let mut words: Vec<String> = words.collect();
    words.sort();
    words
}

/// Large objects are rows of one file, an object without a page too.
#[test]
fn large_objects_are_rows() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "parquet"));
    let objects = account.large_objects.first().expect("large objects");
    let (_, batches) = read(&destination.join(&objects.file));
    let mut found = std::collections::BTreeMap::<String, Vec<u8>>::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let oid = shown(batch.column(0), row).expect("an oid");
            let start = batch.column(1).as_primitive::<Int64Type>().value(row);
            let object = found.entry(oid).or_default();
            object.resize(usize::try_from(start).expect("small").max(object.len()), 0);
            object.extend_from_slice(batch.column(2).as_binary::<i32>().value(row));
        }
    }
    let running = copy.start().expect("a server");
    let mut session = session(&running, "clinic");
    let asked = "SELECT oid::text, encode(lo_get(oid), 'hex') FROM pg_largeobject_metadata ORDER BY oid::text";
    let expected = session.query(asked).expect("objects");
    let found: Rows = found
        .into_iter()
        .map(|(oid, bytes)| vec![Some(oid), Some(hex(&bytes))])
        .collect();
    assert_eq!(found, expected);
    assert_eq!(objects.objects, 12);
}

/// Guessed columns are columns too, and the large objects are the same; keys are not known, which
/// is told.
#[test]
fn tables_without_catalogs_have_columns() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let (known, blind) = (folder.path().join("known"), folder.path().join("blind"));
    salvaged(&copy.pgdata, &options(&known, "parquet"));
    let mut options = options(&blind, "parquet");
    options.without_catalogs = true;
    options.verify = true;
    let account = salvaged(&copy.pgdata, &options);
    let mut rows = 0;
    for table in &account.tables {
        let file = table.file.as_ref().expect("a whole file");
        let (_, batches) = read(&blind.join(file));
        let found: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let sound = table.rows.written - table.rows.suspect;
        assert_eq!(found, sound, "{}", table.table);
        rows += found;
    }
    assert!(rows > 1000, "{rows}");
    let objects = "clinic/large_objects.parquet";
    let rows_in = |folder: &Path| rows_of(&read(&folder.join(objects)).1);
    assert_eq!(rows_in(&blind), rows_in(&known));
    let of_keys = |what: &str| what == "keys and counts of the tables of database clinic";
    let told = account.not_salvaged.iter().any(|one| of_keys(&one.what));
    assert!(told, "{:?}", account.not_salvaged);
}
