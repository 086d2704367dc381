//! What must be known of a type to print its values: plain data, made from `pg_type` or built in.

use std::sync::Arc;

/// Stands for the number of an extension's type that a person described by its name; 0 does so for
/// types of no name known here.
pub const DESCRIBED_OID: u32 = u32::MAX;

/// One type, as `pg_type` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// `pg_type.oid`.
    pub oid: u32,
    /// `pg_type.typname`; types of extensions are known by it.
    pub name: String,
    /// `typlen`: bytes, or -1 for varlena, or -2 for a C string.
    pub len: i16,
    /// `typbyval`.
    pub byval: bool,
    /// `typalign` in bytes: 1, 2, 4 or 8.
    pub align: u8,
    /// What the type is made of.
    pub kind: TypeKind,
}

impl TypeInfo {
    /// It, or one of the types that it is made of, is such a one.
    pub fn has_part(&self, is_such: impl Fn(&TypeInfo) -> bool) -> bool {
        let mut open = vec![self];
        while let Some(ty) = open.pop() {
            if is_such(ty) {
                return true;
            }
            match &ty.kind {
                TypeKind::Base | TypeKind::Enum(_) | TypeKind::Bytes | TypeKind::Unknown => {}
                TypeKind::Domain(inner)
                | TypeKind::Array(inner)
                | TypeKind::Range(inner)
                | TypeKind::Multirange(inner) => open.push(inner),
                TypeKind::Composite(fields) => {
                    let used = fields.iter().filter(|field| !field.dropped);
                    open.extend(used.map(|field| field.ty.as_ref()));
                }
            }
        }
        false
    }
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A type with an output function of its own, found by OID, else by name.
    Base,
    /// `pg_enum`: OID and label, in the order of `enumsortorder`; labels are in the encoding of the
    /// database, as all text is.
    Enum(Vec<(u32, Vec<u8>)>),
    /// A row type, with its attributes by number, dropped ones too.
    Composite(Vec<Field>),
    /// A domain over another type.
    Domain(Arc<TypeInfo>),
    /// An array of elements.
    Array(Arc<TypeInfo>),
    /// A range over a subtype.
    Range(Arc<TypeInfo>),
    /// A multirange over a subtype (the range's subtype, not the range).
    Multirange(Arc<TypeInfo>),
    /// A type whose text is not known here: its values are given as their stored bytes, as `bytea`
    /// is.
    Bytes,
    /// Nothing is known; no value of it is printed.
    Unknown,
}

/// One attribute of a row type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// `pg_attribute.attname`.
    pub name: String,
    /// Its type; of a dropped attribute only length and alignment count.
    pub ty: Arc<TypeInfo>,
    /// `attcollation`; 0 for types that have none.
    pub collation: u32,
    /// `attisdropped`: stored, but not printed.
    pub dropped: bool,
}
