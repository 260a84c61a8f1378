//! `zone`: the peers of a group are shared by all threads, and kept over reloads.
//!
//! Several groups may have one zone. Its size is checked as in nginx; peers are limited by number
//! ([`server_upstream::group::PEERS_MAX`]), not by the size.
//!
//! Source: nginx documentation, `ngx_http_upstream_module`, `zone`.

use conf::{ConfError, Contexts, Directive};
use server_base::zone::{self, SIZE_MIN_BYTES};
use server_http::assemble::ConfigBuilder;
use server_upstream::shared::Zone;

use super::Block;

conf::directives! {
    pub(super) const ROWS: ConfigBuilder;

    /// Shares the state of the group's servers among all threads, and keeps it over reloads; the size is needed once a name.
    directive "zone": Contexts::UPSTREAM, TAKE12, "", "name [size]" => zone;
}

fn zone(b: &mut ConfigBuilder, d: &Directive) -> Result<(), ConfError> {
    let name = d.arg_str(0);
    let error = |n: usize, text: String| Err(ConfError::word(d, d.word(n), text));
    if name.is_empty() {
        return error(0, format!("invalid zone name \"{name}\""));
    }
    let mut size_bytes = 0;
    if d.args.len() > 1 {
        let Some(size) = conf::parse_size(d.arg(1)) else {
            return error(1, format!("invalid zone size \"{}\"", d.arg_str(1)));
        };
        size_bytes = size as u64;
        if size_bytes < SIZE_MIN_BYTES {
            return error(1, format!("zone \"{name}\" is too small"));
        }
    }
    zone::refer(b, d, d.word(0), d.arg(0), size_bytes, MODULE)?;
    // As in nginx, the last one counts.
    b.conf_mut::<Block>().zone = Some(Zone::new(d.arg(0)));
    Ok(())
}

/// The owner of the zones.
const MODULE: &str = "upstream";
