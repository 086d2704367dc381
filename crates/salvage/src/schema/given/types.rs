//! Names of types to what their values look like on disk.

use std::collections::HashMap;
use std::sync::Arc;

use pgclinic_format::datum::{DESCRIBED_OID, Field, TypeInfo, TypeKind, builtin, builtin_oids};

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
    // Domains of the extensions lo and earthdistance.
    ("lo", "oid"),
    ("earth", "cube"),
];

/// Types of extensions that are laid out like one of every server.
const EXTENSIONS: &[&str] = &["hstore", "citext", "ltree", "cube"];

/// Types of extensions whose text is not known here: length, by value or not, alignment. Truth:
/// their SQL files.
const STORED: &[(&str, i16, bool, u8)] = &[
    // PostGIS
    ("geometry", -1, false, 8),
    ("geography", -1, false, 8),
    ("raster", -1, false, 8),
    ("box3d", 52, false, 8),
    ("box2d", 65, false, 4),
    ("box2df", 16, false, 8),
    ("spheroid", 65, false, 8),
    // ip4r
    ("ip4", 4, true, 4),
    ("ip4r", 8, false, 4),
    ("ip6", 16, false, 8),
    ("ip6r", 32, false, 8),
    ("ipaddress", -1, false, 4),
    ("iprange", -1, false, 4),
    // pgvector
    ("vector", -1, false, 4),
    ("halfvec", -1, false, 4),
    ("sparsevec", -1, false, 4),
    // seg, isn, ltree, intarray
    ("seg", 12, false, 4),
    ("ean13", 8, true, 8),
    ("isbn13", 8, true, 8),
    ("ismn13", 8, true, 8),
    ("issn13", 8, true, 8),
    ("isbn", 8, true, 8),
    ("ismn", 8, true, 8),
    ("issn", 8, true, 8),
    ("upc", 8, true, 8),
    ("lquery", -1, false, 4),
    ("ltxtquery", -1, false, 4),
    ("query_int", -1, false, 4),
];

/// A base type of this layout.
pub(super) fn stored(name: &str, len: i16, byval: bool, align: u8) -> TypeInfo {
    TypeInfo {
        oid: DESCRIBED_OID,
        len,
        byval,
        ..made(name, align, TypeKind::Base)
    }
}

impl Types {
    pub(super) fn new() -> Self {
        let mut known = HashMap::new();
        for info in builtin_oids().into_iter().filter_map(builtin) {
            known.insert(info.name.clone(), Arc::new(info));
        }
        for (name, len, byval, align) in STORED {
            let stored = stored(name, *len, *byval, *align);
            known.insert((*name).to_owned(), Arc::new(stored));
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
        let is_built_in = !matches!(info.oid, 0 | DESCRIBED_OID);
        let mut arrays = own.filter(|array| is_built_in && array.name == format!("_{}", info.name));
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
        // Printed by its name.
        oid: DESCRIBED_OID,
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

/// An enum, whose labels stand in the catalogs under numbers that the file cannot tell: its values
/// are numbers.
pub(super) fn enumeration() -> Option<TypeInfo> {
    const OID: u32 = 26;
    let number = builtin(OID)?;
    Some(TypeInfo {
        // Inside an array it has the number of the enum.
        oid: 0,
        kind: TypeKind::Domain(Arc::new(number.clone())),
        ..number
    })
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

pub(super) fn multirange(name: &str, subtype: &Arc<TypeInfo>) -> TypeInfo {
    TypeInfo {
        kind: TypeKind::Multirange(Arc::clone(subtype)),
        ..range(name, subtype)
    }
}

/// As the server names a multirange that nobody names.
pub(super) fn multirange_name(range: &str) -> String {
    if range.contains("range") {
        range.replacen("range", "multirange", 1)
    } else {
        format!("{range}_multirange")
    }
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
