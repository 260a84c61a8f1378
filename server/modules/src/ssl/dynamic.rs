//! `ssl_certificate` and `ssl_certificate_key` with variables, and those of connections to servers: loaded at each
//! handshake, by the worker with its own rights.
//!
//! If one word of a server has a variable, all its certificates and keys are loaded at the handshake, as in nginx.
//! Passwords are read with the configuration. A mismatched pair may result from a change between two reads of the
//! cache, so it is read once more from its files. Absent: stapling, since one response does not fit all certificates.
//!
//! Source: nginx documentation, `ssl_certificate`, `ssl_certificate_key`.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use conf::{Builder, ConfError, Directive};
use engines::http::FileRange;
use server_base::errlog::{Level, Shown};
use server_base::files::{FileError, Files, OpenPolicy};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::handler::DynamicCertificates;
use server_http::value::Value;
use tls::{Chain, Config, Identity, Key};

use super::cache::{Cache, CacheLookup, Id, Object, Stamp};
use super::files::{self, DATA, MISMATCH, cannot_open};

/// The certificates of a server.
pub(super) struct CertificateTemplates {
    pairs: Vec<(Value, Value)>,
    /// The certificates without variables.
    fixed: Vec<Identity>,
    loader: Arc<CertificateLoader>,
}

/// Loads certificates and keys by their names.
pub(super) struct CertificateLoader {
    passwords: Vec<Vec<u8>>,
    cache: Option<Arc<Cache>>,
    /// The directory of relative paths.
    prefix: PathBuf,
}

/// Whether certificates have to be loaded at each handshake.
pub(super) fn is_dynamic(certificates: &[Arc<Directive>], keys: &[Arc<Directive>]) -> bool {
    let pairs = certificates.iter().zip(keys);
    let mut words = pairs.flat_map(|(certificate, key)| [certificate, key]);
    words.any(|d| d.arg(0).contains(&b'$'))
}

impl CertificateTemplates {
    /// Compiles pairs of `ssl_certificate` and `ssl_certificate_key` with variables.
    pub(super) fn new<'d>(
        b: &mut ConfigBuilder,
        words: impl Iterator<Item = (&'d Arc<Directive>, &'d Arc<Directive>)>,
        passwords: Option<&Directive>,
        fixed: Vec<Identity>,
        cache: Option<Arc<Cache>>,
    ) -> Result<Self, ConfError> {
        let mut pairs = Vec::new();
        for (certificate, key) in words {
            files::is_supported(certificate)?;
            files::is_supported(key)?;
            let certificate = Value::compile(b, certificate, certificate.word(0))?;
            pairs.push((certificate, Value::compile(b, key, key.word(0))?));
        }
        let passwords = match passwords {
            Some(d) => files::read_passwords(b, d)?,
            None => Vec::new(),
        };
        Ok(Self {
            pairs,
            fixed,
            loader: Arc::new(CertificateLoader {
                passwords,
                cache,
                prefix: b.loader().conf_path(b""),
            }),
        })
    }

    /// Returns the loader, which holds no other part of the configuration.
    pub(super) fn loader(&self) -> &Arc<CertificateLoader> {
        &self.loader
    }

    /// Returns the names of the certificate and its key for a server, as the client of a connection; `None` if the first
    /// one is empty.
    pub(super) fn client_pair(&self, x: &mut Exchange, cx: &mut Ctx<'_>) -> Option<[Id; 2]> {
        let (certificate, key) = self.pairs.first()?;
        let certificate = certificate.to_vec(x, cx);
        let is_named = !certificate.is_empty();
        is_named.then(|| self.loader.pair(certificate, key.to_vec(x, cx)))
    }
}

impl CertificateLoader {
    fn pair(&self, certificate: Vec<u8>, key: Vec<u8>) -> [Id; 2] {
        [self.id(false, certificate), self.id(true, key)]
    }

    /// Loads a certificate and its key, from the cache or from files. `now_ms` is monotonic, in milliseconds.
    ///
    /// # Errors
    /// The text for the log, if one cannot be loaded, or they do not belong together.
    pub(super) fn identity(
        &self,
        files: &mut dyn Files,
        now_ms: u64,
        [certificate, key]: &[Id; 2],
    ) -> Result<Identity, String> {
        let mut anew = false;
        loop {
            let chain = match self.object((files, now_ms), certificate, anew)? {
                Object::Chain(chain) => chain,
                Object::Key(_) => return Err("internal error".to_owned()),
            };
            let secret = match self.object((files, now_ms), key, anew)? {
                Object::Key(secret) => secret,
                Object::Chain(_) => return Err("internal error".to_owned()),
            };
            match Identity::new(chain, &secret, None) {
                Ok(identity) => return Ok(identity),
                Err(_) if !anew => anew = true,
                Err(_) => {
                    let name = display(key);
                    return Err(format!("SSL_use_PrivateKey(\"{name}\") failed {MISMATCH}"));
                }
            }
        }
    }

