//! A chunk is empty, or larger than any chunk.

use pgclinic_format::{Page, Varlena};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::Findings;
use crate::toast::chunks::{Chunk, chunks};

/// The rule.
pub static CHUNK_SIZE_OUT_OF_RANGE: Rule =
    Rule::from_page(include_str!("../../rules/chunk-size-out-of-range.md"));

/// See [`CHUNK_SIZE_OUT_OF_RANGE`].
pub struct ChunkSizeOutOfRange;

impl PageCheck for ChunkSizeOutOfRange {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&CHUNK_SIZE_OUT_OF_RANGE] }
    }

    fn wants(&self) -> Wants {
        Wants {
            pages: PageClass::Toast,
            screened: false,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        let most = usize::try_from(cx.fork.build.toast_chunk).unwrap_or(usize::MAX);
        for chunk in chunks(page) {
            if let Some(message) = trouble(&chunk, most) {
                let tuple = chunk.stored.tuple.bytes().len();
                let range = chunk.chunk_data.as_ref().map(|(_, range)| range.clone());
                let range = range.unwrap_or(tuple..tuple);
                let draft = chunk.stored.draft(&CHUNK_SIZE_OUT_OF_RANGE, message, range);
                out.add(draft.attribute(3));
            }
        }
    }
}

fn trouble(chunk: &Chunk<'_>, most: usize) -> Option<String> {
    let len = match chunk.chunk_data {
        None => return Some(format!("chunk_data of {chunk} is null")),
        Some((Varlena::Short(data) | Varlena::Plain(data), _)) => data.len(),
        Some(_) => return None,
    };
    match len {
        0 => Some(format!("chunk_data of {chunk} is empty")),
        _ if len <= most => None,
        _ => Some(format!(
            "chunk_data of {chunk} has {len} bytes, more than the {most} of a full chunk"
        )),
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn a_chunk_has_1_to_1996_bytes() {
        let chunk = |len: u32| {
            let keys = [
                [0x10, 0x40, 0, 0],
                [2, 0, 0, 0],
                ((len + 4) << 2).to_le_bytes(),
            ];
            let tuple = TupleBuilder::new(3).data(&keys.concat());
            tuple.data(&vec![b'x'; len as usize]).finish()
        };
        let null = TupleBuilder::new(3).nulls(&[0b011]).data(&[9; 8]);
        let page = PageBuilder::new(8192, &[])
            .item(&chunk(1))
            .item(&chunk(1996))
            .item(&chunk(1997))
            .item(&chunk(0))
            .item(&null.finish())
            .finish(0);
        let expected = [
            "3 chunk-size-out-of-range: chunk_data of chunk 2 of value 16400 has 1997 bytes, \
             more than the 1996 of a full chunk",
            "4 chunk-size-out-of-range: chunk_data of chunk 2 of value 16400 is empty",
            "5 chunk-size-out-of-range: chunk_data of chunk 151587081 of value 151587081 is null",
        ];
        assert_eq!(Trial::toast().told(&ChunkSizeOutOfRange, &page), expected);
    }
}
