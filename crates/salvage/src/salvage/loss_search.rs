//! When the rows are written: who knows of rows that are not among them.

use std::collections::BTreeMap;

use pgclinic_cluster::Catalog;
use pgclinic_format::Oid;
use pgclinic_model::document::{
    INDEX_ENTRIES, INDEX_KEYS, IndexCount, LostBy, NotChecked, TableAccount,
};
use pgclinic_model::{plural, verb_of};

use super::error::SalvageError;
use super::folder::Folder;
use super::foreign_file::ForeignFile;
use super::lost_keys::{Search, is_hurt};
use super::plan::not_salvaged;
use super::toast_values;
use super::witnesses::{Witness, Witnesses};
use crate::shape::database_name;

/// Names that a list of tables gives.
const NAMES_MAX: usize = 5;

const NO_INDEX: &str = "they have no B-tree index with all their rows";
const EARLIER: &str =
    "the write-ahead log was applied to tables alone, and it changes their indexes";

/// Who was asked for which table.
pub(super) type Asked = BTreeMap<Oid, Witness>;

/// The search for rows that a witness knows and the output lacks.
pub(super) struct LossSearch<'a> {
    pub(super) witnesses: Witnesses<'a>,
    pub(super) search: Search<'a>,
    /// Where lists of keys go; without one they are counted alone.
    pub(super) folder: Option<&'a Folder>,
}

