//! Every header against the server's function, written down here a second time; and the cases about
//! which earlier deciders disagreed.

use std::sync::Arc;

use pgclinic_format::build::{TupleBuilder, put_u32};
use pgclinic_format::heap_tuple::{
    HEAP_MOVED, HEAP_XMAX_EXCL_LOCK, HEAP_XMAX_KEYSHR_LOCK, HEAP_XMAX_LOCK_ONLY,
};
use pgclinic_source::Memory;

use super::*;
use crate::transaction_log::TransactionLog;

const BLOCK: usize = 8192;
/// Its file is gone.
const LOST: u32 = 700;
const COMMITTED: u32 = 1_048_577;
const ABORTED: u32 = COMMITTED + 1;
const OPEN: u32 = COMMITTED + 2;
const SUBCOMMITTED: u32 = COMMITTED + 3;
const NEXT: u32 = COMMITTED + 100;
const FUTURE: u32 = NEXT + 7;
const XIDS: [u32; 9] = [
    0,
    1,
    2,
    LOST,
    COMMITTED,
    ABORTED,
    OPEN,
    SUBCOMMITTED,
    FUTURE,
];
/// The only member of multixact n + 1 changed the row, by the transaction at place n of [`XIDS`].
const MULTI_LOCKER: u32 = 10;
/// Nothing tells where its members end.
const MULTI_LOST: u32 = 11;
const MULTI_FUTURE: u32 = 21;
const MULTI_NEXT: u32 = 20;

const XMIN_HINTS: [u16; 4] = [0, HEAP_XMIN_COMMITTED, HEAP_XMIN_INVALID, HEAP_XMIN_FROZEN];
const MOVES: [u16; 4] = [
    0,
    HEAP_MOVED_OFF,
    HEAP_MOVED_IN,
    HEAP_MOVED_OFF | HEAP_MOVED_IN,
];
const XMAX_HINTS: [u16; 4] = [
    0,
    HEAP_XMAX_COMMITTED,
    HEAP_XMAX_INVALID,
    HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID,
];
const LOCKS: [u16; 6] = [
    0,
    HEAP_XMAX_LOCK_ONLY,
    HEAP_XMAX_EXCL_LOCK,
    HEAP_XMAX_KEYSHR_LOCK,
    HEAP_XMAX_LOCK_ONLY | HEAP_XMAX_EXCL_LOCK,
    HEAP_XMAX_EXCL_LOCK | HEAP_XMAX_KEYSHR_LOCK,
];

/// Status files in which every number above means what it is called.
struct World {
    log: TransactionLog,
    multixacts: MultiXacts,
}

impl World {
    fn new() -> Self {
        let mut log = vec![0; BLOCK];
        log[..2].copy_from_slice(&[0b10_01_00, 0b11]);
        let (mut offsets, mut members) = (vec![0; BLOCK], vec![0; BLOCK]);
        let updaters = XIDS.into_iter().map(|xid| (5, xid));
        let all = updaters.chain([(0, COMMITTED), (5, COMMITTED)]);
        for (number, (flags, xid)) in (1..).zip(all) {
            let (group, place) = (number / 4 * 20, number % 4);
            put_u32(
                &mut offsets,
                number * 4,
                u32::try_from(number).expect("few"),
            );
            members[group + place] = flags;
            put_u32(&mut members, group + 4 + place * 4, xid);
        }
        let source = Memory::new("world")
            .with("pg_xact/0001", log)
            .with("pg_multixact/offsets/0000", offsets)
            .with("pg_multixact/members/0000", members);
        let source = Arc::new(source);
        World {
            log: TransactionLog::new(source.clone(), BLOCK, Some(Xid(NEXT))),
            multixacts: MultiXacts::new(source, BLOCK, Some((MultiXactId(MULTI_NEXT), 100))),
        }
    }

    fn visibility(&self, hints: Hints) -> Visibility<'_> {
        Visibility {
            files: Some((self.log.reader(), &self.multixacts)),
            hints,
        }
    }
}

/// What the server finds in the status files; `None` where it reports an error.
fn did_commit(xid: u32) -> Option<bool> {
    (xid != LOST).then_some(matches!(xid, 1 | 2 | COMMITTED))
}

fn is_in_snapshot(xid: u32) -> bool {
    xid == FUTURE
}

