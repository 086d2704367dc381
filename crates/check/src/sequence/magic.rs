//! The page of a sequence does not say that it is one.

use pgclinic_format::Page;
use pgclinic_format::sequence::{SEQUENCE_MAGIC, SPECIAL_BYTES, magic};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};

/// The rule.
pub static SEQUENCE_MAGIC_RULE: Rule =
    Rule::from_page(include_str!("../../rules/sequence-magic.md"));

/// See [`SEQUENCE_MAGIC_RULE`].
pub struct SequenceMagic;

impl PageCheck for SequenceMagic {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SEQUENCE_MAGIC_RULE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            pages: PageClass::Sequence,
            screened: false,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        // A special space of another size has a rule of its own.
        let start = usize::from(page.pd_special());
        let Some(found) = magic(page).filter(|_| start + SPECIAL_BYTES == page.len()) else {
            return;
        };
        if found == SEQUENCE_MAGIC {
            return;
        }
        let message = format!("magic {found:#010x} is not {SEQUENCE_MAGIC:#06x}");
        let draft = Draft::new(&SEQUENCE_MAGIC_RULE, message).bytes(start, start + 4);
        let words = cx.fork.relation.map(|relation| {
            let name = &relation.name;
            format!("ERROR:  bad magic number in sequence \"{name}\": {found:08X}")
        });
        out.add(
            words
                .into_iter()
                .fold(draft.fact("magic", found), Draft::server_says),
        );
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::PageBuilder;

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn the_mark_stands_at_the_end() {
        let page = |mark| PageBuilder::new(8192, &[mark, 0x17, 0, 0, 0, 0, 0, 0]).finish(0);
        let told = Trial::sequence().told(&SequenceMagic, &page(0x16));
        assert_eq!(told, ["sequence-magic: magic 0x00001716 is not 0x1717"]);
        let says = Trial::sequence().server_says(&SequenceMagic, &page(0x16));
        let expected = "ERROR:  bad magic number in sequence \"docs\": 00001716";
        assert_eq!(says.as_deref(), Some(expected));
        assert!(
            Trial::sequence()
                .told(&SequenceMagic, &page(0x17))
                .is_empty()
        );
    }
}
