//! `found toasted toast chunk`: a chunk claims to be a pointer.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ToastedToastChunk;

impl ServerMessage for ToastedToastChunk {
    fn name(&self) -> &'static str {
        "found-toasted-toast-chunk"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "found toasted toast chunk for toast value {toast_value} in {toast_relation}",
            "found toasted toast chunk",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
A chunk in a TOAST relation is a plain run of bytes with a plain length word. The server met one whose \
first byte says that it is itself compressed or a pointer to yet another TOAST value. No server writes \
that.

So the first bytes of `chunk_data` in that tuple were overwritten, or the tuple's line pointer leads to \
the wrong place and the server reads something else as a chunk. Look at the whole page: a single wrong \
byte there is rare.

At risk is the value that the chunk belongs to, and perhaps other chunks on the same page. The table's \
row, its other columns and all other rows are whole.

It does **not** mean that values are toasted twice, and neither `VACUUM` nor a new `toast_tuple_target` \
changes anything.

**Never** update or delete the row before its chunks have been saved: both remove the chunks."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([
            names.restore(),
            "Read the other columns and rows: leave the long column out".to_owned(),
        ]);
        steps
    }
}
