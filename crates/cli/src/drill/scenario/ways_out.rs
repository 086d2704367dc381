//! The ways out of a wound, each carried out on a fresh copy and then examined: all rows are read
//! by `COPY` and through the index, and the copy is checked again.

use std::path::Path;

use pgclinic_model::Severity;
use pgclinic_model::document::{HealDocument, SalvageReport};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Server, StopMode, copy_cluster};

use super::answer::{Answer, Ending, Rows};
use super::asks::read_all;
use super::scene::{DATABASE, Object, Scene, start};
use super::wound::Wound;
use crate::drill::bench_copy::BenchCopy;
use crate::drill::master;
use crate::exit::Failure;
use crate::quiet_run::{NOWHERE, QuietRun, run_quietly};

/// The database of the new server into which the rows are saved.
const RESCUED: &str = "rescued";

/// A way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// `heal` with nothing but the files.
    HealAlone,
    /// `heal` with another copy of the cluster.
    HealFromCopy,
    /// `heal --at`, with a cure that gives something up.
    HealByHand(&'static str),
    /// `heal` on the row that owns a long value.
    CutValue,
    /// A statement.
    Sql(&'static str),
    /// All rows into a new server.
    Salvage,
}

/// What became of a way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tried {
    /// What was typed.
    pub(super) typed: String,
    /// Its last words, where it did not do it.
    pub(super) refused: Option<String>,
    /// Rows that a server gives afterwards; the worse of two ways to read them.
    pub(super) rows: Option<Rows>,
    /// What that server said.
    pub(super) said: Vec<String>,
    /// Rules of damage that a check still finds; nothing where the rows are on a new server.
    pub(super) still: Option<Vec<String>>,
}

impl Tried {
    fn new(typed: &str) -> Self {
        Tried {
            typed: spoken(typed),
            refused: None,
            rows: None,
            said: Vec::new(),
            still: None,
        }
    }

    fn refused(typed: &str, why: String) -> Self {
        Tried {
            refused: Some(why),
            ..Tried::new(typed)
        }
    }

    /// It gives all rows back, and nothing is left of the damage.
    pub(super) fn is_whole(&self) -> bool {
        self.works() && self.rows.is_some_and(Rows::are_all)
    }

    /// Everything can be read, without damage.
    pub(super) fn works(&self) -> bool {
        self.refused.is_none()
            && self.said.is_empty()
            && self.still.as_ref().is_none_or(Vec::is_empty)
            && self.rows.is_some_and(|rows| rows.wrong == 0)
    }
}

/// A command as a user types it: directories of a run by what they are.
fn spoken(typed: &str) -> String {
    let mut words = typed.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut before = String::new();
    for word in &mut words {
        let name = match before.as_str() {
            "heal" => Some("PGDATA"),
            "--standby" => Some("COPY"),
            "--accept" => Some("ID"),
            _ => None,
        };
        before.clone_from(word);
        if let Some(name) = name {
            name.clone_into(word);
        }
    }
    words.join(" ")
}

/// Tries each way that fits the wound.
pub(super) fn try_all(
    scene: &Scene,
    wound: &Wound<'_>,
    copy: &mut BenchCopy,
) -> Result<Vec<Tried>, Failure> {
    let mut tried = Vec::new();
    for way in ways(wound) {
        wound.make(copy)?;
        tried.push(try_one(scene, wound, way, copy)?);
        remove(&journal_of(&copy.pgdata))?;
    }
    Ok(tried)
}

fn ways(wound: &Wound<'_>) -> Vec<Way> {
    let by_hand = match (wound.object, wound.spot.item) {
        (Object::Index, _) => vec![Way::Sql("REINDEX INDEX public.patients_pkey")],
        (Object::Sequence, _) => vec![Way::Sql(
            "SELECT setval('public.invoices_id_seq', max(id)) FROM public.invoices",
        )],
        (Object::Toast | Object::Owner, Some(_)) => vec![Way::CutValue],
        (_, Some(_)) => vec![Way::HealByHand("--kill")],
        (_, None) if !wound.has_page() => Vec::new(),
        (_, None) => vec![Way::HealByHand("--zero-page")],
    };
    let first = [Way::HealAlone, Way::HealFromCopy];
    first
        .into_iter()
        .chain(by_hand)
        .chain([Way::Salvage])
        .collect()
}

