//! Mapped catalogs that were written anew, and under which numbers: by the columns of their rows,
//! and by their indexes, whose every entry has to lead to a row with its key.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_check::{CheckOptions, check_cluster};
use pgclinic_cluster::{Cluster, Comparison, DatabaseDirectory, ForkFiles, HeapScan};
use pgclinic_format::{ColumnLayout, Fork, Oid};
use pgclinic_model::{Level, Selection, Severity, plural, verb_of};
use pgclinic_spill::MemoryPlan;

use super::agreeing_entries::RowKeys;
use super::relation_maps::{Mapped, draft_of, map_of};
use super::{StartOptions, with_drafts};
use crate::error::Result;

/// A home whose map is lost, with what its map must hold.
pub(super) struct Rewritten<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) home: &'a DatabaseDirectory,
    pub(super) catalogs: &'a [Mapped],
    /// Numbers of its files, with the bytes of the first segment.
    pub(super) files: &'a BTreeMap<Oid, u64>,
    pub(super) options: &'a StartOptions<'a>,
}

/// The only file that can be the table's is its own.
fn take_only(
    table: &Mapped,
    numbers: &[Oid],
    free: &mut BTreeSet<Oid>,
    map: &mut BTreeMap<Oid, Oid>,
) -> std::result::Result<(), String> {
    let [number] = numbers else {
        return Err(format!(
            "the rows of {} are those of {}",
            match numbers {
                [] => "no file".to_owned(),
                several => plural(several.len(), "file"),
            },
            table.oid
        ));
    };
    free.remove(number);
    map.insert(table.oid, *number);
    Ok(())
}

