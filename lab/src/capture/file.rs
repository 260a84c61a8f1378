//! Files of packets: classic pcap in both byte orders with micro- and nanoseconds, and pcapng.
//!
//! The library finds blocks; this file converts times to nanoseconds and damage to sentences. Packets are numbered from 1 as in
//! Wireshark, including packets that cannot be parsed.

use std::io::{self, Read};
use std::ops::ControlFlow;

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, InterfaceDescriptionBlock, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader,
};
use sys::os_error;

/// A packet of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    /// Its number, from 1.
    pub(super) number: u64,
    /// When it was captured: nanoseconds since 1970.
    pub(super) at_ns: u64,
    /// The number of its interface in the section of a pcapng file; 0 in a classic one.
    pub(super) interface: u32,
    /// The type of its first header, as tcpdump.org numbers them.
    pub(super) link: i32,
    /// The bytes that were captured.
    pub(super) bytes: &'a [u8],
    /// The bytes that it had.
    pub(super) wire_bytes: usize,
}

/// Calls `each` with every packet until it breaks. Returns notes about unreadable parts.
///
/// # Errors
/// The file is no capture; a sentence.
pub(super) fn packets(
    reader: impl Read,
    each: impl FnMut(Packet<'_>) -> ControlFlow<()>,
) -> Result<Vec<String>, String> {
    let mut reader = Full(reader);
    let mut magic = [0; 4];
    let read = reader.read(&mut magic);
    let length =
        read.map_err(|error| format!("the capture cannot be read: {}", os_error(&error)))?;
    if length < magic.len() {
        return Err("the file is too short to be a capture".to_owned());
    }
    let reader = Full((&magic[..]).chain(reader));
    let mut walk = Walk {
        each,
        number: 0,
        section: Section::default(),
        notes: Vec::new(),
    };
    // The library requires a whole header in its first read; `Full` provides it.
    if magic == PCAPNG_MAGIC {
        let mut blocks = PcapNGReader::new(BUFFER_BYTES, reader).map_err(not_one)?;
        walk.run(&mut blocks);
    } else {
        let mut blocks = LegacyPcapReader::new(BUFFER_BYTES, reader).map_err(not_one)?;
        walk.run(&mut blocks);
    }
    Ok(walk.notes)
}

fn not_one(error: PcapError<&[u8]>) -> String {
    match error {
        PcapError::Incomplete(_) | PcapError::UnexpectedEof | PcapError::Eof => {
            "the capture ends within its header".to_owned()
        }
        PcapError::ReadError => "the capture cannot be read".to_owned(),
        _ => "the file is no capture: it is neither pcap nor pcapng".to_owned(),
    }
}

/// A reader that fills a buffer unless the file ends.
struct Full<R>(R);

impl<R: Read> Read for Full<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut length = 0;
        while length < buffer.len() {
            match self.0.read(&mut buffer[length..]) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }
}

/// A section of a file, within which interfaces are numbered.
#[derive(Debug, Default)]
struct Section {
    /// Link type of a classic file, and whether its times have nanoseconds.
    link: i32,
    has_nanoseconds: bool,
    /// The byte order of a section of pcapng; `None` outside of one.
    is_big: Option<bool>,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: i32,
    /// Units of its clock in a second.
    units: u128,
    offset_seconds: i64,
    snap_bytes: usize,
}

impl Section {
    /// Whether the length of the next pcapng block is below the minimum. The library would underflow in a subtraction.
    fn is_too_short(&self, bytes: &[u8]) -> bool {
        let (Some(is_big), Some([kind @ .., a, b, c, d])) = (self.is_big, bytes.first_chunk::<8>())
        else {
            return false;
        };
        let length = [*a, *b, *c, *d];
        let length = if is_big {
            u32::from_be_bytes(length)
        } else {
            u32::from_le_bytes(length)
        };
        // A section's header has a byte order of its own, and the library compares its length.
        *kind != PCAPNG_MAGIC && length < BLOCK_BYTES_MIN
    }
}

/// A walk through the blocks of a file.
struct Walk<F> {
    each: F,
    number: u64,
    section: Section,
    notes: Vec<String>,
}

