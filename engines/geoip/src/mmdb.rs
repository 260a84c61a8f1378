//! MaxMind DB files (`.mmdb`): a tree of addresses over a section of typed data.
//!
//! The metadata is at the end, behind a mark. The tree has nodes of two records of 24, 28 or 32 bits. The bits of an
//! address select the records, from the highest bit. A record past the nodes points into the data, which `mmdb_data`
//! reads. A tree of IPv6 addresses has IPv4 addresses below its first 96 zero bits. Every read is checked against the
//! end: a broken file yields wrong answers or none. docs/dependencies.md compares this reader with a library.
//!
//! Source: MaxMind DB File Format Specification, version 2.0.

use core::net::IpAddr;
use std::fmt;

use crate::mmdb_data::{Data, Value};

/// A database in memory.
#[derive(Debug)]
pub struct Mmdb {
    bytes: Vec<u8>,
    /// Number of nodes.
    nodes: usize,
    /// Bytes of a node.
    node_bytes: usize,
    /// Bytes of the tree; the data begins after a gap behind it.
    tree_bytes: usize,
    /// Offset of the metadata, the end of the data.
    data_end: usize,
    v6: bool,
    /// The node above all IPv4 addresses, or the record of all of them.
    v4_root: usize,
    /// Type of its data, such as `GeoLite2-City`.
    pub database_type: String,
    /// When it was built, seconds since 1970.
    pub build_epoch: u64,
}

/// The reason why a file is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It has no metadata.
    NoMetadata,
    /// Its metadata lacks a field or contradicts the file.
    Metadata,
    /// An unknown version or record size.
    Format,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMetadata => "it is not a MaxMind DB file",
            Self::Metadata => "the MaxMind DB file contains invalid metadata",
            Self::Format => "the MaxMind DB file is in a format that is not known",
        })
    }
}

impl Mmdb {
    /// Whether these are the bytes of such a file.
    pub fn is_one(bytes: &[u8]) -> bool {
        metadata_start(bytes).is_some()
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// The fault of the tree or the metadata; the data is not examined.
    pub fn open(bytes: Vec<u8>) -> Result<Self, Refused> {
        let start = metadata_start(&bytes).ok_or(Refused::NoMetadata)?;
        let metadata = Metadata(Data::new(&bytes[start..]));
        if metadata.number("binary_format_major_version") != Some(FORMAT_VERSION) {
            return Err(Refused::Format);
        }
        let number = |name| {
            let number = metadata.number(name).ok_or(Refused::Metadata)?;
            usize::try_from(number).map_err(|_| Refused::Metadata)
        };
        let (nodes, record_bits) = (number("node_count")?, number("record_size")?);
        if !matches!(record_bits, 24 | 28 | 32) {
            return Err(Refused::Format);
        }
        let v6 = match number("ip_version")? {
            4 => false,
            6 => true,
            _ => return Err(Refused::Metadata),
        };
        let (node_bytes, data_end) = (record_bits / 4, start - METADATA_MARK.len());
        let tree_bytes = nodes.checked_mul(node_bytes);
        let tree_bytes = tree_bytes
            .filter(|bytes| {
                data_end
                    .checked_sub(GAP_BYTES)
                    .is_some_and(|most| *bytes <= most)
            })
            .ok_or(Refused::Metadata)?;
        let database_type = metadata.text("database_type").ok_or(Refused::Metadata)?;
        let build_epoch = metadata.number("build_epoch").ok_or(Refused::Metadata)?;
        let mut database = Self {
            bytes,
            nodes,
            node_bytes,
            tree_bytes,
            data_end,
            v6,
            v4_root: 0,
            database_type,
            build_epoch,
        };
        if v6 {
            database.v4_root = database.descend(0, 0, V4_DEPTH);
        }
        Ok(database)
    }

    /// Returns the value at a path in an address's data: names in maps, numbers in arrays, from the end if negative.
    pub fn value<P: AsRef<[u8]>>(&self, ip: IpAddr, path: &[P]) -> Option<Value<'_>> {
        self.value_of(self.record_of(ip)?, path)
    }

