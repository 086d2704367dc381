//! How much ANALYZE reads does not depend on speed, nor on how far it asks ahead.

use crate::common;

use common::{metric, results, smallest};
use pgclinic_lab::Outcome;

#[test]
fn the_sample_is_as_large_however_far_it_asks_ahead() {
    let results = results(smallest("analyze-prefetch", &[]), None);
    for arm in ["13", "14", "18-sync", "18-worker"] {
        for ahead in ["0", "10"] {
            let point = [("maintenance_io_concurrency", ahead)];
            let sampled = metric(&results, arm, &point, "blocks_sampled");
            let blocks = metric(&results, arm, &point, "table_blocks");
            assert_eq!(sampled, 300.0, "{arm} {ahead}");
            assert!(blocks > 5.0 * sampled, "{blocks} blocks");
        }
    }
    // The fetched server has no io_uring, and kernels may forbid it: then it is not run, and says
    // why.
    for result in results
        .iter()
        .filter(|result| result.cell.arm == "18-io-uring")
    {
        match &result.outcome {
            Outcome::Done => assert_eq!(result.metrics["blocks_sampled"], 300.0),
            Outcome::Skipped { why } => assert!(why.contains("io_method = io_uring"), "{why}"),
            outcome => panic!("{}", outcome.words()),
        }
    }
}
