//! `Input/output error`: the disk refuses.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ReadError;

impl ServerMessage for ReadError {
    fn name(&self) -> &'static str {
        "input-output-error"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["58030"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "could not read block {block} in file {path}: input/output error",
            "could not read blocks {first}..{last} in file {path}: input/output error",
            "could not read file {file}: input/output error",
            "could not write block {block} in file {path}",
            "could not fsync file {path}",
            "could not write to file {file}: input/output error",
            "input/output error",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
This is no finding of PostgreSQL: the kernel answered with an error when the server wanted to read, \
write or flush a file. The bytes could not be had at all. What stands in the page is not known.

It means a failing disk, controller, cable, network storage or a damaged file system. One bad sector \
takes at least the 512 or 4096 bytes around it, so usually one page; but it seldom stays alone. After a \
failed `fsync` the server panics on purpose and replays the WAL, because the kernel may have thrown \
written data away.

It does **not** mean that the other tables are damaged, and it does not mean that the page is: sometimes \
the same sector can be read on the tenth try.

At risk is the page, and soon more. Time matters: each read of a dying disk may be the last, so image \
the disk first and work on the image.

**Never** run `fsck` with automatic repair, `VACUUM` or a second attempt at a dump on the dying disk \
before it has been imaged."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        vec!["Ask the kernel: `dmesg -T`, and the disk: `smartctl -a`. Copy the whole device with ddrescue while it still answers".to_owned(), "Then check the copy: `".to_owned() + &names.check_all_command() + "`", names.mend()]
    }
}
