//! The stored checksum is not the one of the bytes.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{Checksum, PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub const CHECKSUM_MISMATCH: Rule = Rule {
    name: "checksum-mismatch",
    severity: Severity::Damage,
    summary: "the page's bytes do not fit the checksum they carry",
    explain: "\
The page carries a checksum of its own bytes and its place. It does not fit: the bytes, the checksum \
or the place have changed since the server wrote the page.

The server says `page verification failed, calculated checksum … but expected …` and then `invalid \
page in block …`, and refuses the page: all its rows are out of reach, also for `pg_dump`.

The cause, where it can be told, stands with the finding: a page written to the wrong place, a torn \
write, sectors of zeros, text written over it, a single flipped bit. Look at memory, disk, controller \
and file system, and at what wrote to the files beside the server.

Take a copy first. Then restore the page from a backup or a standby whose copy is sound. With \
`ignore_checksum_failure` the server would work with the page as it is, and may write it back with a \
checksum that hides the damage; `zero_damaged_pages` throws its rows away.",
};

/// See [`CHECKSUM_MISMATCH`].
pub struct ChecksumMismatch;

impl PageCheck for ChecksumMismatch {
    fn rules(&self) -> &'static [&'static Rule] {
        &[&CHECKSUM_MISMATCH]
    }

    fn wants(&self) -> Wants {
        Wants::EVERY_PAGE
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let Checksum::Wrong { computed } = cx.checksum else {
            return;
        };
        let stored = page.pd_checksum();
        let message = format!("the page carries checksum {stored}, its bytes ask for {computed}");
        let draft = Draft::new(&CHECKSUM_MISMATCH, message).bytes(8, 10);
        out.add(draft.fact("stored", stored).fact("computed", computed));
    }
}
