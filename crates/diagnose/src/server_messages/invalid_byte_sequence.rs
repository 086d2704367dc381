//! `invalid byte sequence for encoding`: bytes that are no text.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct InvalidByteSequence;

impl ServerMessage for InvalidByteSequence {
    fn name(&self) -> &'static str {
        "invalid-byte-sequence"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["22021"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "invalid byte sequence for encoding",
            "has no equivalent in encoding",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server checked a text against the database's encoding and found bytes that cannot be in it.

**On the way in** (an `INSERT`, a `COPY`, a restore) the data that are sent are wrong or the client's \
encoding is set wrong: nothing stored is damaged. Set `client_encoding` to what the file really is. \
`0x00` cannot be stored in text at all.

**On the way out** (a `SELECT`, `pg_dump`, a cast) the stored bytes are wrong. They may have come in \
that way: a database in `SQL_ASCII` never checked, old releases did not check everything, and \
`convert_from` or a C function can slip bytes in. Or the bytes were damaged later: then there is one row \
or one page with garbage, and neighbours on the page are suspect.

At risk is the value. A read with `client_encoding = SQL_ASCII` or as `bytea` shows it as it is.

It does **not** mean that the table is damaged as a whole, and a `has no equivalent` only says that the \
client's encoding lacks a letter.

**Never** replace the bytes by guess in the only copy, and never change `pg_database.encoding` by hand."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Find out whether it is on the way in (COPY, INSERT, restore) or out (SELECT, pg_dump): only the second is about stored data".to_owned(), "Look at the bytes: `SELECT ctid, encode(convert_to(column, 'SQL_ASCII'), 'hex')`, or column::bytea in the copy".to_owned()];
        steps.extend(names.look());
        steps
    }
}