/// The first half of `HeapTupleSatisfiesMVCC`: the row was inserted.
fn server_inserts(mask: u16, xmin: u32, xvac: u32) -> Option<bool> {
    if mask & HEAP_XMIN_COMMITTED != 0 {
        return Some(mask & HEAP_XMIN_FROZEN == HEAP_XMIN_FROZEN || !is_in_snapshot(xmin));
    }
    if mask & HEAP_XMIN_INVALID != 0 {
        return Some(false);
    }
    if mask & HEAP_MOVED_OFF != 0 {
        return Some(is_in_snapshot(xvac) || !did_commit(xvac)?);
    }
    if mask & HEAP_MOVED_IN != 0 {
        return Some(!is_in_snapshot(xvac) && did_commit(xvac)?);
    }
    Some(!is_in_snapshot(xmin) && did_commit(xmin)?)
}

/// The second half: the row was deleted.
fn server_deletes(mask: u16, xmax: u32) -> Option<bool> {
    let lock_bits = HEAP_XMAX_IS_MULTI | HEAP_XMAX_EXCL_LOCK | HEAP_XMAX_KEYSHR_LOCK;
    let only_locks = mask & HEAP_XMAX_LOCK_ONLY != 0 || mask & lock_bits == HEAP_XMAX_EXCL_LOCK;
    if mask & HEAP_XMAX_INVALID != 0 || only_locks {
        return Some(false);
    }
    if mask & HEAP_XMAX_IS_MULTI != 0 {
        let updater = match xmax {
            0 => 0,
            // A server takes the row as locked alone, which no server writes like this.
            MULTI_LOCKER | MULTI_LOST | MULTI_FUTURE => return None,
            multi => XIDS[multi as usize - 1],
        };
        return Some(!is_in_snapshot(updater) && did_commit(updater)?);
    }
    if mask & HEAP_XMAX_COMMITTED != 0 {
        return Some(!is_in_snapshot(xmax));
    }
    Some(!is_in_snapshot(xmax) && did_commit(xmax)?)
}

fn with_header(mask: u16, (xmin, xmax, xvac): (u32, u32, u32)) -> Vec<u8> {
    let tuple = TupleBuilder::new(1).xids(xmin, xmax).infomask(mask);
    let mut bytes = tuple.finish();
    put_u32(&mut bytes, 8, xvac);
    bytes
}

fn each_mask(each: &mut dyn FnMut(u16)) {
    for xmin in XMIN_HINTS {
        for moved in MOVES {
            for xmax in XMAX_HINTS {
                for lock in LOCKS {
                    for multi in [0, HEAP_XMAX_IS_MULTI] {
                        each(xmin | moved | xmax | lock | multi);
                    }
                }
            }
        }
    }
}

fn each_header(each: &mut dyn FnMut(u16, (u32, u32, u32))) {
    let multis: Vec<u32> = (0..=MULTI_LOST).chain([MULTI_FUTURE]).collect();
    each_mask(&mut |mask| {
        let xmaxs = match mask & HEAP_XMAX_IS_MULTI {
            0 => XIDS.to_vec(),
            _ => multis.clone(),
        };
        let xvacs = match mask & HEAP_MOVED {
            0 => [0].as_slice(),
            _ => &XIDS,
        };
        for xmin in XIDS {
            for xmax in &xmaxs {
                for xvac in xvacs {
                    each(mask, (xmin, *xmax, *xvac));
                }
            }
        }
    });
}

#[test]
fn every_header_is_decided_as_the_server_does() {
    let world = World::new();
    let visibility = world.visibility(Hints::Count);
    let mut headers = 0;
    each_header(&mut |mask, (xmin, xmax, xvac)| {
        let bytes = with_header(mask, (xmin, xmax, xvac));
        let tuple = HeapTuple::parse(&bytes).expect("a header");
        let (inserts, deletes) = (server_inserts(mask, xmin, xvac), server_deletes(mask, xmax));
        let state = visibility.state(tuple);
        let is_right = match state {
            RowState::Visible => inserts == Some(true) && deletes == Some(false),
            RowState::Dead(Death::Deleted) => inserts != Some(false) && deletes == Some(true),
            RowState::Dead(_) => inserts == Some(false),
            RowState::Undecided(Doubt::Insertion) => inserts.is_none() && deletes == Some(false),
            RowState::Undecided(Doubt::Deletion) => inserts != Some(false) && deletes.is_none(),
        };
        assert!(is_right, "{mask:04x} {xmin} {xmax} {xvac}: {state:?}");
        headers += 1;
    });
    assert_eq!(headers, 532_224);
}

