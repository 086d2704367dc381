//! The asks of a scenario, in order: what each does to a server on a fresh copy of the cluster that
//! is hurt.

use std::process::Stdio;
use std::time::{Duration, Instant};

use pgclinic_servers::{ConnectOptions, Server, Session, StopMode};

use super::answer::{Answer, Ending};
use super::scene::{DATABASE, Object, Scene, start};
use super::wound::Wound;
use crate::drill::oracle::fatal_lines;
use crate::exit::Failure;

/// A statement on a damaged page may run for ever.
const PATIENCE: Duration = Duration::from_secs(8);
/// Within this an autovacuum worker comes, and a postmaster logs that a process crashed.
const WORKER: Duration = Duration::from_secs(20);
/// Between two looks at a log or a program.
const STEP: Duration = Duration::from_millis(20);
/// Settings with which a worker comes at once, and logs what it did.
const EAGER: [(&str, &str); 9] = [
    ("autovacuum", "on"),
    ("autovacuum_naptime", "1s"),
    ("autovacuum_max_workers", "1"),
    ("autovacuum_vacuum_threshold", "0"),
    ("autovacuum_vacuum_scale_factor", "0"),
    ("autovacuum_vacuum_insert_threshold", "0"),
    ("autovacuum_vacuum_insert_scale_factor", "0"),
    ("autovacuum_analyze_threshold", "0"),
    ("log_autovacuum_min_duration", "0"),
];

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    Copy,
    IndexScan,
    Vacuum,
    CreateIndex,
    Analyze,
    Autovacuum,
    Dump,
    Amcheck,
    Pageinspect,
    IgnoreChecksumFailure,
    ZeroDamagedPages,
    Surgery,
}

impl Ask {
    pub(super) const ALL: [Ask; 12] = [
        Ask::Copy,
        Ask::IndexScan,
        Ask::Vacuum,
        Ask::CreateIndex,
        Ask::Analyze,
        Ask::Autovacuum,
        Ask::Dump,
        Ask::Amcheck,
        Ask::Pageinspect,
        Ask::IgnoreChecksumFailure,
        Ask::ZeroDamagedPages,
        Ask::Surgery,
    ];

    /// In the table of a page.
    pub(super) fn words(self, object: Object) -> &'static str {
        match self {
            Ask::Copy => "`COPY`",
            Ask::IndexScan if object == Object::Sequence => "`nextval`",
            Ask::IndexScan => "index scan",
            Ask::Vacuum => "`VACUUM`",
            Ask::CreateIndex => "`CREATE INDEX`",
            Ask::Analyze => "`ANALYZE`",
            Ask::Autovacuum => "autovacuum",
            Ask::Dump => "`pg_dump`",
            Ask::Amcheck => "amcheck",
            Ask::Pageinspect => "pageinspect",
            Ask::IgnoreChecksumFailure => "`ignore_checksum_failure`, `COPY`",
            Ask::ZeroDamagedPages => "`zero_damaged_pages`, `COPY`",
            Ask::Surgery => "pg_surgery (kill), `COPY`",
        }
    }

    /// Nothing vacuums a sequence, and of a file that is gone there is no page to look at.
    pub(super) fn fits(self, wound: &Wound<'_>) -> bool {
        match self {
            Ask::Vacuum | Ask::CreateIndex | Ask::Analyze | Ask::Autovacuum => {
                wound.object != Object::Sequence
            }
            Ask::Pageinspect | Ask::Surgery => wound.has_page(),
            _ => true,
        }
    }

    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Ask::IndexScan => &[
                ("enable_seqscan", "off"),
                ("enable_sort", "off"),
                ("enable_bitmapscan", "off"),
            ],
            Ask::IgnoreChecksumFailure => &[("ignore_checksum_failure", "on")],
            Ask::ZeroDamagedPages => &[("zero_damaged_pages", "on")],
            _ => &[],
        }
    }
}

