//! A copy of a cluster that a real server may have: started, read, changed, and removed again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::{Cluster, DatabaseContext, HeapScan};
use pgclinic_format::Oid;
use pgclinic_servers::{
    Installation, RunAs, Scratch, Server, StartOptions, Wanted, copy_cluster, find,
};
use pgclinic_source::DataDirectory;

use crate::exit::Failure;

/// The copy, in a directory of its own that is removed on drop.
pub(crate) struct ServerCopy {
    /// The data directory.
    pub(crate) pgdata: PathBuf,
    /// Of the cluster's major.
    pub(crate) installation: Installation,
    run_as: RunAs,
    superuser: String,
    _scratch: Scratch,
}

/// Lets in who reaches the private socket: the cluster's own file may ask for passwords.
const LETS_IN: &str = "local all all trust\n";
/// `BOOTSTRAP_SUPERUSERID`.
const BOOTSTRAP_SUPERUSER: Oid = 10;

impl ServerCopy {
    /// Copies the cluster into `base`, by default the cache.
    pub(crate) fn make(
        pgdata: &Path,
        base: Option<&Path>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let wanted = Wanted {
            major: Some(major_of(pgdata)?),
            ..Wanted::default()
        };
        let installation = find(&wanted, say)?;
        Self::of(installation, pgdata, base, say)
    }

    /// The same for this server.
    pub(crate) fn of(
        installation: Installation,
        pgdata: &Path,
        base: Option<&Path>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        let run_as = RunAs::new(None)?;
        let scratch = Scratch::new(&run_as, base)?;
        say("copying the cluster");
        let copied = copy_cluster(pgdata, scratch.path())?;
        settle(&copied.pgdata)?;
        for folder in copied.tablespaces.iter().chain([&copied.pgdata]) {
            own_tree(folder, &run_as)?;
        }
        Ok(ServerCopy {
            superuser: superuser_of(&copied.pgdata)
                .unwrap_or_else(|| StartOptions::default().superuser),
            pgdata: copied.pgdata,
            installation,
            run_as,
            _scratch: scratch,
        })
    }

    /// Starts its server.
    pub(crate) fn start(&self, options: &StartOptions) -> pgclinic_servers::Result<Server> {
        let hba = self.pgdata.join(HBA_FILE).display().to_string();
        let options = StartOptions {
            superuser: self.superuser.clone(),
            ..options.clone().with("hba_file", &hba)
        };
        Server::start(&self.installation, &self.run_as, &self.pgdata, &options)
    }
}

/// A file of the copy, so that a configuration elsewhere does not count.
const HBA_FILE: &str = "pg_hba.conf";

/// Lets the copy's private socket in without passwords, whatever the original asks for, and gives
/// it settings where the original has them elsewhere.
fn settle(pgdata: &Path) -> Result<(), Failure> {
    std::fs::write(pgdata.join(HBA_FILE), LETS_IN)?;
    let settings = pgdata.join("postgresql.conf");
    if !settings.exists() {
        std::fs::write(settings, "")?;
    }
    Ok(())
}

/// The role with which initdb made the cluster, where its row can be read.
fn superuser_of(pgdata: &Path) -> Option<String> {
    let source = DataDirectory::open(pgdata).ok()?;
    let cluster = Cluster::open(Arc::new(source)).ok()?;
    let home = cluster.homes.iter().find(|home| home.database == 0)?;
    let (catalog, forks) = (cluster.catalog(0), cluster.files(home).ok()?);
    let mut relations = catalog.relations.values();
    let roles = relations.find(|own| own.schema == "pg_catalog" && own.name == "pg_authid")?;
    let shared = DatabaseContext {
        cluster: &cluster,
        catalog: &catalog,
        forks: &forks,
    };
    let files = shared.main_fork(roles)?;
    let mut names = roles
        .columns
        .iter()
        .flatten()
        .map(|column| column.name.as_str());
    let (oid, name) = (
        names.clone().position(|own| own == "oid")?,
        names.position(|own| own == "rolname")?,
    );
    let mut found = None;
    HeapScan::new(&cluster, files, roles.layouts.as_deref()?).each_that_may_count(|row| {
        if row.u32(oid) == Some(BOOTSTRAP_SUPERUSER) {
            found = row.name(name);
        }
    });
    found
}

/// The major in `PG_VERSION`.
pub(crate) fn major_of(pgdata: &Path) -> Result<u16, Failure> {
    let path = pgdata.join("PG_VERSION");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let major = text.trim().parse();
    major.map_err(|_| {
        Failure::new(format!(
            "{} names no major: {:?}",
            path.display(),
            text.trim()
        ))
    })
}

/// A server takes only what is its user's own.
fn own_tree(folder: &Path, run_as: &RunAs) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Failure::new(format!("cannot list {path}: {error}"))
    };
    let own = |path: &Path| run_as.own(path).map_err(Failure::new);
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        own(&folder)?;
        for entry in std::fs::read_dir(&folder).map_err(failed(&folder))? {
            let entry = entry.map_err(failed(&folder))?;
            let kind = entry.file_type().map_err(failed(&folder))?;
            match kind {
                kind if kind.is_dir() => open.push(entry.path()),
                // A link leads to a folder that is owned by itself.
                kind if kind.is_symlink() => {}
                _ => own(&entry.path())?,
            }
        }
    }
    Ok(())
}
