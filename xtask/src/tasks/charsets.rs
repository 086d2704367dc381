//! Tables of characters for `crates/cluster/src/charset/euc.rs`, as a real server converts them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::args::Args;
use crate::postgres::{self, Tools};
use crate::repository;
use crate::shell::{self, at};
use crate::task::{Outcome, Task};

pub(crate) const TASK: Task = Task {
    name: "charsets",
    summary: "writes the tables of EUC_JP, EUC_JIS_2004, EUC_TW, EUC_CN and EUC_KR anew, as an installed server converts them",
    in_ci: None,
    run,
};

/// Bytes in front, in hexadecimal, and how many follow from A1 to FE.
type Set = (&'static str, u32);

const JAPANESE: &[Set] = &[("", 2), ("8e", 1), ("8f", 2)];
const TABLES: &[(&str, &[Set])] = &[
    ("EUC_JP", JAPANESE),
    ("EUC_JIS_2004", JAPANESE),
    ("EUC_TW", &[("", 2), ("8ea1", 2), ("8ea2", 2)]),
    ("EUC_CN", &[("", 2)]),
    ("EUC_KR", &[("", 2)]),
];

const FUNCTION: &str = "CREATE FUNCTION pg_temp.character(code bytea, encoding name) RETURNS text LANGUAGE plpgsql AS \
     'BEGIN RETURN convert_from(code, encoding); EXCEPTION WHEN OTHERS THEN RETURN ''''; END'";
/// Cells from here on are pairs of characters.
const PAIRS: u32 = 0x11_0000;

fn run(words: &[String]) -> Outcome {
    Args::new(words).finish()?;
    let tools = Tools::find().ok_or("there is no installed PostgreSQL")?;
    let scratch = postgres::scratch("charsets")?;
    postgres::give_to_server_user(scratch.path())?;
    let cluster = scratch.path().join("data");
    tools.new_cluster(&cluster)?;
    let server = tools.start(&cluster, &[])?;
    let folder = repository::root().join("crates/cluster/src/charset");
    for (encoding, sets) in TABLES {
        let path = folder.join(format!("{}.bin", encoding.to_lowercase()));
        let bytes = table(&server, encoding, sets)?;
        std::fs::write(&path, &bytes).map_err(at(&path))?;
        println!("{}: {} bytes", shown(&path), bytes.len());
    }
    server.stop()
}

fn shown(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn table(server: &postgres::Server<'_>, encoding: &str, sets: &[Set]) -> Result<Vec<u8>, String> {
    let (mut cells, mut pairs) = (Vec::new(), BTreeMap::new());
    for (prefix, len) in sets {
        let text = characters(server, encoding, prefix, *len)?;
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("at "))
            .collect();
        if lines.len() != 94usize.pow(*len) {
            return Err(format!("{encoding} {prefix}: {} codes", lines.len()));
        }
        for line in lines {
            let numbers = line.split(' ').skip(2).filter_map(|word| word.parse().ok());
            let numbers: Vec<u32> = numbers.collect();
            cells.push(match numbers.as_slice() {
                [] => 0,
                [one] => *one,
                [one, two] => {
                    let next = PAIRS + u32::try_from(pairs.len()).unwrap_or(0);
                    *pairs.entry((*one, *two)).or_insert(next)
                }
                _ => return Err(format!("{encoding} {prefix}: {line}")),
            });
        }
    }
    let mut by_number: Vec<((u32, u32), u32)> = pairs.into_iter().collect();
    by_number.sort_by_key(|(_, number)| *number);
    cells.extend(by_number.iter().flat_map(|((one, two), _)| [*one, *two]));
    let bytes = |cell: u32| cell.to_le_bytes().into_iter().take(3);
    Ok(cells.into_iter().flat_map(bytes).collect())
}

/// A line a code, in order: `at CODE`, and the numbers of its characters.
fn characters(
    server: &postgres::Server<'_>,
    encoding: &str,
    prefix: &str,
    len: u32,
) -> Result<String, String> {
    let (last, code) = match len {
        1 => ("generate_series(161, 161) b", "set_byte('\\x00', 0, a)"),
        _ => (
            "generate_series(161, 254) b",
            "set_byte(set_byte('\\x0000', 0, a), 1, b)",
        ),
    };
    let sql = format!(
        "SELECT 'at ' || encode(code, 'hex') || coalesce((SELECT string_agg(' ' || ascii(one), '' ORDER BY n) \
         FROM regexp_split_to_table(nullif(pg_temp.character(code, '{encoding}'), ''), '') WITH ORDINALITY r(one, n)), '') \
         FROM (SELECT a, b, '\\x{prefix}'::bytea || {code} AS code FROM generate_series(161, 254) a, {last}) c ORDER BY a, b"
    );
    let mut psql = server.client("psql");
    psql.args([
        "-X", "-q", "-At", "-d", "postgres", "-c", FUNCTION, "-c", &sql,
    ]);
    shell::capture(&mut psql)
}
