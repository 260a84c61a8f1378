//! Directives at server scope with a shape of their own.
//!
//! Source: nginx documentation, `ngx_http_core_module`.

use conf::{ConfError, Directive};
use server_base::regex::Regex;

use crate::assemble::ConfigBuilder;
use crate::conf_core::CoreSrv;
use crate::names::{NameKind, ServerName};

pub(super) fn server_name(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    for word in &d.args {
        let text = word.text.as_slice();
        let invalid = match text {
            [b'*', b'.', _, ..] => false,
            [b'*', ..] | [b'.'] => true,
            _ => false,
        };
        if invalid {
            return Err(ConfError::word(
                d,
                word,
                format!("server name \"{}\" is invalid", word.as_str()),
            ));
        }
        if text.eq_ignore_ascii_case(b"$hostname") {
            b.conf_mut::<CoreSrv>().names.push(ServerName {
                text: conf::hostname(),
                kind: NameKind::Exact,
            });
            continue;
        }
        if text.contains(&b'/') {
            let text = format!("server name \"{}\" has suspicious symbols", word.as_str());
            b.warn(ConfError::word(d, word, text));
        }
        let name = match text {
            [b'~', pattern @ ..] => {
                if pattern.is_empty() {
                    return Err(ConfError::word(d, word, "empty regex in server name \"~\""));
                }
                let caseless = pattern.iter().any(u8::is_ascii_uppercase);
                let regex = Regex::compile(b, d, word, pattern, caseless)?;
                ServerName {
                    text: pattern.to_vec(),
                    kind: NameKind::Regex(regex),
                }
            }
            _ => {
                let text = text.to_ascii_lowercase();
                let kind = NameKind::of(&text);
                ServerName { text, kind }
            }
        };
        b.conf_mut::<CoreSrv>().names.push(name);
    }
    Ok(())
}
