//! The numbers of catalogs, of their indexes and of the two tablespaces that every cluster has,
//! under PostgreSQL's own names.
//!
//! Truth: `CATALOG(…)` and `DECLARE_…INDEX` in `src/include/catalog/pg_*.h`.
#![allow(missing_docs, reason = "the name is all there is to say")]

use crate::types::Oid;

// Tablespaces.
pub const DEFAULT_TABLESPACE: Oid = 1663;
pub const GLOBAL_TABLESPACE: Oid = 1664;

// Catalogs.
pub const PG_DEFAULT_ACL: Oid = 826;
pub const PG_TABLESPACE: Oid = 1213;
pub const PG_SHDEPEND: Oid = 1214;
pub const PG_TYPE: Oid = 1247;
pub const PG_ATTRIBUTE: Oid = 1249;
pub const PG_PROC: Oid = 1255;
pub const PG_CLASS: Oid = 1259;
pub const PG_AUTHID: Oid = 1260;
pub const PG_AUTH_MEMBERS: Oid = 1261;
pub const PG_DATABASE: Oid = 1262;
pub const PG_FOREIGN_SERVER: Oid = 1417;
pub const PG_USER_MAPPING: Oid = 1418;
pub const PG_SEQUENCE: Oid = 2224;
pub const PG_FOREIGN_DATA_WRAPPER: Oid = 2328;
pub const PG_SHDESCRIPTION: Oid = 2396;
pub const PG_AM: Oid = 2601;
pub const PG_AMPROC: Oid = 2603;
pub const PG_ATTRDEF: Oid = 2604;
pub const PG_CAST: Oid = 2605;
pub const PG_CONSTRAINT: Oid = 2606;
pub const PG_CONVERSION: Oid = 2607;
pub const PG_DEPEND: Oid = 2608;
pub const PG_INDEX: Oid = 2610;
pub const PG_INHERITS: Oid = 2611;
pub const PG_LANGUAGE: Oid = 2612;
pub const PG_LARGEOBJECT: Oid = 2613;
pub const PG_NAMESPACE: Oid = 2615;
pub const PG_OPCLASS: Oid = 2616;
pub const PG_OPERATOR: Oid = 2617;
pub const PG_REWRITE: Oid = 2618;
pub const PG_STATISTIC: Oid = 2619;
pub const PG_TRIGGER: Oid = 2620;
pub const PG_OPFAMILY: Oid = 2753;
pub const PG_DB_ROLE_SETTING: Oid = 2964;
pub const PG_LARGEOBJECT_METADATA: Oid = 2995;
pub const PG_EXTENSION: Oid = 3079;
pub const PG_POLICY: Oid = 3256;
pub const PG_STATISTIC_EXT: Oid = 3381;
pub const PG_COLLATION: Oid = 3456;
pub const PG_EVENT_TRIGGER: Oid = 3466;
pub const PG_ENUM: Oid = 3501;
pub const PG_RANGE: Oid = 3541;
pub const PG_TRANSFORM: Oid = 3576;
pub const PG_SHSECLABEL: Oid = 3592;
pub const PG_TS_DICT: Oid = 3600;
pub const PG_TS_PARSER: Oid = 3601;
pub const PG_TS_CONFIG: Oid = 3602;
pub const PG_TS_TEMPLATE: Oid = 3764;
pub const PG_REPLICATION_ORIGIN: Oid = 6000;
pub const PG_SUBSCRIPTION: Oid = 6100;
pub const PG_PUBLICATION: Oid = 6104;

// Indexes of catalogs.
pub const PG_ATTRIBUTE_RELID_ATTNAM_INDEX: Oid = 2658;
pub const PG_ATTRIBUTE_RELID_ATTNUM_INDEX: Oid = 2659;
pub const PG_CLASS_OID_INDEX: Oid = 2662;
pub const PG_CLASS_RELNAME_NSP_INDEX: Oid = 2663;
pub const PG_DATABASE_DATNAME_INDEX: Oid = 2671;
pub const PG_DATABASE_OID_INDEX: Oid = 2672;
pub const PG_AUTHID_ROLNAME_INDEX: Oid = 2676;
pub const PG_AUTHID_OID_INDEX: Oid = 2677;
pub const PG_INDEX_INDEXRELID_INDEX: Oid = 2679;
pub const PG_LARGEOBJECT_LOID_PN_INDEX: Oid = 2683;
pub const PG_NAMESPACE_NSPNAME_INDEX: Oid = 2684;
pub const PG_NAMESPACE_OID_INDEX: Oid = 2685;
pub const PG_OPCLASS_OID_INDEX: Oid = 2687;
pub const PG_PROC_OID_INDEX: Oid = 2690;
pub const PG_PROC_PRONAME_ARGS_NSP_INDEX: Oid = 2691;
pub const PG_AUTH_MEMBERS_ROLE_MEMBER_INDEX: Oid = 2694;
pub const PG_AUTH_MEMBERS_MEMBER_ROLE_INDEX: Oid = 2695;
pub const PG_TABLESPACE_OID_INDEX: Oid = 2697;
pub const PG_TABLESPACE_SPCNAME_INDEX: Oid = 2698;
pub const PG_TYPE_OID_INDEX: Oid = 2703;
pub const PG_TYPE_TYPNAME_NSP_INDEX: Oid = 2704;
pub const PG_AMPROC_OID_INDEX: Oid = 2757;
pub const PG_COLLATION_OID_INDEX: Oid = 3085;
pub const PG_CLASS_TBLSPC_RELFILENODE_INDEX: Oid = 3455;
pub const PG_ENUM_OID_INDEX: Oid = 3502;
pub const PG_ENUM_TYPID_LABEL_INDEX: Oid = 3503;
pub const PG_ENUM_TYPID_SORTORDER_INDEX: Oid = 3534;
pub const PG_RANGE_RNGTYPID_INDEX: Oid = 3542;
pub const PG_SEQUENCE_SEQRELID_INDEX: Oid = 5002;
