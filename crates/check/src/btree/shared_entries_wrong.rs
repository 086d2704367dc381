//! The meta page of a btree lets equal keys share an entry where equal keys need not look alike.
//!
//! Truth: `_bt_allequalimage` in `src/backend/access/nbtree/nbtutils.c`, `bt_index_check_internal`
//! in `contrib/amcheck/verify_nbtree.c`.

use pgclinic_format::Page;
use pgclinic_format::btree::{BTP_META, Meta};
use pgclinic_format::index_page::{AccessMethod, btree_flags};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static BTREE_SHARED_ENTRIES_WRONG: Rule =
    Rule::from_page(include_str!("../../rules/btree-shared-entries-wrong.md"));

/// See [`BTREE_SHARED_ENTRIES_WRONG`].
pub struct BtreeSharedEntriesWrong;

impl PageCheck for BtreeSharedEntriesWrong {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&BTREE_SHARED_ENTRIES_WRONG] }
    }

    fn wants(&self) -> Wants {
        Wants {
            level: Level::Structure,
            pages: PageClass::Index,
            screened: false,
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let is_meta = cx.fork.method == Some(AccessMethod::Btree)
            && cx.block == 0
            && btree_flags(page).is_some_and(|flags| flags & BTP_META != 0);
        let Some(meta) = Meta::parse(page).filter(|meta| is_meta && meta.all_equal_image) else {
            return;
        };
        let Some(keys) = &cx.fork.key_order else {
            return;
        };
        if keys.is_equal_image() != Some(false) {
            return;
        }
        let message = format!(
            "btm_allequalimage is set in version {}, and equal keys need not look alike",
            meta.version
        );
        let at = Meta::ALL_EQUAL_IMAGE_AT;
        let draft = Draft::new(&BTREE_SHARED_ENTRIES_WRONG, message).bytes(at, at + 1);
        let index = cx.fork.relation.and_then(|own| own.index.as_ref());
        let known = index.is_some_and(pgclinic_cluster::Index::has_interval);
        out.add(if known {
            draft.severity(Severity::Warning)
        } else {
            draft
        });
    }
}
