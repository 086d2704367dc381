//! Rows that a running server did not give, though indexes and visibility maps know them.
//!
//! A server takes a page of zeros for one without rows, and the end of a file for the end of its
//! table. So what a salvage of its data directory asks of the files is asked here too, of the files
//! as the server lets them be read. Its own part is to look at two bytes of each page, and to say
//! of which pages its memory has rows; the tables stay locked as they were read, so that nobody
//! truncates or rewrites them meanwhile.
//!
//! No index is scanned by the server: where an entry leads to a page of zeros it marks the entry as
//! dead (`index_fetch_heap` in `src/backend/access/index/indexam.c`), and the witness is gone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pgclinic_cluster::ForkFiles;
use pgclinic_format::{BlockNo, Oid};
use pgclinic_model::document::{Estimate, NotChecked, SalvageReport, TableAccount};
use pgclinic_model::plural;

use super::Live;
use super::files::Files;
use super::server_source::ServerSource;
use super::snapshots::Reader;
use super::tables::LiveTable;
use crate::salvage::running_losses::{
    RunningLossSearch, RunningLosses, ServerAnswers, VacantPage, unasked,
};
use crate::salvage::{SalvageError, not_salvaged};

/// Blocks of which the server is asked at once.
const RANGE_BLOCKS: BlockNo = 1024;

/// The server, asked about single pages.
struct Answers<'r, 'a> {
    live: &'r Live<'a>,
    tables: BTreeMap<Oid, &'r LiveTable>,
    source: Arc<ServerSource>,
    page_bytes: u32,
    segment_blocks: u64,
    reader: RefCell<Option<Reader<'a>>>,
}

impl ServerAnswers for Answers<'_, '_> {
    fn vacant_pages(&self, files: &ForkFiles) -> Result<Vec<(BlockNo, VacantPage)>, String> {
        let mut vacant = Vec::new();
        for segment in &files.segments {
            let first = u64::from(segment.number) * self.segment_blocks;
            let blocks = segment.len / u64::from(self.page_bytes);
            let path = files.path(segment.number);
            let found = self.source.vacant_pages(&path, blocks, self.page_bytes);
            let found = found.map_err(|error| error.to_string())?;
            let block = |within: u64| BlockNo::try_from(first + within).ok();
            let own = found.into_iter();
            vacant.extend(own.filter_map(|(within, page)| Some((block(within)?, page))));
        }
        Ok(vacant)
    }

    fn blocks_with_rows(&self, table: Oid, blocks: &[BlockNo]) -> BTreeSet<BlockNo> {
        let Some(table) = self.tables.get(&table) else {
            return BTreeSet::new();
        };
        let mut kept = self.reader.borrow_mut();
        let mut found = BTreeSet::new();
        let mut rest = blocks;
        while let Some(first) = rest.first().copied() {
            let end = first.saturating_add(RANGE_BLOCKS);
            let (range, behind) = rest.split_at(rest.partition_point(|block| *block < end));
            let last = range.last().copied().unwrap_or(first);
            rest = behind;
            let sql = table.blocks_with_rows(first, last.saturating_add(1), self.live.way);
            // Of what the server does not say nothing is taken back.
            let rows = self.live.ask(&mut kept, &|reader| reader.query(&sql));
            let rows = rows.ok().and_then(Result::ok).unwrap_or_default();
            let numbers = rows.iter().flatten().flatten();
            found.extend(numbers.filter_map(|block| block.parse::<BlockNo>().ok()));
        }
        found
    }

    fn wait(&self) {
        let mut kept = self.reader.borrow_mut();
        // Where the server is gone the next question says so.
        let _ = self.live.ask(&mut kept, &|reader| reader.query(PAUSE));
    }
}

/// A pause that takes no clock of our own; `WalWriterDelay` is as long.
const PAUSE: &str = "SELECT pg_sleep(0.2)";

