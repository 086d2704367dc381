//! Bytes to and from a server, over a Unix socket or TCP.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream as BlockingUnixStream;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use pgclinic_servers::Address;

/// How long to wait when the server's queue of new connections is full.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

/// How long a read alone on its thread sleeps before other things on the thread, such as a time
/// limit, have a turn.
const TURN: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    /// Alone on its thread: nobody else is kept waiting while it sleeps in the kernel.
    AloneUnix(BlockingUnixStream),
    AloneTcp(std::net::TcpStream),
}

impl Stream {
    /// Connects; a full queue is waited out, and the caller sets the limit.
    pub(super) async fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Socket { folder, port } => {
                let path = folder.join(format!(".s.PGSQL.{port}"));
                loop {
                    match UnixStream::connect(&path).await {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            tokio::time::sleep(BACKLOG_PAUSE).await;
                        }
                        other => return other.map(Self::Unix),
                    }
                }
            }
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    /// The same connection for a thread that drives no other: it sleeps in `recv` itself, as
    /// pgbench does for such a client. That saves asking what is ready, and the kernel hands the
    /// processor from server to client.
    pub(super) fn alone(self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => {
                let stream = stream.into_std()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(TURN))?;
                Ok(Self::AloneUnix(stream))
            }
            Self::Tcp(stream) => {
                let stream = stream.into_std()?;
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(TURN))?;
                Ok(Self::AloneTcp(stream))
            }
            alone => Ok(alone),
        }
    }

    /// Waits for bytes and reads some; 0 is the end. A short read tells tokio that nothing more is
    /// there, which saves the system call that would only say so.
    pub(super) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => read_ready(stream, into).await,
            Self::Tcp(stream) => read_ready(stream, into).await,
            Self::AloneUnix(stream) => read_asleep(stream, into).await,
            Self::AloneTcp(stream) => read_asleep(stream, into).await,
        }
    }

    /// Writes everything.
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => write_ready(stream, bytes).await,
            Self::Tcp(stream) => write_ready(stream, bytes).await,
            Self::AloneUnix(stream) => stream.write_all(bytes),
            Self::AloneTcp(stream) => stream.write_all(bytes),
        }
    }
}

async fn read_ready(mut stream: impl AsyncRead + Unpin, into: &mut [u8]) -> io::Result<usize> {
    let mut buffer = ReadBuf::new(into);
    poll_fn(|context| Pin::new(&mut stream).poll_read(context, &mut buffer)).await?;
    Ok(buffer.filled().len())
}

async fn read_asleep(stream: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    loop {
        match stream.read(into) {
            Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => {
                tokio::task::yield_now().await;
            }
            other => return other,
        }
    }
}

async fn write_ready(mut stream: impl AsyncWrite + Unpin, bytes: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let written = poll_fn(|context| Pin::new(&mut stream).poll_write(context, left)).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left = left.get(written..).unwrap_or_default();
    }
    Ok(())
}
