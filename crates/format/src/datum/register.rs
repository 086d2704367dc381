//! Which function prints which type: built-in types by OID, types of extensions by name.

use super::printer::{Print, Printer};
use super::reader::exact;
use super::types::TypeInfo;
use super::undecodable::Undecodable;
use super::{
    array, bits, contrib, date_time, float, geometry, integer, interval, jsonb, jsonpath, money,
    network, numeric, object, snapshot, system, text, tsquery, tsvector, xml,
};
use crate::types::FIRST_NORMAL_OID;

pub(super) fn printer(ty: &TypeInfo) -> Option<Print> {
    if ty.oid >= FIRST_NORMAL_OID {
        by_name(&ty.name)
    } else {
        by_oid(ty.oid)
    }
}

fn by_oid(oid: u32) -> Option<Print> {
    Some(match oid {
        16 => integer::print_bool,
        17 => text::print_bytea,
        18 => text::print_char,
        19 => text::print_name,
        20 => integer::print_i64,
        21 => integer::print_i16,
        22 => array::print_int2vector,
        23 => integer::print_i32,
        26 | 28 | 29 => integer::print_u32,
        27 => system::print_tid,
        30 => array::print_oidvector,
        24 => object::print::<24>,
        2202 => object::print::<2202>,
        2203 => object::print_operator::<2203>,
        2204 => object::print_operator::<2204>,
        2205 => object::print::<2205>,
        2206 => object::print::<2206>,
        3734 => object::print::<3734>,
        3769 => object::print::<3769>,
        4089 => object::print::<4089>,
        4096 => object::print::<4096>,
        4191 => object::print::<4191>,
        25 | 114 | 194 | 705 | 1042 | 1043 | 1790 => text::print_text,
        142 => xml::print,
        600 => geometry::print_point,
        601 => geometry::print_lseg,
        602 => geometry::print_path,
        603 => geometry::print_box,
        604 => geometry::print_polygon,
        628 => geometry::print_line,
        718 => geometry::print_circle,
        650 => network::print_cidr,
        869 => network::print_inet,
        774 | 829 => network::print_macaddr,
        700 => float::print_f32,
        701 => float::print_f64,
        790 => money::print,
        1033 => system::print_aclitem,
        1082 => date_time::print_date,
        1083 => date_time::print_time,
        1114 => date_time::print_timestamp,
        1184 => date_time::print_timestamptz,
        1186 => interval::print,
        1266 => date_time::print_timetz,
        1560 | 1562 => bits::print,
        1700 => numeric::print,
        2275 => text::print_text,
        2277 => array::print_any,
        2950 => system::print_uuid,
        2970 | 5038 => snapshot::print,
        3220 => system::print_lsn,
        3361 => system::print_ndistinct,
        3402 => system::print_dependencies,
        3614 => tsvector::print,
        3615 => tsquery::print,
        3802 => jsonb::print,
        4072 => jsonpath::print,
        // pg_mcv_list and the BRIN summaries are printed as bytea.
        5017 => text::print_bytea,
        5069 => integer::print_u64,
        _ => return None,
    })
}

fn by_name(name: &str) -> Option<Print> {
    Some(match name {
        "citext" => text::print_text,
        "cube" => contrib::print_cube,
        "hstore" => contrib::print_hstore,
        "ltree" => contrib::print_ltree,
        _ => return None,
    })
}

/// An enum value is the OID of its row in `pg_enum`.
pub(super) fn enum_label(
    printer: &mut Printer,
    labels: &[(u32, Vec<u8>)],
    value: &[u8],
) -> Result<(), Undecodable> {
    let oid = u32::from_le_bytes(exact(value)?);
    let label = labels.iter().find(|(of, _)| *of == oid);
    let (_, label) = label.ok_or(Undecodable::damaged("the enum has no label of this OID", 0))?;
    printer.raw(label)
}