impl<F: FnMut(Packet<'_>) -> ControlFlow<()>> Walk<F> {
    fn run(&mut self, blocks: &mut impl PcapReaderIterator) {
        loop {
            if self.section.is_too_short(blocks.data()) {
                self.ends("what follows is damaged");
                return;
            }
            let stop = match blocks.next() {
                Ok((length, block)) => {
                    let flow = self.block(&block);
                    drop(block);
                    blocks.consume(length);
                    if flow.is_break() {
                        return;
                    }
                    continue;
                }
                Err(PcapError::Eof) => return,
                Err(PcapError::Incomplete(_)) => false,
                Err(PcapError::BufferTooSmall) => true,
                Err(PcapError::UnexpectedEof) => {
                    self.ends("the file is cut off");
                    return;
                }
                Err(_) => {
                    self.ends("what follows is damaged");
                    return;
                }
            };
            let before = blocks.data().len();
            let capacity = if stop {
                before.max(BUFFER_BYTES) * 2
            } else {
                0
            };
            if capacity > BLOCK_BYTES_MAX {
                self.ends("a block is larger than any packet");
                return;
            }
            if stop {
                blocks.grow(capacity);
            }
            if blocks.refill().is_err() {
                self.ends("the file cannot be read on");
                return;
            }
            // A block with contradictory lengths would request more data forever.
            if !stop && blocks.data().len() == before && !blocks.reader_exhausted() {
                self.ends("what follows is damaged");
                return;
            }
        }
    }

    fn ends(&mut self, why: &str) {
        self.notes.push(format!(
            "the capture ends after packet {}: {why}",
            self.number
        ));
    }

    fn block(&mut self, block: &PcapBlockOwned<'_>) -> ControlFlow<()> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                // The upper bits of the field say how many bytes of checksum follow each packet.
                self.section.link = header.network.0 & 0xffff;
                self.section.has_nanoseconds = header.is_nanosecond_precision();
                ControlFlow::Continue(())
            }
            PcapBlockOwned::Legacy(packet) => {
                let unit = if self.section.has_nanoseconds {
                    1
                } else {
                    1000
                };
                let at_ns =
                    u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * unit;
                let link = self.section.link;
                self.packet(at_ns, (0, Some(link)), packet.data, packet.origlen as usize)
            }
            PcapBlockOwned::NG(block) => self.block_of_ng(block),
        }
    }

    fn block_of_ng(&mut self, block: &Block<'_>) -> ControlFlow<()> {
        match block {
            Block::SectionHeader(header) => {
                self.section = Section {
                    is_big: Some(header.big_endian()),
                    ..Section::default()
                }
            }
            Block::InterfaceDescription(interface)
                if self.section.interfaces.len() < INTERFACES_MAX =>
            {
                self.section.interfaces.push(Interface::new(interface));
            }
            Block::EnhancedPacket(packet) => {
                let on = self.section.interfaces.get(packet.if_id as usize);
                let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let at_ns = on.map_or(0, |on| on.nanoseconds(time));
                let on = (packet.if_id, on.map(|on| on.link));
                return self.packet(at_ns, on, packet.packet_data(), packet.origlen as usize);
            }
            Block::SimplePacket(packet) => {
                let on = self.section.interfaces.first();
                let snap_bytes = on.map_or(0, |on| on.snap_bytes);
                let bytes = packet.packet_data();
                let bytes = &bytes[..bytes.len().min(snap_bytes)];
                // It has no time, so it proves nothing: it is counted.
                let note = "packets without times were left out";
                if !self.notes.iter().any(|known| known == note) {
                    self.notes.push(note.to_owned());
                }
                return self.packet(0, (0, None), bytes, packet.origlen as usize);
            }
            // Wireshark numbers these, too.
            Block::SystemdJournalExport(_) => self.number += 1,
            Block::Unknown(block) if block.block_type == OBSOLETE_PACKET => self.number += 1,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn packet(
        &mut self,
        at_ns: u64,
        (interface, link): (u32, Option<i32>),
        bytes: &[u8],
        wire_bytes: usize,
    ) -> ControlFlow<()> {
        self.number += 1;
        let Some(link) = link else {
            return ControlFlow::Continue(());
        };
        (self.each)(Packet {
            number: self.number,
            at_ns,
            interface,
            link,
            bytes,
            wire_bytes: wire_bytes.max(bytes.len()),
        })
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>) -> Self {
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let units = match block.if_tsresol & 0x80 {
            0 => 10_u128.checked_pow(exponent),
            _ => 1_u128.checked_shl(exponent),
        };
        // The library reads this number as if the file were of the other byte order.
        let is_swapped = block.block_type != INTERFACE_MAGIC;
        let offset = block.if_tsoffset;
        Self {
            link: block.linktype.0,
            units: units.unwrap_or(u128::MAX),
            offset_seconds: if is_swapped {
                offset.swap_bytes()
            } else {
                offset
            },
            snap_bytes: match block.snaplen {
                0 => usize::MAX,
                bytes => bytes as usize,
            },
        }
    }

    fn nanoseconds(&self, time: u64) -> u64 {
        // Both factors have fewer than 64 bits.
        let since = u128::from(time) * 1_000_000_000 / self.units;
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        let at = i128::try_from(since)
            .unwrap_or(i128::MAX)
            .saturating_add(offset);
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }
}

/// The type of a section header, the first of a pcapng file in either byte order.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The type of an interface description.
const INTERFACE_MAGIC: u32 = 1;
/// The type of packets in early pcapng files.
const OBSOLETE_PACKET: u32 = 2;
/// Bytes of the buffer at first.
const BUFFER_BYTES: usize = 1 << 16;
/// The shortest block: its type, and its length twice.
const BLOCK_BYTES_MIN: u32 = 12;
/// The largest block that is read; interfaces capture at most 256 KiB of a packet.
pub(super) const BLOCK_BYTES_MAX: usize = 1 << 24;
/// The most interfaces of a section; packets of others are left out.
pub(super) const INTERFACES_MAX: usize = 1024;
