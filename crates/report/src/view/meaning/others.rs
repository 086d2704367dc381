//! Documents that do not say whether a cluster is well.

use std::cmp::Reverse;

use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{
    BlindDocument, DecisionWord, DrillDocument, ExperimentDocument, FileKind, InspectDocument,
    LossDocument, MeasureDocument, MeasuredRelation, Place, RehearsalDocument, RowOutcome,
    SignState, StartDrillDocument, WatchDocument, WatchedSign, WatchedTarget,
};
use pgclinic_model::{Severity, shell_word};

use super::Meaning;
use crate::view::next::{self, Next};
use crate::view::space;
use crate::words::{self as say, count_of, plural};

pub(crate) fn measure(document: &MeasureDocument) -> Meaning {
    let target = &document.target;
    let mut not_measured = document.coverage.not_checked.iter();
    let total: u64 = document.relations.iter().map(|own| own.bytes).sum();
    let sentence = match space::would_come_back(document) {
        _ if document.interrupted => {
            "The run was stopped: the figures are those of what was read up to then.".to_owned()
        }
        Some((bytes, most)) => format!(
            "About {} of {} would come back, the most of it ({most}) by the first of the statements here; whether the data is sound is what check says.",
            say::bytes(bytes),
            say::bytes(total)
        ),
        None => "Nothing that is worth a statement would come back: what relations take, they use. Whether their data is sound is what check says.".to_owned(),
    };
    let mut next = Next::default();
    if not_measured.any(|gap| !gap.inherent) {
        let check = format!("pgclinic check {}", target.as_arguments());
        next = next.and("learn whether what was not measured is damaged", check);
    }
    if document.relations.len() > 1 {
        let largest = largest(document);
        let largest = largest
            .and_then(|place| next::relation(&place))
            .map(|relation| format!("pgclinic measure {}{relation}", target.as_arguments()));
        next = next.and_maybe(
            "all figures of the largest table, and of its columns",
            largest,
        );
    }
    Meaning::of(sentence, next)
}

/// The place of the largest table that is not the server's own.
fn largest(document: &MeasureDocument) -> Option<Place> {
    let relations = document.relations.iter();
    let own = relations.filter(|own| {
        let is_users = own.relation_oid.is_some_and(|oid| oid >= FIRST_NORMAL_OID);
        is_users && own.kind == FileKind::Table
    });
    own.min_by_key(|own| Reverse(own.bytes)).map(place)
}

fn place(own: &MeasuredRelation) -> Place {
    Place {
        database: own.database.clone(),
        schema: own.schema.clone(),
        relation: own.relation.clone(),
        filenode: Some(own.filenode),
        ..Place::default()
    }
}

pub(crate) fn inspect(document: &InspectDocument) -> Meaning {
    let target = &document.target;
    let damage = document.findings.iter();
    let damage: Vec<_> = damage
        .filter(|finding| finding.severity == Severity::Damage)
        .collect();
    let relation = match target.kind.as_str() {
        "relation-file" => Some(String::new()),
        _ => next::relation(&document.place),
    };
    if damage.is_empty() {
        let check = relation.map(|relation| {
            let level = if relation.is_empty() {
                ""
            } else {
                " --level full"
            };
            format!("pgclinic check {}{relation}{level}", target.as_arguments())
        });
        return Meaning::of(
            "This is one page as it lies on the disk, and nothing is wrong with it as far as a page alone shows.",
            Next::default().and_maybe("whether its rows fit what other pages say of them", check),
        );
    }
    let sentence = format!(
        "This is one page as it lies on the disk, with {} on it that PostgreSQL never writes.",
        plural(count_of(damage.len()), "fault")
    );
    let explain = damage
        .first()
        .map(|finding| format!("pgclinic explain {}", shell_word(&finding.rule)));
    let check =
        relation.map(|relation| format!("pgclinic check {}{relation}", target.as_arguments()));
    let next = Next::default()
        .and_maybe(
            "what the first fault is, where it comes from and what heals it",
            explain,
        )
        .and_maybe("all damage of this relation, with its ways out", check);
    Meaning::of(sentence, next)
}