impl Rewritten<'_> {
    /// The file of each catalog; why not, where evidence leaves a choice, or a file belongs to
    /// none.
    pub(super) fn map(&self) -> Result<std::result::Result<BTreeMap<Oid, Oid>, String>> {
        let (moved, born): (Vec<&Mapped>, Vec<&Mapped>) = {
            let all = self.catalogs.iter();
            all.partition(|own| own.lacks_its_file(self.files))
        };
        let mut map: BTreeMap<Oid, Oid> = born.iter().map(|own| (own.oid, own.oid)).collect();
        let mut free: BTreeSet<Oid> = self.files.keys().copied().collect();
        self.catalogs.iter().for_each(|own| {
            free.remove(&own.oid);
        });
        let (indexes, tables): (Vec<&Mapped>, Vec<&Mapped>) =
            moved.into_iter().partition(|own| own.table.is_some());
        // TOAST tables have the same columns: those that pg_class names are left first.
        let (toast, tables): (Vec<&Mapped>, Vec<&Mapped>) =
            tables.into_iter().partition(|own| own.owner.is_some());
        for table in tables {
            let numbers = self.tables_like(table, &free);
            if let Err(why) = take_only(table, &numbers, &mut free, &mut map) {
                return Ok(Err(why));
            }
        }
        self.leave_relations(&map, &mut free)?;
        for table in toast {
            let numbers = self.toast_tables_of(table, &map, &free)?;
            if let Err(why) = take_only(table, &numbers, &mut free, &mut map) {
                return Ok(Err(why));
            }
        }
        if free.len() != indexes.len() {
            let why = format!(
                "{} {} left for {}",
                plural(free.len(), "file"),
                verb_of(free.len(), "are"),
                plural(indexes.len(), "index")
            );
            return Ok(Err(why));
        }
        for index in indexes {
            let Some(number) = self.agreeing_index(index, &map, &free) else {
                let why = format!("no file, or several, can be the index {}", index.oid);
                return Ok(Err(why));
            };
            free.remove(&number);
            map.insert(index.oid, number);
        }
        let all: Vec<Oid> = map.values().copied().collect();
        if !self.is_of_one_moment() || self.is_sound(&map, &all)? {
            return Ok(Ok(map));
        }
        Ok(Err("the check finds damage with every map".into()))
    }

    /// Files whose rows have its columns. Of files without bytes any will do.
    fn tables_like(&self, table: &Mapped, free: &BTreeSet<Oid>) -> Vec<Oid> {
        let Some(layouts) = table.layouts.as_deref() else {
            return Vec::new();
        };
        let is_empty = |number: &&Oid| self.files.get(number) == Some(&0);
        let with_rows = free.iter().filter(|number| !is_empty(number));
        let fits: Vec<Oid> = with_rows
            .filter(|number| self.has_rows_of(**number, layouts))
            .copied()
            .collect();
        if fits.is_empty() && table.may_be_empty {
            return Vec::from_iter(free.iter().find(is_empty).copied());
        }
        fits
    }

    /// Of several files those in which all values of the table are that the TOAST table is of.
    fn toast_tables_of(
        &self,
        toast: &Mapped,
        map: &BTreeMap<Oid, Oid>,
        free: &BTreeSet<Oid>,
    ) -> Result<Vec<Oid>> {
        let like = self.tables_like(toast, free);
        let owner = toast.owner.and_then(|owner| map.get(&owner)).copied();
        let is_checked = like.len() > 1 && self.is_of_one_moment();
        let Some(owner) = owner.filter(|_| is_checked) else {
            return Ok(like);
        };
        let mut sound = Vec::new();
        for number in like {
            let mut tried = map.clone();
            tried.insert(toast.oid, number);
            if self.is_sound(&tried, &[owner])? {
                sound.push(number);
            }
        }
        Ok(sound)
    }

    fn has_rows_of(&self, number: Oid, layouts: &[ColumnLayout]) -> bool {
        let Some(files) = self.main_fork(number) else {
            return false;
        };
        let (mut rows, mut others) = (0u64, 0u64);
        let mut scan = HeapScan::new(self.cluster, &files, layouts);
        scan.each_row(|row| {
            let count = usize::from(row.tuple.attribute_count());
            let is_own = count == layouts.len();
            rows += u64::from(is_own);
            others += u64::from(!is_own);
        });
        scan.is_whole() && rows > 0 && others == 0
    }

    /// What `pg_class` of a database names is no mapped catalog's.
    fn leave_relations(&self, map: &BTreeMap<Oid, Oid>, free: &mut BTreeSet<Oid>) -> Result<()> {
        if self.home.database == 0 {
            return Ok(());
        }
        let Some(cluster) = self.with(map)? else {
            return Ok(());
        };
        let catalog = cluster.catalog(self.home.database);
        free.retain(|number| catalog.by_file(self.home.tablespace, *number).is_none());
        Ok(())
    }

    /// What indexes have was written to disk with what their tables have: of a crash the tables are
    /// those after recovery, and the indexes are not.
    fn is_of_one_moment(&self) -> bool {
        self.cluster.may_compare(Comparison::ForksOfRelation)
    }

    fn main_fork(&self, number: Oid) -> Option<ForkFiles> {
        let forks = self.cluster.files(self.home).ok()?;
        let mut forks = forks.into_iter();
        forks.find(|own| own.filenode == number && own.fork == Fork::Main)
    }

    /// The only file whose entries name rows of the table that have their keys.
    fn agreeing_index(
        &self,
        index: &Mapped,
        map: &BTreeMap<Oid, Oid>,
        free: &BTreeSet<Oid>,
    ) -> Option<Oid> {
        let oid = index.table?;
        let table = self.catalogs.iter().find(|own| own.oid == oid)?;
        let files = self.main_fork(*map.get(&oid)?)?;
        let (columns, own) = (table.layouts.as_deref()?, index.layouts.as_deref()?);
        let keys = RowKeys::read(self.cluster, &files, columns, &index.keys);
        let is_fit = |number: &&Oid| {
            let files = self.main_fork(**number);
            files.is_some_and(|files| keys.fit(self.cluster, &files, own))
        };
        let mut fits = free.iter().filter(is_fit);
        fits.next().copied().filter(|_| fits.next().is_none())
    }

    /// The full check finds no damage in these files with this map.
    fn is_sound(&self, map: &BTreeMap<Oid, Oid>, files: &[Oid]) -> Result<bool> {
        let Some(cluster) = self.with(map)? else {
            return Ok(false);
        };
        let options = CheckOptions {
            level: Level::Full,
            threads: self.options.threads,
            evidence: 0,
            selection: Selection {
                filenodes: files.to_vec(),
                ..Selection::default()
            },
            spec: String::new(),
            memory: MemoryPlan::default(),
            spill_folder: self.options.temp_folder.to_path_buf(),
            since: None,
        };
        let document = check_cluster(&cluster, &options, self.options.progress);
        let names = files.iter();
        let paths: Vec<String> = names
            .map(|number| format!("{}/{number}", self.home.folder))
            .collect();
        let is_here = |path: &str| {
            let first = path.split_once(['.', '_']).map_or(path, |(first, _)| first);
            paths.iter().any(|own| own == first)
        };
        let mut findings = document.findings.iter();
        let is_damaged =
            findings.any(|own| own.severity == Severity::Damage && is_here(&own.place.path));
        // Of files without bytes there is nothing to see.
        let with_bytes = files.iter();
        let with_bytes = with_bytes.filter(|number| self.files.get(number) != Some(&0));
        let coverage = &document.coverage;
        let is_seen = coverage.relations >= with_bytes.count() as u64
            && coverage.bytes_unreadable == 0
            && coverage.not_checked.iter().all(|gap| gap.inherent);
        Ok(!is_damaged && is_seen && document.findings_omitted == 0)
    }

    fn with(&self, map: &BTreeMap<Oid, Oid>) -> Result<Option<Cluster>> {
        let pairs: Vec<(Oid, Oid)> = map.iter().map(|(oid, number)| (*oid, *number)).collect();
        let Some(bytes) = map_of(self.cluster.layout.relation_map_bytes, &pairs) else {
            return Ok(None);
        };
        let path = format!("{}/pg_filenode.map", self.home.folder);
        let draft = draft_of(self.cluster, &path, bytes);
        with_drafts(self.cluster, std::slice::from_ref(&draft))
    }
}
