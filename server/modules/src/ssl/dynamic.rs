//! `ssl_certificate` and `ssl_certificate_key` with variables: loaded at each handshake, by the worker with its own rights.
//!
//! Where one word of a server has a variable, all its certificates and keys are loaded so, as in nginx. Passwords are read
//! when the configuration is. A pair that does not match may have been changed between two reads of a cache; it is read once
//! more from its files. Absent: stapling, since one response does not fit them all.
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
use server_base::files::{FileError, OpenPolicy};
use server_http::assemble::ConfigBuilder;
use server_http::exchange::{Ctx, Exchange};
use server_http::handler::DynamicCertificates;
use server_http::value::Value;
use tls::{Chain, Config, Identity, Key};

use super::cache::{Cache, CacheLookup, Id, Object, Stamp};
use super::files::{self, DATA, MISMATCH};

/// The certificates of a server.
pub(super) struct CertificateTemplates {
    pairs: Vec<(Value, Value)>,
    passwords: Vec<Vec<u8>>,
    /// Certificates that no variable names, beside them.
    fixed: Vec<Identity>,
    cache: Option<Arc<Cache>>,
    /// The folder that relative names start from.
    prefix: PathBuf,
}

/// Whether certificates are to be loaded at each handshake.
pub(super) fn is_dynamic(certificates: &[Arc<Directive>], keys: &[Arc<Directive>]) -> bool {
    let pairs = certificates.iter().zip(keys);
    let mut words = pairs.flat_map(|(certificate, key)| [certificate, key]);
    words.any(|d| d.arg(0).contains(&b'$'))
}

impl CertificateTemplates {
    /// Reads pairs of `ssl_certificate` and `ssl_certificate_key`, whose words have variables.
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
            passwords,
            fixed,
            cache,
            prefix: b.loader().conf_path(b""),
        })
    }

    fn identity(
        &self,
        x: &mut Exchange,
        cx: &mut Ctx<'_>,
        (certificate, key): &(Value, Value),
    ) -> Result<Identity, String> {
        let certificate = self.id(false, certificate.to_vec(x, cx));
        let key = self.id(true, key.to_vec(x, cx));
        let mut anew = false;
        loop {
            let chain = match self.object(cx, &certificate, anew)? {
                Object::Chain(chain) => chain,
                Object::Key(_) => return Err("internal error".to_owned()),
            };
            let secret = match self.object(cx, &key, anew)? {
                Object::Key(secret) => secret,
                Object::Chain(_) => return Err("internal error".to_owned()),
            };
            match Identity::new(chain, &secret, None) {
                Ok(identity) => return Ok(identity),
                Err(_) if !anew => anew = true,
                Err(_) => {
                    let name = shown(&key);
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

    /// Something from the cache, or `anew` from its file.
    fn object(&self, cx: &mut Ctx<'_>, id: &Id, anew: bool) -> Result<Object, String> {
        let Some(cache) = &self.cache else {
            return Ok(self.read(cx, id)?.0);
        };
        let now_s = cx.clock.mono_ms / 1000;
        let found = match anew && !id.is_data {
            true => CacheLookup::Nothing,
            false => cache.find(id, now_s),
        };
        match found {
            CacheLookup::Valid(object) => return Ok(object),
            CacheLookup::Old(object, stamp) if stamp.is_some() && stamp == stamp_now(cx, id) => {
                cache.keep(id, object.clone(), stamp, now_s);
                return Ok(object);
            }
            _ => {}
        }
        match self.read(cx, id) {
            Ok((object, stamp, true)) => {
                cache.keep(id, object.clone(), stamp, now_s);
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

    /// Reads a certificate or a key; also returns whether it may be kept: another server may have no password for an
    /// encrypted key.
    fn read(&self, cx: &mut Ctx<'_>, id: &Id) -> Result<(Object, Stamp, bool), String> {
        let what = if id.is_key {
            "certificate key"
        } else {
            "certificate"
        };
        let failed = |why: String| format!("cannot load {what} \"{}\": {why}", shown(id));
        let (text, stamp) = match id.name.strip_prefix(DATA) {
            Some(data) if id.is_data => (data.to_vec(), None),
            _ => file(cx, &id.name).map_err(failed)?,
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
        for pair in &self.pairs {
            match self.identity(x, cx, pair) {
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

/// The bytes of a file, with its stamp.
fn file(cx: &mut Ctx<'_>, path: &[u8]) -> Result<(Vec<u8>, Stamp), String> {
    let name = Shown(path).to_string();
    let failed =
        |error: FileError| files::cannot_open(&io::Error::from_raw_os_error(error.errno), &name);
    let opened = cx
        .files
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
    let bytes = cx.files.read(&range);
    let bytes = bytes.map_err(|error| files::cannot_open(&error, &name))?;
    Ok((bytes, Some((opened.meta.mtime_s, opened.meta.ino))))
}

fn stamp_now(cx: &mut Ctx<'_>, id: &Id) -> Stamp {
    let meta = cx.files.stat(&id.name, &OpenPolicy::default()).ok()?;
    Some((meta.mtime_s, meta.ino))
}

/// A name as messages show it: no secret, and nothing that a client could use to write a line of its own.
fn shown(id: &Id) -> String {
    match id.is_data {
        true => "data:...".to_owned(),
        false => Shown(&id.name).to_string(),
    }
}

/// Stands in every key that is encrypted, in either form.
const ENCRYPTED: &[u8] = b"ENCRYPTED";
/// Largest file with certificates or a key, bytes: a thread that serves must not read for long.
const FILE_BYTES_MAX: u64 = 1 << 20;
