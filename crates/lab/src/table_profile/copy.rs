//! SQL that makes a table of a shape: as many columns, sizes, nulls, compressibility and order
//! alike, values made up.

use super::{ColumnShape, Quartiles, TableShape};

/// Characters of one random piece: 32 bytes as base 64.
const PIECE: u64 = 44;

/// Makes random values the same again.
pub(crate) const SEED: &str = "SELECT setseed(0.5)";

/// Neighbours rise at least this often in a column that is filled in order.
const IN_ORDER: f64 = 0.9;

/// The columns of a copy, as parts of statements.
pub(crate) struct Parts {
    /// Name and type of each.
    pub(crate) declared: Vec<String>,
    values: Vec<String>,
    drawn: String,
}

impl Parts {
    pub(crate) fn of(shape: &TableShape) -> Self {
        let columns = shape.columns.iter();
        let drawn =
            (0..shape.columns.len()).map(|at| format!(", random() AS n{at}, random() AS u{at}"));
        Self {
            declared: columns
                .clone()
                .map(|column| format!("{} {}", quoted(&column.name), kind(column).sql))
                .collect(),
            drawn: drawn.collect(),
            values: columns
                .enumerate()
                .map(|(at, column)| value(column, at))
                .collect(),
        }
    }

    /// A query for the rows with these numbers; `first` are columns before the others, out of the
    /// row's number `i`.
    pub(crate) fn rows(&self, first: &[String], [from, to]: [u64; 2]) -> String {
        let all: Vec<&str> = first
            .iter()
            .chain(&self.values)
            .map(String::as_str)
            .collect();
        format!(
            "SELECT {} FROM (SELECT i{} FROM generate_series({from}, {to}) AS i) AS drawn",
            all.join(", "),
            self.drawn
        )
    }
}

/// The statements, in order. `table` is a name that is free; at most `rows_max` rows. Runs on 13
/// and later, needs no extension; `setseed` makes it the same again.
pub fn statements(shape: &TableShape, table: &str, rows_max: u64) -> Vec<String> {
    let rows = shape.rows.min(rows_max).max(1);
    let (table, parts) = (quoted(table), Parts::of(shape));
    vec![
        format!("CREATE TABLE {table} ({})", parts.declared.join(", ")),
        SEED.to_owned(),
        format!("INSERT INTO {table} {}", parts.rows(&[], [1, rows])),
        format!("VACUUM (ANALYZE) {table}"),
    ]
}

/// An identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

/// How a column is declared and filled.
struct ColumnFill {
    sql: &'static str,
    /// Values in order and at random; `{}` is the text of a long one.
    ordered: &'static str,
    random: &'static str,
}

const fn kind_of(sql: &'static str, ordered: &'static str, random: &'static str) -> ColumnFill {
    ColumnFill {
        sql,
        ordered,
        random,
    }
}

fn kind(column: &ColumnShape) -> ColumnFill {
    match column.type_name.as_str() {
        "int2" => kind_of(
            "smallint",
            "(i % 32000)::smallint",
            "(random() * 32000)::smallint",
        ),
        "int4" => kind_of(
            "integer",
            "(i % 2000000000)::integer",
            "(random() * 2000000000)::integer",
        ),
        "int8" | "oid" | "xid8" => kind_of("bigint", "i::bigint", "(random() * 1e15)::bigint"),
        "float4" => kind_of("real", "i::real", "random()::real"),
        "float8" => kind_of("double precision", "i::double precision", "random()"),
        "bool" => kind_of("boolean", "random() < 0.5", "random() < 0.5"),
        "date" => kind_of(
            "date",
            "date '2020-01-01' + (i / 1000)::integer",
            "date '2020-01-01' + (random() * 2000)::integer",
        ),
        "timestamp" | "timestamptz" => kind_of(
            "timestamptz",
            "timestamptz '2020-01-01 00:00:00+00' + i * interval '1 second'",
            "timestamptz '2020-01-01 00:00:00+00' + random() * interval '2000 days'",
        ),
        "uuid" => kind_of(
            "uuid",
            "lpad(to_hex(i), 32, '0')::uuid",
            "md5(random()::text || i)::uuid",
        ),
        "bytea" => kind_of("bytea", "convert_to({}, 'UTF8')", "convert_to({}, 'UTF8')"),
        // A string's header inside the value takes a few bytes more.
        "jsonb" => kind_of("jsonb", "to_jsonb({})", "to_jsonb({})"),
        "json" => kind_of("json", "to_json({})", "to_json({})"),
        _ => kind_of("text", "{}", "{}"),
    }
}

fn value(column: &ColumnShape, at: usize) -> String {
    let kind = kind(column);
    let in_order = column.rises.is_some_and(|rises| rises >= IN_ORDER);
    let form = if in_order { kind.ordered } else { kind.random };
    let value = form.replace("{}", &text(column, at));
    if column.nulls > 0.0 {
        format!("CASE WHEN n{at} >= {:.4} THEN {value} END", column.nulls)
    } else {
        value
    }
}

/// A text as long as the column's values are: blanks, then noise, which stays when it is
/// compressed. The blanks come first, as pglz gives up on a value whose first kilobyte it cannot
/// compress.
fn text(column: &ColumnShape, at: usize) -> String {
    let length = length(column.bytes, at);
    let kept = column.kept.clamp(0.0, 1.0);
    let noise = format!("ceil({length} * {kept:.4})::integer");
    format!(
        "(SELECT lpad(left(string_agg(encode(sha256((random()::text || i || g)::bytea), 'base64'), ''), {noise}), {length}) \
         FROM generate_series(1, {length} / {PIECE} + 1) AS g)"
    )
}

/// A length between the quartiles, by the row's draw.
fn length(bytes: Quartiles, at: usize) -> String {
    let [first, .., last] = bytes;
    if first == last {
        return first.to_string();
    }
    let list = bytes.map(|bytes| bytes.to_string()).join(", ");
    let quarter = format!("least(floor(u{at} * 4)::integer, 3)");
    let end = |plus: u8| format!("(ARRAY[{list}])[{plus} + {quarter}]");
    format!(
        "({0} + (u{at} * 4 - {quarter}) * ({1} - {0}))::integer",
        end(1),
        end(2)
    )
}
