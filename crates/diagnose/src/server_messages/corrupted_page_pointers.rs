//! `corrupted page pointers`, `corrupted line pointer`: a page that cannot be changed.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct CorruptedPagePointers;

impl ServerMessage for CorruptedPagePointers {
    fn name(&self) -> &'static str {
        "corrupted-page-pointers"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "corrupted page pointers: lower = {n}, upper = {n}, special = {n}",
            "corrupted line pointer: offset = {n}, size = {n}",
            "corrupted line pointer",
            "corrupted item pointer",
            "corrupted item lengths: total {n}, available space {n}",
            "corrupted item lengths",
            "invalid lp",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server wanted to add, move or remove an item on a page: an insert, a pruning, a vacuum. Before it \
moves bytes it tests more than when it only reads, and found the header's offsets or a line pointer \
outside of what the page allows. With `PANIC` it stopped the whole server so as not to make it worse.

So the page was accepted when it was read (its checksum is right or checksums are off, its header looks \
sane), and yet its line pointers are wrong. Somebody wrote over the array behind the header, or the \
damage came through the server's own memory: bad RAM, or an extension that writes wild.

A wrong line pointer with a *right* checksum means that the damage happened **before** the page was \
written. Test the memory; a standby gets it by way of full page images.

At risk are the rows of the page; those with good line pointers can be read.

It does **not** name the block. A check of the table finds it.

**Never** run `VACUUM FULL` or `CLUSTER` to get rid of it: rows that cannot be reached would be left \
out, or the server crashes."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec![
            "Find the page: the statement tells the table, `".to_owned()
                + &names.check_command()
                + "` the block",
            names.mend(),
            names.save_the_rest(),
        ]
    }
}
