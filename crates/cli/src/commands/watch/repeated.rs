//! One command of this program on a server's files, again and again, each time as a child; what the
//! last complete one found is kept in a file, so that it is known after a restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::background::{Background, Ended};

/// Between two attempts of which the first failed.
const AFTER_FAILURE_S: f64 = 300.0;
const SCHEMA: &str = "pgclinic.background/1";
/// What progress ends with.
const DONE: &str = " bytes done";
/// Children that may be killed at the same place.
const KILLED_MAX: u32 = 2;

/// Where runs are kept, and how often they begin.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    /// Between the begins of two.
    pub(super) every: Duration,
    /// Where states are kept.
    pub(super) state: PathBuf,
    /// This program.
    pub(super) program: PathBuf,
}

/// The command, without its target and its files.
pub(super) struct Job<T> {
    /// Its directory among those of states.
    pub(super) name: &'static str,
    pub(super) words: Vec<String>,
    /// It has `--state` and `--resume`.
    pub(super) resumes: bool,
    /// What a document says.
    pub(super) read: fn(&Background) -> Outcome<T>,
    /// How much there is to do in a target, and how much of it the state of a run says is done.
    pub(super) extent: fn(&Background, &Path) -> Extent,
}

/// Bytes of a run.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Extent {
    /// All.
    pub(super) total: u64,
    /// Those that were done before the present child began.
    pub(super) done: u64,
}

impl Extent {
    /// How much is done, 0 to 1, when a child has done so many bytes.
    pub(super) fn done_with(self, child: u64) -> Option<f64> {
        let done = (self.done + child) as f64;
        (self.total > 0).then(|| (done / self.total as f64).min(1.0))
    }
}

/// How a child ended, by its document.
pub(super) enum Outcome<T> {
    /// It came to its end.
    Complete(T),
    /// It was stopped, and the next one goes on.
    Stopped,
    /// It was killed, as by a kernel without memory, and the next one goes on.
    Killed,
    /// There is no document of it.
    Failed,
}

/// What is kept of the runs on one directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept<T> {
    schema: String,
    system_identifier: String,
    asked_since: f64,
    /// When the run began that is reading, or was stopped.
    begun_at: Option<f64>,
    #[serde(default)]
    extent: Extent,
    /// Children in a row that were killed before they wrote a state.
    #[serde(default)]
    killed: u32,
    complete: Option<Complete<T>>,
}

/// What a run found that came to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Complete<T> {
    begun_at: f64,
    /// In seconds since 1970.
    pub(super) ended_at: f64,
    pub(super) found: T,
}

/// The runs on the files of one server.
pub(super) struct Repeated<T> {
    schedule: Schedule,
    job: Job<T>,
    begun: f64,
    work: Option<(PathBuf, Background, Kept<T>)>,
    failed: Option<(f64, String)>,
}

/// Seconds since 1970.
pub(super) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

impl<T: Clone + Serialize + DeserializeOwned> Repeated<T> {
    /// Nothing runs yet.
    pub(super) fn new(schedule: Schedule, job: Job<T>) -> Self {
        Self {
            schedule,
            job,
            begun: now(),
            work: None,
            failed: None,
        }
    }

    /// Takes what a child has found, and begins the next one where it is time. `Err` says why none
    /// can be begun.
    pub(super) fn go_on(&mut self, target: &Path, identifier: &str) -> Result<(), String> {
        if self.work.as_ref().is_none_or(|(own, ..)| own != target) {
            let work = Background::open(&self.schedule.state.join(self.job.name), target)?;
            let kept = kept_of(&work, identifier, self.begun);
            self.work = Some((target.to_owned(), work, kept));
        }
        let Some((_, work, kept)) = &mut self.work else {
            return Ok(());
        };
        let ended = work.ended();
        if kept.system_identifier != identifier {
            // Another cluster lies there now: what was found of the one before is not its own.
            *kept = kept_of(work, identifier, self.begun);
            self.failed = None;
            if !work.is_at_work() {
                work.forget(&["run.state", "run.json"]);
            }
        } else if let Some(ended) = ended {
            if kept.begun_at.is_some() {
                let taken = taken(&self.job, work, kept, &ended);
                self.failed = taken.err().map(|why| (now(), why));
            } else {
                // It was at work on the cluster before.
                work.forget(&["run.state", "run.json"]);
            }
        }
        if work.is_at_work() {
            return Ok(());
        }
        if work
            .is_taken()
            .map_err(|error| format!("cannot lock the state: {error}"))?
        {
            // Another program, or a child that goes on: what it finds is read as it is written.
            *kept = kept_of(work, identifier, self.begun);
            return Ok(());
        }
        // A child of a parent that was killed may have come to its end since.
        if kept.begun_at.is_some() && work.path("run.json").is_file() {
            taken(&self.job, work, kept, &Ended::in_order())?;
        }
        if let Some((at, why)) = &self.failed
            && now() - at < AFTER_FAILURE_S
        {
            return Err(why.clone());
        }
        if is_due(kept, self.schedule.every) {
            begin(&self.job, &self.schedule.program, work, kept, target)?;
        }
        Ok(())
    }

