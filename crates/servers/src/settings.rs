//! The settings of a scratch server: private, quick, and saying the same thing every time.

/// Settings for every server of this major; those of the caller come after and win.
pub(crate) fn defaults(major: u16) -> Vec<(&'static str, &'static str)> {
    let mut settings = vec![
        // Private: one socket that only the server's user and root reach.
        ("listen_addresses", ""),
        ("port", "5432"),
        ("ssl", "off"),
        ("archive_mode", "off"),
        // Quick: nothing here must outlive a crash of the machine.
        ("fsync", "off"),
        ("shared_buffers", "16MB"),
        ("max_connections", "20"),
        ("max_wal_senders", "0"),
        ("max_prepared_transactions", "5"),
        ("huge_pages", "off"),
        ("jit", "off"),
        ("update_process_title", "off"),
        // Small copies: no spare WAL segments are kept.
        ("wal_recycle", "off"),
        // Nothing stays behind in /dev/shm when the server is killed.
        ("dynamic_shared_memory_type", "mmap"),
        // The same every time: no background change of pages, no message from a parallel worker.
        ("autovacuum", "off"),
        ("max_parallel_workers_per_gather", "0"),
        ("max_parallel_maintenance_workers", "0"),
        ("synchronize_seqscans", "off"),
        ("lc_messages", "C"),
        ("log_destination", "stderr"),
        ("logging_collector", "off"),
    ];
    if major >= 18 {
        settings.push(("io_method", "sync"));
    }
    settings
}
