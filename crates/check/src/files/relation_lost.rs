//! A relation whose row in `pg_class` is lost.

use pgclinic_cluster::inventory::{default_home, is_remade};
use pgclinic_cluster::{
    Comparison, DatabaseContext, ForkFiles, LostRelation, RelKind, fork_place, kind_of,
};
use pgclinic_format::Fork;
use pgclinic_format::oid::PG_CLASS;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{FileKind, Level, NotChecked, Origin, Place};
use pgclinic_model::{Rule, plural};

use crate::check::DatabaseCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static RELATION_LOST: Rule = Rule::from_page(include_str!("../../rules/relation-lost.md"));

/// See [`RELATION_LOST`].
pub struct RelationLost;

impl DatabaseCheck for RelationLost {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&RELATION_LOST] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn asks_recovered(&self) -> bool {
        true
    }

    fn check(&self, database: &DatabaseContext<'_>, out: &mut Findings) {
        let (cluster, catalog) = (database.cluster, database.catalog);
        let known = cluster.databases.get(&catalog.database);
        let is_dropped = known.is_some_and(|known| known.invalid);
        // Shared relations have their row in every database, and are reported there.
        let is_shared = catalog.database == 0;
        let is_comparable = cluster.may_compare(Comparison::FilesWithCatalogs)
            && !is_remade(cluster, catalog.database);
        if is_shared || is_dropped || !is_comparable {
            return;
        }
        let proven = catalog.lost_relations.iter();
        for lost in proven.filter(|lost| !lost.is_unread) {
            out.add(draft_of(database, lost));
        }
        if !catalog.names_are_complete() && !catalog.is_blind() && !catalog.names_unread {
            report_unclaimed(database, out);
        }
    }
}

fn draft_of(database: &DatabaseContext<'_>, lost: &LostRelation) -> Draft {
    let oid = lost.oid.map(|oid| format!("OID {oid}"));
    let file = lost.path.as_ref().map(|path| format!("file {path}"));
    let facts: Vec<String> = oid.into_iter().chain(file).collect();
    let facts = match facts.as_slice() {
        [] => String::new(),
        facts => format!(" ({})", facts.join(", ")),
    };
    let witness = witness_words(lost);
    let message = format!(
        "the row of relation {}{facts} in pg_class is lost: {witness}",
        lost.words()
    );
    let mut draft = Draft::new(&RELATION_LOST, message).place(place_of(database, lost));
    if let Some(words) = server_words(database, lost) {
        draft = draft.server_says(words);
    }
    draft.links.follows.extend(row_origin(database, lost));
    match lost.row {
        Some(row) => draft.fact("pg_class_ctid", row.to_string()),
        None => draft,
    }
}

fn witness_words(lost: &LostRelation) -> String {
    if let Some((last, others)) = lost.mentioned_by.split_last() {
        let and_last = match others {
            [] => (*last).to_owned(),
            others => format!("{} and {last}", others.join(", ")),
        };
        let and_file = lost.path.as_ref().map_or("", |_| ", and its file is there");
        let mention = match others {
            [] => "mentions",
            _ => "mention",
        };
        return format!("{and_last} still {mention} it{and_file}");
    }
    match (lost.row, lost.has_columns) {
        (Some(_), true) => "the indexes of pg_class and the columns in pg_attribute still name it",
        (Some(_), false) => "the indexes of pg_class still name it, and its file is there",
        (None, _) => "its columns in pg_attribute are there",
    }
    .to_owned()
}

/// The page of `pg_class` that had the row, or any of them where nobody knows which.
fn row_origin(database: &DatabaseContext<'_>, lost: &LostRelation) -> Option<Origin> {
    let pg_class = database.catalog.relations.get(&PG_CLASS)?;
    Some(Origin {
        database: database.catalog.database,
        filenode: pg_class.filenode,
        fork: Fork::Main,
        block: lost.row.map(|row| row.block),
    })
}

/// Names are not found. What is reached by its number is missed by that, but nobody can say when;
/// and a server without rows of its own catalogs says many things, or does not start.
fn server_words(database: &DatabaseContext<'_>, lost: &LostRelation) -> Option<String> {
    let oid = lost.oid.filter(|oid| *oid >= FIRST_NORMAL_OID)?;
    let is_user = |lost: &LostRelation| lost.oid.is_some_and(|oid| oid >= FIRST_NORMAL_OID);
    let catalog = database.catalog;
    let relation = catalog.relations.get(&oid)?;
    let by_name = !matches!(relation.kind, RelKind::Index | RelKind::Toast);
    (by_name && lost.name.is_some() && catalog.lost_relations.iter().all(is_user))
        .then(|| format!("ERROR:  relation \"{}\" does not exist", lost.words()))
}

/// At its file; a relation without one stands where its row stood.
fn place_of(database: &DatabaseContext<'_>, lost: &LostRelation) -> Place {
    let (cluster, catalog) = (database.cluster, database.catalog);
    let relation = lost.oid.and_then(|oid| catalog.relations.get(&oid));
    let pg_class = catalog.relations.get(&PG_CLASS);
    let own_file = lost.path.clone().zip(lost.filenode);
    let (path, filenode) = own_file.clone().unwrap_or_else(|| {
        let filenode = pg_class.map_or(PG_CLASS, |relation| relation.filenode);
        let folder = default_home(cluster, catalog.database).map(|home| home.folder.as_str());
        (
            format!("{}/{filenode}", folder.unwrap_or_default()),
            filenode,
        )
    });
    let mut place = Place {
        path,
        database: catalog.database_name.clone(),
        schema: lost.schema.clone(),
        relation: lost.name.clone(),
        database_oid: Some(catalog.database),
        relation_oid: lost.oid,
        filenode: Some(filenode),
        kind: match relation {
            Some(_) => kind_of(relation),
            None => FileKind::Unknown,
        },
        fork: Some(Fork::Main),
        ..Place::default()
    };
    if own_file.is_none() {
        place.block = lost.row.map(|row| row.block);
        place.item = lost.row.map(|row| row.offset);
    }
    place
}

/// Files that no relation names, where names are missing: those with numbers that only `initdb`
/// gives belong to the system.
fn report_unclaimed(database: &DatabaseContext<'_>, out: &mut Findings) {
    let catalog = database.catalog;
    let (mut files, mut bytes) = (0u64, 0u64);
    let is_unclaimed = |fork: &&ForkFiles| {
        let named = catalog.by_file(fork.home.tablespace, fork.filenode);
        fork.fork == Fork::Main && fork.temporary.is_none() && named.is_none()
    };
    for fork in database.forks.iter().filter(is_unclaimed) {
        if fork.filenode >= FIRST_NORMAL_OID {
            files += 1;
            bytes += fork.bytes();
            continue;
        }
        let message = format!(
            "no relation names this file of {} bytes, which has a number that only initdb gives, and rows of pg_class are lost",
            fork.bytes()
        );
        let first = fork.segments.first().map_or(0, |segment| segment.number);
        let place = fork_place(catalog.database_name.as_deref(), None, fork, first);
        out.add(Draft::new(&RELATION_LOST, message).place(place));
    }
    if files > 0 {
        let name = catalog.database_name.clone();
        let name = name.unwrap_or_else(|| catalog.database.to_string());
        out.not_checked(NotChecked {
            what: format!(
                "to which relations {} of database {name} {} ({bytes} bytes)",
                plural(files, "file"),
                if files == 1 { "belongs" } else { "belong" }
            ),
            why: "pg_class is not whole: they may be tables. Keep them; pgclinic salvage writes what they hold into unclaimed/"
                .into(),
            inherent: false,
        });
    }
}
