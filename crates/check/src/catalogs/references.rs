//! Which columns of the catalogs hold OIDs of rows of other catalogs: one line a reference.
//!
//! Columns that a major does not have are passed over, so that one list serves 13 to 18.
//!
//! Truth: `pg_get_catalog_foreign_keys()` of 14 and later (`src/include/catalog/system_fk_info.h`).

/// How a column holds its OIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// An array or vector of them.
    pub(crate) many: bool,
    /// 0 is none.
    pub(crate) optional: bool,
    /// The first major in which the reference holds.
    pub(crate) since: u16,
}

const ONE: Shape = Shape {
    many: false,
    optional: false,
    since: 13,
};
const OPTIONAL: Shape = Shape {
    optional: true,
    ..ONE
};
const MANY: Shape = Shape { many: true, ..ONE };
const MANY_OPTIONAL: Shape = Shape {
    many: true,
    ..OPTIONAL
};
/// Before 16 a grantor may have been dropped since.
const SINCE_16: Shape = Shape { since: 16, ..ONE };

/// Catalog, column, the catalog whose `oid` it names, shape.
pub(crate) type Reference = (&'static str, &'static str, &'static str, Shape);

/// References by OID.
#[rustfmt::skip]
pub(crate) static REFERENCES: &[Reference] = &[
    ("pg_aggregate", "aggcombinefn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggdeserialfn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggfinalfn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggfnoid", "pg_proc", ONE),
    ("pg_aggregate", "aggmfinalfn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggminvtransfn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggmtransfn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggmtranstype", "pg_type", OPTIONAL),
    ("pg_aggregate", "aggserialfn", "pg_proc", OPTIONAL),
    ("pg_aggregate", "aggsortop", "pg_operator", OPTIONAL),
    ("pg_aggregate", "aggtransfn", "pg_proc", ONE),
    ("pg_aggregate", "aggtranstype", "pg_type", ONE),
    ("pg_am", "amhandler", "pg_proc", ONE),
    ("pg_amop", "amopfamily", "pg_opfamily", ONE),
    ("pg_amop", "amoplefttype", "pg_type", ONE),
    ("pg_amop", "amopmethod", "pg_am", ONE),
    ("pg_amop", "amopopr", "pg_operator", ONE),
    ("pg_amop", "amoprighttype", "pg_type", ONE),
    ("pg_amop", "amopsortfamily", "pg_opfamily", OPTIONAL),
    ("pg_amproc", "amproc", "pg_proc", ONE),
    ("pg_amproc", "amprocfamily", "pg_opfamily", ONE),
    ("pg_amproc", "amproclefttype", "pg_type", ONE),
    ("pg_amproc", "amprocrighttype", "pg_type", ONE),
    ("pg_attrdef", "adrelid", "pg_class", ONE),
    ("pg_attribute", "attcollation", "pg_collation", OPTIONAL),
    ("pg_attribute", "attrelid", "pg_class", ONE),
    ("pg_attribute", "atttypid", "pg_type", OPTIONAL),
    ("pg_auth_members", "grantor", "pg_authid", SINCE_16),
    ("pg_auth_members", "member", "pg_authid", ONE),
    ("pg_auth_members", "roleid", "pg_authid", ONE),
    ("pg_cast", "castfunc", "pg_proc", OPTIONAL),
    ("pg_cast", "castsource", "pg_type", ONE),
    ("pg_cast", "casttarget", "pg_type", ONE),
    ("pg_class", "relam", "pg_am", OPTIONAL),
    ("pg_class", "relnamespace", "pg_namespace", ONE),
    ("pg_class", "reloftype", "pg_type", OPTIONAL),
    ("pg_class", "relowner", "pg_authid", ONE),
    ("pg_class", "relrewrite", "pg_class", OPTIONAL),
    ("pg_class", "reltablespace", "pg_tablespace", OPTIONAL),
    ("pg_class", "reltoastrelid", "pg_class", OPTIONAL),
    ("pg_class", "reltype", "pg_type", OPTIONAL),
    ("pg_collation", "collnamespace", "pg_namespace", ONE),
    ("pg_collation", "collowner", "pg_authid", ONE),
    ("pg_constraint", "conexclop", "pg_operator", MANY),
    ("pg_constraint", "conffeqop", "pg_operator", MANY),
    ("pg_constraint", "confrelid", "pg_class", OPTIONAL),
    ("pg_constraint", "conindid", "pg_class", OPTIONAL),
    ("pg_constraint", "connamespace", "pg_namespace", ONE),
    ("pg_constraint", "conparentid", "pg_constraint", OPTIONAL),
    ("pg_constraint", "conpfeqop", "pg_operator", MANY),
    ("pg_constraint", "conppeqop", "pg_operator", MANY),
    ("pg_constraint", "conrelid", "pg_class", OPTIONAL),
    ("pg_constraint", "contypid", "pg_type", OPTIONAL),
    ("pg_conversion", "connamespace", "pg_namespace", ONE),
    ("pg_conversion", "conowner", "pg_authid", ONE),
    ("pg_conversion", "conproc", "pg_proc", ONE),
    ("pg_database", "datdba", "pg_authid", ONE),
    ("pg_database", "dattablespace", "pg_tablespace", ONE),
    ("pg_db_role_setting", "setdatabase", "pg_database", OPTIONAL),
    ("pg_db_role_setting", "setrole", "pg_authid", OPTIONAL),
    ("pg_default_acl", "defaclnamespace", "pg_namespace", OPTIONAL),
    ("pg_default_acl", "defaclrole", "pg_authid", ONE),
    ("pg_enum", "enumtypid", "pg_type", ONE),
    ("pg_event_trigger", "evtfoid", "pg_proc", ONE),
    ("pg_event_trigger", "evtowner", "pg_authid", ONE),
    ("pg_extension", "extconfig", "pg_class", MANY),
    ("pg_extension", "extnamespace", "pg_namespace", ONE),
    ("pg_extension", "extowner", "pg_authid", ONE),
    ("pg_foreign_data_wrapper", "fdwhandler", "pg_proc", OPTIONAL),
    ("pg_foreign_data_wrapper", "fdwowner", "pg_authid", ONE),
    ("pg_foreign_data_wrapper", "fdwvalidator", "pg_proc", OPTIONAL),
    ("pg_foreign_server", "srvfdw", "pg_foreign_data_wrapper", ONE),
    ("pg_foreign_server", "srvowner", "pg_authid", ONE),
    ("pg_foreign_table", "ftrelid", "pg_class", ONE),
    ("pg_foreign_table", "ftserver", "pg_foreign_server", ONE),
    ("pg_index", "indclass", "pg_opclass", MANY),
    ("pg_index", "indcollation", "pg_collation", MANY_OPTIONAL),
    ("pg_index", "indexrelid", "pg_class", ONE),
    ("pg_index", "indrelid", "pg_class", ONE),
    ("pg_inherits", "inhparent", "pg_class", ONE),
    ("pg_inherits", "inhrelid", "pg_class", ONE),
    ("pg_init_privs", "classoid", "pg_class", ONE),
    ("pg_language", "laninline", "pg_proc", OPTIONAL),
    ("pg_language", "lanowner", "pg_authid", ONE),
    ("pg_language", "lanplcallfoid", "pg_proc", OPTIONAL),
    ("pg_language", "lanvalidator", "pg_proc", OPTIONAL),
    ("pg_largeobject", "loid", "pg_largeobject_metadata", ONE),
    ("pg_largeobject_metadata", "lomowner", "pg_authid", ONE),
    ("pg_namespace", "nspowner", "pg_authid", ONE),
    ("pg_opclass", "opcfamily", "pg_opfamily", ONE),
    ("pg_opclass", "opcintype", "pg_type", ONE),
    ("pg_opclass", "opckeytype", "pg_type", OPTIONAL),
    ("pg_opclass", "opcmethod", "pg_am", ONE),
    ("pg_opclass", "opcnamespace", "pg_namespace", ONE),
    ("pg_opclass", "opcowner", "pg_authid", ONE),
    ("pg_operator", "oprcode", "pg_proc", OPTIONAL),
    ("pg_operator", "oprcom", "pg_operator", OPTIONAL),
    ("pg_operator", "oprjoin", "pg_proc", OPTIONAL),
    ("pg_operator", "oprleft", "pg_type", OPTIONAL),
    ("pg_operator", "oprnamespace", "pg_namespace", ONE),
    ("pg_operator", "oprnegate", "pg_operator", OPTIONAL),
    ("pg_operator", "oprowner", "pg_authid", ONE),
    ("pg_operator", "oprrest", "pg_proc", OPTIONAL),
    ("pg_operator", "oprresult", "pg_type", OPTIONAL),
    ("pg_operator", "oprright", "pg_type", OPTIONAL),
    ("pg_opfamily", "opfmethod", "pg_am", ONE),
    ("pg_opfamily", "opfnamespace", "pg_namespace", ONE),
    ("pg_opfamily", "opfowner", "pg_authid", ONE),
    ("pg_partitioned_table", "partclass", "pg_opclass", MANY),
    ("pg_partitioned_table", "partcollation", "pg_collation", MANY_OPTIONAL),
    ("pg_partitioned_table", "partdefid", "pg_class", OPTIONAL),
    ("pg_partitioned_table", "partrelid", "pg_class", ONE),
    ("pg_policy", "polrelid", "pg_class", ONE),
    ("pg_policy", "polroles", "pg_authid", MANY_OPTIONAL),
    ("pg_proc", "proallargtypes", "pg_type", MANY),
    ("pg_proc", "proargtypes", "pg_type", MANY),
    ("pg_proc", "prolang", "pg_language", ONE),
    ("pg_proc", "pronamespace", "pg_namespace", ONE),
    ("pg_proc", "proowner", "pg_authid", ONE),
    ("pg_proc", "prorettype", "pg_type", ONE),
    ("pg_proc", "prosupport", "pg_proc", OPTIONAL),
    ("pg_proc", "protrftypes", "pg_type", MANY),
    ("pg_proc", "provariadic", "pg_type", OPTIONAL),
    ("pg_publication", "pubowner", "pg_authid", ONE),
    ("pg_publication_namespace", "pnnspid", "pg_namespace", ONE),
    ("pg_publication_namespace", "pnpubid", "pg_publication", ONE),
    ("pg_publication_rel", "prpubid", "pg_publication", ONE),
    ("pg_publication_rel", "prrelid", "pg_class", ONE),
    ("pg_range", "rngcanonical", "pg_proc", OPTIONAL),
    ("pg_range", "rngcollation", "pg_collation", OPTIONAL),
    ("pg_range", "rngmultitypid", "pg_type", ONE),
    ("pg_range", "rngsubdiff", "pg_proc", OPTIONAL),
    ("pg_range", "rngsubopc", "pg_opclass", ONE),
    ("pg_range", "rngsubtype", "pg_type", ONE),
    ("pg_range", "rngtypid", "pg_type", ONE),
    ("pg_rewrite", "ev_class", "pg_class", ONE),
    ("pg_sequence", "seqrelid", "pg_class", ONE),
    ("pg_sequence", "seqtypid", "pg_type", ONE),
    ("pg_shdepend", "dbid", "pg_database", OPTIONAL),
    ("pg_statistic", "stacoll1", "pg_collation", OPTIONAL),
    ("pg_statistic", "stacoll2", "pg_collation", OPTIONAL),
    ("pg_statistic", "stacoll3", "pg_collation", OPTIONAL),
    ("pg_statistic", "stacoll4", "pg_collation", OPTIONAL),
    ("pg_statistic", "stacoll5", "pg_collation", OPTIONAL),
    ("pg_statistic", "staop1", "pg_operator", OPTIONAL),
    ("pg_statistic", "staop2", "pg_operator", OPTIONAL),
    ("pg_statistic", "staop3", "pg_operator", OPTIONAL),
    ("pg_statistic", "staop4", "pg_operator", OPTIONAL),
    ("pg_statistic", "staop5", "pg_operator", OPTIONAL),
    ("pg_statistic", "starelid", "pg_class", ONE),
    ("pg_statistic_ext", "stxnamespace", "pg_namespace", ONE),
    ("pg_statistic_ext", "stxowner", "pg_authid", ONE),
    ("pg_statistic_ext", "stxrelid", "pg_class", ONE),
    ("pg_statistic_ext_data", "stxoid", "pg_statistic_ext", ONE),
    ("pg_subscription", "subdbid", "pg_database", ONE),
    ("pg_subscription", "subowner", "pg_authid", ONE),
    ("pg_subscription_rel", "srrelid", "pg_class", ONE),
    ("pg_subscription_rel", "srsubid", "pg_subscription", ONE),
    ("pg_tablespace", "spcowner", "pg_authid", ONE),
    ("pg_transform", "trffromsql", "pg_proc", OPTIONAL),
    ("pg_transform", "trflang", "pg_language", ONE),
    ("pg_transform", "trftosql", "pg_proc", OPTIONAL),
    ("pg_transform", "trftype", "pg_type", ONE),
    ("pg_trigger", "tgconstraint", "pg_constraint", OPTIONAL),
    ("pg_trigger", "tgconstrindid", "pg_class", OPTIONAL),
    ("pg_trigger", "tgconstrrelid", "pg_class", OPTIONAL),
    ("pg_trigger", "tgfoid", "pg_proc", ONE),
    ("pg_trigger", "tgparentid", "pg_trigger", OPTIONAL),
    ("pg_trigger", "tgrelid", "pg_class", ONE),
    ("pg_ts_config", "cfgnamespace", "pg_namespace", ONE),
    ("pg_ts_config", "cfgowner", "pg_authid", ONE),
    ("pg_ts_config", "cfgparser", "pg_ts_parser", ONE),
    ("pg_ts_config_map", "mapcfg", "pg_ts_config", ONE),
    ("pg_ts_config_map", "mapdict", "pg_ts_dict", ONE),
    ("pg_ts_dict", "dictnamespace", "pg_namespace", ONE),
    ("pg_ts_dict", "dictowner", "pg_authid", ONE),
    ("pg_ts_dict", "dicttemplate", "pg_ts_template", ONE),
    ("pg_ts_parser", "prsend", "pg_proc", ONE),
    ("pg_ts_parser", "prsheadline", "pg_proc", OPTIONAL),
    ("pg_ts_parser", "prslextype", "pg_proc", ONE),
    ("pg_ts_parser", "prsnamespace", "pg_namespace", ONE),
    ("pg_ts_parser", "prsstart", "pg_proc", ONE),
    ("pg_ts_parser", "prstoken", "pg_proc", ONE),
    ("pg_ts_template", "tmplinit", "pg_proc", OPTIONAL),
    ("pg_ts_template", "tmpllexize", "pg_proc", ONE),
    ("pg_ts_template", "tmplnamespace", "pg_namespace", ONE),
    ("pg_type", "typanalyze", "pg_proc", OPTIONAL),
    ("pg_type", "typarray", "pg_type", OPTIONAL),
    ("pg_type", "typbasetype", "pg_type", OPTIONAL),
    ("pg_type", "typcollation", "pg_collation", OPTIONAL),
    ("pg_type", "typelem", "pg_type", OPTIONAL),
    ("pg_type", "typinput", "pg_proc", ONE),
    ("pg_type", "typmodin", "pg_proc", OPTIONAL),
    ("pg_type", "typmodout", "pg_proc", OPTIONAL),
    ("pg_type", "typnamespace", "pg_namespace", ONE),
    ("pg_type", "typoutput", "pg_proc", ONE),
    ("pg_type", "typowner", "pg_authid", ONE),
    ("pg_type", "typreceive", "pg_proc", OPTIONAL),
    ("pg_type", "typrelid", "pg_class", OPTIONAL),
    ("pg_type", "typsend", "pg_proc", OPTIONAL),
    ("pg_type", "typsubscript", "pg_proc", OPTIONAL),
    ("pg_user_mapping", "umserver", "pg_foreign_server", ONE),
    ("pg_user_mapping", "umuser", "pg_authid", OPTIONAL),
];

/// Catalog, the column with a relation's OID, the column with the numbers of its attributes.
pub(crate) type AttributeReference = (&'static str, &'static str, &'static str);

/// References to columns of relations. 0 stands for an expression or the whole row.
#[rustfmt::skip]
pub(crate) static ATTRIBUTE_REFERENCES: &[AttributeReference] = &[
    ("pg_attrdef", "adrelid", "adnum"),
    ("pg_constraint", "confrelid", "confkey"),
    ("pg_constraint", "conrelid", "conkey"),
    ("pg_index", "indrelid", "indkey"),
    ("pg_partitioned_table", "partrelid", "partattrs"),
    ("pg_statistic", "starelid", "staattnum"),
    ("pg_statistic_ext", "stxrelid", "stxkeys"),
    ("pg_trigger", "tgrelid", "tgattr"),
];

/// Catalog, then the columns with the OID of a catalog, of one of its rows, and the number of a
/// column.
pub(crate) type ObjectReference = (
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
);

/// References to rows of any catalog.
#[rustfmt::skip]
pub(crate) static OBJECT_REFERENCES: &[ObjectReference] = &[
    ("pg_depend", "classid", "objid", Some("objsubid")),
    ("pg_depend", "refclassid", "refobjid", Some("refobjsubid")),
    ("pg_description", "classoid", "objoid", Some("objsubid")),
    ("pg_seclabel", "classoid", "objoid", Some("objsubid")),
    ("pg_shdepend", "classid", "objid", Some("objsubid")),
    ("pg_shdepend", "refclassid", "refobjid", None),
    ("pg_shdescription", "classoid", "objoid", None),
    ("pg_shseclabel", "classoid", "objoid", None),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_is_named_once() {
        let mut names: Vec<_> = REFERENCES
            .iter()
            .map(|(table, column, ..)| (table, column))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
