//! Offloads of a network device.
//!
//! Source: ethtool(8).

use serde::{Deserialize, Serialize};
use sys::device;

/// Offloads of a device: on, off, or unknown to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// TCP segmentation offload.
    pub tso: Option<bool>,
    /// Generic segmentation offload.
    pub gso: Option<bool>,
    /// Generic receive offload.
    pub gro: Option<bool>,
}

impl Offloads {
    /// Reads the offloads of a device in the network namespace of the calling thread.
    #[must_use]
    pub fn of(device: &str) -> Self {
        let device::Offloads { tso, gso, gro } = device::offloads(device);
        Self { tso, gso, gro }
    }

    /// `TSO on, GSO off, GRO unknown`.
    #[must_use]
    pub fn sentence(self) -> String {
        let all = [("TSO", self.tso), ("GSO", self.gso), ("GRO", self.gro)];
        let said = all.map(|(name, on)| match on {
            Some(true) => format!("{name} on"),
            Some(false) => format!("{name} off"),
            None => format!("{name} unknown"),
        });
        said.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offloads_are_read_and_what_is_unknown_is_said_to_be() {
        let of_loopback = Offloads::of("lo");
        let known = [of_loopback.tso, of_loopback.gso, of_loopback.gro];
        assert!(known.iter().all(Option::is_some), "{of_loopback:?}");
        let unknown = Offloads::of("nonesuch");
        assert_eq!(unknown.sentence(), "TSO unknown, GSO unknown, GRO unknown");
        let mixed = Offloads {
            tso: Some(true),
            gso: Some(false),
            gro: None,
        };
        assert_eq!(mixed.sentence(), "TSO on, GSO off, GRO unknown");
    }
}
