//! Files that the directives name: read once each, with OpenSSL's words for what is wrong with them.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Builder, ConfError, Directive, os_error};
use server_http::build::Build;
use tls::{Authorities, Chain, Crl, FileFault, Identity, Key, TicketKey};

use super::error;
use super::stapling::Fetched;

/// What a certificate is made of: the words for itself, its key and the passwords, and an OCSP response.
type Sources = [Vec<u8>; 4];

/// What has been read, so that servers which name the same files share it.
#[derive(Default)]
pub(super) struct Read {
    identities: HashMap<Sources, Identity>,
    authorities: HashMap<PathBuf, Authorities>,
    /// Certificates with OCSP responses that are fetched.
    pub(super) fetched: Vec<Fetched>,
    /// Places of directives about which there has been a warning: servers inherit them.
    warned: HashSet<(u32, u32, u32)>,
}

impl Read {
    /// Warns about a directive, once.
    pub(super) fn warn(&mut self, b: &mut Build, d: &Directive, text: impl Into<String>) {
        if self.warned.insert((d.pos.file, d.pos.line, d.pos.column)) {
            b.warn(error(d, text));
        }
    }

    /// A certificate with its key.
    pub(super) fn identity(
        &mut self,
        b: &mut Build,
        certificate: &Directive,
        key: &Directive,
        passwords: Option<&Directive>,
        ocsp: Option<&[u8]>,
    ) -> Result<Identity, ConfError> {
        let id = [
            certificate.arg(0).to_vec(),
            key.arg(0).to_vec(),
            passwords.map_or_else(Vec::new, |d| d.arg(0).to_vec()),
            ocsp.unwrap_or_default().to_vec(),
        ];
        if let Some(known) = self.identities.get(&id) {
            return Ok(known.clone());
        }
        let what = "certificate";
        let text = load(b, certificate, what)?;
        let chain = Chain::from_pem(&text)
            .map_err(|fault| cannot_load(b, certificate, what, &fault.to_string()))?;
        let what = "certificate key";
        let text = load(b, key, what)?;
        let words = match passwords {
            Some(d) => read_passwords(b, d)?,
            None => Vec::new(),
        };
        let secret = Key::from_pem(&text, &words).map_err(|fault| {
            let error = cannot_load(b, key, what, &fault.to_string());
            match fault {
                FileFault::BadPassword if words.is_empty() => error.with_hint(
                    "the key is encrypted: \"ssl_password_file\" names a file with its password",
                ),
                _ => error,
            }
        })?;
        let identity = Identity::new(chain, &secret, ocsp.map(<[u8]>::to_vec)).map_err(|_| {
            let name = shown(b, key);
            error(
                key,
                format!("SSL_CTX_use_PrivateKey(\"{name}\") failed {MISMATCH}"),
            )
        })?;
        self.identities.insert(id, identity.clone());
        Ok(identity)
    }

    /// Certificates of authorities.
    pub(super) fn authorities(
        &mut self,
        b: &mut Build,
        d: &Directive,
    ) -> Result<Authorities, ConfError> {
        let path = b.loader().conf_path(d.arg(0));
        if let Some(known) = self.authorities.get(&path) {
            return Ok(known.clone());
        }
        let text = load(b, d, "certificate")?;
        let authorities = Authorities::from_pem(&text)
            .map_err(|fault| cannot_load(b, d, "certificate", &fault.to_string()))?;
        self.authorities.insert(path, authorities.clone());
        Ok(authorities)
    }
}

/// Lists of revoked certificates.
pub(super) fn crls(b: &mut Build, d: &Directive) -> Result<Vec<Crl>, ConfError> {
    let failed =
        |b: &mut Build, why: &str| error(d, format!("cannot load CRL \"{}\": {why}", shown(b, d)));
    let bytes = bytes(b, d).map_err(|why| failed(b, &why))?;
    Crl::from_pem(&bytes).map_err(|fault| failed(b, &fault.to_string()))
}

/// An OCSP response, DER.
pub(super) fn ocsp(b: &mut Build, d: &Directive) -> Result<Vec<u8>, ConfError> {
    let name = shown(b, d);
    let bytes = bytes(b, d).map_err(|why| {
        let why = why.trim_start_matches("BIO_new_file() failed").trim_start();
        error(d, format!("BIO_new_file(\"{name}\") failed {why}"))
    })?;
    if !is_ocsp(&bytes) {
        let text = format!("d2i_OCSP_RESPONSE_bio(\"{name}\") failed");
        return Err(error(d, text));
    }
    Ok(bytes)
}

/// Whether bytes look like an OCSP response: a sequence that begins with its status.
pub(super) fn is_ocsp(bytes: &[u8]) -> bool {
    matches!(bytes, [0x30, _, _, _, ..])
}

