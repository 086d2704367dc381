//! What `lab new` writes: an experiment that runs as it is, with every key explained.

/// The text of a new file.
pub const TEMPLATE: &str = r#"# An experiment of your own. Run it with
#     pgclinic lab plan THIS-FILE      what it costs
#     pgclinic lab run THIS-FILE       results, and a report that ends in a decision
# Every key is explained; what is commented out shows the default or an example.

name = "covering-index"         # small letters, digits and -; none of `pgclinic lab list`
question = "Does a covering index pay for its size?"
# explain = "What a reader should know."
blocks = 5                      # how often each combination is run, in random order
# watch = ["wait", "io"]        # samplers beside those of every run; `pgclinic lab list --samplers` says what there is

# `--learn-from PGDATA --relation schema.table` makes a table learned first, with columns, sizes and compressibility like those
# of a table of yours and values made up; [setup] can go on from it, and a load can have the rate at which it was written.
# Once for each arm, and for each value of an axis that it names in braces. Runs work on copies of the result.
[setup]
sql = """
CREATE TABLE orders (id bigint PRIMARY KEY, customer integer NOT NULL, total numeric NOT NULL, note text);
INSERT INTO orders SELECT i, i % 1000, i % 977, repeat('x', 60) FROM generate_series(1, {rows}) AS i;
VACUUM (ANALYZE) orders;
"""
# shared = true                 # runs only read: they share one cluster instead of getting a copy each
warm = ["orders"]               # read these into memory before each run, indexes included
# cold = true                   # restart and drop caches before each run; the disk's own count must prove it
# before = "DELETE FROM orders WHERE id % 2 = 0"   # on the server of each run, before it is measured
# restart = true                # restart behind `before`: its checkpoint is made and buffers are empty
# checkpoint = true             # a checkpoint before each run, so that none falls due in it

# What is compared. The first arm is the baseline.
[[arm]]
name = "plain"
words = "an index on the customer"
sql = "CREATE INDEX orders_customer ON orders (customer);"      # after [setup]

[[arm]]
name = "covering"
words = "the same, with the total in it"
sql = "CREATE INDEX orders_customer ON orders (customer) INCLUDE (total); VACUUM orders;"
advice = "CREATE INDEX ON orders (customer) INCLUDE (total)"    # what to do when this arm is better
# version = "16"                # 16 or 16.4: installed, given with --server, or fetched
# settings = { random_page_cost = "1.1" }   # in force in its runs, and while [setup] and its sql fill
# initdb = ["--no-data-checksums"]
# script = "SELECT 1;"          # for this arm, instead of what [load] says
# run = "VACUUM orders"         # for this arm, instead of the statement of [run]

# Under which conditions. {rows} in SQL and in the load stands for the value; in a script also :rows.
[[axis]]
name = "rows"
unit = "rows"
values = [20000, 200000]
# setting = "work_mem"          # the value is that of a server setting, in runs only: values share what [setup] filled.
                                # Where filling must see it: SET work_mem = '{rows}'; in [setup]

[[axis]]
name = "clients"
unit = "clients"
values = [1, 4]

# What a run does: a load of many clients ...
[load]
script = """
\\set customer random(0, 999)
SELECT sum(total) FROM orders WHERE customer = :customer;
"""
clients = "{clients}"
seconds = 5
# protocol = "prepared"         # or simple, extended
# rate = 500.0                  # rounds a second that fall due whatever the server does (open loop); above 0
# rate = "learned"              # with --learn-from: a round for each row of the table that was inserted, updated or deleted
# think_seconds = 0.0           # pause of a client between two rounds (closed loop)
# Several scripts, of which each round draws one by weight, instead of script = above:
# [[load.mix]]
# script = "SELECT sum(total) FROM orders WHERE customer = 1;"
# weight = 9
# [[load.mix]]
# script = "UPDATE orders SET total = total + 1 WHERE id = 1;"
# weight = 1

# ... or one statement that is timed:
# [run]
# sql = "REINDEX TABLE orders"

# What is read off a run. The first metric decides. With [load]: tps, latency_mean_ms, latency_p50_ms,
# latency_p99_ms, latency_max_ms; with [run]: run_s; always: wal_bytes; or a statement of your own.
[[metric]]
name = "tps"

[[metric]]
name = "index_bytes"
words = "size of the index"
unit = "bytes"
better = "lower"                # or higher
# timing = true                 # it depends on the machine's speed
sql = "SELECT pg_relation_size('orders_customer')"

# For the plan: what a run takes beside the load, what filling takes, and how much disk.
[cost]
run_seconds = 2
setup_seconds = 4
disk_mb = 100
"#;
