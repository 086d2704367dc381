//! A load in a run: by the chosen driver, with samplers beside it, its raw figures kept in the
//! run's folder.

use std::sync::Mutex;

use serde::Serialize;

use crate::bench::Bench;
use crate::bench_watch::samplers;
use crate::error::{Error, Result};
use crate::experiment::Measured;
use crate::load;
use crate::load::{ConnectionTarget, Driver, Load, LoadResult, Script, pgbench};
use crate::samplers::{RunningSamplers, Sampled};

/// What a load gave, and what was seen beside it; `load.json` in the run's folder.
#[derive(Debug, Clone, Serialize)]
pub struct Loaded {
    /// The clients' side.
    pub load: load::Measured,
    /// The samplers' side.
    pub sampled: Sampled,
}

impl Loaded {
    /// Metrics and series of both sides for the run's result.
    pub fn measured(&self) -> Measured {
        let measured = Measured {
            metrics: self.load.metrics(),
            series: self.load.series(),
        };
        measured.beside(&self.sampled)
    }
}

/// A script that is part of the program.
pub(crate) fn script(text: &str, given: &[(&str, i64)]) -> Script {
    let given = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value));
    Script::parse(text, &given.collect())
        .unwrap_or_else(|error| panic!("a script of the laboratory itself: {error}"))
}

impl Bench<'_> {
    /// Runs a load on the database `postgres` and watches its window, also with the samplers of
    /// these names. A window without clients is empty; one in which every round failed is a failed
    /// run.
    pub fn load(&mut self, load: &Load, more: &[&str]) -> Result<Loaded> {
        self.load_with(load, &[], more)
    }

    /// The same with settings for every session of the load.
    pub fn load_with(
        &mut self,
        load: &Load,
        settings: &[(&str, &str)],
        more: &[&str],
    ) -> Result<Loaded> {
        let samplers = samplers(more)?;
        let session = self.connect()?;
        // What went on before belongs to the preparations.
        self.watching = None;
        let place = self.place();
        let mut target = self.target()?;
        for (name, value) in settings {
            target = target.with(name, value);
        }
        let session = Mutex::new(Some(session));
        let beside = Mutex::new(None);
        // Watching begins with the clock: connecting is not part of the window.
        let begun = || {
            let session = session.lock().ok().and_then(|mut session| session.take());
            let watching =
                session.map(|session| RunningSamplers::start(&samplers, &place, session));
            if let Ok(mut beside) = beside.lock() {
                *beside = watching;
            }
        };
        let result = self.drive(load, &target, &begun);
        let watching: Option<RunningSamplers> = beside.into_inner().ok().flatten();
        let sampled = watching.map(RunningSamplers::stop).unwrap_or_default();
        self.check_interrupted()?;
        let loaded = Loaded {
            load: whole(result?)?,
            sampled,
        };
        self.keep_load(&loaded)?;
        Ok(loaded)
    }

    fn drive(
        &self,
        load: &Load,
        target: &ConnectionTarget,
        begun: &(dyn Fn() + Sync),
    ) -> Result<LoadResult> {
        match self.site.driver() {
            Driver::BuiltIn => {
                let mut load = load.clone();
                load.stop = self.site.interrupted();
                Ok(load.run(target, begun))
            }
            Driver::Pgbench => {
                let program = pgbench::find(self.installation())
                    .ok_or_else(|| Error::Skip("no pgbench is installed here".to_owned()))?;
                let mut load = load.clone();
                load.stop = self.site.interrupted();
                pgbench::run(&program, &load, target, begun).map_err(Error::Skip)
            }
        }
    }

    fn keep_load(&mut self, loaded: &Loaded) -> Result<()> {
        let json = serde_json::to_vec_pretty(loaded).expect("plain data can be written as JSON");
        self.keep("load.json", &json)?;
        for overlap in &loaded.sampled.overlaps {
            self.overlap(overlap.clone());
        }
        self.fact("load.driver", loaded.load.driver.clone());
        self.fact("load.protocol", loaded.load.protocol.name());
        Ok(())
    }
}

/// A window without clients has no result, and one in which nothing succeeded is a failure, not a
/// rate of 0.
fn whole(result: LoadResult) -> Result<load::Measured> {
    match result {
        LoadResult::Empty { why } => Err(Error::Empty(why)),
        LoadResult::Measured(measured) if measured.rounds == 0 && measured.failed > 0 => {
            let trouble = measured.trouble();
            Err(Error::Refused(format!(
                "every round of the load failed: {trouble}"
            )))
        }
        LoadResult::Measured(measured) if measured.rounds == 0 => Err(Error::Empty(
            "no round of the load ended within the window".to_owned(),
        )),
        LoadResult::Measured(measured) => Ok(*measured),
    }
}
