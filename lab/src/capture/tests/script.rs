//! Captures made by hand, for tests.

use crate::capture::packet::LINK_RAW;
use crate::capture::tcp::Header;

/// A connection written segment by segment, with a manual clock.
pub(crate) struct Script {
    pub(super) at_us: u64,
    next: [u32; 2],
    acknowledged: [u32; 2],
    ports: [u16; 2],
    pub(super) segment_bytes: u16,
    pub(super) packets: Vec<(u64, Vec<u8>)>,
}

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

impl Script {
    pub(super) fn new() -> Self {
        Self {
            at_us: 1_000_000,
            next: [1000, u32::MAX - 100],
            acknowledged: [0; 2],
            ports: [50_000, 80],
            segment_bytes: 1460,
            packets: Vec::new(),
        }
    }

    pub(super) fn from_port(port: u16) -> Self {
        Self {
            ports: [port, 80],
            ..Self::new()
        }
    }

    /// A handshake. The arguments are the distances of both ends from the point of capture, there and back.
    pub(super) fn open(client_us: u64, server_us: u64) -> Self {
        let mut script = Self::new();
        script.shake(client_us, server_us);
        script
    }

    pub(super) fn shake(&mut self, client_us: u64, server_us: u64) {
        self.send(CLIENT, Header::SYN, b"");
        self.wait(server_us);
        self.send(SERVER, Header::SYN | Header::ACK, b"");
        self.wait(client_us);
        self.ack(CLIENT);
    }

    pub(super) fn wait(&mut self, us: u64) {
        self.at_us += us;
    }

    pub(super) fn data(&mut self, from: usize, payload: &[u8]) {
        self.send(from, Header::ACK, payload);
    }

    /// Acknowledges all that came.
    pub(super) fn ack(&mut self, from: usize) {
        self.send(from, Header::ACK, b"");
    }

    pub(super) fn send(&mut self, from: usize, flags: u8, payload: &[u8]) {
        let sequence = self.next[from];
        if flags & Header::ACK != 0 {
            self.acknowledged[from] = self.next[1 - from];
        }
        let acknowledged = self.acknowledged[from];
        self.raw(from, flags, sequence, acknowledged, payload);
        let syn_or_fin = flags & (Header::SYN | Header::FIN) != 0;
        self.next[from] = sequence.wrapping_add(payload.len() as u32 + u32::from(syn_or_fin));
    }

    /// Sends the last bytes of a side once more.
    pub(super) fn again(&mut self, from: usize, payload: &[u8]) {
        let sequence = self.next[from].wrapping_sub(payload.len() as u32);
        self.raw(
            from,
            Header::ACK,
            sequence,
            self.acknowledged[from],
            payload,
        );
    }

    fn raw(&mut self, from: usize, flags: u8, sequence: u32, ack: u32, payload: &[u8]) {
        let mut tcp = Vec::new();
        tcp.extend(self.ports[from].to_be_bytes());
        tcp.extend(self.ports[1 - from].to_be_bytes());
        tcp.extend(sequence.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        let options: Vec<u8> = match flags & Header::SYN {
            0 => Vec::new(),
            _ => [
                &[2, 4][..],
                &self.segment_bytes.to_be_bytes(),
                &[1, 3, 3, 7],
            ]
            .concat(),
        };
        tcp.push(((20 + options.len()) / 4 * 16) as u8);
        tcp.push(flags);
        tcp.extend([0x20, 0, 0, 0, 0, 0]);
        tcp.extend(options);
        tcp.extend_from_slice(payload);
        let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let packet = ipv4(ends[from], ends[1 - from], &tcp);
        self.packets.push((self.at_us, packet));
    }

    /// A classic file, little-endian with microseconds, of raw IP.
    pub(super) fn file(&self) -> Vec<u8> {
        pcap(LINK_RAW, &self.packets)
    }
}

pub(super) fn ipv4(from: [u8; 4], to: [u8; 4], tcp: &[u8]) -> Vec<u8> {
    let total = (20 + tcp.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(total.to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(from);
    ip.extend(to);
    ip.extend_from_slice(tcp);
    ip
}

/// A classic file of this link type, little-endian with microseconds.
pub(super) fn pcap(link: i32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    classic(0xa1b2_c3d4, link, packets, u32::to_le_bytes)
}

/// A classic file with this first number, in a byte order of choice.
pub(super) fn classic(
    magic: u32,
    link: i32,
    packets: &[(u64, Vec<u8>)],
    order: impl Fn(u32) -> [u8; 4],
) -> Vec<u8> {
    let mut file = order(magic).to_vec();
    // The two versions are numbers of 16 bits.
    let versions = if order(1)[0] == 1 {
        [2, 0, 4, 0]
    } else {
        [0, 2, 0, 4]
    };
    file.extend(versions);
    for number in [0, 0, 65_535, link as u32] {
        file.extend(order(number));
    }
    let fraction = if magic == 0xa1b2_3c4d { 1000 } else { 1 };
    for (at_us, packet) in packets {
        let length = packet.len() as u32;
        let part = (at_us % 1_000_000) as u32 * fraction;
        for number in [(at_us / 1_000_000) as u32, part, length, length] {
            file.extend(order(number));
        }
        file.extend_from_slice(packet);
    }
    file
}

/// A pcapng file of one interface with this link type and clock.
pub(super) fn pcapng(
    link: u16,
    resolution: u8,
    packets: &[(u64, Vec<u8>)],
    is_big: bool,
) -> Vec<u8> {
    let four = |number: u32| {
        if is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let two = |number: u16| {
        if is_big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let block = |kind: u32, body: &[u8]| {
        let length = four(body.len() as u32 + 12);
        [&four(kind)[..], &length, body, &length].concat()
    };
    let head = [&four(0x1a2b_3c4d)[..], &two(1), &two(0), &[0xff; 8]].concat();
    let mut file = block(0x0a0d_0d0a, &head);
    let options = [&two(9)[..], &two(1), &[resolution, 0, 0, 0], &[0; 4]].concat();
    let interface = [&two(link)[..], &[0, 0], &four(0), &options].concat();
    file.extend(block(1, &interface));
    for (at_us, packet) in packets {
        let units = match resolution {
            6 => *at_us,
            9 => at_us * 1000,
            _ => at_us * (1 << (resolution & 0x7f)) / 1_000_000,
        };
        let length = four(packet.len() as u32);
        let times = [four((units >> 32) as u32), four(units as u32)].concat();
        let mut body = [&four(0)[..], &times, &length, &length, packet].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, &body));
    }
    file
}
