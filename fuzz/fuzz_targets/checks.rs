//! Any bytes as the pages of a table, its long values, its indexes of every access method, its maps
//! and a sequence: every check looks at them at level full, and the ledger balances.
#![no_main]

use std::num::NonZeroUsize;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::Cluster;
use pgclinic_format::attribute::ColumnLayout;
use pgclinic_format::build::put_u16;
use pgclinic_fuzz::{Choice, Files, PAGE_BYTES};
use pgclinic_model::{Level, Progress, Selection};
use pgclinic_spill::MemoryPlan;

const TABLE: u32 = 16_384;
const TOAST: u32 = 16_385;
const SEQUENCE: u32 = 16_386;
const FIRST_INDEX: u32 = 16_390;

/// Name, type, length and alignment.
const COLUMNS: [(&str, u32, i16, u8); 9] = [
    ("id", 23, 4, 4),
    ("what", 25, -1, 4),
    ("price", 1700, -1, 4),
    ("span", 3904, -1, 4),
    ("net", 869, -1, 4),
    ("tags", 1007, -1, 4),
    ("spot", 600, 16, 8),
    ("body", 3802, -1, 4),
    ("words", 3614, -1, 4),
];

/// Access method, bytes of its special space, family, input type, column of the table, type kept.
const INDEXES: [(u32, usize, u32, u32, u32, u32); 16] = [
    (403, 16, 1976, 23, 1, 23),
    (403, 16, 1994, 25, 2, 25),
    (403, 16, 1988, 1700, 3, 1700),
    (405, 16, 1977, 23, 1, 23),
    (405, 16, 1995, 25, 2, 23),
    (783, 16, 3919, 3831, 4, 3904),
    (783, 16, 3550, 869, 5, 869),
    (783, 16, 1029, 600, 7, 603),
    (2742, 8, 2745, 2277, 6, 23),
    (2742, 8, 4036, 3802, 8, 25),
    (2742, 8, 3659, 3614, 9, 25),
    (4000, 8, 4017, 25, 2, 25),
    (4000, 8, 4015, 600, 7, 600),
    (3580, 8, 4054, 23, 1, 23),
    (3580, 8, 4103, 3831, 4, 3831),
    (3580, 8, 4572, 23, 1, 23),
];

struct Quiet;

impl Progress for Quiet {
    fn expect(&self, _bytes: u64) {}
    fn advance(&self, _bytes: u64) {}
    fn is_interrupted(&self) -> bool {
        false
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut files = Files::new();
    relations(&mut files);
    let mut choice = Choice(bytes);
    while page(&mut files, &mut choice).is_some() {}
    let cluster = Cluster::open(Arc::new(files.cluster())).expect("a cluster");
    let options = CheckOptions {
        level: Level::Full,
        threads: NonZeroUsize::MIN,
        evidence: 1,
        selection: Selection::default(),
        spec: String::new(),
        memory: MemoryPlan::new(1 << 20),
        spill_folder: std::env::temp_dir(),
        since: None,
    };
    let document = check_cluster(&cluster, &options, &Quiet);
    assert!(document.findings_total >= document.findings.len() as u64);
});

fn layout(attlen: i16, attalign: u8) -> ColumnLayout {
    ColumnLayout { attlen, attalign }
}

fn relations(files: &mut Files) {
    let own = |oid: u32, natts: usize| {
        let natts = u32::try_from(natts).expect("few columns");
        [("oid", oid), ("relfilenode", oid), ("relnatts", natts)]
    };
    let table = [&own(TABLE, COLUMNS.len())[..], &[("reltoastrelid", TOAST)]].concat();
    files.class("visits", b'r', &table);
    for ((name, ty, len, align), number) in COLUMNS.into_iter().zip(1..) {
        let values = [("attnum", number), ("atttypid", ty), ("attcollation", 950)];
        files.attribute(TABLE, (name, layout(len, align)), &values);
    }
    files.class("pg_toast_16384", b't', &own(TOAST, 3));
    let chunks = [
        ("chunk_id", 26, 4),
        ("chunk_seq", 23, 4),
        ("chunk_data", 17, -1),
    ];
    for ((name, ty, len), number) in chunks.into_iter().zip(1..) {
        let values = [("attnum", number), ("atttypid", ty)];
        files.attribute(TOAST, (name, layout(len, 4)), &values);
    }
    files.class("visits_seq", b'S', &own(SEQUENCE, 3));
    for (index, oid) in INDEXES.into_iter().zip(FIRST_INDEX..) {
        index_of(files, index, oid, &own(oid, 1));
    }
    for (oid, provider) in [(100, b'c'), (950, b'c')] {
        let values = [
            ("oid", oid),
            ("collprovider", u32::from(provider)),
            ("collisdeterministic", 1),
        ];
        files.catalog(
            3456,
            &values,
            &[("collcollate", b"C"), ("colllocale", b"C")],
        );
    }
}

