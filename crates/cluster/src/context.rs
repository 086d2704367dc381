//! What is known of one database and of one fork: what every reader of pages begins with.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, ColumnLayout, Fork, Layout};
use pgclinic_model::document::FileKind;
use pgclinic_source::Source;

use crate::build::Build;
use crate::catalog::Catalog;
use crate::cluster::Cluster;
use crate::comparison::Comparison;
use crate::files::ForkFiles;
use crate::places::kind_of;
use crate::relation::{Persistence, Relation};
use crate::wal::{Replay, ReplayEffect};

/// One database: its catalogs and the forks in all its folders. Database 0 is `global`.
pub struct DatabaseContext<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its catalogs.
    pub catalog: &'a Catalog,
    /// Forks in all its directories, in the order of directory, filenode and fork.
    pub forks: &'a [ForkFiles],
}

impl<'a> DatabaseContext<'a> {
    /// The files of a relation's rows or entries.
    pub fn main_fork(&self, relation: &Relation) -> Option<&'a ForkFiles> {
        self.forks.iter().find(|files| {
            let own = self.catalog.by_file(files.home.tablespace, files.filenode);
            files.fork == Fork::Main
                && files.temporary.is_none()
                && own.is_some_and(|own| own.oid == relation.oid)
        })
    }
}

/// What is known of a fork.
pub struct ForkContext<'a> {
    /// The cluster, if the target is one.
    pub cluster: Option<&'a Cluster>,
    /// Where the bytes come from.
    pub source: Option<&'a dyn Source>,
    /// The major's row; nothing for a bare file of unknown age.
    pub layout: Option<&'static Layout>,
    /// Build options.
    pub build: Build,
    /// The files.
    pub files: &'a ForkFiles,
    /// The relation, when the catalogs name it.
    pub relation: Option<&'a Relation>,
    /// The table of a TOAST relation, or of its index.
    pub toast_of: Option<&'a Relation>,
    /// Name of the database.
    pub database: Option<&'a str>,
    /// Kind of relation.
    pub kind: FileKind,
    /// How its pages are laid out; nothing when unknown.
    pub method: Option<AccessMethod>,
    /// The walk over its rows.
    pub columns: Option<&'a [ColumnLayout]>,
    /// Blocks in the fork.
    pub blocks: u64,
}

impl<'a> ForkContext<'a> {
    /// A fork of a database.
    pub fn new(database: &DatabaseContext<'a>, files: &'a ForkFiles) -> Self {
        let DatabaseContext {
            cluster, catalog, ..
        } = *database;
        let relation = catalog.by_file(files.home.tablespace, files.filenode);
        ForkContext {
            cluster: Some(cluster),
            source: Some(cluster.source().as_ref()),
            layout: Some(cluster.layout),
            relation,
            toast_of: relation.and_then(|relation| catalog.toast_owner(relation)),
            database: catalog.database_name.as_deref(),
            kind: kind_of(relation),
            method: relation.and_then(Relation::page_method),
            columns: relation.and_then(|relation| relation.layouts.as_deref()),
            blocks: files.blocks(cluster.build.block_size, cluster.build.segment_bytes),
            ..Self::nameless(cluster.build, files)
        }
    }

    /// A fork of which nothing is known but its files.
    pub fn nameless(build: Build, files: &'a ForkFiles) -> Self {
        ForkContext {
            cluster: None,
            source: None,
            layout: None,
            build,
            files,
            relation: None,
            toast_of: None,
            database: None,
            kind: FileKind::Unknown,
            method: None,
            columns: None,
            blocks: 0,
        }
    }

    /// The cluster needs recovery: what its files say of each other may be put right by WAL.
    pub fn replay_is_due(&self) -> bool {
        self.cluster.is_some_and(Cluster::needs_recovery)
    }

    /// Whether these can contradict each other. A file without a cluster has no state that would
    /// forbid it.
    pub fn may_compare(&self, what: Comparison) -> bool {
        self.cluster.is_none_or(|cluster| cluster.may_compare(what))
    }

    /// No record since the last checkpoint leads to the main fork of this permanent relation: it
    /// is as that checkpoint left it, also where recovery is due or a server runs.
    pub fn rests(&self) -> bool {
        let is_left_alone = |replay: &Replay| !replay.touches(self.file_number());
        self.fork() == Fork::Main && self.is_known_to_wal(is_left_alone)
    }

    /// The same of one block: its content, though not the length of the fork.
    pub fn block_rests(&self, block: BlockNo) -> bool {
        let file = self.file_number();
        self.is_known_to_wal(|replay| {
            !replay.creates(file) && replay.fate(file, self.fork(), block) == ReplayEffect::Kept
        })
    }

    /// All WAL since the last checkpoint is there, and says so.
    fn is_known_to_wal(&self, says: impl Fn(&Replay) -> bool) -> bool {
        let persistence = self.relation.map(|relation| relation.persistence);
        let says_so = |cluster: &Cluster| {
            cluster.may_compare(Comparison::PagesThatWalLeftAlone)
                && cluster.replay().is_some_and(says)
        };
        persistence == Some(Persistence::Permanent) && self.cluster.is_some_and(says_so)
    }

    /// The pages of the fork can contradict each other and its length.
    pub fn may_compare_pages(&self) -> bool {
        self.may_compare(Comparison::PagesOfFork) || self.rests()
    }

    /// A server is at work on the cluster, and known to be.
    pub fn is_running(&self) -> bool {
        self.cluster.is_some_and(Cluster::is_running)
    }

    /// Pages that a server at work writes without waiting for the WAL of the transactions on them.
    pub fn may_be_ahead(&self) -> bool {
        let persistence = self.relation.map(|relation| relation.persistence);
        self.is_running() && persistence.is_some_and(|own| own != Persistence::Permanent)
    }

    /// The fork's files, as WAL names them.
    pub fn file_number(&self) -> FileNumber {
        self.files.number()
    }

    /// The fork.
    pub fn fork(&self) -> Fork {
        self.files.fork
    }

    /// PostgreSQL's major; the newest one for a bare file.
    pub fn major(&self) -> u16 {
        self.layout.map_or(18, |layout| layout.major)
    }
}
