//! The values in a sequence that no server writes.

use std::ops::Range;

use pgclinic_format::Page;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::sequence::tuple::{SequenceRow, row_of};

/// The rule.
pub static SEQUENCE_VALUE: Rule = Rule::from_page(include_str!("../../rules/sequence-value.md"));

/// See [`SEQUENCE_VALUE`].
pub struct SequenceValue;

impl PageCheck for SequenceValue {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&SEQUENCE_VALUE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            pages: PageClass::Sequence,
            screened: false,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let Ok(row) = row_of(page) else { return };
        let [_, log_cnt, is_called] = &row.values;
        if let Some(count) = number(&row, log_cnt).filter(|count| *count < 0) {
            out.add(tell(
                &row,
                2,
                log_cnt,
                format!("log_cnt {count} is negative"),
            ));
        }
        if let Some(byte) = row.bytes.get(is_called.start).filter(|byte| **byte > 1) {
            let message = format!("is_called {byte} is neither 0 nor 1");
            out.add(tell(&row, 3, is_called, message));
        }
    }
}

fn number(row: &SequenceRow<'_>, range: &Range<usize>) -> Option<i64> {
    let bytes = row.bytes.get(range.clone())?.first_chunk()?;
    Some(i64::from_le_bytes(*bytes))
}

fn tell(row: &SequenceRow<'_>, attribute: u16, range: &Range<usize>, message: String) -> Draft {
    let (start, end) = (row.start + range.start, row.start + range.end);
    Draft::new(&SEQUENCE_VALUE, message)
        .item(1)
        .attribute(attribute)
        .bytes(start, end)
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn any_last_value_but_not_any_count_or_flag() {
        let told = |log_cnt: i64, is_called: u8| {
            let data = [
                &(-5i64).to_le_bytes()[..],
                &log_cnt.to_le_bytes(),
                &[is_called],
            ]
            .concat();
            let row = TupleBuilder::new(3).xids(2, 0).data(&data).finish();
            let page = PageBuilder::new(8192, &[0x17, 0x17, 0, 0, 0, 0, 0, 0]).item(&row);
            Trial::sequence().told(&SequenceValue, &page.finish(0))
        };
        assert!(told(32, 1).is_empty() && told(0, 0).is_empty());
        let expected = [
            "1 sequence-value: log_cnt -1 is negative",
            "1 sequence-value: is_called 2 is neither 0 nor 1",
        ];
        assert_eq!(told(-1, 2), expected);
    }
}
