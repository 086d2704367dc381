//! Rows of `pg_class` that are lost, as far as the relations are known that they described: what a
//! table, its indexes and its sequences are made again by. Options, rights and the bounds of
//! partitions stood in the rows alone.

use pgclinic_cluster::{Persistence, RelKind, Relation};
use pgclinic_format::Oid;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::oid::PG_CLASS;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{plural, verb_of};

use super::Catalogs;

/// `BOOTSTRAP_SUPERUSERID`, whose things `pg_shdepend` does not list.
const FIRST_SUPERUSER: Oid = 10;
/// `HEAP_TABLE_AM_OID`.
const HEAP: Oid = 2;
/// The rule that makes a view.
const RULE_OF_A_VIEW: &str = "_RETURN";

/// Values by column.
pub(super) type Values = Vec<(&'static str, Vec<u8>)>;

impl Catalogs<'_> {
    /// Puts the rows that are lost among those of `pg_class`.
    pub(super) fn add_rebuilt_rows(&mut self) {
        let lost = self.catalog.lost_relations.iter();
        let lost = lost.filter_map(|lost| {
            let relation = self.catalog.relations.get(&lost.oid?)?;
            let is_missing = lost.name.is_some() && self.row("pg_class", relation.oid).is_none();
            let values = is_missing.then(|| self.values_of(relation)).flatten()?;
            Some((relation.oid, values))
        });
        let (oids, rows): (Vec<Oid>, Vec<Values>) = lost.unzip();
        self.add_rows("pg_class", &rows);
        let users = oids.iter().filter(|oid| **oid >= FIRST_NORMAL_OID).count();
        if users > 0 {
            self.troubles.push(format!(
                "pg_class: {users} {are} put together from other catalogs: options and rights of what they describe, and bounds of partitions, are lost", users = plural(users, "row"), are = verb_of(users, "are")));
        }
    }

    /// Nothing where its schema is not known.
    fn values_of(&self, relation: &Relation) -> Option<Values> {
        let oid = relation.oid;
        let mut schemas = self.table("pg_namespace").iter();
        let schema = schemas.find(|row| row.name("nspname") == relation.schema)?;
        let letter = self.kind_of(relation);
        let is_partition = self.is_partition(oid);
        let persistence = match relation.persistence {
            Persistence::Permanent => b'p',
            Persistence::Unlogged => b'u',
            Persistence::Temporary => b't',
        };
        let has_policies = self.one("pg_policy", "polrelid", oid).is_some();
        let row_type = self
            .one("pg_type", "typrelid", oid)
            .map_or(0, |row| row.id());
        let number = |value: Oid| value.to_le_bytes().to_vec();
        let zero = || number(0);
        Some(vec![
            ("oid", number(oid)),
            ("relname", self.words.bytes(&relation.name)?),
            ("relnamespace", number(schema.id())),
            ("reltype", number(row_type)),
            ("reloftype", zero()),
            ("relowner", number(self.owner_of(PG_CLASS, oid))),
            ("relam", number(self.method_of(relation, letter))),
            ("relfilenode", number(relation.filenode)),
            ("reltablespace", number(self.tablespace_of(relation))),
            ("reltoastrelid", number(relation.toast)),
            ("relpersistence", vec![persistence]),
            ("relkind", vec![letter]),
            ("relnatts", relation.relnatts.to_le_bytes().to_vec()),
            ("relrowsecurity", vec![u8::from(has_policies)]),
            ("relispopulated", vec![1]),
            ("relreplident", vec![b'd']),
            ("relispartition", vec![u8::from(is_partition)]),
        ])
    }

    /// `relkind`: what has files is known by them, the rest by the catalogs that have a row for it.
    fn kind_of(&self, relation: &Relation) -> u8 {
        let oid = relation.oid;
        let rules = self.rows("pg_rewrite", "ev_class", oid);
        let is_view = rules
            .iter()
            .any(|rule| rule.name("rulename") == RULE_OF_A_VIEW);
        let has_row = |table, key| self.one(table, key, oid).is_some();
        match relation.kind {
            RelKind::Table if is_view => b'm',
            RelKind::Table => b'r',
            RelKind::Index => b'i',
            RelKind::Sequence => b'S',
            RelKind::Toast => b't',
            RelKind::MaterializedView => b'm',
            RelKind::PartitionedTable => b'p',
            RelKind::Unknown(letter) => letter,
            RelKind::WithoutStorage if has_row("pg_partitioned_table", "partrelid") => b'p',
            RelKind::WithoutStorage if is_view => b'v',
            RelKind::WithoutStorage if has_row("pg_index", "indexrelid") => b'I',
            RelKind::WithoutStorage if has_row("pg_foreign_table", "ftrelid") => b'f',
            RelKind::WithoutStorage => b'c',
        }
    }

    /// A partition's parent has a key by which it is partitioned.
    fn is_partition(&self, oid: Oid) -> bool {
        let mut parents = self.rows("pg_inherits", "inhrelid", oid).into_iter();
        parents.any(|row| {
            let parent = row.oid("inhparent");
            self.one("pg_partitioned_table", "partrelid", parent)
                .is_some()
        })
    }

    /// The first superuser, where no other role is noted for it.
    pub(super) fn owner_of(&self, catalog: Oid, oid: Oid) -> Oid {
        let depends = self.rows("pg_shdepend", "objid", oid).into_iter();
        let mut owners = depends.filter(|row| {
            row.oid("dbid") == self.catalog.database
                && row.oid("classid") == catalog
                && row.letter("deptype") == 'o'
        });
        owners
            .next()
            .map_or(FIRST_SUPERUSER, |row| row.oid("refobjid"))
    }

    /// Of an index that of its operator classes.
    fn method_of(&self, relation: &Relation, letter: u8) -> Oid {
        match letter {
            b'i' | b'I' => {
                let index = self.one("pg_index", "indexrelid", relation.oid);
                let classes = index.map(|index| index.oids("indclass"));
                let class = classes.and_then(|classes| classes.first().copied());
                let class = class.and_then(|class| self.row("pg_opclass", class));
                class.map_or(0, |class| class.oid("opcmethod"))
            }
            b'r' | b'm' | b't' if relation.access_method == Some(AccessMethod::Heap) => HEAP,
            _ => 0,
        }
    }

    /// 0 for that of the database.
    fn tablespace_of(&self, relation: &Relation) -> Oid {
        let database = self.row("pg_database", self.catalog.database);
        let usual = database.map_or(0, |database| database.oid("dattablespace"));
        match relation.tablespace {
            own if own == usual => 0,
            own => own,
        }
    }
}
