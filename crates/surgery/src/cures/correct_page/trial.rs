//! Whether a page would be sound, by every check that needs one page and nothing else.

use pgclinic_check::{ForkCx, check_page, fork_cx};
use pgclinic_cluster::{DatabaseContext, ForkFiles};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::Severity;
use pgclinic_model::document::Level;

const CHECKSUM_MISMATCH: &str = "checksum-mismatch";
const MISPLACED_PAGE: &str = "misplaced-page";

/// The place of a page, where pages are tried.
pub(super) struct PageTrial<'a> {
    pub(super) fork: ForkCx<'a>,
    pub(super) block: BlockNo,
    identifier: u64,
}

/// What is wrong with a page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PageDamage {
    /// Its checksum is wrong.
    checksum: bool,
    /// Something besides its checksum is wrong.
    pub(super) is_structural: bool,
    /// Its checksum is right at another block.
    pub(super) is_misplaced: bool,
    /// Line pointers that are named.
    pub(super) items: Vec<u16>,
}

impl PageDamage {
    /// Nothing is.
    pub(super) fn is_empty(&self) -> bool {
        !self.checksum && !self.is_structural
    }
}

impl<'a> PageTrial<'a> {
    /// At this block. Values are decoded, too: the more a page must satisfy, the less is chance.
    pub(super) fn new(
        database: &DatabaseContext<'a>,
        files: &'a ForkFiles,
        block: BlockNo,
    ) -> Self {
        let control = database.cluster.control.trusted();
        PageTrial {
            fork: fork_cx(database, files, Level::Full),
            block,
            identifier: control.map_or(0, |control| control.system_identifier),
        }
    }

    /// Pages carry checksums.
    pub(super) fn has_checksums(&self) -> bool {
        self.fork
            .cluster
            .and_then(pgclinic_cluster::Cluster::checksums)
            == Some(true)
    }

    /// Nothing is wrong with these bytes. The checksum is asked first: hardly any candidate has it.
    pub(super) fn is_sound(&self, bytes: &[u8]) -> bool {
        let may_be = !self.has_checksums() || self.checksum_is_right(bytes);
        may_be && self.damage(bytes).is_empty()
    }

    /// The stored checksum is that of the bytes.
    pub(super) fn checksum_is_right(&self, bytes: &[u8]) -> bool {
        let stored = Page::parse(bytes).map(Page::pd_checksum);
        stored == Some(page_checksum(bytes, self.block))
    }

    /// What is wrong with these bytes.
    pub(super) fn damage(&self, bytes: &[u8]) -> PageDamage {
        let mut damage = PageDamage::default();
        let found = check_page(bytes, self.block, &self.fork, self.identifier);
        for finding in found
            .iter()
            .filter(|found| found.severity == Severity::Damage)
        {
            match finding.rule.as_str() {
                CHECKSUM_MISMATCH => damage.checksum = true,
                rule => {
                    damage.is_structural = true;
                    damage.is_misplaced |= rule == MISPLACED_PAGE;
                    damage.items.extend(finding.place.item);
                }
            }
        }
        damage
    }
}