/// What earlier deciders answered differently, and what is right.
#[test]
fn cases_that_were_decided_anew() {
    const DEAD: u16 = HEAP_XMAX_INVALID;
    const FROZEN: u16 = HEAP_XMIN_FROZEN;
    const MULTI: u16 = HEAP_XMAX_IS_MULTI;
    let aborted = RowState::Dead(Death::Aborted);
    let deleted = RowState::Dead(Death::Deleted);
    let future = RowState::Dead(Death::Future);
    let unknown = RowState::Undecided(Doubt::Insertion);
    let cases = [
        // A committed hint does not put a transaction into a snapshot of now.
        (HEAP_XMIN_COMMITTED | DEAD, (FUTURE, 0, 0), future),
        (
            HEAP_XMAX_COMMITTED | FROZEN,
            (COMMITTED, FUTURE, 0),
            RowState::Visible,
        ),
        // Rows that an old VACUUM FULL moved: hints first, then its own transaction.
        (
            HEAP_MOVED_OFF | HEAP_XMIN_INVALID | DEAD,
            (COMMITTED, 0, 0),
            aborted,
        ),
        (HEAP_MOVED_OFF | DEAD, (ABORTED, 0, 0), RowState::Visible),
        (HEAP_MOVED_OFF | DEAD, (COMMITTED, 0, COMMITTED), aborted),
        (
            HEAP_MOVED_OFF | DEAD,
            (COMMITTED, 0, FUTURE),
            RowState::Visible,
        ),
        (HEAP_MOVED_OFF | DEAD, (COMMITTED, 0, LOST), unknown),
        (HEAP_MOVED_IN | DEAD, (COMMITTED, 0, 0), aborted),
        (HEAP_MOVED_IN | DEAD, (ABORTED, 0, 2), RowState::Visible),
        (HEAP_MOVED_IN | DEAD, (COMMITTED, 0, FUTURE), aborted),
        // The hint is asked before the number.
        (HEAP_XMIN_INVALID | DEAD, (2, 0, 0), aborted),
        (HEAP_XMIN_INVALID | DEAD, (1, 0, 0), aborted),
        // The hint on an xmax of 0 counts, and a multixact 0 has no members.
        (HEAP_XMAX_COMMITTED | FROZEN, (COMMITTED, 0, 0), deleted),
        (MULTI | FROZEN, (COMMITTED, 0, 0), RowState::Visible),
        // Nobody sees what was deleted, whoever inserted it.
        (HEAP_XMAX_COMMITTED, (LOST, COMMITTED, 0), deleted),
        (0, (LOST, 0, 0), unknown),
        (0, (LOST, LOST, 0), RowState::Undecided(Doubt::Deletion)),
    ];
    let world = World::new();
    let visibility = world.visibility(Hints::Count);
    for (mask, numbers, expected) in cases {
        let bytes = with_header(mask, numbers);
        let tuple = HeapTuple::parse(&bytes).expect("a header");
        assert_eq!(visibility.state(tuple), expected, "{mask:04x} {numbers:?}");
    }
}

#[test]
fn beside_a_running_server_later_hints_do_not_count() {
    let world = World::new();
    let visibility = world.visibility(Hints::MayBeLater);
    let open = RowState::Dead(Death::InProgress);
    let committed = HEAP_XMIN_COMMITTED | HEAP_XMAX_INVALID;
    let cases = [
        (committed, (COMMITTED, 0, 0), RowState::Visible),
        (committed, (LOST, 0, 0), RowState::Visible),
        (committed, (OPEN, 0, 0), open),
        (committed, (FUTURE, 0, 0), open),
        (
            HEAP_XMIN_FROZEN | HEAP_XMAX_COMMITTED,
            (COMMITTED, OPEN, 0),
            RowState::Visible,
        ),
        (
            HEAP_XMIN_FROZEN | HEAP_XMAX_IS_MULTI,
            (COMMITTED, MULTI_FUTURE, 0),
            RowState::Visible,
        ),
    ];
    for (mask, numbers, expected) in cases {
        let bytes = with_header(mask, numbers);
        let tuple = HeapTuple::parse(&bytes).expect("a header");
        assert_eq!(visibility.state(tuple), expected, "{mask:04x} {numbers:?}");
    }
}

#[test]
fn hint_bits_alone_leave_the_rest_open() {
    let visibility = Visibility::by_hint_bits();
    each_header(&mut |mask, (xmin, xmax, xvac)| {
        let bytes = with_header(mask, (xmin, xmax, xvac));
        let tuple = HeapTuple::parse(&bytes).expect("a header");
        let is_moved = mask & HEAP_MOVED != 0 && mask & HEAP_XMIN_FROZEN == 0;
        let writer = if is_moved { xvac } else { xmin };
        let is_open = mask & HEAP_XMIN_FROZEN == 0 && writer > 2;
        let state = visibility.state(tuple);
        assert_ne!(state, RowState::Dead(Death::Future));
        if is_open {
            let may_be_seen = [RowState::Visible, RowState::Dead(Death::Aborted)];
            assert!(
                !may_be_seen.contains(&state),
                "{mask:04x} {xmin} {xmax} {xvac}"
            );
        }
    });
}
