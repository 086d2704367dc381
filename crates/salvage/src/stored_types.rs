//! Values of types whose text is not known here (base types in C that an extension or a user made),
//! on their way into a server: their stored bytes, read there by a type of the load's own that is
//! laid out like `bytea`, and cast to the type that they are of. No input function sees them, so
//! that none of them becomes another value.
//!
//! ```text
//! stored in the target     the cast from the load's own type
//! varlena                  WITHOUT FUNCTION: the server compares length, alignment and passing by itself
//! n bytes by reference     by `textout`, declared to give the type: a pointer to a copy of the n bytes
//! 1, 2, 4, 8 by value      the number that the bytes are, by `int4up` or `int8up`, declared to give the type
//! arrays                   element by element, the server's own array coercion: the element's OID is the new one
//! rows                     field by field, put together again as a row of the new type
//! ```
//!
//! All of this takes a superuser. Ranges over such types, and arrays of rows that hold them, are
//! left out by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pgclinic_format::Oid;
use pgclinic_format::datum::{Field, TypeInfo, TypeKind, is_printed};
use pgclinic_format::value_hash::hash_bytes;

use crate::schema::Catalogs;
use crate::texts::below_domains;

/// Types inside types deeper than this are not followed; catalogs follow no more either.
const DEPTH_MAX: u8 = 16;

/// Where what the load needs for itself stands.
pub(crate) const OWN_SCHEMA: &str = "pgclinic_salvage";

/// The type with bytes in the place of what is not known; nothing where that has no text, as with a
/// range over such a type.
pub(crate) fn with_bytes(ty: &TypeInfo) -> Option<TypeInfo> {
    with_bytes_to(ty, 0)
}

