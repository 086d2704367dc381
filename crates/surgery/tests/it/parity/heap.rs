//! `verify_heapam` beside our checkup.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_model::Level;
use pgclinic_servers::{Checksums, Session, StartOptions};
use pgclinic_testkit::{checked, copy_of, open, seed, server};

use crate::parity::hurt::hurt_pages;

/// What is hurt, and how many places that must give at least.
pub(crate) struct Trial {
    pub(crate) injuries: &'static [&'static str],
    /// Kinds of relations that `amcheck` is asked about, as SQL lists them.
    pub(crate) kinds: &'static str,
    pub(crate) check_toast: bool,
    pub(crate) pages_hurt: usize,
    pub(crate) rows_found: usize,
}

/// Relation, block and line pointer.
type Place = (u32, u32, u16);

/// Line pointers with what `amcheck` says of them.
fn amcheck(session: &mut Session, trial: &Trial) -> BTreeMap<Place, String> {
    let sql = format!(
        "SELECT c.oid, v.blkno, v.offnum, v.msg \
         FROM pg_class c, ext.verify_heapam(c.oid, check_toast := {}) v \
         WHERE c.relam = 2 AND c.oid >= 16384 AND c.relkind IN ({}) AND c.relpersistence = 'p'",
        trial.check_toast, trial.kinds
    );
    let rows = session.query(&sql).expect("an answer");
    rows.iter()
        .map(|row| {
            let number = |at: usize| row[at].as_deref().and_then(|text| text.parse().ok());
            let item: u32 = number(2).expect("an item");
            let place = (
                number(0).expect("an oid"),
                number(1).expect("a block"),
                u16::try_from(item).expect("an item"),
            );
            (place, row[3].clone().unwrap_or_default())
        })
        .collect()
}

impl Trial {
    /// On a cluster of this major.
    pub(crate) fn passes_on(&self, major: u16) {
        let copy = copy_of(&seed(&server(major), Checksums::On));
        let pages = hurt_pages(&copy, self.injuries, 1);
        assert!(pages >= self.pages_hurt, "{pages} pages were hurt");
        let ours: BTreeSet<Place> = checked(&open(&copy.pgdata), Level::Full)
            .findings
            .into_iter()
            .filter_map(|finding| {
                let place = finding.place;
                Some((place.relation_oid?, place.block?, place.item.unwrap_or(0)))
            })
            .collect();
        let options = StartOptions::default()
            .with("max_prepared_transactions", "8")
            .with("autovacuum", "off");
        let server = copy.start_with(&options).expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        let theirs = amcheck(&mut session, self);
        assert!(
            theirs.len() >= self.rows_found,
            "amcheck finds {}",
            theirs.len()
        );
        let missed: Vec<String> = theirs
            .iter()
            .filter(|((oid, block, item), _)| {
                !ours.contains(&(*oid, *block, *item)) && !ours.contains(&(*oid, *block, 0))
            })
            .map(|(place, words)| format!("{place:?}: {words}"))
            .collect();
        assert!(missed.is_empty(), "\n{}", missed.join("\n"));
    }
}
