//! A server that works on a data directory and cannot be seen from here: it is in a container, in
//! another pid namespace, or on another host that shares the disk. `postmaster.pid` names a process
//! of its world, not of ours; but it moves the files.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::NotChecked;

use crate::env::Env;
use crate::exit::Failure;

/// How often files on which a server turns out to be at work are opened.
const OPENED_MAX: usize = 3;

/// How it is known that one is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UndetectedServer {
    /// The person said so.
    Told,
    /// The control file was written while the files were read.
    ControlFile,
    /// The write-ahead log grew while the files were read.
    Wal,
}

impl UndetectedServer {
    /// What `--running` says.
    pub(crate) fn told(is_running: bool) -> Option<Self> {
        is_running.then_some(UndetectedServer::Told)
    }

    fn why(self) -> &'static str {
        match self {
            UndetectedServer::Told => {
                "no process of it can be seen from here, and --running says that one is running"
            }
            UndetectedServer::ControlFile => {
                "no process of it can be seen from here, but the control file moved while the files were read, as only a running server moves it: it may be in a container, or on another host that shares the disk"
            }
            UndetectedServer::Wal => {
                "no process of it can be seen from here, but the write-ahead log grew while the files were read, as only a running server makes it grow: it may be in a container, or on another host that shares the disk"
            }
        }
    }

    /// For the part of a report that says what was not looked at.
    pub(crate) fn gap(self) -> NotChecked {
        NotChecked {
            what: "which server is running on the files".into(),
            why: self.why().into(),
            inherent: true,
        }
    }

    /// For reports that have notes.
    pub(crate) fn note(self) -> String {
        format!("a server is running on the files: {}", self.why())
    }
}

/// An eye on files that were opened as those of a stopped server.
pub(crate) struct Watch {
    knows_wal: bool,
}

impl Watch {
    /// Begins before anything else is read. Where a server left `postmaster.pid` behind, the end of
    /// the write-ahead log is looked for: what can be read behind it later was written meanwhile.
    pub(crate) fn begin(cluster: &Cluster) -> Self {
        let may_be_at_work = !cluster.is_running()
            && cluster.needs_recovery()
            && cluster.source().len("postmaster.pid").is_ok();
        Watch {
            knows_wal: may_be_at_work && cluster.replay().is_some(),
        }
    }

    /// The same of the control file alone, where reading the write-ahead log would take longer than
    /// everything else.
    pub(crate) fn of_control_file() -> Self {
        Watch { knows_wal: false }
    }

    /// What a server has written since, if one has.
    pub(crate) fn seen(&self, cluster: &Cluster) -> Option<UndetectedServer> {
        if cluster.is_running() {
            return None;
        }
        if cluster.control_has_moved() {
            return Some(UndetectedServer::ControlFile);
        }
        (self.knows_wal && cluster.wal_has_grown()).then_some(UndetectedServer::Wal)
    }
}

/// Looks; where a server turns out to have been at work on files that were taken for those of a
/// stopped one, looks again. `look` is given what is known so far, and answers with what it found
/// and with what it knows now, where that is news.
pub(crate) fn look<T, Known: Copy>(
    first: Known,
    world: &mut Env<'_>,
    mut look: impl FnMut(Known, &mut Env<'_>) -> Result<(T, Option<Known>), Failure>,
) -> Result<T, Failure> {
    let mut known = first;
    for _ in 1..OPENED_MAX {
        let (found, news) = look(known, world)?;
        let Some(news) = news.filter(|_| !world.is_interrupted()) else {
            return Ok(found);
        };
        world.say("pgclinic: a server writes to the files: they are examined again");
        known = news;
    }
    look(known, world).map(|(found, _)| found)
}
