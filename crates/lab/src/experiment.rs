//! One experiment: the question, what is compared, what it costs, and how one run is made.
//!
//! An experiment is a file in `experiments/` and a line in its register. The plan, the order of
//! runs, servers, journal, statistics and report are the same for all and live elsewhere:
//!
//! ```text
//! matrix(scale) ─► plan ─► for each cell: base ─► copy ─► server ─► run(bench) ─► RunResult
//!                            │ fill(session) once for each base             │
//!                            └ missing needs: skipped, with the reason      └ metrics(): the first decides
//! ```

use std::collections::BTreeMap;

use pgclinic_model::document::DecisionCard;
use pgclinic_servers::Session;
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::cell::{Arm, Axis, Cell, Metric, Point, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, Withheld, with_the_first_arm};
use crate::error::Result;
use crate::experiments::oauth_login::OauthSetUp;
use crate::external_server::ByUrl;
use crate::need::Need;
use crate::plan::LeftOut;
use crate::prepared_folder::PreparedFolder;
use crate::samplers::Sampled;
use crate::table_profile::TableShape;
use crate::user_input::no_place;

/// How large an experiment is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// The smallest that still shows the effect, for tests: seconds.
    Smallest,
    /// A few minutes on two cores.
    Quick,
    /// The sizes of the published figures.
    Published,
}

impl Scale {
    /// `smallest`, `quick` or `published`.
    pub fn name(self) -> &'static str {
        self.pick("smallest", "quick", "published")
    }

    /// One of three values, by scale.
    pub fn pick<T>(self, smallest: T, quick: T, published: T) -> T {
        match self {
            Self::Smallest => smallest,
            Self::Quick => quick,
            Self::Published => published,
        }
    }
}

/// What is compared under which conditions, how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// The first is the baseline.
    pub arms: Vec<Arm>,
    /// May be empty: then there is one point.
    pub axes: Vec<Axis>,
    /// How often each cell is run.
    pub blocks: u32,
}

/// How a run treats the cluster that its base made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Each run gets a copy: it may write what it likes.
    Copy,
    /// All runs work on the same files, one after the other: they only read.
    Shared,
}

/// What a cell's cluster holds before its run. Cells of one server version with equal `initdb`
/// arguments, equal names and equal settings share one base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Given to [`Experiment::fill`].
    pub name: String,
    /// Whether runs write.
    pub used_as: Use,
    /// Settings that are in force while it is filled; none where what lies there afterwards does
    /// not depend on them.
    pub settings: BTreeMap<String, String>,
}

impl Base {
    /// A fresh cluster with nothing in it.
    pub fn empty() -> Self {
        Self::copied("empty")
    }

    /// A base of this name that every run gets a copy of.
    pub fn copied(name: &str) -> Self {
        Self::used(name, Use::Copy)
    }

    /// A base of this name that runs share, as they only read.
    pub fn shared(name: &str) -> Self {
        Self::used(name, Use::Shared)
    }

    fn used(name: &str, used_as: Use) -> Self {
        Self {
            name: name.to_owned(),
            used_as,
            settings: BTreeMap::new(),
        }
    }

    /// The same, filled under these settings.
    #[must_use]
    pub fn under(mut self, settings: &BTreeMap<String, String>) -> Self {
        self.settings = settings.clone();
        self
    }
}

/// What one run measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// By the name of the metric.
    pub metrics: BTreeMap<String, f64>,
    /// Raw samples over time, by name.
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
}

impl Measured {
    /// The same with one more metric.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.metrics.insert(name.to_owned(), value);
        self
    }

    /// The same with what samplers saw.
    #[must_use]
    pub fn beside(mut self, sampled: &Sampled) -> Self {
        self.metrics.extend(sampled.metrics.clone());
        self.series.extend(sampled.series.clone());
        self
    }

    /// The same with one more series of (seconds, value).
    #[must_use]
    pub fn with_series(mut self, name: &str, samples: Vec<[f64; 2]>) -> Self {
        self.series.insert(name.to_owned(), samples);
        self
    }
}

/// An experiment.
pub trait Experiment: Sync {
    /// kebab-case; what is typed after `lab run`.
    fn name(&self) -> &str;

    /// The question, as one sentence that ends in a question mark.
    fn question(&self) -> &str;

    /// The manual: what it does, what to watch out for, where the published figures come from.
    /// Paragraphs of text.
    fn explain(&self) -> &str;

