//! What is appended reads back, whatever it is and however it is asked for, and takes the room that
//! it should.

use proptest::prelude::*;

use super::*;

/// Bytes that nothing shrinks.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Bytes that shrink to less than a half.
fn rows(len: usize) -> Vec<u8> {
    let rows = (0..).map(|number: u32| format!("{number:>9} is the number of a row\n"));
    let mut bytes: Vec<u8> = rows
        .take(len / 32 + 1)
        .flat_map(String::into_bytes)
        .collect();
    bytes.truncate(len);
    bytes
}

/// Some of everything: zeros, noise and rows, with borders at no multiple of a block.
fn mixed() -> Vec<u8> {
    [
        rows(3 * BLOCK + 512),
        vec![0; 2 * BLOCK + 700],
        noise(2 * BLOCK + 1, 1),
        rows(777),
        vec![0; 5],
        rows(BLOCK),
        noise(BLOCK / 2, 2),
    ]
    .concat()
}

fn store() -> BlockStore {
    BlockStore::create(&std::env::temp_dir()).expect("a file")
}

fn filled(bytes: &[u8], piece: usize) -> BlockStore {
    let mut store = store();
    for piece in bytes.chunks(piece) {
        store.append(piece).expect("room");
    }
    assert_eq!(store.len(), bytes.len() as u64);
    store
}

/// Reads as `Vec` would give it.
#[track_caller]
fn reads(store: &BlockStore, bytes: &[u8], at: usize, len: usize) {
    let mut buf = vec![0xEE; len];
    let count = store.read_at(at as u64, &mut buf).expect("bytes");
    let rest = bytes.get(at..).unwrap_or_default();
    let due = rest.get(..len).unwrap_or(rest);
    assert_eq!(count, due.len(), "{len} bytes at {at}");
    assert!(buf[..count] == *due, "{len} bytes at {at}");
    assert!(buf[count..].iter().all(|byte| *byte == 0xEE), "untouched");
}

#[test]
fn what_came_in_any_pieces_is_read_in_any_pieces() {
    let bytes = mixed();
    for piece in [512, 10_000, BLOCK, 3 * BLOCK + 1, bytes.len()] {
        let store = filled(&bytes, piece);
        for len in [1, 512, 8192, BLOCK, BLOCK + 1, bytes.len() + 10] {
            for at in (0..bytes.len() + len).step_by(len.max(4099)) {
                reads(&store, &bytes, at, len);
            }
        }
        for border in (0..bytes.len()).step_by(BLOCK) {
            reads(&store, &bytes, border.saturating_sub(1), 2);
            reads(&store, &bytes, border, BLOCK);
            reads(&store, &bytes, border.saturating_sub(100), BLOCK + 200);
        }
        assert_eq!(store.read_at(u64::MAX, &mut [0; 9]).expect("nothing"), 0);
        assert_eq!(store.read_at(0, &mut []).expect("nothing"), 0);
    }
}

#[test]
fn what_comes_last_is_read_before_it_is_written() {
    let mut store = store();
    store.append(b"few").expect("room");
    assert_eq!((store.len(), store.index.blocks()), (3, 0));
    reads(&store, b"few", 0, 10);
    let rest = rows(2 * BLOCK);
    store.append(&rest).expect("room");
    reads(&store, &[&b"few"[..], &rest[..]].concat(), 0, 3 * BLOCK);
}

#[test]
fn zeros_take_nothing() {
    let zeros = vec![0; 16 * BLOCK];
    let store = filled(&zeros, 100_000);
    assert_eq!(store.stored_bytes(), 0);
    reads(&store, &zeros, 0, zeros.len());
    reads(&store, &zeros, BLOCK - 4096, 8192);
}

#[test]
fn what_does_not_shrink_is_kept_as_it_is() {
    let bytes = noise(4 * BLOCK, 3);
    let store = filled(&bytes, BLOCK);
    assert_eq!(store.stored_bytes(), bytes.len() as u64);
    assert_eq!(store.index.find(3), Some((3 * BLOCK as u64, Form::AsItIs)));
    reads(&store, &bytes, 1, bytes.len());
}

