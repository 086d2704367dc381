//! `page verification failed`: the checksum is wrong.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct PageVerificationFailed;

impl ServerMessage for PageVerificationFailed {
    fn name(&self) -> &'static str {
        "page-verification-failed"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "page verification failed, calculated checksum {computed} but expected {expected}",
            "page verification failed",
            "checksum verification failed in file {path}, block {block_in_file}: calculated checksum {computed_hex} but block contains {expected_hex}",
            "checksum verification failed in file {path}, block {block_in_file}: calculated {computed_hex} but expected {expected_hex}",
            "checksum verification failed in file {path}, block {block_in_file}",
            "checksum failure in file {path}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server (or `pg_checksums`, or a base backup) computed the checksum of a page and found another one \
in its header. *Calculated* is what the bytes ask for, *expected* is what the header holds. The block's \
number is part of the sum, so a sound page that was written to the wrong place fails as well.

It means that the page changed outside the server, after it was written: a bad disk, controller or \
memory, a torn write, a restore that mixed two states, or somebody's editor. It does **not** tell how \
much of the page is wrong: one bit is enough. A second server with the same files would say the same; a \
standby with its own files may well be sound.

An expected checksum of 0 often means that the page was written while checksums were off.

The message alone names no block when it comes from a running server: the line `invalid page in block …` \
behind it does. `pg_checksums` and `pg_basebackup` count blocks from the beginning of the file, not of \
the relation.

**Never** run `pg_checksums --disable` or `--enable` to silence it: the first hides the damage, the \
second writes a true checksum over wrong bytes. Never turn on `ignore_checksum_failure` on the only \
copy."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([names.mend(), names.save_the_rest()]);
        steps
    }
}
