//! Bytes to and from a server: a Unix socket, TCP, or TLS over TCP (`protocol-flow`, "SSL Session
//! Encryption").

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring::default_provider};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, StreamOwned,
};

use crate::message::SqlError;
use crate::target::{Address, ConnectionTarget, Tls};

/// `SSLRequest`: its length, and a version that no protocol has.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F];

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Stream::Unix(_) => "a Unix socket",
            Stream::Tcp(_) => "TCP",
            Stream::Tls(_) => "TLS",
        })
    }
}

impl Stream {
    /// Connects, and encrypts where that is asked for; `patience` is for each step of it.
    pub(crate) fn connect(target: &ConnectionTarget, patience: Duration) -> Result<Self, SqlError> {
        match &target.address {
            Address::Socket { folder, port } => {
                let path = folder.join(format!(".s.PGSQL.{port}"));
                let stream = UnixStream::connect(path).map_err(SqlError::Io)?;
                Ok(Stream::Unix(stream))
            }
            Address::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).map_err(SqlError::Io)?;
                stream.set_nodelay(true).map_err(SqlError::Io)?;
                let stream = Stream::Tcp(stream);
                stream.set_timeouts(patience).map_err(SqlError::Io)?;
                stream.encrypted(host, &target.tls)
            }
        }
    }

    fn encrypted(mut self, host: &str, tls: &Tls) -> Result<Self, SqlError> {
        if *tls == Tls::Never {
            return Ok(self);
        }
        self.write_all(&SSL_REQUEST).map_err(SqlError::Io)?;
        let mut answer = [0];
        self.read_exact(&mut answer).map_err(SqlError::Io)?;
        match (answer, self) {
            ([b'S'], Stream::Tcp(stream)) => {
                let name = ServerName::try_from(host.to_owned())
                    .map_err(|error| SqlError::Protocol(format!("{host}: {error}")))?;
                let refused = |error: rustls::Error| SqlError::Protocol(error.to_string());
                let config = config(tls)?;
                let session = ClientConnection::new(Arc::new(config), name).map_err(refused)?;
                let mut stream = StreamOwned::new(session, stream);
                while stream.conn.is_handshaking() {
                    stream
                        .conn
                        .complete_io(&mut stream.sock)
                        .map_err(SqlError::Io)?;
                }
                Ok(Stream::Tls(Box::new(stream)))
            }
            (_, plain) if *tls == Tls::Possible => Ok(plain),
            _ => Err(SqlError::Protocol(
                "the server does not speak TLS, and sslmode asks for it".to_owned(),
            )),
        }
    }

    /// Reading and writing end with an error after this.
    pub(crate) fn set_timeouts(&self, limit: Duration) -> io::Result<()> {
        let (limit, tcp) = match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(limit))?;
                return stream.set_write_timeout(Some(limit));
            }
            Stream::Tcp(stream) => (Some(limit), stream),
            Stream::Tls(stream) => (Some(limit), &stream.sock),
        };
        tcp.set_read_timeout(limit)?;
        tcp.set_write_timeout(limit)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.flush(),
            Stream::Tcp(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

fn config(tls: &Tls) -> Result<ClientConfig, SqlError> {
    let refused = |error: rustls::Error| SqlError::Protocol(error.to_string());
    let provider = Arc::new(default_provider());
    let verifier = Verifier::new(tls, Arc::clone(&provider))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

/// Looks at the server's certificate as far as `sslmode` asks for it.
#[derive(Debug)]
struct Verifier {
    authorities: Option<Arc<rustls::client::WebPkiServerVerifier>>,
    name: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(tls: &Tls, provider: Arc<CryptoProvider>) -> Result<Self, SqlError> {
        let Tls::Verified { root, name } = tls else {
            return Ok(Verifier {
                authorities: None,
                name: false,
                provider,
            });
        };
        let failed = |why: String| SqlError::Protocol(format!("{}: {why}", root.display()));
        let mut roots = RootCertStore::empty();
        for certificate in
            CertificateDer::pem_file_iter(root).map_err(|error| failed(error.to_string()))?
        {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| failed(error.to_string()))?;
        }
        let authorities = rustls::client::WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&provider),
        );
        Ok(Verifier {
            authorities: Some(
                authorities
                    .build()
                    .map_err(|error| failed(error.to_string()))?,
            ),
            name: *name,
            provider,
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
