//! One page: checksum, quick look, checks, and the findings with root and followers.

use pgclinic_cluster::{Comparison, fork_place};
use pgclinic_format::checksum::{checksum_at, page_hash, page_hashes};
use pgclinic_format::index_page::{AccessMethod, has_line_pointers};
use pgclinic_format::{BlockNo, Fork, Lsn, Page};
use pgclinic_model::Severity;
use pgclinic_model::document::{FileKind, Finding, Level, Place};

use crate::btree::LeafSummaries;
use crate::check::{Checksum, ForkCx, PageCheck, PageClass, PageCx, Wants};
use crate::entries::named_blocks::NamedBlocks;
use crate::fast_path::{FastPath, FastPathVerdict};
use crate::findings::{Draft, Findings};
use crate::walker::run_ledger::Accuser;
use crate::walker::{contradicted_status, missing_wal};
use crate::{causes, consequences};

/// The checks of one fork, chosen once.
pub(crate) struct PageChecker<'a> {
    fork: &'a ForkCx<'a>,
    screen: FastPath<'a>,
    all: Vec<&'static dyn PageCheck>,
    /// For pages whose rows are plain.
    beside_plain: Vec<&'static dyn PageCheck>,
    /// For pages that are right but for what chains, hints and maps say of them.
    beside_right: Vec<&'static dyn PageCheck>,
    summed: bool,
    system_identifier: u64,
    holds_back: bool,
    /// Where the rows that entries of the fork name are noted, with the layout of its pages.
    named: Option<(AccessMethod, &'a NamedBlocks)>,
}

/// What one thread keeps of the pages that it looks at.
pub(crate) struct ThreadFindings {
    pub(crate) findings: Findings,
    /// Damaged pages whose cause is still searched for.
    pub(crate) causes_left: u32,
    /// Of the leaves of the fork at hand, where walks will ask for them.
    pub(crate) faces: Option<LeafSummaries>,
}

/// What came of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PageOutcome {
    /// Zeros only.
    Zeroed,
    /// Nothing to tell.
    Quiet,
    /// Findings, none of them damage.
    Noted,
    /// Damage.
    Damaged,
    /// Damage only if its accuser is right.
    Contradicted(Accuser),
    /// What is wrong may be so because the page is on its way: nothing is told before a second
    /// look.
    Suspect,
    /// The same, of a page that is younger than the WAL that is known, and speaks only of that.
    Young(Lsn),
}

