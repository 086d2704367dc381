//! `pgclinic salvage FILE`: one relation file, whose columns a person gives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgclinic_cluster::{Cluster, ForkFiles, OpenOptions};
use pgclinic_format::{Fork, Layout};
use pgclinic_model::Progress;
use pgclinic_model::document::SalvageReport;
use pgclinic_salvage::schema::given::{GivenTable, columns_in, table_in};
use pgclinic_salvage::schema::guess::statement;
use pgclinic_salvage::{BareTable, SalvageOptions, guess_columns, salvage_file};
use pgclinic_source::{DataDirectory, Source};

use super::Arguments;
use super::stream::{self, Parts};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::target::{self, BareFile, OpenTarget, Opening};

/// The major whose output is followed, where nothing tells: the newest.
pub(super) const MAJOR: u16 = 18;

/// Writes the rows of the file.
pub(super) fn run(
    arguments: &Arguments,
    options: SalvageOptions,
    parts: Option<Parts>,
    progress: &dyn Progress,
    world: &mut Env<'_>,
) -> Result<SalvageReport, Failure> {
    let file = open(&arguments.target, arguments, world)?;
    let layout = Layout::of_major(MAJOR).expect("a row of the newest major");
    let target = file.target(&options.spec);
    let files = main_fork(&file, &arguments.target)?;
    let mut bare = BareTable {
        files,
        toast: None,
        method: file.method,
        given: given(arguments)?,
        target,
    };
    let mut source = Arc::clone(&file.source);
    if let Some(toast) = &arguments.toast {
        let long_values = open(toast, arguments, world)?;
        bare.toast = Some(main_fork(&long_values, toast)?);
        source = beside(&arguments.target, toast, &mut bare)?;
    }
    let opening = OpenOptions::of(source).without_cluster(layout, file.build, Vec::new());
    let cluster = Cluster::open(opening)?;
    stream::taken(parts, world, move || {
        Ok(salvage_file(&cluster, &bare, &options, progress)?)
    })
}

/// Prints what the columns of the file may be.
pub(super) fn guess(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    if arguments.target.is_dir() {
        return super::folder::guess(arguments, world);
    }
    let file = open(&arguments.target, arguments, world)?;
    let layout = Layout::of_major(MAJOR).expect("a row of the newest major");
    let files = main_fork(&file, &arguments.target)?;
    let source = Arc::clone(&file.source);
    let options = OpenOptions::of(source).without_cluster(layout, file.build, Vec::new());
    let cluster = Cluster::open(options)?;
    let columns = guess_columns(&cluster, &files).ok_or_else(|| {
        let why = "no layout fits its rows: it holds none, or they are of types that are not tried";
        Failure::new(format!("{}: {why}", arguments.target.display()))
    })?;
    let name = arguments.target.file_name().unwrap_or_default();
    let name = name.to_string_lossy().replace('"', "");
    let text = statement(&format!("\"{name}\""), &columns);
    let shown = write!(world.stdout, "{text}");
    shown.map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))?;
    Ok(Exit::Healthy)
}

fn open(path: &Path, arguments: &Arguments, world: &Env<'_>) -> Result<BareFile, Failure> {
    match target::open(path, Opening::new(world, Some(&arguments.load)))? {
        OpenTarget::File(file) => Ok(file),
        OpenTarget::TruncatedArchive(remains) => Err(remains.failure()),
        OpenTarget::Cluster(_) => Err(Failure::new(format!(
            "{} is a data directory, not a file",
            path.display()
        ))),
    }
}

fn main_fork(file: &BareFile, path: &Path) -> Result<ForkFiles, Failure> {
    let main = file.forks.iter().find(|files| files.fork == Fork::Main);
    let why = "it holds no rows: name the file without _fsm, _vm or _init";
    main.cloned()
        .ok_or_else(|| Failure::new(format!("{}: {why}", path.display())))
}

/// The columns that a user gives.
fn given(arguments: &Arguments) -> Result<GivenTable, Failure> {
    if let Some(columns) = &arguments.columns {
        let failure = |why: String| Failure::new(format!("--columns: {why}"));
        let mut table = columns_in(columns).map_err(failure)?;
        let name = arguments.target.file_name().unwrap_or_default();
        table.name = name.to_string_lossy().into_owned();
        return Ok(table);
    }
    let Some(path) = &arguments.schema else {
        let why = "one file does not tell its columns: give them with --columns 'id int4, body text', or with --schema, a file with \
                   their CREATE TABLE; --guess prints what they may be";
        return Err(Failure::new(format!(
            "{}: {why}",
            arguments.target.display()
        )));
    };
    let text = super::read_text(path)?;
    let wanted = arguments.selection.relation.first();
    table_in(&text, wanted.map(String::as_str))
        .map_err(|why| Failure::new(format!("{}: {why} (--relation)", path.display())))
}

/// A source that has both files, under the nearest directory that holds them.
fn beside(file: &Path, toast: &Path, bare: &mut BareTable) -> Result<Arc<dyn Source>, Failure> {
    let (file, toast) = (folder_of(file)?, folder_of(toast)?);
    let is_above = |folder: &&Path| toast.starts_with(folder);
    let root = file.ancestors().find(is_above).unwrap_or(Path::new("/"));
    let within = |folder: &Path| {
        let rest = folder.strip_prefix(root).unwrap_or(folder);
        rest.to_string_lossy().into_owned()
    };
    bare.files.home.folder = within(&file);
    if let Some(files) = &mut bare.toast {
        files.home.folder = within(&toast);
    }
    Ok(Arc::new(DataDirectory::open(root)?))
}

fn folder_of(file: &Path) -> Result<PathBuf, Failure> {
    let real = file.canonicalize();
    let real =
        real.map_err(|error| Failure::new(format!("cannot open {}: {error}", file.display())))?;
    Ok(real.parent().unwrap_or(Path::new("/")).to_owned())
}