fn try_one(scene: &Scene, wound: &Wound<'_>, way: Way, copy: &BenchCopy) -> Result<Tried, Failure> {
    let pgdata = text(&copy.pgdata);
    let heal = |more: &[&str]| [&["heal", pgdata.as_str()], more].concat().join(" ");
    let other = text(scene.other_copy(wound.sums));
    match way {
        Way::HealAlone => by_plan(scene, wound, copy, &heal(&[])),
        Way::HealFromCopy => by_plan(scene, wound, copy, &heal(&["--standby", &other])),
        Way::HealByHand(cure) => by_plan(scene, wound, copy, &heal(&["--at", &wound.at(), cure])),
        Way::CutValue => {
            let own = wound.at();
            let row = match wound.object {
                Object::Toast => &scene.owner_of_chunk,
                _ => &own,
            };
            let cut = heal(&["--at", row, "--cut-toast-value", "body"]);
            by_plan(scene, wound, copy, &cut)
        }
        Way::Sql(sql) => by_statement(scene, wound, copy, sql),
        Way::Salvage => salvaged(scene, wound, copy),
    }
}

/// Makes the plan, and consents to all of it: to exact cures with one word, to each lossy one by
/// its id.
fn by_plan(
    scene: &Scene,
    wound: &Wound<'_>,
    copy: &BenchCopy,
    line: &str,
) -> Result<Tried, Failure> {
    let plan = pgclinic(&format!("{line} --format json"), scene.spill());
    let Ok(document) = serde_json::from_str::<HealDocument>(&plan.out) else {
        return Ok(Tried::refused(
            &format!("pgclinic {line}"),
            first_line(&plan),
        ));
    };
    if document.cures.is_empty() {
        let why = "no cure: nothing proves what stood there";
        return Ok(Tried::refused(&format!("pgclinic {line}"), why.into()));
    }
    let mut words = document.cures.iter().map(|cure| match cure.safety {
        Safety::Lossy => format!(" --accept {}", cure.id),
        Safety::Exact | Safety::ShowOnly => " --yes".into(),
    });
    let consent = words
        .by_ref()
        .collect::<std::collections::BTreeSet<String>>();
    let consent: String = consent.into_iter().collect();
    healed(scene, wound, copy, &format!("{line}{consent}"))
}

fn healed(
    scene: &Scene,
    wound: &Wound<'_>,
    copy: &BenchCopy,
    line: &str,
) -> Result<Tried, Failure> {
    let ran = pgclinic(line, scene.spill());
    let typed = format!("pgclinic {line}");
    let is_done = ["HEALED", "PARTLY", "DAMAGE"]
        .iter()
        .any(|word| ran.out.starts_with(word));
    if !is_done {
        let why = first_line(&ran).replace(&text(&copy.pgdata), "PGDATA");
        return Ok(Tried::refused(&typed, why));
    }
    let mut tried = Tried::new(&typed);
    examine(scene, wound, copy, &mut tried)?;
    Ok(tried)
}

/// The first line of what a run said.
fn first_line(ran: &QuietRun) -> String {
    let line = ran
        .out
        .lines()
        .chain(ran.err.lines())
        .find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}

fn by_statement(
    scene: &Scene,
    wound: &Wound<'_>,
    copy: &BenchCopy,
    sql: &str,
) -> Result<Tried, Failure> {
    let mut tried = Tried::new(&format!("{sql};"));
    let mut server = start(&scene.master, &copy.pgdata, &[])?;
    let ran = server
        .connect(DATABASE)
        .and_then(|mut session| session.execute(sql));
    if let Err(error) = ran {
        let mut answer = Answer::default();
        answer.fail(&error);
        tried.refused = Some(answer.said.join("\n"));
        server.stop(StopMode::Immediate)?;
        return Ok(tried);
    }
    server.stop(StopMode::Fast)?;
    examine(scene, wound, copy, &mut tried)?;
    Ok(tried)
}

/// Checks the copy, then lets a server read it.
fn examine(
    scene: &Scene,
    wound: &Wound<'_>,
    copy: &BenchCopy,
    tried: &mut Tried,
) -> Result<(), Failure> {
    tried.still = Some(damage_of(scene, &copy.pgdata)?);
    match start(&scene.master, &copy.pgdata, &[]) {
        Ok(mut server) => {
            read_into(scene, &server, wound.object, tried);
            server.stop(StopMode::Immediate)?;
        }
        Err(error) => tried.said.push(error.to_string()),
    }
    Ok(())
}

/// Rules of damage that the check finds and the healthy cluster does not have, roots first.
pub(super) fn damage_of(scene: &Scene, pgdata: &Path) -> Result<Vec<String>, Failure> {
    let mut found =
        crate::drill::judge::NewFindings::new(master::check(pgdata, 0)?, &scene.healthy);
    found
        .findings
        .retain(|finding| finding.severity == Severity::Damage);
    Ok(found.rules())
}

