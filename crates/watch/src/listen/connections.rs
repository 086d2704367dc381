//! The connections that are served now. When there are too many, the one that has waited longest
//! for its own request makes room: a client that sends nothing keeps nobody out.

use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that are served at once.
const CONNECTIONS_MAX: usize = 16;
/// Threads that end soon, since their connection was ended, beside them.
const ENDING_MAX: usize = 16;

#[derive(Debug, Default)]
struct Served {
    number: u64,
    /// Those whose request was not read yet, the oldest first.
    reading: Vec<(u64, TcpStream)>,
    /// All, those that were ended included.
    threads: usize,
}

/// Who is served.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Served>);

impl Connections {
    fn served(&self) -> MutexGuard<'_, Served> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a new one, or `None` where there is no room.
    pub(super) fn begin(&self, stream: &TcpStream) -> Option<u64> {
        let mut own = self.served();
        if own.threads >= CONNECTIONS_MAX {
            if own.threads >= CONNECTIONS_MAX + ENDING_MAX || own.reading.is_empty() {
                return None;
            }
            let (_, oldest) = own.reading.remove(0);
            // It may have gone away by itself.
            let _gone = oldest.shutdown(Shutdown::Both);
        }
        let handle = stream.try_clone().ok()?;
        own.number += 1;
        let number = own.number;
        own.reading.push((number, handle));
        own.threads += 1;
        Some(number)
    }

    /// Its request was read; it is answered now.
    pub(super) fn answer(&self, number: u64) {
        self.served().reading.retain(|(own, _)| *own != number);
    }

    /// It is over.
    pub(super) fn end(&self, number: u64) {
        self.answer(number);
        let mut own = self.served();
        own.threads = own.threads.saturating_sub(1);
    }
}
