//! A file of certificates, judged by its size: whether the server's flight with it fits into the initial window.
//!
//! Source: RFC 8446 section 4.4.2, RFC 6928.

use super::finding::Finding;
use super::judge::first_flight::judge_file;

/// Analyzes the contents of an `ssl_certificate` file; `None` if its certificates fit.
///
/// # Errors
/// The file has no certificate; a sentence.
pub fn chain_file(pem: &[u8]) -> Result<Option<Finding>, String> {
    let file = tls::Chain::from_pem(pem).map_err(|fault| fault.to_string())?;
    let certificates: Vec<Vec<u8>> = file.certificates().map(<[u8]>::to_vec).collect();
    Ok(judge_file(&certificates))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;

    use super::*;
    use crate::doctor::judge::first_flight::{ENTRY_BYTES, REST_BYTES};
    use crate::doctor::slow_start::INITIAL_WINDOW_BYTES;

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
        let room = INITIAL_WINDOW_BYTES - REST_BYTES - ENTRY_BYTES;
        let fits = usize::try_from(room).expect("a size") - extra;
        assert_eq!(
            chain_file(&pem(&[certificate("leaf", "other", fits)])),
            Ok(None)
        );
        let found = chain_file(&pem(&[certificate("leaf", "other", fits + 1)]));
        let found = found.expect("it is a chain").expect("it is too large");
        assert_eq!(found.evidence["bytes_over_window_about"], 1);
        assert!(found.fixes[0].contains("fewer"), "{found:?}");
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
        assert!(found.fixes[0].contains("it is a root"), "{found:?}");
        assert!(found.fixes[0].contains("CN=root"), "{found:?}");
        // A server's own certificate is needed, even if self-signed.
        let own = chain_file(&pem(&[certificate("leaf", "leaf", 15_000)]));
        let own = own.expect("it is a chain").expect("it is too large");
        assert!(own.fixes[0].contains("fewer"), "{own:?}");
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        assert!(chain_file(b"no").is_err());
    }
}
