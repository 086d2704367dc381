//! How much ANALYZE reads does not depend on speed, nor on how far it asks ahead.

mod common;

use common::{metric, results, smallest};

#[test]
fn the_sample_is_as_large_however_far_it_asks_ahead() {
    let results = results(smallest("analyze-prefetch", &[]), None);
    for arm in ["18-sync", "18-worker"] {
        for ahead in ["0", "10"] {
            let point = [("maintenance_io_concurrency", ahead)];
            let sampled = metric(&results, arm, &point, "blocks_sampled");
            let blocks = metric(&results, arm, &point, "table_blocks");
            assert_eq!(sampled, 300.0, "{arm} {ahead}");
            assert!(blocks > 5.0 * sampled, "{blocks} blocks");
        }
    }
}
