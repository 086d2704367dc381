//! A check that fails on a page which asks for it, and what becomes of the run.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use pgclinic_format::Page;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::{Level, Target, Verdict};
use pgclinic_model::{Progress, Rule, Selection};
use pgclinic_spill::MemoryPlan;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::fork_trial::ForkTrial;
use crate::register;
use crate::walker::{CheckOptions, check_file};

/// The register and the check that fails.
pub(super) static PAGE_CHECKS: LazyLock<Vec<&'static dyn PageCheck>> = LazyLock::new(|| {
    let all = register::PAGE_CHECKS.iter().copied();
    all.chain([&FailsOnRequest as &dyn PageCheck]).collect()
});

/// No page of a server holds these bytes in the middle of its hole.
const REQUEST: &[u8] = b"pgclinic fails on this page";
const REQUEST_OFFSET: usize = 4096;

struct FailsOnRequest;

impl PageCheck for FailsOnRequest {
    fn rules(&self) -> &'static [&'static Rule] {
        &[]
    }

    fn wants(&self) -> Wants {
        Wants {
            screened: false,
            ..Wants::EVERY_PAGE
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, _: &mut Findings) {
        let bytes = page.bytes().get(REQUEST_OFFSET..).unwrap_or_default();
        assert!(
            !bytes.starts_with(REQUEST),
            "block {} asked for it",
            cx.block
        );
    }
}

struct Unhurried;

impl Progress for Unhurried {
    fn expect(&self, _: u64) {}

    fn advance(&self, _: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

/// The page of a table on which the check fails.
pub(crate) fn page_that_asks() -> Vec<u8> {
    let mut page = empty_page();
    page[REQUEST_OFFSET..REQUEST_OFFSET + REQUEST.len()].copy_from_slice(REQUEST);
    page
}

/// An empty page of a table: a header, and a hole from its end to the end of the page.
pub(crate) fn empty_page() -> Vec<u8> {
    let mut page = vec![0; 8192];
    for (offset, field) in [(12, 24u16), (14, 8192), (16, 8192), (18, 8192 | 4)] {
        page[offset..offset + 2].copy_from_slice(&field.to_le_bytes());
    }
    page
}

#[test]
fn a_page_on_which_a_check_fails_ends_neither_the_run_nor_the_report() {
    let mut pages = vec![empty_page(); 40];
    pages[3] = page_that_asks();
    // What is wrong elsewhere is found all the same: pd_lower beyond pd_upper.
    pages[35][12..14].copy_from_slice(&8190u16.to_le_bytes());
    pages[35][14..16].copy_from_slice(&8000u16.to_le_bytes());
    let trial = ForkTrial::new(AccessMethod::Heap, &pages);
    let fork = trial.fork();
    for threads in [1, 2] {
        let options = CheckOptions {
            level: Level::Structure,
            threads: NonZeroUsize::new(threads).expect("a thread"),
            evidence: 0,
            selection: Selection::default(),
            spec: "base/5/16384".into(),
            memory: MemoryPlan::default(),
            spill_folder: std::path::PathBuf::new(),
            since: None,
        };
        let source = fork.source.expect("the trial has a source");
        let forks = std::slice::from_ref(&fork);
        let document = check_file(forks, source, Target::default(), &options, &Unhurried);
        assert_eq!(document.verdict, Verdict::Damaged);
        let found: Vec<_> = document
            .findings
            .iter()
            .map(|finding| (finding.rule.as_str(), finding.place.block))
            .collect();
        assert_eq!(found, [("lower-beyond-upper", Some(35))]);
        assert_eq!(document.coverage.bytes_skipped, 8192);
        assert!(document.coverage.is_balanced());
        let internal: Vec<_> = document
            .coverage
            .not_checked
            .iter()
            .filter(|entry| entry.what.starts_with("internal: "))
            .collect();
        let [internal] = internal.as_slice() else {
            panic!("one page failed, not {internal:?}");
        };
        assert_eq!(internal.what, "internal: block 3 of base/5/16384");
        assert!(internal.why.contains("block 3 asked for it") && !internal.inherent);
    }
}
