//! Whatever the bytes say, printing ends: no panic, no text and no binary form beyond the limit.

use std::sync::Arc;

use pgclinic_format::datum::{
    BinaryWriter, Field, Limits, TypeInfo, TypeKind, UndecodableKind, builtin, builtin_oids,
    decompress, to_text, to_value,
};
use pgclinic_format::pglz;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    output_bytes: 10_000,
    unpacked_bytes: 10_000,
    depth: 16,
    major: 18,
};

fn base(name: &str, oid: u32) -> TypeInfo {
    TypeInfo {
        oid,
        name: name.to_owned(),
        len: -1,
        byval: false,
        align: 4,
        kind: TypeKind::Base,
    }
}

/// All built-in types, those of extensions, and a row of several.
fn types() -> Vec<TypeInfo> {
    let mut types: Vec<TypeInfo> = builtin_oids().into_iter().filter_map(builtin).collect();
    types.extend(["hstore", "citext", "ltree", "cube"].map(|name| base(name, 20_000)));
    let mut field = |oid| Field {
        name: "f".to_owned(),
        ty: Arc::new(builtin(oid).unwrap()),
        collation: 0,
        dropped: false,
    };
    let fields = [25, 23, 1009, 3802, 3908].map(&mut field).to_vec();
    types.push(TypeInfo {
        kind: TypeKind::Composite(fields),
        ..base("row", 20_001)
    });
    types
}

fn print_as_all(types: &[TypeInfo], bytes: &[u8]) {
    for ty in types {
        if let Ok(text) = to_text(ty, bytes, LIMITS) {
            assert!(text.len() <= LIMITS.output_bytes);
        }
        let mut out = Vec::new();
        let mut as_it_is = |text: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(text);
            true
        };
        if BinaryWriter::new(LIMITS)
            .write(ty, bytes, &mut out, &mut as_it_is)
            .is_ok()
        {
            assert!(out.len() <= LIMITS.output_bytes);
        }
    }
}

/// Bytes that look like something: small little-endian words among random ones.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => 0_u32..8,
        2 => 0_u32..256,
        1 => any::<u32>(),
        1 => prop::sample::select(vec![0x8000_0000, 0x2000_0001, 0x4000_0001, 0x5000_0001, 0x5000_0008, 0x8000_0001, 23, 25]),
    ];
    prop::collection::vec(word, 0..40)
        .prop_map(|words| words.into_iter().flat_map(u32::to_le_bytes).collect())
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        print_as_all(&types(), &bytes);
    }

    #[test]
    fn likely_bytes_never_panic(bytes in words()) {
        print_as_all(&types(), &bytes);
    }

    #[test]
    fn pglz_gives_back_what_it_took(raw in prop::collection::vec(0_u8..4, 0..3000)) {
        let packed = pglz::compress(&raw);
        prop_assert_eq!(decompress(0, &packed, raw.len()), Ok(raw));
    }

    #[test]
    fn lz4_gives_back_what_it_took(raw in prop::collection::vec(0_u8..4, 0..3000)) {
        let packed = lz4_flex::block::compress(&raw);
        prop_assert_eq!(decompress(1, &packed, raw.len()), Ok(raw.clone()));
        prop_assert!(decompress(1, &packed, raw.len() + 1).is_err());
    }

    #[test]
    fn random_streams_never_unpack_beyond_the_size(
        method in 0_u8..3, data in prop::collection::vec(any::<u8>(), 0..300), size in 0_usize..5000,
    ) {
        if let Ok(raw) = decompress(method, &data, size) {
            prop_assert_eq!(raw.len(), size);
        }
    }

    #[test]
    fn every_double_reads_back(bits in any::<u64>()) {
        let number = f64::from_bits(bits);
        let text = to_text(&builtin(701).unwrap(), &bits.to_le_bytes(), LIMITS).unwrap();
        let back = text.replace("Infinity", "inf").parse::<f64>().unwrap();
        prop_assert!(back == number || number.is_nan());
    }
}

