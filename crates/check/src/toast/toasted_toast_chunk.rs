//! A piece of a long value is itself compressed or a pointer.

use pgclinic_format::{ColumnLayout, Page, Varlena};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageClass, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::is_surely_live;
use crate::toast::chunks::{Chunk, chunks};

/// The rule.
pub static TOASTED_TOAST_CHUNK: Rule =
    Rule::from_page(include_str!("../../rules/toasted-toast-chunk.md"));

/// See [`TOASTED_TOAST_CHUNK`].
pub struct ToastedToastChunk;

impl PageCheck for ToastedToastChunk {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&TOASTED_TOAST_CHUNK] }
    }

    fn wants(&self) -> Wants {
        Wants {
            pages: PageClass::Toast,
            ..Wants::HEAP
        }
    }

    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        for chunk in chunks(page) {
            let Some((data, range)) = &chunk.chunk_data else {
                continue;
            };
            let what = match data {
                Varlena::Short(_) | Varlena::Plain(_) => continue,
                Varlena::Compressed(_) => "compressed",
                Varlena::External(_) => "a pointer to TOAST",
            };
            let message = format!("chunk_data of {chunk} is {what}");
            let draft = chunk
                .stored
                .draft(&TOASTED_TOAST_CHUNK, message, range.clone())
                .attribute(3);
            let words = server_words(&chunk, cx);
            out.add(words.into_iter().fold(draft, Draft::server_says));
        }
    }
}

/// Said by whoever reads the value; nobody does where a column was dropped that may own it.
fn server_words(chunk: &Chunk<'_>, cx: &PageCx<'_>) -> Option<String> {
    // The server takes a pointer for a short value of -1 bytes and complains about its size.
    let compressed = matches!(chunk.chunk_data, Some((Varlena::Compressed(_), _)));
    let name = &cx.fork.relation.filter(|_| compressed)?.name;
    let mut owners = cx.fork.toast_of?.columns.as_ref()?.iter();
    let is_varlena = |layout: ColumnLayout| layout.attlen == -1;
    let all_are_read = owners.all(|column| !(column.dropped && is_varlena(column.layout)));
    let value = chunk.chunk_id?;
    (all_are_read && is_surely_live(chunk.stored.tuple, cx.fork))
        .then(|| format!("ERROR:  found toasted toast chunk for toast value {value} in {name}"))
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn chunks_are_stored_as_they_are() {
        let chunk = |data: &[u8]| {
            let keys = [[0x10, 0x40, 0, 0], [2, 0, 0, 0]].concat();
            TupleBuilder::new(3).data(&keys).data(data).finish()
        };
        let pointer = [&[1, 18][..], &[0; 16]].concat();
        let page = PageBuilder::new(8192, &[])
            .item(&chunk(&[7, b'a', b'b']))
            .item(&chunk(&[24, 0, 0, 0, b'a', b'b']))
            .item(&chunk(&[0x2A, 0, 0, 0, 9, 0, 0, 0, b'a', b'b']))
            .item(&chunk(&pointer))
            .finish(0);
        let expected = [
            "3 toasted-toast-chunk: chunk_data of chunk 2 of value 16400 is compressed",
            "4 toasted-toast-chunk: chunk_data of chunk 2 of value 16400 is a pointer to TOAST",
        ];
        assert_eq!(Trial::toast().told(&ToastedToastChunk, &page), expected);
    }
}
