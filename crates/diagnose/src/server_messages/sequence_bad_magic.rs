//! `bad magic number in sequence`: its page is not a sequence's.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct SequenceBadMagic;

impl ServerMessage for SequenceBadMagic {
    fn name(&self) -> &'static str {
        "sequence-bad-magic"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &["bad magic number in sequence {sequence}"]
    }

    fn meaning(&self) -> &'static str {
        "\
The single page of a sequence carries the number 0x1717 in the last eight bytes. The server found \
another one there: it prints what it found.

Either the end of the page was overwritten or zeroed, or this is the page of another relation that was \
written to the wrong place, or a file was restored under the wrong name. 00000000 means that at least \
the page's end is zero.

At risk is one number, the last value. When only the page's end is damaged, the tuple with `last_value` \
stands just before it and can be read with `inspect`. Otherwise take the highest value of the column \
that the sequence feeds.

It does **not** mean that the table which uses it is damaged. But inserts that need a new number fail \
until it is mended, and `pg_dump` stops.

**Never** recreate the sequence with a start below the highest value in use: the next inserts would \
fail, or, without a unique index, store the same number twice."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend(["Take the last value from the page if its tuple is whole (inspect shows it), else the highest value of the column that uses it".to_owned(), names.restore()]);
        steps
    }
}
