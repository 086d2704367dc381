//! Slots, origins, prepared transactions and relation maps are damaged.

use std::fs;

use pgclinic_model::plan::Safety::{Exact, Lossy};

use super::hurt::{
    ORIGINS, SLOT, cut, flip, flip_at, map, prepared, remove, rename_prepared, truncate, write,
};
use super::{Before, Wound};

pub(super) const SMALL_FILES: &[Wound] = &[
    Wound {
        name: "replication slot damaged",
        before: Before::Crash,
        hurt: |pgdata| flip(pgdata, SLOT, 20),
        says: "checksum mismatch for replication slot file",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot without state",
        before: Before::Crash,
        hurt: |pgdata| remove(pgdata, SLOT),
        says: "pg_replslot/one/state\": No such file or directory",
        page: "missing-file",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot zeroed",
        before: Before::Crash,
        hurt: |pgdata| write(pgdata, SLOT, &[0; 200]),
        says: "has wrong magic number",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot of an unknown version",
        before: Before::Crash,
        hurt: |pgdata| flip(pgdata, SLOT, 9),
        says: "has unsupported version",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot of another length",
        before: Before::Shutdown,
        hurt: |pgdata| flip(pgdata, SLOT, 13),
        says: "has corrupted length",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot truncated",
        before: Before::Crash,
        hurt: |pgdata| truncate(pgdata, SLOT, 10),
        says: "read 10 of 16",
        page: "short-read",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication slot truncated after its head",
        before: Before::Shutdown,
        hurt: |pgdata| truncate(pgdata, SLOT, 60),
        says: "pg_replslot/one/state",
        page: "short-read",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication origins damaged",
        before: Before::Crash,
        hurt: |pgdata| write(pgdata, ORIGINS, &[0; 16]),
        says: "replication checkpoint has wrong magic",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication origins truncated",
        before: Before::Crash,
        hurt: |pgdata| write(pgdata, ORIGINS, &[0xDE, 0xDA]),
        says: "replorigin_checkpoint",
        page: "short-read",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "replication origins with another checksum",
        before: Before::Shutdown,
        hurt: |pgdata| {
            let mut bytes = 0x1257_DADE_u32.to_le_bytes().to_vec();
            bytes.extend([1, 2, 3, 4]);
            write(pgdata, ORIGINS, &bytes)
        },
        says: "replication slot checkpoint has wrong checksum",
        page: "replication-state-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction damaged",
        before: Before::Shutdown,
        hurt: |pgdata| flip_at(&prepared(pgdata)?, 80),
        says: "calculated CRC checksum does not match value stored in file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction with another magic word",
        before: Before::Shutdown,
        hurt: |pgdata| flip_at(&prepared(pgdata)?, 0),
        says: "invalid magic number stored in file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction with another size",
        before: Before::Shutdown,
        hurt: |pgdata| flip_at(&prepared(pgdata)?, 5),
        says: "invalid size stored in file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction truncated",
        before: Before::Crash,
        hurt: |pgdata| cut(&prepared(pgdata)?, 8),
        says: "incorrect size of file",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "prepared transaction under another name",
        before: Before::Crash,
        hurt: rename_prepared,
        says: "corrupted two-phase state file for transaction",
        page: "prepared-transaction-refused",
        cures: &[("set-aside", Lossy)],
    },
    Wound {
        name: "map of a database damaged",
        before: Before::Shutdown,
        hurt: |pgdata| flip_at(&map(pgdata)?, 20),
        says: "contains incorrect checksum",
        page: "relation-map-damaged",
        cures: &[("relation-map-from-files", Exact)],
    },
    Wound {
        name: "map of a database without its magic word",
        before: Before::Shutdown,
        hurt: |pgdata| flip_at(&map(pgdata)?, 0),
        says: "contains invalid data",
        page: "relation-map-damaged",
        cures: &[("relation-map-from-files", Exact)],
    },
    Wound {
        name: "map of a database truncated",
        before: Before::Crash,
        hurt: |pgdata| cut(&map(pgdata)?, 100),
        says: "pg_filenode.map\": read 100 of",
        page: "short-read",
        cures: &[("relation-map-from-files", Exact)],
    },
    Wound {
        name: "map of a database lost",
        before: Before::Shutdown,
        hurt: |pgdata| fs::remove_file(map(pgdata)?),
        says: "pg_filenode.map\": No such file or directory",
        page: "missing-file",
        cures: &[("relation-map-from-files", Exact)],
    },
];
