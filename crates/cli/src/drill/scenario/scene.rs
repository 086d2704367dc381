//! The cluster of the scenarios: what is in it, where it is hurt, and what a server gives of it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use pgclinic_cluster::Cluster;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::CheckDocument;
use pgclinic_servers::{
    Checksums, InitOptions, Installation, RunAs, Scratch, Server, Session, StartOptions, StopMode,
    initdb,
};
use pgclinic_surgery::{Injury, InjuryOptions, InjuryTargets, PlannedInjury, plan_on};

use super::answer::Rows;
use crate::drill::bench_copy::BenchCopy;
use crate::drill::master::{self, Master};
use crate::exit::Failure;

const CONTENT: &str = include_str!("content.sql");
/// The database of the scenarios.
pub(super) const DATABASE: &str = "clinic";
/// Chooses what an injury writes.
const SEED: u64 = 1;

/// What is hurt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Object {
    Table,
    Toast,
    /// The row of a table that owns a long value.
    Owner,
    Sequence,
    Catalog,
    Index,
}

impl Object {
    pub(super) const ALL: [Object; 6] = [
        Object::Table,
        Object::Toast,
        Object::Owner,
        Object::Sequence,
        Object::Catalog,
        Object::Index,
    ];

    /// In a name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Object::Table => "table",
            Object::Toast => "toast",
            Object::Owner => "owner",
            Object::Sequence => "sequence",
            Object::Catalog => "catalog",
            Object::Index => "index",
        }
    }

    /// In a heading.
    pub(super) fn words(self) -> &'static str {
        match self {
            Object::Table => "A table",
            Object::Toast => "TOASTed values",
            Object::Owner => "A row with a TOASTed value",
            Object::Sequence => "A sequence",
            Object::Catalog => "A catalog",
            Object::Index => "An index",
        }
    }

    /// The relation whose rows are counted.
    pub(super) fn subject(self) -> &'static str {
        match self {
            Object::Table | Object::Catalog | Object::Index => "public.patients",
            Object::Toast | Object::Owner => "public.letters",
            Object::Sequence => "public.invoices_id_seq",
        }
    }

    /// What is selected of the subject.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Object::Sequence => "last_value, is_called",
            _ => "*",
        }
    }

    /// The statement that reads all rows.
    pub(super) fn copy(self) -> String {
        format!(
            "COPY (SELECT {} FROM {}) TO STDOUT",
            self.columns(),
            self.subject()
        )
    }

    /// The row whose page is hurt: of the hurt relation, and which.
    fn row(self) -> Option<&'static str> {
        match self {
            Object::Table => Some("id = 1000"),
            Object::Owner => Some("id = 30"),
            Object::Toast => Some(
                "chunk_seq = 1 AND chunk_id = (SELECT chunk_id FROM {hurt} ORDER BY ctid OFFSET 150 LIMIT 1)",
            ),
            Object::Sequence => Some("true"),
            Object::Catalog => Some("oid = 'public.patients'::regclass"),
            Object::Index => None,
        }
    }
}

/// Whether the pages of the copy that is hurt carry checksums.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Sums {
    Off,
    On,
}

impl Sums {
    pub(super) fn words(self) -> &'static str {
        match self {
            Sums::On => "with data checksums",
            Sums::Off => "without data checksums",
        }
    }
}

/// Where a scenario hurts an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Spot {
    /// The relation, as `schema.name`.
    pub(super) relation: String,
    pub(super) block: BlockNo,
    pub(super) item: Option<u16>,
}

/// Rows as lines of `COPY`, and how often each is there.
pub(super) type Lines = HashMap<Vec<u8>, u64>;

/// Everything that scenarios share.
pub(crate) struct Scene {
    pub(super) master: Master,
    pub(super) healthy: CheckDocument,
    truth: BTreeMap<&'static str, Lines>,
    spots: BTreeMap<Object, Spot>,
    /// The row that owns the chunk which is hurt, as `PATH:BLOCK:ITEM`.
    pub(super) owner_of_chunk: String,
    standby: [BenchCopy; 2],
}

