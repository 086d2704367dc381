//! Relations that other catalogs mention and `pg_class` and its indexes do not know, among those of
//! a catalog.

use std::collections::{BTreeMap, HashSet};

use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::{plural, verb_of};

use crate::attached_columns::{attach_toast_owners, is_gapless, sort_columns};
use crate::catalog::{Catalog, Reader};
use crate::comparison::Comparison;
use crate::file_name::fork_path;
use crate::lost_rows::{attach_toast_of_lost, settle_lost};
use crate::relation::Relation;
use crate::row_places::RowPlaces;
use crate::witness::{CATALOGS_WITH_MENTIONS, Gap, LostRelation, Mentions, lost_columns, rebuilt};

/// Tablespace and number of a file.
type FileOfRelation = (Oid, Oid);

impl Reader<'_> {
    /// Puts relations that are mentioned often enough among the others, and among those whose rows
    /// are lost.
    pub(crate) fn find_mentioned_relations(
        &mut self,
        catalog: &mut Catalog,
        attributes: Option<&RowPlaces>,
    ) {
        if !self.may_believe_mentions() {
            return;
        }
        let lost = self.mentioned(catalog);
        if lost.is_empty() {
            return;
        }
        self.trouble(
            "pg_class",
            format!(
                "{rows} of it {are} lost, as other catalogs show",
                rows = plural(lost.len(), "row"),
                are = verb_of(lost.len(), "are")
            ),
        );
        let oids: Vec<Oid> = lost.iter().filter_map(|lost| lost.oid).collect();
        for lost in lost {
            let relation = self.rebuilt_with_parts(&lost);
            let entry = relation.map(|relation| (relation.oid, relation));
            catalog.relations.extend(entry);
            catalog.lost_relations.push(lost);
        }
        if let Some(places) = attributes {
            self.find_columns_of_mentioned(catalog, &oids, places);
        }
        attach_toast_of_lost(catalog);
        attach_toast_owners(&mut catalog.relations);
        settle_lost(catalog);
    }

    /// Rows of several catalogs are of one moment, and those that count are known.
    fn may_believe_mentions(&self) -> bool {
        let own = self.cluster.databases.get(&self.home.database);
        let is_half_dropped = own.is_some_and(|database| database.invalid);
        self.unknown_rows == 0
            && !is_half_dropped
            && self.cluster.may_compare(Comparison::FilesWithCatalogs)
    }

    fn mentioned(&mut self, catalog: &Catalog) -> Vec<LostRelation> {
        let relations = &catalog.relations;
        let row_types = catalog.types.relations().map(|(relation, ..)| relation);
        let mut mentions = Mentions::of(relations, &self.rowless, row_types);
        let claimed: HashSet<FileOfRelation> = relations
            .values()
            .map(|relation| (relation.tablespace, relation.filenode))
            .collect();
        // They are not read where nothing is amiss.
        if mentions.is_empty() && !self.has_nameless_file(&claimed) {
            return Vec::new();
        }
        for oid in CATALOGS_WITH_MENTIONS {
            if let Some(relation) = relations.get(&oid) {
                self.rows_of(relation, &mut |names, row| {
                    mentions.read_row(relations, oid, names, &row);
                });
            }
        }
        // One of them may have been dropped.
        if self.unknown_rows > 0 {
            return Vec::new();
        }
        // A row whose name and number are lost may be that of a file that is named here.
        let nameless: HashSet<Oid> = catalog
            .lost_relations
            .iter()
            .filter(|lost| lost.oid.is_none())
            .filter_map(|lost| lost.filenode)
            .collect();
        let lost = mentions.iter().filter(|(oid, _)| !nameless.contains(oid));
        let lost = lost.map(|(oid, by)| self.lost_by_mention(oid, by, &mentions, &claimed));
        lost.filter(|lost| lost.path.is_some() || lost.mentioned_by.len() > 1)
            .collect()
    }

    fn lost_by_mention(
        &self,
        oid: Oid,
        mentioned_by: Vec<&'static str>,
        mentions: &Mentions,
        claimed: &HashSet<FileOfRelation>,
    ) -> LostRelation {
        let file = self.file_of_birth(oid, claimed);
        let (tablespace, path) = file.unzip();
        let name = mentions.names.get(&oid);
        LostRelation {
            oid: Some(oid),
            schema: name.map(|(_, namespace)| self.schema_of(*namespace)),
            name: name.map(|(name, _)| name.clone()),
            filenode: path.as_ref().map(|_| oid),
            tablespace: tablespace.unwrap_or(self.home.tablespace),
            path,
            row: None,
            has_columns: self.rowless.columns.contains_key(&oid),
            mentioned_by,
            is_unread: false,
        }
    }

    fn schema_of(&self, namespace: Oid) -> String {
        let number = namespace.to_string();
        self.schemas.get(&number).cloned().unwrap_or(number)
    }

    /// Its tablespace, and the first segment of the main fork that a relation has until something
    /// rewrites it, where no other has it.
    fn file_of_birth(&self, oid: Oid, claimed: &HashSet<FileOfRelation>) -> Option<(Oid, String)> {
        let homes = self.cluster.homes.iter();
        let mut own = homes.filter(|home| home.database == self.home.database);
        own.find_map(|home| {
            let path = fork_path(&home.folder, oid, Fork::Main, 0);
            let is_free = !claimed.contains(&(home.tablespace, oid));
            let is_there = is_free && self.cluster.source.len(&path).is_ok();
            is_there.then_some((home.tablespace, path))
        })
    }

    fn has_nameless_file(&self, claimed: &HashSet<FileOfRelation>) -> bool {
        let files = self.cluster.files(self.home).unwrap_or_default();
        let mut lasting = files.iter().filter(|files| {
            files.fork == Fork::Main
                && files.temporary.is_none()
                && files.filenode >= FIRST_NORMAL_OID
        });
        lasting.any(|files| !claimed.contains(&(files.home.tablespace, files.filenode)))
    }

    fn rebuilt_with_parts(&mut self, lost: &LostRelation) -> Option<Relation> {
        let oid = lost.oid?;
        let columns = self.rowless.columns.remove(&oid);
        let mut relation = rebuilt(self.cluster, lost, columns.as_deref())?;
        relation.index = self.rowless.indexes.remove(&oid);
        if let Some(mut columns) = columns {
            sort_columns(&mut columns);
            if is_gapless(&columns) {
                relation.take_columns(columns);
            }
        }
        Some(relation)
    }

    /// Entries of the indexes of `pg_attribute` may have outlived the rows.
    fn find_columns_of_mentioned(
        &mut self,
        catalog: &mut Catalog,
        oids: &[Oid],
        places: &RowPlaces,
    ) {
        let relations = oids.iter().filter_map(|oid| catalog.relations.get(oid));
        let without = relations.filter(|relation| relation.columns.is_none());
        let gap = Gap {
            known: &[],
            count: None,
        };
        let gaps: BTreeMap<Oid, Gap<'_>> = without.map(|own| (own.oid, gap)).collect();
        let (lost, _) = lost_columns(self.cluster, self.home, self.words, places, &gaps);
        for (oid, columns) in &lost {
            let last = columns.last().map(|column| column.attnum);
            if let (Some(last), Some(relation)) = (last, catalog.relations.get_mut(oid)) {
                relation.relnatts = last;
            }
        }
        catalog.lost_columns.extend(lost);
    }
}
