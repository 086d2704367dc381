//! Runs samplers on a thread of their own while something else is measured.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgclinic_servers::Session;
use rustix::time::{ClockId, clock_gettime};

use super::proc_files;
use super::{Sampled, Sampler, SamplerCost, Sampling, WatchedServer};

/// Samplers at work. Dropping it stops them too, and forgets what they saw.
#[derive(Debug)]
pub struct RunningSamplers {
    stop: Sender<()>,
    thread: Option<JoinHandle<Sampled>>,
}

/// One sampler and when it reads next.
struct Post {
    sampler: &'static dyn Sampler,
    sampling: Box<dyn Sampling>,
    due: Instant,
    cost: SamplerCost,
}

impl RunningSamplers {
    /// Begins to watch with these samplers over `session`, which must belong to a superuser. All
    /// read once now.
    pub fn start(
        samplers: &[&'static dyn Sampler],
        place: &WatchedServer,
        session: Session,
    ) -> Self {
        let (stop, stopped) = channel();
        let (samplers, place) = (samplers.to_vec(), place.clone());
        let (ready, all_read) = channel();
        let thread = std::thread::spawn(move || {
            let mut watch = Watch::open(&samplers, &place, session);
            watch.read_all();
            drop::<Sender<()>>(ready);
            watch.until(&stopped)
        });
        // Ends when the thread has read once: `ready` is dropped, nothing is sent.
        let _ = all_read.recv();
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Reads once more and says what was seen.
    pub fn stop(mut self) -> Sampled {
        let _ = self.stop.send(());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(sampled)) => sampled,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Sampled::default(),
        }
    }
}

impl Drop for RunningSamplers {
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Watch {
    session: Session,
    backend: Option<u32>,
    begin: Instant,
    posts: Vec<Post>,
    sampled: Sampled,
}

impl Watch {
    fn open(
        samplers: &[&'static dyn Sampler],
        place: &WatchedServer,
        mut session: Session,
    ) -> Self {
        let backend = session.query_value("SELECT pg_backend_pid()");
        let backend = backend.ok().flatten().and_then(|pid| pid.parse().ok());
        let begin = Instant::now();
        let mut sampled = Sampled::default();
        let mut posts = Vec::new();
        for sampler in samplers {
            let mut cost = SamplerCost {
                name: sampler.name().to_owned(),
                ..SamplerCost::default()
            };
            cost.trouble = sampler.missing(place);
            match cost.trouble {
                Some(_) => sampled.costs.push(cost),
                None => posts.push(Post {
                    sampler: *sampler,
                    sampling: sampler.open(place),
                    due: begin,
                    cost,
                }),
            }
        }
        Self {
            session,
            backend,
            begin,
            posts,
            sampled,
        }
    }

    fn read_all(&mut self) {
        for post in &mut self.posts {
            post.read(self.begin, &mut self.session);
        }
    }

    /// Reads at the intervals until it is told to stop, then once more.
    fn until(mut self, stopped: &Receiver<()>) -> Sampled {
        loop {
            let next = self.posts.iter().map(|post| post.due).min();
            let pause = next.map_or(Duration::from_secs(3600), |next| {
                next.saturating_duration_since(Instant::now())
            });
            match stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            for post in &mut self.posts {
                if post.due <= Instant::now() {
                    post.read(self.begin, &mut self.session);
                }
            }
        }
        self.read_all();
        self.finish()
    }

    fn finish(mut self) -> Sampled {
        let seconds = self.begin.elapsed().as_secs_f64();
        for post in self.posts {
            post.sampling.finish(seconds, &mut self.sampled);
            self.sampled.costs.push(post.cost);
        }
        if let Some(cpu_s) = self.backend.and_then(proc_files::cpu_seconds) {
            self.sampled.costs.push(SamplerCost {
                name: "session".to_owned(),
                cpu_s,
                ..SamplerCost::default()
            });
        }
        let cpu_s = self.sampled.cpu_s();
        self.sampled.metric("watching.cpu_s", cpu_s);
        self.sampled
    }
}

impl Post {
    fn read(&mut self, begin: Instant, session: &mut Session) {
        let (started, cpu) = (Instant::now(), own_cpu());
        let at = started.saturating_duration_since(begin).as_secs_f64();
        let outcome = self.sampling.sample(at, session);
        self.cost.samples += 1;
        self.cost.elapsed_s += started.elapsed().as_secs_f64();
        self.cost.cpu_s += own_cpu().saturating_sub(cpu).as_secs_f64();
        if let Err(trouble) = outcome {
            self.cost.failed += 1;
            self.cost.trouble.get_or_insert(trouble.0);
        }
        // A late reading does not make the next one early.
        self.due = Instant::now().max(self.due) + self.sampler.every();
    }
}

/// Processor time of this thread.
fn own_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}
