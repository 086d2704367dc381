//! The short-lived tables: a report's pivot table, and the five tables of a shop's login, as the
//! article describes them.

use std::fmt::Write;

use crate::load::script::statements;

/// One cycle: statements that create, one that fills and one that drops; the latter two may be
/// empty.
pub(super) struct Workload {
    pub(super) create: Vec<String>,
    pub(super) fill: String,
    pub(super) drop: String,
}

/// `shop`, else the reporting table.
pub(super) fn named(name: &str) -> Workload {
    let tables = match name {
        "shop" => shop(),
        _ => vec![reporting()],
    };
    let mut create = String::new();
    let mut workload = Workload {
        create: Vec::new(),
        fill: "BEGIN; ".to_owned(),
        drop: String::new(),
    };
    for table in &tables {
        table.write(&mut create, &mut workload);
    }
    workload.create.push(create);
    workload.fill.push_str("COMMIT");
    workload
}

/// Relations that a cycle creates: tables, their TOAST tables, indexes and sequences. Of a person's
/// own cycle it is an estimate, the number of its CREATE statements.
pub(super) fn relations(name: &str, own: Option<&str>) -> f64 {
    match (name, own) {
        ("shop", _) => 32.0,
        (_, None) => 9.0,
        (_, Some(sql)) => {
            let is_create = |sql: &String| {
                let word = sql.split_whitespace().next();
                word.is_some_and(|word| word.eq_ignore_ascii_case("create"))
            };
            let creates = statements(sql).into_iter().filter(is_create).count();
            creates.max(1) as f64
        }
    }
}

/// A person's own cycle, a statement at a time.
pub(super) fn own(sql: &str) -> Workload {
    Workload {
        create: statements(sql),
        fill: String::new(),
        drop: String::new(),
    }
}

/// A table with its columns as SQL, a row, and the columns that have an index of their own.
struct Table {
    name: &'static str,
    columns: String,
    row: String,
    indexes: Vec<String>,
}

impl Table {
    fn write(&self, create: &mut String, workload: &mut Workload) {
        let (name, columns, row) = (self.name, &self.columns, &self.row);
        let put = |text: &mut String, sql: std::fmt::Arguments<'_>| {
            text.write_fmt(sql).expect("a string takes everything");
        };
        put(
            create,
            format_args!("CREATE TEMP TABLE {name} ({columns}) ON COMMIT DELETE ROWS; "),
        );
        for column in &self.indexes {
            put(
                create,
                format_args!("CREATE INDEX {name}_{column} ON {name} ({column}); "),
            );
        }
        put(
            &mut workload.fill,
            format_args!("INSERT INTO {name} {row}; "),
        );
        put(&mut workload.drop, format_args!("DROP TABLE {name}; "));
    }
}

/// 31 columns, 27 defaults, a sequence, a primary key, four indexes.
fn reporting() -> Table {
    let mut columns = "id serial PRIMARY KEY, inserted_at timestamp DEFAULT current_timestamp, client_id integer, \
         name text NOT NULL, address text NOT NULL, loyalty_program boolean DEFAULT false, loyalty_program_start timestamp"
        .to_owned();
    for month in 1..=12 {
        let orders = format!(
            ", orders_2023{month:02}_count_of_orders integer DEFAULT 0, orders_2023{month:02}_total_price numeric DEFAULT 0"
        );
        columns.push_str(&orders);
    }
    let indexes = [
        "client_id",
        "name",
        "loyalty_program",
        "loyalty_program_start",
    ];
    Table {
        name: "pivot_temp_table",
        columns,
        row: "(client_id, name, address) VALUES (1, 'a client', 'a street')".to_owned(),
        indexes: indexes.map(str::to_owned).to_vec(),
    }
}

/// Event log, last visits, last purchases, what was nearly bought, the cart.
fn shop() -> Vec<Table> {
    let wide = |name| Table {
        name,
        columns: format!(
            "bought_at timestamp, item integer, {}, PRIMARY KEY (bought_at, item)",
            texts(33)
        ),
        row: "(bought_at, item) VALUES (now(), 1)".to_owned(),
        indexes: (1..=4).map(|column| format!("c{column}")).collect(),
    };
    vec![
        Table {
            name: "session_events",
            columns: format!("id serial PRIMARY KEY, body jsonb, {}", texts(23)),
            row: "(c1) VALUES ('event')".to_owned(),
            indexes: (1..=3).map(|column| format!("c{column}")).collect(),
        },
        Table {
            name: "last_visited",
            columns: format!(
                "visited_at timestamp PRIMARY KEY DEFAULT clock_timestamp(), {}",
                texts(9)
            ),
            row: "(c1) VALUES ('article')".to_owned(),
            indexes: Vec::new(),
        },
        wide("last_purchases"),
        wide("selected_but_not_purchased"),
        Table {
            name: "cart_items",
            columns: format!(
                "id uuid PRIMARY KEY DEFAULT gen_random_uuid(), {}",
                texts(14)
            ),
            row: "(c1) VALUES ('article')".to_owned(),
            indexes: Vec::new(),
        },
    ]
}

fn texts(count: u32) -> String {
    let columns: Vec<String> = (1..=count)
        .map(|column| format!("c{column} text"))
        .collect();
    columns.join(", ")
}
