//! `$ssl_*`: the parameters negotiated by a handshake, and the client's certificate.
//!
//! Absent: a value for `$ssl_session_id`, `$ssl_sigalg`, `$ssl_client_sigalg` and `$ssl_ech_*`, which rustls does not
//! expose; they are never found.
//!
//! Source: nginx documentation, `ngx_http_ssl_module`, "Embedded Variables".

use std::rc::Rc;

use engines::http::{Escape, escape};
use server_http::exchange::{Ctx, Exchange, Tls};
use server_http::variables;
use server_http::vars::Variable;
use tls::{Certificate, Verified, names};

type Out = Vec<u8>;

/// Appends a value of a TLS connection; returns false without TLS or if the value is empty.
fn tls(x: &Exchange, out: &mut Out, say: impl FnOnce(&Tls, &mut Out)) -> bool {
    let Some(tls) = x.tls.as_ref().map(Rc::clone) else {
        return false;
    };
    let before = out.len();
    say(&tls, out);
    out.len() > before
}

/// Appends a value of the client's certificate.
fn certificate(x: &Exchange, out: &mut Out, say: impl FnOnce(&Certificate<'_>) -> Vec<u8>) -> bool {
    tls(x, out, |tls, out| {
        let first = tls.info.certificates.first();
        if let Some(certificate) = first.and_then(|der| Certificate::parse(der)) {
            out.extend(say(&certificate));
        }
    })
}

/// Appends names of numbers, with colons between; numbers without a name in hexadecimal.
fn list(numbers: &[u16], name: fn(u16) -> Option<&'static str>, out: &mut Out) {
    for (n, number) in numbers.iter().enumerate() {
        if n > 0 {
            out.push(b':');
        }
        match name(*number) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => out.extend_from_slice(format!("0x{number:04x}").as_bytes()),
        }
    }
}

/// Converts PEM for a header field: a tab in front of each line but the first, and no final newline.
fn in_head(pem: &[u8]) -> Vec<u8> {
    let lines = pem.trim_ascii_end().split(|byte| *byte == b'\n');
    lines.collect::<Vec<_>>().join(&b"\n\t"[..])
}

fn days_left(x: &mut Exchange, cx: &mut Ctx<'_>, out: &mut Out) -> bool {
    let now_s = (cx.clock.unix_ms / 1000) as i64;
    certificate(x, out, |c| c.days_left(now_s).to_string().into_bytes())
}

fn never(_: &mut Exchange, _: &mut Ctx<'_>, _: &[u8], _: &mut Out) -> bool {
    false
}

/// The variables.
pub(super) const VARIABLES: &[Variable] = variables! {
    "ssl_protocol": "version of TLS" => |x, _, _, o| {
        tls(x, o, |tls, o| {
            if let Some(version) = tls.info.version {
                o.extend_from_slice(names::version(version).as_bytes());
            }
        })
    };
    "ssl_cipher": "cipher suite, as OpenSSL names it" => |x, _, _, o| {
        tls(x, o, |tls, o| {
            let cipher = tls.info.cipher.map(u16::from);
            list(cipher.as_slice(), names::cipher, o);
        })
    };
    "ssl_ciphers": "cipher suites the client offered"
        => |x, _, _, o| tls(x, o, |tls, o| list(&tls.info.offered.ciphers, names::cipher, o));
    "ssl_curve": "group of the key exchange" => |x, _, _, o| {
        tls(x, o, |tls, o| {
            let group = tls.info.group.map(u16::from);
            list(group.as_slice(), names::group, o);
        })
    };
    "ssl_curves": "groups the client offered"
        => |x, _, _, o| tls(x, o, |tls, o| list(&tls.info.offered.groups, names::group, o));
    "ssl_sigalg": "the server's signature scheme: always empty" => never;
    "ssl_sigalgs": "signature schemes the client offered, in numbers"
        => |x, _, _, o| tls(x, o, |tls, o| list(&tls.info.offered.schemes, |_| None, o));
    "ssl_session_id": "identifier of the session: always empty" => never;
    "ssl_session_reused": "\"r\" if a session was resumed, else \".\""
        => |x, _, _, o| tls(x, o, |tls, o| o.push(if tls.info.resumed { b'r' } else { b'.' }));
    "ssl_early_data": "\"1\" before the handshake is over" => |x, _, _, o| {
        tls(x, o, |tls, o| {
            if tls.early_data.get() {
                o.push(b'1');
            }
        })
    };
    "ssl_server_name": "server name requested by the client" => |x, _, _, o| {
        tls(x, o, |tls, o| {
            o.extend_from_slice(tls.info.server_name.as_deref().unwrap_or_default());
        })
    };
    "ssl_alpn_protocol": "protocol chosen by ALPN"
        => |x, _, _, o| tls(x, o, |tls, o| o.extend_from_slice(tls.info.alpn.as_deref().unwrap_or_default()));
    "ssl_ech_status": "state of encrypted ClientHello: always empty" => never;
    "ssl_ech_outer_server_name": "outer name of encrypted ClientHello: always empty" => never;
    "ssl_client_cert": "the client's certificate, for header fields"
        => |x, _, _, o| certificate(x, o, |c| in_head(&c.pem()));
    "ssl_client_raw_cert": "the client's certificate, PEM" => |x, _, _, o| certificate(x, o, |c| c.pem());
    "ssl_client_escaped_cert": "the client's certificate, PEM, URL-encoded" => |x, _, _, o| {
        certificate(x, o, |c| {
            let mut escaped = Vec::new();
            escape(&c.pem(), Escape::UriComponent, &mut escaped);
            escaped
        })
    };
    "ssl_client_s_dn": "the client's name, RFC 2253" => |x, _, _, o| certificate(x, o, |c| c.subject().into_bytes());
    "ssl_client_i_dn": "its issuer's name, RFC 2253" => |x, _, _, o| certificate(x, o, |c| c.issuer().into_bytes());
    "ssl_client_s_dn_legacy": "the client's name, with slashes"
        => |x, _, _, o| certificate(x, o, |c| c.subject_oneline().into_bytes());
    "ssl_client_i_dn_legacy": "its issuer's name, with slashes"
        => |x, _, _, o| certificate(x, o, |c| c.issuer_oneline().into_bytes());
    "ssl_client_serial": "serial number of the certificate"
        => |x, _, _, o| certificate(x, o, |c| c.serial().into_bytes());
    "ssl_client_fingerprint": "SHA-1 of the certificate"
        => |x, _, _, o| certificate(x, o, |c| c.fingerprint().into_bytes());
    "ssl_client_verify": "SUCCESS, FAILED:reason, or NONE" => |x, _, _, o| {
        tls(x, o, |tls, o| match tls.verified {
            Verified::None => o.extend_from_slice(b"NONE"),
            Verified::Success => o.extend_from_slice(b"SUCCESS"),
            Verified::Failed(reason) => {
                o.extend_from_slice(format!("FAILED:{reason}").as_bytes());
            }
        })
    };
    "ssl_client_v_start": "start of the certificate's validity"
        => |x, _, _, o| certificate(x, o, |c| c.valid_from().into_bytes());
    "ssl_client_v_end": "end of the certificate's validity"
        => |x, _, _, o| certificate(x, o, |c| c.valid_until().into_bytes());
    "ssl_client_v_remain": "days until the certificate ends" => |x, cx, _, o| days_left(x, cx, o);
    "ssl_client_sigalg": "the client's signature scheme: always empty" => never;
};
