//! Only what changed since another run: which pages that are, and whether the other run's state can
//! tell.
//!
//! A page carries the position in the WAL of its last change. The other run began at a checkpoint:
//! whatever was changed before its redo point was on disk by then, and was looked at. A page whose
//! LSN lies before that point has not changed since, unless it came in another way: in a file that
//! was copied with its folder, or without WAL. What the other run could not read, or not with all
//! that the catalogs say of it, is looked at whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::run_state::{RunState, SavedBooks};
use pgclinic_cluster::{Cluster, Persistence, target_of};
use pgclinic_format::{Fork, Lsn, Oid, Page};
use pgclinic_model::document::Tool;

use crate::check::ForkCx;
use crate::walker::CheckOptions;
use crate::walker::known::PreviousRun;
use crate::walker::state::SCHEMA;

/// The first record of every cluster stands behind its first segment (`BootStrapXLOG`), and no
/// segment is smaller. Positions below are those of pages that were written without WAL.
const FIRST_RECORD: Lsn = Lsn(1 << 20);

/// What to do where the other run cannot tell.
const ANEW: &str = "Run once without --since, with --state FILE: the next run can go by that";

/// The begin of another run on the same cluster, and what it found.
#[derive(Clone, Debug)]
pub struct Since {
    lsn: Lsn,
    /// Folders with relation files that the other run knew, by tablespace and database.
    homes: BTreeSet<(Oid, Oid)>,
    /// What the other run did not look at whole: files of relations, first ones for all of a fork,
    /// and folders.
    unread: Arc<BTreeSet<String>>,
    known: Arc<PreviousRun>,
}

impl Since {
    /// By the state of a run that came to its end; why it cannot tell, otherwise.
    pub fn of(state: &RunState, cluster: &Cluster, options: &CheckOptions) -> Result<Self, String> {
        is_by_this_tool(state)?;
        let target = target_of(cluster, &options.spec);
        let own = target.system_identifier;
        let unknown = || "an unknown number".to_owned();
        if own.is_none() || state.target.system_identifier != own {
            let theirs = state.target.system_identifier.clone();
            return Err(format!(
                "the state is of the cluster {}, and this one is {}",
                theirs.unwrap_or_else(unknown),
                own.unwrap_or_else(unknown)
            ));
        }
        if state.target.spec != target.spec || state.target.kind != target.kind {
            return Err(format!(
                "the state is of the {} in {}, and this is the {} in {}: copies of one cluster have damage of their own. {ANEW}",
                state.target.kind, state.target.spec, target.kind, target.spec
            ));
        }
        if !state.complete {
            return Err("the run that wrote the state did not come to its end".into());
        }
        if state.level < options.level {
            return Err(format!(
                "the state is of level {}, and this run is of level {}: what that level left out is in pages that did not change, too",
                state.level.name(),
                options.level.name()
            ));
        }
        if state.selection != options.selection.resume_key() {
            return Err(format!(
                "the state is of the selection {}, and this run is of {}",
                state.selection,
                options.selection.resume_key()
            ));
        }
        let Some(begin) = &state.begin else {
            return Err("the state does not tell where the WAL was when its run began".into());
        };
        let since = Since {
            lsn: begin.redo.min(parted(begin.timeline, cluster)?),
            homes: begin.homes.iter().copied().collect(),
            unread: Arc::new(unread(&state.books)),
            known: Arc::new(PreviousRun::of(begin.redo, &state.books)),
        };
        since.not_ahead_of(cluster)
    }

    /// An older copy of the cluster has pages that the other run never saw.
    fn not_ahead_of(self, cluster: &Cluster) -> Result<Self, String> {
        let control = cluster.control.trusted();
        let redo = control.map_or(Lsn(0), |control| control.checkpoint.redo);
        if self.lsn > redo {
            Err(format!(
                "the state is of the cluster at {}, and it is at {redo} now: it was set back in between",
                self.lsn
            ))
        } else {
            Ok(self)
        }
    }

    /// The page is as the other run saw it, as far as its LSN tells.
    pub(crate) fn is_unchanged(&self, page: Page<'_>, fork: &ForkCx<'_>) -> bool {
        let lsn = page.pd_lsn();
        (FIRST_RECORD..self.lsn).contains(&lsn) && self.trusts(fork)
    }

    /// The other run did not look at all of the file, or not as at what it is: its pages may have
    /// any damage, changed or not.
    pub(crate) fn has_half_read(&self, path: &str, fork: &ForkCx<'_>) -> bool {
        if self.unread.is_empty() {
            return false;
        }
        let first = fork.files.path(0);
        let names = [path, &first, &fork.files.home.folder];
        names.iter().any(|name| self.unread.contains(*name))
    }

    /// Pages of the fork carry the positions of their changes, and its files came the way of the
    /// WAL.
    fn trusts(&self, fork: &ForkCx<'_>) -> bool {
        let home = &fork.files.home;
        let logged = |persistence| persistence == Persistence::Permanent;
        fork.fork() == Fork::Main
            && fork.files.temporary.is_none()
            && fork.relation.is_some_and(|own| logged(own.persistence))
            && self.homes.contains(&(home.tablespace, home.database))
    }

    /// Where it is in the WAL.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// What the other run found.
    pub(crate) fn known(&self) -> &PreviousRun {
        &self.known
    }
}

/// What another version looked for in a page may be less than what this one looks for.
fn is_by_this_tool(state: &RunState) -> Result<(), String> {
    let this = Tool::this();
    if state.schema != SCHEMA {
        return Err(format!(
            "the state is of the form {}, and this pgclinic reads {SCHEMA}. {ANEW}",
            state.schema
        ));
    }
    if state.tool == this {
        Ok(())
    } else {
        Err(format!(
            "the state was written by {} {}, and this is {} {}, which may look for more in pages that did not change. {ANEW}",
            state.tool.name, state.tool.version, this.name, this.version
        ))
    }
}

/// A gap that is named by a path is one in that file, as in states that kept nothing else of it.
fn unread(books: &SavedBooks) -> BTreeSet<String> {
    let gaps = books.coverage.not_checked.iter();
    let gaps = gaps.filter(|gap| !gap.inherent);
    let named = gaps.map(|gap| gap.what.clone());
    books.unread.iter().cloned().chain(named).collect()
}

/// Up to where the WAL of the timeline is that of the cluster now.
fn parted(timeline: u32, cluster: &Cluster) -> Result<Lsn, String> {
    let recovery = cluster.recovery();
    let now = recovery.map(|recovery| recovery.timelines.target());
    if now == Some(timeline) {
        return Ok(Lsn(u64::MAX));
    }
    let history = recovery
        .zip(now)
        .and_then(|(recovery, now)| recovery.files.history(now));
    history
        .and_then(|history| history.left(timeline))
        .ok_or_else(|| {
            format!(
                "the state is of timeline {timeline}, and no history in pg_wal tells where the cluster left it"
            )
        })
}
