//! Keycloak, the provider of identities that the experiment `oauth-login` can use instead of its
//! own. Maven fetches it.

use std::path::Path;
use std::process::Command;

use super::Supply;
use crate::shell::{self, at};
use crate::task::Outcome;

pub(super) const KEYCLOAK: Supply = Supply {
    name: "keycloak",
    what: "Keycloak 26.4.5, started with java",
    on_request: true,
    needs: &["mvn", "java", "unzip"],
    make,
};

const ARTIFACT: &str = "org.keycloak:keycloak-quarkus-dist:26.4.5:zip";

fn make(folder: &Path) -> Outcome {
    let repository = folder.join("maven");
    let mut mvn = Command::new("mvn");
    mvn.args(["--quiet", "--batch-mode", "dependency:copy"])
        .arg(format!("-Dartifact={ARTIFACT}"))
        .arg(format!("-DoutputDirectory={}", folder.display()))
        .arg(format!("-Dmaven.repo.local={}", repository.display()))
        .current_dir(folder);
    shell::capture(&mut mvn)?;
    let archive = folder.join("keycloak-quarkus-dist-26.4.5.zip");
    let mut unzip = Command::new("unzip");
    unzip.arg("-q").arg(&archive).arg("-d").arg(folder);
    shell::capture(&mut unzip)?;
    std::fs::remove_dir_all(&repository).map_err(at(&repository))?;
    std::fs::remove_file(&archive).map_err(at(&archive))
}
