//! What the indexes of a catalog still have of rows that it lost: the key columns of each, joined
//! by the TID that they lead to.
//!
//! ```text
//! pg_policy_oid_index                oid                ─┐
//! pg_policy_polrelid_polname_index   polrelid, polname  ─┴─ joined by TID ─► a lost row, by column
//! ```
//!
//! Entries of rows that were deleted stay until VACUUM comes, and cannot be told from those of rows
//! that counted: whoever takes them asks whether what they name is there.
//!
//! Truth: `DECLARE_…INDEX` in `src/include/catalog/pg_*.h`.

use std::collections::BTreeMap;

use pgclinic_format::types::Tid;
use pgclinic_format::{ColumnLayout, Oid, oid, varlena};

use super::entries::{NAME, SHORT, WORD, each_entry_in};
use crate::cluster::Cluster;
use crate::files::ForkFiles;
use crate::row_places::{PlaceState, RowPlaces};

/// `"char"`.
const LETTER: ColumnLayout = ColumnLayout {
    attlen: 1,
    attalign: 1,
};
/// `oidvector`.
const VECTOR: ColumnLayout = ColumnLayout {
    attlen: -1,
    attalign: 4,
};

/// Values of a row by column, without headers, as far as indexes have them.
pub type LostKeys = Vec<(&'static str, Vec<u8>)>;

type KeyColumn = (&'static str, ColumnLayout);
type IndexKeys = (Oid, &'static [KeyColumn]);

/// The indexes of each catalog with their columns, which are the same in every major.
#[rustfmt::skip]
const INDEXES: &[(Oid, &[IndexKeys])] = &[
    (oid::PG_AM, &[
        (oid::PG_AM_NAME_INDEX, &[("amname", NAME)]),
        (oid::PG_AM_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_ATTRDEF, &[
        (oid::PG_ATTRDEF_ADRELID_ADNUM_INDEX, &[("adrelid", WORD), ("adnum", SHORT)]),
        (oid::PG_ATTRDEF_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_CAST, &[
        (oid::PG_CAST_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_CAST_SOURCE_TARGET_INDEX, &[("castsource", WORD), ("casttarget", WORD)]),
    ]),
    (oid::PG_COLLATION, &[
        (oid::PG_COLLATION_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_COLLATION_NAME_ENC_NSP_INDEX, &[("collname", NAME), ("collencoding", WORD), ("collnamespace", WORD)]),
    ]),
    (oid::PG_CONSTRAINT, &[
        (oid::PG_CONSTRAINT_CONPARENTID_INDEX, &[("conparentid", WORD)]),
        (oid::PG_CONSTRAINT_CONRELID_CONTYPID_CONNAME_INDEX, &[("conrelid", WORD), ("contypid", WORD), ("conname", NAME)]),
        (oid::PG_CONSTRAINT_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_CONVERSION, &[
        (oid::PG_CONVERSION_NAME_NSP_INDEX, &[("conname", NAME), ("connamespace", WORD)]),
        (oid::PG_CONVERSION_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_DEFAULT_ACL, &[
        (oid::PG_DEFAULT_ACL_ROLE_NSP_OBJ_INDEX, &[("defaclrole", WORD), ("defaclnamespace", WORD), ("defaclobjtype", LETTER)]),
        (oid::PG_DEFAULT_ACL_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_DEPEND, &[
        (oid::PG_DEPEND_DEPENDER_INDEX, &[("classid", WORD), ("objid", WORD), ("objsubid", WORD)]),
        (oid::PG_DEPEND_REFERENCE_INDEX, &[("refclassid", WORD), ("refobjid", WORD), ("refobjsubid", WORD)]),
    ]),
    (oid::PG_DESCRIPTION, &[
        (oid::PG_DESCRIPTION_O_C_O_INDEX, &[("objoid", WORD), ("classoid", WORD), ("objsubid", WORD)]),
    ]),
    (oid::PG_EVENT_TRIGGER, &[
        (oid::PG_EVENT_TRIGGER_EVTNAME_INDEX, &[("evtname", NAME)]),
        (oid::PG_EVENT_TRIGGER_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_EXTENSION, &[
        (oid::PG_EXTENSION_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_EXTENSION_NAME_INDEX, &[("extname", NAME)]),
    ]),
    (oid::PG_FOREIGN_DATA_WRAPPER, &[
        (oid::PG_FOREIGN_DATA_WRAPPER_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_FOREIGN_DATA_WRAPPER_NAME_INDEX, &[("fdwname", NAME)]),
    ]),
    (oid::PG_FOREIGN_SERVER, &[
        (oid::PG_FOREIGN_SERVER_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_FOREIGN_SERVER_NAME_INDEX, &[("srvname", NAME)]),
    ]),
    (oid::PG_FOREIGN_TABLE, &[
        (oid::PG_FOREIGN_TABLE_RELID_INDEX, &[("ftrelid", WORD)]),
    ]),
    (oid::PG_INDEX, &[
        (oid::PG_INDEX_INDRELID_INDEX, &[("indrelid", WORD)]),
        (oid::PG_INDEX_INDEXRELID_INDEX, &[("indexrelid", WORD)]),
    ]),
    (oid::PG_INHERITS, &[
        (oid::PG_INHERITS_PARENT_INDEX, &[("inhparent", WORD)]),
        (oid::PG_INHERITS_RELID_SEQNO_INDEX, &[("inhrelid", WORD), ("inhseqno", WORD)]),
    ]),
    (oid::PG_LANGUAGE, &[
        (oid::PG_LANGUAGE_NAME_INDEX, &[("lanname", NAME)]),
        (oid::PG_LANGUAGE_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_OPCLASS, &[
        (oid::PG_OPCLASS_AM_NAME_NSP_INDEX, &[("opcmethod", WORD), ("opcname", NAME), ("opcnamespace", WORD)]),
        (oid::PG_OPCLASS_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_OPERATOR, &[
        (oid::PG_OPERATOR_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_OPERATOR_OPRNAME_L_R_N_INDEX, &[("oprname", NAME), ("oprleft", WORD), ("oprright", WORD), ("oprnamespace", WORD)]),
    ]),
    (oid::PG_OPFAMILY, &[
        (oid::PG_OPFAMILY_AM_NAME_NSP_INDEX, &[("opfmethod", WORD), ("opfname", NAME), ("opfnamespace", WORD)]),
        (oid::PG_OPFAMILY_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_PARTITIONED_TABLE, &[
        (oid::PG_PARTITIONED_TABLE_PARTRELID_INDEX, &[("partrelid", WORD)]),
    ]),
    (oid::PG_POLICY, &[
        (oid::PG_POLICY_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_POLICY_POLRELID_POLNAME_INDEX, &[("polrelid", WORD), ("polname", NAME)]),
    ]),
    (oid::PG_PROC, &[
        (oid::PG_PROC_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_PROC_PRONAME_ARGS_NSP_INDEX, &[("proname", NAME), ("proargtypes", VECTOR), ("pronamespace", WORD)]),
    ]),
    (oid::PG_PUBLICATION, &[
        (oid::PG_PUBLICATION_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_PUBLICATION_PUBNAME_INDEX, &[("pubname", NAME)]),
    ]),
    (oid::PG_PUBLICATION_REL, &[
        (oid::PG_PUBLICATION_REL_PRRELID_PRPUBID_INDEX, &[("prrelid", WORD), ("prpubid", WORD)]),
    ]),
    (oid::PG_REWRITE, &[
        (oid::PG_REWRITE_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_REWRITE_REL_RULENAME_INDEX, &[("ev_class", WORD), ("rulename", NAME)]),
    ]),
    (oid::PG_SEQUENCE, &[
        (oid::PG_SEQUENCE_SEQRELID_INDEX, &[("seqrelid", WORD)]),
    ]),
    (oid::PG_STATISTIC_EXT, &[
        (oid::PG_STATISTIC_EXT_RELID_INDEX, &[("stxrelid", WORD)]),
        (oid::PG_STATISTIC_EXT_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_STATISTIC_EXT_NAME_INDEX, &[("stxname", NAME), ("stxnamespace", WORD)]),
    ]),
    (oid::PG_SUBSCRIPTION, &[
        (oid::PG_SUBSCRIPTION_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_SUBSCRIPTION_SUBNAME_INDEX, &[("subdbid", WORD), ("subname", NAME)]),
    ]),
    (oid::PG_TRIGGER, &[
        (oid::PG_TRIGGER_TGRELID_TGNAME_INDEX, &[("tgrelid", WORD), ("tgname", NAME)]),
        (oid::PG_TRIGGER_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_TS_CONFIG, &[
        (oid::PG_TS_CONFIG_CFGNAME_INDEX, &[("cfgname", NAME), ("cfgnamespace", WORD)]),
        (oid::PG_TS_CONFIG_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_TS_DICT, &[
        (oid::PG_TS_DICT_DICTNAME_INDEX, &[("dictname", NAME), ("dictnamespace", WORD)]),
        (oid::PG_TS_DICT_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_TS_PARSER, &[
        (oid::PG_TS_PARSER_PRSNAME_INDEX, &[("prsname", NAME), ("prsnamespace", WORD)]),
        (oid::PG_TS_PARSER_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_TS_TEMPLATE, &[
        (oid::PG_TS_TEMPLATE_TMPLNAME_INDEX, &[("tmplname", NAME), ("tmplnamespace", WORD)]),
        (oid::PG_TS_TEMPLATE_OID_INDEX, &[("oid", WORD)]),
    ]),
    (oid::PG_USER_MAPPING, &[
        (oid::PG_USER_MAPPING_OID_INDEX, &[("oid", WORD)]),
        (oid::PG_USER_MAPPING_USER_SERVER_INDEX, &[("umuser", WORD), ("umserver", WORD)]),
    ]),
];

/// The rows of a catalog that its indexes name and that are not there, each once; `files_of` gives
/// the files of an index.
pub(crate) fn keys_of_lost_rows<'f>(
    cluster: &Cluster,
    catalog: Oid,
    places: &RowPlaces,
    files_of: &dyn Fn(Oid) -> Option<&'f ForkFiles>,
) -> Vec<LostKeys> {
    let mut own = INDEXES.iter();
    let Some((_, indexes)) = own.find(|(known, _)| *known == catalog) else {
        return Vec::new();
    };
    let is_lost = |tid| {
        let state = places.state(tid);
        state.is_without_page() || state == PlaceState::NoRow
    };
    let mut rows: BTreeMap<Tid, LostKeys> = BTreeMap::new();
    for (index, columns) in *indexes {
        let Some(files) = files_of(*index) else {
            continue;
        };
        let layouts: Vec<ColumnLayout> = columns.iter().map(|(_, layout)| *layout).collect();
        each_entry_in(cluster, files, &layouts, &mut |tid, keys| {
            if is_lost(tid) {
                let row = rows.entry(tid).or_default();
                let found = columns.iter().zip(0..);
                row.extend(found.filter_map(|((name, layout), at)| {
                    Some((*name, value(keys.bytes(at), *layout)?))
                }));
            }
        });
    }
    let mut rows: Vec<LostKeys> = rows.into_values().collect();
    rows.sort();
    rows.dedup();
    rows
}

/// Without its header, and without the zero that ends it.
fn value(bytes: &[u8], layout: ColumnLayout) -> Option<Vec<u8>> {
    match layout.attlen {
        -1 => varlena::parse(bytes).ok()?.0.as_it_is().map(<[u8]>::to_vec),
        -2 => bytes.split(|byte| *byte == 0).next().map(<[u8]>::to_vec),
        _ => (!bytes.is_empty()).then(|| bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_catalog_and_an_index_have_one_place_each() {
        let catalogs: BTreeSet<Oid> = INDEXES.iter().map(|(catalog, _)| *catalog).collect();
        assert_eq!(catalogs.len(), INDEXES.len());
        let indexes = || INDEXES.iter().flat_map(|(_, indexes)| *indexes);
        let numbers: BTreeSet<Oid> = indexes().map(|(index, _)| *index).collect();
        assert_eq!(numbers.len(), indexes().count());
    }
}
