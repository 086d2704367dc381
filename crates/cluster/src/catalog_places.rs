//! Where the columns of `pg_class` and `pg_attribute` stand in their rows, found once, and the
//! relations and columns that rows give.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{ColumnLayout, MultiXactId, Oid, Xid};

use crate::access_methods;
use crate::columns::ColumnNames;
use crate::contradictions::Contradiction;
use crate::heap_scan::RawRow;
use crate::relation::{Column, Generated, Persistence, RelKind, Relation};

/// Column indexes of `pg_class`, found once.
pub(crate) struct ClassPlaces {
    oid: usize,
    name: usize,
    namespace: usize,
    am: usize,
    filenode: usize,
    tablespace: usize,
    pages: usize,
    all_visible: usize,
    tuples: usize,
    toast: usize,
    shared: usize,
    persistence: usize,
    kind: usize,
    natts: usize,
    populated: usize,
    frozenxid: usize,
    minmxid: usize,
}

impl ClassPlaces {
    pub(crate) fn new(names: &ColumnNames) -> Self {
        ClassPlaces {
            oid: names.index("oid"),
            name: names.index("relname"),
            namespace: names.index("relnamespace"),
            am: names.index("relam"),
            filenode: names.index("relfilenode"),
            tablespace: names.index("reltablespace"),
            pages: names.index("relpages"),
            all_visible: names.index("relallvisible"),
            tuples: names.index("reltuples"),
            toast: names.index("reltoastrelid"),
            shared: names.index("relisshared"),
            persistence: names.index("relpersistence"),
            kind: names.index("relkind"),
            natts: names.index("relnatts"),
            populated: names.index("relispopulated"),
            frozenxid: names.index("relfrozenxid"),
            minmxid: names.index("relminmxid"),
        }
    }

    pub(crate) fn relation(&self, row: &RawRow<'_>, default_tablespace: Oid) -> Option<Relation> {
        let own_tablespace = row.u32(self.tablespace)?;
        Some(Relation {
            oid: row.u32(self.oid)?,
            schema: row.u32(self.namespace)?.to_string(),
            name: row.name(self.name)?,
            kind: RelKind::from_letter(row.u8(self.kind)?),
            persistence: Persistence::from_letter(row.u8(self.persistence)?),
            access_method: AccessMethod::from_oid(row.u32(self.am)?),
            foreign_method: access_methods::unnamed(
                row.u32(self.am)?,
                RelKind::from_letter(row.u8(self.kind)?),
            ),
            filenode: row.u32(self.filenode)?,
            tablespace: if own_tablespace == 0 {
                default_tablespace
            } else {
                own_tablespace
            },
            shared: row.bool(self.shared)?,
            relpages: row.u32(self.pages)?.cast_signed(),
            relallvisible: row.u32(self.all_visible)?.cast_signed(),
            reltuples: estimate(row.u32(self.tuples)?, row.u32(self.pages)?),
            relfrozenxid: Xid(row.u32(self.frozenxid)?),
            relminmxid: MultiXactId(row.u32(self.minmxid)?),
            toast: row.u32(self.toast)?,
            toast_of: 0,
            relnatts: u16::try_from(row.i16(self.natts)?).ok()?,
            populated: row.bool(self.populated)?,
            columns: None,
            layouts: None,
            index: None,
            being_built: false,
        })
    }
}

impl ClassPlaces {
    /// `relkind` and `relpersistence` are letters, of which servers know a few.
    pub(crate) fn unknown_letters(
        &self,
        row: &RawRow<'_>,
        relation: &Relation,
    ) -> Option<Contradiction> {
        let letter = row.u8(self.persistence)?;
        // One with files is told by what these say of it.
        let kind = match relation.kind {
            RelKind::Unknown(kind) if relation.filenode == 0 => Some(("relkind", kind)),
            _ => None,
        };
        let persistence =
            (!matches!(letter, b'p' | b'u' | b't')).then_some(("relpersistence", letter));
        let (column, letter) = kind.or(persistence)?;
        Some(Contradiction {
            relation: relation.oid,
            name: relation.name.clone(),
            catalog: "pg_class",
            what: format!(
                "{column} is '{}', which no server writes",
                char::from(letter).escape_default()
            ),
        })
    }
}

/// `reltuples`, a `float4`: -1 where nobody counted, and in 13 zero beside no pages.
fn estimate(tuples: u32, pages: u32) -> Option<u64> {
    let tuples = f32::from_bits(tuples);
    let is_known = tuples > 0.0 || (tuples == 0.0 && pages > 0);
    is_known.then(|| format!("{tuples:.0}").parse().ok())?
}

/// Column indexes of `pg_attribute`, found once.
pub(crate) struct AttributePlaces {
    pub(crate) relation: usize,
    name: usize,
    type_oid: usize,
    len: usize,
    pub(crate) number: usize,
    typmod: usize,
    align: usize,
    storage: usize,
    compression: usize,
    not_null: usize,
    collation: usize,
    dropped: usize,
    generated: usize,
    has_missing: usize,
}

impl AttributePlaces {
    pub(crate) fn new(names: &ColumnNames) -> Self {
        AttributePlaces {
            relation: names.index("attrelid"),
            name: names.index("attname"),
            type_oid: names.index("atttypid"),
            len: names.index("attlen"),
            number: names.index("attnum"),
            typmod: names.index("atttypmod"),
            align: names.index("attalign"),
            storage: names.index("attstorage"),
            compression: names.index("attcompression"),
            not_null: names.index("attnotnull"),
            collation: names.index("attcollation"),
            dropped: names.index("attisdropped"),
            generated: names.index("attgenerated"),
            has_missing: names.index("atthasmissing"),
        }
    }

    /// A user column; system columns have negative numbers.
    pub(crate) fn column(&self, row: &RawRow<'_>) -> Option<(Oid, Column)> {
        let attnum = u16::try_from(row.i16(self.number)?)
            .ok()
            .filter(|number| *number > 0)?;
        let attalign = match row.u8(self.align)? {
            b'c' => 1,
            b's' => 2,
            b'i' => 4,
            b'd' => 8,
            _ => return None,
        };
        let column = Column {
            attnum,
            name: row.name(self.name)?,
            type_oid: row.u32(self.type_oid)?,
            typmod: row.u32(self.typmod)?.cast_signed(),
            collation: row.u32(self.collation)?,
            not_null: row.bool(self.not_null)?,
            dropped: row.bool(self.dropped)?,
            generated: Generated::from_letter(row.u8(self.generated)?),
            storage: row.u8(self.storage)?,
            compression: row.u8(self.compression).unwrap_or(0),
            layout: ColumnLayout {
                attlen: row.i16(self.len)?,
                attalign,
            },
            missing: None,
            has_missing: row.bool(self.has_missing)?,
        };
        Some((row.u32(self.relation)?, column))
    }
}
