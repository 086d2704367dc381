//! `invalid memory alloc request size`: a length makes no sense.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct InvalidMemoryAlloc;

impl ServerMessage for InvalidMemoryAlloc {
    fn name(&self) -> &'static str {
        "invalid-memory-alloc-request-size"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "invalid memory alloc request size {bytes}",
            "invalid memory allocation request size {bytes}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server asked itself for a piece of memory of an impossible size, mostly more than 1 GB. It took that \
number from a row: the length of a value, or a length computed from a line pointer. A size close to \
18446744073709551615 is a negative number: a difference that should have been positive.

When it happens again and again for the same table it nearly always means damaged bytes: line pointers \
with random offsets, a length word of a text or array that was overwritten, a compressed value whose raw \
size is nonsense. It does **not** mean that the machine has too little memory, and no setting makes it \
go away.

Sometimes nothing is damaged: a result or a `COPY` line that really is larger than 1 GB, such as a \
`bytea` of 600 MB in its text form. Then one known large row does it, and `octet_length` of the column \
tells.

At risk is the row, and often its whole page. The page's checksum, if there is one, was right when the \
server read it, or checksums are off.

**Never** delete rows by guess, and never `VACUUM FULL` to \"clean it up\": it reads the same bytes."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Find the page and the row: read the table in halves by ranges of ctid (`WHERE ctid >= '(1000,0)' AND ctid < '(2000,0)'`) in the copy".to_owned()];
        steps.extend(names.look());
        steps.extend([names.restore(), names.save_the_rest()]);
        steps
    }
}
