//! A table without indexes, whose lost rows only their TOASTed values know of.

use pgclinic_model::Level;

use super::{Clinic, open_questions, told, truncate, zero};

/// Of `t_sound` all that leaves no value behind; of `t_copied` VACUUM FULL has written the file.
const KEYLESS: &str = "\
CREATE TABLE public.t_long (id int, what text);
ALTER TABLE public.t_long ALTER what SET STORAGE EXTERNAL;
CREATE TABLE public.t_copied (id int, what text);
ALTER TABLE public.t_copied ALTER what SET STORAGE EXTERNAL;
CREATE TABLE public.t_sound (id int, what text);
ALTER TABLE public.t_sound ALTER what SET STORAGE EXTERNAL;
INSERT INTO public.t_long SELECT i, repeat('x', 4000) FROM generate_series(1, 600) AS i;
INSERT INTO public.t_copied SELECT i, repeat('x', 4000) FROM generate_series(1, 600) AS i;
INSERT INTO public.t_sound SELECT i, repeat('x', 4000) FROM generate_series(1, 40) AS i;
DELETE FROM public.t_sound WHERE id % 2 = 0;
UPDATE public.t_sound SET what = repeat('z', 4000) WHERE id % 3 = 0;
ALTER TABLE public.t_sound DROP COLUMN what;
ALTER TABLE public.t_sound ADD COLUMN other text;
DELETE FROM public.t_sound WHERE id % 5 = 0";

/// What must not stand in one transaction with the rest.
const LATER: &[&str] = &[
    "BEGIN; INSERT INTO public.t_sound SELECT i, repeat('y', 4000) FROM generate_series(1, 40) AS i; ROLLBACK",
    "VACUUM public.t_sound",
    "VACUUM FULL public.t_copied",
    "INSERT INTO public.t_copied SELECT i, repeat('x', 4000) FROM generate_series(601, 620) AS i",
];

#[test]
fn live_values_without_rows_prove_that_rows_are_lost() {
    let mut clinic = Clinic::with(KEYLESS);
    for sql in LATER {
        super::execute(clinic.server(), sql);
    }
    let (long, copied) = (clinic.path("public.t_long"), clinic.path("public.t_copied"));
    clinic.forget_wal();
    clinic.stop();
    let sound = clinic.check(Level::Full);
    assert_eq!(
        told(&sound),
        [],
        "values of rows that are deleted go with them"
    );
    assert_eq!(open_questions(&sound), [""; 0]);

    truncate(&long, 1);
    truncate(&copied, 1);
    let found = told(&clinic.check(Level::Full));
    let [of_copied, of_long] = found.as_slice() else {
        panic!("one finding a table: {found:?}")
    };
    let lost = |one: &(String, String, Option<u32>, Option<u64>)| {
        assert_eq!(one.0, "toast-value-without-row", "{found:?}");
        one.3.unwrap_or_default()
    };
    // A block holds 600 bytes for each of 13 rows, and more than a hundred of these.
    assert!((400..600).contains(&lost(of_long)), "{found:?}");
    assert_eq!(lost(of_copied), 20, "the others may be left by VACUUM FULL");
}

#[test]
fn values_that_one_transaction_copied_are_a_question_where_a_page_is_empty() {
    let mut clinic = Clinic::with(KEYLESS);
    super::execute(clinic.server(), "VACUUM FULL public.t_copied");
    let copied = clinic.path("public.t_copied");
    clinic.forget_wal();
    clinic.stop();
    zero(&copied, 0);
    let document = clinic.check(Level::Full);
    assert_eq!(told(&document), []);
    assert_eq!(
        open_questions(&document),
        ["rows that may be lost of public.t_copied"]
    );
}
