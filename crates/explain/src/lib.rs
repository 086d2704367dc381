//! What a page's bytes mean, and what a server's message about them means.
#![forbid(unsafe_code)]

pub mod anatomy;
pub mod server_messages;
