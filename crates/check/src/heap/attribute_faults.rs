//! The walk over a row's attributes comes to a place that cannot be.

use pgclinic_format::attribute::AttributeFaultKind;
use pgclinic_format::varlena::{VARTAG_ONDISK, VarlenaFault};
use pgclinic_format::{AttributeFault, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{StoredTuple, columns_apply, tuples};

/// The rule.
pub static ATTRIBUTE_BEYOND_TUPLE: Rule =
    Rule::from_page(include_str!("../../rules/attribute-beyond-tuple.md"));

/// The rule.
pub static VARLENA_LENGTH: Rule = Rule::from_page(include_str!("../../rules/varlena-length.md"));

/// The rule.
pub static VARLENA_TAG: Rule = Rule::from_page(include_str!("../../rules/varlena-tag.md"));

/// See [`ATTRIBUTE_BEYOND_TUPLE`], [`VARLENA_LENGTH`] and [`VARLENA_TAG`].
pub struct AttributeFaults;

impl PageCheck for AttributeFaults {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ATTRIBUTE_BEYOND_TUPLE, &VARLENA_LENGTH, &VARLENA_TAG] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        for stored in tuples(page) {
            let walk = stored.attributes(cx).into_iter().flatten();
            let fault = walk.filter_map(Result::err).next();
            if let Some(fault) = fault.filter(|_| columns_apply(stored.tuple, cx.fork)) {
                out.add(tell(stored, fault));
            }
        }
    }
}

fn tell(stored: StoredTuple<'_>, fault: AttributeFault) -> Draft {
    let (rule, message): (_, String) = match fault.kind {
        AttributeFaultKind::BeyondTuple { end, len } => (
            &ATTRIBUTE_BEYOND_TUPLE,
            format!("value ends at {end}, beyond the {len} bytes of the tuple"),
        ),
        AttributeFaultKind::Unterminated => (
            &ATTRIBUTE_BEYOND_TUPLE,
            format!("string from {} has no end in the tuple", fault.at),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Empty) => (
            &ATTRIBUTE_BEYOND_TUPLE,
            format!("value begins at {}, the end of the tuple", fault.at),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Beyond { claimed, available }) => (
            &VARLENA_LENGTH,
            format!("value claims {claimed} bytes where the tuple has {available} left"),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Short { claimed }) => (
            &VARLENA_LENGTH,
            format!("value claims {claimed} bytes, less than its own header"),
        ),
        AttributeFaultKind::Varlena(VarlenaFault::Tag { tag }) => (
            &VARLENA_TAG,
            format!("pointer has tag {tag}, and only {VARTAG_ONDISK} is ever stored"),
        ),
    };
    let at = fault.at.min(stored.tuple.bytes().len());
    stored
        .draft(rule, message, at..stored.tuple.bytes().len())
        .attribute(fault.attribute)
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};
    use pgclinic_format::heap_tuple::HEAP_XMIN_INVALID;

    use super::*;
    use crate::trial::Trial;

    fn told(columns: &[(i16, u8)], tuples: &[TupleBuilder]) -> Vec<String> {
        let page = tuples
            .iter()
            .fold(PageBuilder::new(8192, &[]), |page, tuple| {
                page.item(&tuple.clone().finish())
            });
        Trial::with_columns(columns).told(&AttributeFaults, &page.finish(0))
    }

    #[test]
    fn each_fault_has_its_rule() {
        let text = [(-1, 4), (4, 4)];
        let tuple = |data: &[u8]| TupleBuilder::new(2).data(data);
        let expected = [
            "2 attribute-beyond-tuple: value ends at 32, beyond the 30 bytes of the tuple",
            "3 varlena-length: value claims 120 bytes where the tuple has 2 left",
            "4 varlena-length: value claims 2 bytes, less than its own header",
            "5 varlena-tag: pointer has tag 3, and only 18 is ever stored",
            "6 attribute-beyond-tuple: value ends at 25, beyond the 24 bytes of the tuple",
        ];
        let tuples = [
            tuple(&[7, b'a', b'b', 0, 1, 0, 0, 0]),
            tuple(&[7, b'a', b'b', 0, 1, 0]),
            tuple(&[0xF1, b'a']),
            tuple(&[8, 0, 0, 0, 1, 0, 0, 0]),
            tuple(&[1, 3, 0, 0, 1, 0, 0, 0]),
            tuple(&[]),
        ];
        assert_eq!(told(&text, &tuples), expected);
    }

    #[test]
    fn a_string_needs_its_end() {
        let tuples = [TupleBuilder::new(1).data(b"abc")];
        let expected = "1 attribute-beyond-tuple: string from 24 has no end in the tuple";
        assert_eq!(told(&[(-2, 1)], &tuples), [expected]);
    }

    #[test]
    fn rows_of_a_rolled_back_transaction_may_have_had_other_columns() {
        let aborted = TupleBuilder::new(1).infomask(HEAP_XMIN_INVALID);
        let other_shape = TupleBuilder::new(2).data(&[1; 8]);
        assert!(told(&[(8, 8)], &[aborted.data(&[1; 2]), other_shape]).is_empty());
    }
}