#[test]
fn a_bomb_meets_the_limit() {
    // An array of one text that says it unpacks to 900 MB.
    let mut bytes = [1_u32, 0, 25, 1, 1].map(u32::to_le_bytes).concat();
    bytes.extend((12_u32 << 2 | 2).to_le_bytes());
    bytes.extend(900_000_000_u32.to_le_bytes());
    bytes.extend([0; 4]);
    let error = to_text(&builtin(1009).unwrap(), &bytes, LIMITS).unwrap_err();
    assert_eq!(error.trouble, UndecodableKind::Limit);
}

#[test]
fn a_domain_of_itself_meets_the_depth() {
    let mut ty = builtin(23).unwrap();
    for _ in 0..100 {
        ty = TypeInfo {
            kind: TypeKind::Domain(Arc::new(ty)),
            ..base("d", 20_000)
        };
    }
    assert_eq!(
        to_text(&ty, &[1, 0, 0, 0], LIMITS).unwrap_err().trouble,
        UndecodableKind::Limit
    );
}

#[test]
fn arrays_that_claim_to_hold_arrays_meet_the_depth() {
    // The server has no arrays of `_int4`, but an element type is only a number in the value.
    let mut bytes = [0_u32, 0, 1007].map(u32::to_le_bytes).concat();
    for _ in 0..1000 {
        let header = u32::try_from(bytes.len() + 4).unwrap() << 2;
        let head = [1, 0, 1007, 1, 1, header].map(u32::to_le_bytes).concat();
        bytes = [head, bytes].concat();
    }
    let limits = Limits {
        depth: u16::MAX,
        ..Limits::default()
    };
    let error = to_text(&builtin(1007).unwrap(), &bytes, limits).unwrap_err();
    assert_eq!(error.trouble, UndecodableKind::Limit);
}

#[test]
fn a_jsonpath_of_many_nots_meets_the_depth() {
    // Each `!` has no next item and its operand twelve bytes further.
    let mut bytes = 0x8000_0001_u32.to_le_bytes().to_vec();
    for _ in 0..1000 {
        bytes.extend([6_u32, 0, 12].map(u32::to_le_bytes).concat());
    }
    let limits = Limits {
        depth: u16::MAX,
        ..Limits::default()
    };
    let error = to_text(&builtin(4072).unwrap(), &bytes, limits).unwrap_err();
    assert_eq!(error.trouble, UndecodableKind::Limit);
}

#[test]
fn jsonb_may_nest_deeper_than_the_limit_for_types() {
    // [[[…]]]: a container of one container each.
    let mut bytes = 0x4000_0000_u32.to_le_bytes().to_vec();
    for _ in 0..1000 {
        let length = u32::try_from(bytes.len()).unwrap();
        let head = [0x4000_0001, 0x5000_0000 | length]
            .map(u32::to_le_bytes)
            .concat();
        bytes = [head, bytes].concat();
    }
    assert_eq!(
        to_text(&builtin(3802).unwrap(), &bytes, LIMITS).unwrap(),
        "[".repeat(1001) + &"]".repeat(1001)
    );
}

#[test]
fn text_of_another_encoding_is_kept_as_bytes() {
    use pgclinic_format::datum::Value;
    let text = builtin(25).unwrap();
    assert_eq!(
        to_value(&text, b"gr\xFC\xDFe", LIMITS),
        Ok(Value::Bytes(b"gr\xFC\xDFe".to_vec()))
    );
    let error = to_text(&text, b"gr\xFC\xDFe", LIMITS).unwrap_err();
    assert_eq!(error.to_string(), "text is not valid UTF-8 at byte 2");
}

#[test]
fn majors_differ_where_they_did() {
    let text = |oid, bytes: &[u8], major| {
        to_value(&builtin(oid).unwrap(), bytes, Limits { major, ..LIMITS }).unwrap()
    };
    let infinity = [
        i64::MAX.to_le_bytes(),
        [0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F],
    ]
    .concat();
    use pgclinic_format::datum::Value::{Bytes, Text};
    assert_eq!(text(1186, &infinity, 17), Text("infinity".to_owned()));
    let finite = "178956970 years 7 mons 2147483647 days 2562047788:00:54.775807";
    assert_eq!(text(1186, &infinity, 16), Text(finite.to_owned()));
    assert_eq!(text(18, &[0xE9], 14), Bytes(vec![0xE9]));
    assert_eq!(text(18, &[0xE9], 15), Text("\\351".to_owned()));
}
