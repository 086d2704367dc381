//! One value: its chunks against what its row says of it.

use pgclinic_cluster::{Cluster, Visibility};
use pgclinic_format::Varlena;
use pgclinic_format::toast::ToastPointer;
use pgclinic_scan::PageReader;

use crate::toast::Run;
use crate::toast::chunks::chunks;

/// What is wrong with a value's chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// There is none.
    Missing,
    /// This one is missing, and what the server meets instead.
    Gap { number: u32, instead: Option<u32> },
    /// This one is there more than once.
    Doubled { number: u32 },
    /// There are more chunks than the value has bytes for.
    TooMany { number: u32, expected: u32 },
    /// Their bytes are not as many as the row says, or a chunk in the middle is short.
    Size { found: u64 },
}

/// Compares the runs of a value, by first number, with its pointer.
pub(crate) fn fault_of(runs: &[Run], pointer: ToastPointer, chunk_bytes: u32) -> Option<Fault> {
    let bytes = pointer.va_extsize;
    let expected = bytes.div_ceil(chunk_bytes.max(1));
    if runs.is_empty() {
        return (expected > 0).then_some(Fault::Missing);
    }
    let mut next = 0u32;
    for run in runs {
        if run.first_seq > next {
            let instead = Some(run.first_seq);
            return Some(Fault::Gap {
                number: next,
                instead,
            });
        }
        if run.first_seq < next {
            return Some(Fault::Doubled {
                number: run.first_seq,
            });
        }
        next = run.last_seq.saturating_add(1);
    }
    if next < expected {
        return Some(Fault::Gap {
            number: next,
            instead: None,
        });
    }
    if next > expected {
        return Some(Fault::TooMany {
            number: expected,
            expected,
        });
    }
    let found: u64 = runs.iter().map(|run| run.bytes).sum();
    let (last, others) = runs.split_last()?;
    let all_full = last.full && others.iter().all(|run| run.full && run.last_full);
    (found != u64::from(bytes) || !all_full).then_some(Fault::Size { found })
}

/// Hands out the bytes of a value whose chunks are all there, piece by piece; nothing when they
/// cannot be read any more.
pub(crate) fn for_each_piece(
    pages: &mut PageReader<'_>,
    cluster: &Cluster,
    runs: &[Run],
    each: &mut dyn FnMut(&[u8]),
) -> Option<()> {
    let visibility = Visibility::new(cluster);
    for run in runs {
        let (mut next, mut block) = (run.first_seq, run.block);
        while next <= run.last_seq {
            let page = pages.page(block)?;
            for chunk in chunks(page) {
                // The next run of the value may begin on this page.
                let wanted = next <= run.last_seq
                    && chunk.chunk_id == Some(run.value)
                    && chunk.chunk_seq == i32::try_from(next).ok()
                    && (block != run.block || chunk.stored.number >= run.item)
                    && visibility.state(chunk.stored.tuple).may_count();
                if let (true, Some((Varlena::Short(data) | Varlena::Plain(data), _))) =
                    (wanted, chunk.chunk_data)
                {
                    each(data);
                    next += 1;
                }
            }
            block = block.checked_add(1)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first_seq: u32, last_seq: u32, bytes: u64) -> Run {
        Run {
            value: 7,
            first_seq,
            last_seq,
            bytes,
            full: true,
            live: true,
            xmin: pgclinic_format::Xid(700),
            last_full: bytes.is_multiple_of(100),
            block: 0,
            item: 1,
        }
    }

    fn pointer(va_extsize: u32) -> ToastPointer {
        ToastPointer {
            va_rawsize: va_extsize + 4,
            va_extsize,
            method: 0,
            va_valueid: 7,
            va_toastrelid: 9,
        }
    }

    #[test]
    fn chunks_are_complete_in_any_order_of_runs() {
        let runs = [run(0, 1, 200), run(2, 2, 50)];
        assert_eq!(fault_of(&runs, pointer(250), 100), None);
    }

    #[test]
    fn what_is_missing_doubled_or_too_much_is_named() {
        assert_eq!(fault_of(&[], pointer(250), 100), Some(Fault::Missing));
        let gap = Fault::Gap {
            number: 1,
            instead: Some(2),
        };
        assert_eq!(
            fault_of(&[run(0, 0, 100), run(2, 2, 50)], pointer(250), 100),
            Some(gap)
        );
        let end = Fault::Gap {
            number: 2,
            instead: None,
        };
        assert_eq!(fault_of(&[run(0, 1, 200)], pointer(250), 100), Some(end));
        let doubled = Fault::Doubled { number: 0 };
        assert_eq!(
            fault_of(&[run(0, 0, 100), run(0, 2, 250)], pointer(250), 100),
            Some(doubled)
        );
        let many = Fault::TooMany {
            number: 2,
            expected: 2,
        };
        assert_eq!(fault_of(&[run(0, 2, 250)], pointer(200), 100), Some(many));
        let size = Fault::Size { found: 249 };
        assert_eq!(fault_of(&[run(0, 2, 249)], pointer(250), 100), Some(size));
    }
}
