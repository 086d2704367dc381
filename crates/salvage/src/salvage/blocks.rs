//! The rows of some blocks of one table, for somebody who takes them as they come.

use pgclinic_cluster::{Catalog, Cluster, Relation};
use pgclinic_format::BlockNo;
use pgclinic_model::Progress;
use pgclinic_model::document::TableAccount;

use super::database_job::DatabaseJob;
use super::plan::{Planned, account_of};
use super::row_sink::{InTurn, RowSink, TakeRows};
use super::{SalvageOptions, charset_of};
use crate::shape::{MainForks, Table};

/// Gives the printed rows of these blocks, which are in order, and says what became of them; why
/// that cannot be done, otherwise.
pub(crate) fn blocks_of_table(
    cluster: &Cluster,
    catalog: &Catalog,
    relation: &Relation,
    blocks: &[BlockNo],
    options: &SalvageOptions,
    progress: &dyn Progress,
    take: TakeRows<'_>,
) -> Result<TableAccount, String> {
    let files = MainForks::of_database(cluster, catalog.database);
    let table = Table::of(&files, catalog, relation, options.column_choice())?;
    let planned = Planned {
        account: account_of(&table, cluster),
        file: String::new(),
        table,
        is_described: false,
    };
    let charset = charset_of(cluster, catalog.database, options);
    let style = options
        .text
        .of_columns(cluster, catalog, planned.table.columns.iter());
    let taker = InTurn::new(take);
    let crew = DatabaseJob::new(cluster, options, progress, vec![planned], charset, |_| {
        RowSink::Rows(&taker)
    });
    let crew = crew.styled(style).only(blocks);
    let accounts = crew.run().map_err(|error| error.to_string())?;
    Ok(accounts.into_iter().next().ok_or("nothing was read")?)
}
