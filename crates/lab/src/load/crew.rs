//! The threads of a load: connect all, start one clock, work, add up.
//!
//! ```text
//! thread 1   connect its clients ──┐ barrier ┌─ work until the end ── books ─┐
//! thread 2   connect its clients ──┤  all?   ├─ work until the end ── books ─┼─► one Measured
//! thread n   connect its clients ──┘  clock  └─ work until the end ── books ─┘
//! ```
//!
//! Each thread has a runtime of its own, whose tasks never leave it. They are spawned as tasks that
//! could: the ones that could not (`LocalSet`) cost a system call at every wake-up, a third of all
//! that the generator does.

use std::pin::pin;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::Client;
use super::measured::{Latency, LoadResult, Measured};
use super::tally::Tally;
use super::{Length, Load, Pace, open_files};
use pgclinic_servers::ConnectionTarget;

/// Clients of one thread that connect at the same time: a storm of thousands would only fill the
/// server's queue.
const CONNECTING_MAX: usize = 16;

/// How often a thread looks whether somebody wants the load to end.
const LOOK: Duration = Duration::from_millis(100);

/// A load without a window ends when its rounds are done; this far away is never.
const NEVER: Duration = Duration::from_secs(30 * 24 * 3600);

/// What all threads share.
struct SharedByThreads<'a> {
    load: &'a Load,
    target: &'a ConnectionTarget,
    begun: &'a (dyn Fn() + Sync),
    barrier: Barrier,
    connecting_since: Instant,
    /// Set by the thread that is last to connect, unless somebody is missing.
    clock: OnceLock<Instant>,
    missing: Mutex<Missing>,
}

/// Clients that could not be connected.
#[derive(Default)]
struct Missing {
    count: u32,
    first: String,
}

