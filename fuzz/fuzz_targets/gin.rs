//! Any bytes as a GIN page: the first two choose columns and flags. Bounded: each list is walked
//! once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::Page;
use pgclinic_format::attribute::ColumnLayout;
use pgclinic_format::build::put_u16;
use pgclinic_format::gin::{
    EntryTuple, KeyShape, Meta, Opaque, Posting, Segments, for_each_row, posting_items, right_bound,
};

const fn column(attlen: i16, attalign: u8) -> ColumnLayout {
    ColumnLayout { attlen, attalign }
}

const COLUMNS: [ColumnLayout; 5] = [
    column(-1, 4),
    column(4, 4),
    column(8, 8),
    column(-2, 1),
    column(16, 1),
];

fuzz_target!(|bytes: &[u8]| {
    let [choice, flags, rest @ ..] = bytes else {
        return;
    };
    let mut block = rest.to_vec();
    block.resize(1024, 0);
    // Header fields that make the rest reachable.
    put_u16(&mut block, 16, 1016);
    put_u16(&mut block, 1022, u16::from(*flags));
    let page = Page::parse(&block).expect("a block size");
    let columns = &COLUMNS[..1 + usize::from(*choice) % COLUMNS.len()];
    take_apart(page, KeyShape { columns });
});

fn take_apart(page: Page<'_>, shape: KeyShape<'_>) {
    let _ = (Meta::of(page), right_bound(page));
    let opaque = Opaque::of(page).expect("a special space of 8 bytes");
    assert_ne!(opaque.kind().is_some(), opaque.contradiction().is_some());
    assert!(posting_items(page).count() <= usize::from(opaque.maxoff));
    let mut at = 0;
    for segment in Segments::of(page) {
        assert!(segment.at > at, "lists do not go on");
        at = segment.at;
        walk(segment.rows);
    }
    for (_, pointer) in page.line_pointers() {
        let Some(entry) = page.item(pointer).and_then(EntryTuple::parse) else {
            continue;
        };
        if let Ok((key, end)) = entry.key(shape) {
            assert!(end <= entry.bytes().len() && key.bytes.len() <= end);
            let _ = entry.rows_fault(end).map(|fault| fault.to_string());
        }
        let _ = entry.size_fault().map(|fault| fault.to_string());
        if let Some(Posting::List { rows, .. }) = entry.posting() {
            walk(rows);
        }
    }
    let mut rows = 0u32;
    for_each_row(page, &mut |_| rows += 1);
}

fn walk(rows: impl Iterator<Item = Result<pgclinic_format::types::Tid, impl std::fmt::Display>>) {
    let mut before = None;
    for row in rows {
        match row {
            Ok(tid) => {
                assert!(before < Some(tid), "row numbers do not rise");
                before = Some(tid);
            }
            Err(fault) => drop(fault.to_string()),
        }
    }
}