/// Looks at a file of parameters that is not used.
pub(super) fn dhparam(b: &mut Build, d: &Directive) -> Result<(), ConfError> {
    let name = shown(b, d);
    let bytes = bytes(b, d).map_err(|why| {
        let why = why.trim_start_matches("BIO_new_file() failed").trim_start();
        error(d, format!("BIO_new_file(\"{name}\") failed {why}"))
    })?;
    let label = b"-----BEGIN DH PARAMETERS-----";
    if !bytes.windows(label.len()).any(|part| part == label) {
        let text = format!("PEM_read_bio_Parameters(\"{name}\") failed");
        return Err(error(d, text));
    }
    Ok(())
}

/// A key for tickets.
pub(super) fn ticket_key(b: &mut Build, d: &Directive) -> Result<Arc<TicketKey>, ConfError> {
    let path = b.loader().conf_path(d.arg(0));
    let name = path.display();
    let bytes = b.loader().source().read(&path);
    let bytes =
        bytes.map_err(|e| error(d, format!("open() \"{name}\" failed ({})", os_error(&e))))?;
    match TicketKey::new(&bytes) {
        Some(key) => Ok(Arc::new(key)),
        None => Err(error(d, format!("\"{name}\" must be 48 or 80 bytes"))),
    }
}

/// The passwords of a file, a line each.
pub(super) fn read_passwords(b: &mut Build, d: &Directive) -> Result<Vec<Vec<u8>>, ConfError> {
    let path = b.loader().conf_path(d.arg(0));
    let name = path.display();
    let text = b.loader().source().read_piped(&path);
    let text =
        text.map_err(|e| error(d, format!("open() \"{name}\" failed ({})", os_error(&e))))?;
    passwords(&text).ok_or_else(|| error(d, format!("too long line in \"{name}\"")))
}

/// The passwords of a text, a line each; `None` if one is too long.
pub(super) fn passwords(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let lines = text
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let passwords: Vec<Vec<u8>> = lines
        .filter(|line| !line.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    let is_long = |password: &Vec<u8>| password.len() >= PASSWORD_BYTES_MAX;
    match passwords.is_empty() {
        true => Some(vec![Vec::new()]),
        false => (!passwords.iter().any(is_long)).then_some(passwords),
    }
}

/// The value of a directive as messages show it: a path in full, and no secret.
fn shown(b: &mut Build, d: &Directive) -> String {
    if d.arg(0).starts_with(DATA) {
        return "data:...".to_owned();
    }
    b.loader().conf_path(d.arg(0)).display().to_string()
}

fn cannot_load(b: &mut Build, d: &Directive, what: &str, why: &str) -> ConfError {
    error(d, format!("cannot load {what} \"{}\": {why}", shown(b, d)))
}

/// Refuses keys that are in no file.
pub(super) fn is_supported(d: &Directive) -> Result<(), ConfError> {
    let value = d.arg(0);
    if value.starts_with(b"engine:") || value.starts_with(b"store:") {
        let text = format!(
            "\"{}\" in \"{}\" is not supported: keys are read from files alone",
            d.arg_str(0).split(':').next().unwrap_or_default(),
            d.name()
        );
        return Err(error(d, text));
    }
    Ok(())
}

/// The bytes that `ssl_certificate` and the like name, or have.
fn load(b: &mut Build, d: &Directive, what: &str) -> Result<Vec<u8>, ConfError> {
    is_supported(d)?;
    bytes(b, d).map_err(|why| cannot_load(b, d, what, &why))
}

fn bytes(b: &mut Build, d: &Directive) -> Result<Vec<u8>, String> {
    if let Some(data) = d.arg(0).strip_prefix(DATA) {
        return Ok(data.to_vec());
    }
    let path = b.loader().conf_path(d.arg(0));
    let bytes = b.loader().source().read_object(&path);
    bytes.map_err(|error| cannot_open(&error, &path.display().to_string()))
}

/// What OpenSSL says of a file that cannot be opened.
pub(super) fn cannot_open(error: &io::Error, path: &str) -> String {
    let text = os_error(error);
    let (code, text) = text.split_once(": ").unwrap_or(("0", &text));
    let code: u32 = code.parse().unwrap_or(0);
    let second = match code {
        ENOENT => "10000080:BIO routines::no such file",
        _ => "10080002:BIO routines::system lib",
    };
    let system = SYSTEM_ERROR | code;
    format!(
        "BIO_new_file() failed (SSL: error:{system:08X}:system library::{text}:\
         calling fopen({path}, r) error:{second})"
    )
}

/// What OpenSSL says of a key that is not its certificate's.
pub(super) const MISMATCH: &str =
    "(SSL: error:05800074:x509 certificate routines::key values mismatch)";
const ENOENT: u32 = 2;
/// Marks an error of the system among OpenSSL's.
const SYSTEM_ERROR: u32 = 0x8000_0000;
/// Begins a value that is PEM itself.
pub(super) const DATA: &[u8] = b"data:";
/// Longest password, with its line end.
const PASSWORD_BYTES_MAX: usize = 4096;