/// One thing that is done in a session.
enum Step {
    /// A statement.
    Run(String),
    /// `COPY`, whose rows are counted.
    Rows(String),
    /// A query whose rows are what is said.
    Said(String),
}

/// Starts a server on the copy, as it stands, and asks it.
pub(super) fn ask(
    scene: &Scene,
    wound: &Wound<'_>,
    ask: Ask,
    pgdata: &std::path::Path,
) -> Result<Answer, Failure> {
    let settings: &[_] = if ask == Ask::Autovacuum { &EAGER } else { &[] };
    let mut server = match start(&scene.master, pgdata, settings) {
        Ok(server) => server,
        Err(error) => return Ok(not_started(&error.to_string())),
    };
    let mut answer = match ask {
        Ask::Autovacuum => autovacuum(&server, &wound.spot.relation),
        Ask::Dump => dump(scene, &server, wound.object)?,
        _ => in_session(scene, &server, wound, ask)?,
    };
    if answer.ending == Ending::Crashed {
        answer.said.extend(crash_of(&server));
    }
    let _hurt_servers_may_fail_to_stop = server.stop(StopMode::Immediate);
    Ok(answer)
}

fn not_started(log: &str) -> Answer {
    let mut answer = Answer {
        ending: Ending::Refused,
        ..Answer::default()
    };
    fatal_lines(log)
        .into_iter()
        .for_each(|line| answer.say(line));
    answer
}

/// All rows of the object, by both ways to them.
pub(super) fn read_all(scene: &Scene, server: &Server, object: Object) -> [Answer; 2] {
    let by = |ask: Ask| {
        let steps = match ask {
            Ask::IndexScan => vec![Step::Rows(index_scan(object))],
            _ => vec![Step::Rows(object.copy())],
        };
        run(scene, server, (DATABASE, object), ask.settings(), &steps)
    };
    [by(Ask::Copy), by(Ask::IndexScan)]
}

/// All rows of the object in another database.
pub(super) fn read_rows(scene: &Scene, server: &Server, database: &str, object: Object) -> Answer {
    run(
        scene,
        server,
        (database, object),
        &[],
        &[Step::Rows(object.copy())],
    )
}

fn index_scan(object: Object) -> String {
    let order = match object {
        Object::Sequence => "",
        _ => " ORDER BY id",
    };
    format!(
        "COPY (SELECT {} FROM {}{order}) TO STDOUT",
        object.columns(),
        object.subject()
    )
}

fn in_session(
    scene: &Scene,
    server: &Server,
    wound: &Wound<'_>,
    ask: Ask,
) -> Result<Answer, Failure> {
    let steps = steps(scene, wound, ask)?;
    let place = (DATABASE, wound.object);
    Ok(run(scene, server, place, ask.settings(), &steps))
}

fn steps(scene: &Scene, wound: &Wound<'_>, ask: Ask) -> Result<Vec<Step>, Failure> {
    let (object, subject) = (wound.object, wound.object.subject());
    let hurt = &wound.spot.relation;
    // VACUUM of a table is one of its long values and indexes.
    let vacuumed = if object == Object::Catalog {
        hurt
    } else {
        subject
    };
    let copy = Step::Rows(object.copy());
    Ok(match ask {
        Ask::Copy | Ask::IgnoreChecksumFailure | Ask::ZeroDamagedPages => vec![copy],
        Ask::IndexScan if object == Object::Sequence => {
            vec![Step::Said(format!("SELECT nextval('{subject}')"))]
        }
        Ask::IndexScan => vec![Step::Rows(index_scan(object))],
        Ask::Vacuum => vec![Step::Run(format!("VACUUM {vacuumed}"))],
        Ask::Analyze => vec![Step::Run(format!("ANALYZE {vacuumed}"))],
        Ask::CreateIndex => vec![Step::Run(create_index(object))],
        Ask::Amcheck => vec![Step::Said(amcheck(object, hurt))],
        Ask::Pageinspect => vec![Step::Said(pageinspect(object, wound))],
        Ask::Surgery => vec![Step::Run(surgery(scene, wound)?), copy],
        Ask::Autovacuum | Ask::Dump => Vec::new(),
    })
}

