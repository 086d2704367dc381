//! Chunks cover every byte once, whatever the number of threads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;

use pgclinic_source::{
    BufferPool, Chunk, ChunkReader, Memory, Range, SourceErrorKind, for_each_chunk,
};

fn whole(path: &str, len: u64) -> Range {
    Range {
        path: path.to_owned(),
        offset: 0,
        len,
    }
}

fn segments() -> Memory {
    Memory::new("test")
        .with("1", vec![1; 2500])
        .with("1.1", vec![])
        .with("1.2", vec![2; 1000])
}

#[test]
fn every_byte_comes_once_from_every_number_of_threads() {
    let (source, pool) = (segments(), BufferPool::new(1000, 2));
    let files = vec![whole("1", 2500), whole("1.1", 0), whole("1.2", 1000)];
    for threads in [1, 2, 5] {
        let reader = ChunkReader::new(&source, &pool, files.clone(), 2);
        let seen = Mutex::new(BTreeMap::new());
        for_each_chunk(
            &reader,
            NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN),
            &|chunk| {
                let count = chunk
                    .bytes
                    .map(|bytes| bytes.len())
                    .map_err(|error| error.kind);
                seen.lock()
                    .unwrap()
                    .insert((chunk.file, chunk.range.offset), count);
                ControlFlow::Continue(())
            },
        );
        let due = [
            ((0, 0), Ok(1000)),
            ((0, 1000), Ok(1000)),
            ((0, 2000), Ok(500)),
            ((2, 0), Ok(1000)),
        ];
        assert_eq!(seen.into_inner().unwrap(), due.into());
    }
}

#[test]
fn what_shrank_or_vanished_does_not_stop_the_rest() {
    let (source, pool) = (segments(), BufferPool::new(1000, 1));
    let files = vec![whole("1", 4000), whole("gone", 10), whole("1.2", 1000)];
    let reader = ChunkReader::new(&source, &pool, files, 0);
    let lens: Vec<_> = std::iter::from_fn(|| reader.next_chunk())
        .map(|Chunk { bytes, .. }| bytes.map(|bytes| bytes.len()).map_err(|error| error.kind))
        .collect();
    assert_eq!(
        lens,
        [
            Ok(1000),
            Ok(1000),
            Ok(500),
            Ok(0),
            Err(SourceErrorKind::NotFound),
            Ok(1000)
        ]
    );
}

#[test]
fn a_break_ends_the_reading() {
    let (source, pool) = (segments(), BufferPool::new(10, 1));
    let reader = ChunkReader::new(&source, &pool, vec![whole("1", 2500)], 4);
    let count = Mutex::new(0);
    for_each_chunk(&reader, NonZeroUsize::MIN, &|_| {
        *count.lock().unwrap() += 1;
        ControlFlow::Break(())
    });
    assert_eq!(count.into_inner().unwrap(), 1);
}
