//! Users of this machine, read from `/etc/passwd` (`passwd(5)`); the primary group stands there
//! too.

use std::path::PathBuf;

/// One line of `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: PathBuf,
}

/// The user for which `is_it` holds, from the text of `/etc/passwd`. Broken lines are passed over.
pub(crate) fn find_user(passwd: &str, is_it: impl Fn(&User) -> bool) -> Option<User> {
    passwd.lines().filter_map(parse_user).find(is_it)
}

fn parse_user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    let _password = fields.next()?;
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    let _remark = fields.next()?;
    let home = PathBuf::from(fields.next()?);
    Some(User {
        name,
        uid,
        gid,
        home,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_line_hides_no_user() {
        let text = "root:x:0:0:root:/root:/bin/sh\nbroken:x\n#note\npostgres:x:101:104:PG,,,:/var/lib/postgresql:/bin/bash\n";
        let user = find_user(text, |user| user.name == "postgres").expect("the third user");
        assert_eq!((user.uid, user.gid), (101, 104));
        assert_eq!(find_user(text, |user| user.uid == 7), None);
    }
}
