//! `amcheck`'s functions for one index beside our checkup: an index of its own for each injury.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_model::{Finding, Level, Severity};
use pgclinic_servers::{Checksums, Message, Session, SqlError, StartOptions, StopMode};
use pgclinic_surgery::{Injury, InjuryOptions, InjuryTargets, PlannedInjury, injuries, plan_on};
use pgclinic_testkit::{TempCopy, checked, copy_of, open, seed, server};

use crate::parity::hurt::{anywhere, write};

/// Indexes of one access method, in the schema `parity`.
pub(crate) struct Trial {
    /// What the names of its injuries begin with.
    pub(crate) prefix: &'static str,
    /// Makes what comes before the indexes.
    pub(crate) fill: &'static str,
    /// An index each: what follows the injury's name in the index's name, and in `CREATE INDEX`.
    pub(crate) indexes: &'static [(&'static str, &'static str)],
    /// Follows the indexes, one batch each.
    pub(crate) after: &'static [&'static str],
    /// Calls of `amcheck`, without the OID of the index and what follows it.
    pub(crate) calls: &'static [(&'static str, &'static str)],
    /// Blocks that a complaint of `amcheck` may mean beside those that it names.
    pub(crate) also_meant: fn(&str, &BTreeSet<u32>) -> BTreeSet<u32>,
}

/// An index that was hurt.
struct Hurt {
    injury: &'static str,
    index: String,
    oid: u32,
    block: u32,
}

/// Damage of the parity schema.
fn damage(copy: &TempCopy) -> Vec<Finding> {
    let mut findings = checked(&open(&copy.pgdata), Level::Full).findings;
    findings.retain(|finding| {
        finding.severity == Severity::Damage && finding.place.schema.as_deref() == Some("parity")
    });
    findings
}

/// A place in this index: somewhere, or on its meta page.
fn planned(targets: &InjuryTargets<'_>, injury: &Injury, index: &str) -> Option<PlannedInjury> {
    [None, Some(0)].into_iter().find_map(|block| {
        let options = InjuryOptions {
            relation: Some(index.into()),
            block,
            ..anywhere()
        };
        plan_on(targets, injury, &options).ok()
    })
}

/// Numbers of blocks in somebody's words, those of rows included.
fn blocks_in(words: &str) -> BTreeSet<u32> {
    let words = words.to_lowercase();
    let marks = [
        "block ",
        "blocks ",
        "block=",
        "pointed to=",
        "(",
        "btpo_next ",
        "btm_root ",
    ];
    let mut blocks = BTreeSet::new();
    for mark in marks {
        for (at, _) in words.match_indices(mark) {
            let behind = words.get(at + mark.len()..).unwrap_or_default();
            let digits = behind.split(|letter: char| !letter.is_ascii_digit()).next();
            blocks.extend(digits.and_then(|digits| digits.parse::<u32>().ok()));
        }
    }
    blocks
}

fn said(message: &Message) -> String {
    let detail = message.detail.as_deref().unwrap_or_default();
    format!("{} ({detail})", message.message)
}

