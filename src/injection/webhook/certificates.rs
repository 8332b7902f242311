//! The webhook's certificates: the one that is served now, how new ones are made, and how those of a folder are followed.
//! A key is in no log and in no `Debug`.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;

/// The certificate that is served at this moment; none, until there is one.
#[derive(Default)]
pub(super) struct Current(RwLock<Option<Arc<CertifiedKey>>>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Current {
    /// Serves another certificate from now on, to new connections.
    pub(super) fn set(&self, certificate: &[u8], key: &[u8]) -> Result<(), String> {
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("the certificate can't be read: {error}"))?;
        if chain.is_empty() {
            return Err("the certificate can't be read: there is none in it".to_owned());
        }
        // what is wrong with a key is not told in detail
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| "the key can't be read".to_owned())?;
        let key =
            any_supported_type(&key).map_err(|_| "the key is of no kind that can be used".to_owned())?;
        let certified = CertifiedKey::new(chain, key);
        certified
            .keys_match()
            .map_err(|error| format!("certificate and key don't belong together: {error}"))?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }
}

/// How often a folder is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Serves what is in a folder, and what comes to be there. What can't be used is told of, and the last one goes on.
pub(super) async fn follow(folder: &Path, current: &Current) {
    let mut served: Option<(Vec<u8>, Vec<u8>)> = None;
    let mut told: Option<String> = None;
    loop {
        let pair = read(&folder.join("tls.crt")).and_then(|crt| Ok((crt, read(&folder.join("tls.key"))?)));
        let result = match pair {
            Ok(pair) if served.as_ref() == Some(&pair) => Ok(()),
            Ok(pair) => current.set(&pair.0, &pair.1).map(|()| {
                tracing::info!(folder = %folder.display(), "the webhook's certificate was taken up");
                served = Some(pair);
            }),
            Err(error) => Err(error),
        };
        let error = result.err();
        if error != told
            && let Some(error) = &error
        {
            tracing::warn!(%error, "the webhook's certificate can't be taken up");
        }
        told = error;
        tokio::time::sleep(LOOK).await;
    }
}

/// No certificate or key is longer.
const LONGEST_FILE: u64 = 1 << 20;

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).and_then(|file| file.take(LONGEST_FILE).read_to_end(&mut bytes));
    file.map(|_| bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// How long certificates are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetimes {
    /// The serving certificate's.
    pub(super) serving: Duration,
    /// The authority's: many times that, so that the old one is still good for whatever it has signed.
    pub(super) authority: Duration,
}

impl Lifetimes {
    pub(super) fn of(serving: Duration) -> Self {
        Self { serving, authority: serving.saturating_mul(12) }
    }
}

/// A certificate with its key, and when it is to be renewed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
    /// Seconds since 1970.
    pub(super) renew_after: i64,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("renew_after", &self.renew_after).finish_non_exhaustive()
    }
}

/// Clocks differ: certificates are valid from so long ago.
const SKEW: Duration = Duration::from_secs(3600);

fn validity(params: &mut CertificateParams, lifetime: Duration) -> i64 {
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - SKEW, now + lifetime);
    (now + lifetime.mul_f64(2.0 / 3.0)).unix_timestamp()
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "kafka-features-operator webhook authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

/// Makes an authority.
pub(super) fn make_authority(lifetime: Duration) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = authority_params();
    let renew_after = validity(&mut params, lifetime);
    Ok(Pair { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem(), renew_after })
}

/// Makes a serving certificate for the names, signed by the authority.
pub(super) fn make_serving(
    authority: &Pair,
    names: &[String],
    lifetime: Duration,
) -> Result<Pair, rcgen::Error> {
    let issuer = Issuer::new(authority_params(), KeyPair::from_pem(&authority.key)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let renew_after = validity(&mut params, lifetime);
    Ok(Pair { certificate: params.signed_by(&key, &issuer)?.pem(), key: key.serialize_pem(), renew_after })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_can_be_served_and_shows_no_key() {
        let authority = make_authority(Duration::from_secs(600)).unwrap();
        let names = ["a.b.svc".to_owned()];
        let serving = make_serving(&authority, &names, Duration::from_secs(60)).unwrap();
        let current = Current::default();
        current.set(serving.certificate.as_bytes(), serving.key.as_bytes()).unwrap();
        let left = serving.renew_after - OffsetDateTime::now_utc().unix_timestamp();
        assert!((38..=40).contains(&left), "{left}");
        assert!(!format!("{authority:?}{serving:?}{current:?}").contains("PRIVATE"));
        let other = make_serving(&authority, &names, Duration::from_secs(60)).unwrap();
        let mixed = current.set(serving.certificate.as_bytes(), other.key.as_bytes()).unwrap_err();
        assert!(mixed.contains("belong together"), "{mixed}");
        assert!(current.set(b"", serving.key.as_bytes()).unwrap_err().contains("none in it"));
        assert!(current.set(serving.certificate.as_bytes(), b"x").unwrap_err().contains("key"));
    }
}
