//! Any bytes as a value of every type: two bytes choose the type, one the major, the rest is the
//! value.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use pgclinic_format::datum::{self, Field, Limits, TypeInfo, TypeKind, Value};

/// Small enough that a value which multiplies itself is cut off early.
const OUTPUT_BYTES: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let [low, high, major, value @ ..] = bytes else {
        return;
    };
    let types = types();
    let ty = &types[usize::from(u16::from_le_bytes([*low, *high])) % types.len()];
    let major = 13 + u16::from(*major % 6);
    let limits = Limits {
        output_bytes: OUTPUT_BYTES,
        unpacked_bytes: OUTPUT_BYTES,
        depth: 32,
        major,
    };
    print(ty, value, limits);
    for method in 0..4 {
        if let Ok(unpacked) = datum::decompress(method, value, 4096) {
            assert_eq!(
                unpacked.len(),
                4096,
                "method {method} gave another size than promised"
            );
        }
    }
});

fn print(ty: &TypeInfo, value: &[u8], limits: Limits) {
    let length = match datum::to_value(ty, value, limits) {
        Ok(Value::Text(text)) => {
            assert_eq!(datum::to_text(ty, value, limits), Ok(text.clone()));
            text.len()
        }
        Ok(Value::Bytes(bytes)) => bytes.len(),
        Err(undecodable) => undecodable.to_string().len(),
    };
    assert!(length <= OUTPUT_BYTES, "{} printed {length} bytes", ty.name);
    let mut out = Vec::new();
    let mut as_it_is = |text: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(text);
        true
    };
    let written = datum::BinaryWriter::new(limits).write(ty, value, &mut out, &mut as_it_is);
    assert!(
        written.is_err() || out.len() <= OUTPUT_BYTES,
        "{} gave {} bytes",
        ty.name,
        out.len()
    );
}

/// All built-in types, those of extensions, and what users make of them.
fn types() -> &'static [TypeInfo] {
    static TYPES: OnceLock<Vec<TypeInfo>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut types: Vec<TypeInfo> = datum::builtin_oids()
            .into_iter()
            .filter_map(datum::builtin)
            .collect();
        let mut user: Vec<TypeInfo> = ["citext", "cube", "hstore", "ltree"].map(extension).into();
        user.extend(made(&types));
        types.append(&mut user);
        types
    })
}

fn extension(name: &str) -> TypeInfo {
    user_type(name, TypeKind::Base)
}

fn user_type(name: &str, kind: TypeKind) -> TypeInfo {
    TypeInfo {
        oid: 16_500,
        name: name.into(),
        len: -1,
        byval: false,
        align: 8,
        kind,
    }
}

fn made(types: &[TypeInfo]) -> Vec<TypeInfo> {
    let field = |ty: &TypeInfo, dropped| Field {
        name: ty.name.clone(),
        ty: Arc::new(ty.clone()),
        dropped,
        collation: 0,
    };
    let fields = types
        .iter()
        .take(12)
        .enumerate()
        .map(|(at, ty)| field(ty, at % 5 == 4))
        .collect();
    let row = user_type("row", TypeKind::Composite(fields));
    let labels = vec![(16_501, b"red".to_vec()), (16_502, b"dark blue".to_vec())];
    let label = TypeInfo {
        len: 4,
        align: 4,
        ..user_type("colour", TypeKind::Enum(labels))
    };
    vec![
        user_type("rows", TypeKind::Array(Arc::new(row.clone()))),
        user_type("row_range", TypeKind::Range(Arc::new(row.clone()))),
        user_type("row_ranges", TypeKind::Multirange(Arc::new(row.clone()))),
        user_type("row_domain", TypeKind::Domain(Arc::new(row.clone()))),
        user_type("unknown", TypeKind::Unknown),
        row,
        label,
    ]
}