impl<'a> PageChecker<'a> {
    pub(crate) fn new(fork: &'a ForkCx<'a>, system_identifier: u64) -> Self {
        let wanted = |check: &&&'static dyn PageCheck| {
            let wants = check.wants();
            wants.level <= fork.level && may_be_handed(wants.pages, fork)
        };
        let all: Vec<_> = page_checks().iter().filter(wanted).copied().collect();
        let beside = |glance: FastPathVerdict| {
            let left = all.iter().filter(|check| !glance.stands_in_for(**check));
            left.copied().collect()
        };
        let (beside_plain, beside_right) = (
            beside(FastPathVerdict::Plain),
            beside(FastPathVerdict::Right),
        );
        PageChecker {
            fork,
            screen: FastPath::new(fork),
            all,
            beside_plain,
            beside_right,
            summed: fork.cluster.and_then(pgclinic_cluster::Cluster::checksums) == Some(true),
            system_identifier,
            holds_back: false,
            named: None,
        }
    }

    /// Notes which blocks of the table sound pages of this index name.
    pub(crate) fn noting(self, named: Option<&'a NamedBlocks>) -> Self {
        PageChecker {
            named: self.fork.method.zip(named),
            ..self
        }
    }

    /// Where a server is at work, says nothing of a page that asks for a second look but that it
    /// does.
    pub(crate) fn holding_back(self) -> Self {
        PageChecker {
            holds_back: self.fork.is_running(),
            ..self
        }
    }

    /// A server is at work on the fork.
    pub(crate) fn is_running(&self) -> bool {
        self.fork.is_running()
    }

    /// The checksums of many pages without their places, four at a time. Empty where pages carry
    /// no checksums.
    pub(crate) fn hashes<'p>(&self, pages: impl Iterator<Item = &'p [u8]>) -> Vec<u32> {
        if !self.summed {
            return Vec::new();
        }
        let pages: Vec<&[u8]> = pages.collect();
        let (fours, rest) = pages.as_chunks::<4>();
        let hashes = fours.iter().flat_map(|four| page_hashes(*four));
        hashes
            .chain(rest.iter().map(|page| page_hash(page)))
            .collect()
    }

    /// Walks along the levels of a tree will ask for the faces of its leaves.
    pub(crate) fn wants_faces(&self) -> bool {
        // Comparisons wait until the server has stopped.
        let of_one_moment = self.fork.may_compare(Comparison::PagesOfOnePass);
        let compared = self.fork.level >= Level::Structure && of_one_moment;
        compared && self.fork.key_order.is_some()
    }

    /// Looks at one page and keeps what is found. `hash` is the page's own, if it is known already.
    pub(crate) fn look(
        &self,
        (bytes, hash): (&[u8], Option<u32>),
        block: BlockNo,
        notes: &mut ThreadFindings,
    ) -> PageOutcome {
        let Some(page) = Page::parse(bytes) else {
            return PageOutcome::Quiet;
        };
        if page.is_new() && page.is_zeroed() {
            return self.zeroed(page, block, notes);
        }
        let cx = PageCx {
            fork: self.fork,
            block,
            checksum: self.checksum(page, block, hash),
        };
        let sound = matches!(cx.checksum, Checksum::Off | Checksum::Right);
        let glance = self.screen.glance_keeping(page, block, &mut |leaf, last| {
            if let Some(faces) = notes.faces.as_mut().filter(|_| sound) {
                faces.keep(block, leaf, last);
            }
        });
        let checks = match glance {
            FastPathVerdict::Plain if sound => &self.beside_plain,
            FastPathVerdict::Right if sound => &self.beside_right,
            _ => &self.all,
        };
        for check in checks {
            if is_handed(check.wants().pages, page, self.fork) {
                check.check(page, &cx, &mut notes.findings);
            }
        }
        let seen = if notes.findings.is_quiet() {
            PageOutcome::Quiet
        } else {
            self.keep(page, &cx, notes)
        };
        // A damaged page is no witness.
        if let (Some((method, named)), PageOutcome::Quiet | PageOutcome::Noted) = (self.named, seen)
        {
            named.add_page(method, page);
        }
        seen
    }

    /// No check is handed a page of zeros, but some know when it must be another.
    fn zeroed(&self, page: Page<'_>, block: BlockNo, notes: &mut ThreadFindings) -> PageOutcome {
        let cx = PageCx {
            fork: self.fork,
            block,
            checksum: Checksum::Off,
        };
        for check in &self.all {
            check.check_zeroed(&cx, &mut notes.findings);
        }
        if notes.findings.is_quiet() {
            return PageOutcome::Zeroed;
        }
        self.keep(page, &cx, notes)
    }

    fn checksum(&self, page: Page<'_>, block: BlockNo, hash: Option<u32>) -> Checksum {
        if !self.summed || page.is_new() {
            return Checksum::Off;
        }
        match checksum_at(hash.unwrap_or_else(|| page_hash(page.bytes())), block) {
            computed if computed == page.pd_checksum() => Checksum::Right,
            computed => Checksum::Wrong { computed },
        }
    }

    fn keep(&self, page: Page<'_>, cx: &PageCx<'_>, notes: &mut ThreadFindings) -> PageOutcome {
        let mut drafts = notes.findings.take_drafts();
        consequences::drop_overtaken(&mut drafts, cx);
        consequences::complete(&mut drafts, page, cx);
        if let Some(seen) = self.held_back(&drafts, page) {
            return seen;
        }
        let damaged = drafts
            .iter()
            .any(|draft| draft.severity == Severity::Damage);
        if damaged && notes.causes_left > 0 {
            notes.causes_left -= 1;
            let others = drafts
                .iter()
                .filter(|draft| draft.severity == Severity::Damage)
                .count()
                > 1;
            if let Some(root) = drafts
                .iter_mut()
                .find(|draft| draft.severity == Severity::Damage)
            {
                root.cause = root.cause.take().or_else(|| causes::likely(page, cx));
                // A chance match does not explain damage of other kinds on the page.
                root.cause.take_if(|cause| others && cause.is_a_guess());
            }
        }
        let accuser = only_accuser(&drafts);
        for finding in self.finish(drafts, cx) {
            notes.findings.keep(finding);
        }
        match accuser.filter(|_| damaged) {
            Some(accuser) => PageOutcome::Contradicted(accuser),
            None if damaged => PageOutcome::Damaged,
            None => PageOutcome::Noted,
        }
    }

    /// Why nothing is told of the page now.
    fn held_back(&self, drafts: &[Draft], page: Page<'_>) -> Option<PageOutcome> {
        let severe = || {
            drafts
                .iter()
                .filter(|draft| draft.severity != Severity::Note)
        };
        if !self.holds_back || severe().next().is_none() {
            return None;
        }
        let known = self.fork.wal_end();
        let is_young = known.is_some_and(|known| page.pd_lsn() > known);
        Some(
            if is_young && severe().all(|draft| consequences::is_of_the_future(draft.rule.name)) {
                PageOutcome::Young(page.pd_lsn())
            } else {
                PageOutcome::Suspect
            },
        )
    }

    /// Gives the drafts their place and root.
    fn finish(&self, drafts: Vec<Draft>, cx: &PageCx<'_>) -> Vec<Finding> {
        let place = self.place(cx.block);
        let mut found: Vec<Finding> = drafts
            .into_iter()
            .map(|draft| draft.finish(&place, self.system_identifier))
            .collect();
        let mut roots: Vec<(Option<u16>, String)> = Vec::new();
        for finding in found
            .iter_mut()
            .filter(|finding| finding.severity == Severity::Damage)
        {
            let item = finding.place.item;
            let root = roots.iter().find(|(of, _)| of.is_none() || *of == item);
            match root {
                Some((_, id)) if *id != finding.id => finding.caused_by = Some(id.clone()),
                Some(_) => {}
                None => roots.push((item, finding.id.clone())),
            }
        }
        for finding in &mut found {
            name_column(finding, self.fork);
        }
        found
    }

    fn place(&self, block: BlockNo) -> Place {
        let segment = u64::from(block) / self.fork.build.segment_blocks().max(1);
        let segment = u32::try_from(segment).unwrap_or(u32::MAX);
        let fork = self.fork;
        Place {
            block: Some(block),
            kind: fork.kind,
            ..fork_place(fork.database, fork.relation, fork.files, segment)
        }
    }
}

