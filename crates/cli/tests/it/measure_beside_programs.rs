//! What only a server with lz4 and its own programs can confirm: values that keep an old method
//! until they are recast, and what a dump of large objects holds.

use pgclinic_model::document::{Figure, MeasureDocument};

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{pgclinic, text};
use pgclinic_servers::{Checksums, Server, Session, StopMode};
use pgclinic_testkit::{TempCopy, copy_of, run_as, seed, server};

/// Packed by lz4, in their rows and outside, then a column whose new values take pglz.
const MOVED: &str = "
CREATE TABLE public.moved (id int, note text COMPRESSION lz4, body jsonb COMPRESSION lz4, raw bytea COMPRESSION lz4);
INSERT INTO public.moved SELECT i, repeat(md5(i::text), 100), jsonb_build_object('list', array_agg(md5((i * j % 99)::text))), convert_to(repeat('x' || i, 900), 'UTF8')
  FROM generate_series(1, 60) AS i, generate_series(1, 5 * i) AS j GROUP BY i;
ALTER TABLE public.moved ALTER note SET COMPRESSION pglz, ALTER body SET COMPRESSION pglz, ALTER raw SET COMPRESSION pglz;
INSERT INTO public.moved SELECT i, repeat(md5(i::text), 100), '{}', '' FROM generate_series(61, 70) AS i;
CHECKPOINT";

const COLUMNS: [&str; 3] = ["note", "body", "raw"];

/// Objects of two owners, some with rights of their own, more than one entry of pg_dump 17 holds.
const OBJECTS: &str = "
CREATE ROLE painter;
SELECT count(lo_from_bytea(0, convert_to(repeat('x', 10 * (i % 9)), 'UTF8'))) FROM generate_series(1, 1150) AS i;
DO $$ DECLARE object oid; BEGIN
  FOR object IN SELECT oid FROM pg_largeobject_metadata ORDER BY oid LIMIT 40 LOOP EXECUTE format('ALTER LARGE OBJECT %s OWNER TO painter', object); END LOOP;
  FOR object IN SELECT oid FROM pg_largeobject_metadata WHERE lomowner = 'painter'::regrole ORDER BY oid LIMIT 15 LOOP EXECUTE format('GRANT SELECT ON LARGE OBJECT %s TO PUBLIC', object); END LOOP;
END $$;
CHECKPOINT";

#[test]
fn what_15_tells_of_its_values_and_writes_into_a_dump() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    execute(&mut session, OBJECTS);
    let has_lz4 = number(
        &mut session,
        "SELECT count(*) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)",
    ) == 1;
    let old = has_lz4.then(|| {
        execute(&mut session, MOVED);
        COLUMNS.map(|column| packed_by_lz4(&mut session, column))
    });
    drop(session);
    let dumped = Dumped::of(&running);
    running.stop(StopMode::Fast).expect("it stops");
    let document = measured(&copy);
    if let Some(dumped) = dumped {
        dumped.is_as_foretold(&document);
    }
    if let Some(old) = old {
        old_values_are_counted_and_recast(&copy, &document, old);
    }
}

fn old_values_are_counted_and_recast(copy: &TempCopy, document: &MeasureDocument, old: [u64; 3]) {
    assert!(old.iter().all(|values| *values > 0), "{old:?}");
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    let content = "SELECT md5(string_agg(moved::text, ',' ORDER BY id)) FROM public.moved";
    let before = session.query(content).expect("rows");
    for (column, old) in COLUMNS.into_iter().zip(old) {
        assert_eq!(
            toast(document, column, "old_method_values"),
            Some(Figure::Count(old))
        );
        let packed = ["lz4_values", "external_lz4_values"];
        let packed = packed.map(|name| match toast(document, column, name) {
            Some(Figure::Count(values)) => values,
            other => panic!("{name} is {other:?}"),
        });
        assert_eq!(packed.iter().sum::<u64>(), old, "of {column}");
        let Some(Figure::Text(recast)) = toast(document, column, "recast") else {
            panic!("no statement for {column}")
        };
        execute(&mut session, &recast);
        assert_eq!(packed_by_lz4(&mut session, column), 0, "{recast}");
    }
    assert_eq!(session.query(content).expect("rows"), before);
    execute(&mut session, "CHECKPOINT");
    drop(session);
    running.stop(StopMode::Fast).expect("it stops");
    let document = measured(copy);
    for column in COLUMNS {
        assert_eq!(
            toast(&document, column, "old_method_values"),
            Some(Figure::Count(0))
        );
        assert_eq!(toast(&document, column, "recast"), None);
    }
}