/// A sequence that is at rest, or further on, gives no number twice.
fn read_into(scene: &Scene, server: &Server, object: Object, tried: &mut Tried) {
    for answer in read_all(scene, server, object) {
        let rows = answer.rows.unwrap_or_default();
        let worse = tried
            .rows
            .is_none_or(|known| rows.right < known.right || rows.wrong > known.wrong);
        if worse {
            tried.rows = Some(rows);
        }
        let complaints = answer
            .said
            .into_iter()
            .filter(|said| !tried.said.contains(said));
        let complaints: Vec<String> = complaints.collect();
        tried.said.extend(complaints);
        if answer.ending != Ending::Done && tried.said.is_empty() {
            tried.said.push("the server crashed".into());
        }
    }
}

/// Saves everything into a database of a new server.
fn salvaged(scene: &Scene, wound: &Wound<'_>, copy: &BenchCopy) -> Result<Tried, Failure> {
    let folder = copy.pgdata.with_file_name("new-server");
    remove(&folder)?;
    std::fs::create_dir(&folder)?;
    scene.master.run_as.own(&folder)?;
    let new = copy_cluster(&scene.master.pgdata, &folder)?;
    let mut server = start(&scene.master, &new.pgdata, &[])?;
    server
        .connect("postgres")?
        .execute(&format!("CREATE DATABASE {RESCUED} TEMPLATE template0"))?;
    let socket = text(server.socket_folder());
    let url = format!("postgres://postgres@:5432/{RESCUED}?host={socket}");
    let ran = pgclinic(
        &format!(
            "salvage {} --database {DATABASE} --to {url} --account {}/salvage.json",
            text(&copy.pgdata),
            text(&folder)
        ),
        scene.spill(),
    );
    let typed = "pgclinic salvage PGDATA --database clinic --to postgres://new-server/rescued";
    let mut tried = Tried::new(typed);
    if ran.exit == 2 {
        tried.refused = Some(ran.err.lines().last().unwrap_or_default().to_owned());
    } else {
        let answer = super::asks::read_rows(scene, &server, RESCUED, wound.object);
        tried.rows = answer.rows;
        tried.said = answer.said;
    }
    server.stop(StopMode::Immediate)?;
    remove(&folder)?;
    Ok(tried)
}

/// What a salvage into a directory gives of the object: its account, and rows held against those
/// that were there.
pub(super) struct Saved {
    pub(super) rows: Option<Rows>,
    pub(super) outcome: String,
    /// Rows that stand apart, since they may not be what they say.
    pub(super) suspect: u64,
    pub(super) lost: u64,
    pub(super) sequence: Option<i64>,
}

pub(super) fn saved(scene: &Scene, wound: &Wound<'_>, pgdata: &Path) -> Result<Saved, Failure> {
    let folder = pgdata.with_file_name("saved");
    remove(&folder)?;
    let ran = pgclinic(
        &format!(
            "salvage {} --database {DATABASE} --format copy --to {}",
            text(pgdata),
            text(&folder)
        ),
        scene.spill(),
    );
    let account = std::fs::read(folder.join("salvage.json"));
    let report: SalvageReport = match account {
        Ok(bytes) => serde_json::from_slice(&bytes)?,
        Err(_) => return Err(Failure::new(ran.err)),
    };
    let subject = wound.object.subject();
    let table = report
        .tables
        .iter()
        .find(|table| format!("{}.{}", table.schema, table.table) == subject);
    let file = table.and_then(|table| table.file.as_ref());
    let bytes = file
        .map(|file| std::fs::read(folder.join(file)))
        .transpose()?;
    let counts = table.map(|table| table.rows).unwrap_or_default();
    let rows = bytes.map(|bytes| scene.compared(wound.object, &bytes));
    remove(&folder)?;
    let name = subject.rsplit('.').next();
    let sequence = report
        .sequences
        .iter()
        .find(|one| Some(one.sequence.as_str()) == name);
    Ok(Saved {
        rows,
        outcome: format!("{:?}", report.outcome).to_lowercase(),
        suspect: counts.suspect,
        lost: counts.lost,
        sequence: sequence.map(|sequence| sequence.last_value),
    })
}

/// Runs the program within this one. No word of the line has a blank in it.
fn pgclinic(line: &str, spill: &Path) -> QuietRun {
    let words: Vec<&str> = line.split_whitespace().collect();
    run_quietly(&words, &NOWHERE, spill)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn journal_of(pgdata: &Path) -> std::path::PathBuf {
    let mut name = pgdata.file_name().unwrap_or_default().to_owned();
    name.push(".heal.journal");
    pgdata.with_file_name(name)
}

fn remove(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}
