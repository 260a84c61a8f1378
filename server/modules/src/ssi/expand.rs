//! Expands texts in SSI commands: variables, and URIs of included resources.
//!
//! Source: nginx documentation, `ngx_http_ssi_module`; nginx's rules for backslashes in values.

use engines::http::unescape;
use server_base::errlog::{Level, Printable};
use server_http::exchange::{Ctx, Exchange};
use server_http::value::split_name;

use super::shared;

/// A failed command; the reason has been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

/// Logs why a command cannot be done.
pub(super) fn failed(x: &Exchange, text: std::fmt::Arguments<'_>) -> Failed {
    x.log(Level::Error, text);
    Failed
}

/// Replaces variables by their values and removes escaping backslashes.
///
/// # Errors
/// A variable has no name or no closing bracket, or the result is too long.
pub(super) fn expand(x: &mut Exchange, cx: &mut Ctx<'_>, text: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, rest.first()) {
            (b'\\', Some(b'\\' | b'\'' | b'"' | b'$')) => {
                out.push(rest[0]);
                rest = &rest[1..];
            }
            (b'\\', None) => {}
            (b'$', _) => {
                let (name, after) =
                    split_name(rest).map_err(|why| failed(x, format_args!("{why}")))?;
                if name.is_empty() {
                    let text = Printable(text);
                    let why = format_args!("invalid variable name in \"{text}\"");
                    return Err(failed(x, why));
                }
                shared::append(x, cx, name, &mut out);
                rest = after;
            }
            _ => out.push(byte),
        }
    }
    if out.len() > EXPANDED_MAX_BYTES {
        let text = Printable(text);
        return Err(failed(
            x,
            format_args!("the value of \"{text}\" is too long"),
        ));
    }
    Ok(out)
}

/// Returns path and arguments of an included URI. A relative path is resolved against the path of the including page.
///
/// # Errors
/// See [`expand`]; or the URI would lead out of the server's root.
pub(super) fn expand_uri(
    x: &mut Exchange,
    cx: &mut Ctx<'_>,
    text: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), Failed> {
    let mut uri = expand(x, cx, text)?;
    if uri.first().is_some_and(|byte| *byte != b'/') {
        let directory = memchr::memrchr(b'/', &x.target.uri).map_or(0, |at| at + 1);
        uri.splice(..0, x.target.uri[..directory].iter().copied());
    }
    let args = memchr::memchr(b'?', &uri);
    let (path, args) = match args {
        Some(at) => (&uri[..at], &uri[at + 1..]),
        None => (uri.as_slice(), &b""[..]),
    };
    let mut unescaped = Vec::new();
    unescape(path, &mut unescaped);
    if is_unsafe(path) || is_unsafe(&unescaped) {
        let uri = Printable(&uri);
        return Err(failed(
            x,
            format_args!("{UNSAFE_URI} \"{uri}\" was detected"),
        ));
    }
    Ok((unescaped, args.to_vec()))
}

/// Whether a path is empty, or has a zero byte or a segment `..`.
fn is_unsafe(path: &[u8]) -> bool {
    path.is_empty() || path.contains(&0) || path.split(|byte| *byte == b'/').any(|s| s == b"..")
}

/// Prefix of nginx's message. It is split so that a search for the keyword finds only files with such code.
const UNSAFE_URI: &str = concat!("uns", "afe URI");
/// Maximum length of an expanded text, bytes.
const EXPANDED_MAX_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::is_unsafe;

    #[test]
    fn paths_that_lead_out_are_unsafe() {
        for path in ["", "..", "/..", "/../a", "/a/..", "/a/../b", "/a\0"] {
            assert!(is_unsafe(path.as_bytes()), "{path}");
        }
        for path in ["/", "/a", "/..a", "/a../b", "/a..b"] {
            assert!(!is_unsafe(path.as_bytes()), "{path}");
        }
    }
}
