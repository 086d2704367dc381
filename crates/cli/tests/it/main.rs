//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod common;

mod access;
mod access_methods;
mod advice;
mod advice_applies;
mod articles;
mod as_pg_amcheck;
mod as_pg_verifybackup;
mod bad_input;
mod bare_file;
mod base_backup;
mod browser;
mod catalog_cost;
mod catalog_memory;
mod catalogs;
mod chains;
mod collate_with;
mod config;
mod damage;
mod databases_on_their_way;
mod demo;
mod destinations;
mod diff;
mod diff_timelines;
mod every_form;
mod explain;
mod files_by_url;
mod first_screen;
mod guide;
mod habits;
mod heal;
mod heal_catalogs;
mod heal_checksums;
mod heal_evidence;
mod heal_full;
mod heal_live;
mod heal_refused;
mod heal_scratch;
mod heal_start;
mod heal_status;
mod heal_structure;
mod healthy;
mod hostile_backups;
mod ignored;
mod injuries_in_every_form;
mod lab;
mod lab_bad_input;
mod lab_experiments;
mod lab_folders;
mod lab_killed;
mod live_server;
mod measure;
mod measure_beside_programs;
mod near_names;
mod needs_recovery;
mod readme;
mod redacted;
mod rehearsal;
mod reports_beside;
mod rows_in_every_form;
mod running;
mod running_losses;
mod running_verbs;
mod salvage;
mod salvage_bad_input;
mod salvage_full_disk;
mod salvage_interrupted;
mod salvage_memory;
mod salvage_without_catalogs;
mod scenarios;
mod since;
mod since_known;
mod since_timelines;
mod state_killed;
mod tar_backup;
mod unseen_server;
mod unseen_server_writes;
mod watch;
mod watch_alerts;
mod watch_background;
mod watch_log;
mod watch_prometheus;
mod with_measure;
