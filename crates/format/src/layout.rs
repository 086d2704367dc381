//! What differs between majors, one row each, chosen at run time.
//!
//! Truth: `src/include/catalog/{catversion,pg_control,pg_class,pg_attribute,pg_database}.h`,
//! `src/include/access/xlog_internal.h`.

use crate::attribute::ColumnLayout;

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
}

const fn column(name: &'static str, attlen: i16, attalign: u8) -> CatalogColumn {
    CatalogColumn {
        name,
        layout: ColumnLayout { attlen, attalign },
    }
}
const fn oid(name: &'static str) -> CatalogColumn {
    column(name, 4, 4)
}
const fn int4(name: &'static str) -> CatalogColumn {
    column(name, 4, 4)
}
const fn int2(name: &'static str) -> CatalogColumn {
    column(name, 2, 2)
}
const fn byte(name: &'static str) -> CatalogColumn {
    column(name, 1, 1)
}
const fn name(name: &'static str) -> CatalogColumn {
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
    }
}

impl Layout {
    /// The row of a major, or nothing for a major that cannot be read.
    pub fn of_major(major: u16) -> Option<&'static Layout> {
        LAYOUTS.iter().find(|layout| layout.major == major)
    }

    /// The row of a released catalog version.
    pub fn of_catalog_version(catalog_version: u32) -> Option<&'static Layout> {
        LAYOUTS
            .iter()
            .find(|layout| layout.catalog_version == catalog_version)
    }
}
