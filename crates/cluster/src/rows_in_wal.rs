//! What WAL from before the last checkpoint proves of files: rows were written to them, the
//! checkpoint wrote the pages, and no record removed them. They must be there, and none of their
//! pages may be older than its last record.

use std::collections::BTreeSet;

use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Lsn, Oid, Page, Xid};
use pgclinic_source::Presence;

use crate::catalog::Catalog;
use crate::cluster::Cluster;
use crate::database::LostDatabase;
use crate::databases::DATABASE_NAMES;
use crate::error::ReadGap;
use crate::files::{DatabaseDirectory, ForkFiles, read_block};
use crate::transaction_log::XactStatus;
use crate::wal::{Chain, CheckpointState, Replay, ReplayEffect};

/// A page that lacks what WAL has written to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutdatedBlock {
    /// Its number.
    pub block: BlockNo,
    /// `pd_lsn`.
    pub lsn: Lsn,
    /// Where the last record ends that changed its rows.
    pub changed_at: Lsn,
}

impl Cluster {
    /// Pages of this main fork that are older than WAL from before the last checkpoint: a write was
    /// lost, or an older copy of the page, the file or the directory was put there.
    pub fn outdated_blocks(&self, fork: &ForkFiles) -> Vec<OutdatedBlock> {
        let file = fork.number();
        let changes = self.wal_of_rows().and_then(|wal| wal.rows.of(file));
        let Some(changes) = changes.filter(|_| self.keeps_file(file)) else {
            return Vec::new();
        };
        let replay = self.replay_that_is_due();
        let is_read = |block: BlockNo| {
            let fate = |replay: &Replay| replay.fate(file, fork.fork, block);
            let fate = replay.map(fate);
            matches!(fate, None | Some(ReplayEffect::Kept | ReplayEffect::Read))
        };
        let blocks = changes.blocks.iter();
        let outdated = blocks.filter_map(|(block, changed_at)| {
            let lsn = lsn_of(self, fork, *block)?;
            (lsn < *changed_at && is_read(*block)).then_some(OutdatedBlock {
                block: *block,
                lsn,
                changed_at: *changed_at,
            })
        });
        outdated.collect()
    }

    /// Main forks of a database that are missing and that its catalogs do not name, though
    /// committed transactions wrote rows to them: the directory is not the one that the server
    /// worked with, or an older one.
    pub fn files_missing_by_wal(&self, catalog: &Catalog) -> Vec<ForkFiles> {
        let logged = self.files_with_logged_rows(catalog.database).into_iter();
        let is_named = |file: &FileNumber| catalog.by_file(file.tablespace, file.filenode);
        let nameless = logged.filter(|file| is_named(file).is_none());
        let files = nameless.filter_map(|file| {
            let is_home = |home: &&DatabaseDirectory| {
                home.database == file.database && home.tablespace == file.tablespace
            };
            let home = self.homes.iter().find(is_home)?;
            Some(self.fork_files(home, file.filenode, Fork::Main))
        });
        let source = self.source().as_ref();
        let is_missing = |files: &ForkFiles| Presence::of_file(source, &files.path(0)).is_missing();
        files.filter(is_missing).collect()
    }

    /// Directories of databases that neither `pg_database` nor its indexes name, and whose files
    /// must be there by that WAL.
    pub fn homes_lost_by_wal(&self) -> Vec<&DatabaseDirectory> {
        let is_read = !self.troubles.iter().any(|own| own.what == DATABASE_NAMES);
        if !is_read || self.databases.values().all(|own| own.name.is_none()) {
            return Vec::new();
        }
        let is_nameless = |home: &&DatabaseDirectory| {
            let known = self.databases.get(&home.database);
            let is_lost = |lost: &LostDatabase| lost.oid == home.database;
            home.database != 0
                && known.is_none_or(|known| known.name.is_none())
                && !self.lost_databases.iter().any(is_lost)
        };
        let nameless = self.homes.iter().filter(is_nameless);
        let logged = nameless.filter(|home| !self.files_with_logged_rows(home.database).is_empty());
        logged.collect()
    }

    /// Transactions of which `pg_xact` does not say what that WAL does. A commit is in `pg_xact`
    /// before a checkpoint that began after it ends; a rollback may be missing there, and counts as
    /// one all the same.
    pub fn statuses_denied_by_wal(&self) -> Vec<Xid> {
        let Some(wal) = self.wal_of_rows() else {
            return Vec::new();
        };
        let is_denied = |(xid, committed): (Xid, bool)| {
            let is_committed = self.transactions.status(xid)? == XactStatus::Committed;
            (is_committed != committed).then_some(xid)
        };
        wal.rows.ends().filter_map(is_denied).collect()
    }

    /// Where that WAL breaks: what stands before cannot be asked.
    pub fn unasked_rows_in_wal(&self) -> Option<ReadGap> {
        let broken = self.wal_of_rows()?.breaks.last()?;
        let why = format!(
            "{broken}: whether pages lack changes that it has, and whether files are missing, was not asked of what stands before"
        );
        Some(ReadGap::new("WAL from before the last checkpoint", why))
    }

    /// Files of a database to which committed transactions wrote rows, and which nothing has
    /// removed since.
    fn files_with_logged_rows(&self, database: Oid) -> BTreeSet<FileNumber> {
        let Some(wal) = self.wal_of_rows() else {
            return BTreeSet::new();
        };
        let files = wal.rows.files();
        let own = files.filter(|(file, _)| file.database == database && self.keeps_file(*file));
        let committed = own.filter(|(_, changes)| {
            let mut writers = changes.writers.iter();
            writers.any(|xid| self.transactions.status(*xid) == Some(XactStatus::Committed))
        });
        committed.map(|(file, _)| file).collect()
    }

    /// The WAL behind the redo point neither removes nor remakes the file.
    fn keeps_file(&self, file: FileNumber) -> bool {
        let replay = self.replay_that_is_due();
        replay.is_none_or(|replay| replay.keeps_length(file))
    }

    fn replay_that_is_due(&self) -> Option<&Replay> {
        self.needs_recovery().then(|| self.replay()).flatten()
    }

    /// That WAL, where the files are those that the checkpoint left, or that recovery is about to
    /// go on from.
    fn wal_of_rows(&self) -> Option<&Chain> {
        let is_at_rest = !self.is_running() && !self.is_partial();
        self.control.trusted().filter(|_| is_at_rest)?;
        let is_found = matches!(self.wal_survey()?.checkpoint, CheckpointState::Found { .. });
        let is_known = !self.needs_recovery() || self.replay().is_some_and(Replay::is_complete);
        self.recent_wal().filter(|_| is_found && is_known)
    }
}

/// The LSN of a page; nothing of one that is not there, or holds nothing: that is told elsewhere.
fn lsn_of(cluster: &Cluster, fork: &ForkFiles, block: BlockNo) -> Option<Lsn> {
    let page = read_block(cluster.source().as_ref(), fork, cluster.build, block)?;
    let page = Page::parse(&page)?;
    (!page.is_zeroed()).then(|| page.pd_lsn())
}
