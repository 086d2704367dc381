//! What rows of the catalogs owe to each other: one line a claim, and no server leaves one unkept.
//!
//! Columns and catalogs that a major does not have are passed over, so that one list serves 13 to
//! 18. Flags of `pg_class` that VACUUM clears late (`relhasindex`, `relhasrules`, `relhastriggers`,
//! `relhassubclass`) may be set without need: they are asked one way only.
//!
//! Truth: the comments of `src/include/catalog/pg_*.h`, and `src/backend/catalog/heap.c`,
//! `index.c`, `pg_constraint.c`, `pg_type.c` and `src/backend/commands/tablecmds.c`, which write
//! both sides in one transaction.

use pgclinic_format::oid::{PG_ATTRDEF, PG_CLASS, PG_CONSTRAINT, PG_REWRITE, PG_TRIGGER, PG_TYPE};

use self::Is::{
    AsLastingAs, Counts, CountsAs, Given, InSchema, InSchemaOf, Letter, Null, Number, OfKind, Set,
    Unset, Users,
};
use self::Needs::{Count, Row, Tests};

/// Rows of one catalog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    /// The catalog.
    pub(crate) catalog: &'static str,
    /// All of these hold.
    pub(crate) tests: &'static [Test],
    /// By what they are known: columns.
    pub(crate) key: &'static [&'static str],
}

