//! Protocols of the simulated servers, and a strict reader of SCGI and uwsgi parameters.

use server_upstream::route::UpstreamAddr;

use super::site::{
    FASTCGI_PORTS, H2_PORTS, H2S_PORTS, MEMCACHED_PORTS, MODIFIERS, SCGI_PORTS, UWSGI_PORTS,
};
use super::{fastcgi, memcached};

/// Protocol of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerProtocol {
    #[default]
    Http,
    Scgi,
    Uwsgi,
    FastCgi,
    Memcached,
    Http2,
}

/// Names and values.
pub(crate) type Params = Vec<(String, String)>;

impl ServerProtocol {
    /// Returns the protocol of the server at an address.
    pub(crate) fn at(addr: &UpstreamAddr) -> Self {
        match addr {
            UpstreamAddr::Inet(addr) if SCGI_PORTS.contains(&addr.port()) => Self::Scgi,
            UpstreamAddr::Inet(addr) if UWSGI_PORTS.contains(&addr.port()) => Self::Uwsgi,
            UpstreamAddr::Inet(addr) if FASTCGI_PORTS.contains(&addr.port()) => Self::FastCgi,
            UpstreamAddr::Inet(addr) if MEMCACHED_PORTS.contains(&addr.port()) => Self::Memcached,
            UpstreamAddr::Inet(addr)
                if H2_PORTS.contains(&addr.port()) || H2S_PORTS.contains(&addr.port()) =>
            {
                Self::Http2
            }
            _ => Self::Http,
        }
    }

    /// Returns the target of a request, once it is complete.
    pub(crate) fn target(self, came: &[u8]) -> Option<&[u8]> {
        if self == Self::Http {
            let line = &came[..find(came, b" HTTP/")?];
            return line.splitn(2, |byte| *byte == b' ').nth(1);
        }
        if self == Self::Memcached {
            return came.get(4..find(came, b"\r\n")?);
        }
        let at = find(came, b"REQUEST_URI")?;
        let rest = &came[at + 11..];
        match self {
            Self::Uwsgi => {
                let (len, value) = rest.split_first_chunk()?;
                value.get(..usize::from(u16::from_le_bytes(*len)))
            }
            // The lengths of name and value come before both. Short lengths have one byte.
            Self::FastCgi => rest.get(..usize::from(*came.get(at - 1)?)),
            _ => {
                let value = rest.get(1..)?;
                value.get(..find(value, b"\0")?)
            }
        }
    }

    /// Returns the parameters of a request and their length, once they are complete.
    ///
    /// # Errors
    /// They violate the protocol.
    pub(crate) fn params(self, came: &[u8]) -> Result<Option<(Params, usize)>, String> {
        match self {
            Self::Http => Err("requests of HTTP have no parameters".to_owned()),
            Self::Scgi => netstring(came),
            Self::Uwsgi => packet(came),
            Self::FastCgi => fastcgi::params(came),
            Self::Memcached => memcached::params(came),
            // The engine in `h2` reads it.
            Self::Http2 => Ok(None),
        }
    }
}

fn netstring(came: &[u8]) -> Result<Option<(Params, usize)>, String> {
    let Some(colon) = find(came, b":") else {
        return match came.iter().all(u8::is_ascii_digit) && came.len() < 6 {
            true => Ok(None),
            false => Err("no netstring".to_owned()),
        };
    };
    let len: usize = text(&came[..colon])?.parse().map_err(|_| "no length")?;
    let Some(inside) = came.get(colon + 1..colon + 2 + len) else {
        return Ok(None);
    };
    let inside = inside.strip_suffix(b"\0,").ok_or("no end of a netstring")?;
    let words: Vec<&[u8]> = inside.split(|byte| *byte == 0).collect();
    if !words.len().is_multiple_of(2) {
        return Err("a name without a value".to_owned());
    }
    let pairs = words.chunks(2);
    let params: Params = pairs
        .map(|pair| Ok((text(pair[0])?, text(pair[1])?)))
        .collect::<Result<_, String>>()?;
    let has = |at: usize, name: &str| params.get(at).is_some_and(|(n, _)| n == name);
    let is_scgi = params.iter().any(|(n, v)| n == "SCGI" && v == "1");
    if !has(0, "CONTENT_LENGTH") || !is_scgi {
        return Err(format!("not the parameters of SCGI: {params:?}"));
    }
    Ok(Some((params, colon + 2 + len)))
}

fn packet(came: &[u8]) -> Result<Option<(Params, usize)>, String> {
    let Some((&[first, low, high, second], rest)) = came.split_first_chunk() else {
        return Ok(None);
    };
    if [first, second] != MODIFIERS {
        return Err(format!("modifiers {first} {second}"));
    }
    let size = usize::from(u16::from_le_bytes([low, high]));
    let Some(mut rest) = rest.get(..size) else {
        return Ok(None);
    };
    let mut params = Params::new();
    while !rest.is_empty() {
        params.push((word(&mut rest)?, word(&mut rest)?));
    }
    Ok(Some((params, 4 + size)))
}

/// Reads a value after its length.
fn word(rest: &mut &[u8]) -> Result<String, String> {
    let (len, behind) = rest.split_first_chunk().ok_or("no length")?;
    let len = usize::from(u16::from_le_bytes(*len));
    let word = behind.get(..len).ok_or("a word beyond its packet")?;
    *rest = &behind[len..];
    text(word)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "a parameter is not text")?;
    Ok(text.to_owned())
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}
