//! What is salvaged from a stopped cluster is what its server gave with `COPY … TO`, to the byte.

use pgclinic_model::document::Outcome;

use crate::common;

use std::path::Path;

use common::{compare, copied, options, salvaged};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

const DATABASES: [&str; 3] = ["clinic", "od\"d näme", "postgres"];

fn salvage_equals_copy(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let forms = [
        ("copy", "copy", ""),
        ("csv", "csv", "(FORMAT csv, HEADER)"),
        ("binary", "bin", "(FORMAT binary)"),
    ];
    let expected =
        forms.map(|(_, _, with)| DATABASES.map(|database| copied(&running, database, with)));
    running.stop(StopMode::Fast).expect("stopped");
    let tables = expected.first().into_iter().flatten();
    let tables: usize = tables.map(|tables| tables.len()).sum();
    for ((form, extension, _), expected) in forms.iter().zip(&expected) {
        let folder = tempfile::tempdir().expect("a directory");
        let destination = folder.path().join("out");
        let account = salvaged(&copy.pgdata, &options(&destination, form));
        for expected in expected {
            compare(&destination, extension, expected);
        }
        let lossy: Vec<_> = account
            .tables
            .iter()
            .filter(|table| !table.places.is_empty())
            .collect();
        assert_eq!(
            account.outcome,
            Outcome::Whole,
            "{lossy:#?} {:?}",
            account.not_salvaged
        );
        assert_eq!(account.tables.len(), tables);
    }
}

#[test]
fn of_13() {
    salvage_equals_copy(13);
}

#[test]
fn of_14() {
    salvage_equals_copy(14);
}

#[test]
fn of_15() {
    salvage_equals_copy(15);
}

#[test]
fn of_16_and_17() {
    salvage_equals_copy(16);
    salvage_equals_copy(17);
}

#[test]
fn of_18() {
    salvage_equals_copy(18);
}

/// What the inserts of a salvage make in an empty table is what was in it.
#[test]
fn inserts_are_read_back() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    salvaged(&copy.pgdata, &options(&destination, "sql"));
    let running = copy.start().expect("a server");
    let expected = copied(&running, "clinic", "");
    let mut session = common::session(&running, "clinic");
    for table in [
        "all_types",
        "types_hstore",
        "scratchpad",
        "columnless",
        "wide",
    ] {
        let path = destination.join(format!("clinic/public.{table}.sql"));
        let text = std::fs::read_to_string(&path).expect("a file");
        session
            .execute(&format!("TRUNCATE public.{table}"))
            .and_then(|()| session.execute(&text))
            .unwrap_or_else(|error| panic!("{table}: {error}"));
    }
    assert!(
        copied(&running, "clinic", "") == expected,
        "the tables differ"
    );
}

/// Every line is an object with all columns, and says what the server's `row_to_json` says of plain
/// values.
#[test]
fn json_lines_are_objects() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let destination = folder.path().join("out");
    salvaged(&copy.pgdata, &options(&destination, "jsonl"));
    let path = destination.join("clinic/public.all_types.jsonl");
    let text = std::fs::read_to_string(path).expect("a file");
    let mut rows = 0;
    for line in text.lines() {
        let row: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(row.len(), 68);
        assert!(row.get("id").is_some_and(serde_json::Value::is_number));
        assert!(
            row.get("c_jsonb")
                .is_some_and(|value| value.is_object() || value.is_null())
        );
        rows += 1;
    }
    assert_eq!(rows, 175);
}