pub(crate) fn drill(document: &DrillDocument) -> Meaning {
    if document.interrupted {
        return Meaning::alone("The drill was stopped: it says nothing of what was not run.");
    }
    if document.passed {
        let all = format!("pgclinic drill --all --seed {}", document.seed);
        return Meaning::of(
            "Each injury that was made was found, explained and taken back as it was declared; nothing of yours was touched.",
            Next::default()
                .and_maybe(
                    "the injuries that were left out",
                    (document.left_out > 0).then_some(all),
                )
                .and(ON_YOURS, ON_COPY),
        );
    }
    let mut failed = document.rows.iter();
    let failed = failed.find(|row| row.outcome == RowOutcome::Failed);
    let again = failed.map(|row| {
        let major = document.target.major.map(|major| format!(" --pg {major}"));
        let (seed, injury) = (document.seed, shell_word(&row.injury));
        format!(
            "pgclinic drill{} --seed {seed} --injury {injury}",
            major.unwrap_or_default()
        )
    });
    Meaning::of(
        "An injury was not found, explained or taken back as it was declared: what this program says of such damage is not to be relied on here.",
        Next::default().and_maybe("run the first one that failed alone", again),
    )
}

pub(crate) fn blind(document: &BlindDocument) -> Meaning {
    let sentence = match (document.interrupted, document.passed) {
        (true, _) => "The drill was stopped: it says nothing of the shots that were not fired.",
        (_, true) => {
            "Random damage that changed rows was found as often as is asked for; nothing of yours was touched."
        }
        (_, false) => {
            "Random damage that changed rows was missed more often than is allowed: a check that finds nothing says less than it should."
        }
    };
    Meaning::of(sentence, after_drill(document.passed))
}

/// What proves more than a drill on clusters of its own.
const ON_COPY: &str = "pgclinic drill --on-copy-of \"$PGDATA\"";
const ON_YOURS: &str = "the same on a copy of your own cluster, which is only read";

fn after_drill(passed: bool) -> Next {
    let command = passed.then(|| ON_COPY.to_owned());
    Next::default().and_maybe(ON_YOURS, command)
}

pub(crate) fn loss(document: &LossDocument) -> Meaning {
    let sentence = if document.interrupted && document.passed {
        "It was stopped before its end: every loss that was made until then was seen and counted; nothing of yours was touched."
    } else if document.passed {
        "Every loss that was made was seen and counted; nothing of yours was touched."
    } else {
        "A loss was not seen, or not counted rightly: rows may be missing that no report names."
    };
    Meaning::of(sentence, after_drill(document.passed))
}

pub(crate) fn start_drill(document: &StartDrillDocument) -> Meaning {
    let sentence = if document.interrupted && document.passed {
        "It was stopped before its end: every server that was kept from starting until then started again; nothing of yours was touched."
    } else if document.passed {
        "Every server that was kept from starting started again, with the rows that its plan promised; nothing of yours was touched."
    } else {
        "A server did not start again, or showed other rows than its plan promised: a plan for such damage is not to be trusted."
    };
    Meaning::of(sentence, after_drill(document.passed))
}

pub(crate) fn rehearsal(document: &RehearsalDocument) -> Meaning {
    let (target, seed) = (document.target.as_arguments(), document.seed);
    let again = |seed: u64| format!("pgclinic drill --on-copy-of {target} --seed {seed}");
    let (sentence, why, command) = if document.passed {
        (
            "On a copy of this cluster damage was found and rows were saved as far as can be promised; the cluster itself was only read.",
            "damage at other places of another copy",
            again(seed.wrapping_add(1)),
        )
    } else {
        (
            "On a copy of this cluster damage was missed, a false alarm was given, or rows were lost or wrong, as listed here; the cluster itself was only read.",
            "the same places again, on another copy",
            again(seed),
        )
    };
    Meaning::of(sentence, Next::default().and(why, command))
}

