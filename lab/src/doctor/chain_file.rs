//! A file of certificates, judged by its size: whether the server's flight with it fits into the initial window.
//!
//! Source: RFC 8446 section 4.4.2, RFC 6928.

use super::code::Code;
use super::finding::{Finding, Severity};

/// Judges the contents of a file of `ssl_certificate`; `None` where its certificates fit.
///
/// # Errors
/// A sentence where there is no certificate in it.
pub fn chain_file(pem: &[u8]) -> Result<Option<Finding>, String> {
    let chain = tls::Chain::from_pem(pem).map_err(|fault| fault.to_string())?;
    let certificates: Vec<&[u8]> = chain.certificates().collect();
    let own: usize = certificates.iter().map(|der| der.len() + ENTRY_BYTES).sum();
    let flight = own + REST_BYTES;
    if flight <= INITIAL_WINDOW_BYTES {
        return Ok(None);
    }
    let names: Vec<String> = certificates.iter().map(|der| shown(der)).collect();
    let over = flight - INITIAL_WINDOW_BYTES;
    let title = format!(
        "{} certificates with {own} bytes make the server's flight about {flight} bytes, {over} above the initial window: a full handshake takes a round trip more",
        certificates.len()
    );
    let found = Finding::new(Code::ChainOverWindow, Severity::Bad, title)
        .costs(0.0, 1.0)
        .proof("certificate_bytes", own)
        .proof("flight_bytes_about", flight)
        .proof("bytes_over_window_about", over)
        .proof("certificates", names.clone());
    let roots = certificates
        .iter()
        .zip(&names)
        .skip(1)
        .filter(|(der, _)| is_root(der));
    let mut found = roots.fold(found, |found, (_, name)| {
        found.mend(format!(
            "ssl_certificate: take the root out of the file, no client needs it: {name}"
        ))
    });
    if found.mend.is_empty() {
        found = found.mend("ssl_certificate: a chain with fewer or ECDSA certificates, or without cross-signed ones");
    }
    Ok(Some(
        found.mend("firstbyte: ssl_certificate_compression on;"),
    ))
}

/// Whether a certificate was issued by itself.
fn is_root(der: &[u8]) -> bool {
    let parsed = tls::Certificate::parse(der);
    parsed.is_some_and(|one| !one.subject().is_empty() && one.subject() == one.issuer())
}

fn shown(der: &[u8]) -> String {
    let subject = tls::Certificate::parse(der).map(|one| one.subject());
    let subject = subject.unwrap_or_else(|| "(unreadable)".to_owned());
    let subject: String = subject.chars().take(NAME_CHARS_MAX).collect();
    format!("{subject}, {} bytes", der.len())
}

/// Ten segments of Ethernet.
pub(super) const INITIAL_WINDOW_BYTES: usize = 14_600;
/// The length and the extensions of a certificate in its message.
const ENTRY_BYTES: usize = 5;
/// The rest of the flight in TLS 1.3: ServerHello, extensions, a signature of RSA with 2048 bits, Finished, heads of records.
const REST_BYTES: usize = 600;
/// The characters of a name in a report.
const NAME_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    fn der(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_be_bytes();
        let mut der = vec![tag];
        match body.len() {
            0..0x80 => der.push(length[3]),
            0x80..0x100 => der.extend([0x81, length[3]]),
            _ => der.extend([0x82, length[2], length[3]]),
        }
        [der, body.to_vec()].concat()
    }

    fn name(text: &str) -> Vec<u8> {
        let pair = [der(6, &[0x55, 4, 3]), der(0x0c, text.as_bytes())].concat();
        der(0x30, &der(0x31, &der(0x30, &pair)))
    }

    /// The fields of a certificate with a key of this size, and no sound signature.
    fn certificate(subject: &str, issuer: &str, key_bytes: usize) -> Vec<u8> {
        let algorithm = der(0x30, &der(6, &[0x2a, 3]));
        let time = der(0x17, b"260101000000Z");
        let key = [algorithm.clone(), der(3, &vec![0; key_bytes])].concat();
        let signed = [
            der(2, &[1]),
            algorithm.clone(),
            name(issuer),
            der(0x30, &[time.clone(), time].concat()),
            name(subject),
            der(0x30, &key),
        ];
        der(
            0x30,
            &[der(0x30, &signed.concat()), algorithm, der(3, &[0, 1])].concat(),
        )
    }

    fn pem(certificates: &[Vec<u8>]) -> Vec<u8> {
        let one = |der: &Vec<u8>| {
            let text = BASE64_STANDARD.encode(der);
            let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
            let lines: Vec<_> = lines.collect();
            let text = lines.join("\n");
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        certificates
            .iter()
            .map(one)
            .collect::<String>()
            .into_bytes()
    }

    #[test]
    fn the_window_is_exact() {
        let extra = certificate("leaf", "other", 10_000).len() - 10_000;
        let fits = INITIAL_WINDOW_BYTES - REST_BYTES - ENTRY_BYTES - extra;
        assert_eq!(
            chain_file(&pem(&[certificate("leaf", "other", fits)])),
            Ok(None)
        );
        let found = chain_file(&pem(&[certificate("leaf", "other", fits + 1)]));
        let found = found.expect("it is a chain").expect("it is too large");
        assert_eq!(found.evidence["bytes_over_window_about"], 1);
        assert!(found.mend[0].contains("fewer"), "{found:?}");
    }

    #[test]
    fn a_root_is_named() {
        let chain = [
            certificate("leaf", "one", 9000),
            certificate("one", "root", 2000),
            certificate("root", "root", 4000),
        ];
        let found = chain_file(&pem(&chain))
            .expect("it is a chain")
            .expect("it is too large");
        assert!(found.mend[0].contains("root out of the file"), "{found:?}");
        assert!(found.mend[0].contains("CN=root"), "{found:?}");
        // A server's own certificate is needed, whoever has issued it.
        let own = chain_file(&pem(&[certificate("leaf", "leaf", 15_000)]));
        let own = own.expect("it is a chain").expect("it is too large");
        assert!(own.mend[0].contains("fewer"), "{own:?}");
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        assert!(chain_file(b"no").is_err());
    }
}
