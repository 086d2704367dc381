//! Names of flag bits, for people: one table a field, one function for all.

/// A bit (or group of bits) and PostgreSQL's name for it.
pub type FlagName = (u16, &'static str);

/// `pd_flags` of a page header.
pub const PD_FLAGS: &[FlagName] = &[
    (0x0001, "PD_HAS_FREE_LINES"),
    (0x0002, "PD_PAGE_FULL"),
    (0x0004, "PD_ALL_VISIBLE"),
];

/// `t_infomask` of a heap tuple; truth: `src/include/access/htup_details.h`.
pub const T_INFOMASK: &[FlagName] = &[
    (0x0001, "HEAP_HASNULL"),
    (0x0002, "HEAP_HASVARWIDTH"),
    (0x0004, "HEAP_HASEXTERNAL"),
    (0x0008, "HEAP_HASOID_OLD"),
    (0x0010, "HEAP_XMAX_KEYSHR_LOCK"),
    (0x0020, "HEAP_COMBOCID"),
    (0x0040, "HEAP_XMAX_EXCL_LOCK"),
    (0x0080, "HEAP_XMAX_LOCK_ONLY"),
    (0x0100, "HEAP_XMIN_COMMITTED"),
    (0x0200, "HEAP_XMIN_INVALID"),
    (0x0400, "HEAP_XMAX_COMMITTED"),
    (0x0800, "HEAP_XMAX_INVALID"),
    (0x1000, "HEAP_XMAX_IS_MULTI"),
    (0x2000, "HEAP_UPDATED"),
    (0x4000, "HEAP_MOVED_OFF"),
    (0x8000, "HEAP_MOVED_IN"),
];

/// The flag bits of `t_infomask2`; the low eleven are the number of attributes.
pub const T_INFOMASK2: &[FlagName] = &[
    (0x2000, "HEAP_KEYS_UPDATED"),
    (0x4000, "HEAP_HOT_UPDATED"),
    (0x8000, "HEAP_ONLY_TUPLE"),
];

/// The names of all bits of `value` that `table` knows, in order of the bits.
pub fn names(value: u16, table: &[FlagName]) -> Vec<&'static str> {
    table
        .iter()
        .filter(|(bit, _)| value & bit == *bit)
        .map(|(_, name)| *name)
        .collect()
}