/// A column, and what it is.
pub(crate) type Test = (&'static str, Is);

/// What the value of a column is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Is {
    /// Not 0: a flag that is set, a letter, an OID.
    Set,
    /// 0.
    Unset,
    /// Not null.
    Given,
    /// Null.
    Null,
    /// One of these letters.
    Letter(&'static [u8]),
    /// This number.
    Number(u32),
    /// The OID of what no `initdb` made.
    Users,
    /// The OID of a relation of one of these kinds.
    OfKind(&'static [u8]),
    /// The OID of a relation whose schema is called so, or begins so.
    InSchema(&'static str),
    /// The OID of a relation in the schema of the one in this column.
    InSchemaOf(&'static str),
    /// The OID of a relation as lasting as the one in this column.
    AsLastingAs(&'static str),
    /// A vector of so many elements.
    Counts(&'static str),
    /// A vector of as many elements as this one.
    CountsAs(&'static str),
}

/// What a row owes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needs {
    /// A row there with the same key.
    Row(Rows),
    /// These, of itself.
    Tests(&'static [Test]),
    /// As many rows there with the same key as its column says.
    Count(&'static str, Rows),
}

/// Each of the rows owes something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) rows: Rows,
    pub(crate) needs: Needs,
    /// What is said of a row that does not have it.
    pub(crate) words: &'static str,
    /// The first major in which it holds, and the last.
    pub(crate) since: u16,
    pub(crate) until: u16,
}

const fn rows(catalog: &'static str, tests: &'static [Test], key: &'static [&'static str]) -> Rows {
    Rows {
        catalog,
        tests,
        key,
    }
}

const fn claim(rows: Rows, needs: Needs, words: &'static str) -> Claim {
    Claim {
        rows,
        needs,
        words,
        since: 13,
        until: u16::MAX,
    }
}

const fn since_15(claim: Claim) -> Claim {
    Claim { since: 15, ..claim }
}

const fn until_14(claim: Claim) -> Claim {
    Claim { until: 14, ..claim }
}

/// Rows of `pg_depend` about objects of this catalog.
macro_rules! depend {
    ($catalog:expr) => {
        rows("pg_depend", &[("classid", Number($catalog))], &["objid"])
    };
}

/// Columns of relations that are internally depended on: by sequences of identity columns.
const IDENTITY_SEQUENCES: Rows = rows(
    "pg_depend",
    &[
        ("classid", Number(PG_CLASS)),
        ("refclassid", Number(PG_CLASS)),
        ("deptype", Letter(b"i")),
        ("objsubid", Unset),
        ("refobjsubid", Set),
    ],
    &["refobjid", "refobjsubid"],
);

/// Defaults that are the expression of a generated column.
const GENERATING_DEFAULTS: Rows = rows(
    "pg_depend",
    &[
        ("classid", Number(PG_ATTRDEF)),
        ("refclassid", Number(PG_CLASS)),
        ("deptype", Letter(b"i")),
        ("refobjid", Users),
    ],
    &["refobjid", "refobjsubid"],
);

/// Columns that depend on others of their table: before 15 those that are generated from them, and
/// nothing else (`StoreAttrDefault`, `ATExecDropExpression`).
const GENERATED_FROM_COLUMNS: Rows = rows(
    "pg_depend",
    &[
        ("classid", Number(PG_CLASS)),
        ("refclassid", Number(PG_CLASS)),
        ("deptype", Letter(b"a")),
        ("objid", Users),
        ("objsubid", Set),
        ("refobjsubid", Set),
    ],
    &["objid", "objsubid"],
);

/// Every claim.
#[rustfmt::skip]
pub(crate) static CLAIMS: &[Claim] = &[
    // Columns.
    claim(rows("pg_attribute", &[("atthasmissing", Set)], &[]), Tests(&[("attmissingval", Given)]),
        "atthasmissing is set, and attmissingval is null"),
    claim(rows("pg_attribute", &[("attmissingval", Given)], &[]), Tests(&[("atthasmissing", Set)]),
        "attmissingval is there, and atthasmissing is not set: older rows lack the value"),
    claim(rows("pg_attribute", &[("attgenerated", Set)], &[]), Tests(&[("atthasdef", Set), ("attgenerated", Letter(b"sv")), ("attidentity", Unset)]),
        "attgenerated is set, and the column has no expression or an identity too, or no server knows the letter"),
    claim(rows("pg_attribute", &[("attidentity", Set), ("attisdropped", Unset)], &[]), Tests(&[("attidentity", Letter(b"ad")), ("attnotnull", Set), ("atthasdef", Unset)]),
        "attidentity is set, and the column may be null or has a default too, or no server knows the letter"),
    claim(rows("pg_attribute", &[("atthasdef", Set)], &["attrelid", "attnum"]), Row(rows("pg_attrdef", &[], &["adrelid", "adnum"])),
        "atthasdef is set, and pg_attrdef has no row of the column"),
    claim(rows("pg_attrdef", &[], &["adrelid", "adnum"]), Row(rows("pg_attribute", &[("atthasdef", Set)], &["attrelid", "attnum"])),
        "it is the default of a column of which atthasdef is not set"),
    claim(rows("pg_attribute", &[("attidentity", Set), ("attisdropped", Unset), ("attinhcount", Unset)], &["attrelid", "attnum"]), Row(IDENTITY_SEQUENCES),
        "attidentity is set, and no sequence depends on the column, by pg_depend"),
    claim(IDENTITY_SEQUENCES, Row(rows("pg_attribute", &[("attidentity", Set)], &["attrelid", "attnum"])),
        "a sequence depends internally on a column of which attidentity is not set"),
    since_15(claim(rows("pg_attribute", &[("attgenerated", Set), ("attrelid", Users)], &["attrelid", "attnum"]), Row(GENERATING_DEFAULTS),
        "attgenerated is set, and its expression is that of a plain default, by pg_depend")),
    since_15(claim(GENERATING_DEFAULTS, Row(rows("pg_attribute", &[("attgenerated", Set)], &["attrelid", "attnum"])),
        "the default belongs to a column of which attgenerated is not set")),
    until_14(claim(GENERATED_FROM_COLUMNS, Row(rows("pg_attribute", &[("attgenerated", Set)], &["attrelid", "attnum"])),
        "a column is generated from it of which attgenerated is not set")),
    claim(rows("pg_attribute", &[("atttypid", Set)], &["atttypid", "attlen", "attalign", "attbyval"]), Row(rows("pg_type", &[], &["oid", "typlen", "typalign", "typbyval"])),
        "attlen, attalign and attbyval are not those of its type in pg_type"),

    // Types.
    claim(rows("pg_type", &[], &[]), Tests(&[("typtype", Letter(b"bcdempr"))]), "typtype is no letter of a type"),
    claim(rows("pg_type", &[("typtype", Letter(b"c"))], &[]), Tests(&[("typrelid", Set), ("typcategory", Letter(b"C"))]),
        "typtype is 'c', and typrelid is 0 or typcategory another"),
    claim(rows("pg_type", &[("typrelid", Set)], &[]), Tests(&[("typtype", Letter(b"c"))]), "typrelid is set, and typtype is not 'c'"),
    claim(rows("pg_type", &[("typtype", Letter(b"d"))], &[]), Tests(&[("typbasetype", Set)]), "typtype is 'd', and typbasetype is 0"),
    claim(rows("pg_type", &[("typbasetype", Set)], &[]), Tests(&[("typtype", Letter(b"d"))]), "typbasetype is set, and typtype is not 'd'"),
    claim(rows("pg_type", &[("typtype", Letter(b"e"))], &[]), Tests(&[("typcategory", Letter(b"E"))]), "typtype is 'e', and typcategory is not 'E'"),
    claim(rows("pg_type", &[("typtype", Letter(b"mr"))], &[]), Tests(&[("typcategory", Letter(b"R"))]), "typtype is that of a range, and typcategory is not 'R'"),
    claim(rows("pg_enum", &[], &["enumtypid"]), Row(rows("pg_type", &[("typtype", Letter(b"e"))], &["oid"])),
        "it is a value of a type of which typtype is not 'e'"),
    claim(rows("pg_type", &[("typtype", Letter(b"r"))], &["oid"]), Row(rows("pg_range", &[], &["rngtypid"])), "typtype is 'r', and pg_range has no row of it"),
    claim(rows("pg_range", &[], &["rngtypid"]), Row(rows("pg_type", &[("typtype", Letter(b"r"))], &["oid"])), "it is of a type of which typtype is not 'r'"),
    claim(rows("pg_type", &[("typtype", Letter(b"m"))], &["oid"]), Row(rows("pg_range", &[], &["rngmultitypid"])), "typtype is 'm', and pg_range has no row of it"),
    claim(rows("pg_range", &[], &["rngmultitypid"]), Row(rows("pg_type", &[("typtype", Letter(b"m"))], &["oid"])), "it is of a multirange type of which typtype is not 'm'"),
    claim(rows("pg_type", &[("typarray", Set)], &["typarray", "oid"]), Row(rows("pg_type", &[], &["oid", "typelem"])), "typelem of its array type names another type"),

    // Relations and what they have beside.
    claim(rows("pg_class", &[("reltype", Set)], &["reltype", "oid"]), Row(rows("pg_type", &[], &["oid", "typrelid"])), "typrelid of its row type names another relation"),
    claim(rows("pg_type", &[("typrelid", Set)], &["oid", "typrelid"]), Row(rows("pg_class", &[], &["reltype", "oid"])), "reltype of its relation names another type"),
    claim(rows("pg_class", &[("reltype", Set), ("relkind", Letter(b"rvmcpf"))], &["reltype", "relnamespace"]), Row(rows("pg_type", &[], &["oid", "typnamespace"])),
        "relnamespace is not typnamespace of its row type"),
    claim(rows("pg_class", &[("reltype", Set), ("relkind", Letter(b"rvmcpf"))], &["reltype", "relname"]), Row(rows("pg_type", &[], &["oid", "typname"])),
        "relname is not typname of its row type"),
    claim(rows("pg_class", &[("reltype", Set), ("relkind", Letter(b"rvmcpf"))], &["reltype", "relowner"]), Row(rows("pg_type", &[], &["oid", "typowner"])),
        "relowner is not typowner of its row type"),
    claim(rows("pg_class", &[("relkind", Letter(b"t"))], &[]), Tests(&[("oid", InSchema("pg_toast"))]), "relnamespace is not the schema of TOAST tables"),
    claim(rows("pg_class", &[("relkind", Letter(b"t"))], &["oid"]), Row(rows("pg_class", &[], &["reltoastrelid"])), "it is a TOAST table, and reltoastrelid of no table names it"),
    claim(rows("pg_class", &[("reltoastrelid", Set)], &["reltoastrelid"]), Row(rows("pg_class", &[("relkind", Letter(b"t"))], &["oid"])), "reltoastrelid names a relation of which relkind is not 't'"),
    claim(rows("pg_class", &[], &["oid"]), Count("relchecks", rows("pg_constraint", &[("contype", Letter(b"c"))], &["conrelid"])),
        "relchecks is not the number of its check constraints in pg_constraint"),
    claim(rows("pg_trigger", &[], &["tgrelid"]), Row(rows("pg_class", &[("relhastriggers", Set)], &["oid"])), "relhastriggers of its table is not set"),
    claim(rows("pg_rewrite", &[], &["ev_class"]), Row(rows("pg_class", &[("relhasrules", Set)], &["oid"])), "relhasrules of its relation is not set"),
    claim(rows("pg_inherits", &[], &["inhparent"]), Row(rows("pg_class", &[("relhassubclass", Set)], &["oid"])), "relhassubclass of its parent is not set"),
    claim(rows("pg_class", &[("relkind", Letter(b"S"))], &["oid"]), Row(rows("pg_sequence", &[], &["seqrelid"])), "relkind is 'S', and pg_sequence has no row of it"),
    claim(rows("pg_sequence", &[], &["seqrelid"]), Row(rows("pg_class", &[("relkind", Letter(b"S"))], &["oid"])), "relkind of its relation is not 'S'"),
    claim(rows("pg_class", &[("relkind", Letter(b"f"))], &["oid"]), Row(rows("pg_foreign_table", &[], &["ftrelid"])), "relkind is 'f', and pg_foreign_table has no row of it"),
    claim(rows("pg_foreign_table", &[], &["ftrelid"]), Row(rows("pg_class", &[("relkind", Letter(b"f"))], &["oid"])), "relkind of its relation is not 'f'"),
    claim(rows("pg_class", &[("relkind", Letter(b"mv"))], &["oid"]), Row(rows("pg_rewrite", &[("ev_type", Letter(b"1"))], &["ev_class"])), "relkind is that of a view, and pg_rewrite has no rule with its query"),
    claim(rows("pg_rewrite", &[("ev_type", Letter(b"1"))], &["ev_class"]), Row(rows("pg_class", &[("relkind", Letter(b"mv"))], &["oid"])), "it is the query of a relation of which relkind is not that of a view"),

    // Partitions.
    claim(rows("pg_class", &[("relkind", Letter(b"p"))], &["oid"]), Row(rows("pg_partitioned_table", &[], &["partrelid"])), "relkind is 'p', and pg_partitioned_table has no row of it"),
    claim(rows("pg_partitioned_table", &[], &["partrelid"]), Row(rows("pg_class", &[("relkind", Letter(b"p"))], &["oid"])), "relkind of its relation is not 'p'"),
    claim(rows("pg_partitioned_table", &[], &[]), Tests(&[("partattrs", Counts("partnatts")), ("partclass", Counts("partnatts"))]), "partnatts is not the number of its keys"),
    claim(rows("pg_class", &[("relispartition", Set)], &["oid"]), Row(rows("pg_inherits", &[], &["inhrelid"])), "relispartition is set, and pg_inherits has no parent of it"),
    claim(rows("pg_inherits", &[("inhparent", OfKind(b"pI"))], &["inhrelid"]), Row(rows("pg_class", &[("relispartition", Set)], &["oid"])), "its parent is partitioned, and relispartition is not set"),
    claim(rows("pg_class", &[("relispartition", Set), ("relkind", Letter(b"rpf"))], &[]), Tests(&[("relpartbound", Given)]), "relispartition is set, and relpartbound is null"),
    claim(rows("pg_class", &[("relispartition", Unset)], &[]), Tests(&[("relpartbound", Null)]), "relpartbound is there, and relispartition is not set"),
    claim(rows("pg_attribute", &[("attinhcount", Set), ("attisdropped", Unset)], &["attrelid"]), Row(rows("pg_inherits", &[], &["inhrelid"])), "attinhcount is set, and pg_inherits has no parent of its table"),

    // Indexes.
    claim(rows("pg_class", &[("relkind", Letter(b"iI"))], &["oid"]), Row(rows("pg_index", &[], &["indexrelid"])), "relkind is that of an index, and pg_index has no row of it"),
    claim(rows("pg_index", &[], &["indexrelid", "indnatts"]), Row(rows("pg_class", &[("relkind", Letter(b"iI"))], &["oid", "relnatts"])), "relkind of its relation is not that of an index, or relnatts not indnatts"),
    claim(rows("pg_index", &[], &[]), Tests(&[("indkey", Counts("indnatts")), ("indclass", Counts("indnkeyatts")), ("indoption", Counts("indnkeyatts"))]), "indnatts and indnkeyatts are not the numbers of its columns"),
    claim(rows("pg_index", &[], &[]), Tests(&[("indexrelid", InSchemaOf("indrelid"))]), "relnamespace of the index is not that of its table"),
    claim(rows("pg_index", &[], &[]), Tests(&[("indexrelid", AsLastingAs("indrelid"))]), "relpersistence of the index is not that of its table"),
    claim(rows("pg_index", &[("indisprimary", Set)], &[]), Tests(&[("indisunique", Set)]), "indisprimary is set, and indisunique is not"),
    claim(rows("pg_index", &[("indisready", Set)], &[]), Tests(&[("indislive", Set)]), "indisready is set, and indislive is not"),
    claim(rows("pg_index", &[("indisvalid", Set)], &[]), Tests(&[("indisready", Set)]), "indisvalid is set, and indisready is not: writes pass it by"),
    claim(rows("pg_index", &[("indisreplident", Set)], &["indrelid"]), Row(rows("pg_class", &[("relreplident", Letter(b"i"))], &["oid"])), "indisreplident is set, and relreplident of its table is not 'i'"),
    claim(rows("pg_index", &[("indisprimary", Set), ("indrelid", OfKind(b"rp"))], &["indexrelid", "indrelid"]), Row(rows("pg_constraint", &[("contype", Letter(b"p"))], &["conindid", "conrelid"])), "indisprimary is set, and pg_constraint has no primary key of it"),
    claim(rows("pg_index", &[("indisexclusion", Set)], &["indexrelid", "indrelid"]), Row(rows("pg_constraint", &[("contype", Letter(b"xpu"))], &["conindid", "conrelid"])), "indisexclusion is set, and pg_constraint has no constraint of it"),

    // Constraints.
    claim(rows("pg_constraint", &[], &[]), Tests(&[("contype", Letter(b"cfnptux"))]), "contype is no letter of a constraint"),
    claim(rows("pg_constraint", &[("contype", Letter(b"cnt"))], &[]), Tests(&[("conindid", Unset), ("confrelid", Unset)]), "contype is of a constraint without an index, and conindid or confrelid is set"),
    claim(rows("pg_constraint", &[("contype", Letter(b"pux"))], &[]), Tests(&[("conindid", Set), ("confrelid", Unset)]), "contype is of a constraint with an index, and conindid is 0 or confrelid is set"),
    claim(rows("pg_constraint", &[("contype", Letter(b"f"))], &[]), Tests(&[("conindid", Set), ("confrelid", Set)]), "contype is that of a foreign key, and conindid or confrelid is 0"),
    claim(rows("pg_constraint", &[("contype", Letter(b"p"))], &["conindid", "conrelid"]), Row(rows("pg_index", &[("indisprimary", Set)], &["indexrelid", "indrelid"])), "its index belongs to no primary key of its table"),
    claim(rows("pg_constraint", &[("contype", Letter(b"u"))], &["conindid", "conrelid"]), Row(rows("pg_index", &[("indisunique", Set)], &["indexrelid", "indrelid"])), "its index is no unique one of its table"),
    claim(rows("pg_constraint", &[("contype", Letter(b"x"))], &["conindid", "conrelid"]), Row(rows("pg_index", &[("indisexclusion", Set)], &["indexrelid", "indrelid"])), "its index belongs to no exclusion constraint of its table"),
    claim(rows("pg_constraint", &[("contype", Letter(b"f"))], &["conindid", "confrelid"]), Row(rows("pg_index", &[("indisunique", Set)], &["indexrelid", "indrelid"])), "its index is no unique one of the table that it refers to"),
    claim(rows("pg_constraint", &[("contype", Letter(b"pux"))], &["conindid", "conkey"]), Row(rows("pg_index", &[], &["indexrelid", "indkey"])), "conkey has other columns than its index"),
    claim(rows("pg_constraint", &[("contype", Letter(b"f"))], &[]), Tests(&[("conkey", CountsAs("confkey"))]), "conkey and confkey have not as many columns"),
    claim(rows("pg_constraint", &[("contype", Letter(b"f")), ("conrelid", OfKind(b"r")), ("confrelid", OfKind(b"r")), ("conenforced", Set)], &["oid"]), Row(rows("pg_trigger", &[], &["tgconstraint"])), "it is a foreign key, and pg_trigger has no trigger of it: nothing enforces it"),

    // Functions.
    claim(rows("pg_proc", &[], &[]), Tests(&[("proargtypes", Counts("pronargs"))]), "pronargs is not the number of its arguments"),
    claim(rows("pg_proc", &[("prokind", Letter(b"a"))], &["oid"]), Row(rows("pg_aggregate", &[], &["aggfnoid"])), "prokind is 'a', and pg_aggregate has no row of it"),
    claim(rows("pg_aggregate", &[], &["aggfnoid"]), Row(rows("pg_proc", &[("prokind", Letter(b"a"))], &["oid"])), "prokind of its function is not 'a'"),

    // Dependencies that what users make always has.
    claim(rows("pg_class", &[("reltoastrelid", Users)], &["reltoastrelid", "oid"]), Row(rows("pg_depend", &[("classid", Number(PG_CLASS)), ("refclassid", Number(PG_CLASS)), ("deptype", Letter(b"i"))], &["objid", "refobjid"])),
        "its TOAST table does not depend on it, by pg_depend"),
    claim(rows("pg_index", &[("indexrelid", Users), ("indrelid", Users)], &["indexrelid"]), Row(depend!(PG_CLASS)), "the index depends on nothing, by pg_depend"),
    claim(rows("pg_class", &[("reltype", Users), ("relkind", Letter(b"rvmpf"))], &["reltype"]), Row(depend!(PG_TYPE)), "its row type depends on nothing, by pg_depend"),
    claim(rows("pg_attrdef", &[("oid", Users), ("adrelid", Users)], &["oid"]), Row(depend!(PG_ATTRDEF)), "the default depends on nothing, by pg_depend"),
    claim(rows("pg_constraint", &[("oid", Users), ("conrelid", Users)], &["oid"]), Row(depend!(PG_CONSTRAINT)), "the constraint depends on nothing, by pg_depend"),
    claim(rows("pg_rewrite", &[("oid", Users), ("ev_class", Users)], &["oid"]), Row(depend!(PG_REWRITE)), "the rule depends on nothing, by pg_depend"),
    claim(rows("pg_trigger", &[("oid", Users), ("tgrelid", Users)], &["oid"]), Row(depend!(PG_TRIGGER)), "the trigger depends on nothing, by pg_depend"),
    claim(rows("pg_inherits", &[("inhrelid", Users)], &["inhrelid", "inhparent"]), Row(rows("pg_depend", &[("classid", Number(PG_CLASS)), ("refclassid", Number(PG_CLASS))], &["objid", "refobjid"])),
        "it does not depend on its parent, by pg_depend"),
];

/// Catalog, the column with a relation, the column with a name: whose row it is.
#[rustfmt::skip]
pub(crate) static OWNERS: &[(&str, &str, &str)] = &[
    ("pg_aggregate", "", "aggfnoid"),
    ("pg_attrdef", "adrelid", "adnum"),
    ("pg_attribute", "attrelid", "attname"),
    ("pg_class", "", "relname"),
    ("pg_constraint", "conrelid", "conname"),
    ("pg_depend", "refobjid", "refobjsubid"),
    ("pg_enum", "", "enumlabel"),
    ("pg_foreign_table", "ftrelid", ""),
    ("pg_index", "indexrelid", ""),
    ("pg_inherits", "inhrelid", ""),
    ("pg_partitioned_table", "partrelid", ""),
    ("pg_proc", "", "proname"),
    ("pg_range", "", "rngtypid"),
    ("pg_rewrite", "ev_class", "rulename"),
    ("pg_sequence", "seqrelid", ""),
    ("pg_trigger", "tgrelid", "tgname"),
    ("pg_type", "", "typname"),
];

/// The relation that a row of this catalog is about, for those that have one.
pub(crate) fn owner_columns(catalog: &str) -> (&'static str, &'static str) {
    let own = OWNERS.iter().find(|(name, ..)| *name == catalog);
    own.map_or(("", ""), |(_, relation, name)| (*relation, *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_said_once_and_names_its_row() {
        let mut words: Vec<_> = CLAIMS
            .iter()
            .map(|own| (own.rows.catalog, own.words))
            .collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        for own in CLAIMS {
            assert_ne!(
                owner_columns(own.rows.catalog),
                ("", ""),
                "{}",
                own.rows.catalog
            );
        }
    }

    #[test]
    fn keys_of_both_sides_are_as_long() {
        for own in CLAIMS {
            match own.needs {
                Tests(_) => assert_eq!(own.rows.key.len(), 0, "{}", own.words),
                Row(other) | Count(_, other) => {
                    assert_eq!(own.rows.key.len(), other.key.len(), "{}", own.words);
                    assert_ne!(other.key.len(), 0, "{}", own.words);
                }
            }
        }
    }
}
