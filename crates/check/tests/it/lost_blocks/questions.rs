//! What proves nothing by itself, and is a question all the same: lengths that indexes agree with,
//! maps of zeros; and what looks like damage and is none.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_model::Level;
use pgclinic_servers::Checksums;

use super::{Clinic, PAGE, execute, open_questions, told, zero};

fn write(path: &Path, offset: u64, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.write_all_at(bytes, offset).expect("a write");
}

#[test]
fn a_table_and_a_key_that_are_as_old_are_a_question_where_more_pages_are_counted() {
    let mut clinic = Clinic::on(
        15,
        Checksums::On,
        "CREATE TABLE public.t_aged (id int PRIMARY KEY, what text);
         INSERT INTO public.t_aged SELECT i, repeat('x', 100) FROM generate_series(1, 500) AS i;
         CHECKPOINT",
    );
    let files = ["t_aged", "t_aged_pkey"].map(|name| clinic.path(&format!("public.{name}")));
    let old = files.each_ref().map(|path| fs::read(path).expect("a file"));
    for sql in [
        "INSERT INTO public.t_aged SELECT i, repeat('x', 100) FROM generate_series(501, 3000) AS i",
        "ANALYZE public.t_aged",
        "CHECKPOINT",
    ] {
        execute(clinic.server(), sql);
    }
    clinic.forget_wal();
    clinic.stop();
    for level in [Level::Pages, Level::Structure] {
        assert_eq!(open_questions(&clinic.check(level)), [""; 0]);
    }
    for (path, bytes) in files.iter().zip(old) {
        fs::write(path, bytes).expect("a write");
    }
    for level in [Level::Pages, Level::Structure, Level::Full] {
        let document = clinic.check(level);
        let open = ["t_aged", "t_aged_pkey"]
            .map(|name| format!("whether the last blocks of public.{name} are lost"));
        assert_eq!(open_questions(&document), open, "{level:?}");
    }
}

#[test]
fn a_map_of_zeros_vouches_for_nothing() {
    let mut clinic = Clinic::on(
        15,
        Checksums::Off,
        "CREATE TABLE public.t_bare AS SELECT i AS id, repeat('x', 100) AS what FROM generate_series(1, 3000) AS i",
    );
    execute(clinic.server(), "VACUUM public.t_bare");
    let path = clinic.path("public.t_bare");
    clinic.forget_wal();
    clinic.stop();
    let map = format!("{}_vm", path.display());
    zero(Path::new(&map), 0);
    (3..6).for_each(|block| zero(&path, block));
    let open = open_questions(&clinic.check(Level::Structure));
    assert!(open.iter().any(|what| what.contains("t_bare")), "{open:?}");
}

/// A full disk stopped the server when it made room for a page.
#[test]
fn zeros_within_a_block_that_was_never_begun_are_no_damage() {
    let mut clinic = Clinic::on(
        15,
        Checksums::On,
        "CREATE TABLE public.t_full AS SELECT i AS id, repeat('x', 100) AS what FROM generate_series(1, 3000) AS i",
    );
    let [path, catalog] = ["public.t_full", "pg_attribute"].map(|name| clinic.path(name));
    clinic.stop();
    let end = |path: &Path| fs::metadata(path).expect("a file").len();
    write(&catalog, end(&catalog), &[0; 4096]);
    let end = end(&path);
    write(&path, end, &[0; 4096]);
    let document = clinic.check(Level::Full);
    assert_eq!(told(&document), []);
    assert_eq!(open_questions(&document), [""; 0]);
    write(&path, end, &[7]);
    let found = told(&clinic.check(Level::Structure));
    assert_eq!(
        found.first().map(|own| own.0.as_str()),
        Some("partial-block")
    );
}

#[test]
fn a_zero_byte_in_external_text_is_damage() {
    let mut clinic = Clinic::on(
        15,
        Checksums::Off,
        "CREATE TABLE public.t_text (id int, what text);
         ALTER TABLE public.t_text ALTER what SET STORAGE EXTERNAL;
         INSERT INTO public.t_text SELECT i, repeat('ä', 6000) FROM generate_series(1, 9) AS i",
    );
    let toast = "SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 't_text'";
    let toast = super::value(clinic.server(), toast);
    let path = clinic.path(&toast);
    clinic.stop();
    assert_eq!(told(&clinic.check(Level::Full)), []);
    write(&path, PAGE + 4608, &[0; 512]);
    let found = told(&clinic.check(Level::Full));
    assert!(
        matches!(found.as_slice(), [one, ..] if one.0 == "toast-value-corrupt"),
        "{found:?}"
    );
}
