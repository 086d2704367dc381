//! Any bytes as a heap tuple, walked with the columns that the first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pgclinic_format::attribute::{Attribute, Attributes, ColumnLayout};
use pgclinic_format::layout::{CatalogColumn, LAYOUTS};
use pgclinic_format::{HeapTuple, Varlena, flags, sequence, toast::ToastPointer, varlena};

const fn column(attlen: i16, attalign: u8) -> ColumnLayout {
    ColumnLayout { attlen, attalign }
}

/// Every length and alignment that types have, long values between short ones.
const MIXED: [ColumnLayout; 10] = [
    column(1, 1),
    column(-1, 4),
    column(2, 2),
    column(-2, 1),
    column(8, 8),
    column(-1, 8),
    column(4, 4),
    column(-1, 1),
    column(64, 1),
    column(-1, 4),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let Some(tuple) = HeapTuple::parse(bytes) else {
        return;
    };
    header(tuple);
    walk(tuple, &columns(*choice));
});

fn columns(choice: u8) -> Vec<ColumnLayout> {
    let layout = &LAYOUTS[usize::from(choice / 8) % LAYOUTS.len()];
    let of = |columns: &[CatalogColumn]| columns.iter().map(|column| column.layout).collect();
    match choice % 8 {
        0 => of(layout.pg_class),
        1 => of(layout.pg_attribute),
        2 => of(layout.pg_database),
        3 => of(layout.pg_namespace),
        4 => sequence::COLUMNS.to_vec(),
        _ => MIXED.to_vec(),
    }
}

fn header(tuple: HeapTuple<'_>) {
    let _ = (
        tuple.t_xmin(),
        tuple.t_xmax(),
        tuple.t_field3(),
        tuple.t_ctid().to_string(),
    );
    let _ = (
        tuple.expected_hoff(),
        tuple.null_bitmap(),
        tuple.attribute_count(),
    );
    let _ = (
        tuple.xmax_is_locked_only(),
        tuple.xmax_is_from_before_93(),
        tuple.xmin_is_frozen(),
    );
    let _ = flags::names(tuple.t_infomask(), flags::T_INFOMASK);
    let _ = flags::names(tuple.t_infomask2(), flags::T_INFOMASK2);
}

fn walk(tuple: HeapTuple<'_>, columns: &[ColumnLayout]) {
    let mut end = 0;
    let mut steps = 0;
    for step in Attributes::new(tuple, columns) {
        steps += 1;
        let Ok(Attribute::Value(range)) = step else {
            continue;
        };
        assert!(
            end <= range.start && range.start <= range.end,
            "attributes overlap"
        );
        end = range.end;
        let value = tuple.bytes().get(range).expect("a value lies in its tuple");
        one_varlena(value);
    }
    assert!(steps <= columns.len());
}

fn one_varlena(value: &[u8]) {
    let parsed = varlena::parse(value);
    assert_eq!(
        parsed.map(|(_, total)| total),
        varlena::total_len(value),
        "two answers to one question"
    );
    let Ok((parsed, total)) = parsed else { return };
    assert!(total <= value.len());
    if let Varlena::External(pointer) = parsed {
        assert_eq!(ToastPointer::parse(&pointer.to_bytes()), Some(pointer));
        let _ = pointer.is_compressed();
    }
}
