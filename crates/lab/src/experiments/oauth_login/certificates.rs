//! A certificate authority for one run, and a certificate that it signed for `localhost`.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// What both ends of a connection need.
#[derive(Clone)]
pub(super) struct Certificates {
    /// For who offers a service.
    pub(super) server: Arc<ServerConfig>,
    /// For who asks: trusts this authority alone.
    pub(super) trust: Arc<ClientConfig>,
    /// The authority's certificate for other programs.
    pub(super) authority_pem: String,
    /// The certificate of `localhost`, for a provider that is a program of its own.
    pub(super) server_pem: String,
    /// Its key.
    pub(super) key_pem: String,
}

/// Makes them; the keys live in memory only.
pub(super) fn make() -> Result<Certificates, String> {
    let failed = |error: &dyn std::fmt::Display| format!("no certificate could be made: {error}");
    let authority_key = KeyPair::generate().map_err(|error| failed(&error))?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    authority
        .distinguished_name
        .push(DnType::CommonName, "pgclinic laboratory");
    let root = authority
        .self_signed(&authority_key)
        .map_err(|error| failed(&error))?;
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let names = vec!["localhost".to_owned()];
    let leaf = CertificateParams::new(names)
        .and_then(|params| params.signed_by(&key, &Issuer::new(authority, &authority_key)))
        .map_err(|error| failed(&error))?;
    let (authority_pem, server_pem) = (root.pem(), leaf.pem());
    let (leaf, root) = (leaf.der().clone(), root.der().clone());
    Ok(Certificates {
        server: server_side(leaf, key.serialize_der()).map_err(|error| failed(&error))?,
        trust: client_side(root).map_err(|error| failed(&error))?,
        authority_pem,
        server_pem,
        key_pem: key.serialize_pem(),
    })
}

fn server_side(
    leaf: CertificateDer<'static>,
    key: Vec<u8>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf], key)?;
    Ok(Arc::new(config))
}

fn client_side(root: CertificateDer<'static>) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(root)?;
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