#[test]
fn what_shrinks_takes_less() {
    let bytes = rows(32 * BLOCK);
    let store = filled(&bytes, BLOCK);
    let (stored, len) = (store.stored_bytes(), bytes.len() as u64);
    assert!(stored < len / 2, "{stored} of {len}");
    let disk = store.file.metadata().expect("a file").len();
    assert_eq!(stored, disk, "no block is open");
}

/// Else what shrinks to nothing would come without end.
#[test]
fn blocks_that_take_next_to_nothing_count_whole() {
    let whole = BLOCK as u64;
    assert_eq!(counted(Form::Zeros), whole);
    assert_eq!(counted(Form::Packed(300)), whole, "all bytes the same");
    assert_eq!(counted(Form::Packed(2048)), 2048);
    assert_eq!(counted(Form::Packed(20_000)), 20_000);
    assert_eq!(counted(Form::AsItIs), whole);
    let same = filled(&vec![7; 4 * BLOCK], BLOCK);
    assert!(same.stored_bytes() < 4 * COUNTED_MIN);
}

#[test]
fn many_threads_read_at_once() {
    let bytes = mixed();
    let store = filled(&bytes, 4096);
    std::thread::scope(|scope| {
        for (len, step) in [(512, 777), (8192, 8192), (BLOCK, 30_011), (1 << 20, BLOCK)] {
            let (store, bytes) = (&store, &bytes);
            scope.spawn(move || {
                for at in (0..bytes.len()).step_by(step) {
                    store.prefetch(at as u64, len as u64);
                    reads(store, bytes, at, len);
                }
            });
        }
    });
}

#[test]
fn advice_about_anything_is_taken() {
    let store = filled(&mixed(), BLOCK);
    let places = [0, 1, BLOCK as u64, store.len(), u64::MAX];
    for offset in places {
        for len in places {
            store.prefetch(offset, len);
        }
    }
}

#[test]
fn a_disk_that_gives_back_something_else_is_told() {
    let told = |spoil: &dyn Fn(&File)| {
        let store = filled(&rows(2 * BLOCK), BLOCK);
        spoil(&store.file);
        let part = store.read_at(100, &mut [0; 100]).expect_err("spoiled");
        let whole = store.read_at(0, &mut vec![0; BLOCK]).expect_err("spoiled");
        assert_eq!(part.to_string(), whole.to_string());
        part.to_string()
    };
    let words =
        "the directory for temporary files does not give back what was decompressed there: ";
    let changed = told(&|file: &File| file.write_all_at(&[0xFF; 5000], 0).expect("a write"));
    assert!(changed.contains(words), "{changed}");
    let cut = told(&|file: &File| file.set_len(10).expect("a truncation"));
    assert!(cut.contains(words), "{cut}");
}

#[test]
fn a_folder_inside_a_cluster_is_refused() {
    let cluster = tempfile::tempdir().expect("a directory");
    std::fs::write(cluster.path().join("PG_VERSION"), "18\n").expect("a file");
    let refused = BlockStore::create(cluster.path()).err().expect("refused");
    assert!(refused.to_string().contains("lies inside the cluster"));
}

/// What is appended in one piece: which kind of bytes, and how many.
fn pieces() -> impl Strategy<Value = Vec<(u8, usize)>> {
    prop::collection::vec((0u8..4, 0..3 * BLOCK), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_reads_as_memory_does(
        parts in pieces(),
        places in prop::collection::vec((0usize..24 * BLOCK, 0usize..2 * BLOCK), 1..40),
    ) {
        let (mut store, mut bytes) = (store(), Vec::new());
        for (kind, len) in parts {
            let piece = match kind {
                0 => vec![0; len],
                1 => noise(len, len as u64),
                2 => rows(len),
                _ => vec![kind; len],
            };
            store.append(&piece).expect("room");
            bytes.extend(piece);
        }
        prop_assert_eq!(store.len(), bytes.len() as u64);
        prop_assert!(store.stored_bytes() <= store.len());
        for (at, len) in places {
            reads(&store, &bytes, at % (bytes.len() + 10), len);
        }
    }
}
