//! The parameters of `lab_store`.
//!
//! No error repeats a word that may have a password.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use conf::{ConfError, Directive, Word};
use server_base::lab_store::{
    BATCH_LEAST_MS, BATCH_MAX_MS, BATCH_MS, ClickHouseConf, LabEngine, SPILL_BYTES,
    SPILL_LEAST_BYTES, StoreUrl,
};
use server_http::assemble::ConfigBuilder;

/// A `lab_store`.
pub(super) struct Store {
    pub(super) engine: LabEngine,
    pub(super) server: Option<String>,
}

/// Parses a `lab_store`.
pub(super) fn parse(b: &mut ConfigBuilder, d: &Directive) -> Result<Store, ConfError> {
    let secret = d.args.iter().find_map(|word| secret_in(&word.text));
    if let Some(why) = secret {
        let hint =
            "set the user with \"user=\", and the file of the password with \"password_file=\"";
        return Err(ConfError::secret(d, why).with_hint(hint));
    }
    let url = d.word(0);
    let (kind, rest) = url.as_str().split_once(':').unwrap_or_default();
    match kind {
        "sqlite" if !rest.is_empty() => sqlite(b, d),
        "clickhouse" => clickhouse(b, d, rest),
        _ => {
            let text = format!("invalid store \"{}\", it must be {STORES}", url.as_str());
            Err(ConfError::word(d, url, text))
        }
    }
}

/// Returns the error about a word that may have a password.
fn secret_in(word: &[u8]) -> Option<&'static str> {
    let has = |part: &[u8]| memchr::memmem::find(word, part).is_some();
    if word.starts_with(b"password=") {
        return Some("\"lab_store\" takes no password");
    }
    (has(b"://") && has(b"@"))
        .then_some("the URL of \"lab_store\" must have no user and no password")
}

fn sqlite(b: &mut ConfigBuilder, d: &Directive) -> Result<Store, ConfError> {
    // Paths may be other bytes than text.
    let path = full_path(b, &d.word(0).text[b"sqlite:".len()..]);
    let mut server = None;
    for word in &d.args[1..] {
        match split(word) {
            Some(("server", value)) => set(d, word, &mut server, text(value))?,
            _ => return Err(ConfError::invalid(d, word)),
        }
    }
    Ok(Store {
        engine: LabEngine::Sqlite(path),
        server,
    })
}

fn clickhouse(b: &mut ConfigBuilder, d: &Directive, url: &str) -> Result<Store, ConfError> {
    let word = d.word(0);
    let url = StoreUrl::parse(url).map_err(|why| {
        let text = format!("invalid store \"{}\": {why}", word.as_str());
        ConfError::word(d, word, text)
    })?;
    let mut server = None;
    let (mut user, mut password_file, mut ca_file) = (None, None, None);
    let (mut spill, mut spill_bytes, mut batch_ms) = (None, None, None);
    for word in &d.args[1..] {
        let Some((name, value)) = split(word) else {
            return Err(ConfError::invalid(d, word));
        };
        let path = (!value.is_empty()).then(|| full_path(b, value.as_bytes()));
        match name {
            "server" => set(d, word, &mut server, text(value))?,
            "user" => set(d, word, &mut user, text(value))?,
            "password_file" => set(d, word, &mut password_file, path)?,
            "ca" => set(d, word, &mut ca_file, path)?,
            "spill" => set(d, word, &mut spill, path)?,
            "spill_size" => set(d, word, &mut spill_bytes, spill_size(value))?,
            "batch" => set(d, word, &mut batch_ms, batch_time(value))?,
            _ => return Err(ConfError::invalid(d, word)),
        }
    }
    if password_file.is_some() && user.is_none() {
        return Err(ConfError::directive(
            d,
            "needs \"user=\" with \"password_file=\"",
        ));
    }
    if ca_file.is_some() && !url.is_tls {
        return Err(ConfError::directive(
            d,
            "has \"ca=\", but its URL is not \"https://\"",
        ));
    }
    // A tunnel may protect the way, so this is no error.
    if password_file.is_some() && !url.is_tls && !url.is_loopback() {
        let text = "sends the password unencrypted: use \"https://\"";
        b.warn(ConfError::directive(d, text));
    }
    let conf = ClickHouseConf {
        url,
        user,
        password_file,
        ca_file,
        spill: spill.unwrap_or_else(|| full_path(b, SPILL.as_bytes())),
        spill_bytes: spill_bytes.unwrap_or(SPILL_BYTES),
        batch_ms: batch_ms.unwrap_or(BATCH_MS),
    };
    Ok(Store {
        engine: LabEngine::ClickHouse(conf),
        server,
    })
}

/// Sets a parameter that may be written once.
fn set<T>(
    d: &Directive,
    word: &Word,
    place: &mut Option<T>,
    value: Option<T>,
) -> Result<(), ConfError> {
    if place.is_some() {
        let text = format!("duplicate parameter \"{}\"", word.as_str());
        return Err(ConfError::word(d, word, text));
    }
    let value = value.ok_or_else(|| ConfError::invalid(d, word))?;
    *place = Some(value);
    Ok(())
}

/// Splits `name=value`; `None` for other words, and for other bytes than text.
fn split(word: &Word) -> Option<(&str, &str)> {
    str::from_utf8(&word.text).ok()?.split_once('=')
}

/// Returns the name of a server or of a user.
fn text(value: &str) -> Option<String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&value.len()) && !value.chars().any(char::is_control);
    fits.then(|| value.to_owned())
}

fn spill_size(value: &str) -> Option<u64> {
    let bytes = conf::parse_offset(value.as_bytes())?;
    (bytes >= SPILL_LEAST_BYTES).then_some(bytes)
}

fn batch_time(value: &str) -> Option<u64> {
    let ms = conf::parse_time_ms(value.as_bytes())?;
    (BATCH_LEAST_MS..=BATCH_MAX_MS).contains(&ms).then_some(ms)
}

fn full_path(b: &ConfigBuilder, path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&b.full_path(path)))
}

/// The stores, for an error.
const STORES: &str = "\"sqlite:path\" or \"clickhouse:http[s]://host[:port]/database\"";

/// Longest name of a server or a user, bytes.
const NAME_BYTES_MAX: usize = 255;

/// Default of `spill=`, relative to the prefix; a build can set it.
const SPILL: &str = match option_env!("FIRSTBYTE_LAB_SPILL_PATH") {
    Some(path) => path,
    None => "lab/spill",
};
