//! `MultiXactId … has not been created yet` or `does no longer exist`.

use super::message::ServerMessage;
use super::names::Names;

/// See the module.
pub struct MultixactWraparound;

impl ServerMessage for MultixactWraparound {
    fn name(&self) -> &'static str {
        "multixact-apparent-wraparound"
    }

    fn sqlstates(&self) -> &'static [&'static str] {
        &["XX000"]
    }

    fn patterns(&self) -> &'static [&'static str] {
        &[
            "multixactid {multi} has not been created yet",
            "multixactid {multi} does no longer exist",
            "multixactid {multi} does not exist anymore",
        ]
    }

    fn meaning(&self) -> &'static str {
        "\
A row that several transactions lock at once has the number of a *multixact* in its `xmax`, and its \
members stand in `pg_multixact`. The server met a number that was not given out yet, or that is older \
than all that are kept. \"Apparent wraparound\" is its guess.

With data damage the guess is nearly always wrong: random bytes in a tuple header had the bit \
`HEAP_XMAX_IS_MULTI` set, so a random `xmax` was taken for a multixact. Compare the number with \
`NextMultiXactId` of `pg_controldata`: if it is far away, the tuple is damaged and multixacts are fine.

A number *just* beyond the next one can also come from a restore that mixed two states, or from \
`pg_resetwal`; a number just below the oldest one from old bugs of `pg_upgrade` and 9.3. Then many rows \
are hit.

At risk are the damaged tuples; but each of them stops every scan of its table and every vacuum.

**Never** use `pg_resetwal -m` to make the number \"exist\", and never create files in `pg_multixact`: \
the members found there would be invented."
    }

    fn next_steps(&self, names: &Names<'_>) -> Vec<String> {
        let mut steps = names.look();
        steps.extend([names.restore(), "When only a few tuples are damaged, pg_surgery (14 and later) can freeze or kill them by ctid, on a copy first: it cannot be undone".to_owned(), names.save_the_rest()]);
        steps
    }
}