fn with_bytes_to(ty: &TypeInfo, depth: u8) -> Option<TypeInfo> {
    if depth > DEPTH_MAX {
        return None;
    }
    let inner = |ty: &TypeInfo| with_bytes_to(ty, depth + 1).map(Arc::new);
    let kind = match &ty.kind {
        _ if is_printed(ty) => ty.kind.clone(),
        TypeKind::Base if ty.len == -1 || ty.len > 0 => TypeKind::Bytes,
        TypeKind::Domain(base) => TypeKind::Domain(inner(base)?),
        TypeKind::Array(element) => TypeKind::Array(inner(element)?),
        TypeKind::Composite(fields) => {
            let field = |field: &Field| {
                if field.dropped {
                    Some(field.clone())
                } else {
                    Some(Field {
                        ty: inner(&field.ty)?,
                        ..field.clone()
                    })
                }
            };
            TypeKind::Composite(fields.iter().map(field).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(TypeInfo { kind, ..ty.clone() })
}

/// Statements that make a type of the load's own.
#[derive(Clone, Debug)]
pub(crate) struct OwnType {
    /// `TYPE public.geometry`, for messages.
    pub(crate) what: String,
    /// They can be run again.
    pub(crate) statements: String,
}

/// How a value of a column is read, and what it becomes.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    /// The type as which it is read.
    pub(crate) read_as: String,
    /// The value as the column has it.
    pub(crate) value: String,
    /// The load's own types that this takes, by number.
    pub(crate) own_types: BTreeSet<Oid>,
}

/// The types that a load makes for itself.
pub(crate) struct OwnTypes<'c> {
    catalogs: &'c Catalogs<'c>,
    /// By the OID of the type that each stands for. A row type comes behind those of its fields.
    made: BTreeMap<Oid, OwnType>,
    order: Vec<Oid>,
}

impl<'c> OwnTypes<'c> {
    pub(crate) fn new(catalogs: &'c Catalogs<'c>) -> Self {
        OwnTypes {
            catalogs,
            made: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    /// All of them, in the order in which they are made.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (Oid, &OwnType)> {
        let known = |oid: &Oid| Some((*oid, self.made.get(oid)?));
        self.order.iter().filter_map(known)
    }

    /// How values of a type come over that stand in the expression `value`; why they do not,
    /// otherwise.
    pub(crate) fn conversion(&mut self, ty: &TypeInfo, value: &str) -> Result<Conversion, String> {
        let mut own_types = BTreeSet::new();
        let (read_as, value) = self.convert(ty, value, &mut own_types, 0)?;
        Ok(Conversion {
            read_as,
            value,
            own_types,
        })
    }

    fn convert(
        &mut self,
        ty: &TypeInfo,
        value: &str,
        own: &mut BTreeSet<Oid>,
        depth: u8,
    ) -> Result<(String, String), String> {
        if depth > DEPTH_MAX {
            return Err("its type holds others deeper than is followed here".into());
        }
        let name = self.name_of(ty.oid)?;
        if is_printed(ty) {
            return Ok((name, value.to_owned()));
        }
        match &ty.kind {
            TypeKind::Base => {
                let read_as = self.take_base(ty, &name, own)?;
                Ok((read_as, format!("({value})::{name}")))
            }
            TypeKind::Domain(base) => {
                let (read_as, value) = self.convert(base, value, own, depth + 1)?;
                Ok((read_as, format!("({value})::{name}")))
            }
            TypeKind::Array(element) => match below_domains(element) {
                base if base.kind == TypeKind::Base => {
                    let base_name = self.name_of(base.oid)?;
                    let read_as = self.take_base(base, &base_name, own)?;
                    Ok((format!("{read_as}[]"), format!("({value})::{name}")))
                }
                _ => Err(format!(
                    "{name} is an array of values that hold others whose text is not known here"
                )),
            },
            TypeKind::Composite(fields) => {
                let read_as = own_name("row", ty.oid);
                let mut columns = Vec::new();
                let mut values = Vec::new();
                for field in fields.iter().filter(|field| !field.dropped) {
                    let field_name = self.catalogs.quoted(&field.name);
                    let inner = format!("({value}).{field_name}");
                    let (column, value) = self.convert(&field.ty, &inner, own, depth + 1)?;
                    columns.push(format!("{field_name} {column}"));
                    values.push(value);
                }
                let statements = format!(
                    "DROP TYPE IF EXISTS {read_as} CASCADE;\nCREATE TYPE {read_as} AS ({});\n",
                    columns.join(", ")
                );
                self.take(ty.oid, &name, statements, own);
                // A row of nulls is not a null.
                let whole = format!(
                    "CASE WHEN ({value}) IS NOT DISTINCT FROM NULL THEN NULL ELSE ROW({})::{name} END",
                    values.join(", ")
                );
                Ok((read_as, whole))
            }
            _ => Err(format!("the text of {name} is not known here")),
        }
    }

    fn name_of(&self, oid: Oid) -> Result<String, String> {
        let name = self.catalogs.type_name(oid);
        name.map_err(|refusal| refusal.to_string())
    }

    fn take(&mut self, oid: Oid, name: &str, statements: String, own: &mut BTreeSet<Oid>) {
        own.insert(oid);
        if self.made.contains_key(&oid) {
            return;
        }
        let what = format!("TYPE {name}");
        self.made.insert(oid, OwnType { what, statements });
        self.order.push(oid);
    }

    /// The load's own type that stands for a base type.
    fn take_base(
        &mut self,
        ty: &TypeInfo,
        name: &str,
        own: &mut BTreeSet<Oid>,
    ) -> Result<String, String> {
        let cast = match (ty.len, ty.byval) {
            (-1, _) => Cast::Varlena,
            (1.., false) => Cast::Bytes,
            (1 | 2 | 4 | 8, true) => Cast::Number,
            (len, _) => return Err(format!("{name} has a length of {len}")),
        };
        let read_as = own_name("stored", ty.oid);
        let statements = base_statements(ty, name, &read_as, cast)?;
        self.take(ty.oid, name, statements, own);
        Ok(read_as)
    }
}

/// How the load's own type becomes the one that it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cast {
    Varlena,
    Bytes,
    Number,
}

fn own_name(what: &str, oid: Oid) -> String {
    format!("{OWN_SCHEMA}.{what}_{oid}")
}

fn base_statements(ty: &TypeInfo, name: &str, read_as: &str, cast: Cast) -> Result<String, String> {
    // One that is not a varlena itself is read by functions for bytea.
    let align = match cast {
        Cast::Varlena => ty.align,
        Cast::Bytes | Cast::Number => 4,
    };
    let align = match align {
        1 => "char",
        2 => "int2",
        4 => "int4",
        _ => "double",
    };
    let make = "LANGUAGE internal IMMUTABLE STRICT AS";
    let mut sql = format!(
        "DROP TYPE IF EXISTS {read_as} CASCADE;\n\
         CREATE TYPE {read_as};\n\
         CREATE FUNCTION {read_as}_in(pg_catalog.cstring) RETURNS {read_as} {make} 'byteain';\n\
         CREATE FUNCTION {read_as}_out({read_as}) RETURNS pg_catalog.cstring {make} 'byteaout';\n\
         CREATE TYPE {read_as} (INPUT = {read_as}_in, OUTPUT = {read_as}_out, INTERNALLENGTH = variable, ALIGNMENT = {align}, STORAGE = extended);\n"
    );
    sql += &layout_check(ty, name);
    match cast {
        Cast::Varlena => sql += &format!("CREATE CAST ({read_as} AS {name}) WITHOUT FUNCTION;\n"),
        Cast::Bytes => {
            sql += &format!(
                "CREATE FUNCTION {read_as}_value({read_as}) RETURNS {name} {make} 'textout';\n"
            );
            sql += &format!(
                "CREATE CAST ({read_as} AS {name}) WITH FUNCTION {read_as}_value({read_as});\n"
            );
        }
        Cast::Number => sql += &number_statements(ty, name, read_as)?,
    }
    Ok(sql)
}

/// The bytes were written for this layout and no other.
fn layout_check(ty: &TypeInfo, name: &str) -> String {
    let align = match ty.align {
        1 => 'c',
        2 => 's',
        4 => 'i',
        _ => 'd',
    };
    let (len, byval) = (ty.len, ty.byval);
    // The function reads words as they lie in memory: its value tells the order of their bytes.
    const PROBE: &str = "pgclinic";
    let expected = hash_bytes(PROBE.as_bytes()).cast_signed();
    format!(
        "DO $check$ BEGIN\n  \
           IF NOT EXISTS (SELECT FROM pg_catalog.pg_type WHERE oid = {}::pg_catalog.regtype AND typlen = {len} AND typbyval = {byval} AND typalign = '{align}')\n    \
             OR pg_catalog.hashtext('{PROBE}' COLLATE pg_catalog.\"C\") <> {expected} THEN\n    \
             RAISE EXCEPTION 'values of this type are stored in another way here';\n  \
           END IF;\nEND $check$;\n",
        crate::schema::literal(name)
    )
}

/// The least byte comes first.
fn number_statements(ty: &TypeInfo, name: &str, read_as: &str) -> Result<String, String> {
    let count = u32::try_from(ty.len).map_err(|_| format!("{name} has an impossible length"))?;
    let (number, same) = match count {
        8 => ("pg_catalog.int8", "int8up"),
        _ => ("pg_catalog.int4", "int4up"),
    };
    let byte = |at: u32| {
        let shift = at * 8;
        format!("(pg_catalog.get_byte($1::pg_catalog.bytea, {at})::{number} << {shift})")
    };
    let bytes: Vec<String> = (0..count).map(byte).collect();
    let bytes = bytes.join(" | ");
    Ok(format!(
        "CREATE CAST ({read_as} AS pg_catalog.bytea) WITHOUT FUNCTION;\n\
         CREATE OR REPLACE FUNCTION {read_as}_number({number}) RETURNS {name} LANGUAGE internal IMMUTABLE STRICT AS '{same}';\n\
         CREATE FUNCTION {read_as}_value({read_as}) RETURNS {name} LANGUAGE sql IMMUTABLE STRICT AS\n  $value$ SELECT {read_as}_number({bytes}) $value$;\n\
         CREATE CAST ({read_as} AS {name}) WITH FUNCTION {read_as}_value({read_as});\n"
    ))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::datum::{Limits, to_text};

    use super::*;

    fn made(oid: u32, len: i16, kind: TypeKind) -> Arc<TypeInfo> {
        Arc::new(TypeInfo {
            oid,
            name: format!("of_{oid}"),
            len,
            byval: false,
            align: 4,
            kind,
        })
    }

    #[test]
    fn what_is_not_known_is_given_as_its_bytes_also_inside_others() {
        let point = made(90_000, -1, TypeKind::Base);
        let points = made(90_001, -1, TypeKind::Array(Arc::clone(&point)));
        let words = [1u32, 0, 90_000, 1, 1, 6 << 2];
        let mut value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        value.extend([1, 0xAB]);
        assert!(to_text(&points, &value, Limits::default()).is_err());
        let written = with_bytes(&points).expect("an array has a text");
        let text = to_text(&written, &value, Limits::default());
        assert_eq!(text.as_deref(), Ok(r#"{"\\x01ab"}"#));
    }

    #[test]
    fn what_has_no_text_of_that_kind_is_left_alone() {
        let point = made(90_000, -1, TypeKind::Base);
        let range = made(90_002, -1, TypeKind::Range(point));
        assert_eq!(with_bytes(&range), None);
        assert_eq!(with_bytes(&made(90_003, -2, TypeKind::Base)), None);
        assert_eq!(with_bytes(&made(90_004, -1, TypeKind::Unknown)), None);
    }
}
