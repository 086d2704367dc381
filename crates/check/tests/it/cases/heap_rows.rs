//! The first half of `pg_amcheck`'s test of heap tuples, on its own table: a frozen row, and one
//! edit of it after the other.

use pgclinic_format::Page;
use pgclinic_format::build::{put_u16, put_u32, seal_page};
use pgclinic_format::heap_tuple::{HEAP_HASNULL, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI};
use pgclinic_model::Level;
use pgclinic_servers::{Checksums, StartOptions, StopMode};
use pgclinic_testkit::{checked, copy_of, open, seed, server};

use crate::cases::scene::PAGE;

const TABLE: [&str; 4] = [
    "CREATE TABLE public.test (a bigint, b text, c text)",
    "ALTER TABLE public.test ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL",
    "INSERT INTO public.test SELECT 12345678, 'abcdefg', repeat('w', 10000) FROM generate_series(1, 18)",
    "VACUUM (FREEZE) public.test",
];

/// Bytes of the parts of the row.
const INFOMASK2: usize = 18;
const INFOMASK: usize = 20;
const HOFF: usize = 22;
const BITS: usize = 23;
const TEXT: usize = 32;
const POINTER: usize = 40;

/// The numbers that the edits go by.
struct Limits {
    frozen: u32,
    next: u32,
}

struct Case {
    words: &'static str,
    edit: fn(&mut [u8], &Limits),
    /// One of these is told of the row.
    rules: &'static [&'static str],
}

fn clear(row: &mut [u8], bits: u16) {
    let mask = u16::from_le_bytes([row[INFOMASK], row[INFOMASK + 1]]);
    put_u16(row, INFOMASK, mask & !bits);
}

fn set(row: &mut [u8], at: usize, bits: u16) {
    let mask = u16::from_le_bytes([row[at], row[at + 1]]);
    put_u16(row, at, mask | bits);
}

fn xmin(row: &mut [u8], xid: u32) {
    put_u32(row, 0, xid);
    // HEAP_XMIN_COMMITTED and HEAP_XMIN_INVALID: together they say frozen.
    clear(row, 0x0300);
}

fn xmax(row: &mut [u8], xid: u32) {
    put_u32(row, 4, xid);
    clear(row, HEAP_XMAX_INVALID);
}

fn multixact(row: &mut [u8], number: u32) {
    xmax(row, number);
    set(row, INFOMASK, HEAP_XMAX_IS_MULTI);
}

fn attributes(row: &mut [u8], count: u16) {
    put_u16(row, INFOMASK2, count);
}

