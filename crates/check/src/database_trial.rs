//! A filled cluster of a real server, hurt in an overlay, for tests of checks of files.

use std::sync::Arc;

use pgclinic_cluster::{
    Catalog, Cluster, DatabaseContext, DatabaseDirectory, OpenOptions, Relation, fork_path,
};
use pgclinic_format::{Fork, Oid};
use pgclinic_servers::Checksums;
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch, Source};
use pgclinic_testkit::{seed, server};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The cluster of a PostgreSQL 18 that was stopped in good order.
pub(crate) struct DatabaseTrial {
    whole: Arc<dyn Source>,
    pub(crate) cluster: Cluster,
}

impl DatabaseTrial {
    pub(crate) fn new() -> Self {
        let seeded = seed(&server(18), Checksums::On);
        DatabaseTrial::of(Arc::new(
            DataDirectory::open(&seeded.pgdata).expect("a seed"),
        ))
    }

    fn of(whole: Arc<dyn Source>) -> Self {
        DatabaseTrial::opened(Arc::clone(&whole), OpenOptions::of(whole))
    }

    fn opened(whole: Arc<dyn Source>, options: OpenOptions) -> Self {
        let cluster = Cluster::open(options).expect("a seed is a cluster");
        DatabaseTrial { whole, cluster }
    }

    /// The same with changed files.
    pub(crate) fn hurt(&self, patches: Vec<OverlayPatch>) -> Self {
        let overlay = Overlay::new(Arc::clone(&self.whole), patches).expect("patches of files");
        DatabaseTrial::of(Arc::new(overlay))
    }

    /// A database's OID by its name.
    pub(crate) fn database(&self, name: &str) -> Oid {
        let mut databases = self.cluster.databases.values();
        databases
            .find(|database| database.name.as_deref() == Some(name))
            .expect("a database of a seed")
            .oid
    }

    /// The path of the first segment of a relation's fork.
    pub(crate) fn path(&self, relation: &Relation, database: Oid, fork: Fork) -> String {
        let is_home = |home: &&DatabaseDirectory| {
            home.tablespace == relation.tablespace && home.database == database
        };
        let home = self
            .cluster
            .homes
            .iter()
            .find(is_home)
            .expect("relations have directories");
        fork_path(&home.folder, relation.filenode, fork, 0)
    }

    /// The relations of a database.
    pub(crate) fn catalog(&self, database: Oid) -> Catalog {
        self.cluster.catalog(database)
    }

    /// What a check says about all databases, as `rule path: message`, without notes.
    pub(crate) fn told(&self, checks: &[&dyn DatabaseCheck]) -> Vec<String> {
        let drafts = self.drafts(checks).into_iter();
        drafts
            .filter(|draft| draft.severity != pgclinic_model::Severity::Note)
            .map(|draft| line(&draft))
            .collect()
    }

    /// What checks say about all databases.
    pub(crate) fn drafts(&self, checks: &[&dyn DatabaseCheck]) -> Vec<Draft> {
        let mut out = Findings::default();
        for database in std::iter::once(0).chain(self.cluster.databases.keys().copied()) {
            let catalog = self.cluster.catalog(database);
            let homes = self
                .cluster
                .homes
                .iter()
                .filter(|home| home.database == database);
            let forks: Vec<_> = homes
                .flat_map(|home| self.cluster.files(home).expect("a directory"))
                .collect();
            let cx = DatabaseContext {
                cluster: &self.cluster,
                catalog: &catalog,
                forks: &forks,
            };
            for check in checks {
                check.check(&cx, &mut out);
            }
        }
        out.take_drafts()
    }
}

pub(crate) fn line(draft: &Draft) -> String {
    let path = draft.place.as_ref().map_or("", |place| place.path.as_str());
    format!("{} {path}: {}", draft.rule.name, draft.message)
}

/// On clusters that a server made.
mod seeded {
    use super::*;
    use crate::files::{
        empty_sequence, map_beyond_end, missing_database_directory, missing_file,
        missing_init_fork, orphan_file, pages_beyond_end, partial_block, version_file,
    };
    use crate::register::{CLUSTER_CHECKS, DATABASE_CHECKS};
    use pgclinic_cluster::{Persistence, RelKind};

    fn a_relation(catalog: &Catalog, fits: impl Fn(&Relation) -> bool) -> &Relation {
        let mut own = catalog
            .relations
            .values()
            .filter(|relation| relation.oid >= 16384);
        own.find(|relation| fits(relation))
            .expect("a seed has every kind of relation")
    }

