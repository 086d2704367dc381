//! A page of a table that somebody names by file and block, with all that is known of it.

use pgclinic_cluster::{
    Cluster, DatabaseContext, DatabaseDirectory, ForkFiles, RelationFileName, fork_place,
};
use pgclinic_cluster::{RelKind, Relation};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork, HeapTuple, LinePointer, LpFlags, Oid, Page};
use pgclinic_model::document::{CureRequest, Place};
use pgclinic_model::plural;

use super::CuredFiles;
use super::chain::Chain;
use super::databases::Databases;
use super::proven_pages::ProvenPage;
use crate::error::{Error, Result};

/// The files that a request names.
#[derive(Clone, Debug)]
pub(super) struct NamedFiles {
    /// OID of the database.
    pub(super) database: Oid,
    /// The fork.
    pub(super) files: ForkFiles,
}

/// A page of a table, as it stands after the cures before.
pub(super) struct HeapPlace<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) database: &'a DatabaseContext<'a>,
    pub(super) files: &'a ForkFiles,
    pub(super) relation: Option<&'a Relation>,
    pub(super) block: BlockNo,
    pub(super) bytes: &'a [u8],
    pub(super) item: Option<u16>,
    pub(super) column: Option<&'a str>,
    /// What the page should be, where that is proven.
    pub(super) proven: Option<&'a ProvenPage>,
}

/// The files of a request. Blocks count through the whole fork, whichever of its files is named.
pub(super) fn named_files(
    request: &CureRequest,
    wanted: CuredFiles,
    databases: &mut Databases<'_>,
    cluster: &Cluster,
) -> Result<NamedFiles> {
    let refuse = |why: String| Error::Cure {
        place: request.path.clone(),
        why,
    };
    let (directory, name) = request.path.rsplit_once('/').unwrap_or(("", &request.path));
    let name = RelationFileName::parse(name)
        .filter(|name| !name.temporary)
        .ok_or_else(|| {
            refuse(format!(
                "it is not the name of a relation file, such as base/5/16384: {NAMING}"
            ))
        })?;
    let home = databases.directory(directory).ok_or_else(|| {
        refuse(format!(
            "{directory:?} is not a directory of a database in this cluster: {NAMING}"
        ))
    })?;
    if let Some(why) = wrong_fork(wanted, name.fork) {
        return Err(refuse(why.into()));
    }
    databases.open(home.database)?;
    let forks = databases.get(home.database).forks;
    let mut own = forks.iter().filter(|files| {
        files.home == *home && files.filenode == name.filenode && files.fork == name.fork
    });
    let files = own.find(|files| files.temporary.is_none());
    if wanted == CuredFiles::Ends {
        let files = match files {
            Some(files) => files.clone(),
            None => missing_fork(home, name.filenode),
        };
        check_end(request, &files, cluster)?;
        return Ok(NamedFiles {
            database: home.database,
            files,
        });
    }
    let files = files.filter(|files| !files.segments.is_empty());
    let files = files
        .ok_or_else(|| refuse("the file is not there".into()))?
        .clone();
    check_block(request, name.segment, &files, cluster)?;
    Ok(NamedFiles {
        database: home.database,
        files,
    })
}

/// A main fork of which no file is there.
pub(super) fn missing_fork(home: &DatabaseDirectory, filenode: Oid) -> ForkFiles {
    ForkFiles {
        home: home.clone(),
        filenode,
        fork: Fork::Main,
        temporary: None,
        segments: Vec::new(),
    }
}

/// The block is the first one of a run that is missing.
fn check_end(request: &CureRequest, files: &ForkFiles, cluster: &Cluster) -> Result<()> {
    let build = cluster.build;
    let missing = files.missing_blocks(build);
    if missing.iter().any(|own| own.first == request.block) {
        return Ok(());
    }
    let blocks = files.blocks(build.block_size, build.segment_bytes);
    Err(Error::Cure {
        place: format!("{}, block {}", request.path, request.block),
        why: format!(
            "the relation has {blocks} blocks without a gap, and {} bytes",
            files.bytes()
        ),
    })
}

/// Why a cure is not done in files of this fork.
fn wrong_fork(wanted: CuredFiles, fork: Fork) -> Option<&'static str> {
    match (wanted, fork) {
        (CuredFiles::Maps, Fork::Vm | Fork::Fsm) => None,
        (CuredFiles::Maps, _) => Some("it is not a visibility map or free space map"),
        (CuredFiles::StatusLogs | CuredFiles::Wal, _) => {
            Some("it is a file of a relation, and none of a status log or of WAL")
        }
        (_, Fork::Main) => None,
        (_, _) => Some(
            "it is not the main fork of a relation. VACUUM makes maps again that are removed, and init forks hold no rows",
        ),
    }
}

const NAMING: &str =
    "name it relative to the data directory, as check and pg_relation_filepath() do";

/// The block is there. Whoever names a later segment may count the blocks inside it: that is told
/// apart, and never guessed.
fn check_block(
    request: &CureRequest,
    segment: u32,
    files: &ForkFiles,
    cluster: &Cluster,
) -> Result<()> {
    let build = cluster.build;
    let blocks = files.blocks(build.block_size, build.segment_bytes);
    let block = u64::from(request.block);
    let per_segment = build.segment_blocks().max(1);
    let first = u64::from(segment) * per_segment;
    let refuse = |why: String| {
        Err(Error::Cure {
            place: format!("{}, block {block}", request.path),
            why,
        })
    };
    if segment > 0 && block / per_segment != u64::from(segment) {
        return refuse(format!(
            "blocks count through the whole fork, and those of this file are {first} to {}: its block {block} is {}",
            first + per_segment - 1,
            first.saturating_add(block),
        ));
    }
    if block >= blocks {
        return refuse(format!(
            "the relation has {blocks}, from 0",
            blocks = plural(blocks, "block")
        ));
    }
    Ok(())
}