fn index_of(
    files: &mut Files,
    (method, _, family, input_type, key, kept): (u32, usize, u32, u32, u32, u32),
    oid: u32,
    own: &[(&str, u32)],
) {
    let class = [own, &[("relam", method)]].concat();
    files.class(&format!("index_{oid}"), b'i', &class);
    let (len, align) = match kept {
        23 => (4, 4),
        600 => (16, 8),
        603 => (32, 8),
        _ => (-1, 4),
    };
    let values = [("attnum", 1), ("atttypid", kept), ("attcollation", 950)];
    files.attribute(oid, ("key", layout(len, align)), &values);
    let class = oid - 10_000;
    let values = [
        ("oid", class),
        ("opcmethod", method),
        ("opcfamily", family),
        ("opcintype", input_type),
    ];
    files.catalog(2616, &values, &[]);
    let truth = ["indisvalid", "indisready", "indislive", "indimmediate"];
    let mut values: Vec<(&str, u32)> = truth.into_iter().map(|name| (name, 1)).collect();
    values.extend([
        ("indexrelid", oid),
        ("indrelid", TABLE),
        ("indnkeyatts", 1),
        ("indisunique", u32::from(method == 403)),
    ]);
    let vector = |element: &[u8]| [&[0; 20], element].concat();
    let long = [
        ("indkey", vector(&key.to_le_bytes()[..2])),
        ("indcollation", vector(&950u32.to_le_bytes())),
        ("indclass", vector(&class.to_le_bytes())),
        ("indoption", vector(&[0, 0])),
    ];
    let long: Vec<(&str, &[u8])> = long.iter().map(|(name, own)| (*name, &own[..])).collect();
    files.catalog(2610, &values, &long);
}

/// A page of the relation that the bytes choose, with a header that the server would take.
fn page(files: &mut Files, choice: &mut Choice<'_>) -> Option<()> {
    let relation = usize::from(choice.byte()?) % (INDEXES.len() + 3);
    let (file, special) = match INDEXES.get(relation) {
        Some((_, special, ..)) => (FIRST_INDEX + u32::try_from(relation).ok()?, *special),
        None => match relation - INDEXES.len() {
            0 => (TABLE, 0),
            1 => (TOAST, 0),
            _ => (SEQUENCE, 8),
        },
    };
    let (lower, upper) = (usize::from(choice.byte()?), usize::from(choice.byte()?));
    let mut page = vec![0; PAGE_BYTES];
    let special_at = PAGE_BYTES - special;
    let lower = 24 + lower * 4 % (special_at - 24);
    let upper = lower + (upper * 8 % (special_at - lower + 1)) / 8 * 8;
    let (head, items) = (choice.byte()?, choice.byte()?);
    fill(&mut page, 24, choice.bytes(usize::from(head) * 2));
    fill(&mut page, upper, choice.bytes(usize::from(items) * 4));
    fill(&mut page, special_at, choice.bytes(special));
    put_u16(&mut page, 12, u16::try_from(lower).ok()?);
    put_u16(&mut page, 14, u16::try_from(upper.min(special_at)).ok()?);
    put_u16(&mut page, 16, u16::try_from(special_at).ok()?);
    put_u16(&mut page, 18, 1024 | 4);
    files.page(file, &page);
    Some(())
}

fn fill(page: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = page.get_mut(at..) {
        let len = room.len().min(bytes.len());
        room[..len].copy_from_slice(&bytes[..len]);
    }
}
