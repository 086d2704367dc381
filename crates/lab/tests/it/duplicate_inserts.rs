//! What failed inserts leave behind does not depend on speed.

use crate::common;

use common::{metric, results, smallest};

#[test]
fn plain_inserts_leave_dead_rows_and_on_conflict_leaves_nothing() {
    let plan = smallest("duplicate-inserts", &[("created-first", &["primary"])]);
    let results = results(plan, None);
    let of = |arm: &str, key: &str, name: &str| metric(&results, arm, &[("collides", key)], name);

    for key in ["primary", "second"] {
        assert!(of("insert", key, "dead_bytes") > 50_000.0);
        assert_eq!(of("insert", key, "xids"), 1_000.0);
        for arm in ["do-nothing", "merge", "look-first"] {
            assert_eq!(of(arm, key, "dead_bytes"), 0.0, "{arm} {key}");
            assert_eq!(of(arm, key, "xids"), 0.0, "{arm} {key}");
            assert!(of(arm, key, "wal_bytes") < of("insert", key, "wal_bytes") / 10.0);
        }
    }
    // A row refused by the index that was created second has its entry in the first.
    assert_eq!(of("insert", "primary", "index_entries"), 1_000.0);
    assert_eq!(of("insert", "second", "index_entries"), 3_000.0);
    assert!(results.iter().any(|result| result.cell.is_control));
}