const CASES: [Case; 17] = [
    Case {
        words: "xmin before relfrozenxid",
        edit: |row, limits| xmin(row, limits.frozen - 1),
        rules: &["xmin-before-freeze"],
    },
    Case {
        words: "xmin 3",
        edit: |row, _| xmin(row, 3),
        rules: &["xmin-before-freeze"],
    },
    Case {
        words: "xmin on the other side of the circle",
        edit: |row, limits| xmin(row, limits.next.wrapping_sub(1 << 30)),
        rules: &["xmin-before-freeze"],
    },
    Case {
        words: "xmax on the other side of the circle",
        edit: |row, limits| xmax(row, limits.next.wrapping_sub(1 << 30)),
        rules: &["xmax-before-freeze"],
    },
    Case {
        words: "xmin far in the future",
        edit: |row, limits| xmin(row, limits.next + 123_456),
        rules: &["xmin-in-the-future"],
    },
    Case {
        words: "t_hoff 128 more",
        edit: |row, _| row[HOFF] += 128,
        rules: &["hoff-beyond-tuple"],
    },
    Case {
        words: "t_hoff 3 more",
        edit: |row, _| row[HOFF] += 3,
        rules: &["hoff-mismatch"],
    },
    Case {
        words: "t_hoff 8 less",
        edit: |row, _| row[HOFF] -= 8,
        rules: &["hoff-mismatch", "hoff-beyond-tuple"],
    },
    Case {
        words: "t_hoff 3 less",
        edit: |row, _| row[HOFF] -= 3,
        rules: &["hoff-mismatch", "hoff-beyond-tuple"],
    },
    Case {
        words: "2047 attributes",
        edit: |row, _| attributes(row, 2047),
        rules: &["too-many-attributes"],
    },
    Case {
        words: "2047 attributes and a bitmap",
        edit: |row, _| {
            attributes(row, 2047);
            set(row, INFOMASK, HEAP_HASNULL);
        },
        rules: &["too-many-attributes", "hoff-mismatch"],
    },
    Case {
        words: "67 attributes and a bitmap that fits",
        edit: |row, _| {
            attributes(row, 67);
            set(row, INFOMASK, HEAP_HASNULL);
            row[HOFF] = 32;
            row[BITS] = 0;
        },
        rules: &["too-many-attributes"],
    },
    Case {
        words: "a short value becomes a huge one",
        edit: |row, _| put_u32(row, TEXT, 0xFFFF_FFFC),
        rules: &["attribute-beyond-tuple", "varlena-length"],
    },
    Case {
        words: "the number of a TOASTed value is unknown",
        edit: |row, _| put_u32(row, POINTER + 10, 7_654_321),
        rules: &["toast-value-missing"],
    },
    Case {
        words: "multixact 4",
        edit: |row, _| multixact(row, 4),
        rules: &["multixact-in-the-future", "multixact-before-minimum"],
    },
    Case {
        words: "multixact 4000000000",
        edit: |row, _| multixact(row, 4_000_000_000),
        rules: &["multixact-before-minimum"],
    },
    Case {
        words: "nothing",
        edit: |_, _| {},
        rules: &[],
    },
];

fn edits_are_found(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let options = StartOptions::default().with("autovacuum", "off");
    let mut server = copy.start_with(&options).expect("a server");
    let mut session = server.connect("postgres").expect("a session");
    for sql in TABLE {
        session.execute(sql).expect(sql);
    }
    let path = session.query_value("SELECT pg_relation_filepath('public.test')");
    let path = path.expect("an answer").expect("a path");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");

    let cluster = open(&copy.pgdata);
    let control = cluster.control.trusted().expect("a control file");
    let file = copy.pgdata.join(&path);
    let mut page = std::fs::read(&file).expect("a table");
    assert_eq!(page.len(), PAGE);
    let next = control.checkpoint.next_xid().0;
    let limits = Limits {
        // The table was frozen at the newest transaction but few.
        frozen: next - 10,
        next,
    };
    for (item, case) in (1..).zip(&CASES) {
        let view = Page::parse(&page).expect("a page");
        let pointer = view.line_pointer(item).expect("a row");
        assert_eq!(pointer.lp_len(), 58, "the row is as it was predicted");
        let start = usize::from(pointer.lp_off());
        (case.edit)(&mut page[start..start + 58], &limits);
    }
    seal_page(&mut page, 0);
    std::fs::write(&file, &page).expect("a write");
    let document = checked(&open(&copy.pgdata), Level::Full);
    let mut wrong = Vec::new();
    for (item, case) in (1_u16..).zip(&CASES) {
        let own = document.findings.iter();
        let own = own.filter(|one| one.place.path == path && one.place.item == Some(item));
        let told: Vec<&str> = own.map(|one| one.rule.as_str()).collect();
        let is_found = case.rules.iter().any(|rule| told.contains(rule));
        if is_found == case.rules.is_empty() || case.rules.is_empty() != told.is_empty() {
            wrong.push(format!("{}: {told:?}", case.words));
        }
    }
    assert!(wrong.is_empty(), "{major}\n{}", wrong.join("\n"));
}

#[test]
fn edits_of_a_row_of_15_are_found() {
    edits_are_found(15);
}

#[test]
fn edits_of_a_row_of_18_are_found() {
    edits_are_found(18);
}
