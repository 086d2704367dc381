//! The flags of a GIN page contradict each other.
//!
//! Truth: `src/include/access/ginblock.h`.

use pgclinic_format::Page;
use pgclinic_format::gin::Opaque;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static GIN_PAGE_FLAGS: Rule = Rule::from_page(include_str!("../../rules/gin-page-flags.md"));

/// See [`GIN_PAGE_FLAGS`].
pub struct GinPageFlags;

impl PageCheck for GinPageFlags {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&GIN_PAGE_FLAGS] }
    }

    fn wants(&self) -> Wants {
        Wants::INDEX
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.method != Some(AccessMethod::Gin) || page.is_new() {
            return;
        }
        let Some(opaque) = Opaque::of(page) else {
            return;
        };
        let at = usize::from(page.pd_special());
        if let Some(why) = opaque.contradiction() {
            let message = format!("flags {:#06x}: {why}", opaque.flags);
            out.add(Draft::new(&GIN_PAGE_FLAGS, message).bytes(at + 6, at + 8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork_trial::ForkTrial;
    use pgclinic_format::build::PageBuilder;

    #[test]
    fn a_leaf_of_keys_cannot_be_compressed() {
        let page = |flags| PageBuilder::new(8192, &[0xFF, 0xFF, 0xFF, 0xFF, 0, 0, flags, 0]);
        let pages = [page(0x82).finish(0), page(0x83).finish(1)];
        let trial = ForkTrial::new(AccessMethod::Gin, &pages);
        assert_eq!(
            trial.messages(&GinPageFlags, 0),
            ["flags 0x0082: only a posting tree page can be compressed"]
        );
        assert!(trial.messages(&GinPageFlags, 1).is_empty());
    }
}
