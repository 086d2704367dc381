//! Types of columns whose rows in `pg_attribute` are lost, by what other catalogs say of them.
//!
//! ```text
//! pg_constraint.conbin, pg_index.indexprs and indpred, pg_attrdef.adbin     {VAR :varattno 3 :vartype 25 …}
//! pg_attrdef.adbin of the column itself                 the type that its outermost node results in
//! pg_statistic.stavalues1                               an array of values of the column: its element type
//! pg_depend                                             the type, where it is none of the system's
//! pg_inherits                                           the column of that name of a parent, child or sibling
//! ```
//!
//! All but the last are removed or written anew when the type of a column changes.
//! Truth: `src/backend/commands/analyze.c`, `src/backend/nodes/outfuncs.c`,
//! `src/backend/catalog/dependency.c`.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;
use pgclinic_format::oid::{
    PG_ATTRDEF, PG_CLASS, PG_CONSTRAINT, PG_DEPEND, PG_INDEX, PG_INHERITS, PG_STATISTIC, PG_TYPE,
};

use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;

/// Catalogs that have types of columns, in the order in which they are asked.
pub(crate) const CATALOGS_WITH_TYPES: [Oid; 5] =
    [PG_CONSTRAINT, PG_INDEX, PG_ATTRDEF, PG_DEPEND, PG_STATISTIC];
/// Kinds of statistics whose values are those of the column: most common ones, and a histogram.
const KINDS_OF_COLUMN_VALUES: [i16; 2] = [1, 2];
/// Where an array without its length word has the type of its elements.
const ELEMENT_TYPE_AT: usize = 8;
/// Fields in which nodes keep the type that they result in.
const RESULT_TYPES: [&str; 14] = [
    ":consttype",
    ":funcresulttype",
    ":opresulttype",
    ":resulttype",
    ":vartype",
    ":array_typeid",
    ":row_typeid",
    ":coalescetype",
    ":minmaxtype",
    ":casetype",
    ":typeId",
    ":refrestype",
    ":refelemtype",
    ":type",
];

/// What is known of the type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KnownType {
    pub(crate) oid: Oid,
    pub(crate) typmod: i32,
    pub(crate) collation: Oid,
    /// Which witness has it, in words.
    pub(crate) by: &'static str,
}

/// The columns that lack a type, and what is known of them.
pub(crate) struct ColumnTypes {
    wanted: BTreeSet<(Oid, u16)>,
    pub(crate) known: BTreeMap<(Oid, u16), KnownType>,
}

impl ColumnTypes {
    pub(crate) fn of(wanted: BTreeSet<(Oid, u16)>) -> Self {
        ColumnTypes {
            wanted,
            known: BTreeMap::new(),
        }
    }

    /// Every column has one.
    pub(crate) fn is_complete(&self) -> bool {
        self.known.len() == self.wanted.len()
    }

    /// Takes in a row of one of `CATALOGS_WITH_TYPES`.
    pub(crate) fn read_row(&mut self, catalog: Oid, names: &ColumnNames, row: &RawRow<'_>) {
        match catalog {
            PG_CONSTRAINT => {
                self.read_expressions(names, row, "conrelid", &["conbin"], "a check constraint");
            }
            PG_INDEX => {
                let columns = ["indexprs", "indpred"];
                self.read_expressions(
                    names,
                    row,
                    "indrelid",
                    &columns,
                    "an expression of an index",
                );
            }
            PG_ATTRDEF => self.read_default(names, row),
            PG_DEPEND => self.read_dependency(names, row),
            PG_STATISTIC => self.read_statistics(names, row),
            _ => {}
        }
    }

    fn note(&mut self, column: (Oid, i64), known: KnownType) {
        let Ok(number) = u16::try_from(column.1) else {
            return;
        };
        let column = (column.0, number);
        if self.wanted.contains(&column) && known.oid != 0 {
            self.known.entry(column).or_insert(known);
        }
    }

    /// Expressions over the columns of one table.
    fn read_expressions(
        &mut self,
        names: &ColumnNames,
        row: &RawRow<'_>,
        table: &str,
        columns: &[&str],
        by: &'static str,
    ) {
        let Some(table) = row.u32(names.index(table)) else {
            return;
        };
        for column in columns {
            let Some(text) = row.unpacked(names.index(column)) else {
                continue;
            };
            let text = String::from_utf8_lossy(&text);
            for (number, known) in variables(&text, by) {
                self.note((table, number), known);
            }
        }
    }

    fn read_default(&mut self, names: &ColumnNames, row: &RawRow<'_>) {
        self.read_expressions(names, row, "adrelid", &["adbin"], "a generated column");
        let (Some(table), Some(number)) = (
            row.u32(names.index("adrelid")),
            row.i16(names.index("adnum")),
        ) else {
            return;
        };
        let text = row.unpacked(names.index("adbin"));
        let oid = text.and_then(|text| result_type(&String::from_utf8_lossy(&text)));
        let by = "its default";
        self.note((table, number.into()), KnownType::of(oid, by));
    }

    fn read_dependency(&mut self, names: &ColumnNames, row: &RawRow<'_>) {
        let oid = |name: &str| row.u32(names.index(name));
        let is_of_column = oid("classid") == Some(PG_CLASS) && oid("refclassid") == Some(PG_TYPE);
        let number = oid("objsubid").filter(|_| is_of_column);
        if let (Some(table), Some(number)) = (oid("objid"), number) {
            let known = KnownType::of(oid("refobjid"), "pg_depend");
            self.note((table, number.into()), known);
        }
    }

