//! Huge pages for the parts of a configuration with many certificates that handshakes and requests read.
//!
//! With 10,000 servers a handshake reads a dozen pages that no other handshake has read recently. Absent:
//! configurations with few certificates, since their pages are in the CPU cache; tables of names, which are small.

use server_http::http::Http;
use sys::huge_pages::Blocks;
use tls::{Config, Identity};

/// Has the kernel put huge pages under the certificates of a configuration and its servers, if the certificates are in
/// [`BLOCKS_LEAST`] blocks of 2 MiB or more. Call it after memory was given back to the kernel, which splits huge pages.
pub(super) fn collapse(http: &Http) {
    let mut blocks = Blocks::default();
    let configs = http.tls.iter().filter_map(|tls| tls.config.as_ref());
    for identity in configs.filter_map(Config::identity) {
        let (key, chain) = identity.parts();
        blocks.add(Identity::memory(identity));
        blocks.add(key);
        blocks.add(chain);
    }
    if blocks.len() >= BLOCKS_LEAST {
        blocks.add(http.tls.as_slice());
        blocks.add(http.servers.as_slice());
        blocks.collapse();
    }
}

/// The fewest blocks for which huge pages are made: the processor has the translations of as many bytes in small ones.
const BLOCKS_LEAST: usize = 4;
