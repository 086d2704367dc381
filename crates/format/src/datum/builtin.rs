//! The built-in types, so that values can be printed without catalogs; truth: `pg_type.dat`,
//! `pg_range.dat`. The same OIDs from 13 to 18, but for multiranges (14) and the size of an
//! `aclitem` (12 bytes before 16): the table has that of 18.

use std::sync::Arc;

use super::types::{TypeInfo, TypeKind};

const BY_VALUE: bool = true;
const BY_REFERENCE: bool = false;

/// OID, name, length, passed by value, alignment, OID of the array type or 0.
type Row = (u32, &'static str, i16, bool, u8, u32);

#[rustfmt::skip]
const BASE: &[Row] = &[
    (16, "bool", 1, BY_VALUE, 1, 1000),
    (17, "bytea", -1, BY_REFERENCE, 4, 1001),
    (18, "char", 1, BY_VALUE, 1, 1002),
    (19, "name", 64, BY_REFERENCE, 1, 1003),
    (20, "int8", 8, BY_VALUE, 8, 1016),
    (21, "int2", 2, BY_VALUE, 2, 1005),
    (22, "int2vector", -1, BY_REFERENCE, 4, 1006),
    (23, "int4", 4, BY_VALUE, 4, 1007),
    (24, "regproc", 4, BY_VALUE, 4, 1008),
    (25, "text", -1, BY_REFERENCE, 4, 1009),
    (26, "oid", 4, BY_VALUE, 4, 1028),
    (27, "tid", 6, BY_REFERENCE, 2, 1010),
    (28, "xid", 4, BY_VALUE, 4, 1011),
    (29, "cid", 4, BY_VALUE, 4, 1012),
    (30, "oidvector", -1, BY_REFERENCE, 4, 1013),
    (114, "json", -1, BY_REFERENCE, 4, 199),
    (142, "xml", -1, BY_REFERENCE, 4, 143),
    (194, "pg_node_tree", -1, BY_REFERENCE, 4, 0),
    (600, "point", 16, BY_REFERENCE, 8, 1017),
    (601, "lseg", 32, BY_REFERENCE, 8, 1018),
    (602, "path", -1, BY_REFERENCE, 8, 1019),
    (603, "box", 32, BY_REFERENCE, 8, 1020),
    (604, "polygon", -1, BY_REFERENCE, 8, 1027),
    (628, "line", 24, BY_REFERENCE, 8, 629),
    (650, "cidr", -1, BY_REFERENCE, 4, 651),
    (700, "float4", 4, BY_VALUE, 4, 1021),
    (701, "float8", 8, BY_VALUE, 8, 1022),
    (705, "unknown", -2, BY_REFERENCE, 1, 0),
    (718, "circle", 24, BY_REFERENCE, 8, 719),
    (774, "macaddr8", 8, BY_REFERENCE, 4, 775),
    (790, "money", 8, BY_VALUE, 8, 791),
    (829, "macaddr", 6, BY_REFERENCE, 4, 1040),
    (869, "inet", -1, BY_REFERENCE, 4, 1041),
    (1033, "aclitem", 16, BY_REFERENCE, 8, 1034),
    (1042, "bpchar", -1, BY_REFERENCE, 4, 1014),
    (1043, "varchar", -1, BY_REFERENCE, 4, 1015),
    (1082, "date", 4, BY_VALUE, 4, 1182),
    (1083, "time", 8, BY_VALUE, 8, 1183),
    (1114, "timestamp", 8, BY_VALUE, 8, 1115),
    (1184, "timestamptz", 8, BY_VALUE, 8, 1185),
    (1186, "interval", 16, BY_REFERENCE, 8, 1187),
    (1266, "timetz", 12, BY_REFERENCE, 8, 1270),
    (1560, "bit", -1, BY_REFERENCE, 4, 1561),
    (1562, "varbit", -1, BY_REFERENCE, 4, 1563),
    (1700, "numeric", -1, BY_REFERENCE, 4, 1231),
    (1790, "refcursor", -1, BY_REFERENCE, 4, 2201),
    (2202, "regprocedure", 4, BY_VALUE, 4, 2207),
    (2203, "regoper", 4, BY_VALUE, 4, 2208),
    (2204, "regoperator", 4, BY_VALUE, 4, 2209),
    (2205, "regclass", 4, BY_VALUE, 4, 2210),
    (2206, "regtype", 4, BY_VALUE, 4, 2211),
    (2275, "cstring", -2, BY_REFERENCE, 1, 1263),
    (2277, "anyarray", -1, BY_REFERENCE, 8, 0),
    (2950, "uuid", 16, BY_REFERENCE, 1, 2951),
    (2970, "txid_snapshot", -1, BY_REFERENCE, 8, 2949),
    (3220, "pg_lsn", 8, BY_VALUE, 8, 3221),
    (3361, "pg_ndistinct", -1, BY_REFERENCE, 4, 0),
    (3402, "pg_dependencies", -1, BY_REFERENCE, 4, 0),
    (3614, "tsvector", -1, BY_REFERENCE, 4, 3643),
    (3615, "tsquery", -1, BY_REFERENCE, 4, 3645),
    (3642, "gtsvector", -1, BY_REFERENCE, 4, 3644),
    (3734, "regconfig", 4, BY_VALUE, 4, 3735),
    (3769, "regdictionary", 4, BY_VALUE, 4, 3770),
    (3802, "jsonb", -1, BY_REFERENCE, 4, 3807),
    (4072, "jsonpath", -1, BY_REFERENCE, 4, 4073),
    (4089, "regnamespace", 4, BY_VALUE, 4, 4090),
    (4096, "regrole", 4, BY_VALUE, 4, 4097),
    (4191, "regcollation", 4, BY_VALUE, 4, 4192),
    (4600, "pg_brin_bloom_summary", -1, BY_REFERENCE, 4, 0),
    (4601, "pg_brin_minmax_multi_summary", -1, BY_REFERENCE, 4, 0),
    (5017, "pg_mcv_list", -1, BY_REFERENCE, 4, 0),
    (5038, "pg_snapshot", -1, BY_REFERENCE, 8, 5039),
    (5069, "xid8", 8, BY_VALUE, 8, 271),
];

struct Range {
    oid: u32,
    name: &'static str,
    array: u32,
    subtype: u32,
    multirange: u32,
    multirange_name: &'static str,
    multirange_array: u32,
}

#[rustfmt::skip]
const RANGES: &[Range] = &[
    Range { oid: 3904, name: "int4range", array: 3905, subtype: 23, multirange: 4451, multirange_name: "int4multirange", multirange_array: 6150 },
    Range { oid: 3906, name: "numrange", array: 3907, subtype: 1700, multirange: 4532, multirange_name: "nummultirange", multirange_array: 6151 },
    Range { oid: 3908, name: "tsrange", array: 3909, subtype: 1114, multirange: 4533, multirange_name: "tsmultirange", multirange_array: 6152 },
    Range { oid: 3910, name: "tstzrange", array: 3911, subtype: 1184, multirange: 4534, multirange_name: "tstzmultirange", multirange_array: 6153 },
    Range { oid: 3912, name: "daterange", array: 3913, subtype: 1082, multirange: 4535, multirange_name: "datemultirange", multirange_array: 6155 },
    Range { oid: 3926, name: "int8range", array: 3927, subtype: 20, multirange: 4536, multirange_name: "int8multirange", multirange_array: 6157 },
];

/// The built-in type of this OID, arrays and ranges included; row types of catalogs are not.
/// Each call searches and builds anew: keep the answer for a whole column.
pub fn builtin(oid: u32) -> Option<TypeInfo> {
    plain(oid).or_else(|| array(oid))
}

/// The OIDs of all types that [`builtin`] knows, rising.
pub fn builtin_oids() -> Vec<u32> {
    let base = BASE.iter().flat_map(|row| [row.0, row.5]);
    let ranges = RANGES
        .iter()
        .flat_map(|row| [row.oid, row.array, row.multirange, row.multirange_array]);
    let mut oids: Vec<u32> = base.chain(ranges).filter(|&oid| oid != 0).collect();
    oids.sort_unstable();
    oids
}

fn plain(oid: u32) -> Option<TypeInfo> {
    base(oid).or_else(|| range(oid))
}

fn base(oid: u32) -> Option<TypeInfo> {
    let &(oid, name, len, byval, align, _) = BASE.iter().find(|row| row.0 == oid)?;
    Some(TypeInfo {
        oid,
        name: name.to_owned(),
        len,
        byval,
        align,
        kind: TypeKind::Base,
    })
}

fn range(oid: u32) -> Option<TypeInfo> {
    let row = RANGES
        .iter()
        .find(|row| row.oid == oid || row.multirange == oid)?;
    let subtype = Arc::new(base(row.subtype)?);
    let align = subtype.align.max(4);
    let (name, kind) = if row.oid == oid {
        (row.name, TypeKind::Range(subtype))
    } else {
        (row.multirange_name, TypeKind::Multirange(subtype))
    };
    Some(TypeInfo {
        oid,
        name: name.to_owned(),
        len: -1,
        byval: false,
        align,
        kind,
    })
}

fn array(oid: u32) -> Option<TypeInfo> {
    let of_base = BASE
        .iter()
        .find(|row| row.5 == oid && oid != 0)
        .map(|row| row.0);
    let of_range = RANGES.iter().find_map(|row| match oid {
        _ if oid == row.array => Some(row.oid),
        _ if oid == row.multirange_array => Some(row.multirange),
        _ => None,
    });
    let element = plain(of_base.or(of_range)?)?;
    let name = format!("_{}", element.name);
    let align = element.align.max(4);
    Some(TypeInfo {
        oid,
        name,
        len: -1,
        byval: false,
        align,
        kind: TypeKind::Array(Arc::new(element)),
    })
}
