//! `invalid page in block …`: the server refuses a page when it reads it.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct InvalidPage;

impl ServerMessage for InvalidPage {
    fn name(&self) -> &'static str {
        "invalid-page"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "invalid page in block {block} of relation {path}",
            "invalid pages among blocks {first}..{last} of relation {path}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server read this block from disk and refused it. It tests few things: the flag bits, that \
`pd_lower`, `pd_upper` and `pd_special` stand in order and on the page, and, where data checksums are \
on, the checksum. One of these failed. With checksums a line `page verification failed` stands before \
it.

It does **not** mean that the whole table is lost, nor that all rows of the page are: often only a few \
bytes are wrong and the rows behind them are whole. Every statement that has to read this page fails, \
`pg_dump` of the table too. All other pages can still be read.

At risk are the rows of the page. For an index nothing is at risk: it is built from its table. \
PostgreSQL 18 names several pages in one message and counts them.

Find out what wrote there (disk, controller, file system, memory, a copy made of a running server) \
before you put good bytes on the same hardware.

**Never** set `zero_damaged_pages` to get rid of the message: the server then replaces the page by zeros \
and its rows are gone. Never `VACUUM FULL`, `CLUSTER` or upgrade the table before the page is saved."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([names.mend(), names.save_the_rest()]);
        steps
    }
}