impl<'a> HeapPlace<'a> {
    /// Where it is.
    pub(super) fn place(&self) -> Place {
        let database = self.database.catalog.database_name.as_deref();
        let database = database.filter(|_| self.files.home.database != 0);
        Place {
            block: Some(self.block),
            item: self.item,
            ..fork_place(database, self.relation, self.files, self.segment())
        }
    }

    fn segment(&self) -> u32 {
        let per_segment = self.cluster.build.segment_blocks().max(1);
        u32::try_from(u64::from(self.block) / per_segment).unwrap_or(u32::MAX)
    }

    /// It cannot be done here.
    pub(super) fn refuse<T>(&self, why: impl Into<String>) -> Result<T> {
        Err(Error::Cure {
            place: self.place().to_string(),
            why: why.into(),
        })
    }

    /// The page is of the kind that the cure is for.
    pub(super) fn check_kind(&self, wanted: CuredFiles) -> Result<()> {
        match wanted {
            CuredFiles::Proven if self.is_index() && self.proven.is_some() => Ok(()),
            CuredFiles::Tables | CuredFiles::Proven | CuredFiles::Ends => self.check_is_heap(),
            CuredFiles::Maps => Ok(()),
            CuredFiles::Sequences => self.check_is_sequence(),
            CuredFiles::StatusLogs | CuredFiles::Wal => {
                self.refuse("a page of a relation is not one of a status log or of WAL")
            }
        }
    }

    /// It is a page of an index.
    pub(super) fn is_index(&self) -> bool {
        let kind = self.relation.map(|relation| relation.kind);
        kind == Some(RelKind::Index)
    }

    fn check_is_sequence(&self) -> Result<()> {
        let kind = self.relation.map(|relation| relation.kind);
        if kind == Some(RelKind::Sequence) && self.block == 0 {
            return Ok(());
        }
        self.refuse("it is not the page of a sequence")
    }

    /// Only pages of tables are healed so; for anything else there is a better way.
    fn check_is_heap(&self) -> Result<()> {
        let Some(relation) = self.relation else {
            return self.refuse("no relation of the catalogs has this file, so that nobody knows what its bytes mean");
        };
        if let Some(method) = relation.unknown_storage() {
            return self.refuse(format!(
                "its access method {method} belongs to an extension"
            ));
        }
        match (relation.kind, relation.page_method()) {
            (RelKind::Index, _) => self.refuse(format!(
                "it is a page of an index, and nothing of it needs to be saved: REINDEX INDEX {}; builds it from its table",
                relation.sql_name()
            )),
            // A sequence has no index and no map: what WAL says of its page is all there is.
            (RelKind::Sequence, _) if self.proven.is_some() => Ok(()),
            (RelKind::Sequence, _) => self.refuse(format!(
                "it is the page of a sequence: setval() of {} sets it again",
                relation.sql_name()
            )),
            (_, Some(AccessMethod::Heap)) => Ok(()),
            _ => self.refuse("it is not a page of a table"),
        }
    }

    /// The page, whose line pointers can be believed.
    pub(super) fn page(&self) -> Result<Page<'a>> {
        let page = Page::parse(self.bytes);
        match page {
            Some(page) if page.is_new() => self.refuse("the page is new or all zero: it has no line pointers"),
            Some(page) if page.header_is_sane_to_the_server() => Ok(page),
            _ => self.refuse("the page header makes no sense, so that its line pointers cannot be believed: take the page from a backup, or empty it with --zero-page"),
        }
    }

    /// The line pointer.
    pub(super) fn pointer(&self) -> Result<(u16, LinePointer)> {
        let page = self.page()?;
        let Some(item) = self.item else {
            return self.refuse("name the line pointer too, as PATH:BLOCK:ITEM");
        };
        let pointer = page.line_pointer(item).filter(|_| item > 0);
        match pointer {
            Some(pointer) => Ok((item, pointer)),
            None => self.refuse(format!(
                "the page has {}, from 1",
                plural(page.line_pointer_count(), "line pointer")
            )),
        }
    }

    /// The line pointer and its row.
    pub(super) fn row(&self) -> Result<(u16, HeapTuple<'a>)> {
        let (item, pointer) = self.pointer()?;
        match pointer.flags() {
            LpFlags::Normal => {}
            LpFlags::Redirect => {
                return self.refuse(format!(
                    "the line pointer is LP_REDIRECT: the row stands at item {}, name that one",
                    pointer.lp_off()
                ));
            }
            flags => {
                return self.refuse(format!(
                    "the line pointer is {}: it has no row",
                    flags.name()
                ));
            }
        }
        let tuple = self.page()?.item(pointer).and_then(HeapTuple::parse);
        match tuple {
            Some(tuple) => Ok((item, tuple)),
            None => self.refuse("the line pointer names bytes that are not on the page, or too few for a tuple: --kill sets it LP_DEAD"),
        }
    }

    /// The neighbours of a row in its HOT chain.
    pub(super) fn chain(&self, item: u16) -> Result<Chain> {
        Ok(Chain::of(self.page()?, self.block, item))
    }
}
