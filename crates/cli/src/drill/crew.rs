//! The hands of a drill: threads that take one task after the other, each on its own copy.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::drill::bench_copy::BenchCopy;
use crate::drill::master::Master;
use crate::exit::Failure;

/// Does every task on one of `threads` copies, whose directories begin with `name`. The results
/// come in the order of the tasks, whoever did them; stopped, those so far.
pub(crate) fn on_copies<T: Sync, R: Send>(
    (master, name): (&Master, &str),
    tasks: &[T],
    threads: usize,
    stop: &AtomicBool,
    work: &(dyn Fn(&T, &mut BenchCopy) -> Result<R, Failure> + Sync),
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let hand = |thread: usize| -> Result<(), Failure> {
        let mut copy = BenchCopy::make(master, &format!("{name}-{thread}"))?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index).filter(|_| !stop.load(Ordering::Relaxed)) else {
                return Ok(());
            };
            let result = work(task, &mut copy)?;
            done.lock()
                .expect("no thread panics with it")
                .push((index, result));
        }
    };
    let outcomes: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
        let hand = &hand;
        let handles: Vec<_> = (0..threads.max(1))
            .map(|thread| scope.spawn(move || hand(thread)))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("a thread of the drill does not panic"))
            .collect()
    });
    outcomes.into_iter().collect::<Result<(), Failure>>()?;
    let mut done = done.into_inner().expect("no thread panics with it");
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