/// Whom the drafts of damage all rest on.
fn only_accuser(drafts: &[Draft]) -> Option<Accuser> {
    if contradicted_status::is_all(drafts) {
        return Some(Accuser::CommitLog);
    }
    missing_wal::is_all(drafts).then_some(Accuser::EndOfWal)
}

fn name_column(finding: &mut Finding, fork: &ForkCx<'_>) {
    let Some(attribute) = &mut finding.place.attribute else {
        return;
    };
    let columns = fork.relation.and_then(|relation| relation.columns.as_ref());
    let column =
        columns.and_then(|columns| columns.get(usize::from(attribute.number).checked_sub(1)?));
    attribute.name = column.map(|column| column.name.clone());
}

/// The register; in tests with a check that fails on a page that is marked for it.
fn page_checks() -> &'static [&'static dyn PageCheck] {
    #[cfg(test)]
    return crate::walker::planted::PAGE_CHECKS.as_slice();
    #[cfg(not(test))]
    crate::register::PAGE_CHECKS.as_slice()
}

/// The walker asks a check of these wants about this page: for tests that stand in for it.
pub fn is_asked(wants: Wants, page: Page<'_>, fork: &ForkCx<'_>) -> bool {
    wants.level <= fork.level
        && may_be_handed(wants.pages, fork)
        && is_handed(wants.pages, page, fork)
}

/// Some page of this fork may be of the class.
fn may_be_handed(class: PageClass, fork: &ForkCx<'_>) -> bool {
    let main = fork.fork() == Fork::Main;
    match class {
        PageClass::Any => true,
        PageClass::Heap => main && fork.method == Some(AccessMethod::Heap),
        PageClass::Toast => main && fork.kind == FileKind::Toast,
        PageClass::LinePointers => main && fork.method.is_some(),
        PageClass::Index => main && fork.kind == FileKind::Index && fork.method.is_some(),
        PageClass::Sequence => main && fork.method == Some(AccessMethod::Sequence),
        PageClass::VisibilityMap => fork.fork() == Fork::Vm,
        PageClass::FreeSpaceMap => fork.fork() == Fork::Fsm,
    }
}

/// This page is of the class: behind a header that the server would not accept, nothing is.
fn is_handed(class: PageClass, page: Page<'_>, fork: &ForkCx<'_>) -> bool {
    match class {
        PageClass::Any => true,
        _ if page.is_new() || !page.header_is_sane_to_the_server() => false,
        PageClass::LinePointers => fork
            .method
            .is_some_and(|method| has_line_pointers(method, page)),
        _ => true,
    }
}

/// Looks at a single page: for `inspect`, injuries and tests.
pub fn check_page(
    bytes: &[u8],
    block: BlockNo,
    fork: &ForkCx<'_>,
    system_identifier: u64,
) -> Vec<Finding> {
    let mut notes = ThreadFindings {
        findings: Findings::default(),
        causes_left: 1,
        faces: None,
    };
    let looker = PageChecker::new(fork, system_identifier);
    looker.look((bytes, None), block, &mut notes);
    let mut found = notes.findings.into_findings();
    found.sort_by(|a, b| {
        (a.caused_by.is_some(), a.place.item).cmp(&(b.caused_by.is_some(), b.place.item))
    });
    found
}
