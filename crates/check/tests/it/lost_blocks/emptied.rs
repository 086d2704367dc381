//! Pages that are sound and have no line pointer in use, though indexes name rows on them; and the
//! same pages as VACUUM and failed transactions leave them.

use pgclinic_format::checksum::page_checksum;
use pgclinic_testkit::all_majors;

use super::*;

/// What is left of a page.
#[derive(Clone, Copy)]
enum Left {
    /// The header of a page without line pointers.
    Header,
    /// The header as it was, and zeros behind it.
    OwnHeader,
}

fn empty(path: &Path, block: u64, left: Left) {
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("a file");
    let mut page = [0; PAGE as usize];
    file.read_exact_at(&mut page, block * PAGE).expect("a page");
    page[24..].fill(0);
    if let Left::Header = left {
        page[12..14].copy_from_slice(&24_u16.to_le_bytes());
        page[14..16].copy_from_slice(&8192_u16.to_le_bytes());
    }
    if page[8..10] != [0, 0] {
        let sum = page_checksum(&page, u32::try_from(block).expect("small"));
        page[8..10].copy_from_slice(&sum.to_le_bytes());
    }
    file.write_all_at(&page, block * PAGE).expect("a write");
}

fn emptied_pages_are_missed(checksums: Checksums, left: Left) {
    let mut clinic = Clinic::of(checksums, TABLES);
    let tables = [
        "t_btree", "t_hash", "t_gist", "t_spgist", "t_gin", "t_brin", "t_bare",
    ];
    let paths = tables.map(|table| clinic.path(&format!("public.{table}")));
    let toast = value(
        clinic.server(),
        "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'public.t_long'::regclass",
    );
    let toast_path = clinic.path(&toast);
    clinic.stop();
    paths.iter().for_each(|path| empty(path, 3, left));
    empty(&toast_path, 5, left);
    let toast = toast.rsplit('.').next().expect("a name");
    let expected = [
        (toast, 5),
        ("t_btree", 3),
        ("t_gin", 3),
        ("t_gist", 3),
        ("t_hash", 3),
        ("t_spgist", 3),
    ];
    for level in [Level::Structure, Level::Full] {
        let document = clinic.check(level);
        let told = told(&document);
        let found: Vec<_> = told
            .iter()
            .map(|own| (own.0.as_str(), own.1.as_str(), own.2))
            .collect();
        let expected = expected.map(|(table, block)| ("emptied-page", table, Some(block)));
        assert_eq!(found, expected, "{level:?}: {told:?}");
        assert_eq!(told[1].3, Some(34), "rows of the page, by the unique index");
    }
}

#[test]
fn pages_without_line_pointers_are_missed_by_their_indexes() {
    emptied_pages_are_missed(Checksums::Off, Left::Header);
}

#[test]
fn pages_of_zeros_behind_a_sound_header_are_missed_by_their_indexes() {
    emptied_pages_are_missed(Checksums::On, Left::OwnHeader);
}

/// Pages that VACUUM emptied with and without an index, dead entries, a row whose insert failed,
/// and an index made later.
const VACUUMED: &str = "\
CREATE TABLE public.holes (id int PRIMARY KEY, tags int[], what text) WITH (autovacuum_enabled = off);
CREATE INDEX holes_tags ON public.holes USING gin (tags);
CREATE INDEX holes_what ON public.holes USING hash (what);
CREATE INDEX holes_at ON public.holes USING gist (point(id, id));
CREATE INDEX holes_word ON public.holes USING spgist (what);
INSERT INTO public.holes SELECT i, ARRAY[i, i % 9], repeat(md5(i::text), 4) FROM generate_series(1, 4000) AS i;
DELETE FROM public.holes WHERE id % 200 < 150;
SELECT count(*) FROM public.holes WHERE id BETWEEN 1 AND 4000;
VACUUM public.holes;
CREATE TABLE public.bare (id int, what text) WITH (autovacuum_enabled = off);
INSERT INTO public.bare SELECT i, repeat('x', 200) FROM generate_series(1, 2000) AS i;
DELETE FROM public.bare WHERE id BETWEEN 300 AND 900;
VACUUM public.bare;
CREATE INDEX bare_id ON public.bare (id);
CREATE TABLE public.killed (id int PRIMARY KEY, what text) WITH (autovacuum_enabled = off);
INSERT INTO public.killed SELECT i, repeat('x', 200) FROM generate_series(1, 2000) AS i;
DELETE FROM public.killed WHERE id < 500;
SELECT count(*) FROM public.killed WHERE id < 600;
CREATE TABLE public.hot (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off, fillfactor = 50);
INSERT INTO public.hot SELECT i, 0 FROM generate_series(1, 3000) AS i;
UPDATE public.hot SET n = n + 1 WHERE id % 3 = 0;
UPDATE public.hot SET n = n + 1 WHERE id % 3 = 0;
VACUUM public.hot;
BEGIN;
INSERT INTO public.hot SELECT i, 0 FROM generate_series(5001, 6000) AS i;
ROLLBACK";

