//! Networks of clients: addresses without their last bits.
//!
//! A [`Network`] is made by truncation alone, so the store cannot hold a full address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Longest prefix of an IPv4 network, bits.
pub const V4_PREFIX_MAX: u8 = 24;
/// Longest prefix of an IPv6 network, bits.
pub const V6_PREFIX_MAX: u8 = 48;

/// Numbers of bits that truncation keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefixes {
    v4: u8,
    v6: u8,
}

/// The first bits of an address, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// A prefix longer than [`V4_PREFIX_MAX`] or [`V6_PREFIX_MAX`], or a text that is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkError(String);

impl Prefixes {
    /// Checks two prefix lengths: at most 24 bits of IPv4 and 48 bits of IPv6.
    ///
    /// # Errors
    /// If a prefix is longer.
    pub fn new(v4: u8, v6: u8) -> Result<Self, NetworkError> {
        if v4 > V4_PREFIX_MAX {
            return Err(NetworkError(format!(
                "a prefix of IPv4 has at most {V4_PREFIX_MAX} bits, not {v4}"
            )));
        }
        if v6 > V6_PREFIX_MAX {
            return Err(NetworkError(format!(
                "a prefix of IPv6 has at most {V6_PREFIX_MAX} bits, not {v6}"
            )));
        }
        Ok(Self { v4, v6 })
    }
}

impl Default for Prefixes {
    fn default() -> Self {
        Self {
            v4: V4_PREFIX_MAX,
            v6: V6_PREFIX_MAX,
        }
    }
}

impl Network {
    /// Truncates an address. An IPv4-mapped IPv6 address is IPv4.
    #[must_use]
    pub fn of(address: IpAddr, prefixes: Prefixes) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::cut(v4.into(), prefixes.v4),
            // RFC 3056, section 2: the bits after 2002: are an IPv4 address.
            IpAddr::V6(v6) if v6.segments()[0] == 0x2002 => {
                Self::cut(v6.into(), prefixes.v6.min(16 + prefixes.v4))
            }
            IpAddr::V6(v6) => Self::cut(v6.into(), prefixes.v6),
        }
    }

    fn cut(address: IpAddr, prefix: u8) -> Self {
        let address = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(prefix))
                    .unwrap_or_default();
                Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(prefix))
                    .unwrap_or_default();
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        };
        Self { address, prefix }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    /// Reads `ADDRESS/BITS`, and truncates the address again.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError(format!("{text:?} is no network"));
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let prefixes = match address.to_canonical() {
            IpAddr::V4(_) => Prefixes::new(bits, V6_PREFIX_MAX)?,
            IpAddr::V6(_) => Prefixes::new(V4_PREFIX_MAX, bits)?,
        };
        Ok(Self::of(address, prefixes))
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NetworkError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(address: &str, v4: u8, v6: u8) -> String {
        let prefixes = Prefixes::new(v4, v6).expect("prefixes within the limits");
        Network::of(address.parse().expect("an address"), prefixes).to_string()
    }

    #[test]
    fn addresses_lose_their_last_bits() {
        assert_eq!(cut("192.0.2.77", 24, 48), "192.0.2.0/24");
        assert_eq!(cut("192.0.2.77", 23, 48), "192.0.2.0/23");
        assert_eq!(cut("192.0.3.77", 23, 48), "192.0.2.0/23");
        assert_eq!(cut("192.0.2.77", 0, 0), "0.0.0.0/0");
        assert_eq!(cut("2001:db8:1:2::77", 24, 48), "2001:db8:1::/48");
        assert_eq!(cut("2001:db8:1:2::77", 24, 32), "2001:db8::/32");
        assert_eq!(cut("2001:db8:1:2::77", 24, 0), "::/0");
    }

    #[test]
    fn longer_prefixes_are_errors() {
        assert!(Prefixes::new(24, 48).is_ok());
        assert!(Prefixes::new(25, 48).is_err());
        assert!(Prefixes::new(24, 49).is_err());
    }

    #[test]
    fn ipv4_inside_of_ipv6_is_truncated_as_ipv4() {
        assert_eq!(cut("::ffff:192.0.2.77", 24, 48), "192.0.2.0/24");
        assert_eq!(cut("2002:c000:24d:1::1", 24, 48), "2002:c000:200::/40");
        assert_eq!(cut("2002:c000:24d:1::1", 16, 32), "2002:c000::/32");
    }

    #[test]
    fn texts_are_truncated_too() {
        let read = |text: &str| text.parse::<Network>().map(|network| network.to_string());
        assert_eq!(read("192.0.2.0/24").as_deref(), Ok("192.0.2.0/24"));
        assert_eq!(read("192.0.2.77/24").as_deref(), Ok("192.0.2.0/24"));
        assert_eq!(read("2001:db8::7/48").as_deref(), Ok("2001:db8::/48"));
        for wrong in ["192.0.2.0/25", "2001:db8::/49", "192.0.2.7", "a/1", "", "/"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
