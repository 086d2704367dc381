//! Catalogs that are emptied, zeroed or removed: what indexes and other catalogs still have of them
//! makes a schema into which every row is loaded, and what is left out is named.

use std::fs::File;
use std::path::Path;

use pgclinic_testkit::server;

use crate::common::again::{Again, Shop, again, shop, zero};
use crate::common::{Lines, session};

const SHOP: &[&str] = &[
    "CREATE EXTENSION hstore",
    "CREATE EXTENSION citext",
    "CREATE COLLATION plain (locale = 'C')",
    "CREATE TABLE items (id serial PRIMARY KEY, sku citext UNIQUE, name text COLLATE plain, price int DEFAULT 7, \
     data hstore, twice int GENERATED ALWAYS AS (price * 2) STORED, CONSTRAINT paid CHECK (price > 0))",
    "INSERT INTO items (sku, name, price, data) SELECT 's' || n, 'n' || n, n, hstore('a', n::text) FROM generate_series(1, 200) n",
    "CREATE TABLE orders (day date, item int REFERENCES items, PRIMARY KEY (day)) PARTITION BY RANGE (day)",
    "CREATE TABLE orders_2020 PARTITION OF orders FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')",
    "CREATE TABLE orders_rest PARTITION OF orders DEFAULT",
    "INSERT INTO orders SELECT date '2020-06-01' + n * 3, n FROM generate_series(1, 150) n",
    "CREATE MATERIALIZED VIEW counts AS SELECT item, count(*) FROM orders GROUP BY item",
    "CREATE SEQUENCE down INCREMENT BY -1",
    "SELECT nextval('down') FROM generate_series(1, 5)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TRIGGER noted BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION note()",
    "CREATE POLICY mine ON items USING (price > 3)",
    "CREATE RULE keep AS ON DELETE TO items DO INSTEAD NOTHING",
    "CREATE PUBLICATION news FOR TABLE items",
    "COMMENT ON TABLE items IS 'things'",
    "CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int)",
];
const FILES: &str = "SELECT relname, pg_relation_filepath(oid) FROM pg_class WHERE relnamespace = 11 AND relkind IN ('r', 'i')";
/// Columns of which no expression is left.
const PLAIN: &str = "ALTER TABLE items DROP twice";

/// The shop after these catalogs were hurt, loaded again; nothing without a psql.
fn hurt(catalogs: &[&str], hurt: fn(&Path)) -> Option<(Shop, Again)> {
    // A fetched server comes without client programs; an installed one has them.
    let tool = server(15).tool("psql")?;
    let shop = shop(SHOP, FILES);
    for catalog in catalogs {
        let mut files = shop.answer.iter();
        let file = files.find(|row| row[0] == *catalog).expect("a catalog");
        hurt(&shop.copy.pgdata.join(&file[1]));
    }
    let again = again(&shop, &tool);
    Some((shop, again))
}

fn empty(path: &Path) {
    File::create(path).expect("emptied");
}

fn remove(path: &Path) {
    std::fs::remove_file(path).expect("removed");
}

fn zero_first(path: &Path) {
    let (folder, name) = (path.parent(), path.file_name());
    let name = name.and_then(|name| name.to_str()).expect("a name");
    zero(folder.expect("a directory"), name, 0);
}

#[track_caller]
fn all_rows(shop: &Shop, again: &Again) {
    let gaps = &again.report.not_salvaged;
    // A publication warns of the server's wal_level.
    let is_refused = again.said.contains("ERROR");
    assert!(!is_refused, "{}\n{gaps:#?}", again.said);
    for (table, rows) in &shop.truth {
        let found = again.found.get(table);
        assert!(
            found == Some(rows),
            "{table}: {:?}\n{gaps:#?}",
            found.map(Lines::len)
        );
    }
}

#[track_caller]
fn names(again: &Again, wanted: &[&str]) {
    let gaps = again.report.not_salvaged.iter();
    let gaps: Vec<String> = gaps
        .map(|gap| format!("{}: {}", gap.what, gap.why))
        .collect();
    let gaps = gaps.join("\n");
    for name in wanted {
        assert!(gaps.contains(name), "{name}\n{gaps}");
    }
}