/// Large objects come in one tar file that a tar program unpacks, and go back under their numbers;
/// sequences likewise.
#[test]
fn large_objects_and_sequences_go_back() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder =
        pgclinic_servers::Scratch::new(&pgclinic_testkit::run_as(), None).expect("a directory");
    let destination = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&destination, "csv"));
    let objects = account.large_objects.first().expect("large objects");
    assert_eq!(objects.objects, 12);
    let unpacked = folder.folder("unpacked").expect("a directory");
    let tar = std::process::Command::new("tar")
        .arg("-xf")
        .arg(destination.join(&objects.file))
        .arg("-C")
        .arg(&unpacked)
        .status();
    assert!(tar.is_ok_and(|status| status.success()));
    let _opened = std::process::Command::new("chmod")
        .args(["-R", "a+rX"])
        .arg(&unpacked)
        .status();

    let running = copy.start().expect("a server");
    let mut session = common::session(&running, "clinic");
    let sums = "SELECT string_agg(oid || ' ' || md5(lo_get(oid)), ',' ORDER BY oid) FROM pg_largeobject_metadata";
    let before = session.query_value(sums).expect("sums");
    session
        .execute("SELECT lo_unlink(oid) FROM pg_largeobject_metadata")
        .expect("no objects");
    if let Some(tool) = server(15).tool("psql") {
        let directory = format!("directory={}", unpacked.display());
        let restored = pgclinic_testkit::run_as()
            .command(&tool)
            .args([
                "-X", "-q", "-U", "postgres", "-d", "clinic", "-v", &directory,
            ])
            .arg("-h")
            .arg(running.socket_folder())
            .arg("-f")
            .arg(unpacked.join("restore.sql"))
            .output()
            .expect("psql runs");
        assert_eq!(String::from_utf8_lossy(&restored.stderr), "");
        assert_eq!(session.query_value(sums).expect("sums"), before);
    }

    let values = "SELECT string_agg(schemaname || sequencename || last_value, ',' ORDER BY 1) FROM pg_sequences";
    let before = session.query_value(values).expect("values");
    let script =
        std::fs::read_to_string(destination.join("clinic/sequences.sql")).expect("a script");
    session
        .execute("SELECT setval('public.countdown', 7)")
        .and_then(|()| session.execute(&script))
        .expect("set");
    assert_eq!(session.query_value(values).expect("values"), before);
}

