//! LZ4 by default: values that pglz compressed, on a server that compresses new ones by pglz too
//! though it could use LZ4.
//!
//! From the article on TOAST and compression, which found pglz to fall behind once more sessions
//! read than there are processors.

use pgclinic_cluster::{Relation, quoted};
use pgclinic_model::document::{Figure, MeasuredColumn};
use pgclinic_model::shell_word;

use super::{Piece, Said, SeenDatabase, some_of};

/// The first major that has LZ4 for values.
const MAJOR_MIN: u16 = 14;
/// Fewer bytes of a column are decompressed in no time.
const BYTES_MIN: u64 = 1 << 20;
const SETTING: &str = "default_toast_compression";

/// Columns whose values would be compressed by LZ4.
pub(crate) struct DefaultCompression;

impl Piece for DefaultCompression {
    fn name(&self) -> &'static str {
        "lz4-by-default"
    }

    fn of_database(&self, seen: &SeenDatabase<'_>) -> Option<Said> {
        let cluster = seen.view.cluster;
        (cluster.layout.major >= MAJOR_MIN && seen.server.lz4 != Some(false)).then_some(())?;
        (seen.setting(SETTING, "pglz")? == "pglz").then_some(())?;
        let tables = seen.tables().into_iter();
        let mut columns: Vec<(u64, String, String)> = tables
            .flat_map(|(own, relation)| {
                own.columns
                    .iter()
                    .map(move |column| (own, relation, column))
            })
            .filter(|(_, relation, column)| follows_the_setting(relation, column))
            .map(|(own, relation, column)| {
                let name = format!("{}.{}", own.name(), quoted(&column.name));
                (pglz_bytes(column), name, relation.qualified_name())
            })
            .filter(|(bytes, ..)| *bytes >= BYTES_MIN)
            .collect();
        columns.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let (_, _, largest) = columns.first()?;
        let database = quoted(seen.name());
        let settled_by = format!(
            "pgclinic measure PGDATA --relation {} --try-compression; pgclinic lab run toast-compression --into DIR",
            shell_word(largest)
        );
        let of = columns
            .iter()
            .map(|(bytes, name, _)| format!("{name}: {bytes} bytes compressed by pglz"))
            .collect();
        let built = match seen.server.lz4 {
            Some(true) => "",
            _ => ", where the server was compiled with it",
        };
        Some(Said {
            message: format!(
                "values are compressed by pglz: LZ4 compresses and decompresses several times faster{built}. Stored values keep their \
                 method until they are written again from their text (`recast` of each column)"
            ),
            of: some_of(of),
            commands: vec![format!("ALTER DATABASE {database} SET {SETTING} = 'lz4';")],
            settled_by,
        })
    }
}

/// No `COMPRESSION` of its own.
fn follows_the_setting(relation: &Relation, measured: &MeasuredColumn) -> bool {
    let mut columns = relation.columns.iter().flatten();
    let own = columns.find(|column| column.attnum == measured.number);
    own.is_some_and(|column| column.compression == 0)
}

fn pglz_bytes(own: &MeasuredColumn) -> u64 {
    let section = own.sections.get("toast");
    let count = |name: &str| match section.and_then(|section| section.get(name)) {
        Some(Some(Figure::Count(bytes))) => *bytes,
        _ => 0,
    };
    count("pglz_bytes") + count("external_pglz_bytes")
}