/// What the server's own programs say of a dump's large objects.
struct Dumped {
    entries: u64,
    files: u64,
    catalogue_bytes: u64,
}

impl Dumped {
    /// Nothing where the server came without its programs.
    fn of(running: &Server) -> Option<Self> {
        let tool = |name| running.installation().tool(name);
        let (dump, restore) = (tool("pg_dump")?, tool("pg_restore")?);
        let place = running.socket_folder();
        let [with, without] = [("with", "-b"), ("without", "-B")].map(|(name, objects)| {
            let folder = place.join(name);
            let mut command = run_as().command(&dump);
            command.args(["-U", "postgres", "-p", "5432", "-Fd", objects, "-f"]);
            output(command.arg(&folder).arg("-h").arg(place).arg("clinic"));
            folder
        });
        let catalogue = |folder: &Path| {
            std::fs::metadata(folder.join("toc.dat"))
                .expect("a catalogue")
                .len()
        };
        let list = output(run_as().command(&restore).arg("-l").arg(&with));
        let is_of_object =
            |line: &&str| line.contains("BLOB") || line.contains("ACL - LARGE OBJECT");
        let is_file = |name: &str| name.starts_with("blob");
        let names = std::fs::read_dir(&with).expect("a directory");
        let names = names.map(|entry| entry.expect("a file").file_name());
        let dumped = Dumped {
            entries: list
                .lines()
                .filter(|line| !line.starts_with(';'))
                .filter(is_of_object)
                .count() as u64,
            files: names
                .filter(|name| is_file(&name.to_string_lossy()))
                .count() as u64,
            catalogue_bytes: catalogue(&with) - catalogue(&without),
        };
        for folder in [with, without] {
            std::fs::remove_dir_all(folder).expect("a directory of ours");
        }
        Some(dumped)
    }

    fn is_as_foretold(&self, document: &MeasureDocument) {
        let clinic = document
            .databases
            .iter()
            .find(|own| own.database == "clinic");
        let foretold = |name: &str| match &clinic.expect("clinic").sections["large_objects"][name] {
            Some(Figure::Count(number)) => *number,
            other => panic!("{name} is {other:?}"),
        };
        assert_eq!(self.entries, foretold("dump_entries_to_16"));
        assert_eq!(self.files, foretold("directory_files_to_16"));
        let (foretold, tenth) = (
            foretold("dump_catalogue_bytes_to_16"),
            self.catalogue_bytes / 10,
        );
        assert!(
            self.catalogue_bytes.abs_diff(foretold) <= tenth,
            "predicted are {foretold} bytes, there are {}",
            self.catalogue_bytes
        );
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("a program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

fn execute(session: &mut Session, sql: &str) {
    session
        .execute(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn number(session: &mut Session, sql: &str) -> u64 {
    let rows = session
        .query(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let value = rows.first().and_then(|row| row.first()).cloned().flatten();
    value.and_then(|text| text.parse().ok()).expect("a number")
}

fn packed_by_lz4(session: &mut Session, column: &str) -> u64 {
    number(
        session,
        &format!("SELECT count(*) FROM public.moved WHERE pg_column_compression({column}) = 'lz4'"),
    )
}

fn measured(copy: &TempCopy) -> MeasureDocument {
    let ran = pgclinic(&[
        "measure",
        text(&copy.pgdata),
        "--database",
        "clinic",
        "--format",
        "json",
    ]);
    serde_json::from_str(&ran.exits(0).out).expect("a document")
}

fn toast(document: &MeasureDocument, column: &str, name: &str) -> Option<Figure> {
    let table = document
        .relations
        .iter()
        .find(|own| own.name() == "public.moved");
    let columns = &table.expect("the table").columns;
    let own = columns.iter().find(|own| own.name == column);
    own.expect("the column").sections["toast"][name].clone()
}