/// Puts into the accounts what witnesses in the files know of rows that the server did not give,
/// and counts what is lost; says what could not be asked.
pub(super) fn ask(
    live: &Live<'_>,
    tables: Vec<TableAccount>,
    account: &mut SalvageReport,
) -> Result<Vec<TableAccount>, SalvageError> {
    let (known, counted): (Vec<_>, Vec<_>) =
        tables.into_iter().partition(|table| !table.is_counted);
    let found = if known.is_empty() || live.progress.is_interrupted() {
        RunningLosses {
            tables: known,
            gaps: Vec::new(),
        }
    } else {
        asked(live, &[], known)?
    };
    account.not_salvaged.extend(found.gaps);
    account.not_salvaged.extend(unlogged(live));
    let mut tables = found.tables;
    for table in &mut tables {
        if !table.is_counted {
            table.count_losses(None, estimate(live, table.oid));
        }
    }
    tables.extend(counted);
    Ok(tables)
}

/// The same of the two relations that large objects stand in.
pub(super) fn ask_of_objects(
    live: &Live<'_>,
    relations: &[LiveTable],
    accounts: Vec<TableAccount>,
) -> Result<RunningLosses, SalvageError> {
    if live.progress.is_interrupted() {
        return Ok(RunningLosses::default());
    }
    asked(live, relations, accounts)
}

fn asked(
    live: &Live<'_>,
    more: &[LiveTable],
    tables: Vec<TableAccount>,
) -> Result<RunningLosses, SalvageError> {
    let opened = live.files.as_they_are();
    let opened = opened.and_then(|(cluster, source)| {
        let database = Files::database(&source)?;
        Ok((cluster, source, database))
    });
    let (cluster, source, database) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            let witnessed = live.tables.iter().filter(|(table, _)| table.has_witnesses);
            let count = if more.is_empty() {
                witnessed.count()
            } else {
                // Both have an index with all of their rows.
                tables.iter().filter(|own| own.rows.written > 0).count()
            };
            let gap = unasked(&live.target.database, count, &why);
            return Ok(RunningLosses {
                tables,
                gaps: gap.into_iter().collect(),
            });
        }
    };
    let own = live.tables.iter().map(|(own, _)| own);
    let answers = Answers {
        live,
        tables: own.chain(more).map(|own| (own.oid, own)).collect(),
        source,
        page_bytes: cluster.build.block_size,
        segment_blocks: cluster.build.segment_blocks(),
        reader: RefCell::new(live.spare_reader()),
    };
    let search = RunningLossSearch {
        cluster: &cluster,
        database,
        folder: &live.folder,
        options: live.options,
        progress: live.progress,
        server: &answers,
    };
    search.of_tables(tables)
}

/// What the server says of the size of a table.
fn estimate(live: &Live<'_>, table: Oid) -> Estimate {
    let mut tables = live.tables.iter().map(|(own, _)| own);
    let own = tables.find(|own| own.oid == table);
    own.map_or(Estimate::default(), |own| Estimate {
        pages: u64::from(own.blocks).max(1),
        rows: own.estimate,
        ..Estimate::default()
    })
}

/// No checkpoint writes pages of unlogged tables: nobody can be asked while the server runs.
fn unlogged(live: &Live<'_>) -> Option<NotChecked> {
    let tables = live.tables.iter().map(|(table, _)| table);
    let own = tables.filter(|table| table.is_unlogged && table.blocks > 0);
    let names: Vec<String> = own
        .map(|table| format!("{}.{}", table.schema, table.name))
        .collect();
    let what = format!(
        "whether rows of {} of database {} are missing without a trace",
        plural(names.len(), "unlogged table"),
        live.target.database
    );
    let why = format!(
        "no checkpoint writes their pages, so that their files prove nothing while the server runs: {}",
        names.join(", ")
    );
    (!names.is_empty()).then(|| NotChecked {
        inherent: true,
        ..not_salvaged(&what, &why)
    })
}
