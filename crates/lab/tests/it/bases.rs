//! How long filled clusters stay on the disk.

use crate::common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::options;
use pgclinic_lab::{
    Audience, Cell, OwnExperiment, Plan, PlanOptions, RunFolder, RunResult, carry_out,
};

const THREE_BASES: &str = r#"
name = "three-bases"
question = "How many of them lie there at once?"
blocks = 2
[setup]
sql = "CREATE TABLE t AS SELECT generate_series(1, {rows}) AS i"
shared = true
[[arm]]
name = "only"
[[axis]]
name = "rows"
values = [10, 20, 30]
[run]
sql = "SELECT count(*) FROM t"
[[metric]]
name = "run_s"
"#;

/// Counts the clusters below a folder when a run has its result.
struct Counting {
    folder: PathBuf,
    most: usize,
}

impl Audience for Counting {
    fn tell(&mut self, _words: &str) {}

    fn begins(&mut self, _at: usize, _total: usize, _cell: &Cell) {}

    fn ends(&mut self, result: &RunResult) {
        assert!(result.is_done(), "{}", result.outcome.words());
        self.most = self.most.max(clusters(&self.folder));
    }
}

fn clusters(folder: &Path) -> usize {
    if folder.join("global/pg_control").exists() {
        return 1;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| clusters(&entry.path())).sum()
}

/// Clusters that lie there at most, beside the empty one that all begin as, and at the end.
fn at_once(disk_bytes: Option<u64>) -> (bool, usize, usize) {
    let experiment = OwnExperiment::parse(THREE_BASES).expect("an experiment");
    let wanted = PlanOptions {
        disk_bytes,
        ..PlanOptions::default()
    };
    let plan = Plan::make(&experiment, Some(THREE_BASES.to_owned()), &wanted).expect("a plan");
    let by_block = plan.bases_by_block;
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("data");
    std::fs::create_dir(&data).expect("a directory");
    for folder in [home.path(), &data] {
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder, all).expect("the server's user may enter");
    }
    let folder = RunFolder::create(&home.path().join("run"), plan).expect("a run directory");
    let mut counting = Counting {
        folder: data.clone(),
        most: 0,
    };
    let mut how = options(None);
    how.site.data_folder = Some(data.clone());
    carry_out(
        &experiment,
        &folder,
        &how,
        Default::default(),
        &mut counting,
    )
    .expect("results");
    (by_block, counting.most - 1, clusters(&data))
}

#[test]
fn where_the_disk_is_small_one_base_lies_there_at_a_time() {
    assert_eq!(at_once(None), (false, 3, 0));
    let experiment = OwnExperiment::parse(THREE_BASES).expect("an experiment");
    let plan = Plan::make(&experiment, None, &PlanOptions::default()).expect("a plan");
    let less = plan.cost.disk_bytes - 1;
    assert_eq!(at_once(Some(less)), (true, 1, 0));
}
