//! Names of types to what their values look like on disk.

use std::collections::HashMap;
use std::sync::Arc;

use pgclinic_format::datum::{Field, TypeInfo, TypeKind, builtin, builtin_oids};
use pgclinic_format::types::FIRST_NORMAL_OID;

/// The types that a file knows: those of every server, and those that it makes.
pub(super) struct Types {
    known: HashMap<String, Arc<TypeInfo>>,
}

/// The standard's names; truth: `src/backend/parser/gram.y`.
const STANDARD: &[(&str, &str)] = &[
    ("bigint", "int8"),
    ("bigserial", "int8"),
    ("serial8", "int8"),
    ("int", "int4"),
    ("integer", "int4"),
    ("serial", "int4"),
    ("serial4", "int4"),
    ("smallint", "int2"),
    ("smallserial", "int2"),
    ("serial2", "int2"),
    ("boolean", "bool"),
    ("character varying", "varchar"),
    ("national character varying", "varchar"),
    ("char varying", "varchar"),
    ("character", "bpchar"),
    ("national character", "bpchar"),
    ("nchar", "bpchar"),
    ("bit varying", "varbit"),
    ("decimal", "numeric"),
    ("dec", "numeric"),
    ("double precision", "float8"),
    ("real", "float4"),
    ("time without time zone", "time"),
    ("time with time zone", "timetz"),
    ("timestamp without time zone", "timestamp"),
    ("timestamp with time zone", "timestamptz"),
];

/// Types of extensions that are laid out like one of every server.
const EXTENSIONS: &[&str] = &["hstore", "citext", "ltree", "cube"];

impl Types {
    pub(super) fn new() -> Self {
        let mut known = HashMap::new();
        for info in builtin_oids().into_iter().filter_map(builtin) {
            known.insert(info.name.clone(), Arc::new(info));
        }
        for name in EXTENSIONS {
            known.insert((*name).to_owned(), Arc::new(of_extension(name)));
        }
        // Any composite type, of which only the alignment is known.
        known.insert("record".to_owned(), Arc::new(record()));
        let mut types = Types { known };
        for (name, own) in STANDARD {
            if let Some(info) = types.known.get(*own).cloned() {
                types.known.insert((*name).to_owned(), info);
            }
        }
        // `char` alone is `character(1)`; the type of that name stands between quotes.
        let quoted = types.known.get("char").cloned();
        types
            .known
            .extend(quoted.map(|info| ("\"char\"".to_owned(), info)));
        let padded = types.known.get("bpchar").cloned();
        types
            .known
            .extend(padded.map(|info| ("char".to_owned(), info)));
        // `float` alone, or with up to 53 digits.
        let float = types.known.get("float8").cloned();
        types
            .known
            .extend(float.map(|info| ("float".to_owned(), info)));
        types
    }

    /// The type of this name, or an array of it.
    pub(super) fn find(&self, name: &str, is_array: bool) -> Option<Arc<TypeInfo>> {
        let info = self.known.get(name)?;
        if !is_array {
            return Some(Arc::clone(info));
        }
        let own = builtin_oids().into_iter().filter_map(builtin);
        let mut arrays = own.filter(|array| array.name == format!("_{}", info.name));
        Some(Arc::new(arrays.next().unwrap_or_else(|| array_of(info))))
    }

    /// Makes a type known. The last one of a name counts.
    pub(super) fn add(&mut self, name: &str, info: TypeInfo) {
        self.known.insert(name.to_owned(), Arc::new(info));
    }
}

fn made(name: &str, align: u8, kind: TypeKind) -> TypeInfo {
    TypeInfo {
        oid: 0,
        name: name.to_owned(),
        len: -1,
        byval: false,
        align,
        kind,
    }
}

pub(super) fn of_extension(name: &str) -> TypeInfo {
    TypeInfo {
        // Types with OIDs from here on are printed by their names.
        oid: FIRST_NORMAL_OID,
        ..made(name, if name == "cube" { 8 } else { 4 }, TypeKind::Base)
    }
}

fn array_of(element: &Arc<TypeInfo>) -> TypeInfo {
    let name = format!("_{}", element.name);
    made(
        &name,
        element.align.max(4),
        TypeKind::Array(Arc::clone(element)),
    )
}

/// An enum, whose labels stand in the catalogs under numbers that the file cannot tell: its values are numbers.
pub(super) fn enumeration() -> Option<TypeInfo> {
    const OID: u32 = 26;
    builtin(OID)
}

pub(super) fn domain(name: &str, base: &Arc<TypeInfo>) -> TypeInfo {
    TypeInfo {
        oid: 0,
        name: name.to_owned(),
        kind: TypeKind::Domain(Arc::clone(base)),
        ..TypeInfo::clone(base)
    }
}

pub(super) fn composite(name: &str, fields: Vec<(String, Arc<TypeInfo>)>) -> TypeInfo {
    let fields = fields.into_iter().map(|(name, ty)| Field {
        name,
        ty,
        collation: 0,
        dropped: false,
    });
    made(name, 8, TypeKind::Composite(fields.collect()))
}

pub(super) fn range(name: &str, subtype: &Arc<TypeInfo>) -> TypeInfo {
    made(
        name,
        subtype.align.max(4),
        TypeKind::Range(Arc::clone(subtype)),
    )
}

fn record() -> TypeInfo {
    made("record", 8, TypeKind::Unknown)
}

/// A column that was dropped: bytes of this length and alignment.
pub(super) fn dropped(len: i16, align: u8) -> TypeInfo {
    TypeInfo {
        len,
        ..made("dropped", align, TypeKind::Unknown)
    }
}
