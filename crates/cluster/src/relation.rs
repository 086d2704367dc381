//! A relation as its catalogs describe it.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{ColumnLayout, MultiXactId, Oid, Xid};

use crate::index::Index;

/// `relkind`; truth: `src/include/catalog/pg_class.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelKind {
    /// `r`
    Table,
    /// `i`
    Index,
    /// `S`
    Sequence,
    /// `t`
    Toast,
    /// `m`
    MaterializedView,
    /// `p`: a partitioned table, whose rows are in others.
    PartitionedTable,
    /// Views, composite and foreign tables, partitioned indexes: no files.
    WithoutStorage,
    /// A letter that no PostgreSQL writes.
    Unknown(u8),
}

impl RelKind {
    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'r' => RelKind::Table,
            b'i' => RelKind::Index,
            b'S' => RelKind::Sequence,
            b't' => RelKind::Toast,
            b'm' => RelKind::MaterializedView,
            b'p' => RelKind::PartitionedTable,
            b'v' | b'c' | b'f' | b'I' => RelKind::WithoutStorage,
            other => RelKind::Unknown(other),
        }
    }

    /// Files belong to it.
    pub fn has_storage(self) -> bool {
        !matches!(
            self,
            RelKind::PartitionedTable | RelKind::WithoutStorage | RelKind::Unknown(_)
        )
    }
}

/// `relpersistence`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Persistence {
    /// `p`
    Permanent,
    /// `u`
    Unlogged,
    /// `t`
    Temporary,
}

impl Persistence {
    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b'u' => Persistence::Unlogged,
            b't' => Persistence::Temporary,
            _ => Persistence::Permanent,
        }
    }
}

/// `attgenerated`: whether a column's value is computed from the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generated {
    /// It is not.
    No,
    /// `s`: computed when the row is written, and stored.
    Stored,
    /// `v`: computed when the row is read; its place in the row holds null. From 18 on.
    Virtual,
}

impl Generated {
    pub(crate) fn from_letter(letter: u8) -> Self {
        match letter {
            b's' => Generated::Stored,
            b'v' => Generated::Virtual,
            _ => Generated::No,
        }
    }
}

/// A column, dropped ones too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// From 1.
    pub attnum: u16,
    /// `........pg.dropped.N........` when dropped.
    pub name: String,
    /// 0 when dropped.
    pub type_oid: Oid,
    /// `atttypmod`.
    pub typmod: i32,
    /// `attcollation`; 0 where values have none.
    pub collation: Oid,
    /// `attnotnull`.
    pub not_null: bool,
    /// `attisdropped`.
    pub dropped: bool,
    /// `attgenerated`.
    pub generated: Generated,
    /// `attstorage`: p, e, m or x.
    pub storage: u8,
    /// `attcompression`: p, l, or 0 for what `default_toast_compression` says; 0 before 14.
    pub compression: u8,
    /// How to walk it.
    pub layout: ColumnLayout,
    /// `attmissingval`: the value, with its header, of rows from before the column was added; none
    /// is null.
    pub missing: Option<Vec<u8>>,
    /// `atthasmissing`: such rows have the value above, or one that could not be read here.
    pub has_missing: bool,
}

/// An access method that is none of the server's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignMethod {
    /// `amname`, or its OID as text where `pg_am` cannot be read.
    pub name: String,
    /// It is a table's: how its bytes lie, and whether they lie in its files at all, only its
    /// extension knows, also of indexes and TOAST values of such a table. An index's pages have the
    /// server's headers at least.
    pub is_of_table: bool,
}

/// A relation.
#[derive(Clone, PartialEq, Debug)]
pub struct Relation {
    /// OID in `pg_class`.
    pub oid: Oid,
    /// Schema, or its OID as text when its name cannot be read.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: RelKind,
    /// Persistence.
    pub persistence: Persistence,
    /// Access method, if it is one that can be read here.
    pub access_method: Option<AccessMethod>,
    /// The access method, of its own or of the table that it belongs to, whose pages are not known
    /// here.
    pub foreign_method: Option<ForeignMethod>,
    /// Number of its files, through the relation map for mapped catalogs; 0 when there are none.
    pub filenode: Oid,
    /// OID of the tablespace that holds its files.
    pub tablespace: Oid,
    /// The same for all databases.
    pub shared: bool,
    /// `relpages`: an estimate.
    pub relpages: i32,
    /// `relallvisible`: pages that the visibility map marked when `relpages` was written.
    pub relallvisible: i32,
    /// `reltuples`: an estimate of its rows; nothing where nobody counted.
    pub reltuples: Option<u64>,
    /// `relfrozenxid`; 0 where rows have none.
    pub relfrozenxid: Xid,
    /// `relminmxid`.
    pub relminmxid: MultiXactId,
    /// OID of its TOAST relation, or 0.
    pub toast: Oid,
    /// OID of the table whose long values it keeps, or 0.
    pub toast_of: Oid,
    /// `relnatts`.
    pub relnatts: u16,
    /// `relispopulated`.
    pub populated: bool,
    /// Columns in order of `attnum`; nothing when `pg_attribute` does not give all of them.
    pub columns: Option<Vec<Column>>,
    /// The walk over its rows, as long as `columns`.
    pub layouts: Option<Vec<ColumnLayout>>,
    /// For an index, what `pg_index` says.
    pub index: Option<Index>,
    /// An index that no row of `pg_index` calls valid and ready: it may be filled just now, as
    /// `CREATE INDEX CONCURRENTLY` commits its row first.
    pub being_built: bool,
}

impl Relation {
    /// All columns, in order and without a gap.
    pub(crate) fn take_columns(&mut self, columns: Vec<Column>) {
        self.layouts = Some(columns.iter().map(|column| column.layout).collect());
        self.columns = Some(columns);
    }

    /// `schema.name`.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// The access method of the table, where nothing is known of its files.
    pub fn unknown_storage(&self) -> Option<&str> {
        let foreign = self.foreign_method.as_ref();
        foreign
            .filter(|method| method.is_of_table)
            .map(|method| method.name.as_str())
    }

    /// How its pages are laid out.
    pub fn page_method(&self) -> Option<AccessMethod> {
        match self.kind {
            _ if self.foreign_method.is_some() => None,
            RelKind::Sequence => Some(AccessMethod::Sequence),
            RelKind::Table | RelKind::Toast | RelKind::MaterializedView => self.access_method,
            RelKind::Index => self
                .access_method
                .filter(|method| *method != AccessMethod::Heap),
            RelKind::PartitionedTable | RelKind::WithoutStorage | RelKind::Unknown(_) => None,
        }
    }

    /// A name as SQL wants it, quoted where needed.
    pub fn sql_name(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }
}

/// An identifier as SQL wants it. Key words are not known here, so only plain names stay bare.
pub fn quoted(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
