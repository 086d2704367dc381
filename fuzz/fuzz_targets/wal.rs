//! Any bytes as pages of WAL, as one record, as a history and as a `backup_label`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::backup_label::BackupLabel;
use pgclinic_format::wal::build::{MadePages, sealed};
use pgclinic_format::wal::{Event, History, Record, RowsWritten, Shape, WalReader};
use pgclinic_format::{Layout, Lsn};

fn read(pages: MadePages, shape: Shape) {
    let bytes = pages.bytes.len();
    let mut reader = WalReader::new(pages.clone(), shape, pages.start);
    let _ = reader.find_first();
    let mut records = 0;
    while let Ok(record) = reader.read() {
        let _ = (Event::of(&record, shape.major), RowsWritten::of(&record));
        for block in &record.blocks {
            let _ = (block.rewrites(), block.image.map(|image| image.page(8192)));
        }
        records += 1;
        assert!(records <= bytes, "each record takes bytes");
    }
    let mut reader = WalReader::new(pages.clone(), shape, Lsn(pages.start.0 + 40));
    if let Err(end) = reader.read() {
        assert!(!end.to_string().is_empty());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let major = 13 + u16::from(first % 6);
    let layout = Layout::of_major(major).expect("a major");
    let shape = Shape::new(layout, None, 1024, 1 << 20, 8192).expect("sizes");
    for start in [Lsn(1 << 20), Lsn(u64::MAX - (1 << 20) + 1)] {
        let mut page = rest.to_vec();
        page.resize(rest.len().next_multiple_of(1024), 0);
        let pages = MadePages {
            bytes: page,
            start,
            page_bytes: 1024,
        };
        read(pages.clone(), shape);
        // The same with headers that belong there.
        let mut right = pages;
        for (page, number) in right.bytes.chunks_exact_mut(1024).zip(0u64..) {
            let info = page[2] & 0x0B | if number == 0 { 2 } else { 0 };
            page[..2].copy_from_slice(&shape.magic.to_le_bytes());
            page[2..8].copy_from_slice(&[info, 0, 1, 0, 0, 0]);
            let address = start.0.wrapping_add(number * 1024);
            page[8..16].copy_from_slice(&address.to_le_bytes());
            if info & 2 != 0 {
                page[32..36].copy_from_slice(&shape.segment_bytes.to_le_bytes());
                page[36..40].copy_from_slice(&1024u32.to_le_bytes());
            }
        }
        read(right, shape);
    }
    let (manager, info) = (
        rest.first().copied().unwrap_or_default() % 24,
        rest.get(1).copied().unwrap_or_default(),
    );
    let record = sealed(manager, info, 7, Lsn(0), rest.get(2..).unwrap_or_default());
    for bytes in [record.as_slice(), rest] {
        if let Ok(record) = Record::parse(bytes, (Lsn(0), Lsn(8)), (major, 8192)) {
            let _ = format!("{:?}", Event::of(&record, major));
        }
    }
    let text = String::from_utf8_lossy(rest);
    let _ = (History::parse(9, &text), BackupLabel::parse(&text));
});
