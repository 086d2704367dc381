//! `…; zeroing out page`: a page is being thrown away.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ZeroingOutPage;

impl ServerMessage for ZeroingOutPage {
    fn name(&self) -> &'static str {
        "zeroing-out-page"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX001"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "invalid page in block {block} of relation {path}; zeroing out page",
            "zeroing out {n} invalid pages among blocks {first}..{last} of relation {path}",
            "zeroing {n} page(s) and ignoring {n} checksum failure(s) among blocks {first}..{last} of relation {path}",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
`zero_damaged_pages` is on. The server read a page that it cannot accept, and instead of an error it put \
a page of zeros in memory and went on. For a query it is as if the page had no rows.

As long as nothing dirties the page, the damaged bytes are still on disk, and a copy of the file made \
now still holds them. But any insert that finds room there, and `VACUUM`, makes the empty page real: \
then the rows on it are gone for good, while indexes still point to them and later inserts collide with \
them.

It does **not** repair anything, and turning the setting off does not bring a page back that was \
written. The rows on such a page are often whole and could be read by other means.

Autovacuum turns the setting off for itself, so only sessions that somebody opened do this.

**Never** leave the setting on, never put it into postgresql.conf, never use it before the files are \
copied."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Stop it now: `SET zero_damaged_pages = off;`, also in postgresql.conf and for every role and database".to_owned(), "If no checkpoint has come since, stop the server with `pg_ctl stop -m immediate`: what was not written yet stays on disk. Better take the block from a copy made before".to_owned()];
        steps.extend(names.look());
        steps.extend([names.mend()]);
        steps
    }
}