    fn id(&self, is_key: bool, value: Vec<u8>) -> Id {
        let is_data = value.starts_with(DATA);
        let name = match is_data {
            true => value,
            false => self
                .prefix
                .join(OsStr::from_bytes(&value))
                .into_os_string()
                .into_vec(),
        };
        Id {
            is_key,
            is_data,
            name,
        }
    }

    /// Returns an object from the cache, or reads it from its file if `anew`.
    fn object(
        &self,
        (files, now_ms): (&mut dyn Files, u64),
        id: &Id,
        anew: bool,
    ) -> Result<Object, String> {
        let Some(cache) = &self.cache else {
            return Ok(self.read(files, id)?.0);
        };
        let now_s = now_ms / 1000;
        let found = match anew && !id.is_data {
            true => CacheLookup::Nothing,
            false => cache.find(id, now_s),
        };
        match found {
            CacheLookup::Valid(object) => return Ok(object),
            CacheLookup::Old(object, stamp) if stamp.is_some() && stamp == stamp_now(files, id) => {
                cache.insert(id, object.clone(), stamp, now_s);
                return Ok(object);
            }
            _ => {}
        }
        match self.read(files, id) {
            Ok((object, stamp, true)) => {
                cache.insert(id, object.clone(), stamp, now_s);
                Ok(object)
            }
            Ok((object, _, false)) => {
                cache.forget(id);
                Ok(object)
            }
            Err(why) => {
                cache.forget(id);
                Err(why)
            }
        }
    }

    /// Reads a certificate or a key. The flag is false if it must not be cached: another server may lack the password
    /// of an encrypted key.
    fn read(&self, files: &mut dyn Files, id: &Id) -> Result<(Object, Stamp, bool), String> {
        let what = if id.is_key {
            "certificate key"
        } else {
            "certificate"
        };
        let failed = |why: String| format!("cannot load {what} \"{}\": {why}", display(id));
        let (text, stamp) = match id.name.strip_prefix(DATA) {
            Some(data) if id.is_data => (data.to_vec(), None),
            _ => file(files, &id.name).map_err(failed)?,
        };
        if !id.is_key {
            let chain = Chain::from_pem(&text).map_err(|fault| failed(fault.to_string()))?;
            return Ok((Object::Chain(chain), stamp, true));
        }
        let key = Key::from_pem(&text, &self.passwords);
        let key = key.map_err(|fault| failed(fault.to_string()))?;
        let is_encrypted = text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
        Ok((Object::Key(key), stamp, !is_encrypted))
    }
}

impl DynamicCertificates for CertificateTemplates {
    fn load(&self, x: &mut Exchange, cx: &mut Ctx<'_>, settings: &Config) -> Option<Config> {
        let mut identities = self.fixed.clone();
        for (certificate, key) in &self.pairs {
            let certificate = certificate.to_vec(x, cx);
            let pair = self.loader.pair(certificate, key.to_vec(x, cx));
            match (self.loader).identity(cx.files, cx.clock.mono_ms, &pair) {
                Ok(identity) => identities.push(identity),
                Err(why) => {
                    x.log(Level::Error, format_args!("{why} while SSL handshaking"));
                    return None;
                }
            }
        }
        Some(settings.with(identities))
    }
}

/// Reads a file; returns its bytes and its stamp.
fn file(files: &mut dyn Files, path: &[u8]) -> Result<(Vec<u8>, Stamp), String> {
    let name = Shown(path).to_string();
    let failed = |error: FileError| cannot_open(&io::Error::from_raw_os_error(error.errno), &name);
    let opened = files
        .open_descriptor(path, &OpenPolicy::default())
        .map_err(failed)?;
    let Some(file) = opened.file.as_ref().filter(|_| opened.meta.is_file) else {
        return Err(format!("\"{name}\" is not a regular file"));
    };
    if opened.meta.size > FILE_BYTES_MAX {
        return Err(format!("\"{name}\" has more than {FILE_BYTES_MAX} bytes"));
    }
    let range = FileRange {
        file: file.clone(),
        offset: 0,
        len: opened.meta.size,
    };
    let bytes = files.read(&range);
    let bytes = bytes.map_err(|error| cannot_open(&error, &name))?;
    Ok((bytes, Some((opened.meta.mtime_s, opened.meta.ino))))
}

fn stamp_now(files: &mut dyn Files, id: &Id) -> Stamp {
    let meta = files.stat(&id.name, &OpenPolicy::default()).ok()?;
    Some((meta.mtime_s, meta.ino))
}

/// Returns a name for log messages: without secrets, and escaped, since clients can influence it.
fn display(id: &Id) -> String {
    match id.is_data {
        true => "data:...".to_owned(),
        false => Shown(&id.name).to_string(),
    }
}

/// Part of every encrypted key, in both PEM formats.
const ENCRYPTED: &[u8] = b"ENCRYPTED";
/// Maximum size of a file with certificates or a key, bytes: reading it blocks the worker's thread.
const FILE_BYTES_MAX: u64 = 1 << 20;