impl Scene {
    /// Makes and fills the cluster, and asks a healthy copy for its rows.
    pub(crate) fn make(installation: Installation, run_as: RunAs) -> Result<Self, Failure> {
        let master = made(installation, run_as)?;
        let healthy = master::check(&master.pgdata, 0)?;
        let asked = BenchCopy::make(&master, "asked")?;
        let mut server = start(&master, &asked.pgdata, &[])?;
        let mut session = server.connect(DATABASE)?;
        let (mut truth, mut spots) = (BTreeMap::new(), BTreeMap::new());
        for object in Object::ALL {
            truth.insert(object.subject(), rows_of(&mut session, object)?);
            spots.insert(object, spot_of(&mut session, object)?);
        }
        let owner_of_chunk = owner_of_chunk(&mut session, &spots)?;
        drop(session);
        server.stop(StopMode::Fast)?;
        let standby = [
            BenchCopy::make(&master, "other-copy-off")?,
            BenchCopy::make(&master, "other-copy-on")?,
        ];
        let [off, _] = &standby;
        off.disable_checksums()?;
        Ok(Scene {
            master,
            healthy,
            truth,
            spots,
            owner_of_chunk,
            standby,
        })
    }

    /// A copy of the cluster as it was before, which was shut down at the same moment.
    pub(super) fn other_copy(&self, sums: Sums) -> &Path {
        let [off, on] = &self.standby;
        match sums {
            Sums::On => &on.pgdata,
            Sums::Off => &off.pgdata,
        }
    }

    /// Where a run of the program puts what does not fit into memory.
    pub(super) fn spill(&self) -> &Path {
        self.master.scratch.path()
    }

    /// Lines of `COPY` held against the rows of the object.
    pub(super) fn compared(&self, object: Object, bytes: &[u8]) -> Rows {
        let truth = self.truth(object);
        match object {
            Object::Sequence => Rows::of_sequence(bytes, &truth),
            _ => Rows::compared(bytes, &truth),
        }
    }

    fn truth(&self, object: Object) -> Lines {
        self.truth
            .get(object.subject())
            .cloned()
            .unwrap_or_default()
    }

    pub(super) fn spot(&self, object: Object) -> Spot {
        self.spots.get(&object).cloned().unwrap_or_default()
    }

    /// The injury at the spot of the object: of its row where it hurts rows, else of its page,
    /// else of its relation.
    pub(super) fn plan(
        &self,
        cluster: &Cluster,
        injury: &Injury,
        object: Object,
    ) -> Result<PlannedInjury, Failure> {
        let targets = InjuryTargets::new(cluster);
        let spot = self.spot(object);
        let options = |block, item| InjuryOptions {
            database: Some(DATABASE.into()),
            relation: Some(spot.relation.clone()),
            block,
            item,
            seed: SEED,
            sealed: false,
        };
        let choices = [
            options(Some(spot.block), spot.item),
            options(Some(spot.block), None),
            options(None, None),
        ];
        let mut last = Failure::new("there is no place");
        for options in choices {
            match plan_on(&targets, injury, &options) {
                Ok(planned) => return Ok(planned),
                Err(error) => last = Failure::from(error),
            }
        }
        Err(last)
    }

    /// Line pointers that the page had before it was hurt.
    pub(super) fn line_pointers(&self, path: &str, block: BlockNo) -> Result<u16, Failure> {
        let cluster = master::open(&self.master.pgdata)?;
        let mut bytes = vec![0; usize::try_from(cluster.build.block_size)?];
        let at = u64::from(block) * u64::from(cluster.build.block_size);
        cluster.source().read_at(path, at, &mut bytes)?;
        Ok(Page::parse(&bytes).map_or(0, Page::line_pointer_count))
    }
}

