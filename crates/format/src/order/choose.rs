//! Which comparison an index column has: by operator family and the type that the class takes.
//! Parts of values (elements, bounds, fields) have their type's default class.
//!
//! Truth: `pg_opclass.dat`, `pg_opfamily.dat` (family OIDs are the same from 13 to 18),
//! `GetDefaultOpClass` in `indexcmds.c`.

use std::sync::Arc;

use super::text_order::{Facts, TextOrder};
use super::unordered::Unordered;
use super::{Comparison, Order, array, enumeration, range, record};
use crate::datum::{Field, TypeInfo, TypeKind, builtin};
use crate::types::Oid;

/// Types that hold each other deeper than this are not followed.
const DEPTH_MAX: u8 = 32;
const DEFAULT_COLLATION: Oid = 100;

const INT2: Oid = 21;
const TEXT: Oid = 25;
const ANY_ARRAY: Oid = 2277;
const RECORD: Oid = 2249;
const ANY_ENUM: Oid = 3500;
const ANY_RANGE: Oid = 3831;
const ANY_MULTIRANGE: Oid = 4537;
const RECORD_IMAGE_FAMILY: Oid = 3194;

/// A column of an index, as the catalogs describe it.
#[derive(Clone, Copy)]
pub struct OrderKey<'a> {
    /// `opcfamily` of the column's operator class.
    pub family: Oid,
    /// `opcintype` of the class.
    pub input_type: Oid,
    /// The type of the column's values.
    pub ty: &'a TypeInfo,
    /// The column's entry in `indcollation`; 0 for none.
    pub collation: Oid,
    /// The catalogs.
    pub facts: &'a dyn Facts,
}

/// The order of a column's values in its index.
pub fn order_of(key: &OrderKey<'_>) -> Result<Order, Unordered> {
    choose(key, Text::Ordered)
}

/// A comparison of which only `Equal` counts, for uniqueness: text under a deterministic collation
/// is equal when its bytes are, whoever orders it. What is not `Equal` may come out either way.
pub fn equality_of(key: &OrderKey<'_>) -> Result<Order, Unordered> {
    choose(key, Text::OnlyEqual)
}

/// The order that values of a type have by its default btree class, as index methods use it that
/// have no order of their own.
pub fn default_order_of(
    ty: &TypeInfo,
    collation: Oid,
    facts: &dyn Facts,
) -> Result<Order, Unordered> {
    let chooser = Chooser {
        facts,
        text: Text::Ordered,
    };
    chooser.default_class(ty, collation, 0).map(Order)
}

fn choose(key: &OrderKey<'_>, text: Text) -> Result<Order, Unordered> {
    let chooser = Chooser {
        facts: key.facts,
        text,
    };
    let ty = without_domains(key.ty)?;
    let class = (key.family, key.input_type);
    chooser.class(class, ty, key.collation, 0).map(Order)
}

/// What is asked of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    Ordered,
    OnlyEqual,
}

struct Chooser<'a> {
    facts: &'a dyn Facts,
    text: Text,
}

