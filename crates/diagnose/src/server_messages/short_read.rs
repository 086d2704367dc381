//! `could not read block …: read only …`: the file ends before the block.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ShortRead;

impl ServerMessage for ShortRead {
    fn name(&self) -> &'static str {
        "short-read"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "could not read block {block} in file {path}: read only {n} of {n} bytes",
            "could not read blocks {first}..{last} in file {path}: read only {n} of {n} bytes",
            "could not read file {file}: read {n} of {n}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server went to read a block, and the file ended before it. `read only 0 of 8192 bytes` means that \
the file ends earlier; another number means that it ends in the middle of a block, which no server \
leaves behind.

Either the **file is too short**: it was cut by a full disk, a file system check, an interrupted copy or \
a backup that was not finished with its WAL. Or **something points too far**: an index entry, a TOAST \
pointer or a TID names a block that the table does not have, since the index is newer than the table or \
is damaged itself. In the first case rows are lost, in the second only the index is wrong.

A look at the other way tells: if a plain sequential scan (`SET enable_indexscan = off; SET \
enable_bitmapscan = off;`) reads the table without an error and the counts are right, it is the index.

At risk are the rows that stood behind the file's end; for an index nothing.

**Never** append zeros to make the file long enough before you know which case it is: empty pages make \
the loss invisible."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([names.mend(), names.save_the_rest()]);
        steps
    }
}