fn made(installation: Installation, run_as: RunAs) -> Result<Master, Failure> {
    let scratch = Scratch::new(&run_as, None)?;
    let pgdata: PathBuf = scratch.folder("master")?.join("data");
    let init = InitOptions {
        checksums: Checksums::On,
        wal_segsize_mb: Some(1),
        ..InitOptions::default()
    };
    initdb(&installation, &run_as, &pgdata, &init)?;
    let master = Master {
        installation,
        run_as,
        pgdata,
        scratch,
    };
    let mut server = start(&master, &master.pgdata, &[])?;
    server
        .connect("postgres")?
        .execute(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut session = server.connect(DATABASE)?;
    session.execute(CONTENT)?;
    // A first scan sets the hint bits; the statistics of what is read go with the session.
    for object in Object::ALL {
        session.execute(&format!("SELECT count(*) FROM {}", object.subject()))?;
    }
    // A heal without other evidence finds no older WAL, in whichever segment the content ended.
    session.execute("SELECT pg_switch_wal()")?;
    session.execute("CHECKPOINT")?;
    drop(session);
    server.stop(StopMode::Fast)?;
    Ok(master)
}

/// A server on a copy with these settings.
pub(super) fn start(
    master: &Master,
    pgdata: &Path,
    settings: &[(&str, &str)],
) -> pgclinic_servers::Result<Server> {
    let plain = StartOptions::default().with("log_line_prefix", "%e ");
    let with = |options: StartOptions, (name, value): &(&str, &str)| options.with(name, value);
    let options = settings.iter().fold(plain, with);
    Server::start(&master.installation, &master.run_as, pgdata, &options)
}

fn rows_of(session: &mut Session, object: Object) -> Result<Lines, Failure> {
    let mut bytes = Vec::new();
    session.copy_out(&object.copy(), &mut |data| bytes.extend_from_slice(data))?;
    Ok(lines_of(&bytes))
}

/// A line without its end is no row.
pub(super) fn lines_of(bytes: &[u8]) -> Lines {
    let mut lines = Lines::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if let Some(row) = line.strip_suffix(b"\n") {
            *lines.entry(row.to_vec()).or_default() += 1;
        }
    }
    lines
}

fn spot_of(session: &mut Session, object: Object) -> Result<Spot, Failure> {
    let relation = match object {
        Object::Table => "public.patients".to_owned(),
        Object::Owner => "public.letters".to_owned(),
        Object::Sequence => "public.invoices_id_seq".to_owned(),
        Object::Catalog => "pg_catalog.pg_class".to_owned(),
        Object::Index => "public.patients_pkey".to_owned(),
        Object::Toast => value(
            session,
            "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'public.letters'::regclass",
        )?,
    };
    let Some(row) = object.row() else {
        // A leaf in the middle: the first page after the meta page and the first leaf.
        return Ok(Spot {
            relation,
            block: 2,
            item: None,
        });
    };
    let row = row.replace("{hurt}", &relation);
    let (block, item) = ctid(session, &relation, &row)?;
    Ok(Spot {
        relation,
        block: block.parse()?,
        item: Some(item.parse()?),
    })
}

fn owner_of_chunk(
    session: &mut Session,
    spots: &BTreeMap<Object, Spot>,
) -> Result<String, Failure> {
    let toast = spots.get(&Object::Toast).cloned().unwrap_or_default();
    let position = value(
        session,
        &format!(
            "SELECT count(DISTINCT chunk_id) FROM {toast} WHERE chunk_id <= (SELECT chunk_id FROM {toast} WHERE ctid = '({},{})')",
            toast.block,
            toast.item.unwrap_or_default(),
            toast = toast.relation
        ),
    )?;
    let (block, item) = ctid(session, "public.letters", &format!("id = {position}"))?;
    let path = value(session, "SELECT pg_relation_filepath('public.letters')")?;
    Ok(format!("{path}:{block}:{item}"))
}

fn ctid(session: &mut Session, relation: &str, row: &str) -> Result<(String, String), Failure> {
    let text = value(session, &format!("SELECT ctid FROM {relation} WHERE {row}"))?;
    let inner = text.trim_matches(['(', ')']);
    let parts = inner.split_once(',');
    let (block, item) = parts.ok_or_else(|| Failure::new(format!("{text} is no ctid")))?;
    Ok((block.to_owned(), item.to_owned()))
}

fn value(session: &mut Session, sql: &str) -> Result<String, Failure> {
    let found = session.query_value(sql)?;
    found.ok_or_else(|| Failure::new(format!("no row: {sql}")))
}