impl Chooser<'_> {
    /// A class by its family and input type.
    fn class(
        &self,
        class: (Oid, Oid),
        ty: &TypeInfo,
        collation: Oid,
        depth: u8,
    ) -> Result<Comparison, Unordered> {
        if depth > DEPTH_MAX {
            return Err(Unordered::Type(ty.name.clone()));
        }
        if let Some(simple) = simple(class) {
            return Ok(simple);
        }
        let deeper = depth + 1;
        match class {
            (1994, TEXT) => self.text(collation).map(|()| Comparison::Bytes),
            (1994, 19) => self.text(collation).map(|()| Comparison::Name),
            (426, 1042) => self.text(collation).map(|()| Comparison::Blanked),
            (4033, 3802) => self.text(DEFAULT_COLLATION).map(|()| Comparison::Jsonb),
            (397, ANY_ARRAY) => self.array(ty, collation, deeper),
            (3522, ANY_ENUM) => enumeration(ty),
            (3901, ANY_RANGE) | (4199, ANY_MULTIRANGE) => self.range(ty, deeper),
            (2994, RECORD) => self.record(ty, |field| {
                self.default_class(&field.ty, field.collation, deeper)
            }),
            (RECORD_IMAGE_FAMILY, RECORD) => self.record(ty, |field| image(&field.ty)),
            (family, input_type) => Err(Unordered::OperatorClass { family, input_type }),
        }
    }

    fn default_class(
        &self,
        ty: &TypeInfo,
        collation: Oid,
        depth: u8,
    ) -> Result<Comparison, Unordered> {
        let ty = without_domains(ty)?;
        let class = default_class(ty).ok_or_else(|| Unordered::Type(ty.name.clone()))?;
        self.class(class, ty, collation, depth)
    }

    /// Whether text under this collation can be compared here.
    fn text(&self, collation: Oid) -> Result<(), Unordered> {
        match self.facts.collation(collation) {
            TextOrder::Bytes => Ok(()),
            TextOrder::Foreign(foreign)
                if self.text == Text::OnlyEqual && foreign.deterministic =>
            {
                Ok(())
            }
            TextOrder::Foreign(foreign) => Err(Unordered::Collation(foreign)),
            TextOrder::Unknown => Err(Unordered::UnknownCollation(collation)),
        }
    }

    fn array(&self, ty: &TypeInfo, collation: Oid, depth: u8) -> Result<Comparison, Unordered> {
        // The two vectors are arrays that the catalogs describe as types of their own.
        let element = match (&ty.kind, ty.oid) {
            (TypeKind::Array(element), _) => Some(Arc::clone(element)),
            (_, 22) => builtin(INT2).map(Arc::new),
            (_, 30) => builtin(26).map(Arc::new),
            _ => None,
        };
        let ty = element.ok_or_else(|| Unordered::Type(ty.name.clone()))?;
        let comparison = self.default_class(&ty, collation, depth)?;
        Ok(Comparison::Array(Box::new(array::Elements {
            ty,
            comparison,
        })))
    }

    fn range(&self, ty: &TypeInfo, depth: u8) -> Result<Comparison, Unordered> {
        let (TypeKind::Range(subtype) | TypeKind::Multirange(subtype)) = &ty.kind else {
            return Err(Unordered::Type(ty.name.clone()));
        };
        let comparison = match self.facts.range(ty.oid) {
            Some(facts) => {
                let class = (facts.family, facts.input_type);
                let base = without_domains(subtype)?;
                self.class(class, base, facts.collation, depth)?
            }
            None => self.default_class(subtype, DEFAULT_COLLATION, depth)?,
        };
        let bounds = Box::new(range::Bounds {
            subtype: Arc::clone(subtype),
            comparison,
        });
        Ok(match ty.kind {
            TypeKind::Multirange(_) => Comparison::Multirange(bounds),
            _ => Comparison::Range(bounds),
        })
    }

    fn record(
        &self,
        ty: &TypeInfo,
        comparison_of: impl Fn(&Field) -> Result<Comparison, Unordered>,
    ) -> Result<Comparison, Unordered> {
        let TypeKind::Composite(fields) = &ty.kind else {
            return Err(Unordered::Type(ty.name.clone()));
        };
        let part = |field: &Field| {
            let comparison = if field.dropped {
                None
            } else {
                Some(comparison_of(field)?)
            };
            Ok(record::Part {
                ty: Arc::clone(&field.ty),
                comparison,
            })
        };
        let parts: Result<Vec<record::Part>, Unordered> = fields.iter().map(part).collect();
        Ok(Comparison::Record(parts?.into()))
    }
}

