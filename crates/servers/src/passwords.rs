//! Passwords that stand in no URL: `PGPASSWORD`, and the password file of libpq.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::target::{Address, ConnectionTarget};

/// libpq takes a socket in one of these for `localhost`.
const USUAL_SOCKET_FOLDERS: [&str; 2] = ["/tmp", "/var/run/postgresql"];

/// Where passwords come from when the URL gives none.
#[derive(Clone, Default)]
pub struct Passwords {
    /// `PGPASSWORD`.
    pub password: Option<String>,
    /// `PGPASSFILE`, else `~/.pgpass`: a `host:port:database:user:password` a line, `*` for any.
    pub file: Option<PathBuf>,
}

impl Passwords {
    /// Gives the target its password, if there is one for it and the URL gave none. A file that
    /// others may read is not used; the sentence says so.
    pub fn give(&self, target: &mut ConnectionTarget) -> Option<String> {
        if target.password.is_some() {
            return None;
        }
        if let Some(password) = &self.password {
            target.password = Some(password.clone());
            return None;
        }
        match read(self.file.as_deref()?) {
            Ok(text) => {
                target.password = password_in(&text, target);
                None
            }
            Err(why) => why,
        }
    }
}

/// The text of a password file; why it is not used, unless it is simply not there.
fn read(path: &Path) -> Result<String, Option<String>> {
    let unused = |why: String| {
        let path = path.display();
        Some(format!("the password file {path} is not used: {why}"))
    };
    let Ok(metadata) = std::fs::metadata(path) else {
        return Err(None);
    };
    if !metadata.is_file() {
        return Err(unused("it is no plain file".to_owned()));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        let why = "others may read it; its permissions should be 0600 or less";
        return Err(unused(why.to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| unused(error.to_string()))
}

/// The password of the first line that fits.
fn password_in(file: &str, target: &ConnectionTarget) -> Option<String> {
    let (host, port) = match &target.address {
        Address::Socket { folder, port } => (folder.to_string_lossy(), port),
        Address::Tcp { host, port } => (host.as_str().into(), port),
    };
    let host = if USUAL_SOCKET_FOLDERS.contains(&host.as_ref()) {
        "localhost"
    } else {
        host.as_ref()
    };
    let wanted = [host, &port.to_string(), &target.database, &target.user];
    let fits = |fields: &[String]| {
        let mut pairs = fields.iter().zip(wanted);
        fields.len() == 5 && pairs.all(|(field, wanted)| field == "*" || field == wanted)
    };
    let mut lines = file.lines().map(fields);
    lines.find(|fields| fits(fields))?.pop()
}

/// The fields of a line; a backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let taken = match character {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                None
            }
            '\\' => characters.next(),
            other => Some(other),
        };
        if let (Some(taken), Some(field)) = (taken, fields.last_mut()) {
            field.push(taken);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> ConnectionTarget {
        ConnectionTarget::from_url(url).expect("a target")
    }

    fn given(passwords: &Passwords, url: &str) -> (Option<String>, Option<String>) {
        let mut target = target(url);
        let warning = passwords.give(&mut target);
        (target.password, warning)
    }

    #[test]
    fn lines_fit_as_for_libpq() {
        let file = "other:*:*:*:no\ndb:5432:shop:bob:no\n*:*:shop:ann:a\\:b\\\\c:d\nlocalhost:*:*:eve:e\n/run/x:*:*:eve:x\n";
        let password = |url| password_in(file, &target(url));
        let ann = Some("a:b\\c:d".to_owned());
        assert_eq!(password("postgres://ann@db/shop"), ann);
        assert_eq!(password("postgres://bob@db:7/shop"), None);
        assert_eq!(password("postgres://eve@/shop").as_deref(), Some("e"));
        let elsewhere = password("postgres://eve@/shop?host=/run/x");
        assert_eq!(elsewhere.as_deref(), Some("x"));
    }

    #[test]
    fn the_url_goes_before_the_environment_and_that_before_the_file() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("pgpass");
        std::fs::write(&path, "*:*:*:*:filed").expect("a file");
        let mut passwords = Passwords {
            password: Some("set".into()),
            file: Some(path.clone()),
        };
        let of = |password: &str| (Some(password.to_owned()), None);
        assert_eq!(given(&passwords, "postgres://a:url@db/"), of("url"));
        assert_eq!(given(&passwords, "postgres://a@db/"), of("set"));

        passwords.password = None;
        let mode = std::fs::Permissions::from_mode;
        std::fs::set_permissions(&path, mode(0o640)).expect("a mode");
        let (password, warning) = given(&passwords, "postgres://a@db/");
        assert_eq!(password, None);
        assert!(warning.is_some_and(|warning| warning.contains("others may read it")));
        std::fs::set_permissions(&path, mode(0o600)).expect("a mode");
        assert_eq!(given(&passwords, "postgres://a@db/"), of("filed"));

        passwords.file = Some(folder.path().join("absent"));
        assert_eq!(given(&passwords, "postgres://a@db/"), (None, None));
    }
}
