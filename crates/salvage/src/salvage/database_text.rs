//! How the text of a database is written.

use std::sync::Arc;

use pgclinic_cluster::{Catalog, Charset, Cluster};
use pgclinic_format::Oid;
use pgclinic_format::datum::Style;
use pgclinic_model::document::NotChecked;

use super::{Encoding, SalvageOptions, encoding_of, not_salvaged, plan};

/// What the text of a database is turned into.
pub(super) fn charset_of(cluster: &Cluster, database: Oid, options: &SalvageOptions) -> Charset {
    match options.encoding {
        Encoding::Raw => Charset::Raw,
        Encoding::Utf8 => Charset::to_utf8(encoding_of(cluster, database)),
    }
}

/// What a person should know of a database's encoding; nothing is lost.
pub(super) fn kept_encoding(
    cluster: &Cluster,
    database: Oid,
    options: &SalvageOptions,
) -> Option<NotChecked> {
    let wanted = options.encoding == Encoding::Utf8;
    let why = Charset::kept(encoding_of(cluster, database)).filter(|_| wanted)?;
    let name = cluster.databases.get(&database)?.name.clone();
    let name = name.unwrap_or_else(|| database.to_string());
    Some(NotChecked {
        inherent: true,
        ..not_salvaged(&format!("text of database {name} as UTF-8"), why)
    })
}

/// How the values of these tables are printed.
pub(super) fn style_of(
    cluster: &Cluster,
    catalog: &Catalog,
    options: &SalvageOptions,
    planned: &[plan::Planned],
) -> Arc<Style> {
    let columns = planned.iter().flat_map(|planned| &planned.table.columns);
    options.text.of_columns(cluster, catalog, columns)
}