fn create_index(object: Object) -> String {
    let key = match object {
        Object::Toast | Object::Owner => "md5(body)",
        _ => "note",
    };
    format!("CREATE INDEX ON {} ({key})", object.subject())
}

/// What amcheck says of the relation that is hurt, and of the table of long values.
fn amcheck(object: Object, hurt: &str) -> String {
    let heap = |relation: &str| {
        format!(
            "SELECT format('block %s, line pointer %s: %s', blkno, offnum, msg) FROM ext.verify_heapam('{relation}', check_toast := true)"
        )
    };
    match object {
        Object::Index => format!("SELECT ext.bt_index_parent_check('{hurt}', true, true)"),
        Object::Toast => format!("{} UNION ALL {}", heap(hurt), heap(object.subject())),
        Object::Table | Object::Owner | Object::Sequence | Object::Catalog => heap(hurt),
    }
}

fn pageinspect(object: Object, wound: &Wound<'_>) -> String {
    let (hurt, block) = (&wound.spot.relation, wound.spot.block);
    match object {
        Object::Index => {
            format!("SELECT count(*) || ' entries' FROM ext.bt_page_items('{hurt}', {block})")
        }
        _ => format!(
            "SELECT count(*) || ' line pointers, ' || count(t_xmin) || ' of them with a row' FROM ext.heap_page_items(ext.get_raw_page('{hurt}', {block}))"
        ),
    }
}

/// Kills the row that is hurt, or all of the page.
fn surgery(scene: &Scene, wound: &Wound<'_>) -> Result<String, Failure> {
    let (hurt, block) = (&wound.spot.relation, wound.spot.block);
    let items: Vec<u16> = match wound.plan.damage.item {
        Some(item) => vec![item],
        None => (1..=scene.line_pointers(&wound.plan.place.path, block)?).collect(),
    };
    let places = items.iter().map(|item| format!("({block},{item})"));
    let places: Vec<String> = places.collect();
    Ok(format!(
        "SELECT ext.heap_force_kill('{hurt}', '{{\"{}\"}}'::tid[])",
        places.join("\",\"")
    ))
}

/// Runs the steps until one fails.
fn run(
    scene: &Scene,
    server: &Server,
    (database, object): (&str, Object),
    settings: &[(&str, &str)],
    steps: &[Step],
) -> Answer {
    let mut answer = Answer::default();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let options = ConnectOptions {
        statement_timeout: Some(PATIENCE),
        wall_limit: PATIENCE * 2,
        settings: settings.iter().map(owned).collect(),
        ..ConnectOptions::default()
    };
    let mut session = match server.connect_with(database, &options) {
        Ok(session) => session,
        Err(error) => {
            answer.fail(&error);
            return answer;
        }
    };
    for step in steps {
        one(scene, &mut session, (step, object), &mut answer);
        if answer.ending != Ending::Done {
            break;
        }
    }
    answer
}

fn one(scene: &Scene, session: &mut Session, (step, object): (&Step, Object), answer: &mut Answer) {
    let mut bytes = Vec::new();
    let mut said = Vec::new();
    let outcome = match step {
        Step::Run(sql) => session.execute(sql),
        Step::Rows(sql) => {
            let copied = session.copy_out(sql, &mut |data| bytes.extend_from_slice(data));
            copied.map(|_| ())
        }
        Step::Said(sql) => session.query(sql).map(|rows| said = rows),
    };
    answer.hear(&session.take_messages());
    let texts = said.into_iter().flatten().flatten();
    texts
        .filter(|text| !text.is_empty())
        .for_each(|text| answer.say(text));
    if matches!(step, Step::Rows(_)) {
        answer.rows = Some(scene.compared(object, &bytes));
    }
    if let Err(error) = outcome {
        answer.fail(&error);
    }
}

