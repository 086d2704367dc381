//! Catalogs that temporary tables have bloated: which settings write down who makes them and what
//! autovacuum does about it, and which role may watch them without being a superuser.
//!
//! From the article on temporary tables and the system catalogs.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Cluster, DatabaseContext};
use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_AUTH_MEMBERS, PG_AUTHID};

use super::{Piece, Said, SeenDatabase};
use crate::catalog_rows::{Reading, each_row, place};
use crate::run::forks_of;

/// A catalog with fewer dead row versions is no cause for anything.
const DEAD_MIN: u64 = 10_000;
/// Bytes that a rewrite gives back, of one catalog.
const GIVEN_BACK_MIN: u64 = 16 << 20;
/// The article's value: longer runs of autovacuum are logged.
const AUTOVACUUM_LOG_MS: i64 = 2000;
/// `pg_monitor` and `pg_stat_scan_tables`, either of which may look into catalogs.
const WATCHERS: [Oid; 2] = [3373, 3377];

/// Bloated catalogs that nobody watches.
pub(crate) struct CatalogLogging;

impl Piece for CatalogLogging {
    fn name(&self) -> &'static str {
        "catalog-logging"
    }

    fn of_database(&self, seen: &SeenDatabase<'_>) -> Option<Said> {
        let of = bloated(seen);
        (!of.is_empty()).then_some(())?;
        let cluster = seen.view.cluster;
        let mut commands = Vec::new();
        if seen.setting("log_statement", "none").as_deref() == Some("none") {
            commands.push(
                "ALTER SYSTEM SET log_statement = 'ddl'; -- for as long as the cause is searched"
                    .to_owned(),
            );
        }
        let default = if cluster.layout.major >= 15 {
            "10min"
        } else {
            "-1"
        };
        let logged = seen.setting("log_autovacuum_min_duration", default);
        if logged
            .and_then(|text| milliseconds(&text))
            .is_some_and(is_too_long)
        {
            commands.push("ALTER SYSTEM SET log_autovacuum_min_duration = '2s';".to_owned());
        }
        if !commands.is_empty() {
            commands.push("SELECT pg_reload_conf();".to_owned());
        }
        if has_watcher(cluster) == Some(false) {
            commands
                .push("CREATE ROLE monitoring LOGIN; GRANT pg_monitor TO monitoring;".to_owned());
        }
        (!commands.is_empty()).then(|| Said {
            message: "catalogs are bloated, as by temporary tables that come and go: the log says who makes them and how long \
                      autovacuum takes, and a role in pg_monitor may watch their sizes and dead rows without being a superuser"
                .into(),
            of,
            commands,
            settled_by: "pgclinic measure catalog-cost DDL.sql; pgclinic lab run catalog-churn --into DIR".into(),
        })
    }
}

/// Catalogs that are mostly dead rows or free space, and what of.
fn bloated(seen: &SeenDatabase<'_>) -> Vec<String> {
    let catalogs = seen
        .measured
        .iter()
        .filter(|own| own.schema.as_deref() == Some("pg_catalog"));
    let bloated = catalogs.filter_map(|own| {
        let count = |name: &str| own.count("table", name).unwrap_or(0);
        let (live, dead) = (count("tuple_count"), count("dead_tuple_count"));
        let given_back = count("rewrite_gives_back_bytes");
        let is_dead = dead >= DEAD_MIN && dead > live;
        let is_free = given_back >= GIVEN_BACK_MIN && given_back > own.bytes / 2;
        (is_dead || is_free).then(|| {
            format!(
                "{}: {live} live rows, {dead} dead ones; VACUUM FULL gives back {given_back} of {} bytes",
                own.name(),
                own.bytes
            )
        })
    });
    bloated.collect()
}

/// Never, or later than the article has it.
fn is_too_long(milliseconds: i64) -> bool {
    !(0..=AUTOVACUUM_LOG_MS).contains(&milliseconds)
}

/// A setting of time as the server takes it: milliseconds, or with a unit.
fn milliseconds(text: &str) -> Option<i64> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number: i64 = number.trim().parse().ok()?;
    let factor = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Whether a role that may log in and is no superuser may watch; nothing where not all roles can be
/// read.
fn has_watcher(cluster: &Cluster) -> Option<bool> {
    let catalog = cluster.catalog(0);
    let (forks, gaps) = forks_of(cluster, 0);
    gaps.is_empty().then_some(())?;
    let view = DatabaseContext {
        cluster,
        catalog: &catalog,
        forks: &forks,
    };
    let plain = plain_logins(&view)?;
    let groups = groups_of_members(&view)?;
    Some(plain.iter().any(|role| is_watcher(*role, &groups)))
}

/// Roles that may log in and are no superusers.
fn plain_logins(view: &DatabaseContext<'_>) -> Option<BTreeSet<Oid>> {
    let roles = view.catalog.relations.get(&PG_AUTHID)?;
    let (oid, superuser) = (place(roles, "oid")?, place(roles, "rolsuper")?);
    let login = place(roles, "rolcanlogin")?;
    let mut plain = BTreeSet::new();
    let reading = each_row(view, roles, &mut |row| {
        if row.bool(superuser) == Some(false) && row.bool(login) == Some(true) {
            plain.extend(row.u32(oid));
        }
    });
    (reading == Reading::Whole).then_some(plain)
}

/// The roles that each role is a member of.
fn groups_of_members(view: &DatabaseContext<'_>) -> Option<BTreeMap<Oid, Vec<Oid>>> {
    let members = view.catalog.relations.get(&PG_AUTH_MEMBERS)?;
    let (group, member) = (place(members, "roleid")?, place(members, "member")?);
    let mut groups: BTreeMap<Oid, Vec<Oid>> = BTreeMap::new();
    let reading = each_row(view, members, &mut |row| {
        if let (Some(group), Some(member)) = (row.u32(group), row.u32(member)) {
            groups.entry(member).or_default().push(group);
        }
    });
    (reading == Reading::Whole).then_some(groups)
}

/// It is one of those that may watch, or a member of a member of one.
fn is_watcher(role: Oid, groups: &BTreeMap<Oid, Vec<Oid>>) -> bool {
    let (mut left, mut seen) = (vec![role], BTreeSet::new());
    while let Some(role) = left.pop() {
        if WATCHERS.contains(&role) {
            return true;
        }
        if seen.insert(role) {
            left.extend(groups.get(&role).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        let all = ["-1", "250", "2s", "10min", "1 h", "abc"].map(milliseconds);
        assert_eq!(
            all,
            [
                Some(-1),
                Some(250),
                Some(2000),
                Some(600_000),
                Some(3_600_000),
                None
            ]
        );
        assert!(is_too_long(-1) && is_too_long(600_000));
        assert!(!is_too_long(0) && !is_too_long(2000));
    }

    #[test]
    fn a_member_of_a_member_may_watch() {
        let groups = BTreeMap::from([(20_000, vec![20_001]), (20_001, vec![3373, 20_000])]);
        assert!(is_watcher(20_000, &groups));
        assert!(!is_watcher(20_002, &groups));
    }
}
