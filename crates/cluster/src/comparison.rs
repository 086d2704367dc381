//! What of a cluster may be compared, given its state: the one place that decides it.
//!
//! A fact about the state, for words or for the way of reading, is asked of the cluster
//! ([`Cluster::needs_recovery`],
//! [`Cluster::is_running`], [`Cluster::is_partial`]). Whether two things can contradict each other at all is asked here.
//!
//! | comparison | stopped | crashed | replayed whole | running | partial |
//! |---|---|---|---|---|---|
//! | files with catalogs | yes | | yes | | |
//! | pages of a fork, forks of a relation | yes | | | | |
//! | forks that recovery keeps | yes | with all WAL | with all WAL | | |
//! | pages that WAL left alone | yes | with all WAL | with all WAL | with all WAL | |
//! | catalogs with their indexes | yes | | yes | | |
//! | catalog entries with the pages they lead to | yes | | yes | with all WAL, at two looks | |
//! | salvaged rows with entries | yes | | yes | | yes |
//! | with what only a stopped server leaves | yes | yes | yes | | yes |

use crate::cluster::Cluster;

/// Two kinds of things of one cluster that can contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Files with the catalogs that name them, and with the lengths that files of their kind have.
    /// In a state before recovery replay may still create, fill, truncate and remove files; and
    /// where a part of the files is not there, it may be the part that is missed.
    FilesWithCatalogs,
    /// The pages of a fork with each other and with the length of the fork.
    PagesOfFork,
    /// The forks of a relation with each other: the table with its indexes, its TOAST table and its
    /// visibility map.
    ForksOfRelation,
    /// The same as far as recovery leaves them alone, all of whose WAL is there.
    ForksThatRecoveryKeeps,
    /// The same also while a server runs: pages that no record since the last checkpoint touches
    /// are in its files as it knows them.
    PagesThatWalLeftAlone,
    /// Pages of catalogs with the entries of their indexes, so that an entry without its page
    /// proves that the page is lost.
    CatalogsWithIndexes,
    /// An entry of a catalog's index with the page that it leads to. Beside a running server the
    /// WAL was applied to the pages up to its end, so that a page which is not there then is lost,
    /// where two looks under WAL that overlaps find the same.
    CatalogEntriesWithPages,
    /// Catalogs with what their indexes hold beyond them. Those of a cluster that was replayed in
    /// memory are from before, and may name what VACUUM removed since.
    CatalogsWithOlderIndexes,
    /// The rows that salvage finds with the entries of the indexes. A part that is not there is
    /// lost to it as well, so it compares there too.
    SalvagedRowsWithEntries,
    /// The same of unlogged relations, which a base backup leaves out, and recovery empties.
    UnloggedRowsWithEntries,
    /// Each row that was written with an entry: the WAL was applied to the rows, or none is due.
    RowsWithEntriesOneByOne,
    /// The numbers on pages (transactions, multixacts, LSNs) with the checkpoint of the control
    /// file.
    NumbersWithCheckpoint,
    /// What a pass over all pages gathers, page with page: while a server runs, they are of
    /// different moments.
    PagesOfOnePass,
    /// The directories that every cluster has with those that are there. No server removes one.
    DirectoriesWithLayout,
    /// A database's row with its directory.
    DatabasesWithDirectories,
    /// Anything with the end of WAL: not when a server has written more since it was read.
    AnythingWithWalEnd,
    /// The control file with the checkpoint record in WAL: not when a server has written another
    /// control file since.
    ControlFileWithWal,
    /// The ranges of WAL that a manifest asks for with `pg_wal`: not where they are kept elsewhere
    /// on purpose.
    ManifestWithWal,
}

impl Cluster {
    /// Entries of a catalog's index prove that their rows were there. They may have outlived their
    /// page in files of before a recovery. Those beside a running server count: what WAL truncated
    /// since is known.
    pub(crate) fn catalog_entries_prove(&self) -> bool {
        self.may_compare(Comparison::CatalogsWithOlderIndexes)
            || (self.is_running() && self.may_compare(Comparison::CatalogEntriesWithPages))
    }

    /// Whether these two can contradict each other in the cluster's state; where not, a difference
    /// proves nothing.
    ///
    /// Those about the end of WAL and the control file look at the files again.
    pub fn may_compare(&self, what: Comparison) -> bool {
        match what {
            Comparison::FilesWithCatalogs => self.has_final_files(),
            Comparison::PagesOfFork => !self.needs_recovery() && !self.is_partial(),
            Comparison::ForksOfRelation => self.has_lasting_pages(),
            Comparison::ForksThatRecoveryKeeps => {
                self.has_lasting_pages() || (self.is_foretold() && !self.is_running())
            }
            Comparison::PagesThatWalLeftAlone => self.has_lasting_pages() || self.is_foretold(),
            Comparison::CatalogsWithIndexes => self.is_of_one_moment() && !self.is_partial(),
            Comparison::CatalogEntriesWithPages => {
                self.may_compare(Comparison::CatalogsWithIndexes) || self.is_followed_to_its_end()
            }
            Comparison::CatalogsWithOlderIndexes => {
                self.may_compare(Comparison::CatalogsWithIndexes) && !self.is_replayed()
            }
            Comparison::SalvagedRowsWithEntries => self.is_of_one_moment(),
            Comparison::UnloggedRowsWithEntries => {
                self.is_of_one_moment() && !self.empties_unlogged()
            }
            Comparison::RowsWithEntriesOneByOne => !self.needs_recovery() || self.is_replayed(),
            Comparison::NumbersWithCheckpoint => {
                self.control.trusted().is_some() && !self.needs_recovery()
            }
            Comparison::PagesOfOnePass => !self.is_running(),
            Comparison::DirectoriesWithLayout | Comparison::DatabasesWithDirectories => {
                !self.is_partial()
            }
            Comparison::AnythingWithWalEnd => !self.wal_has_grown(),
            Comparison::ControlFileWithWal => !self.needs_recovery() || !self.control_has_moved(),
            Comparison::ManifestWithWal => !self.wal_is_elsewhere(),
        }
    }

    /// It was shut down in good order, or all of its recovery was done in memory.
    fn has_final_files(&self) -> bool {
        let is_shut_down = || {
            let control = self.control.trusted().filter(|_| !self.is_running());
            control.is_some_and(pgclinic_format::ControlFile::is_shut_down)
        };
        !self.is_partial() && (self.recovered().is_some() || is_shut_down())
    }

    /// All changed pages are on the disk, and all of them are there.
    fn has_lasting_pages(&self) -> bool {
        self.control.trusted().is_some() && self.may_compare(Comparison::PagesOfFork)
    }

    /// Recovery is due and all of its WAL is there, so that it is known which pages it leaves
    /// alone.
    fn is_foretold(&self) -> bool {
        let is_complete = || self.replay().is_some_and(crate::wal::Replay::is_complete);
        !self.is_partial() && is_complete()
    }

    /// Nobody writes, and nothing is left to be replayed. Files of a crash and of a base backup are
    /// not of one moment until recovery has run.
    fn is_of_one_moment(&self) -> bool {
        !self.is_running() && (!self.needs_recovery() || self.recovered().is_some())
    }

    /// A server writes, and all that its WAL held was applied in memory.
    fn is_followed_to_its_end(&self) -> bool {
        self.is_running() && !self.is_partial() && self.replayed_to().is_some()
    }

    /// Its unlogged relations are not those that its indexes were made for.
    pub fn empties_unlogged(&self) -> bool {
        self.is_replayed() || self.leaves_unlogged_out()
    }
}