/// Who depends on whom, who inherits from whom, and what belongs to which extension.
#[test]
fn links_and_extensions_come_from_the_indexes_of_catalogs_that_are_removed() {
    let catalogs = ["pg_depend", "pg_inherits", "pg_extension"];
    let Some((shop, again)) = hurt(&catalogs, remove) else {
        return;
    };
    all_rows(&shop, &again);
    let parts = "SELECT count(*) || ' ' || (SELECT count(*) FROM pg_inherits) FROM orders";
    let found = session(&again.server, "again").query_value(parts);
    // Two partitions, and their indexes.
    assert_eq!(found.expect("rows").as_deref(), Some("150 4"));
    names(
        &again,
        &["pg_extension: the rows of hstore, citext are put together"],
    );
}

/// Without the indexes too, functions say by their libraries what belongs to which extension.
#[test]
fn members_of_extensions_are_known_by_their_numbers_and_libraries() {
    let files = [
        "pg_depend",
        "pg_depend_depender_index",
        "pg_depend_reference_index",
    ];
    let Some((shop, again)) = hurt(&files, remove) else {
        return;
    };
    all_rows(&shop, &again);
    names(
        &again,
        &["what belongs to hstore, citext is taken from the numbers of their functions"],
    );
}

/// Expressions, collations, steps of sequences and queries stood in the rows alone.
#[test]
fn what_is_lost_for_good_is_named_and_every_row_loaded() {
    let catalogs = [
        "pg_attrdef",
        "pg_collation",
        "pg_sequence",
        "pg_constraint",
        "pg_policy",
        "pg_trigger",
        "pg_rewrite",
        "pg_publication",
        "pg_description",
    ];
    let Some((mut shop, mut again)) = hurt(&catalogs, empty) else {
        return;
    };
    let mut own = session(&again.server, "again");
    let sums = own.query_value(
        "SELECT sum(twice) || ' ' || nextval('down') || ' ' || nextval('items_id_seq') FROM items",
    );
    assert_eq!(sums.expect("sums").as_deref(), Some("40200 -4 201"));
    // COPY gives a generated column of nobody.
    own.execute(PLAIN).expect("without its plain column");
    let rows = crate::common::copied(&again.server, "again", "");
    again.found.extend(
        rows.into_iter()
            .map(|(file, rows)| (file.replace("again/", ""), rows)),
    );
    shop.truth.retain(|table, _| table != "public.counts");
    all_rows(&shop, &again);
    assert_eq!(again.found.get("public.counts").map(Lines::len), Some(150));
    names(
        &again,
        &[
            "the generation expression of column twice is lost: it is a plain column",
            "DEFAULT public.items.price of database shop: its row in pg_attrdef is lost",
            "COLLATION public.plain of database shop: its row in pg_collation is lost",
            "the default one is in its place in public.items.name",
            "pg_sequence: the rows of public.items_id_seq, public.down are lost",
            "CONSTRAINT paid ON public.items of database shop",
            "CONSTRAINT orders_item_fkey ON public.orders of database shop",
            "POLICY mine ON public.items of database shop",
            "TRIGGER noted ON public.items of database shop",
            "RULE keep ON public.items of database shop",
            "PUBLICATION news of database shop",
            "COMMENT ON RELATION public.items of database shop",
            "it is a table with the rows that it had",
        ],
    );
}

/// Without key or bounds the partitions are children, and a query still sees their rows.
#[test]
fn a_partitioned_table_without_its_key_has_its_partitions_as_children() {
    let Some((shop, again)) = hurt(&["pg_partitioned_table"], zero_first) else {
        return;
    };
    all_rows(&shop, &again);
    names(&again, &["PARTITION BY is lost"]);
    let rows = session(&again.server, "again").query_value("SELECT count(*) FROM orders");
    assert_eq!(rows.expect("rows").as_deref(), Some("150"));
}
