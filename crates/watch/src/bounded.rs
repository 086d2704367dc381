//! A connection that has to be done by a moment, however slowly the other side sends or takes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Every read and write waits only for what is left of its time.
#[derive(Debug)]
pub struct BoundedStream {
    stream: TcpStream,
    end: Instant,
}

impl BoundedStream {
    /// From now on, for so long.
    pub fn new(stream: TcpStream, patience: Duration) -> Self {
        let end = Instant::now() + patience;
        Self { stream, end }
    }

    /// The connection may go on for so long from now on.
    pub(crate) fn prolong(&mut self, patience: Duration) {
        self.end = Instant::now() + patience;
    }

    /// A timeout of zero would mean none at all.
    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        match left {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

/// A socket calls it "would block" when its time is over.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for BoundedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer).map_err(in_words)
    }
}

impl Write for BoundedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Each byte comes soon enough for a limit of a single read.
    #[test]
    fn a_byte_now_and_then_does_not_hold_it_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let dripping = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let stream = TcpStream::connect(address).expect("a connection");
        let mut bounded = BoundedStream::new(stream, Duration::from_millis(60));
        let mut all = Vec::new();
        let ended = bounded.read_to_end(&mut all).expect_err("no end");
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        assert!(!all.is_empty());
        drop(bounded);
        dripping.join().expect("an end");
    }
}
