//! Rows of `pg_depend` and `pg_inherits` that are lost: their two indexes, joined by TID, have all
//! that stood in them but the kind of a dependency, which follows from what depends on what. And
//! rows of `pg_foreign_table`, whose server `pg_depend` knows.

use std::collections::BTreeSet;

use pgclinic_format::oid::{
    PG_AMOP, PG_AMPROC, PG_ATTRDEF, PG_CAST, PG_CLASS, PG_CONSTRAINT, PG_EXTENSION,
    PG_FOREIGN_SERVER, PG_OPCLASS, PG_OPFAMILY, PG_PROC, PG_REWRITE, PG_TRIGGER, PG_TYPE,
};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{noun_of, plural, verb_of};

use super::rebuilt_rows::Values;
use super::{Catalogs, Row, named_some};

/// The functions that `CREATE TYPE … AS RANGE` makes.
const CONSTRUCTORS: [&str; 2] = ["range_constructor", "multirange_constructor"];
/// The columns of a dependency.
const DEPENDENCY: [&str; 6] = [
    "classid",
    "objid",
    "objsubid",
    "refclassid",
    "refobjid",
    "refobjsubid",
];

impl Catalogs<'_> {
    /// Puts both among the rows of their catalogs.
    pub(super) fn add_rebuilt_links(&mut self) {
        self.add_rebuilt_dependencies();
        self.add_rebuilt_inheritance();
    }

    fn add_rebuilt_dependencies(&mut self) {
        let number = |row: &Row<'_>| DEPENDENCY.map(|column| row.oid(column));
        let known = self.table("pg_depend").iter();
        if !self.lost.contains_key("pg_depend") {
            return;
        }
        let known: BTreeSet<[u32; 6]> = known.map(|row| number(&row)).collect();
        let lost = self.lost_rows("pg_depend");
        let lost = lost.filter(|row| row.oid("objid") != 0 && row.oid("refobjid") != 0);
        let lost = lost.filter(|row| !known.contains(&number(row)));
        let rows: Vec<Values> = lost.map(|row| self.values_of_dependency(row)).collect();
        self.add_rows("pg_depend", &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_depend: {rows} {are} put together from its indexes: which of them count no more is lost, and which objects are only to be dropped with an extension",
                are = verb_of(rows.len(), "are"),
                rows = plural(rows.len(), "row"),
            ));
        }
    }

    fn values_of_dependency(&self, row: Row<'_>) -> Values {
        let kind = u8::try_from(self.kind_of_dependency(row)).unwrap_or(b'n');
        let numbers = DEPENDENCY.iter();
        let numbers = numbers.map(|column| (*column, row.oid(column).to_le_bytes().to_vec()));
        numbers.chain([("deptype", vec![kind])]).collect()
    }

    /// `deptype`; truth: `recordDependencyOn` wherever it is called.
    fn kind_of_dependency(&self, row: Row<'_>) -> char {
        let (object, needed) = (row.oid("objid"), row.oid("refobjid"));
        let is_of_column = row.oid("refobjsubid") > 0;
        match (row.oid("classid"), row.oid("refclassid")) {
            (PG_EXTENSION, PG_EXTENSION) => 'n',
            // What a user makes is no member of what `initdb` made.
            (_, PG_EXTENSION) if needed < FIRST_NORMAL_OID && object >= FIRST_NORMAL_OID => 'x',
            (_, PG_EXTENSION) => 'e',
            (PG_CLASS, PG_CLASS) if is_of_column && self.is_sequence(object) => {
                let column = self.attribute(needed, i64::from(row.oid("refobjsubid")));
                match column.map(|column| column.letter("attidentity")) {
                    Some('a' | 'd') => 'i',
                    _ => 'a',
                }
            }
            (PG_PROC, PG_TYPE) if self.makes_a_range(object, needed) => 'i',
            (PG_CAST, PG_TYPE) if self.comes_with_a_range(object) => 'i',
            (PG_TYPE, PG_CLASS | PG_TYPE) if self.comes_with(object, needed) => 'i',
            (PG_CLASS, PG_CONSTRAINT) | (PG_AMOP | PG_AMPROC, PG_OPCLASS) => 'i',
            (PG_REWRITE, PG_CLASS) if self.makes_the_view(object, needed) => 'i',
            (PG_AMOP | PG_AMPROC, PG_OPFAMILY)
            | (PG_ATTRDEF | PG_TRIGGER | PG_CONSTRAINT, PG_CLASS) => 'a',
            _ => 'n',
        }
    }

    pub(super) fn is_sequence(&self, oid: u32) -> bool {
        let relation = self.row("pg_class", oid);
        relation.is_some_and(|row| row.letter("relkind") == 'S')
    }

    /// The function comes with a range or multirange.
    pub(crate) fn makes_a_range(&self, function: u32, ty: u32) -> bool {
        let row = self.row("pg_proc", function);
        row.is_some_and(|row| {
            let range = self.row("pg_type", ty);
            let is_namesake = range.is_some_and(|ty| ty.name("typname") == row.name("proname"));
            // A body may be as large as it likes, and is only asked for where the rest fits.
            let makes_it = is_namesake && row.oid("prorettype") == ty;
            makes_it && {
                let source = row.name("prosrc");
                CONSTRUCTORS.iter().any(|own| source.starts_with(own))
            }
        })
    }

    /// The cast comes with a range: to its multirange.
    pub(crate) fn comes_with_a_range(&self, cast: u32) -> bool {
        let Some(cast) = self.row("pg_cast", cast) else {
            return false;
        };
        let range = self.one("pg_range", "rngtypid", cast.oid("castsource"));
        range.is_some_and(|range| range.oid("rngmultitypid") == cast.oid("casttarget"))
    }

    /// The row type of a relation, the array of a type, the multirange of a range.
    fn comes_with(&self, ty: u32, needed: u32) -> bool {
        let row = self.row("pg_type", ty);
        row.is_some_and(|row| {
            row.oid("typrelid") == needed
                || row.oid("typelem") == needed
                || row.letter("typtype") == 'm'
        })
    }

    fn makes_the_view(&self, rule: u32, view: u32) -> bool {
        let row = self.row("pg_rewrite", rule);
        row.is_some_and(|row| row.oid("ev_class") == view && row.name("rulename") == "_RETURN")
    }

    fn add_rebuilt_inheritance(&mut self) {
        let key = |row: &Row<'_>| (row.oid("inhrelid"), row.oid("inhparent"));
        let known = self.table("pg_inherits").iter();
        let known: BTreeSet<(u32, u32)> = known.map(|row| key(&row)).collect();
        let lost = self.lost_rows("pg_inherits");
        let lost = lost.filter(|row| {
            let (child, parent) = key(row);
            child != 0 && parent != 0 && !known.contains(&(child, parent))
        });
        let rows = lost.map(|row| {
            let number = |column| row.oid(column).to_le_bytes().to_vec();
            let columns = ["inhrelid", "inhparent", "inhseqno"];
            columns.map(|column| (column, number(column))).to_vec()
        });
        let rows: Vec<Values> = rows.collect();
        self.add_rows("pg_inherits", &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_inherits: {rows} {are} put together from its indexes: which of them count no more is lost",
                are = verb_of(rows.len(), "are"),
                rows = plural(rows.len(), "row"),
            ));
        }
    }

    /// Puts rows among those of `pg_foreign_table`, with their servers.
    pub(super) fn add_rebuilt_foreign_tables(&mut self) {
        let tables = self.table("pg_class").iter();
        let tables = tables.filter(|row| {
            let is_lost = || self.one("pg_foreign_table", "ftrelid", row.id()).is_none();
            row.letter("relkind") == 'f' && is_lost()
        });
        let found = tables.filter_map(|row| {
            let depends = self.rows("pg_depend", "objid", row.id());
            let server = depends.iter().find(|depend| {
                (depend.oid("classid"), depend.oid("refclassid")) == (PG_CLASS, PG_FOREIGN_SERVER)
            })?;
            let values: Values = vec![
                ("ftrelid", row.id().to_le_bytes().to_vec()),
                ("ftserver", server.oid("refobjid").to_le_bytes().to_vec()),
            ];
            Some((self.qualified_relation(row).ok()?, values))
        });
        let (names, rows): (Vec<String>, Vec<Values>) = found.unzip();
        self.add_rows("pg_foreign_table", &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_foreign_table: the {noun} of {names} {are} put together from pg_depend: their options are lost, so that a server may refuse them",
                noun = noun_of(rows.len() as u64, "row"),
                names = named_some(&names),
                are = verb_of(rows.len(), "are"),
            ));
        }
    }
}