    /// Since when runs are asked for, over restarts.
    pub(super) fn asked_since(&self) -> f64 {
        self.work
            .as_ref()
            .map_or(self.begun, |(_, _, kept)| kept.asked_since)
    }

    /// The last one that came to its end.
    pub(super) fn last(&self) -> Option<&Complete<T>> {
        self.work
            .as_ref()
            .and_then(|(_, _, kept)| kept.complete.as_ref())
    }

    /// The one that is reading, or was stopped.
    pub(super) fn present(&self) -> Option<(&Background, Extent)> {
        let (_, work, kept) = self.work.as_ref()?;
        kept.begun_at.map(|_| (work, kept.extent))
    }
}

fn kept_of<T: DeserializeOwned>(work: &Background, identifier: &str, begun: f64) -> Kept<T> {
    let kept: Option<Kept<T>> = work.kept("kept.json");
    let is_same = |own: &Kept<T>| own.schema == SCHEMA && own.system_identifier == identifier;
    kept.filter(is_same).unwrap_or_else(|| Kept {
        schema: SCHEMA.to_owned(),
        system_identifier: identifier.to_owned(),
        asked_since: begun,
        begun_at: None,
        extent: Extent::default(),
        killed: 0,
        complete: None,
    })
}

/// The first at once, one that was stopped at once, the next when its time has come.
fn is_due<T>(kept: &Kept<T>, every: Duration) -> bool {
    let Some(complete) = kept.complete.as_ref().filter(|_| kept.begun_at.is_none()) else {
        return true;
    };
    let passed = now() - complete.begun_at;
    // A clock that was set back is no reason to wait for years.
    passed < 0.0 || passed >= every.as_secs_f64()
}

fn begin<T: Serialize>(
    job: &Job<T>,
    program: &Path,
    work: &mut Background,
    kept: &mut Kept<T>,
    target: &Path,
) -> Result<(), String> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or("its path is not UTF-8")
    };
    let mut words = job.words.clone();
    words.extend(["--progress", "bytes", "--format", "json", "--output"].map(str::to_owned));
    words.push(text(&work.path("run.json"))?);
    let goes_on = job.resumes && kept.begun_at.is_some() && work.path("run.state").is_file();
    if job.resumes {
        words.extend(["--state".to_owned(), text(&work.path("run.state"))?]);
        words.extend(goes_on.then(|| "--resume".to_owned()));
    }
    if !goes_on {
        work.forget(&["run.state", "run.json"]);
        kept.begun_at = Some(now());
    }
    kept.extent = (job.extent)(work, target);
    words.extend(["--".to_owned(), text(target)?]);
    work.keep("kept.json", kept).map_err(|failure| failure.0)?;
    work.start(program, &words)
}

