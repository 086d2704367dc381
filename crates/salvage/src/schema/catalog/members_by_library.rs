//! Members of extensions where `pg_depend` and its indexes are lost: `CREATE EXTENSION` numbers
//! what it makes one after the other, and its functions name their library.
//!
//! ```text
//! OIDs   │ extension │ types, functions … last one of its library │ operator classes … │ others
//!                    └───────────────────── members ─────────────────────────────────┘
//! ```
//!
//! Tables are never taken for members: those would not be written, and their rows with them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;
use pgclinic_format::oid::{
    PG_CAST, PG_CLASS, PG_EXTENSION, PG_FOREIGN_DATA_WRAPPER, PG_LANGUAGE, PG_NAMESPACE,
    PG_OPCLASS, PG_OPERATOR, PG_OPFAMILY, PG_PROC, PG_TS_CONFIG, PG_TS_DICT, PG_TS_PARSER,
    PG_TS_TEMPLATE, PG_TYPE,
};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{noun_of, verb_of};

use super::rebuilt_extensions::extension_of_library;
use super::rebuilt_rows::Values;
use super::siblings::Gap;
use super::{Catalogs, named_some};

/// Catalogs of what an extension makes, and of what ends its numbers.
const CATALOGS: [(&str, Oid); 15] = [
    ("pg_proc", PG_PROC),
    ("pg_type", PG_TYPE),
    ("pg_operator", PG_OPERATOR),
    ("pg_opclass", PG_OPCLASS),
    ("pg_opfamily", PG_OPFAMILY),
    ("pg_cast", PG_CAST),
    ("pg_foreign_data_wrapper", PG_FOREIGN_DATA_WRAPPER),
    ("pg_language", PG_LANGUAGE),
    ("pg_ts_parser", PG_TS_PARSER),
    ("pg_ts_template", PG_TS_TEMPLATE),
    ("pg_ts_dict", PG_TS_DICT),
    ("pg_ts_config", PG_TS_CONFIG),
    ("pg_class", PG_CLASS),
    ("pg_extension", PG_EXTENSION),
    ("pg_namespace", PG_NAMESPACE),
];
/// Never members here.
const NO_MEMBERS: [Oid; 3] = [PG_CLASS, PG_EXTENSION, PG_NAMESPACE];
/// What scripts make after all functions.
const LATE: [Oid; 9] = [
    PG_OPERATOR,
    PG_OPCLASS,
    PG_OPFAMILY,
    PG_CAST,
    PG_FOREIGN_DATA_WRAPPER,
    PG_TS_PARSER,
    PG_TS_TEMPLATE,
    PG_TS_DICT,
    PG_TS_CONFIG,
];

impl Catalogs<'_> {
    /// Puts what belongs to which extension among the rows of `pg_depend`.
    pub(super) fn add_members_by_library(&mut self, gaps: &[Gap]) {
        if !gaps.iter().any(|gap| gap.name == "pg_depend") {
            return;
        }
        let known = self.table("pg_depend").iter();
        let known = known.filter(|row| row.oid("refclassid") == PG_EXTENSION);
        let known: BTreeSet<Oid> = known.map(|row| row.oid("refobjid")).collect();
        // Where its indexes name none of its rows, some members of each may be lost.
        let is_in_doubt = |oid| !known.contains(&oid) || !self.lost.contains_key("pg_depend");
        let extensions = self.table("pg_extension").iter();
        let extensions: Vec<(Oid, String)> = extensions
            .filter(|row| row.id() >= FIRST_NORMAL_OID && is_in_doubt(row.id()))
            .map(|row| (row.id(), row.name("extname")))
            .collect();
        if extensions.is_empty() {
            return;
        }
        let things = self.things_by_number();
        let ends = self.ends_of_libraries();
        let (mut rows, mut found, mut bare) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (oid, name) in extensions {
            match ends.get(&name).filter(|end| **end > oid) {
                Some(end) => {
                    rows.extend(members(&things, oid, *end));
                    found.push(name);
                }
                None if known.contains(&oid) => {}
                None => drop(bare.insert(oid, name)),
            }
        }
        self.add_rows("pg_depend", &rows);
        if !found.is_empty() {
            self.troubles.push(format!(
                "pg_depend: what belongs to {names} is taken from the numbers of {their} functions",
                names = named_some(&found),
                their = if found.len() == 1 { "its" } else { "their" },
            ));
        }
        if !bare.is_empty() {
            self.forget_extensions(&bare);
        }
    }

    /// What nothing is known to belong to is not made, as its things are a user's own.
    fn forget_extensions(&mut self, bare: &BTreeMap<Oid, String>) {
        if let Some(table) = self.tables.get_mut("pg_extension") {
            table.retain(|row| !bare.contains_key(&row.id()));
            table.key("oid");
        }
        let names: Vec<String> = bare.values().cloned().collect();
        self.troubles.push(format!(
            "pg_depend: nothing says what belongs to the {extensions} {names}: {it} {are} not made, and what {it} made is written as if a user had",
            extensions = noun_of(names.len() as u64, "extension"),
            it = if names.len() == 1 { "it" } else { "they" },
            are = verb_of(names.len(), "are"),
            names = named_some(&names),
        ));
    }

    /// Catalogs by the numbers of their rows, as far as a user or an extension made those.
    fn things_by_number(&self) -> BTreeMap<Oid, Oid> {
        let mut things = BTreeMap::new();
        for (name, class) in CATALOGS {
            let rows = self.table(name).iter().map(|row| row.id());
            let rows = rows.filter(|oid| *oid >= FIRST_NORMAL_OID);
            things.extend(rows.map(|oid| (oid, class)));
        }
        things
    }

    /// The last function of each extension's library.
    fn ends_of_libraries(&self) -> BTreeMap<String, Oid> {
        let mut ends: BTreeMap<String, Oid> = BTreeMap::new();
        let functions = self.table("pg_proc").iter().map(|row| row.id());
        for oid in functions.filter(|oid| *oid >= FIRST_NORMAL_OID) {
            if let Some(library) = self.library_of(oid) {
                let end = ends.entry(extension_of_library(&library)).or_default();
                *end = oid.max(*end);
            }
        }
        ends
    }
}

fn members(things: &BTreeMap<Oid, Oid>, extension: Oid, end: Oid) -> Vec<Values> {
    let after = things.range(extension.saturating_add(1)..);
    let own = after.take_while(|(oid, class)| **oid <= end || LATE.contains(class));
    let own = own.filter(|(_, class)| !NO_MEMBERS.contains(class));
    let number = |value: Oid| value.to_le_bytes().to_vec();
    own.map(|(oid, class)| {
        vec![
            ("classid", number(*class)),
            ("objid", number(*oid)),
            ("objsubid", number(0)),
            ("refclassid", number(PG_EXTENSION)),
            ("refobjid", number(extension)),
            ("refobjsubid", number(0)),
            ("deptype", vec![b'e']),
        ]
    })
    .collect()
}
