//! Writers of small databases, for tests: MaxMind's older ones and MaxMind DB files.
//!
//! Absent: means to make files small, such as shared data.
#![allow(dead_code, reason = "each set of tests needs a part of it")]

use core::net::IpAddr;

/// A value to be written into a MaxMind DB file.
#[derive(Debug, Clone)]
pub(crate) enum Field {
    Text(&'static str),
    Bytes(&'static [u8]),
    Double(f64),
    Float(f32),
    U16(u16),
    U32(u32),
    U64(u64),
    U128(u128),
    I32(i32),
    Bool(bool),
    Map(Vec<(&'static str, Self)>),
    Array(Vec<Self>),
}

impl Field {
    /// Appends the field.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => sized(2, text.as_bytes(), out),
            Self::Bytes(bytes) => sized(4, bytes, out),
            Self::Double(number) => sized(3, &number.to_be_bytes(), out),
            Self::Float(number) => sized(15, &number.to_be_bytes(), out),
            Self::U16(number) => sized(5, trimmed(&number.to_be_bytes()), out),
            Self::U32(number) => sized(6, trimmed(&number.to_be_bytes()), out),
            Self::U64(number) => sized(9, trimmed(&number.to_be_bytes()), out),
            Self::U128(number) => sized(10, trimmed(&number.to_be_bytes()), out),
            Self::I32(number) => sized(8, &number.to_be_bytes(), out),
            Self::Bool(is) => head(14, usize::from(*is), out),
            Self::Map(entries) => {
                head(7, entries.len(), out);
                for (key, value) in entries {
                    Self::Text(key).write(out);
                    value.write(out);
                }
            }
            Self::Array(elements) => {
                head(11, elements.len(), out);
                for element in elements {
                    element.write(out);
                }
            }
        }
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

fn sized(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    head(kind, content.len(), out);
    out.extend_from_slice(content);
}

/// Appends the head of a field.
pub(crate) fn head(kind: u8, size: usize, out: &mut Vec<u8>) {
    let (short, more): (u8, &[u8]) = match size {
        0..29 => (size as u8, &[]),
        29..285 => (29, &[(size - 29) as u8]),
        285..65_821 => (30, &((size - 285) as u16).to_be_bytes()),
        _ => (31, &((size - 65_821) as u32).to_be_bytes()[1..]),
    };
    match kind.checked_sub(7).filter(|extended| *extended > 0) {
        Some(extended) => out.extend_from_slice(&[short, extended]),
        None => out.push(kind << 5 | short),
    }
    out.extend_from_slice(more);
}

/// A tree of addresses: each record is empty, a node, or an offset in the data.
#[derive(Debug, Default)]
struct Tree(Vec<[Record; 2]>);

#[derive(Debug, Default, Clone, Copy)]
enum Record {
    #[default]
    Empty,
    Node(usize),
    Data(usize),
}

impl Tree {
    /// Puts data below the highest `count` bits; shorter prefixes must be added first.
    fn insert(&mut self, bits: u128, count: u32, data: usize) {
        if self.0.is_empty() {
            self.0.push(Default::default());
        }
        let mut node = 0;
        for depth in 0..count {
            let side = usize::from(bits >> (127 - depth) & 1 == 1);
            if depth + 1 == count {
                self.0[node][side] = Record::Data(data);
                return;
            }
            node = match self.0[node][side] {
                Record::Node(next) => next,
                before => {
                    self.0.push([before; 2]);
                    let next = self.0.len() - 1;
                    self.0[node][side] = Record::Node(next);
                    next
                }
            };
        }
    }
}

/// A MaxMind DB file with these networks (address and number of bits), with the given size of records in bits.
pub(crate) fn mmdb(
    kind: &'static str,
    record_bits: u16,
    v6: bool,
    networks: &[(&str, u32, Field)],
) -> Vec<u8> {
    let (mut tree, mut data) = (Tree::default(), Vec::new());
    for (address, count, field) in networks {
        // A tree of IPv6 holds IPv4 below ::/96, 96 bits deep.
        let (bits, count) = match (address.parse().expect("an address"), v6) {
            (IpAddr::V4(ip), true) => (u128::from(ip.to_bits()), count + 96),
            (IpAddr::V4(ip), false) => (u128::from(ip.to_bits()) << 96, *count),
            (IpAddr::V6(ip), _) => (ip.to_bits(), *count),
        };
        tree.insert(bits, count, data.len());
        field.write(&mut data);
    }
    let mut out = Vec::new();
    for node in &tree.0 {
        let [left, right] = node.map(|record| match record {
            Record::Empty => tree.0.len(),
            Record::Node(node) => node,
            Record::Data(at) => tree.0.len() + 16 + at,
        });
        let (left, right) = ((left as u32).to_be_bytes(), (right as u32).to_be_bytes());
        match record_bits {
            24 => out.extend([&left[1..], &right[1..]].concat()),
            // The middle byte holds the highest four bits of both records.
            28 => {
                let middle = left[0] << 4 | right[0];
                out.extend([&left[1..], &[middle], &right[1..]].concat());
            }
            _ => out.extend([left, right].concat()),
        }
    }
    out.extend([0; 16]);
    out.extend(data);
    out.extend(metadata(&[
        ("binary_format_major_version", Field::U16(2)),
        ("binary_format_minor_version", Field::U16(0)),
        ("build_epoch", Field::U64(BUILD_EPOCH)),
        ("database_type", Field::Text(kind)),
        (
            "description",
            Field::Map(vec![("en", Field::Text("of a test"))]),
        ),
        ("ip_version", Field::U16(if v6 { 6 } else { 4 })),
        ("languages", Field::Array(vec![Field::Text("en")])),
        ("node_count", Field::U32(tree.0.len() as u32)),
        ("record_size", Field::U16(record_bits)),
    ]));
    out
}

/// Metadata with its mark.
pub(crate) fn metadata(entries: &[(&'static str, Field)]) -> Vec<u8> {
    let mut out = b"\xab\xcd\xefMaxMind.com".to_vec();
    Field::Map(entries.to_vec()).write(&mut out);
    out
}

/// Build time of the files of tests, seconds since 1970.
pub(crate) const BUILD_EPOCH: u64 = 1_700_000_000;

/// Makes one of MaxMind's older databases, of edition `number`, with these networks. Data are numbers of countries if
/// the edition has countries, else records behind the tree.
pub(crate) fn legacy(number: u8, networks: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    let countries = matches!(number, 1 | 12);
    let v6 = matches!(number, 12 | 21 | 22 | 23 | 24 | 30 | 31);
    let record_bytes = if matches!(number, 4 | 5 | 11 | 22 | 23 | 24) {
        4
    } else {
        3
    };
    // An empty result points to the first byte, so no record begins there.
    let (mut tree, mut data) = (Tree::default(), vec![0]);
    for (address, count, bytes) in networks {
        let bits = match address.parse().expect("an address") {
            IpAddr::V4(ip) if v6 => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let at = if countries {
            usize::from(bytes[0])
        } else {
            data.len()
        };
        tree.insert(bits, *count, at);
        data.extend_from_slice(bytes);
    }
    let segments = if countries { 0xff_ff00 } else { tree.0.len() };
    let mut out = Vec::new();
    for record in tree.0.iter().flatten() {
        let number = match record {
            Record::Empty => segments,
            Record::Node(node) => *node,
            Record::Data(at) => segments + at,
        };
        out.extend_from_slice(&(number as u32).to_le_bytes()[..record_bytes]);
    }
    if !countries {
        out.extend(data);
    }
    out.extend([0xff, 0xff, 0xff, number]);
    if !countries {
        out.extend_from_slice(&(segments as u32).to_le_bytes()[..3]);
    }
    out
}

/// The record of a city in one of the older databases: texts, ten thousandths of degrees, both areas in one.
pub(crate) fn city(country: u8, texts: [&[u8]; 3], degrees: [f64; 2], areas: u32) -> Vec<u8> {
    let mut out = vec![country];
    for text in texts {
        out.extend_from_slice(text);
        out.push(0);
    }
    let numbers = degrees.map(|degrees| ((degrees + 180.0) * 10_000.0).round() as u32);
    for number in numbers.into_iter().chain([areas]) {
        out.extend_from_slice(&number.to_le_bytes()[..3]);
    }
    out
}