/// Every character of the single-byte encodings is the one that the server knows.
#[test]
fn characters_are_those_of_the_server() {
    const NAMES: [(i32, &str); 27] = [
        (8, "LATIN1"),
        (9, "LATIN2"),
        (10, "LATIN3"),
        (11, "LATIN4"),
        (12, "LATIN5"),
        (13, "LATIN6"),
        (14, "LATIN7"),
        (15, "LATIN8"),
        (16, "LATIN9"),
        (17, "LATIN10"),
        (18, "WIN1256"),
        (19, "WIN1258"),
        (20, "WIN866"),
        (21, "WIN874"),
        (22, "KOI8R"),
        (23, "WIN1251"),
        (24, "WIN1252"),
        (25, "ISO_8859_5"),
        (26, "ISO_8859_6"),
        (27, "ISO_8859_7"),
        (28, "ISO_8859_8"),
        (29, "WIN1250"),
        (30, "WIN1253"),
        (31, "WIN1254"),
        (32, "WIN1255"),
        (33, "WIN1257"),
        (34, "KOI8U"),
    ];
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let mut session = common::session(&running, "clinic");
    let function = "CREATE FUNCTION pg_temp.character(byte int, encoding name) RETURNS text LANGUAGE plpgsql AS \
         'BEGIN RETURN convert_from(set_byte(''\\x00'', 0, byte), encoding); EXCEPTION WHEN OTHERS THEN RETURN NULL; END'";
    session.execute(function).expect("a function");
    let mut different = Vec::new();
    for (number, name) in NAMES {
        let charset = pgclinic_cluster::Charset::to_utf8(Some(number));
        let sql = format!(
            "SELECT pg_temp.character(byte, '{name}') FROM generate_series(128, 255) byte ORDER BY byte"
        );
        let rows = session.query(&sql).expect("characters");
        for (byte, row) in (0x80..=0xFFu8).zip(rows) {
            // What the server refuses is no text there.
            if let Some(Some(text)) = row.first() {
                let own = charset.text(&[byte]);
                if own.as_deref() != Some(text.as_str()) {
                    different.push(format!("{name} {byte:02x}: {own:?}, server {text:?}"));
                }
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Every code of the encodings of several bytes stands for the characters that the server's own
/// conversion gives, and for none where it gives none.
#[test]
fn characters_of_several_bytes_are_those_of_the_server() {
    /// The bytes in front of those from A1 to FE that follow, two or one.
    type Sets = &'static [(&'static str, usize)];
    const NAMES: [(i32, &str, Sets); 5] = [
        (1, "EUC_JP", &[("", 2), ("8E", 1), ("8F", 2)]),
        (2, "EUC_CN", &[("", 2)]),
        (3, "EUC_KR", &[("", 2)]),
        (
            4,
            "EUC_TW",
            &[
                ("", 2),
                ("8EA1", 2),
                ("8EA2", 2),
                ("8EA3", 2),
                ("8EA4", 2),
                ("8EA5", 2),
                ("8EA6", 2),
                ("8EA7", 2),
                ("8EA8", 2),
                ("8EAE", 2),
                ("8EAF", 2),
                ("8EB0", 2),
            ],
        ),
        (5, "EUC_JIS_2004", &[("", 2), ("8E", 1), ("8F", 2)]),
    ];
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start().expect("a server");
    let mut session = common::session(&running, "clinic");
    let function = "CREATE FUNCTION pg_temp.character(code bytea, encoding name) RETURNS text LANGUAGE plpgsql AS \
         'BEGIN RETURN convert_from(code, encoding); EXCEPTION WHEN OTHERS THEN RETURN NULL; END'";
    session.execute(function).expect("a function");
    let mut different = Vec::new();
    for (number, name, sets) in NAMES {
        let charset = pgclinic_cluster::Charset::to_utf8(Some(number));
        let mut characters = 0;
        for (prefix, len) in sets {
            let last = match len {
                1 => "generate_series(0, 0) b",
                _ => "generate_series(161, 254) b",
            };
            let sql = format!(
                "SELECT encode(code, 'hex'), pg_temp.character(code, '{name}') FROM (SELECT '\\x{prefix}'::bytea || \
                 CASE WHEN b = 0 THEN set_byte('\\x00', 0, a) ELSE set_byte(set_byte('\\x0000', 0, a), 1, b) END AS code \
                 FROM generate_series(161, 254) a, {last}) c"
            );
            for row in session.query(&sql).expect("characters") {
                let [Some(code), text] = row.as_slice() else {
                    panic!("{row:?}");
                };
                let bytes: Vec<u8> = (0..code.len())
                    .step_by(2)
                    .map(|at| u8::from_str_radix(&code[at..at + 2], 16).expect("a byte"))
                    .collect();
                let own = charset.text(&bytes);
                characters += usize::from(text.is_some());
                if own != *text {
                    different.push(format!("{name} {code}: {own:?}, server {text:?}"));
                }
            }
        }
        assert!(characters > 5000, "{name} has {characters}");
    }
    assert!(
        different.is_empty(),
        "{} differ: {:?}",
        different.len(),
        different.iter().take(20).collect::<Vec<_>>()
    );
}

/// Blocks of a segment in the cluster of the next test; one of 1 GiB has 131,072.
const SEGMENT_BLOCKS: u32 = 16;

/// Cuts the relation files below a folder into segments.
fn cut_into_segments(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            cut_into_segments(&path);
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let mut segments = bytes.chunks(SEGMENT_BLOCKS as usize * 8192);
        std::fs::write(&path, segments.next().unwrap_or_default()).expect("cut");
        for (number, segment) in (1..).zip(segments) {
            std::fs::write(format!("{}.{number}", path.display()), segment).expect("a segment");
        }
    }
}

/// Tables, long values, large objects and catalogs of many segments are what they are in one.
#[test]
fn tables_of_many_segments_are_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let folder = tempfile::tempdir().expect("a directory");
    let (one, many) = (folder.path().join("one"), folder.path().join("many"));
    let expected = salvaged(&copy.pgdata, &options(&one, "copy"));

    cut_into_segments(&copy.pgdata.join("base"));
    copy.tablespaces
        .iter()
        .for_each(|folder| cut_into_segments(folder));
    let control = copy.pgdata.join("global/pg_control");
    let mut bytes = std::fs::read(&control).expect("a file");
    // The size of a block, and behind it the blocks of a segment.
    let sizes = [8192u32, 131_072].map(u32::to_le_bytes).concat();
    let at = bytes.windows(8).position(|window| window == sizes);
    let at = at.expect("the sizes") + 4;
    bytes[at..at + 4].copy_from_slice(&SEGMENT_BLOCKS.to_le_bytes());
    assert!(pgclinic_format::control_file::seal(&mut bytes));
    std::fs::write(&control, bytes).expect("a file");

    let found = salvaged(&copy.pgdata, &options(&many, "copy"));
    assert_eq!(found.outcome, Outcome::Whole, "{:?}", found.not_salvaged);
    assert_eq!(found.tables, expected.tables);
    let files = expected
        .tables
        .iter()
        .filter_map(|table| table.file.as_ref());
    let objects = expected.large_objects.iter().map(|objects| &objects.file);
    for file in files.chain(objects) {
        let of = |folder: &Path| std::fs::read(folder.join(file)).expect("a file");
        assert!(of(&many) == of(&one), "{file}");
    }
}
