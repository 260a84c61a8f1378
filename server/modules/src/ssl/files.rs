//! Reads the files named by directives; errors are in OpenSSL's words.

use std::io;
use std::sync::Arc;

use conf::{Builder, ConfError, Directive, os_error};
use server_http::assemble::ConfigBuilder;
use tls::{Crl, TicketKey};

use super::fault::error;

/// Reads lists of revoked certificates.
pub(super) fn crls(b: &mut ConfigBuilder, d: &Directive) -> Result<Vec<Crl>, ConfError> {
    let failed = |b: &mut ConfigBuilder, why: &str| {
        error(
            d,
            format!("cannot load CRL \"{}\": {why}", display_name(b, d)),
        )
    };
    let bytes = bytes(b, d).map_err(|why| failed(b, &why))?;
    Crl::from_pem(&bytes).map_err(|fault| failed(b, &fault.to_string()))
}

/// Reads an OCSP response in DER.
pub(super) fn ocsp(b: &mut ConfigBuilder, d: &Directive) -> Result<Vec<u8>, ConfError> {
    let name = display_name(b, d);
    let bytes = bytes(b, d).map_err(|why| {
        let why = why.trim_start_matches("BIO_new_file() failed").trim_start();
        error(d, format!("BIO_new_file(\"{name}\") failed {why}"))
    })?;
    if !is_ocsp(&bytes) {
        let text = format!("d2i_OCSP_RESPONSE_bio(\"{name}\") failed");
        return Err(error(d, text));
    }
    Ok(bytes.to_vec())
}

/// Whether bytes look like an OCSP response: a sequence that begins with its status.
pub(super) fn is_ocsp(bytes: &[u8]) -> bool {
    matches!(bytes, [0x30, _, _, _, ..])
}

/// Checks a file of Diffie-Hellman parameters, which are not used: its PEM label is one of [`DH_LABELS`].
pub(super) fn dhparam(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let name = display_name(b, d);
    let bytes = bytes(b, d).map_err(|why| {
        let why = why.trim_start_matches("BIO_new_file() failed").trim_start();
        error(d, format!("BIO_new_file(\"{name}\") failed {why}"))
    })?;
    let found = |label: &&[u8]| memchr::memmem::find(&bytes, label).is_some();
    if !DH_LABELS.iter().any(found) {
        let text = format!("PEM_read_bio_Parameters(\"{name}\") failed");
        return Err(error(d, text));
    }
    Ok(())
}

/// Labels that OpenSSL accepts: PKCS #3, and X9.42, which `openssl dhparam -dsaparam` of OpenSSL 3 writes.
const DH_LABELS: [&[u8]; 2] = [
    b"-----BEGIN DH PARAMETERS-----",
    b"-----BEGIN X9.42 DH PARAMETERS-----",
];

/// Reads a key for tickets.
pub(super) fn ticket_key(
    b: &mut ConfigBuilder,
    d: &Directive,
) -> Result<Arc<TicketKey>, ConfError> {
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

/// Reads the passwords of a file, one per line.
pub(super) fn read_passwords(
    b: &mut ConfigBuilder,
    d: &Directive,
) -> Result<Vec<Vec<u8>>, ConfError> {
    let path = b.loader().conf_path(d.arg(0));
    let name = path.display();
    let text = b.loader().source().read_piped(&path);
    let text =
        text.map_err(|e| error(d, format!("open() \"{name}\" failed ({})", os_error(&e))))?;
    passwords(&text).ok_or_else(|| error(d, format!("too long line in \"{name}\"")))
}

/// Splits a text into passwords, one per line; `None` if one is too long.
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

/// Formats the value of a directive for messages: a path in full, and no secret.
pub(super) fn display_name(b: &mut ConfigBuilder, d: &Directive) -> String {
    if d.arg(0).starts_with(DATA) {
        return "data:...".to_owned();
    }
    b.loader().conf_path(d.arg(0)).display().to_string()
}

pub(super) fn cannot_load(
    b: &mut ConfigBuilder,
    d: &Directive,
    what: &str,
    why: &str,
) -> ConfError {
    error(
        d,
        format!("cannot load {what} \"{}\": {why}", display_name(b, d)),
    )
}

/// Refuses keys of engines and stores, which are not files.
pub(super) fn is_supported(d: &Directive) -> Result<(), ConfError> {
    let value = d.arg(0);
    if value.starts_with(b"engine:") || value.starts_with(b"store:") {
        let text = format!(
            "\"{}\" in \"{}\" is not supported: keys are read from files only",
            d.arg_str(0).split(':').next().unwrap_or_default(),
            d.name()
        );
        return Err(error(d, text));
    }
    Ok(())
}

/// Returns the bytes of a certificate or key: of a file, or of a `data:` value.
pub(super) fn load(
    b: &mut ConfigBuilder,
    d: &Directive,
    what: &str,
) -> Result<Arc<Vec<u8>>, ConfError> {
    is_supported(d)?;
    bytes(b, d).map_err(|why| cannot_load(b, d, what, &why))
}

fn bytes(b: &mut ConfigBuilder, d: &Directive) -> Result<Arc<Vec<u8>>, String> {
    if let Some(data) = d.arg(0).strip_prefix(DATA) {
        return Ok(Arc::new(data.to_vec()));
    }
    let path = b.loader().conf_path(d.arg(0));
    let bytes = b.loader().source().read_object(&path);
    bytes.map_err(|error| cannot_open(&error, &path.display().to_string()))
}

/// OpenSSL's text for a file that cannot be opened.
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

/// OpenSSL's text for a key that does not match its certificate.
pub(super) const MISMATCH: &str =
    "(SSL: error:05800074:x509 certificate routines::key values mismatch)";
const ENOENT: u32 = 2;
/// OpenSSL's flag for system errors.
const SYSTEM_ERROR: u32 = 0x8000_0000;
/// Prefix of a value that is PEM itself.
pub(super) const DATA: &[u8] = b"data:";
/// Maximum length of a password with its line end, bytes.
const PASSWORD_BYTES_MAX: usize = 4096;
