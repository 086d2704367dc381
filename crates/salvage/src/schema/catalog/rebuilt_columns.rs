//! Rows of `pg_attribute` that are lost, as far as columns are known otherwise: from indexes and
//! other catalogs, from a person's declaration, or from the rows of the table. What no other place
//! has, such as NOT NULL before 18, is lost with them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Column, Generated};
use pgclinic_format::Oid;
use pgclinic_format::datum::TypeKind;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{plural, verb_of};

use super::super::given::{GivenColumn, GivenTable};
use super::Catalogs;
use super::rebuilt_rows::Values;

/// `bytea`, which takes the stored bytes of any type.
const BYTEA: Oid = 17;

/// Columns of tables that the catalogs do not give, by the table's OID: declared or guessed ones.
pub(crate) type DescribedColumns = BTreeMap<Oid, GivenTable>;

impl Catalogs<'_> {
    /// Puts the rows that are lost among those of `pg_attribute`.
    pub(super) fn add_rebuilt_columns(&mut self, described: &DescribedColumns) {
        let lost = self.catalog.lost_columns.keys().chain(described.keys());
        let tables: BTreeSet<Oid> = lost.copied().collect();
        let mut rows = Vec::new();
        let mut of_users = 0;
        for table in tables {
            let known: BTreeSet<i64> = self
                .attributes(table)
                .iter()
                .map(|row| row.int("attnum"))
                .collect();
            let found = self.found_columns(table, described);
            let missing = found
                .into_iter()
                .filter(|column| !known.contains(&i64::from(column.attnum)));
            for column in missing {
                of_users += usize::from(table >= FIRST_NORMAL_OID);
                rows.push(self.values_of_column(table, &column));
            }
        }
        self.add_rows("pg_attribute", &rows);
        if of_users > 0 {
            self.troubles.push(format!(
                "pg_attribute: {columns} {are} put together from other places: NOT NULL, storage, compression, statistics, options and rights of them are lost",
                columns = plural(of_users, "column"),
                are = verb_of(of_users, "are")
            ));
        }
    }

    fn found_columns(&self, table: Oid, described: &DescribedColumns) -> Vec<Column> {
        let relation = self.catalog.relations.get(&table);
        if let Some(columns) = relation.and_then(|relation| relation.columns.clone()) {
            return columns;
        }
        if let Some(described) = described.get(&table) {
            let columns = (1..).zip(&described.columns);
            return columns
                .map(|(attnum, column)| column_of(attnum, column))
                .collect();
        }
        self.catalog
            .partial_columns
            .get(&table)
            .cloned()
            .unwrap_or_default()
    }

    fn values_of_column(&self, table: Oid, column: &Column) -> Values {
        let ty = self.row("pg_type", column.type_oid);
        let attnum = i64::from(column.attnum);
        let is_inherited = self.is_of_a_parent(table, &column.name);
        let mut defaults = self.rows("pg_attrdef", "adrelid", table).into_iter();
        let has_default = defaults.any(|row| row.int("adnum") == attnum);
        let generated = match column.generated {
            Generated::No => 0,
            Generated::Stored => b's',
            Generated::Virtual => b'v',
        };
        let storage = match column.storage {
            0 => ty.map_or(b'p', |ty| {
                ty.bytes("typstorage")
                    .and_then(|bytes| bytes.first().copied())
                    .unwrap_or(b'p')
            }),
            storage => storage,
        };
        let collation = match column.collation {
            0 => ty.map_or(0, |ty| ty.oid("typcollation")),
            collation => collation,
        };
        vec![
            ("attrelid", table.to_le_bytes().into()),
            (
                "attname",
                self.words.bytes(&column.name).unwrap_or_default(),
            ),
            ("atttypid", column.type_oid.to_le_bytes().into()),
            ("attlen", column.layout.attlen.to_le_bytes().into()),
            ("attnum", column.attnum.to_le_bytes().into()),
            ("atttypmod", column.typmod.to_le_bytes().into()),
            ("attstorage", vec![storage]),
            ("attcompression", vec![column.compression]),
            ("attcollation", collation.to_le_bytes().into()),
            (
                "attnotnull",
                vec![u8::from(column.not_null || self.is_not_null(table, attnum))],
            ),
            ("atthasdef", vec![u8::from(has_default)]),
            ("attidentity", vec![self.identity_of(table, attnum)]),
            ("attgenerated", vec![generated]),
            ("attisdropped", vec![u8::from(column.dropped)]),
            ("attislocal", vec![u8::from(!is_inherited)]),
            ("attinhcount", i16::from(is_inherited).to_le_bytes().into()),
        ]
    }

    /// From 18 on a constraint says so.
    fn is_not_null(&self, table: Oid, attnum: i64) -> bool {
        let mut constraints = self.rows("pg_constraint", "conrelid", table).into_iter();
        constraints.any(|row| {
            row.letter("contype") == 'n' && row.shorts("conkey").first() == Some(&attnum)
        })
    }

    /// An identity column has a sequence that depends on it internally. Whether it is always
    /// generated stood in the row alone: the one that takes given values too is assumed.
    fn identity_of(&self, table: Oid, attnum: i64) -> u8 {
        let mut depends = self.rows("pg_depend", "refobjid", table).into_iter();
        let is_identity = depends.any(|row| {
            row.int("refobjsubid") == attnum
                && row.letter("deptype") == 'i'
                && self
                    .one("pg_sequence", "seqrelid", row.oid("objid"))
                    .is_some()
        });
        if is_identity { b'd' } else { 0 }
    }

    fn is_of_a_parent(&self, table: Oid, name: &str) -> bool {
        let parents = self.rows("pg_inherits", "inhrelid", table).into_iter();
        let mut columns = parents.flat_map(|row| self.attributes(row.oid("inhparent")));
        columns.any(|column| !column.flag("attisdropped") && column.name("attname") == name)
    }
}

fn column_of(attnum: u16, column: &GivenColumn) -> Column {
    let type_oid = match column.ty.kind {
        _ if column.dropped => 0,
        TypeKind::Bytes | TypeKind::Unknown => BYTEA,
        _ => column.ty.oid,
    };
    Column {
        attnum,
        name: column.name.clone(),
        type_oid,
        typmod: -1,
        collation: 0,
        not_null: false,
        dropped: column.dropped,
        generated: Generated::No,
        storage: 0,
        compression: 0,
        layout: column.layout(),
        missing: None,
        has_missing: false,
    }
}