pub(crate) fn experiment(document: &ExperimentDocument) -> Meaning {
    let word = document.cards.first().map(|card| card.word);
    let sentence = match word {
        None => "Nothing can be decided from the runs that there are.",
        Some(DecisionWord::Undecided) => {
            "The runs that there are decide nothing; that is no proof that there is no difference."
        }
        Some(_) => {
            "It holds for these versions, this load and this machine, and is no promise for another."
        }
    };
    let is_decided = matches!(word, Some(word) if word != DecisionWord::Undecided);
    let why = match (document.complete, is_decided) {
        (false, _) => "go on with the runs that are missing",
        (true, true) => "see whether it holds once more",
        (true, false) => "run it again: more runs show smaller differences",
    };
    let command = Some(document.command.clone());
    let command = command.filter(|command| command.starts_with("pgclinic "));
    Meaning::of(sentence, Next::default().and_maybe(why, command))
}

pub(crate) fn catalog_cost() -> Meaning {
    Meaning::of(
        "So many rows the script writes into the catalogs beside its data: they live as long as its objects, and are dead when these are dropped.",
        Next::default().and(
            "what such rows cost the sessions of a server, measured on this machine",
            "pgclinic lab run catalog-churn",
        ),
    )
}

pub(crate) fn watch(document: &WatchDocument) -> Meaning {
    if document.unreachable() > 0 {
        return Meaning::of(
            "A server gives no answer: nothing is known of it at this moment, good or bad.",
            asked_again(document),
        );
    }
    let failures = document.targets.iter().flat_map(|own| &own.signs);
    let mut failures = failures.filter(|own| own.family == "checksums");
    if failures.any(|own| own.state == SignState::Critical) {
        let next = Next::default().and(
            "what a failed checksum means",
            "pgclinic explain checksum-mismatch",
        );
        return Meaning::of(
            "Pages on disk are not what the server wrote. Find them and the rows on them with pgclinic check of the data directory before anything else is done.",
            next,
        );
    }
    let sentence = match document.state() {
        SignState::Critical => {
            "A sign is where the server stops or loses data soon, if nobody acts."
        }
        SignState::Warning => "Nothing is lost; a sign is where it should not stay.",
        SignState::Unknown => {
            "The server refused to show signs that it has: what they would say is not known. The reasons stand with them."
        }
        SignState::NotAvailable => {
            "No sign could be read, so that nothing is known of the server but that it answers."
        }
        SignState::Ok => {
            "Nothing that a running server shows of itself is wrong. Pages that nobody reads are not among it: pgclinic check reads all of them."
        }
    };
    Meaning::of(sentence, pages_read(document, settled_by(document)))
}

/// The servers that gave no answer, once more.
fn asked_again(document: &WatchDocument) -> Next {
    let silent = document
        .targets
        .iter()
        .filter(|own| own.unreachable.is_some());
    silent.fold(Next::default(), |next, own| {
        let url = own.target.as_arguments();
        next.and("ask it once more", format!("pgclinic watch {url} --once"))
    })
}

/// What no sign shows.
fn pages_read(document: &WatchDocument, next: Next) -> Next {
    document.targets.iter().fold(next, |next, own| {
        let check = format!("pgclinic check {}", own.target.as_arguments());
        next.and("read every page of it, which no sign does", check)
    })
}

/// What settles the signs that stand out, the worst first.
fn settled_by(document: &WatchDocument) -> Next {
    let mut signs: Vec<(&WatchedTarget, &WatchedSign)> = document
        .targets
        .iter()
        .flat_map(|target| target.signs.iter().map(move |sign| (target, sign)))
        .filter(|(_, sign)| matches!(sign.state, SignState::Critical | SignState::Warning))
        .collect();
    signs.sort_by_key(|(_, sign)| Reverse(sign.state));
    signs
        .into_iter()
        .fold(Next::default(), |next, (target, sign)| {
            next.and_maybe(format!("what settles {}", sign.name), settles(target, sign))
        })
}

/// The first command of the words that say what settles a sign, with the server as its target.
fn settles(target: &WatchedTarget, sign: &WatchedSign) -> Option<String> {
    let url = target.target.as_arguments();
    sign.settled_by.split(['.', ';', ',']).find_map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        match words.as_slice() {
            ["pgclinic", "check", ..] => Some(format!("pgclinic check {url}")),
            ["pgclinic", "measure", "catalog-cost", ..] => None,
            ["pgclinic", "measure", ..] => Some(format!("pgclinic measure {url}")),
            ["pgclinic", "lab", "run", name] => Some(format!("pgclinic lab run {name}")),
            _ => None,
        }
    })
}
