//! Two copies against each other, and data checksums: may one copy stand for the other.

use pgclinic_model::document::{
    ChecksumsAction, ChecksumsDocument, ChecksumsOutcome, Copy, DiffDocument, DiffVerdict,
    Difference, Place, Target,
};

use super::Meaning;
use crate::view::next::{self, Next};

pub(crate) fn diff(document: &DiffDocument) -> Meaning {
    if document.interrupted {
        return Meaning::of(
            "The run was stopped before its end: of what was not compared yet nothing is known.",
            Next::default().and_maybe("run it again, to its end", again(document)),
        );
    }
    let check = |why: &str, target| (why.to_owned(), next::check_in_full(target));
    let (a, b) = (&document.a, &document.b);
    let (sentence, commands) = match document.verdict {
        DiffVerdict::Same => (
            "Both copies hold the same: nothing that was compared stands in one of them alone.",
            vec![check("learn whether what both hold is sound", a)],
        ),
        DiffVerdict::Explained => (
            "One copy is older than the other and nothing more: WAL explains all that differs, so that replay makes them the same.",
            vec![
                check("learn whether A is sound: WAL does not say so", a),
                check("and B", b),
            ],
        ),
        DiffVerdict::Parted => (
            "Each copy went on by itself and holds changes that the other lacks: no replay brings both together, so decide which one is kept before either is started.",
            vec![check("learn whether A is sound", a), check("and B", b)],
        ),
        DiffVerdict::Incomplete => (
            "Nothing contradicts in what was compared; what was not compared may.",
            vec![
                check("learn what of A cannot be read", a),
                check("and of B", b),
            ],
        ),
        DiffVerdict::Contradictory => return contradictory(document),
    };
    let commands = commands.into_iter();
    let next = commands.fold(Next::default(), |next, (why, command)| {
        next.and(why, command)
    });
    Meaning::of(sentence, next)
}

/// The same run, where both are named by one path.
fn again(document: &DiffDocument) -> Option<String> {
    let is_one = |target: &Target| target.kind != "backup-chain";
    let (a, b) = (&document.a, &document.b);
    (is_one(a) && is_one(b))
        .then(|| format!("pgclinic diff {} {}", a.as_arguments(), b.as_arguments()))
}

/// What the first line says of the copies is what the sentence rests on.
fn contradictory(document: &DiffDocument) -> Meaning {
    let at_fault = document.sound.map(|own| {
        let is = |blocks| blocks > 0;
        (is(own.at_fault_a), is(own.at_fault_b), is(own.undecided))
    });
    let sentence = match at_fault {
        Some((true, false, false)) => {
            "Blocks differ for which no WAL accounts, and in each of them A is at fault: make nothing from A before it is healed, and keep B as it is."
        }
        Some((false, true, false)) => {
            "Blocks differ for which no WAL accounts, and in each of them B is at fault: make nothing from B before it is healed, and keep A as it is."
        }
        Some((true, true, _)) => {
            "Blocks differ for which no WAL accounts, and each copy is at fault in some of them: keep both, for each has what the other lost."
        }
        Some((true, _, true) | (_, true, true)) => {
            "Blocks differ for which no WAL accounts, and not for all of them is it known which copy is right: make neither from the other before it is."
        }
        Some((false, false, _)) | None => {
            "Blocks differ for which no WAL accounts: one of the copies is wrong there, so make neither from the other before it is known which."
        }
    };
    let (first, page) = contradiction(document);
    let (a, b) = (("A", &document.a), ("B", &document.b));
    let ((name, target), (other, rest)) = match first {
        Copy::A => (a, b),
        Copy::B => (b, a),
    };
    let next = Next::default()
        .and_maybe("see the first block that contradicts", page)
        .and(
            format!("ask {name} what is damaged in it"),
            next::check_in_full(target),
        )
        .and(format!("ask {other} the same"), next::check_in_full(rest));
    Meaning::of(sentence, next)
}

/// The copy that is at fault in the first block that contradicts, and the command that shows it.
fn contradiction(document: &DiffDocument) -> (Copy, Option<String>) {
    let mut blocks = document.forks.iter().flat_map(|fork| {
        let blocks = fork.blocks.iter();
        let bad = blocks.filter(|block| block.difference.is_contradiction());
        bad.map(move |block| (fork, block))
    });
    let Some((fork, block)) = blocks.next() else {
        return (Copy::A, None);
    };
    let copy = block.copy.unwrap_or(Copy::A);
    // A block that one copy lost is seen in the other.
    let is_lost = block.difference == Difference::Lost;
    let target = match (copy, is_lost) {
        (Copy::A, false) | (Copy::B, true) => &document.a,
        (Copy::B, false) | (Copy::A, true) => &document.b,
    };
    let place = Place {
        path: fork.path.clone(),
        database: fork.database.clone(),
        schema: fork.schema.clone(),
        relation: fork.relation.clone(),
        filenode: Some(fork.filenode),
        kind: fork.kind,
        fork: Some(fork.fork),
        block: Some(block.block),
        ..Place::default()
    };
    (copy, next::inspect(target, &place))
}

pub(crate) fn checksums(document: &ChecksumsDocument) -> Meaning {
    let sentence = match (document.outcome, document.action) {
        (ChecksumsOutcome::Done, ChecksumsAction::Enable) => {
            "Every page carries its checksum: from its next start the server notices a page that changed on the disk."
        }
        (ChecksumsOutcome::Done, ChecksumsAction::Disable) => {
            "The server verifies pages no longer: damage on the disk goes unnoticed until a row is wrong."
        }
        (ChecksumsOutcome::Done, _) => {
            "The cluster is as it was before: what was written was taken back."
        }
        (ChecksumsOutcome::Unchanged, _) => "There was nothing to do, and nothing was done.",
        (ChecksumsOutcome::Planned, _) => "Nothing was written: this is what a run would do.",
        (ChecksumsOutcome::Refused, _) => {
            "Damaged pages are in the way, which a checksum would seal as if they were sound: nothing was written."
        }
        (ChecksumsOutcome::Interrupted, _) => {
            "The run was stopped before the control file was written, so that the cluster starts as before."
        }
        (ChecksumsOutcome::Differs, _) => {
            "Nodes that belong together have different settings of data checksums, which tools of failover and upgrade refuse."
        }
        (ChecksumsOutcome::Same, _) => {
            "Nodes that belong together have the same setting of data checksums."
        }
        (ChecksumsOutcome::Incomplete, _) => {
            "Not everything could be read, so that nothing is decided for all pages."
        }
    };
    Meaning::of(sentence, Next::default().and_plan(&document.plan))
}
