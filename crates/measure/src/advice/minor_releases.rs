//! Minor releases that mend what is stored, or what the articles measured: the releases after the
//! one that a server runs, with what each of them mends.
//!
//! Truth: the release notes of each major (`doc/src/sgml/release-NN.sgml`), and the branches that
//! they name for each entry.

use std::collections::BTreeSet;

use pgclinic_model::document::MeasuredRelation;

use super::{Piece, Said, SeenCluster, is_users};

/// What a release mends.
struct Fix {
    /// Majors that had the defect, with the minor release that mends it.
    releases: &'static [(u16, u16)],
    /// Whose files it can have hurt.
    hurts: Hurts,
    /// What went wrong.
    words: &'static str,
}

/// Whose files a defect can have hurt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hurts {
    /// Those of any cluster.
    Everything,
    /// Indexes of this access method; `REINDEX` makes them right.
    Indexes(&'static str),
    /// Nobody's: it cost time or memory, as this experiment shows.
    Nothing(&'static str),
}

use Hurts::{Everything, Indexes, Nothing};

const fn fix(releases: &'static [(u16, u16)], hurts: Hurts, words: &'static str) -> Fix {
    Fix {
        releases,
        hurts,
        words,
    }
}

/// The oldest first.
const FIXES: &[Fix] = &[
    fix(
        &[(13, 5), (14, 1)],
        Indexes("btree"),
        "indexes made with CONCURRENTLY could miss rows of prepared or concurrent transactions",
    ),
    fix(
        &[(13, 6), (14, 2)],
        Indexes("btree"),
        "REINDEX CONCURRENTLY of a TOAST table's index could make a corrupted one",
    ),
    fix(
        &[(14, 4)],
        Indexes("btree"),
        "indexes made or rebuilt with CONCURRENTLY under 14 could miss rows that were updated meanwhile",
    ),
    fix(
        &[(15, 3)],
        Everything,
        "changes to pg_class of a database that CREATE DATABASE copied from could be lost",
    ),
    fix(
        &[(13, 11), (14, 8), (15, 3)],
        Everything,
        "with vacuum_defer_cleanup_age, VACUUM could remove rows that were live",
    ),
    fix(
        &[(13, 12), (14, 9), (15, 4)],
        Indexes("brin"),
        "BRIN summaries could forget that a range holds nulls",
    ),
    fix(
        &[(13, 12), (14, 9), (15, 4)],
        Everything,
        "a DROP DATABASE that was interrupted left a database that could be used, with files missing",
    ),
    fix(
        &[(13, 13), (14, 10), (15, 5), (16, 1)],
        Indexes("gist"),
        "a page split while a GiST index was built could put a downlink in the wrong place",
    ),
    fix(
        &[(13, 13), (14, 10), (15, 5), (16, 1)],
        Indexes("btree"),
        "B-trees on interval columns merged entries that are equal and not alike",
    ),
    fix(
        &[(13, 14), (14, 11), (15, 6), (16, 2)],
        Indexes("gin"),
        "two processes that finished the same split of a GIN index's page could corrupt it",
    ),
    fix(
        &[(13, 14), (14, 11), (15, 6), (16, 2)],
        Nothing("pgclinic lab run jit-memory --into DIR"),
        "long sessions with JIT leaked memory",
    ),
    fix(
        &[(13, 14), (14, 11), (15, 6)],
        Nothing("pgclinic lab run lock-contention --into DIR"),
        "many sessions that waited for one lock slowed each other down",
    ),
    fix(
        &[(13, 17), (14, 14), (15, 9), (16, 5), (17, 1)],
        Everything,
        "in-place updates of catalogs could be lost, relfrozenxid and relhasindex among them",
    ),
    fix(
        &[(13, 19), (14, 16), (15, 11), (16, 7), (17, 3)],
        Everything,
        "a truncation of a table that failed could bring deleted rows back, and a checkpoint meanwhile could leave the file unsynced",
    ),
    fix(
        &[(13, 19), (14, 16), (15, 11), (16, 7), (17, 3)],
        Everything,
        "VACUUM of a catalog while a row of it was updated could corrupt it",
    ),
    fix(
        &[(14, 18), (15, 13), (16, 9), (17, 5)],
        Indexes("brin"),
        "merged bloom summaries of BRIN could lose values",
    ),
    fix(
        &[(14, 21), (15, 16), (16, 12), (17, 8)],
        Everything,
        "relfrozenxid of relations could become inconsistent, so that the commit log was truncated too early",
    ),
    fix(
        &[(14, 21), (15, 16), (16, 12), (17, 8), (18, 2)],
        Everything,
        "after a crash the log of multixacts could be truncated too far",
    ),
    fix(
        &[(17, 8), (18, 2)],
        Everything,
        "incremental backups of tables above 1 GB that were truncated meanwhile could not be restored",
    ),
    fix(
        &[(17, 11), (18, 6)],
        Everything,
        "bits cleared in visibility maps were missing in incremental backups, and after a crash index-only scans could give wrong answers",
    ),
];

/// A server that lacks some of them.
pub(crate) struct MinorReleases;

impl Piece for MinorReleases {
    fn name(&self) -> &'static str {
        "minor-release"
    }

    fn of_cluster(&self, seen: &SeenCluster<'_>) -> Option<Said> {
        let (major, minor) = seen.server.release()?;
        // A version that was learned of another server says nothing of these files.
        (major == seen.cluster.layout.major).then_some(())?;
        let methods = methods_in_use(seen.measured);
        let missing = missing_in((major, minor), &methods);
        (!missing.is_empty()).then_some(())?;
        let of = missing
            .iter()
            .map(|(mended, fix)| format!("{major}.{mended}: {}", fix.words));
        let last = missing.iter().map(|(mended, _)| *mended).max()?;
        let mut commands = vec![format!(
            "install PostgreSQL {major}.{last} or a later {major} and restart: a minor release needs no dump"
        )];
        commands.extend(reindexing(&missing));
        Some(Said {
            message: format!(
                "the server is {major}.{minor}; later releases of {major} mend what bears on these files"
            ),
            of: of.collect(),
            commands,
            settled_by: settled_by(&missing),
        })
    }
}