    fn is_table(relation: &Relation) -> bool {
        relation.kind == RelKind::Table && relation.persistence == Persistence::Permanent
    }

    fn cut(path: &str, len: u64) -> OverlayPatch {
        OverlayPatch::Cut {
            path: path.into(),
            len,
        }
    }

    #[test]
    fn a_healthy_cluster_has_nothing_but_notes() {
        let trial = DatabaseTrial::new();
        assert_eq!(trial.told(&DATABASE_CHECKS), [""; 0]);
        let mut out = Findings::default();
        for check in CLUSTER_CHECKS.iter() {
            check.check(&trial.cluster, &mut out);
        }
        assert!(out.is_quiet());
    }

    #[test]
    fn lost_cut_and_emptied_files_are_found_and_nothing_else() {
        let trial = DatabaseTrial::new();
        let database = trial.database("clinic");
        let catalog = trial.catalog(database);
        let main = |relation: &Relation| trial.path(relation, database, Fork::Main);
        let told = |patch: OverlayPatch| trial.hurt(vec![patch]).told(&DATABASE_CHECKS);

        let table = a_relation(&catalog, |relation| {
            is_table(relation) && relation.relpages > 1
        });
        let lost = told(OverlayPatch::Remove { path: main(table) });
        let name = table.qualified_name();
        assert_eq!(
            lost,
            [format!(
                "missing-file {}: the file of {name} is missing",
                main(table)
            )]
        );

        let odd = told(cut(&main(table), 8192 + 3));
        let expected = format!(
            "partial-block {}: the file has 8195 bytes: 1 whole block and 3 bytes",
            main(table)
        );
        assert!(odd.contains(&expected), "{odd:?}");

        let index = a_relation(&catalog, |relation| {
            relation.kind == RelKind::Index && relation.relpages > 0
        });
        let path = main(index);
        let name = index.qualified_name();
        assert_eq!(
            told(cut(&path, 0)),
            [format!(
                "empty-index {path}: the main fork of index {name} has no pages"
            )]
        );

        let sequence = a_relation(&catalog, |relation| relation.kind == RelKind::Sequence);
        assert!(
            told(cut(&main(sequence), 0))
                .iter()
                .all(|line| line.starts_with("empty-sequence "))
        );

        let unlogged = a_relation(&catalog, |relation| {
            relation.persistence == Persistence::Unlogged
        });
        let path = trial.path(unlogged, database, Fork::Init);
        let expected = format!(
            "missing-init-fork {path}: unlogged {} has no init fork",
            unlogged.qualified_name()
        );
        assert_eq!(told(OverlayPatch::Remove { path }), [expected]);
    }

    #[test]
    fn a_table_that_lost_its_end_is_told_by_its_map_and_by_relpages() {
        let trial = DatabaseTrial::new();
        let database = trial.database("clinic");
        let catalog = trial.catalog(database);
        let mapped = a_relation(&catalog, |relation| {
            let map = trial.path(relation, database, Fork::Vm);
            is_table(relation) && relation.relpages > 1 && trial.cluster.source().len(&map).is_ok()
        });
        let path = trial.path(mapped, database, Fork::Main);
        let hurt = trial.hurt(vec![cut(&path, 0)]);
        let map = hurt.told(&[&map_beyond_end::MapBeyondEnd]);
        assert_eq!(map.len(), 1, "{map:?}");
        assert!(
            map.iter()
                .all(|line| line.ends_with("of a table of 0 blocks")),
            "{map:?}"
        );
        let pages = hurt.drafts(&[&pages_beyond_end::PagesBeyondEnd]);
        assert!(pages.iter().any(|draft| line(draft).contains(&path)));
    }

