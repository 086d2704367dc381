//! What `pg_index` and `pg_opclass` say of an index.
//!
//! Truth: `src/include/catalog/{pg_index,pg_opclass}.h`.

use std::collections::HashMap;

use pgclinic_format::Oid;

/// How one key column of an index is ordered or hashed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpClass {
    /// OID in `pg_opclass`.
    pub oid: Oid,
    /// `opcname`.
    pub name: String,
    /// `opcfamily`.
    pub family: Oid,
    /// `opcmethod`: OID of the access method.
    pub method: Oid,
    /// `opcintype`: the type it takes.
    pub input_type: Oid,
    /// `opckeytype`: the type it keeps, 0 for the input type.
    pub key_type: Oid,
    /// Of a btree's class, the function of `pg_amproc` that tells whether equal values look alike,
    /// 0 without one; nothing where not all of `pg_amproc` can be read.
    pub equal_image: Option<Oid>,
}

/// `btequalimage`: always.
const ALWAYS_EQUAL_IMAGE: Oid = 5051;
/// `btvarstrequalimage`: under a deterministic collation.
const TEXT_EQUAL_IMAGE: Oid = 5050;
/// `INTERVAL_BTREE_FAM_OID`: never, whatever catalogs from before the end of 2023 say.
const INTERVAL_FAMILY: Oid = 1982;

/// What `pg_index` says of an index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    /// OID of its table.
    pub table: Oid,
    /// `indisunique`.
    pub unique: bool,
    /// `indisexclusion`.
    pub exclusion: bool,
    /// `indimmediate`: uniqueness is not deferred.
    pub immediate: bool,
    /// `indisvalid`: complete, and used by queries.
    pub valid: bool,
    /// `indisready`: inserts go into it.
    pub ready: bool,
    /// `indislive`: not being dropped.
    pub live: bool,
    /// `indnullsnotdistinct`, 15 and later.
    pub nulls_not_distinct: bool,
    /// `indnkeyatts`.
    pub key_count: u16,
    /// `indkey`: column numbers of the table, 0 for an expression; included columns too.
    pub keys: Vec<i16>,
    /// `indcollation`, one a key column, 0 where values have no collation.
    pub collations: Vec<Oid>,
    /// `indoption`, one a key column: bit 0 descending, bit 1 nulls first.
    pub options: Vec<i16>,
    /// `indclass` with what `pg_opclass` says, one a key column; empty when a class is unknown.
    pub classes: Vec<OpClass>,
    /// Some key is an expression.
    pub has_expressions: bool,
    /// Only rows that fulfil a condition are in it.
    pub has_predicate: bool,
    /// `indclass` as it stands.
    pub(crate) class_oids: Vec<Oid>,
}

impl Index {
    /// Looks its operator classes up; all or none.
    pub(crate) fn resolve(&mut self, classes: &HashMap<Oid, OpClass>) {
        let found: Option<Vec<OpClass>> = self
            .class_oids
            .iter()
            .map(|oid| classes.get(oid).cloned())
            .collect();
        self.classes = found.unwrap_or_default();
    }

    /// Whether equal keys of a btree look alike, so that it may keep them in one entry; `collation`
    /// tells of a collation whether it is deterministic. `None` where a function of somebody's own
    /// decides, or the catalogs do not tell.
    pub fn is_equal_image(&self, collation: impl Fn(Oid) -> Option<bool>) -> Option<bool> {
        if self.keys.len() != usize::from(self.key_count) {
            return Some(false);
        }
        let counted = self.classes.len() == usize::from(self.key_count);
        (counted && self.collations.len() >= self.classes.len()).then_some(())?;
        let mut all = Some(true);
        for (class, own) in self.classes.iter().zip(&self.collations) {
            let equal = match class.equal_image {
                _ if class.family == INTERVAL_FAMILY => Some(false),
                Some(0) => Some(false),
                Some(ALWAYS_EQUAL_IMAGE) => Some(true),
                Some(TEXT_EQUAL_IMAGE) => collation(*own),
                _ => None,
            };
            match equal {
                Some(false) => return Some(false),
                Some(true) => {}
                None => all = None,
            }
        }
        all
    }

    /// Some key is an interval.
    pub fn has_interval(&self) -> bool {
        let mut classes = self.classes.iter();
        classes.any(|class| class.family == INTERVAL_FAMILY)
    }
}