/// What a child found. One that was stopped is gone on with; one that failed begins again.
fn taken<T: Serialize>(
    job: &Job<T>,
    work: &Background,
    kept: &mut Kept<T>,
    ended: &Ended,
) -> Result<(), String> {
    let outcome = match ended.code {
        Some(0 | 1 | 3 | 130) => (job.read)(work),
        None if job.resumes && ended.signal.is_some() => Outcome::Killed,
        _ => Outcome::Failed,
    };
    work.forget(&["run.json"]);
    match outcome {
        Outcome::Killed => killed(work, kept, ended.signal.unwrap_or_default()),
        Outcome::Complete(found) => {
            kept.killed = 0;
            let begun_at = kept.begun_at.take().unwrap_or_else(now);
            kept.complete = Some(Complete {
                begun_at,
                ended_at: now(),
                found,
            });
            work.forget(&["run.state"]);
            work.keep("kept.json", kept).map_err(|failure| failure.0)
        }
        Outcome::Stopped => Ok(()),
        Outcome::Failed => {
            // A state that does not fit is no reason to fail for ever.
            work.forget(&["run.state"]);
            let log = work.log();
            let last = log.lines().rev().find(|line| !line.ends_with(DONE));
            let why = last.unwrap_or("it wrote nothing");
            Err(format!(
                "pgclinic {} failed: {why}",
                job.words.first().map_or("", String::as_str)
            ))
        }
    }
}

/// The next child goes on from the state, unless it is what kills it: after a second one that wrote
/// none, all begins again.
fn killed<T: Serialize>(work: &Background, kept: &mut Kept<T>, signal: i32) -> Result<(), String> {
    let since_begin = kept.extent.done;
    let has_come_on = work.written_since_start("run.state");
    kept.killed = if has_come_on { 1 } else { kept.killed + 1 };
    if kept.killed > KILLED_MAX {
        work.forget(&["run.state"]);
        kept.killed = 0;
    }
    work.keep("kept.json", kept).map_err(|failure| failure.0)?;
    if has_come_on {
        return Ok(());
    }
    Err(format!(
        "it was killed by signal {signal} after {since_begin} bytes; it goes on in some minutes"
    ))
}

/// From the last line that says `40960 bytes done`.
pub(super) fn bytes_in(log: &str) -> u64 {
    let lines = log.lines().rev();
    let mut bytes = lines.filter_map(|line| line.strip_suffix(DONE)?.parse().ok());
    bytes.next().unwrap_or(0)
}

/// When a file was written last.
pub(super) fn written_at(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn found(work: &Background) -> Outcome<u64> {
        work.kept("run.json")
            .map_or(Outcome::Failed, Outcome::Complete)
    }

    /// A program that writes its state and is killed; one that goes on comes to its end.
    const KILLED_ONCE: &str = r#"#!/bin/sh
for word; do
    case $before in --state) state=$word ;; --output) output=$word ;; esac
    [ "$word" != --resume ] || resumes=yes
    before=$word
done
[ -n "$resumes" ] && echo 7 >"$output" && exit 0
echo half >"$state"
kill -9 $$
"#;

    #[test]
    fn a_child_that_was_killed_goes_on_from_its_state() {
        let home = tempfile::tempdir().expect("a directory");
        let program = home.path().join("program");
        fs::write(&program, KILLED_ONCE).expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("a mode");
        let schedule = Schedule {
            every: Duration::ZERO,
            state: home.path().join("state"),
            program,
        };
        let job = Job {
            name: "scrub",
            words: Vec::new(),
            resumes: true,
            read: found,
            extent: |_, _| Extent::default(),
        };
        let mut own = Repeated::new(schedule, job);
        let target = Path::new("/nowhere/pgdata");
        while own.last().is_none() {
            // Another test that begins a program may hold the new file open for a moment.
            if let Err(why) = own.go_on(target, "7") {
                assert!(why.contains("busy"), "{why}");
            }
        }
        assert_eq!(own.last().expect("a run").found, 7);
        let (_, work, _) = own.work.as_ref().expect("work");
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode(&work.path("kept.json")), 0o600);
        assert_eq!(
            mode(work.path("kept.json").parent().expect("a home")),
            0o700
        );
    }

    #[test]
    fn progress_is_of_all_bytes() {
        let extent = Extent {
            total: 1000,
            done: 400,
        };
        let log = "8 bytes done\nwords\n100 bytes done\nand more\n";
        assert_eq!(extent.done_with(bytes_in(log)), Some(0.5));
        assert_eq!(extent.done_with(9999), Some(1.0));
        assert_eq!(Extent::default().done_with(bytes_in("")), None);
    }
}