    #[test]
    fn foreign_files_are_notes_and_never_damage() {
        let trial = DatabaseTrial::new();
        let folder = format!("base/{}", trial.database("clinic"));
        let file = |name: &str| OverlayPatch::Bytes {
            path: format!("{folder}/{name}"),
            offset: 0,
            bytes: vec![1; 3],
        };
        let hurt = trial.hurt(vec![
            file("99999"),
            file("99998.x"),
            file("t3_77"),
            file("pg_internal.init.7"),
        ]);
        assert_eq!(hurt.told(&DATABASE_CHECKS), [""; 0]);
        let checks: [&dyn DatabaseCheck; 2] =
            [&orphan_file::OrphanFile, &partial_block::PartialBlock];
        let before: Vec<_> = trial.drafts(&checks).iter().map(line).collect();
        let new = hurt.drafts(&checks);
        let new: Vec<_> = new
            .iter()
            .map(line)
            .filter(|line| !before.contains(line))
            .collect();
        assert_eq!(
            new,
            [
                format!("orphan-file {folder}/99999: no relation has this file of 3 bytes"),
                format!(
                    "partial-block {folder}/99999: the file has 3 bytes: 0 whole blocks and 3 bytes"
                ),
            ]
        );
    }

    #[test]
    fn the_folders_of_databases_are_looked_at() {
        let trial = DatabaseTrial::new();
        let folder = format!("base/{}", trial.database("clinic"));
        let version = format!("{folder}/PG_VERSION");
        let told = |patches| trial.hurt(patches).told(&[&version_file::VersionFile]);
        let missing = told(vec![OverlayPatch::Remove {
            path: version.clone(),
        }]);
        assert_eq!(
            missing,
            [format!("version-file {version}: PG_VERSION is missing")]
        );
        let other = OverlayPatch::Bytes {
            path: version.clone(),
            offset: 0,
            bytes: b"17\n".to_vec(),
        };
        assert_eq!(
            told(vec![other]),
            [format!(
                "version-file {version}: PG_VERSION says \"17\", not 18"
            )]
        );
        let lost = missing_database_directory::MISSING_DATABASE_DIRECTORY.name;
        assert!(
            trial
                .told(&DATABASE_CHECKS)
                .iter()
                .all(|line| !line.starts_with(lost))
        );
    }

    #[test]
    fn nothing_is_missed_in_a_cluster_of_which_a_part_is_not_there() {
        let trial = DatabaseTrial::new();
        let database = trial.database("clinic");
        let catalog = trial.catalog(database);
        let table = a_relation(&catalog, is_table);
        let index = a_relation(&catalog, |relation| relation.kind == RelKind::Index);
        let hurt = trial.hurt(vec![
            OverlayPatch::Remove {
                path: trial.path(table, database, Fork::Main),
            },
            cut(&trial.path(index, database, Fork::Main), 5),
        ]);
        let missing = missing_file::MISSING_FILE.name;
        let told = hurt.told(&DATABASE_CHECKS);
        assert!(
            told.iter().any(|line| line.starts_with(missing)),
            "{told:?}"
        );
        let options = OpenOptions::of(Arc::clone(&hurt.whole)).truncated();
        let partial = DatabaseTrial::opened(Arc::clone(&hurt.whole), options);
        let told = partial.told(&DATABASE_CHECKS);
        assert!(told.is_empty(), "{told:?}");
    }

    #[test]
    fn nothing_is_compared_in_a_cluster_that_needs_recovery() {
        let trial = DatabaseTrial::new();
        let control = "global/pg_control".to_owned();
        let mut bytes = pgclinic_source::read_all(trial.whole.as_ref(), &control, 8192)
            .expect("a control file");
        pgclinic_format::build::put_u32(&mut bytes, 16, 6);
        assert!(pgclinic_format::control_file::seal(&mut bytes));
        let database = trial.database("clinic");
        let catalog = trial.catalog(database);
        let table = a_relation(&catalog, is_table);
        let index = a_relation(&catalog, |relation| relation.kind == RelKind::Index);
        let hurt = trial.hurt(vec![
            OverlayPatch::Bytes {
                path: control,
                offset: 0,
                bytes,
            },
            OverlayPatch::Remove {
                path: trial.path(table, database, Fork::Main),
            },
            cut(&trial.path(index, database, Fork::Main), 5),
        ]);
        let drafts = hurt.drafts(&DATABASE_CHECKS);
        let rules: Vec<_> = drafts
            .iter()
            .map(|draft| (draft.rule.name, draft.severity.name()))
            .collect();
        // WAL knows nothing of the index, so that recovery leaves it as it is.
        let expected = [("partial-block", "note"), ("empty-index", "damage")];
        assert_eq!(rules, expected);
        let silent: [&dyn DatabaseCheck; 3] = [
            &missing_file::MissingFile,
            &empty_sequence::EmptySequence,
            &missing_init_fork::MissingInitFork,
        ];
        assert!(hurt.drafts(&silent).is_empty());
    }
}
