//! A value compressed in its row says something impossible about itself.

use pgclinic_format::toast::MAX_VALUE_BYTES;
use pgclinic_format::varlena::Compressed;
use pgclinic_format::{Page, Varlena};
use pgclinic_model::Rule;
use pgclinic_model::document::FileKind;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::heap::tuples::{LongValue, StoredTuple, columns_apply, is_read, is_surely_live, tuples};

/// The rule.
pub static COMPRESSED_VALUE: Rule =
    Rule::from_page(include_str!("../../rules/compressed-value.md"));

/// See [`COMPRESSED_VALUE`].
pub struct CompressedValue;

impl PageCheck for CompressedValue {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&COMPRESSED_VALUE] }
    }

    fn wants(&self) -> Wants {
        Wants::HEAP
    }

    /// In a TOAST relation a compressed chunk is wrong whatever it says, and has a rule of its own.
    fn check(&self, page: Page<'_>, cx: &PageCx<'_>, out: &mut Findings) {
        if cx.fork.kind == FileKind::Toast {
            return;
        }
        for stored in tuples(page) {
            for long in stored.long_values(cx) {
                if let Varlena::Compressed(compressed) = long.value
                    && let Some(message) = trouble(compressed, cx.fork.major())
                    && columns_apply(stored.tuple, cx.fork)
                {
                    out.add(tell(stored, &long, compressed, message, cx));
                }
            }
        }
    }
}

fn trouble(compressed: Compressed<'_>, major: u16) -> Option<String> {
    let (raw, method) = (compressed.raw_size, compressed.method);
    let len = compressed.data.len();
    if method != 0 && major < 14 {
        let raw = u64::from(method) << 30 | u64::from(raw);
        return Some(format!("raw size {raw} is more than any value has"));
    }
    if method > 1 {
        return Some(format!("compression method {method} does not exist"));
    }
    if raw > MAX_VALUE_BYTES - 4 {
        return Some(format!("raw size {raw} is more than any value has"));
    }
    let grew = usize::try_from(raw).is_ok_and(|raw| raw <= len);
    grew.then(|| format!("raw size {raw} is not more than the {len} bytes after compression"))
}

fn tell(
    stored: StoredTuple<'_>,
    long: &LongValue<'_>,
    compressed: Compressed<'_>,
    message: String,
    cx: &PageCx<'_>,
) -> Draft {
    let header = long.range.start..long.range.start + 8;
    let draft = stored.draft(&COMPRESSED_VALUE, message, header);
    let draft = draft
        .attribute(long.number)
        .fact("raw_bytes", compressed.raw_size);
    let method = compressed.method;
    let speaks = method > 1
        && cx.fork.major() >= 14
        && is_surely_live(stored.tuple, cx.fork)
        && is_read(long.number, cx.fork);
    if speaks {
        draft.server_says(format!("ERROR:  invalid compression method id {method}"))
    } else {
        draft
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    fn told(major: u16, words: &[u32]) -> Vec<String> {
        let value = |word: &u32| {
            let header = [&(14u32 << 2 | 2).to_le_bytes()[..], &word.to_le_bytes()].concat();
            let tuple = TupleBuilder::new(1).data(&header).data(b"abcdef");
            tuple.finish()
        };
        let page = words
            .iter()
            .fold(PageBuilder::new(8192, &[]), |page, word| {
                page.item(&value(word))
            });
        let trial = Trial {
            major,
            ..Trial::with_columns(&[(-1, 4)])
        };
        trial.told(&CompressedValue, &page.finish(0))
    }

    #[test]
    fn compression_makes_smaller_by_a_method_that_exists() {
        let expected = [
            "3 compressed-value: raw size 6 is not more than the 6 bytes after compression",
            "4 compressed-value: raw size 1073741823 is more than any value has",
            "5 compressed-value: compression method 2 does not exist",
        ];
        let words = [100, 1 << 30 | 7, 6, 0x3FFF_FFFF, 2 << 30 | 100];
        assert_eq!(told(14, &words), expected);
    }

    #[test]
    fn before_14_all_32_bits_are_the_size() {
        let expected = "1 compressed-value: raw size 1073741924 is more than any value has";
        assert_eq!(told(13, &[1 << 30 | 100]), [expected]);
    }
}