    /// Returns the value at a path in a record of [`Self::record_of`] or [`Self::records`].
    #[must_use]
    pub fn value_of<P: AsRef<[u8]>>(&self, record: usize, path: &[P]) -> Option<Value<'_>> {
        self.data().find(record, path)
    }

    /// Returns the records of the tree, those of neighbouring networks once, in the order of the nodes.
    pub fn records(&self) -> impl Iterator<Item = usize> {
        let mut before = None;
        let sides = (0..self.nodes).flat_map(|node| [(node, false), (node, true)]);
        sides.filter_map(move |(node, right)| {
            let found = self
                .record(node, right)
                .checked_sub(self.nodes + GAP_BYTES)?;
            (before.replace(found) != Some(found)).then_some(found)
        })
    }

    /// Returns an address's record: the offset of its data, from the beginning of the data.
    #[must_use]
    pub fn record_of(&self, ip: IpAddr) -> Option<usize> {
        let found = match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let bits = u128::from(ip.to_bits()) << 96;
                self.descend(self.v4_root, bits, 32)
            }
            IpAddr::V6(_) if !self.v6 => return None,
            IpAddr::V6(ip) => self.descend(0, ip.to_bits(), 128),
        };
        // A record equal to the number of nodes means "no data".
        found.checked_sub(self.nodes + GAP_BYTES)
    }

    /// Walks from a record by the highest `count` bits; ends early if a record is no node.
    fn descend(&self, record: usize, bits: u128, count: u32) -> usize {
        let tree = &self.bytes[..self.tree_bytes];
        // Separate loops for the sizes of a node: nearly all time of a lookup is spent here.
        match self.node_bytes {
            6 => walk::<6>(tree, record, bits, count),
            7 => walk::<7>(tree, record, bits, count),
            _ => walk::<8>(tree, record, bits, count),
        }
    }

    /// Returns one of the two records of a node.
    fn record(&self, node: usize, right: bool) -> usize {
        self.descend(node, u128::from(right) << 127, 1)
    }

    fn data(&self) -> Data<'_> {
        let start = self.tree_bytes + GAP_BYTES;
        Data::new(self.bytes.get(start..self.data_end).unwrap_or_default())
    }
}

/// Walks a tree with nodes of `N` bytes.
fn walk<const N: usize>(tree: &[u8], mut record: usize, bits: u128, count: u32) -> usize {
    let nodes = tree.as_chunks::<N>().0;
    // A word of 64 bits is shifted faster than one of 128.
    let halves = [(bits >> 64) as u64, bits as u64];
    for depth in 0..count {
        let Some(node) = nodes.get(record) else {
            break;
        };
        let half = halves[depth as usize / 64];
        record = record_of_node(node, half << (depth % 64) >> 63 != 0) as usize;
    }
    record
}

/// Returns one of the two records of a node of 6, 7 or 8 bytes.
fn record_of_node(node: &[u8], right: bool) -> u32 {
    u32::from_be_bytes(match (node, right) {
        (&[a, b, c, _, _, _], false) | (&[_, _, _, a, b, c], true) => [0, a, b, c],
        // The byte in the middle has the highest four bits of both.
        (&[a, b, c, high, _, _, _], false) => [high >> 4, a, b, c],
        (&[_, _, _, high, a, b, c], true) => [high & 0xf, a, b, c],
        (&[a, b, c, d, _, _, _, _], false) | (&[_, _, _, _, a, b, c, d], true) => [a, b, c, d],
        _ => [0; 4],
    })
}

/// Metadata is one map.
struct Metadata<'a>(Data<'a>);

impl Metadata<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        match self.0.find(0, &[name])? {
            Value::Unsigned(number) => Some(number),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.0.find(0, &[name])? {
            Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

/// Returns the offset of the metadata, behind the last mark.
fn metadata_start(bytes: &[u8]) -> Option<usize> {
    let window = bytes.len().saturating_sub(METADATA_BYTES_MAX);
    let tail = &bytes[window..];
    let at = tail
        .windows(METADATA_MARK.len())
        .rposition(|bytes| bytes == METADATA_MARK)?;
    Some(window + at + METADATA_MARK.len())
}

const METADATA_MARK: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// Maximum distance of the metadata's begin from the end, bytes, by the specification.
const METADATA_BYTES_MAX: usize = 128 * 1024;
/// Zero bytes between the tree and the data.
const GAP_BYTES: usize = 16;
const FORMAT_VERSION: u64 = 2;
/// Bits above IPv4 addresses in a tree of IPv6 addresses.
const V4_DEPTH: u32 = 96;

#[cfg(test)]
#[path = "mmdb_tests.rs"]
mod tests;
