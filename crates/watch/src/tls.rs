//! TLS by rustls, as the sessions of servers have it: for the endpoint, and for webhooks.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring::default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use crate::bounded::BoundedStream;

/// Where systems keep the authorities that they trust.
const AUTHORITIES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// What the endpoint shows of itself.
#[derive(Debug, Clone)]
pub struct ServerTls(Arc<ServerConfig>);

impl ServerTls {
    /// Of a chain of certificates and their key, both PEM.
    ///
    /// # Errors
    /// A file cannot be read, or they do not belong together.
    pub fn from_files(certificates: &Path, key: &Path) -> Result<Self, String> {
        let chain = certificates_of(certificates)?;
        let own = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| format!("cannot read the key {}: {error}", key.display()))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, own)
            .map_err(|error| format!("{}: {error}", certificates.display()))?;
        Ok(Self(Arc::new(config)))
    }

    /// An encrypted connection, within the time of the stream.
    pub(crate) fn accept(&self, mut stream: BoundedStream) -> io::Result<Encrypted> {
        let mut session = ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        while session.is_handshaking() {
            if session.wants_write() {
                session.write_tls(&mut stream)?;
            } else if session.read_tls(&mut stream)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            } else if let Err(error) = session.process_new_packets() {
                let _unheard = session.write_tls(&mut stream);
                return Err(io::Error::other(error));
            }
        }
        Ok(StreamOwned::new(session, stream))
    }
}

/// A connection that the endpoint has accepted.
pub(crate) type Encrypted = StreamOwned<ServerConnection, BoundedStream>;

/// A connection to a host whose certificate one of these authorities signed; those of the system
/// where none is named.
///
/// # Errors
/// No authority can be read, or the host is not who it should be.
pub fn connect_encrypted(
    stream: BoundedStream,
    host: &str,
    authorities: Option<&Path>,
) -> Result<impl Read + Write + use<>, String> {
    let roots = match authorities {
        Some(own) => roots_of(own)?,
        None => roots_of_system()?,
    };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| format!("{host}: {error}"))?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    Ok(StreamOwned::new(session, stream))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

fn certificates_of(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error| format!("cannot read the certificates {}: {error}", path.display());
    let own = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let own: Result<Vec<_>, _> = own.collect();
    let own = own.map_err(failed)?;
    if own.is_empty() {
        return Err(format!("{} holds no certificate", path.display()));
    }
    Ok(own)
}

fn roots_of(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(certificates_of(path)?);
    if taken == 0 {
        return Err(format!(
            "{} holds no certificate of an authority",
            path.display()
        ));
    }
    Ok(roots)
}

fn roots_of_system() -> Result<RootCertStore, String> {
    let found = AUTHORITIES
        .iter()
        .map(Path::new)
        .find(|path| path.is_file());
    let missing = || "this system has no file of trusted authorities".to_owned();
    roots_of(found.ok_or_else(missing)?)
}