    fn read_statistics(&mut self, names: &ColumnNames, row: &RawRow<'_>) {
        let (Some(table), Some(number)) = (
            row.u32(names.index("starelid")),
            row.i16(names.index("staattnum")),
        ) else {
            return;
        };
        for slot in 1..=5 {
            let kind = row.i16(names.index(&format!("stakind{slot}")));
            if !kind.is_some_and(|kind| KINDS_OF_COLUMN_VALUES.contains(&kind)) {
                continue;
            }
            let values = row.unpacked(names.index(&format!("stavalues{slot}")));
            let element = values.and_then(|values| {
                let bytes = values.get(ELEMENT_TYPE_AT..)?.first_chunk()?;
                Some(u32::from_le_bytes(*bytes))
            });
            self.note(
                (table, number.into()),
                KnownType::of(element, "pg_statistic"),
            );
        }
    }
}

impl KnownType {
    fn of(oid: Option<Oid>, by: &'static str) -> Self {
        KnownType {
            oid: oid.unwrap_or(0),
            typmod: -1,
            collation: 0,
            by,
        }
    }
}

/// Number and type of each column of the one table that an expression is about.
fn variables<'t>(text: &'t str, by: &'static str) -> impl Iterator<Item = (i64, KnownType)> + 't {
    text.split("{VAR ").skip(1).filter_map(move |rest| {
        let fields = rest.split('}').next()?;
        let number = |name: &str| field(fields, name)?.parse::<i64>().ok();
        let is_own = number(":varno") == Some(1) && number(":varlevelsup").unwrap_or(0) == 0;
        let oid = |name: &str| u32::try_from(number(name)?).ok();
        let known = KnownType {
            oid: oid(":vartype")?,
            typmod: i32::try_from(number(":vartypmod")?).ok()?,
            collation: oid(":varcollid").unwrap_or(0),
            by,
        };
        is_own.then_some((number(":varattno")?, known))
    })
}

/// The word behind the name of a field.
fn field<'t>(fields: &'t str, name: &str) -> Option<&'t str> {
    let mut words = fields.split_whitespace();
    words.find(|word| *word == name)?;
    words.next()
}

/// The type that the outermost node of an expression results in: the one field of that node itself
/// that keeps it.
fn result_type(text: &str) -> Option<Oid> {
    let mut depth = 0u32;
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if depth == 1 && RESULT_TYPES.contains(&word) {
            return words.next()?.trim_end_matches('}').parse().ok();
        }
        let opens = count(word, &['{', '(', '[']);
        let closes = count(word, &['}', ')', ']']);
        depth = (depth + opens).saturating_sub(closes);
    }
    None
}

/// Brackets that are not part of a text: those have a backslash before them.
fn count(word: &str, brackets: &[char]) -> u32 {
    let mut is_escaped = false;
    let mut count = 0;
    for letter in word.chars() {
        count += u32::from(!is_escaped && brackets.contains(&letter));
        is_escaped = letter == '\\' && !is_escaped;
    }
    count
}

/// The parents and children of each relation: a column is of the same type in all of them.
#[derive(Default)]
pub(crate) struct Relatives {
    parents: BTreeMap<Oid, Vec<Oid>>,
    children: BTreeMap<Oid, Vec<Oid>>,
}

impl Relatives {
    /// The catalog that names them.
    pub(crate) const CATALOG: Oid = PG_INHERITS;

    /// Takes in a row of it.
    pub(crate) fn read_row(&mut self, names: &ColumnNames, row: &RawRow<'_>) {
        let oid = |name: &str| row.u32(names.index(name));
        if let (Some(child), Some(parent)) = (oid("inhrelid"), oid("inhparent")) {
            self.parents.entry(child).or_default().push(parent);
            self.children.entry(parent).or_default().push(child);
        }
    }

    /// Parents, then children, then the other children of the parents.
    pub(crate) fn of(&self, table: Oid) -> impl Iterator<Item = Oid> {
        let parents = self.parents.get(&table).into_iter().flatten().copied();
        let children = |of: Oid| self.children.get(&of).into_iter().flatten().copied();
        let siblings = parents.clone().flat_map(children);
        let all = parents.chain(children(table)).chain(siblings);
        all.filter(move |relative| *relative != table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_tells_the_types_of_its_columns() {
        let text = "{BOOLEXPR :boolop and :args ({OPEXPR :opno 521 :args ({VAR :varno 1 :varattno 2 \
                    :vartype 1700 :vartypmod 655366 :varcollid 0 :varlevelsup 0 :location 9} {CONST \
                    :consttype 23 :constvalue 4 [ 0 0 0 0 ]})} {VAR :varno 2 :varattno 3 :vartype 16 \
                    :vartypmod -1 :varcollid 0 :varlevelsup 0})}";
        let known: Vec<_> = variables(text, "x").collect();
        let first = KnownType {
            oid: 1700,
            typmod: 655_366,
            collation: 0,
            by: "x",
        };
        assert_eq!(known, [(2, first)]);
    }

    #[test]
    fn a_default_tells_the_type_of_its_outermost_node() {
        let nextval = "{FUNCEXPR :funcid 1574 :funcresulttype 20 :args ({CONST :consttype 2205})}";
        assert_eq!(result_type(nextval), Some(20));
        let varchar =
            "{RELABELTYPE :arg {CONST :consttype 25 :constvalue 5 [ 1 2 ]} :resulttype 1043}";
        assert_eq!(result_type(varchar), Some(1043));
        let quoted = "{XMLEXPR :name a\\{b :arg {CONST :consttype 25} :type 142}";
        assert_eq!(result_type(quoted), Some(142));
        assert_eq!(result_type("{CASE"), None);
    }
}
