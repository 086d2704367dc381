//! Rows of `pg_extension` that are lost, as its two indexes name them, or the library of their
//! functions. Members of one that nothing names are written as if a user had made them.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_EXTENSION, PG_NAMESPACE, PG_PROC, PG_TYPE};
use pgclinic_model::{noun_of, plural, verb_of};

use super::rebuilt_rows::Values;
use super::siblings::Gap;
use super::{Catalogs, named_some};

/// How a function names the library of its extension.
const LIBRARY: &str = "$libdir/";
/// Extensions whose libraries are called otherwise.
const NAMES: [(&str, &str); 4] = [
    ("_int", "intarray"),
    ("pgxml", "xml2"),
    ("rtpostgis", "postgis_raster"),
    ("pgautoinc", "autoinc"),
];

impl Catalogs<'_> {
    /// Puts them among the rows that are there.
    pub(super) fn add_rebuilt_extensions(&mut self, gaps: &[Gap]) {
        if !gaps.iter().any(|gap| gap.name == "pg_extension") {
            return;
        }
        let members = self.members();
        let named = self.lost_rows("pg_extension");
        let mut names: BTreeMap<Oid, String> =
            named.map(|row| (row.id(), row.name("extname"))).collect();
        // A dropped one has no members; where nobody knows them it is made all the same.
        if !self.lost.contains_key("pg_depend") {
            names.retain(|oid, _| members.contains_key(oid));
        }
        let is_lost = |oid: &&Oid| self.row("pg_extension", **oid).is_none();
        let lost: BTreeSet<Oid> = members.keys().filter(is_lost).copied().collect();
        let lost: BTreeSet<Oid> = lost.into_iter().chain(names.keys().copied()).collect();
        let (mut rows, mut found, mut nameless) = (Vec::new(), Vec::new(), 0);
        for oid in lost {
            let own = members.get(&oid).map_or(&[][..], Vec::as_slice);
            let name = names.get(&oid).filter(|name| !name.is_empty()).cloned();
            match name.or_else(|| self.name_by_library(own)) {
                Some(name) => {
                    rows.push(self.values_of_extension(oid, &name, own));
                    found.push(name);
                }
                None => nameless += 1,
            }
        }
        self.add_rows("pg_extension", &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_extension: the {noun} of {names} {are} put together from indexes and other catalogs: versions, and which of their rows are a user's, are lost",
                noun = noun_of(rows.len() as u64, "row"),
                names = named_some(&found),
                are = verb_of(rows.len(), "are"),
            ));
        }
        if nameless > 0 {
            self.troubles.push(format!(
                "pg_extension: {extensions} {have} members and no name: what belongs to them is written as if a user had made it",
                extensions = plural(nameless, "extension"),
                have = verb_of(nameless, "have"),
            ));
        }
    }

    /// Members by extension: catalog and OID.
    fn members(&self) -> BTreeMap<Oid, Vec<(Oid, Oid)>> {
        let mut members: BTreeMap<Oid, Vec<(Oid, Oid)>> = BTreeMap::new();
        let depends = self.table("pg_depend").iter();
        let depends = depends
            .filter(|row| row.oid("refclassid") == PG_EXTENSION && row.letter("deptype") == 'e');
        for row in depends {
            let own = members.entry(row.oid("refobjid")).or_default();
            own.push((row.oid("classid"), row.oid("objid")));
        }
        members
    }

    /// The library that most of its functions are in.
    fn name_by_library(&self, members: &[(Oid, Oid)]) -> Option<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let functions = members.iter().filter(|member| member.0 == PG_PROC);
        for library in functions.filter_map(|member| self.library_of(member.1)) {
            *counts.entry(library).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(library, _)| extension_of_library(&library))
    }

    /// `hstore` of a function in `$libdir/hstore`.
    pub(super) fn library_of(&self, function: Oid) -> Option<String> {
        let row = self.row("pg_proc", function)?;
        let library = row.text("probin")?;
        library.strip_prefix(LIBRARY).map(str::to_owned)
    }

    fn values_of_extension(&self, oid: Oid, name: &str, members: &[(Oid, Oid)]) -> Values {
        let depends = self.rows("pg_depend", "objid", oid).into_iter();
        let mut schemas = depends.filter(|row| {
            (row.oid("classid"), row.oid("refclassid")) == (PG_EXTENSION, PG_NAMESPACE)
        });
        let of_member = |(class, oid): &(Oid, Oid)| match *class {
            PG_PROC => Some(self.row("pg_proc", *oid)?.oid("pronamespace")),
            PG_TYPE => Some(self.row("pg_type", *oid)?.oid("typnamespace")),
            _ => None,
        };
        let schema = schemas.next().map(|row| row.oid("refobjid"));
        let schema = schema.or_else(|| members.iter().find_map(of_member));
        let owner = self.owner_of(PG_EXTENSION, oid);
        vec![
            ("oid", oid.to_le_bytes().into()),
            ("extname", self.words.bytes(name).unwrap_or_default()),
            ("extowner", owner.to_le_bytes().into()),
            ("extnamespace", schema.unwrap_or(0).to_le_bytes().into()),
        ]
    }
}

/// `postgis` of `postgis-3`, `timescaledb` of `timescaledb-2.11.0`.
pub(super) fn extension_of_library(library: &str) -> String {
    let is_version =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('/');
    let plain = match library.rsplit_once('-') {
        Some((name, version)) if is_version(version) => name,
        _ => library,
    };
    let known = NAMES.iter().find(|(known, _)| *known == plain);
    known.map_or(plain, |(_, name)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_is_called_as_its_library_without_a_version() {
        for (library, name) in [
            ("hstore", "hstore"),
            ("uuid-ossp", "uuid-ossp"),
            ("postgis-3", "postgis"),
            ("timescaledb-2.11.0", "timescaledb"),
            ("_int", "intarray"),
        ] {
            assert_eq!(extension_of_library(library), name);
        }
    }
}
