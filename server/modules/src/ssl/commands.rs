//! `ssl_conf_command`: OpenSSL's commands that change settings.
//!
//! Most commands have no counterpart in rustls. A command that requests rustls' own behaviour is accepted; any other is
//! an error.
//!
//! Source: SSL_CONF_cmd(3).

use std::sync::Arc;

use conf::{ConfError, Directive};
use tls::{Ciphers, Groups, KeyRing, Settings, Versions};

/// Applies one command to the settings.
pub(super) fn apply(
    d: &Directive,
    settings: &mut Settings,
    ring: &Arc<dyn KeyRing>,
) -> Result<(), ConfError> {
    let (name, value) = (d.arg_str(0), d.arg_str(1));
    let failed = |why: &str| {
        let text = format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed ({why})");
        ConfError::word(d, d.word(1), text)
    };
    let common = |versions: Versions| {
        let left = settings.versions.common(versions);
        left.ok_or_else(|| failed("no TLS version is enabled"))
    };
    match name.to_ascii_lowercase().as_str() {
        "ciphersuites" => {
            let list = Ciphers::parse_tls13(value).map_err(|fault| failed(&fault.to_string()))?;
            settings.ciphers13 = Some(list);
        }
        "cipherstring" => {
            let list = Ciphers::parse(value).map_err(|fault| failed(&fault.to_string()))?;
            settings.ciphers = list;
        }
        "groups" | "curves" => {
            let groups = Groups::parse(value);
            settings.groups = groups.ok_or_else(|| failed("no such group"))?;
        }
        "minprotocol" => match value {
            "None" | "SSLv3" | "TLSv1" | "TLSv1.1" | "TLSv1.2" => {}
            "TLSv1.3" => settings.versions = common(Versions::Tls13)?,
            _ => return Err(failed("no such version")),
        },
        "maxprotocol" => match value {
            "None" | "TLSv1.3" => {}
            "TLSv1.2" => settings.versions = common(Versions::Tls12)?,
            _ => return Err(failed("only TLSv1.2 and TLSv1.3 are supported")),
        },
        "options" => {
            for option in value.split(',') {
                apply_option(option.trim(), settings, ring)
                    .map_err(|()| failed("it is not supported"))?;
            }
        }
        // See `certificate`.
        "certificate" | "privatekey" => {}
        _ => return Err(failed("it is not supported")),
    }
    Ok(())
}

/// Returns the files of `Certificate` and `PrivateKey`, each as a directive of one word. Without `PrivateKey` the file
/// of the certificate contains the key.
pub(super) fn certificate(commands: &[Arc<Directive>]) -> Option<(Directive, Directive)> {
    let named = |name: &str| {
        let mut all = commands.iter().rev();
        let found = all.find(|d| d.arg_str(0).eq_ignore_ascii_case(name))?;
        let mut d = Directive::clone(found);
        d.args.remove(0);
        Some(d)
    };
    let certificate = named("Certificate")?;
    let key = named("PrivateKey").unwrap_or_else(|| certificate.clone());
    Some((certificate, key))
}

/// Applies one word of `Options`; `Err` if rustls cannot do it.
fn apply_option(option: &str, settings: &mut Settings, ring: &Arc<dyn KeyRing>) -> Result<(), ()> {
    let (on, name) = match option.strip_prefix('-') {
        Some(name) => (false, name),
        None => (true, option.strip_prefix('+').unwrap_or(option)),
    };
    match (name, on) {
        ("ServerPreference", on) => settings.prefer_server_ciphers = on,
        ("SessionTicket", on) => settings.tickets = on.then(|| Arc::clone(ring)),
        // rustls always behaves like this.
        (
            "NoRenegotiation"
            | "AntiReplay"
            | "ExtendedMasterSecret"
            | "EncryptThenMac"
            | "MiddleboxCompat"
            | "ECDHSingle"
            | "DHSingle"
            | "NoResumptionOnRenegotiation",
            true,
        )
        | (
            "Compression"
            | "UnsafeLegacyRenegotiation"
            | "UnsafeLegacyServerConnect"
            | "ClientRenegotiation"
            | "EmptyFragments",
            false,
        ) => {}
        _ => return Err(()),
    }
    Ok(())
}
