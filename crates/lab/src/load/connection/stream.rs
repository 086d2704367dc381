//! Bytes to and from a server, over a Unix socket or TCP.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use pgclinic_servers::Address;

/// How long to wait when the server's queue of new connections is full.
const BACKLOG_PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
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

    /// Waits for bytes and reads some; 0 is the end. A short read tells tokio that nothing more is there, which
    /// saves the system call that would only say so.
    pub(super) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(into);
        poll_fn(|context| match self {
            Self::Unix(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, &mut buffer),
        })
        .await?;
        Ok(buffer.filled().len())
    }

    /// Writes everything.
    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let written = poll_fn(|context| match self {
                Self::Unix(stream) => Pin::new(stream).poll_write(context, left),
                Self::Tcp(stream) => Pin::new(stream).poll_write(context, left),
            })
            .await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            left = left.get(written..).unwrap_or_default();
        }
        Ok(())
    }
}