/// What is emptied after the last checkpoint, in part on the disk.
const VACUUMED_LATER: &str = "\
CHECKPOINT;
DELETE FROM public.holes WHERE id % 200 < 180;
VACUUM public.holes;
DELETE FROM public.killed WHERE id BETWEEN 900 AND 1500;
VACUUM public.killed;
INSERT INTO public.bare SELECT i, repeat('z', 200) FROM generate_series(3000, 3100) AS i";

#[test]
fn what_vacuum_empties_is_healthy() {
    for installation in all_majors() {
        for ending in [StopMode::Fast, StopMode::Immediate] {
            let copy = copy_of(&seed(&installation, Checksums::Off));
            // So few buffers that pages reach the disk in any order.
            let options = StartOptions::default().with("shared_buffers", "256kB");
            let options = options.with("autovacuum", "off");
            let mut server = copy.start_with(&options).expect("a server");
            execute(&server, VACUUMED);
            if ending == StopMode::Immediate {
                execute(&server, VACUUMED_LATER);
            }
            server.stop(ending).expect("it stops");
            for level in [Level::Structure, Level::Full] {
                let document = checked(&open(&copy.pgdata), level);
                let what = format!("{} {ending:?} {level:?}", installation.major);
                assert_eq!(told(&document), [], "{what}");
                assert_eq!(open_questions(&document), Vec::<String>::new(), "{what}");
                let is_healthy = document.verdict == Verdict::Healthy;
                assert_eq!(is_healthy, ending == StopMode::Fast, "{what}");
            }
        }
    }
}

#[test]
fn after_a_crash_an_emptied_page_that_recovery_leaves_alone_is_damage() {
    let mut clinic = Clinic::with(TABLES);
    execute(clinic.server(), "CHECKPOINT");
    let (old, new) = (clinic.path("public.t_hash"), clinic.path("public.t_btree"));
    execute(
        clinic.server(),
        "UPDATE public.t_btree SET what = repeat('z', 200) WHERE ctid = '(29,1)'",
    );
    clinic.server.take().expect("it runs").kill();
    empty(&old, 3, Left::Header);
    // Written again by recovery, as a whole.
    empty(&new, 29, Left::Header);
    for level in [Level::Structure, Level::Full] {
        let told = told(&clinic.check(level));
        let found: Vec<_> = told.iter().map(|own| (&*own.0, &*own.1, own.2)).collect();
        assert_eq!(found, [("emptied-page", "t_hash", Some(3))], "{level:?}");
    }
}

/// The leaf that names the page is changed since the checkpoint; what its file holds was true then.
#[test]
fn after_a_crash_a_changed_leaf_with_a_checksum_is_a_witness() {
    let mut clinic = Clinic::of(Checksums::On, ONE_LEAF);
    let path = clinic.path("public.one_leaf");
    clinic.server.take().expect("it runs").kill();
    assert_eq!(told(&clinic.check(Level::Structure)), []);
    empty(&path, 3, Left::Header);
    let told = told(&clinic.check(Level::Structure));
    let found: Vec<_> = told.iter().map(|own| (&*own.0, own.2)).collect();
    assert_eq!(found, [("emptied-page", Some(3))]);
}