impl Trial {
    /// On a cluster of this major; `amcheck` says nothing of indexes hurt by `unseen`.
    pub(crate) fn passes_on(&self, major: u16, unseen: &[&str]) {
        let copy = copy_of(&seed(&server(major), Checksums::On));
        self.fill(&copy);
        assert!(damage(&copy).is_empty(), "sound before it is hurt");
        let hurt = self.hurt(&copy);
        let kinds: BTreeSet<&str> = hurt.iter().map(|hurt| hurt.injury).collect();
        let all = self.injuries().map(|injury| injury.name).collect();
        assert_eq!(kinds, all, "each injury has a place");
        let mut ours: BTreeMap<u32, Vec<Finding>> = BTreeMap::new();
        for finding in damage(&copy) {
            let relation = finding.place.relation_oid.expect("a relation");
            ours.entry(relation).or_default().push(finding);
        }
        let options = StartOptions::default().with("autovacuum", "off");
        let server = copy.start_with(&options).expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        let (mut wrong, mut silent) = (Vec::new(), BTreeSet::new());
        for hurt in &hurt {
            let found = ours.get(&hurt.oid).map(Vec::as_slice).unwrap_or_default();
            let complaints = self.amcheck(&mut session, hurt.oid);
            let missed = complaints
                .iter()
                .filter_map(|one| self.missed(one, hurt.block, found));
            wrong.extend(
                missed.map(|words| format!("{}, block {}: {words}", hurt.index, hurt.block)),
            );
            if found.is_empty() {
                wrong.push(format!("{}: nothing of ours", hurt.index));
            }
            silent.extend(complaints.is_empty().then_some(hurt.injury));
        }
        let unseen = unseen.iter().copied().collect();
        assert_eq!(silent, unseen, "amcheck says nothing");
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    fn injuries(&self) -> impl Iterator<Item = &'static Injury> {
        let own = injuries().iter();
        own.filter(|injury| injury.name.starts_with(self.prefix))
    }

    fn fill(&self, copy: &TempCopy) {
        let mut server = copy.start().expect("a server");
        let mut session = server.connect("clinic").expect("a session");
        session.execute(self.fill).expect("the table");
        for injury in self.injuries() {
            for (name, definition) in self.indexes {
                let kind = definition.trim_start_matches("UNIQUE ");
                let unique = if kind == *definition { "" } else { "UNIQUE" };
                let name = format!("{}{name}", injury.name);
                let sql = format!("CREATE {unique} INDEX \"{name}\" ON parity.{kind}");
                session.execute(&sql).expect("an index");
            }
        }
        for batch in self.after {
            session.execute(batch).expect("a batch");
        }
        drop(session);
        server.stop(StopMode::Fast).expect("a stop");
    }

    fn hurt(&self, copy: &TempCopy) -> Vec<Hurt> {
        let cluster = open(&copy.pgdata);
        let targets = InjuryTargets::new(&cluster);
        let mut hurt = Vec::new();
        for injury in self.injuries() {
            for (name, _) in self.indexes {
                let index = format!("parity.{}{name}", injury.name);
                let Some(planned) = planned(&targets, injury, &index) else {
                    continue;
                };
                write(&copy.pgdata, &planned);
                hurt.push(Hurt {
                    injury: injury.name,
                    index,
                    oid: planned.place.relation_oid.expect("an index"),
                    block: planned.place.block.expect("a page"),
                });
            }
        }
        hurt
    }

    /// The complaints about one index.
    fn amcheck(&self, session: &mut Session, oid: u32) -> Vec<Message> {
        let mut complaints = Vec::new();
        for (function, rest) in self.calls {
            let call = format!("SELECT ext.{function}({oid}{rest})");
            match session.query(&call) {
                Ok(_) => {}
                Err(SqlError::Server(message)) => complaints.push(*message),
                Err(error) => panic!("{call}: {error:?}"),
            }
        }
        complaints
    }

    /// What of this complaint about an index hurt at `block` we do not find; nothing where all is
    /// well.
    fn missed(&self, message: &Message, block: u32, ours: &[Finding]) -> Option<String> {
        let mut named = blocks_in(&said(message));
        named.extend((self.also_meant)(&message.message, &named));
        let mut at: BTreeSet<u32> = ours
            .iter()
            .filter_map(|finding| finding.place.block)
            .collect();
        at.extend(ours.iter().flat_map(|finding| blocks_in(&finding.message)));
        // A row that a scan of the leaves does not meet has its entry on a page that is not linked:
        // ours names the page.
        let is_of_row = message.message.starts_with("heap tuple ") && at.contains(&block);
        let same = named.is_empty() || is_of_row || named.intersection(&at).next().is_some();
        (ours.is_empty() || !same).then(|| format!("{}; ours at {at:?}", said(message)))
    }
}