/// Classes that need to know no more.
fn simple(class: (Oid, Oid)) -> Option<Comparison> {
    Some(match class {
        (424, 16) | (429, 18) => Comparison::U8,
        (1976, INT2) => Comparison::I16,
        (1976, 23) | (434, 1082) => Comparison::I32,
        (1976, 20) | (434, 1114 | 1184) | (1996, 1083) | (2099, 790) => Comparison::I64,
        (1989, 26) => Comparison::U32,
        (5067, 5069) | (3253, 3220) => Comparison::U64,
        (1970, 700) => Comparison::F32,
        (1970, 701) => Comparison::F64,
        (2968, 2950) => Comparison::Uuid,
        (1984, 829) => Comparison::MacAddress,
        (3371, 774) => Comparison::MacAddress8,
        (2789, 27) => Comparison::Tid,
        (1982, 1186) => Comparison::Interval,
        (2000, 1266) => Comparison::TimeWithZone,
        (428, 17) | (2095, TEXT) => Comparison::Bytes,
        (2097, 1042) => Comparison::Blanked,
        (1988, 1700) => Comparison::Numeric,
        (1974, 869) => Comparison::Network,
        (423, 1560) | (2002, 1562) => Comparison::Bits,
        (1991, 30) => Comparison::OidVector,
        (3626, 3614) => Comparison::TsVector,
        (3683, 3615) => Comparison::TsQuery,
        _ => return None,
    })
}

/// Family and input type of the class that values of a type are compared by inside others.
fn default_class(ty: &TypeInfo) -> Option<(Oid, Oid)> {
    Some(match ty.kind {
        TypeKind::Array(_) => (397, ANY_ARRAY),
        TypeKind::Enum(_) => (3522, ANY_ENUM),
        TypeKind::Range(_) => (3901, ANY_RANGE),
        TypeKind::Multirange(_) => (4199, ANY_MULTIRANGE),
        TypeKind::Composite(_) => (2994, RECORD),
        TypeKind::Domain(_) | TypeKind::Bytes | TypeKind::Unknown => return None,
        TypeKind::Base => match ty.oid {
            16 => (424, 16),
            18 => (429, 18),
            INT2 | 23 | 20 => (1976, ty.oid),
            1082 | 1114 | 1184 => (434, ty.oid),
            1083 => (1996, 1083),
            790 => (2099, 790),
            // What only names an OID is coerced to one.
            26 | 24 | 2202..=2206 | 3734 | 3769 | 4089 | 4096 | 4191 => (1989, 26),
            5069 => (5067, 5069),
            3220 => (3253, 3220),
            700 | 701 => (1970, ty.oid),
            2950 => (2968, 2950),
            829 => (1984, 829),
            774 => (3371, 774),
            27 => (2789, 27),
            1186 => (1982, 1186),
            1266 => (2000, 1266),
            17 => (428, 17),
            TEXT | 1043 => (1994, TEXT),
            19 => (1994, 19),
            1042 => (426, 1042),
            1700 => (1988, 1700),
            869 | 650 => (1974, 869),
            1560 => (423, 1560),
            1562 => (2002, 1562),
            22 => (397, ANY_ARRAY),
            30 => (1991, 30),
            3614 => (3626, 3614),
            3615 => (3683, 3615),
            3802 => (4033, 3802),
            _ => return None,
        },
    })
}

fn enumeration(ty: &TypeInfo) -> Result<Comparison, Unordered> {
    match &ty.kind {
        TypeKind::Enum(labels) => Ok(Comparison::Enum(enumeration::Labels::new(labels))),
        _ => Err(Unordered::Type(ty.name.clone())),
    }
}

/// `record_image_ops` compares stored bytes.
fn image(ty: &TypeInfo) -> Result<Comparison, Unordered> {
    match ty {
        TypeInfo {
            kind: TypeKind::Unknown,
            ..
        } => Err(Unordered::Type(ty.name.clone())),
        TypeInfo { byval: true, .. } => Ok(Comparison::Image),
        TypeInfo { len: 1.., .. } => Ok(Comparison::FixedImage),
        _ => Ok(Comparison::Bytes),
    }
}

fn without_domains(mut ty: &TypeInfo) -> Result<&TypeInfo, Unordered> {
    for _ in 0..DEPTH_MAX {
        match &ty.kind {
            TypeKind::Domain(base) => ty = base,
            _ => return Ok(ty),
        }
    }
    Err(Unordered::Type(ty.name.clone()))
}