impl LossSearch<'_> {
    /// Puts into the accounts what is lost of the tables of one database; says what could not be
    /// asked.
    pub(super) fn of_tables(
        &self,
        tables: &mut [TableAccount],
    ) -> Result<Vec<NotChecked>, SalvageError> {
        let asked = self.ask(tables);
        self.count(tables, &asked)
    }

    /// Puts into the accounts which blocks are lost, as far as a witness knows it.
    pub(super) fn ask(&self, tables: &mut [TableAccount]) -> Asked {
        // Of several runs the accounts come in another order, and say the same.
        tables.sort_by_cached_key(TableAccount::names);
        for table in tables.iter_mut() {
            table.settle();
        }
        let asked = self.witnesses.ask(tables);
        let mut by_table = Asked::new();
        for (table, witness) in tables.iter_mut().zip(asked) {
            self.note(table, &witness);
            by_table.insert(table.oid, witness);
        }
        self.witnesses.note_owners(tables);
        by_table
    }

    /// Puts into the accounts how many rows are lost; says what could not be asked.
    pub(super) fn count(
        &self,
        tables: &mut [TableAccount],
        asked: &Asked,
    ) -> Result<Vec<NotChecked>, SalvageError> {
        let (mut gaps, mut absent, mut earlier) = (Vec::new(), Vec::new(), Vec::new());
        for table in tables.iter_mut() {
            if self.witnesses.progress.is_interrupted() {
                break;
            }
            let witness = asked.get(&table.oid).unwrap_or(&Witness::Unasked);
            self.count_of(table, witness)?;
            gaps.extend(self.gap_of(table, witness));
            let is_open = matches!(
                witness,
                Witness::Absent | Witness::Broken(_) | Witness::Partial(_)
            );
            // Rows of the other blocks point to values too.
            if is_open && self.witnesses.takes_all_blocks() {
                let (cluster, catalog) = (self.witnesses.cluster, self.witnesses.catalog);
                gaps.extend(toast_values::count(table, cluster, catalog));
            }
            match witness {
                Witness::Absent => absent.push(&*table),
                Witness::Earlier(None) => earlier.push(&*table),
                Witness::Whole(_)
                | Witness::Broken(_)
                | Witness::Partial(_)
                | Witness::Foreign(..)
                | Witness::Earlier(Some(_))
                | Witness::Unasked => {}
            }
        }
        let catalog = self.witnesses.catalog;
        gaps.extend(self.wal_gap(&absent));
        gaps.extend(without_witness(catalog, &absent, NO_INDEX));
        gaps.extend(without_witness(catalog, &earlier, EARLIER));
        Ok(gaps)
    }

    /// Tables for which WAL alone would speak, where it speaks of more than can be kept.
    fn wal_gap(&self, tables: &[&TableAccount]) -> Option<NotChecked> {
        let is_open = !tables.is_empty() && self.witnesses.as_it_lies.older_wal_overflows();
        is_open.then(|| {
            let what = format!(
                "whether pages of {} of database {} were emptied or truncated",
                plural(tables.len() as u64, "table"),
                database_name(self.witnesses.catalog)
            );
            let why = "only WAL from before the last checkpoint knows them, and it speaks of more blocks than can be remembered: salvage a copy whose pg_wal keeps the newest of those files alone";
            not_salvaged(&what, why)
        })
    }

    fn note(&self, table: &mut TableAccount, witness: &Witness) {
        let damaged_pages = table.damaged_pages;
        self.note_lost(table, witness);
        // What is said to be missing of a file that could not be opened may stand in it.
        if table.out_of_reach {
            table.pages_not_read += table.damaged_pages - damaged_pages;
            table.damaged_pages = damaged_pages;
        }
    }

    fn note_lost(&self, table: &mut TableAccount, witness: &Witness) {
        self.witnesses.note_gone(table, witness);
        self.witnesses.note_outdated(table);
        match witness {
            Witness::Unasked | Witness::Earlier(_) => {}
            Witness::Absent => {
                if !self.witnesses.note_marked(table) {
                    self.witnesses.note_logged(table);
                }
            }
            Witness::Whole(_) | Witness::Broken(_) | Witness::Partial(_) | Witness::Foreign(..) => {
                self.witnesses.note(witness, table);
            }
        }
    }

    fn count_of(&self, table: &mut TableAccount, witness: &Witness) -> Result<(), SalvageError> {
        let keys = match witness {
            // An index of other rows has other keys, and of more rows than are kept by place
            // nobody knows all.
            Witness::Foreign(..) => None,
            _ if is_hurt(table) => self.search.of_table(self.folder, table)?,
            _ => None,
        };
        let keys = keys.filter(|_| !overflows(witness));
        let index = self.index_count(table, witness, keys);
        table.pages.is_open_ended |= !self.witnesses.knows_end(table);
        table.count_losses(index, self.witnesses.estimate(table));
        if let Witness::Broken(statement) = witness
            && statement.doubtful > 0
        {
            bound(table, statement.doubtful);
        }
        Ok(())
    }

    /// What the indexes say of how many rows are lost.
    fn index_count(
        &self,
        table: &TableAccount,
        witness: &Witness,
        keys: Option<u64>,
    ) -> Option<IndexCount> {
        let (statement, is_whole) = match witness {
            // It was emptied with its table, whose visibility map says that rows stood there.
            Witness::Whole(own) if own.entries == 0 && table.pages.unread > 0 => return None,
            Witness::Whole(statement) => (statement, true),
            Witness::Broken(statement) => (statement, false),
            Witness::Partial(statement) if statement.counts_items() => {
                return Some(IndexCount {
                    witness: INDEX_ENTRIES,
                    rows: statement.lost,
                    exact: false,
                });
            }
            Witness::Foreign(statement, ForeignFile::OfTable(_)) => {
                return Some(IndexCount {
                    witness: INDEX_ENTRIES,
                    rows: statement.entries,
                    exact: false,
                });
            }
            Witness::Partial(_)
            | Witness::Foreign(..)
            | Witness::Absent
            | Witness::Earlier(_)
            | Witness::Unasked => return None,
        };
        let (witness, rows) = match keys {
            Some(rows) => (INDEX_KEYS, rows),
            None => (INDEX_ENTRIES, statement.rows(table)),
        };
        // What is left of a broken index counts at least so many, and nothing where it counts none.
        (is_whole || rows > 0).then(|| IndexCount {
            witness,
            rows,
            exact: is_whole && rows > 0 && self.witnesses.is_exact(statement, table),
        })
    }

    fn gap_of(&self, table: &TableAccount, witness: &Witness) -> Option<NotChecked> {
        let name = format!(
            "table {}.{} of database {}",
            table.schema, table.table, table.database
        );
        if let Some((what, why)) = doubt_of(witness, &name, table.rows.live) {
            return Some(not_salvaged(&what, &why));
        }
        // Recovery may be about to cut the table.
        let is_comparable = match witness {
            Witness::Absent | Witness::Whole(_) => true,
            Witness::Earlier(_) => self.witnesses.keeps_length(table),
            _ => false,
        };
        let is_told = matches!(witness, Witness::Whole(_));
        is_comparable
            .then(|| self.hint_of(table, &name, is_told))
            .flatten()
    }

    /// What `pg_class` hints at where nothing else tells of rows: that it counts more pages than
    /// there are, or knows of a visibility map that is gone. An index that agrees with the file may
    /// be as old a copy.
    fn hint_of(&self, table: &TableAccount, name: &str, has_index: bool) -> Option<NotChecked> {
        let short = self.witnesses.pages_short(table);
        // The map has said it already.
        let is_of_the_end = |there: u64| {
            let mut places = table.places.iter();
            places.any(|place| u64::from(place.block) >= there)
        };
        let short = short.filter(|(_, there)| table.pages.unread == 0 && !is_of_the_end(*there));
        let has_lost_map = self.witnesses.has_lost_map(table);
        let marked =
            "by pg_class there was a visibility map, which would show it, and it is missing";
        let what = match short {
            Some(_) => format!("the end of {name}"),
            None => format!("whether rows of {name} are missing"),
        };
        let why = match short {
            Some((counted, there)) => format!(
                "pg_class counts {counted} and its files have {there}, and {index}",
                counted = plural(counted, "page"),
                index = if has_index {
                    "its indexes, which end where it does, may be as old"
                } else {
                    "no index with all rows tells"
                }
            ),
            None if has_index => return None,
            None if has_lost_map && table.empty_pages > 0 => format!(
                "{} {} all zeros, and no index with all rows shows whether they held some",
                plural(table.empty_pages, "page"),
                verb_of(table.empty_pages, "are")
            ),
            None => return None,
        };
        let shows = "a backup or a standby shows what stood there";
        Some(if has_lost_map {
            not_salvaged(&what, &format!("{why}; {marked}: {shows}"))
        } else if self.witnesses.cluster.counts_own_pages() {
            not_salvaged(&what, &format!("{why}: {shows}"))
        } else {
            NotChecked {
                inherent: true,
                ..not_salvaged(&what, &why)
            }
        })
    }
}