/// Access methods of users' indexes.
fn methods_in_use(measured: &[MeasuredRelation]) -> BTreeSet<&str> {
    let users = measured.iter().filter(|own| is_users(own));
    users
        .filter_map(|own| own.access_method.as_deref())
        .collect()
}

/// What later releases of the major mend of what is in use, with the minor release.
fn missing_in((major, minor): (u16, u16), methods: &BTreeSet<&str>) -> Vec<(u16, &'static Fix)> {
    let mut missing: Vec<(u16, &Fix)> = FIXES
        .iter()
        .filter_map(|fix| {
            let mended = fix.releases.iter().find(|(own, _)| *own == major)?.1;
            let bears = match fix.hurts {
                Indexes(method) => methods.contains(method),
                Everything | Nothing(_) => true,
            };
            (minor < mended && bears).then_some((mended, fix))
        })
        .collect();
    missing.sort_by_key(|(mended, _)| *mended);
    missing
}

/// Makes indexes right that a defect can have hurt.
fn reindexing(missing: &[(u16, &Fix)]) -> Option<String> {
    let methods: BTreeSet<&str> = missing
        .iter()
        .filter_map(|(_, fix)| match fix.hurts {
            Indexes(method) => Some(method),
            Everything | Nothing(_) => None,
        })
        .collect();
    (!methods.is_empty()).then(|| {
        let methods: Vec<String> = methods.iter().map(|own| format!("'{own}'")).collect();
        format!(
            "SELECT format('REINDEX INDEX CONCURRENTLY %s', c.oid::regclass) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
             WHERE c.relkind = 'i' AND c.oid >= 16384 AND a.amname IN ({}) \\gexec -- afterwards, in psql",
            methods.join(", ")
        )
    })
}

/// What may have been hurt is checked; what cost time is measured.
fn settled_by(missing: &[(u16, &Fix)]) -> String {
    let mut commands = BTreeSet::new();
    for (_, fix) in missing {
        commands.insert(match fix.hurts {
            Nothing(experiment) => experiment,
            Everything | Indexes(_) => "pgclinic check PGDATA --level full",
        });
    }
    let commands: Vec<&str> = commands.into_iter().collect();
    commands.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(release: (u16, u16), methods: &[&str]) -> Vec<String> {
        let methods = methods.iter().copied().collect();
        let missing = missing_in(release, &methods);
        let words = missing
            .iter()
            .map(|(minor, fix)| format!("{minor} {}", fix.words));
        words.collect()
    }

    #[test]
    fn what_a_release_has_mended_already_is_no_advice() {
        assert!(
            words((15, 5), &["gist"])
                .iter()
                .all(|own| !own.contains("GiST"))
        );
        assert!(
            words((15, 4), &["gist"])
                .iter()
                .any(|own| own.contains("GiST"))
        );
        assert_eq!(words((15, 16), &["btree", "gin", "gist", "brin"]), [""; 0]);
        assert_eq!(words((12, 3), &["btree"]), [""; 0]);
    }

    #[test]
    fn indexes_that_nobody_has_need_no_release() {
        let all = words((13, 13), &[]);
        assert!(all.iter().all(|own| !own.contains("GIN")), "{all:?}");
        assert!(
            words((13, 13), &["gin"])
                .iter()
                .any(|own| own.contains("GIN"))
        );
    }

    #[test]
    fn the_releases_of_the_article_are_those_of_2024_q1() {
        let of_article = |fix: &&Fix| matches!(fix.hurts, Nothing(_));
        for fix in FIXES.iter().filter(of_article) {
            assert!(fix.releases.contains(&(15, 6)) && fix.releases.contains(&(13, 14)));
        }
    }

    #[test]
    fn each_major_is_named_once_by_a_fix() {
        for fix in FIXES {
            let majors: BTreeSet<u16> = fix.releases.iter().map(|(major, _)| *major).collect();
            assert_eq!(majors.len(), fix.releases.len(), "{}", fix.words);
        }
    }
}
