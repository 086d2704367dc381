//! What differs between majors, one row each, chosen at run time.
//!
//! Truth:
//! `src/include/catalog/{catversion,pg_control,pg_class,pg_attribute,pg_database,pg_type,pg_index}.h`,
//! `src/include/access/xlog_internal.h`.

use crate::attribute::ColumnLayout;
use crate::catalog_columns;
use crate::oid;

/// A column of a catalog that must be read before `pg_attribute` can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogColumn {
    /// Its name in that catalog.
    pub name: &'static str,
    /// Its place in the walk.
    pub layout: ColumnLayout,
}

/// One major.
#[derive(Debug)]
pub struct Layout {
    /// 13 to 18.
    pub major: u16,
    /// `PG_CONTROL_VERSION`.
    pub control_version: u32,
    /// `CATALOG_VERSION_NO`.
    pub catalog_version: u32,
    /// `XLOG_PAGE_MAGIC`.
    pub wal_magic: u16,
    /// Bytes of `pg_filenode.map`.
    pub relation_map_bytes: usize,
    /// Columns of `pg_class` up to `relminmxid`.
    pub pg_class: &'static [CatalogColumn],
    /// Columns of `pg_attribute` up to `attcollation`.
    pub pg_attribute: &'static [CatalogColumn],
    /// Columns of `pg_database` up to `dattablespace`.
    pub pg_database: &'static [CatalogColumn],
    /// Columns of `pg_namespace` up to `nspowner`.
    pub pg_namespace: &'static [CatalogColumn],
    /// Columns of `pg_type` up to `typcollation`.
    pub pg_type: &'static [CatalogColumn],
    /// Columns of `pg_index`.
    pub pg_index: &'static [CatalogColumn],
}

pub(crate) const fn varlena(name: &'static str) -> CatalogColumn {
    column(name, -1, 4)
}
const fn eight(name: &'static str) -> CatalogColumn {
    column(name, 8, 8)
}
pub(crate) const fn column(name: &'static str, attlen: i16, attalign: u8) -> CatalogColumn {
    CatalogColumn {
        name,
        layout: ColumnLayout { attlen, attalign },
    }
}
pub(crate) const fn oid(name: &'static str) -> CatalogColumn {
    column(name, 4, 4)
}
pub(crate) const fn int4(name: &'static str) -> CatalogColumn {
    column(name, 4, 4)
}
pub(crate) const fn int2(name: &'static str) -> CatalogColumn {
    column(name, 2, 2)
}
pub(crate) const fn byte(name: &'static str) -> CatalogColumn {
    column(name, 1, 1)
}
pub(crate) const fn name(name: &'static str) -> CatalogColumn {
    column(name, 64, 1)
}

macro_rules! pg_class {
    ($($after_relallvisible:expr),*) => {
        &[
            oid("oid"), name("relname"), oid("relnamespace"), oid("reltype"), oid("reloftype"), oid("relowner"),
            oid("relam"), oid("relfilenode"), oid("reltablespace"), int4("relpages"), int4("reltuples"),
            int4("relallvisible"), $($after_relallvisible,)* oid("reltoastrelid"), byte("relhasindex"),
            byte("relisshared"), byte("relpersistence"), byte("relkind"), int2("relnatts"), int2("relchecks"),
            byte("relhasrules"), byte("relhastriggers"), byte("relhassubclass"), byte("relrowsecurity"),
            byte("relforcerowsecurity"), byte("relispopulated"), byte("relreplident"), byte("relispartition"),
            oid("relrewrite"), int4("relfrozenxid"), int4("relminmxid"),
        ]
    };
}

const PG_CLASS_13: &[CatalogColumn] = pg_class!();
const PG_CLASS_18: &[CatalogColumn] = pg_class!(int4("relallfrozen"));

