//! What a document holds of the data of those whose cluster it is about, and documents without it.
//!
//! ```text
//! withheld   values of rows, bytes of pages: taken out of the plain data, counts and places stay
//! redacted   the document as JSON, every text rewritten ─► the same document
//! ```
//!
//! No printer knows of any of it: it happens to the document before.

mod fields;
mod names;
mod paths;
mod prose;
mod pseudonyms;
mod redacted;
#[cfg(test)]
mod tests;
mod vocabulary;
mod withheld;

pub use pseudonyms::RedactionKey;
pub use redacted::redacted;
