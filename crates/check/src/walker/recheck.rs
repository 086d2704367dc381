//! The second look at pages of a cluster whose server is at work.
//!
//! How often, and what counts, is decided in `pgclinic_scan::live`; here a page is read, and looked
//! at by all checks under what was read since.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Cluster, DatabaseContext, ForkFiles, read_block};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Fork, Oid, Page};
use pgclinic_model::Severity;
use pgclinic_model::document::{Finding, NotChecked};
use pgclinic_model::plural;
use pgclinic_scan::live::{AskedPage, LiveServer, Look, Ruling, ServerSays};
use pgclinic_scan::{InternalFault, Panicked, guarded};

use crate::check::ForkCx;
use crate::consequences::is_of_the_future;
use crate::findings::Findings;
use crate::run_state::Spot;
use crate::walker::job::fork_cx;
use crate::walker::page_checker::{PageChecker, PageOutcome, ThreadFindings};
use crate::walker::run_ledger::RunLedger;
use crate::walker::{CheckOptions, catalogs, forks_of, system_identifier};

/// Damaged pages whose cause is searched for.
const CAUSES_MAX: u32 = 500;
/// Damaged pages that the server is asked for.
const QUESTIONS_MAX: u32 = 500;

/// A page, and what was wrong with it at the look before.
type Suspect = pgclinic_scan::live::Suspect<Spot, blake3::Hash, BTreeSet<String>>;

/// What a run may still search and ask for.
pub(super) struct Recheck {
    causes_left: u32,
    questions_left: u32,
}

/// The newer look.
#[derive(Clone, Copy)]
pub(super) struct NewerView<'a> {
    pub(super) view: &'a Cluster,
    /// The same with catalogs as WAL tells them.
    pub(super) names: &'a Cluster,
    pub(super) server: &'a dyn LiveServer,
    pub(super) look: Look,
}

/// A page in which something is wrong still.
struct Wrong {
    page: Vec<u8>,
    seen: PageOutcome,
    findings: Vec<Finding>,
}

impl Recheck {
    pub(super) fn new() -> Self {
        Recheck {
            causes_left: CAUSES_MAX,
            questions_left: QUESTIONS_MAX,
        }
    }

    /// Looks at them under what was read since, and gives those that are open still.
    pub(super) fn look(
        &mut self,
        suspects: Vec<Suspect>,
        newer: NewerView<'_>,
        options: &CheckOptions,
        books: &mut RunLedger,
    ) -> Vec<Suspect> {
        let mut by_database: BTreeMap<Oid, Vec<Suspect>> = BTreeMap::new();
        for suspect in suspects {
            let database = suspect.place.file.database;
            by_database.entry(database).or_default().push(suspect);
        }
        let mut left = Vec::new();
        for (database, suspects) in by_database {
            let mut suspects = by_fork(suspects);
            for catalog in catalogs(newer.names, &[database], options.level) {
                let (forks, _gone) = forks_of(newer.view, &catalog);
                let cx = DatabaseContext {
                    cluster: newer.view,
                    catalog: &catalog,
                    forks: &forks,
                };
                left.extend(self.database(newer, &cx, &mut suspects, options, books));
            }
        }
        left
    }

