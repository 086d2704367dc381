//! Scenarios: one wound, and everything that one may ask of it, each on a fresh copy.
//!
//! ```text
//! scene (healthy, stopped) ─► copy ─► wound ─┬─ a server is asked: COPY, VACUUM, pg_dump, amcheck …
//!     ▲                                      ├─ check, explain, salvage
//!     │                                      └─ ways out ─► check again, all rows read
//!     └── refresh ◄── after each of them
//! ```

mod answer;
mod asks;
mod gallery;
mod masks;
mod page;
mod scene;
mod ways_out;
mod wound;

use std::sync::atomic::AtomicBool;

use pgclinic_cluster::Cluster;
use pgclinic_explain::server_messages::explain_message;
use pgclinic_surgery::injury_named;

use crate::drill::bench_copy::BenchCopy;
use crate::drill::crew::on_copies;
use crate::drill::master;
use crate::exit::Failure;
use crate::near_names::meant;

use answer::Answer;
use asks::Ask;
use ways_out::{Saved, Tried};
use wound::Wound;

pub(crate) use gallery::{PAGES, Page, SCENARIOS, Scenario};
pub(crate) use page::index;
pub(crate) use scene::Scene;
use scene::{Object, Sums};

/// What a scenario gave.
pub(crate) struct Run {
    object: Object,
    sums: Sums,
    injury: &'static str,
    major: u16,
    /// What was done, in words.
    wound: String,
    /// Where, as options of `injure`.
    place: String,
    asked: Vec<(Ask, Answer)>,
    /// Rules, roots first.
    found: Vec<String>,
    /// Pages of the textbook.
    explained: Vec<&'static str>,
    saved: Saved,
    tried: Vec<Tried>,
}

/// A scenario in one of its states.
pub(crate) type Task = (Scenario, Sums);

/// The scenarios of this page, name or injury, in each of their states. Another injury is made of
/// every object that it fits.
pub(crate) fn tasks(scene: &Scene, name: &str) -> Result<Vec<Task>, Failure> {
    let mut chosen = of_name(name);
    if chosen.is_empty() {
        let injury = injury_named(name).map_err(|_| unknown(name))?;
        let cluster = master::open(&scene.master.pgdata)?;
        let fits = |object: &Object| scene.plan(&cluster, injury, *object).is_ok();
        let objects = Object::ALL.into_iter().filter(fits);
        chosen.extend(objects.map(|object| Scenario::of(injury.name, object)));
    }
    Ok(in_each_state(&chosen))
}

/// Before anything is made for it.
pub(crate) fn refuse_unknown(name: &str) -> Result<(), Failure> {
    if of_name(name).is_empty() {
        injury_named(name).map_err(|_| unknown(name))?;
    }
    Ok(())
}

fn of_name(name: &str) -> Vec<Scenario> {
    let is_meant = |scenario: &&Scenario| {
        [scenario.page, scenario.injury].contains(&name) || scenario.name() == name
    };
    SCENARIOS.iter().filter(is_meant).copied().collect()
}

fn unknown(name: &str) -> Failure {
    let names: Vec<String> = SCENARIOS.iter().map(Scenario::name).collect();
    let near = meant(name, names.iter().map(String::as_str));
    Failure::new(format!(
        "there is no scenario {name:?}: {near}`pgclinic drill --scenarios` lists them, `pgclinic injure --list` the injuries"
    ))
}

fn in_each_state(scenarios: &[Scenario]) -> Vec<Task> {
    let tasks = scenarios
        .iter()
        .flat_map(|scenario| scenario.sums.iter().map(|sums| (*scenario, *sums)));
    tasks.collect()
}

/// Runs them on `threads` copies at once; `step` hears of each. What finds no place is refused
/// before anything is hurt.
pub(crate) fn run(
    scene: &Scene,
    tasks: &[Task],
    threads: usize,
    stop: &AtomicBool,
    step: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Run>, Failure> {
    let cluster = master::open(&scene.master.pgdata)?;
    let planned = tasks.iter().map(|task| planned(scene, &cluster, *task));
    let wounds = planned.collect::<Result<Vec<_>, _>>()?;
    on_copies(
        (&scene.master, "scenario"),
        &wounds,
        threads,
        stop,
        &|wound, copy| {
            let run = one(scene, wound, copy)?;
            step(wound.injury.name);
            Ok(run)
        },
    )
}

fn planned(
    scene: &Scene,
    cluster: &Cluster,
    (scenario, sums): Task,
) -> Result<Wound<'static>, Failure> {
    let injury = injury_named(scenario.injury)?;
    let plan = scene.plan(cluster, injury, scenario.object);
    let homeless = |failure: Failure| Failure(format!("{}: {}", scenario.name(), failure.0));
    let relation = scene.spot(scenario.object).relation;
    let place = (scenario.object, sums);
    Ok(Wound::new(injury, place, plan.map_err(homeless)?, relation))
}

fn one(scene: &Scene, wound: &Wound<'static>, copy: &mut BenchCopy) -> Result<Run, Failure> {
    let mut asked = Vec::new();
    for ask in Ask::ALL.into_iter().filter(|ask| ask.fits(wound)) {
        wound.make(copy)?;
        asked.push((ask, asks::ask(scene, wound, ask, &copy.pgdata)?));
    }
    wound.make(copy)?;
    let found = ways_out::damage_of(scene, &copy.pgdata)?;
    let mut saved = ways_out::saved(scene, wound, &copy.pgdata)?;
    if wound.object == Object::Sequence {
        saved.rows = saved.sequence.map(|value| {
            let line = format!("{value}\tt\n");
            scene.compared(Object::Sequence, line.as_bytes())
        });
    }
    let tried = ways_out::try_all(scene, wound, copy)?;
    copy.refresh()?;
    Ok(Run {
        object: wound.object,
        sums: wound.sums,
        injury: wound.injury.name,
        major: scene.master.installation.major,
        wound: wound.plan.damage.words.clone(),
        place: place_of(wound),
        explained: explained(&asked),
        asked,
        found,
        saved,
        tried,
    })
}

/// The pages of the textbook that the messages open, in the order in which they came.
fn explained(asked: &[(Ask, Answer)]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for words in asked.iter().flat_map(|(_, answer)| &answer.said) {
        let found = explain_message(words);
        let name = found.first().map(|found| found.message.name);
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

/// As options of `injure`.
fn place_of(wound: &Wound<'_>) -> String {
    let block = wound
        .plan
        .place
        .block
        .map(|block| format!(" --block {block}"));
    let item = wound.spot.item.map(|item| format!(" --item {item}"));
    format!(
        " --relation {}{}{}",
        wound.spot.relation,
        block.unwrap_or_default(),
        item.unwrap_or_default()
    )
}

/// The scenarios of one page of the guide, in each of their states.
pub(crate) fn tasks_of(page: &Page) -> Vec<Task> {
    let of_page = SCENARIOS
        .iter()
        .filter(|scenario| scenario.page == page.name);
    in_each_state(&of_page.copied().collect::<Vec<_>>())
}

/// The text of a page, from what its scenarios gave.
pub(crate) fn page_of(page: &Page, runs: &[Run]) -> String {
    page::page(page, runs)
}

/// Whether a server gave the message of the page in one of these runs.
pub(crate) fn shows_its_message(page: &Page, runs: &[Run]) -> bool {
    let mut answers = runs.iter().flat_map(|run| &run.asked);
    answers.any(|(_, answer)| answer.said.iter().any(|said| said.contains(page.needle)))
}

/// What a run says by itself, as a part of its page.
pub(crate) fn section(run: &Run) -> String {
    page::section(run)
}