/// Runs a load to its end.
pub(super) fn run(load: &Load, target: &ConnectionTarget, begun: &(dyn Fn() + Sync)) -> LoadResult {
    let files = match load.pace {
        Pace::Closed { think } if think.is_zero() => 1,
        _ => 2,
    };
    if let Err(why) = open_files::make_room(u64::from(load.clients) * files) {
        return LoadResult::Empty { why };
    }
    let threads = load.threads();
    let crew = SharedByThreads {
        load,
        target,
        begun,
        barrier: Barrier::new(usize::try_from(threads).unwrap_or(1)),
        connecting_since: Instant::now(),
        clock: OnceLock::new(),
        missing: Mutex::new(Missing::default()),
    };
    let books: Vec<Option<Tally>> = std::thread::scope(|scope| {
        let begin = |thread| {
            let crew = &crew;
            scope.spawn(move || crew.thread((thread..load.clients).step_by(step(threads))))
        };
        let handles: Vec<_> = (0..threads).map(begin).collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .map(|books| books.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    crew.result(books, threads)
}

fn step(threads: u32) -> usize {
    usize::try_from(threads).unwrap_or(1).max(1)
}

impl SharedByThreads<'_> {
    /// One thread's part; `None` when not all clients of all threads could be connected.
    fn thread(&self, numbers: impl Iterator<Item = u32>) -> Option<Tally> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let (runtime, clients) = match runtime {
            Ok(runtime) => {
                let clients = self.connect(&runtime, numbers);
                (Some(runtime), clients)
            }
            Err(error) => {
                self.miss(1, &error.to_string());
                (None, Vec::new())
            }
        };
        if self.barrier.wait().is_leader() && self.missing().count == 0 {
            (self.begun)();
            let _ = self.clock.set(Instant::now());
        }
        self.barrier.wait();
        let begin = *self.clock.get()?;
        Some(self.work(&runtime?, clients, begin))
    }

    fn connect(&self, runtime: &Runtime, numbers: impl Iterator<Item = u32>) -> Vec<Client> {
        let limit = tokio::time::Instant::from_std(self.connecting_since + self.load.connect_limit);
        let gather = async {
            let (load, target) = self.owned();
            let mut connected = Vec::new();
            let mut numbers = numbers.peekable();
            let mut connecting = JoinSet::new();
            while numbers.peek().is_some() || !connecting.is_empty() {
                while connecting.len() < CONNECTING_MAX
                    && let Some(number) = numbers.next()
                {
                    let (load, target) = (load.clone(), target.clone());
                    connecting.spawn(async move {
                        let client = Client::connect(&load, &target, number);
                        match tokio::time::timeout_at(limit, client).await {
                            Ok(client) => client.map_err(|broken| broken.to_string()),
                            Err(_) => Err("the time to connect was over".to_owned()),
                        }
                    });
                }
                match connecting.join_next().await {
                    Some(Ok(Ok(client))) => connected.push(client),
                    Some(Ok(Err(why))) => {
                        // One refusal decides; the rest need not knock.
                        self.miss(1, &why);
                        break;
                    }
                    Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
                    None => {}
                }
            }
            self.alone(connected)
        };
        runtime.block_on(gather)
    }

    /// A single client has its thread to itself.
    fn alone(&self, clients: Vec<Client>) -> Vec<Client> {
        if clients.len() != 1 {
            return clients;
        }
        let mut alone = Vec::new();
        for client in clients {
            match client.alone() {
                Ok(client) => alone.push(client),
                Err(error) => self.miss(1, &error.to_string()),
            }
        }
        alone
    }

    fn work(&self, runtime: &Runtime, clients: Vec<Client>, begin: Instant) -> Tally {
        let end = begin
            + match self.load.length {
                Length::Window(window) => window,
                Length::Rounds(_) => NEVER,
            };
        let tally = Arc::new(Mutex::new(Tally::new(begin, end)));
        let cpu_before = own_cpu();
        runtime.block_on(async {
            let mut working = JoinSet::new();
            let (load, target) = self.owned();
            let (give_up, given_up) = watch::channel(());
            for client in clients {
                let (load, target, tally) = (load.clone(), target.clone(), tally.clone());
                let given_up = given_up.clone();
                working.spawn(stay(client, load, target, begin, end, given_up, tally));
            }
            let mut stopped = pin!(stopped(load));
            let mut is_stopped = false;
            loop {
                tokio::select! {
                    ended = working.join_next() => match ended {
                        None => break,
                        Some(Ok(())) => {}
                        Some(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
                    },
                    () = &mut stopped, if !is_stopped => {
                        is_stopped = true;
                        let _ = give_up.send(());
                    }
                }
            }
        });
        let mut tally = Arc::into_inner(tally)
            .unwrap_or_else(|| unreachable!("all clients are gone"))
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        tally.cpu = own_cpu().saturating_sub(cpu_before);
        tally
    }

    /// What tasks share: a task of tokio borrows nothing.
    fn owned(&self) -> (Arc<Load>, Arc<ConnectionTarget>) {
        (Arc::new(self.load.clone()), Arc::new(self.target.clone()))
    }

    fn missing(&self) -> MutexGuard<'_, Missing> {
        locked(&self.missing)
    }

    fn miss(&self, count: u32, why: &str) {
        let mut missing = self.missing();
        if missing.count == 0 {
            why.clone_into(&mut missing.first);
        }
        missing.count += count;
    }

    fn result(&self, books: Vec<Option<Tally>>, threads: u32) -> LoadResult {
        let total = books.into_iter().flatten().reduce(|mut sum, next| {
            sum.add(next);
            sum
        });
        let (Some(total), Some(begin)) = (total, self.clock.get()) else {
            let clients = self.load.clients;
            let why = format!(
                "not all of {clients} clients could be connected: {}",
                self.missing().first
            );
            return LoadResult::Empty { why };
        };
        let connect = begin.saturating_duration_since(self.connecting_since);
        LoadResult::Measured(Box::new(self.measured(total, *begin, connect, threads)))
    }

    fn measured(&self, total: Tally, begin: Instant, connect: Duration, threads: u32) -> Measured {
        let window = match self.load.length {
            Length::Window(window) if !self.load.is_stopped() => window,
            _ => total.last.saturating_duration_since(begin),
        };
        let is_open = matches!(self.load.pace, Pace::Open { .. });
        let values = total.latency.iter_recorded();
        Measured {
            driver: "pgclinic".to_owned(),
            clients: self.load.clients,
            threads,
            protocol: self.load.protocol,
            connect_s: connect.as_secs_f64(),
            window_s: window.as_secs_f64(),
            rounds: total.rounds,
            failed: total.failed,
            ended_late: total.ended_late,
            abandoned: total.abandoned,
            overdue: total.overdue,
            lost_clients: total.lost_clients,
            tps: total.rounds as f64 / window.as_secs_f64().max(1e-9),
            latency: Latency::of(&total.latency),
            lag: is_open.then(|| Latency::of(&total.lag)),
            histogram: values
                .map(|value| (value.value_iterated_to(), value.count_at_value()))
                .collect(),
            seconds: total.seconds,
            errors: total.errors,
            generator_cpu_s: Some(total.cpu.as_secs_f64()),
        }
    }
}

/// Returns a grace after somebody wanted the load to end.
async fn stopped(load: Arc<Load>) {
    while !load.is_stopped() {
        tokio::time::sleep(LOOK).await;
    }
    tokio::time::sleep(load.grace).await;
}

/// A client from the start of the clock to its goodbye. One that is still busy a grace after the
/// end is cancelled.
async fn stay(
    mut client: Client,
    load: Arc<Load>,
    target: Arc<ConnectionTarget>,
    begin: Instant,
    end: Instant,
    mut given_up: watch::Receiver<()>,
    tally: Arc<Mutex<Tally>>,
) {
    let limit = tokio::time::Instant::from_std(end + load.grace);
    let ended = tokio::select! {
        biased;
        ended = client.work(&load, begin, end, &tally) => Some(ended),
        () = tokio::time::sleep_until(limit) => None,
        _ = given_up.changed() => None,
    };
    match ended {
        Some(Ok(())) => client.close().await,
        Some(Err(error)) => {
            let why = format!("client {}: {error}", client.number());
            locked(&tally).fail("58000", &why, Instant::now());
        }
        None => {
            locked(&tally).abandoned += 1;
            client.abandon(&target).await;
        }
    }
}

/// What a client that panicked left behind is still counted.
pub(super) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processor time of this thread.
fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}
