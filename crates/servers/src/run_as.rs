//! Who a server runs as. PostgreSQL refuses root, so root starts its servers as somebody
//! unprivileged.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::passwd::{User, find_user};

/// The user that servers, `initdb` and the other tools run as; never root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAs {
    /// The name, for messages.
    pub name: String,
    /// The numeric user.
    pub uid: u32,
    /// The numeric primary group.
    pub gid: u32,
    /// The home folder, as `HOME` of the programs.
    pub home: PathBuf,
    change: bool,
}

impl RunAs {
    /// For root: `wanted`, else `postgres`, else `nobody`. For others: themselves; another name is
    /// refused.
    pub fn new(wanted: Option<&str>) -> Result<Self> {
        let own_uid = rustix::process::geteuid().as_raw();
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        choose(
            &passwd,
            own_uid,
            rustix::process::getegid().as_raw(),
            wanted,
        )
    }

    /// A command that runs `program` as this user, such as a client program of an installation.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.apply(&mut command);
        command
    }

    /// Makes `command` run as this user, without our environment and without root's supplementary
    /// groups.
    pub(crate) fn apply(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("USER", &self.name)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .current_dir("/");
        if self.change {
            // std also calls setgroups with an empty list when root changes its uid.
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Gives a file or folder to this user; nothing to do when that is us.
    pub fn own(&self, path: &Path) -> Result<()> {
        if !self.change {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid)).map_err(Error::io("change the owner of", path))
    }
}

fn choose(passwd: &str, own_uid: u32, own_gid: u32, wanted: Option<&str>) -> Result<RunAs> {
    if own_uid == 0 {
        return other_user(passwd, wanted);
    }
    let own = find_user(passwd, |user| user.uid == own_uid).unwrap_or_else(|| User {
        name: own_uid.to_string(),
        uid: own_uid,
        gid: own_gid,
        home: PathBuf::from("/"),
    });
    match wanted {
        Some(name) if name != own.name => Err(no_user(
            name,
            "only root can start servers as somebody else",
        )),
        _ => Ok(run_as(own, false)),
    }
}

fn other_user(passwd: &str, wanted: Option<&str>) -> Result<RunAs> {
    let named = |name: &str| find_user(passwd, |user| user.name == name);
    let found = match wanted {
        Some(name) => {
            named(name).ok_or_else(|| no_user(name, "it does not stand in /etc/passwd"))?
        }
        None => named("postgres")
            .or_else(|| named("nobody"))
            .ok_or_else(|| {
                no_user(
                    "postgres",
                    "neither it nor \"nobody\" stands in /etc/passwd",
                )
            })?,
    };
    if found.uid == 0 {
        return Err(no_user(&found.name, "PostgreSQL refuses to run as root"));
    }
    Ok(run_as(found, true))
}

fn run_as(user: User, change: bool) -> RunAs {
    RunAs {
        name: user.name,
        uid: user.uid,
        gid: user.gid,
        home: user.home,
        change,
    }
}

fn no_user(name: &str, why: &str) -> Error {
    Error::NoUser {
        name: name.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nann:x:1000:1000::/home/ann:/bin/sh\n";

    #[test]
    fn root_never_runs_a_server_as_root() {
        assert_eq!(choose(PASSWD, 0, 0, None).unwrap().name, "nobody");
        assert_eq!(choose(PASSWD, 0, 0, Some("ann")).unwrap().uid, 1000);
        let refused = choose(PASSWD, 0, 0, Some("root")).unwrap_err().to_string();
        assert!(refused.contains("refuses to run as root"), "{refused}");
        assert!(choose(PASSWD, 0, 0, Some("eve")).is_err());
    }

    #[test]
    fn others_run_servers_as_themselves() {
        assert!(!choose(PASSWD, 1000, 1000, None).unwrap().change);
        assert!(choose(PASSWD, 1000, 1000, Some("nobody")).is_err());
        assert_eq!(choose(PASSWD, 4711, 4711, None).unwrap().name, "4711");
    }
}