    /// Arms, axes and blocks at this scale.
    fn matrix(&self, scale: Scale) -> Matrix;

    /// Whether this arm is run at this point: a matrix may have holes where a combination asks
    /// nothing that others do not answer, or costs more than it tells.
    fn asks(&self, arm: &Arm, point: &Point, scale: Scale) -> bool {
        let _ = (arm, point, scale);
        true
    }

    /// Arms made from folders that the person has prepared; `None` when folders are not what is
    /// compared.
    fn arms_in(&self, folders: &[PreparedFolder]) -> Option<Vec<Arm>> {
        let _ = folders;
        None
    }

    /// What is read off each run; the first decides.
    fn metrics(&self) -> Vec<Metric>;

    /// What a server must be able to do for this cell; a missing one is a skipped cell with its
    /// reason.
    fn needs(&self, cell: &Cell, arm: &Arm) -> Vec<Need> {
        let _ = (cell, arm);
        Vec::new()
    }

    /// What one run costs on two cores and a common disk.
    fn cost(&self, cell: &Cell, scale: Scale) -> Cost;

    /// The cluster that a run starts with.
    fn base(&self, cell: &Cell, arm: &Arm, scale: Scale) -> Base {
        let _ = (cell, arm, scale);
        Base::empty()
    }

    /// Fills a base, once; afterwards the server is stopped cleanly.
    fn fill(&self, base: &str, scale: Scale, seed: u64, session: &mut Session) -> Result<()> {
        let _ = (base, scale, seed, session);
        Ok(())
    }

    /// What filling a base costs, once.
    fn fill_cost(&self, base: &str, scale: Scale) -> Cost {
        let _ = (base, scale);
        Cost::seconds(2.0)
    }

    /// Makes one run.
    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured>;

    /// What to do when this arm turns out best: the setting or the statement to apply.
    fn advice(&self, arm: &Arm) -> String;

    /// What is decided on, the most important first: every arm against the first by the first
    /// metric, where the load is highest, unless the experiment knows better.
    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let advice = |arm: &Arm| self.advice(arm);
        let metrics = self.metrics();
        metrics.first().map_or_else(Vec::new, |metric| {
            with_the_first_arm(matrix, &metric.name, &metric.words, &advice)
        })
    }

    /// Why a comparison must not advise anything from these results; `None` where its figures
    /// decide.
    fn withheld(&self, comparison: &Comparison, results: &[RunResult]) -> Option<Withheld> {
        let _ = (comparison, results);
        None
    }

    /// Cards that hold no arm against another, such as whether every answer was right. They come
    /// first.
    fn verdicts(&self, results: &[RunResult]) -> Vec<DecisionCard> {
        let _ = results;
        Vec::new()
    }

    /// More sentences for the decision card that follow from the results, such as a projection.
    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let _ = results;
        Vec::new()
    }

    /// The same on data of this shape, where the shape of data is the question.
    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let _ = shape;
        let others = "toast-compression, uuid-keys, checksum-cost, duplicate-inserts, analyze-prefetch, async-io, \
                      filesystem, large-object-dump, catalog-churn or a file of your own";
        Err(no_place(self.name(), "the shape of a table", others))
    }

    /// The same with a person's own statements, where there is a place for them.
    fn with_ddl(&self, sql: &str) -> Result<Box<dyn Experiment>> {
        let _ = sql;
        Err(no_place(self.name(), "own statements", "catalog-churn"))
    }

    /// The same with how often what is measured happens, where results are projected.
    fn with_traffic(&self, traffic: &[(String, u64)]) -> Result<Box<dyn Experiment>> {
        let _ = traffic;
        Err(no_place(self.name(), "a table of traffic", "catalog-churn"))
    }

    /// The same with a person's own issuer and rules of OAuth, where logins are the question.
    fn with_oauth(&self, own: &OauthSetUp) -> Result<Box<dyn Experiment>> {
        let _ = own;
        let option = "an issuer or the rules of a data directory";
        Err(no_place(self.name(), option, "oauth-login"))
    }

    /// What of that which a person brought is not used, with the reason, for the plan.
    ///
    /// # Errors
    /// When something that the experiment asks for was not brought.
    fn brought(&self) -> Result<Vec<LeftOut>> {
        Ok(Vec::new())
    }

    /// Whether it may run on a server that is there already; one that says so asks its bench for
    /// sessions and loads only.
    fn by_url(&self) -> ByUrl {
        ByUrl::Never("it sets up, restarts or looks into the files of its server")
    }
}
