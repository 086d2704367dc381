//! A chunk has a number that no value is long enough for.

use pgclinic_format::Page;
use pgclinic_format::toast::MAX_VALUE_BYTES;
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::Findings;
use crate::toast::chunks::{Chunk, chunks};

/// The rule.
pub static CHUNK_NUMBER_OUT_OF_RANGE: Rule =
    Rule::from_page(include_str!("../../rules/chunk-number-out-of-range.md"));

/// See [`CHUNK_NUMBER_OUT_OF_RANGE`].
pub struct ChunkNumberOutOfRange;

impl PageCheck for ChunkNumberOutOfRange {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CHUNK_NUMBER_OUT_OF_RANGE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            pages: PageClass::Toast,
            screened: false,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let most = MAX_VALUE_BYTES / cx.fork.build.toast_chunk.max(1);
        for chunk in chunks(page) {
            if let Some(message) = trouble(&chunk, most) {
                let start = usize::from(chunk.stored.tuple.t_hoff());
                let end = (start + 8).min(chunk.stored.tuple.bytes().len());
                let draft = chunk
                    .stored
                    .draft(&CHUNK_NUMBER_OUT_OF_RANGE, message, start..end);
                let draft = draft.fact("chunk_id", chunk.chunk_id);
                out.add(draft.fact("chunk_seq", chunk.chunk_seq));
            }
        }
    }
}

fn trouble(chunk: &Chunk<'_>, most: u32) -> Option<String> {
    let (Some(value), Some(number)) = (chunk.chunk_id, chunk.chunk_seq) else {
        return Some(format!("{chunk} has a null for a number"));
    };
    let is_possible = u32::try_from(number).is_ok_and(|number| number <= most);
    (!is_possible)
        .then(|| format!("chunk_seq {number} of value {value} is not between 0 and {most}"))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn numbers_stop_where_a_gigabyte_does() {
        let chunk = |seq: i32| {
            let keys = [[0x10, 0x40, 0, 0], seq.to_le_bytes()].concat();
            let tuple = TupleBuilder::new(3).data(&keys);
            tuple.data(&[7, b'a', b'b']).finish()
        };
        let null = TupleBuilder::new(3).nulls(&[0b101]).data(&[1, 0, 0, 0, 3]);
        let page = PageBuilder::new(8192, &[])
            .item(&chunk(0))
            .item(&chunk(537_946))
            .item(&chunk(537_947))
            .item(&chunk(-1))
            .item(&null.finish())
            .finish(0);
        let expected = [
            "3 chunk-number-out-of-range: chunk_seq 537947 of value 16400 is not between 0 and 537946",
            "4 chunk-number-out-of-range: chunk_seq -1 of value 16400 is not between 0 and 537946",
            "5 chunk-number-out-of-range: chunk of value 1 has a null for a number",
        ];
        assert_eq!(Trial::toast().told(&ChunkNumberOutOfRange, &page), expected);
    }
}