const PG_ATTRIBUTE_13: &[CatalogColumn] = &[
    oid("attrelid"),
    name("attname"),
    oid("atttypid"),
    int4("attstattarget"),
    int2("attlen"),
    int2("attnum"),
    int4("attndims"),
    int4("attcacheoff"),
    int4("atttypmod"),
    byte("attbyval"),
    byte("attstorage"),
    byte("attalign"),
    byte("attnotnull"),
    byte("atthasdef"),
    byte("atthasmissing"),
    byte("attidentity"),
    byte("attgenerated"),
    byte("attisdropped"),
    byte("attislocal"),
    int4("attinhcount"),
    oid("attcollation"),
];
const PG_ATTRIBUTE_14: &[CatalogColumn] = &[
    oid("attrelid"),
    name("attname"),
    oid("atttypid"),
    int4("attstattarget"),
    int2("attlen"),
    int2("attnum"),
    int4("attndims"),
    int4("attcacheoff"),
    int4("atttypmod"),
    byte("attbyval"),
    byte("attalign"),
    byte("attstorage"),
    byte("attcompression"),
    byte("attnotnull"),
    byte("atthasdef"),
    byte("atthasmissing"),
    byte("attidentity"),
    byte("attgenerated"),
    byte("attisdropped"),
    byte("attislocal"),
    int4("attinhcount"),
    oid("attcollation"),
];
const PG_ATTRIBUTE_16: &[CatalogColumn] = &[
    oid("attrelid"),
    name("attname"),
    oid("atttypid"),
    int2("attlen"),
    int2("attnum"),
    int4("attcacheoff"),
    int4("atttypmod"),
    int2("attndims"),
    byte("attbyval"),
    byte("attalign"),
    byte("attstorage"),
    byte("attcompression"),
    byte("attnotnull"),
    byte("atthasdef"),
    byte("atthasmissing"),
    byte("attidentity"),
    byte("attgenerated"),
    byte("attisdropped"),
    byte("attislocal"),
    int2("attinhcount"),
    int2("attstattarget"),
    oid("attcollation"),
];
const PG_ATTRIBUTE_17: &[CatalogColumn] = &[
    oid("attrelid"),
    name("attname"),
    oid("atttypid"),
    int2("attlen"),
    int2("attnum"),
    int4("attcacheoff"),
    int4("atttypmod"),
    int2("attndims"),
    byte("attbyval"),
    byte("attalign"),
    byte("attstorage"),
    byte("attcompression"),
    byte("attnotnull"),
    byte("atthasdef"),
    byte("atthasmissing"),
    byte("attidentity"),
    byte("attgenerated"),
    byte("attisdropped"),
    byte("attislocal"),
    int2("attinhcount"),
    oid("attcollation"),
];
const PG_ATTRIBUTE_18: &[CatalogColumn] = &[
    oid("attrelid"),
    name("attname"),
    oid("atttypid"),
    int2("attlen"),
    int2("attnum"),
    int4("atttypmod"),
    int2("attndims"),
    byte("attbyval"),
    byte("attalign"),
    byte("attstorage"),
    byte("attcompression"),
    byte("attnotnull"),
    byte("atthasdef"),
    byte("atthasmissing"),
    byte("attidentity"),
    byte("attgenerated"),
    byte("attisdropped"),
    byte("attislocal"),
    int2("attinhcount"),
    oid("attcollation"),
];

const PG_DATABASE_13: &[CatalogColumn] = &[
    oid("oid"),
    name("datname"),
    oid("datdba"),
    int4("encoding"),
    name("datcollate"),
    name("datctype"),
    byte("datistemplate"),
    byte("datallowconn"),
    int4("datconnlimit"),
    oid("datlastsysoid"),
    int4("datfrozenxid"),
    int4("datminmxid"),
    oid("dattablespace"),
];
const PG_DATABASE_15: &[CatalogColumn] = &[
    oid("oid"),
    name("datname"),
    oid("datdba"),
    int4("encoding"),
    byte("datlocprovider"),
    byte("datistemplate"),
    byte("datallowconn"),
    int4("datconnlimit"),
    int4("datfrozenxid"),
    int4("datminmxid"),
    oid("dattablespace"),
];
const PG_DATABASE_17: &[CatalogColumn] = &[
    oid("oid"),
    name("datname"),
    oid("datdba"),
    int4("encoding"),
    byte("datlocprovider"),
    byte("datistemplate"),
    byte("datallowconn"),
    byte("dathasloginevt"),
    int4("datconnlimit"),
    int4("datfrozenxid"),
    int4("datminmxid"),
    oid("dattablespace"),
];
const PG_NAMESPACE: &[CatalogColumn] = &[oid("oid"), name("nspname"), oid("nspowner")];

macro_rules! pg_type {
    ($($before_typelem:expr),*) => {
        &[
            oid("oid"), name("typname"), oid("typnamespace"), oid("typowner"), int2("typlen"), byte("typbyval"),
            byte("typtype"), byte("typcategory"), byte("typispreferred"), byte("typisdefined"), byte("typdelim"),
            oid("typrelid"), $($before_typelem,)* oid("typelem"), oid("typarray"), oid("typinput"), oid("typoutput"),
            oid("typreceive"), oid("typsend"), oid("typmodin"), oid("typmodout"), oid("typanalyze"), byte("typalign"),
            byte("typstorage"), byte("typnotnull"), oid("typbasetype"), int4("typtypmod"), int4("typndims"),
            oid("typcollation"),
        ]
    };
}

const PG_TYPE_13: &[CatalogColumn] = pg_type!();
const PG_TYPE_14: &[CatalogColumn] = pg_type!(oid("typsubscript"));

macro_rules! pg_index {
    ($($after_indisunique:expr),*) => {
        &[
            oid("indexrelid"), oid("indrelid"), int2("indnatts"), int2("indnkeyatts"), byte("indisunique"),
            $($after_indisunique,)* byte("indisprimary"), byte("indisexclusion"), byte("indimmediate"),
            byte("indisclustered"), byte("indisvalid"), byte("indcheckxmin"), byte("indisready"), byte("indislive"),
            byte("indisreplident"), varlena("indkey"), varlena("indcollation"), varlena("indclass"),
            varlena("indoption"), varlena("indexprs"), varlena("indpred"),
        ]
    };
}

