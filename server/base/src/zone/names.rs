//! The zones of one configuration.
//!
//! A directive may use a zone that another one further down declares, so names are collected while the configuration is
//! read; at its end every name must have been given a size.

use conf::{ConfError, Directive, Word};

use crate::config::ConfigContext;

/// The names of zones, in the order of their first use.
#[derive(Default)]
pub struct Zones(Vec<DeclaredZone>);

struct DeclaredZone {
    name: Vec<u8>,
    module: &'static str,
    /// 0 until it is declared.
    size_bytes: u64,
}

impl Zones {
    /// The index of a zone; a size of 0 refers to it, any other declares it.
    ///
    /// # Errors
    /// The zone belongs to another module or has another size.
    pub fn refer(
        &mut self,
        name: &[u8],
        size_bytes: u64,
        module: &'static str,
    ) -> Result<usize, String> {
        let shown = String::from_utf8_lossy(name);
        let Some(at) = self.0.iter().position(|zone| zone.name == name) else {
            self.0.push(DeclaredZone {
                name: name.to_vec(),
                module,
                size_bytes,
            });
            return Ok(self.0.len() - 1);
        };
        let zone = &mut self.0[at];
        if zone.module != module {
            return Err(format!(
                "the shared memory zone \"{shown}\" is already declared for a different use"
            ));
        }
        if zone.size_bytes == 0 {
            zone.size_bytes = size_bytes;
        }
        if size_bytes != 0 && size_bytes != zone.size_bytes {
            return Err(format!(
                "the size {size_bytes} of shared memory zone \"{shown}\" conflicts with already declared size {}",
                zone.size_bytes
            ));
        }
        Ok(at)
    }

    /// The error for a zone that was used and never declared, in nginx's words.
    pub fn undeclared(&self) -> Option<ConfError> {
        let zone = self.0.iter().find(|zone| zone.size_bytes == 0)?;
        let name = String::from_utf8_lossy(&zone.name);
        Some(ConfError::new(format!(
            "zero size shared memory zone \"{name}\""
        )))
    }
}

/// The number of a zone in this configuration; a size of 0 uses it, any other declares it.
///
/// # Errors
/// The zone belongs to another module or has another size.
pub fn refer(
    cx: &mut dyn ConfigContext,
    d: &Directive,
    word: &Word,
    name: &[u8],
    size_bytes: u64,
    module: &'static str,
) -> Result<usize, ConfError> {
    cx.zone(name, size_bytes, module)
        .map_err(|text| ConfError::word(d, word, text))
}

/// Name and size of `zone=NAME:SIZE`; `text` is the part after the equals sign.
///
/// # Errors
/// `invalid zone size`, `zone is too small`.
pub fn size_of<'w>(
    d: &Directive,
    word: &Word,
    text: &'w [u8],
) -> Result<(&'w [u8], u64), ConfError> {
    let shown = word.as_str();
    let invalid = || ConfError::word(d, word, format!("invalid zone size \"{shown}\""));
    let colon = memchr::memchr(b':', text).ok_or_else(invalid)?;
    let size = conf::parse_size(&text[colon + 1..]).ok_or_else(invalid)? as u64;
    if size < SIZE_MIN_BYTES {
        let text = format!("zone \"{shown}\" is too small");
        return Err(ConfError::word(d, word, text));
    }
    Ok((&text[..colon], size))
}

/// The smallest zone: nginx's eight pages of 4 KiB.
pub const SIZE_MIN_BYTES: u64 = 8 * 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_may_be_used_before_it_is_declared() {
        let mut zones = Zones::default();
        assert_eq!(zones.refer(b"a", 0, "m"), Ok(0));
        assert!(zones.undeclared().is_some());
        assert_eq!(zones.refer(b"b", 10, "n"), Ok(1));
        assert_eq!(zones.refer(b"a", 10, "m"), Ok(0));
        assert!(zones.undeclared().is_none());
        assert!(zones.refer(b"a", 11, "m").is_err());
        assert!(zones.refer(b"a", 0, "n").is_err());
    }
}
