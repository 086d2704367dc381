//! A stored value of jsonb, numeric, array … that no server writes.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct ValueMakesNoSense;

impl ServerMessage for ValueMakesNoSense {
    fn name(&self) -> &'static str {
        "value-makes-no-sense"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000", "22P03", "22P02"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "unknown type of jsonb container",
            "invalid jsonb container type",
            "invalid jsonb scalar type",
            "invalid jsonb value type",
            "invalid jsonb object type",
            "invalid jsonb array value type",
            "unrecognized jsonb type",
            "invalid number of dimensions",
            "invalid jsonbiteratornext",
            "could not find enum value",
            "invalid internal value for enum",
            "not a valid binary digit",
            "unexpected jsonb type",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
The server read a stored value (a `jsonb`, an array, an enum) and found a structure that its own \
functions never write: an unknown kind of container, an impossible number of dimensions, an enum number \
without a label.

The length of the value fitted the row, so the row as a whole looked right; the bytes inside are wrong. \
Either they were overwritten, or the row's earlier columns are damaged so that every column after them \
is read from the wrong place, or `pg_attribute` describes another column order than the row has (catalog \
and table of different days).

If *all* rows of a table fail, think of the catalog first: a type or column that is not what the rows \
were written with. If *one* row fails, or the rows of one page, these bytes are damaged.

At risk is the value, and probably its neighbours on the page: bytes that are wrong inside a number or a \
text raise no error at all.

It does **not** mean that the client sent wrong JSON: that is refused on the way in, with another \
message.

**Never** overwrite the column before the page has been saved."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = vec!["Find the rows: read the column row by row in a loop that catches the error, and note the ctids".to_owned()];
        steps.extend(names.look());
        steps.extend([names.restore()]);
        steps
    }
}
