//! `t_hoff` lies behind the last byte of the tuple.

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::heap::tuples::{HOFF, tuples};

/// The rule.
pub static HOFF_BEYOND_TUPLE: Rule =
    Rule::from_page(include_str!("../../rules/hoff-beyond-tuple.md"));

/// See [`HOFF_BEYOND_TUPLE`].
pub struct HoffBeyondTuple;

impl PageCheck for HoffBeyondTuple {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&HOFF_BEYOND_TUPLE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let (hoff, len) = (stored.tuple.t_hoff(), stored.tuple.bytes().len());
            if usize::from(hoff) <= len {
                continue;
            }
            let message = format!("t_hoff {hoff} is beyond the {len} bytes of the tuple");
            let draft = stored.draft(&HOFF_BEYOND_TUPLE, message, HOFF);
            out.add(draft.fact("hoff_bytes", hoff).fact("len_bytes", len));
        }
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn a_row_without_values_ends_where_they_would_begin() {
        let mut tuple = TupleBuilder::new(3).data(&[1; 34]).finish();
        tuple[22] = 24 + 128;
        let page = PageBuilder::new(8192, &[])
            .item(&TupleBuilder::new(0).finish())
            .item(&tuple)
            .finish(0);
        let expected = "2 hoff-beyond-tuple: t_hoff 152 is beyond the 58 bytes of the tuple";
        assert_eq!(Trial::table().told(&HoffBeyondTuple, &page), [expected]);
    }
}
