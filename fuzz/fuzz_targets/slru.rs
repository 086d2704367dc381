//! Any bytes as pages of status logs, as the file of a prepared transaction and as replication
//! state: every entry is read or refused, and nothing is read behind the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::StatusLog;
use pgclinic_format::replication::{origin_fault, slot_fault};
use pgclinic_format::slru::{commit_ts, member, multi_offset, xact_status};
use pgclinic_format::two_phase::{TwoPhase, xid_of_name};

fuzz_target!(|bytes: &[u8]| {
    let page_bytes = bytes.len() as u64;
    for log in StatusLog::ALL {
        let _ = log.is_used_to_its_end(bytes);
        let number = bytes
            .first_chunk()
            .map_or(0, |word| u32::from_le_bytes(*word));
        let (page, entry) = (
            log.page_of(number, page_bytes),
            log.entry_of(number, page_bytes),
        );
        assert!(page <= log.last_page(page_bytes));
        assert!(entry <= u64::from(number));
        if let Ok(name) = std::str::from_utf8(bytes) {
            for major in 13..=18 {
                if let Some(segment) = log.segment_of(name, major) {
                    assert!(log.path(segment, major).starts_with(log.folder()));
                }
                let _ = xid_of_name(name, major);
            }
        }
    }
    for entry in (0..bytes.len().saturating_add(9)).chain([usize::MAX]) {
        let _ = (
            xact_status(bytes, entry),
            multi_offset(bytes, entry),
            member(bytes, entry),
            commit_ts(bytes, entry),
        );
    }
    for major in [13, 18] {
        if let Ok(file) = TwoPhase::parse(bytes, major) {
            assert!(file.created.len() * 12 <= bytes.len());
            let _ = file.is_right(bytes.len());
        }
    }
    let _ = (slot_fault(bytes), origin_fault(bytes));
});
