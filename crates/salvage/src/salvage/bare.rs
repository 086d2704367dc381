//! The rows of one relation file without a cluster around it: a person says what its columns are.

use pgclinic_cluster::{Charset, Cluster, ForkFiles};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::Progress;
use pgclinic_model::document::{SalvageReport, Target};

use super::error::SalvageError;
use super::fitting;
use super::folder::Folder;
use super::ordered_files::LineDestination;
use super::plan::{Planned, account_of, not_salvaged};
use super::{Destination, Encoding, FolderWork, SalvageOptions, open_account, unreadable};
use crate::file_names::FileNames;
use crate::schema::given::GivenTable;
use crate::shape::Table;

/// A relation file, and what a person knows of it.
pub struct BareTable {
    /// The main fork.
    pub files: ForkFiles,
    /// The main fork of its TOAST relation, where it is at hand.
    pub toast: Option<ForkFiles>,
    /// What its pages look like.
    pub method: Option<AccessMethod>,
    /// Its columns.
    pub given: GivenTable,
    /// For the account.
    pub target: Target,
}

/// Writes the rows of a relation file; `cluster` stands for the one that it came from. Columns that
/// do not fit the rows are an error, and nothing is written.
pub fn salvage_file(
    cluster: &Cluster,
    bare: &BareTable,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, SalvageError> {
    if let Some(method) = bare.method.filter(|method| *method != AccessMethod::Heap) {
        let path = bare.files.path(0);
        return Err(SalvageError::NoHeap { path, method });
    }
    let table = table_of(bare, options);
    let charset = match options.encoding {
        Encoding::Raw => Charset::Raw,
        Encoding::Utf8 => Charset::Utf8,
    };
    fitting::hold(cluster, &table, charset)?;
    let folder;
    let to = match &options.destination {
        Destination::Folder(path) => {
            folder = Folder::prepare(path, options.durability)?;
            LineDestination::Folder(&folder)
        }
        Destination::Stream(stream) => LineDestination::Stream(stream, &options.spill_folder),
        Destination::Server(_) => {
            let why = "one file has no schema to be made on a server: name a directory";
            return Err(SalvageError::Unsuitable(why.into()));
        }
    };
    let to = FolderWork {
        to,
        options,
        progress,
        finished: None,
    };
    let mut account = open_account(cluster, options, None);
    account.target = bare.target.clone();
    let why =
        "there is no pg_xact: rows that nobody read after their transaction ended are uncertain";
    account
        .not_salvaged
        .extend((cluster.transactions.is_absent()).then(|| {
            let mut told = not_salvaged("what became of transactions", why);
            told.inherent = true;
            told
        }));
    let parts = [[table.schema.as_str(), table.name.as_str()]];
    let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
    let planned = Planned {
        file: names.name(&[&table.schema, &table.name], 0),
        account: account_of(&table, cluster),
        table,
        is_described: true,
    };
    let style = &options.text.style;
    account.tables = to.write_tables(cluster, vec![planned], charset, style)?;
    account.interrupted = progress.is_interrupted();
    unreadable::tell(cluster, &mut account);
    account.close();
    Ok(account)
}

fn table_of(bare: &BareTable, options: &SalvageOptions) -> Table {
    let mut table = Table::of_files(bare.files.clone(), options.column_choice(), &bare.given);
    match &bare.toast {
        Some(toast) => table.toast = Some((Table::ANY_TOAST, toast.clone())),
        None => {
            let note =
                "no file of TOASTed values was given (--toast): values that stand there are lost";
            table.notes.push(note.into());
        }
    }
    table
}