const PG_INDEX_13: &[CatalogColumn] = pg_index!();
const PG_INDEX_15: &[CatalogColumn] = pg_index!(byte("indnullsnotdistinct"));

const PG_ENUM: &[CatalogColumn] = &[
    oid("oid"),
    oid("enumtypid"),
    int4("enumsortorder"),
    name("enumlabel"),
];
const PG_OPCLASS: &[CatalogColumn] = &[
    oid("oid"),
    oid("opcmethod"),
    name("opcname"),
    oid("opcnamespace"),
    oid("opcowner"),
    oid("opcfamily"),
    oid("opcintype"),
    byte("opcdefault"),
    oid("opckeytype"),
];
const PG_AMPROC: &[CatalogColumn] = &[
    oid("oid"),
    oid("amprocfamily"),
    oid("amproclefttype"),
    oid("amprocrighttype"),
    int2("amprocnum"),
    oid("amproc"),
];
const PG_SEQUENCE: &[CatalogColumn] = &[
    oid("seqrelid"),
    oid("seqtypid"),
    eight("seqstart"),
    eight("seqincrement"),
    eight("seqmax"),
    eight("seqmin"),
    eight("seqcache"),
    byte("seqcycle"),
];
const PG_ATTRDEF: &[CatalogColumn] = &[oid("oid"), oid("adrelid"), int2("adnum"), varlena("adbin")];

/// Every major that can be read, oldest first.
pub static LAYOUTS: [Layout; 6] = [
    row(
        (13, 1300, 202_007_201),
        (0xD106, 512),
        PG_CLASS_13,
        PG_ATTRIBUTE_13,
        PG_DATABASE_13,
    ),
    row(
        (14, 1300, 202_107_181),
        (0xD10D, 512),
        PG_CLASS_13,
        PG_ATTRIBUTE_14,
        PG_DATABASE_13,
    ),
    row(
        (15, 1300, 202_209_061),
        (0xD110, 512),
        PG_CLASS_13,
        PG_ATTRIBUTE_14,
        PG_DATABASE_15,
    ),
    row(
        (16, 1300, 202_307_071),
        (0xD113, 524),
        PG_CLASS_13,
        PG_ATTRIBUTE_16,
        PG_DATABASE_15,
    ),
    row(
        (17, 1700, 202_406_281),
        (0xD116, 524),
        PG_CLASS_13,
        PG_ATTRIBUTE_17,
        PG_DATABASE_17,
    ),
    row(
        (18, 1800, 202_506_291),
        (0xD118, 524),
        PG_CLASS_18,
        PG_ATTRIBUTE_18,
        PG_DATABASE_17,
    ),
];

const fn row(
    (major, control_version, catalog_version): (u16, u32, u32),
    (wal_magic, relation_map_bytes): (u16, usize),
    pg_class: &'static [CatalogColumn],
    pg_attribute: &'static [CatalogColumn],
    pg_database: &'static [CatalogColumn],
) -> Layout {
    Layout {
        major,
        control_version,
        catalog_version,
        wal_magic,
        relation_map_bytes,
        pg_class,
        pg_attribute,
        pg_database,
        pg_namespace: PG_NAMESPACE,
        pg_type: match major {
            13 => PG_TYPE_13,
            _ => PG_TYPE_14,
        },
        pg_index: match major {
            13 | 14 => PG_INDEX_13,
            _ => PG_INDEX_15,
        },
    }
}

impl Layout {
    /// The row of a major, or nothing for a major that cannot be read.
    pub fn of_major(major: u16) -> Option<&'static Layout> {
        LAYOUTS.iter().find(|layout| layout.major == major)
    }

    /// The columns of a catalog by its OID, of those that tables cannot be read without: a damaged
    /// `pg_attribute` must not make them unknown.
    pub fn catalog(&self, oid: u32) -> Option<&'static [CatalogColumn]> {
        Some(match oid {
            oid::PG_TYPE => self.pg_type,
            oid::PG_ATTRIBUTE => self.pg_attribute,
            oid::PG_CLASS => self.pg_class,
            oid::PG_SEQUENCE => PG_SEQUENCE,
            oid::PG_AMPROC => PG_AMPROC,
            oid::PG_ATTRDEF => PG_ATTRDEF,
            oid::PG_INDEX => self.pg_index,
            oid::PG_NAMESPACE => self.pg_namespace,
            oid::PG_OPCLASS => PG_OPCLASS,
            oid::PG_ENUM => PG_ENUM,
            _ => return catalog_columns::of_catalog(oid, self.major),
        })
    }

    /// The row of a released catalog version.
    pub fn of_catalog_version(catalog_version: u32) -> Option<&'static Layout> {
        LAYOUTS
            .iter()
            .find(|layout| layout.catalog_version == catalog_version)
    }
}