/// What the postmaster says of a process that crashed.
fn crash_of(server: &Server) -> Option<String> {
    let end = Instant::now() + WORKER;
    loop {
        let log = server.log();
        let found = log
            .lines()
            .find(|line| line.contains("was terminated by signal") || line.contains("PANIC:"));
        if let Some(line) = found {
            return Some(line.to_owned());
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(STEP);
    }
}

/// Waits for the worker that comes to this relation.
fn autovacuum(server: &Server, relation: &str) -> Answer {
    let marks = ["vacuum", "analyze"]
        .map(|what| format!("automatic {what} of table \"{DATABASE}.{relation}\""));
    let end = Instant::now() + WORKER;
    let mut answer = Answer::default();
    while Instant::now() < end {
        let log = server.log();
        let lines: Vec<&str> = log.lines().collect();
        if lines
            .iter()
            .any(|line| line.contains("was terminated by signal"))
        {
            answer.ending = Ending::Crashed;
            return answer;
        }
        let Some(at) = lines
            .iter()
            .position(|line| marks.iter().any(|mark| line.contains(mark)))
        else {
            std::thread::sleep(STEP);
            continue;
        };
        let before = lines.get(..=at).unwrap_or_default();
        if before.last().is_some_and(|line| line.contains("LOG:")) {
            return answer;
        }
        let errors = before
            .iter()
            .filter(|line| line.contains("ERROR:") || line.contains("WARNING:"));
        let mut errors: Vec<&&str> = errors.collect();
        let first = errors.len().saturating_sub(2);
        errors.drain(..first);
        errors
            .into_iter()
            .for_each(|line| answer.say((*line).to_owned()));
        answer.ending = Ending::Refused;
        return answer;
    }
    answer.ending = Ending::TimedOut;
    answer
}

fn dump(scene: &Scene, server: &Server, object: Object) -> Result<Answer, Failure> {
    let folder = server.socket_folder();
    let (to, said) = (folder.join("dump.sql"), folder.join("pg_dump.log"));
    let program = scene.master.installation.bindir.join("pg_dump");
    let mut command = scene.master.run_as.command(&program);
    command
        .args(["-U", "postgres", "-f"])
        .arg(&to)
        .arg("-h")
        .arg(folder)
        .arg(DATABASE);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&said)?);
    let mut child = command.spawn()?;
    let end = Instant::now() + PATIENCE * 2;
    let ended = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() >= end => break None,
            None => std::thread::sleep(STEP),
        }
    };
    let mut answer = Answer::default();
    let text = std::fs::read_to_string(&said)?;
    let text = text.replace(&folder.display().to_string(), "SOCKET");
    text.lines()
        .take_while(|line| !line.contains("ommand was:") && !line.contains("uery was:"))
        .for_each(|line| answer.said.push(line.trim().to_owned()));
    answer.ending = match ended {
        None => {
            child.kill()?;
            child.wait()?;
            Ending::TimedOut
        }
        Some(status) if status.success() => Ending::Done,
        Some(_) if text.contains("closed the connection unexpectedly") => Ending::Crashed,
        Some(_) => Ending::Refused,
    };
    let written = std::fs::read(&to).unwrap_or_default();
    if object != Object::Sequence {
        answer.rows = Some(scene.compared(object, &rows_in(&written, object.subject())));
    }
    Ok(answer)
}

/// The lines of a table in a dump.
fn rows_in(dump: &[u8], table: &str) -> Vec<u8> {
    let begin = format!("COPY {table} (");
    let lines = dump.split_inclusive(|byte| *byte == b'\n');
    let rows = lines
        .skip_while(|line| !line.starts_with(begin.as_bytes()))
        .skip(1);
    rows.take_while(|line| !line.starts_with(b"\\."))
        .flatten()
        .copied()
        .collect()
}
