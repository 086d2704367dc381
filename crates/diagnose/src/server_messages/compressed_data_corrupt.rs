//! `compressed … data is corrupt`: a value does not unpack.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct CompressedDataCorrupt;

impl ServerMessage for CompressedDataCorrupt {
    fn name(&self) -> &'static str {
        "compressed-data-is-corrupt"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "compressed pglz data is corrupt",
            "compressed lz4 data is corrupt",
            "compressed data is corrupt",
            "invalid compression method id {n}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
Values of more than about 2 kB are compressed before they are stored, with pglz or (14 and later) lz4. \
Unpacking one, the server came upon bytes that cannot be: a reference to before the beginning, or more \
or fewer bytes at the end than the value says it has.

The stored bytes have changed, or the chunks of the value were put together from the wrong ones, or the \
raw size in its header is wrong. Compressed data has no checksum of its own, so one wrong byte in the \
middle can also unpack to wrong text *without* this message: with one damaged value in a page, distrust \
its neighbours.

At risk is the value. What stands before the first wrong byte can be unpacked by hand; what stands \
behind it mostly cannot.

It does **not** mean that the column's compression method is to be changed: `ALTER TABLE … SET \
COMPRESSION` only counts for new values. `invalid compression method id` on a server below 14, or built \
without lz4, may simply be the wrong server.

**Never** overwrite the column before its bytes have been saved."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend(["Find the rows: read the column row by row in a loop that catches the error, and note the ctids".to_owned(), names.restore()]);
        steps
    }
}
