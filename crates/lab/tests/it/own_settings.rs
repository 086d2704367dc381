//! What an own experiment's [setup] sees of the settings of its arms.

use crate::common;

use common::{Nobody, metric, options};
use pgclinic_lab::{OwnExperiment, Plan, PlanOptions, RunFolder, RunResult, carry_out};

const SEEN: &str = r#"
name = "seen-by-setup"
question = "Which settings does filling see?"
blocks = 1
[setup]
sql = "CREATE TABLE seen AS SELECT current_setting('work_mem') AS memory, current_setting('random_page_cost') AS cost"
shared = true
[[arm]]
name = "little"
settings = { work_mem = "1MB", max_wal_senders = "3" }
[[arm]]
name = "much"
settings = { work_mem = "7MB" }
[[axis]]
name = "cost"
values = [2, 3]
setting = "random_page_cost"
[run]
sql = "SELECT count(*) FROM seen"
[[metric]]
name = "memory_bytes"
unit = "bytes"
sql = "SELECT pg_size_bytes(memory) FROM seen"
[[metric]]
name = "cost_then"
sql = "SELECT cost FROM seen"
[[metric]]
name = "cost_now"
sql = "SELECT current_setting('random_page_cost')"
"#;

#[test]
fn filling_sees_the_settings_of_the_arm_and_not_of_an_axis() {
    let own = OwnExperiment::parse(SEEN).expect("an experiment");
    let plan = Plan::make(&own, Some(SEEN.to_owned()), &PlanOptions::default()).expect("a plan");
    let home = tempfile::tempdir().expect("a directory");
    let folder = RunFolder::create(&home.path().join("run"), plan).expect("a run directory");
    let stop = Default::default();
    let results = carry_out(&own, &folder, &options(None), stop, &mut Nobody).expect("results");
    assert!(results.iter().all(RunResult::is_done), "{results:?}");
    for (arm, megabytes) in [("little", 1.0), ("much", 7.0)] {
        for (cost, now) in [("2", 2.0), ("3", 3.0)] {
            let of = |name: &str| metric(&results, arm, &[("cost", cost)], name);
            assert_eq!(of("memory_bytes"), megabytes * 1024.0 * 1024.0, "{arm}");
            assert_eq!((of("cost_then"), of("cost_now")), (4.0, now), "{arm}");
        }
    }
}
