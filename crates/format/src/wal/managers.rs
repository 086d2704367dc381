//! Resource managers: who wrote a record, by number. The numbers are the same from 13 to 18.
//!
//! Truth: `src/include/access/rmgrlist.h`; custom ones from 15 on, `src/include/access/rmgr.h`.

/// A resource manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Manager {
    /// `xl_rmid`.
    pub id: u8,
    /// The name that `pg_waldump` prints.
    pub name: &'static str,
}

const fn manager(id: u8, name: &'static str) -> Manager {
    Manager { id, name }
}

/// Every built-in one, by number.
pub static MANAGERS: [Manager; 22] = [
    manager(0, "XLOG"),
    manager(1, "Transaction"),
    manager(2, "Storage"),
    manager(3, "CLOG"),
    manager(4, "Database"),
    manager(5, "Tablespace"),
    manager(6, "MultiXact"),
    manager(7, "RelMap"),
    manager(8, "Standby"),
    manager(9, "Heap2"),
    manager(10, "Heap"),
    manager(11, "Btree"),
    manager(12, "Hash"),
    manager(13, "Gin"),
    manager(14, "Gist"),
    manager(15, "Sequence"),
    manager(16, "SPGist"),
    manager(17, "BRIN"),
    manager(18, "CommitTs"),
    manager(19, "ReplicationOrigin"),
    manager(20, "Generic"),
    manager(21, "LogicalMessage"),
];

/// `RM_MIN_CUSTOM_ID`: an extension's from here on.
const CUSTOM_MIN: u8 = 128;

/// A server of this major takes records of this manager for possible.
pub(crate) fn is_known(id: u8, major: u16) -> bool {
    usize::from(id) < MANAGERS.len() || (major >= 15 && id >= CUSTOM_MIN)
}

/// The name of a manager; nothing for numbers that no server and no extension uses.
pub fn manager_name(id: u8) -> Option<&'static str> {
    match MANAGERS.get(usize::from(id)) {
        Some(manager) => Some(manager.name),
        None if id >= CUSTOM_MIN => Some("custom"),
        None => None,
    }
}