/// No index tells which rows of the table are missing, and some may be.
pub(super) fn needs_other_keys(table: &TableAccount, asked: &Asked) -> bool {
    match asked.get(&table.oid) {
        Some(Witness::Broken(_) | Witness::Partial(_)) => true,
        Some(Witness::Earlier(_)) => is_hurt(table),
        _ => false,
    }
}

/// More rows lack their line pointers than are kept by place.
fn overflows(witness: &Witness) -> bool {
    match witness {
        Witness::Whole(own) | Witness::Broken(own) => own.lost > own.lost_items.len() as u64,
        _ => false,
    }
}

/// What a witness leaves open of a table, and why.
fn doubt_of(witness: &Witness, name: &str, live: u64) -> Option<(String, String)> {
    let why = match witness {
        Witness::Broken(own) if own.is_earlier => format!(
            "recovery would change {} too, so that nobody tells whether more rows are missing",
            own.index
        ),
        Witness::Broken(own) | Witness::Partial(own) if own.outdated > 0 => format!(
            "{} leads to {} that the table does not have, and the pages of the table were written later than those of the index: the index may be older than its table, or rows are missing",
            own.index,
            plural(own.outdated, "row")
        ),
        Witness::Broken(own) if own.is_short => format!(
            "{} can be read whole, and its {} entries do not fit the {live} rows that are there: it is damaged, or the file of one of the two is another relation's",
            own.index, own.entries
        ),
        Witness::Broken(own) => format!(
            "no index that has all its rows can be read whole ({} is one), so that nobody tells which rows are missing",
            own.index
        ),
        Witness::Foreign(own, ForeignFile::OfIndex(other)) => format!(
            "the file of {} is a copy of that of {other}, so that no index shows which rows are missing",
            own.index
        ),
        Witness::Foreign(own, ForeignFile::Unknown) => format!(
            "entries of {} have other keys than the rows that they lead to: the file of the index, or that of the table, is another relation's",
            own.index
        ),
        Witness::Partial(own) if own.is_hurt => format!(
            "no B-tree index has all of them, and {} cannot be read whole, so that nobody knows which rows are missing",
            own.index
        ),
        Witness::Earlier(Some(block)) => {
            let what = format!("whether rows of {name} are missing");
            let why = format!(
                "block {block} is all zeros, and recovery changes the indexes that would name its rows: a server that recovers a copy of the cluster settles it, and the copy can be salvaged then"
            );
            return Some((what, why));
        }
        Witness::Whole(_)
        | Witness::Partial(_)
        | Witness::Foreign(_, ForeignFile::OfTable(_))
        | Witness::Earlier(None)
        | Witness::Absent
        | Witness::Unasked => return None,
    };
    Some((format!("rows of {name} beside its indexes"), why))
}

/// What an index counts is the least where lost pages were filled again with other rows, or where
/// some of its leaves may be torn.
fn bound(table: &mut TableAccount, more: u64) {
    let of_index = |by: &&mut LostBy| by.witness == INDEX_KEYS || by.witness == INDEX_ENTRIES;
    for by in table.lost_by.iter_mut().filter(of_index) {
        by.at_most = Some(by.rows.saturating_add(more));
    }
}

/// Tables whose rows nothing counts: by nature, so that nothing can be done about it.
fn without_witness(
    catalog: &Catalog,
    tables: &[&TableAccount],
    reason: &str,
) -> Option<NotChecked> {
    let (first, rest) = tables.split_at_checked(NAMES_MAX).unwrap_or((tables, &[]));
    (!first.is_empty()).then_some(())?;
    let names = first.iter();
    let names: Vec<String> = names
        .map(|table| format!("{}.{}", table.schema, table.table))
        .collect();
    let more = match rest.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let what = format!(
        "whether rows are missing without a trace, of {} of database {}",
        plural(tables.len() as u64, "table"),
        database_name(catalog)
    );
    let why = format!(
        "{reason}, so that nothing tells of pages that were emptied or truncated: {}{more}",
        names.join(", ")
    );
    Some(NotChecked {
        inherent: true,
        ..not_salvaged(&what, &why)
    })
}
