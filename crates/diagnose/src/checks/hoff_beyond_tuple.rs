//! `t_hoff` lies behind the last byte of the tuple.

use pgclinic_format::Page;
use pgclinic_model::{Rule, Severity};

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::Findings;
use crate::tuples::{HOFF, tuples};

/// The rule.
pub static HOFF_BEYOND_TUPLE: Rule = Rule {
    name: "hoff-beyond-tuple",
    severity: Severity::Damage,
    summary: "the values of a row begin behind its end",
    explain: "\
`t_hoff` says at which byte of the row its values begin. Here that is behind the last byte that the line \
pointer gives the row. Either `t_hoff` was overwritten, or the line pointer was cut short.

The server tests neither. It reads the values from whatever lies behind the row, mostly another row, and \
shows that row's bytes as this one's values: wrong answers, `invalid memory alloc request size`, or a \
crash of the server process. `amcheck` says `data begins at offset … beyond the tuple length …`.

If `hoff-mismatch` stands beside this finding, suspect `t_hoff`; if it does not, suspect the length in \
the line pointer. In both cases the values are most likely still on the page.

Copy the cluster first. Take the page from a backup or a standby whose copy is sound. Do not update the \
row before, since that would copy the wrong bytes.",
};

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