    /// The suspects of one database. Those whose file is gone are forgotten with it.
    fn database(
        &mut self,
        newer: NewerView<'_>,
        cx: &DatabaseContext<'_>,
        suspects: &mut BTreeMap<(Oid, Oid, Fork), Vec<Suspect>>,
        options: &CheckOptions,
        books: &mut RunLedger,
    ) -> Vec<Suspect> {
        let (mut jobs, mut left): (Vec<ForkCx<'_>>, _) = (Vec::new(), Vec::new());
        for files in cx.forks.iter().filter(|files| files.temporary.is_none()) {
            let key = (files.home.tablespace, files.filenode, files.fork);
            let Some(own) = suspects.remove(&key) else {
                continue;
            };
            let job = fork_cx(cx, files, options.level);
            for suspect in own {
                left.extend(self.page(newer, (jobs.len(), &job), suspect, options, books));
            }
            jobs.push(job);
        }
        books.settle_damage(&jobs);
        left
    }

    /// The suspect, where it is open still.
    fn page(
        &mut self,
        newer: NewerView<'_>,
        (number, job): (usize, &ForkCx<'_>),
        suspect: Suspect,
        options: &CheckOptions,
        books: &mut RunLedger,
    ) -> Option<Suspect> {
        let spot = suspect.place;
        let wrong = self.wrong(newer.view, job, spot);
        let mut wrong = wrong.unwrap_or_else(|failure| {
            let fault = InternalFault {
                path: job.files.path(segment_of(newer.view, spot)),
                block: Some(spot.block),
                message: failure.message,
            };
            books.not_checked(fault.not_checked());
            None
        })?;
        let now = blake3::hash(&wrong.page);
        let rules = rules_of(&wrong, job);
        let lasts = |before: &BTreeSet<String>| !rules.is_disjoint(before);
        match newer.look.ruling(&suspect, Some(&now), lasts) {
            Ruling::Counts => {
                if self.server_agrees(newer.server, job, spot, &mut wrong) {
                    keep(newer.view, (number, job), spot, wrong, options, books);
                }
                None
            }
            // What it speaks of may have come since, as it was written since.
            _ if rules.is_empty() => None,
            Ruling::Again => Some(suspect.still(rules)),
            Ruling::Unsettled => {
                let segment = segment_of(newer.view, spot);
                books.unread.insert(job.files.path(segment));
                books.not_checked(NotChecked {
                    what: format!("block {} of {}", spot.block, job.files.path(0)),
                    why: "the server wrote it between any two looks".into(),
                    inherent: true,
                });
                None
            }
        }
    }

    /// Asks the server, where somebody can, and writes down what it says; false where it knows no
    /// such page any more.
    fn server_agrees(
        &mut self,
        server: &dyn LiveServer,
        job: &ForkCx<'_>,
        spot: Spot,
        wrong: &mut Wrong,
    ) -> bool {
        if wrong.seen != PageOutcome::Damaged || self.questions_left == 0 {
            return true;
        }
        self.questions_left -= 1;
        let says = server.ask(&AskedPage {
            database: job.database,
            tablespace: spot.file.tablespace,
            filenode: spot.file.filenode,
            fork: spot.fork,
            block: spot.block,
            holds_rows: spot.fork == Fork::Main && job.method == Some(AccessMethod::Heap),
        });
        let damage = |finding: &&mut Finding| finding.severity == Severity::Damage;
        for finding in wrong.findings.iter_mut().filter(damage) {
            match &says {
                None | Some(ServerSays::Gone) => {}
                Some(ServerSays::Refuses(words)) => {
                    finding.server_says = Some(words.clone());
                    tell(finding, "refuses the page");
                }
                Some(ServerSays::Reads) => tell(finding, "reads the page"),
            }
        }
        says != Some(ServerSays::Gone)
    }

    /// What is wrong with the page now; nothing where it is sound or gone.
    ///
    /// # Errors
    /// Where one of our checks fails on it.
    fn wrong(
        &mut self,
        view: &Cluster,
        job: &ForkCx<'_>,
        spot: Spot,
    ) -> Result<Option<Wrong>, Panicked> {
        let Some(page) = page_of(view, job.files, spot) else {
            return Ok(None);
        };
        let mut notes = ThreadFindings {
            findings: Findings::default(),
            causes_left: self.causes_left,
            faces: None,
        };
        let looker = PageChecker::new(job, system_identifier(view));
        let seen = guarded(|| looker.look((&page, None), spot.block, &mut notes))?;
        self.causes_left = notes.causes_left;
        let findings = notes.findings.into_findings();
        let is_wrong = !findings.is_empty();
        Ok(is_wrong.then_some(Wrong {
            page,
            seen,
            findings,
        }))
    }
}

/// Tells what stayed open.
pub(super) fn tell_unseen(suspects: usize, books: &mut RunLedger) {
    if suspects > 0 {
        let gap = NotChecked {
            what: format!(
                "{suspects} in which something seemed wrong",
                suspects = plural(suspects, "page")
            ),
            why: "they could not be examined again".into(),
            inherent: false,
        };
        books.stays_open(None, gap);
    }
}

/// Of the page as its file has it now.
pub(super) fn print_of(cluster: &Cluster, spot: Spot) -> Option<blake3::Hash> {
    let files = files_of(cluster, spot)?;
    let page = page_of(cluster, &files, spot)?;
    Some(blake3::hash(&page))
}

/// What the server did when it was asked for the page.
fn tell(finding: &mut Finding, what: &str) {
    finding.facts.insert("the_server".into(), what.into());
}

/// It counts.
fn keep(
    view: &Cluster,
    (number, job): (usize, &ForkCx<'_>),
    spot: Spot,
    wrong: Wrong,
    options: &CheckOptions,
    books: &mut RunLedger,
) {
    if wrong.seen == PageOutcome::Damaged {
        let damaged = books.damaged.entry(number).or_default();
        damaged.add(u64::from(spot.block));
        let path = job.files.path(segment_of(view, spot));
        let (kept, max) = (&mut books.evidence, options.evidence);
        RunLedger::keep_evidence(kept, max, &path, spot.block, &wrong.page);
    }
    for finding in wrong.findings {
        books.findings.keep(finding);
    }
}

/// What is wrong above a note; without what compares with the end of the WAL, if the page is
/// younger than that end.
fn rules_of(wrong: &Wrong, job: &ForkCx<'_>) -> BTreeSet<String> {
    let lsn = Page::parse(&wrong.page).map(Page::pd_lsn);
    let is_young = lsn > job.wal_end();
    let severe = wrong
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Note);
    severe
        .filter(|finding| !(is_young && is_of_the_future(&finding.rule)))
        .map(|finding| finding.rule.clone())
        .collect()
}

/// By the fork they are in.
fn by_fork(suspects: Vec<Suspect>) -> BTreeMap<(Oid, Oid, Fork), Vec<Suspect>> {
    let mut by_fork: BTreeMap<_, Vec<Suspect>> = BTreeMap::new();
    for suspect in suspects {
        let Spot { file, fork, .. } = suspect.place;
        let key = (file.tablespace, file.filenode, fork);
        by_fork.entry(key).or_default().push(suspect);
    }
    by_fork
}

fn segment_of(cluster: &Cluster, spot: Spot) -> u32 {
    let whole = cluster.build.segment_blocks().max(1);
    u32::try_from(u64::from(spot.block) / whole).unwrap_or(u32::MAX)
}

/// The fork's files by name, whatever there is of them.
fn files_of(cluster: &Cluster, spot: Spot) -> Option<ForkFiles> {
    let mut homes = cluster.homes.iter();
    let home = homes.find(|home| {
        home.tablespace == spot.file.tablespace && home.database == spot.file.database
    })?;
    Some(ForkFiles {
        home: home.clone(),
        filenode: spot.file.filenode,
        fork: spot.fork,
        temporary: None,
        segments: Vec::new(),
    })
}

/// The page as its file has it now, and not one of a file that is gone and still open here.
fn page_of(cluster: &Cluster, files: &ForkFiles, spot: Spot) -> Option<Vec<u8>> {
    let source = cluster.source().as_ref();
    source.len(&files.path(segment_of(cluster, spot))).ok()?;
    read_block(source, files, cluster.build, spot.block)
}
