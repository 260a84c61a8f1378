//! Frames sent by a client.

use engines::h2::{COMPRESSION_ERROR, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR};
use engines::hpack::Indexing;
use sim::Random;

use super::{
    ACK, CONTINUATION, DATA, DEFAULT_WINDOW, END_HEADERS, END_STREAM, GOAWAY, HAS_PRIORITY,
    HEADERS, MAX_STREAMS, MAX_WINDOW, PADDED, PING, PRIORITY, PRIORITY_UPDATE, PUSH_PROMISE, Peer,
    PendingSettings, RST_STREAM, Request, SETTINGS, Settings, Stream, WINDOW_UPDATE,
};

impl Peer {
    /// Does at most one random action.
    pub(super) fn send_something(&mut self, random: &mut Random) {
        match random.below(100) {
            0..22 => self.open(random),
            22..40 => {
                if let Some(id) = self.any_stream(random, |stream| stream.upload.is_some()) {
                    self.upload(id, random);
                }
            }
            40..62 => self.grant(random),
            62..66 => {
                if let Some(id) = self.any_stream(random, Stream::is_open) {
                    self.cancel(id, random);
                }
            }
            66..70 => self.send_settings(random),
            70..75 => self.ping(random),
            75..80 => self.prioritise(random),
            80 => self.frame(0x77, random.below(256) as u8, 0, b"whatever this is"),
            81 if random.chance(100) => {
                self.left = 0;
                self.frame(GOAWAY, 0, 0, &[0; 8]);
            }
            82 if random.chance(100) => self.break_stream(random),
            83 if random.chance(60) => self.break_connection(random),
            _ => {}
        }
    }

    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let len = (payload.len() as u32).to_be_bytes();
        self.log(format!(
            "> at {}: kind {kind} flags {flags} stream {stream} length {}",
            self.out.len(),
            payload.len()
        ));
        self.out.extend_from_slice(&len[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    fn any_stream(&self, random: &mut Random, which: impl Fn(&Stream) -> bool) -> Option<u32> {
        let open =
            |(id, stream): (&u32, &Stream)| (stream.is_open() && which(stream)).then_some(*id);
        let ids: Vec<u32> = self.streams.iter().filter_map(open).collect();
        (!ids.is_empty()).then(|| *random.pick(&ids))
    }

    fn open(&mut self, random: &mut Random) {
        let open = self.streams.values().filter(|s| s.is_open()).count();
        // Sometimes more streams are tried than are allowed.
        let most = MAX_STREAMS + usize::from(random.chance(50)) * 3;
        if self.left == 0 || open >= most || (self.goaway.is_some() && random.chance(900)) {
            return;
        }
        self.left -= 1;
        let request = Request::any(random);
        let id = self.next;
        self.next += 2 * (1 + u32::from(random.chance(50)));
        let start = self.out.len();
        let flags = if request.body.is_none() {
            END_STREAM
        } else {
            0
        };
        self.headers(id, flags, &request.fields, random);
        let latest = self.latest_settings();
        let stream = Stream {
            head: (start, self.out.len()),
            upload: request.body,
            window: i64::from(latest.window),
            their_window: self.their_initial,
            crowded: open >= MAX_STREAMS,
            sin: None,
            cancelled: false,
            status: 0,
            fields: Vec::new(),
            trailers: Vec::new(),
            body: Vec::new(),
            begun: 0,
            bytes: 0,
            ended: false,
            reset: None,
            request,
        };
        self.streams.insert(id, stream);
    }

    /// Sends a header block in one or several frames, perhaps with padding and a priority.
    fn headers(&mut self, id: u32, flags: u8, fields: &[(String, String)], random: &mut Random) {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            let indexing =
                *random.pick(&[Indexing::Yes, Indexing::Yes, Indexing::No, Indexing::Never]);
            self.encoder
                .field(name.as_bytes(), value.as_bytes(), indexing, &mut block);
        }
        let cut = if random.chance(200) {
            random.within(0..block.len() + 1)
        } else {
            block.len()
        };
        let (first, mut rest) = block.split_at(cut);
        let mut flags = flags;
        let mut payload = Vec::new();
        if random.chance(100) {
            flags |= HAS_PRIORITY;
            payload.extend_from_slice(&[0, 0, 0, 0, 15]);
        }
        payload.extend_from_slice(first);
        if random.chance(100) {
            flags |= PADDED;
            let pad = random.below(256) as u8;
            payload.insert(0, pad);
            payload.resize(payload.len() + usize::from(pad), 0);
        }
        if rest.is_empty() {
            flags |= END_HEADERS;
        }
        self.frame(HEADERS, flags, id, &payload);
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(random.piece(rest.len()).max(1));
            rest = more;
            let flags = if rest.is_empty() { END_HEADERS } else { 0 };
            self.frame(CONTINUATION, flags, id, piece);
        }
    }

    /// Sends a piece of a body, with the end after the last piece.
    fn upload(&mut self, id: u32, random: &mut Random) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Some(left) = stream.upload else { return };
        let room = stream.their_window.min(self.their_window).min(16_384);
        let room = usize::try_from(room).unwrap_or(0);
        let (mut flags, mut payload) = (0, Vec::new());
        let padded = random.chance(100) && room > 300;
        let len = random.piece(left.min(if padded { room - 256 } else { room }));
        if len == 0 && left > 0 {
            return;
        }
        payload.resize(len, b'b');
        if padded {
            flags |= PADDED;
            let pad = random.below(256) as u8;
            payload.insert(0, pad);
            payload.resize(payload.len() + usize::from(pad), 0);
        }
        stream.their_window -= payload.len() as i64;
        self.their_window -= payload.len() as i64;
        stream.upload = Some(left - len);
        if len < left {
            return self.frame(DATA, flags, id, &payload);
        }
        stream.upload = None;
        if random.chance(150) {
            self.frame(DATA, flags, id, &payload);
            let trailers = [("x-t".to_owned(), "1".to_owned())];
            self.headers(id, END_STREAM, &trailers, random);
        } else {
            self.frame(DATA, flags | END_STREAM, id, &payload);
        }
    }

    /// Ends all bodies, as far as windows allow.
    pub(super) fn upload_all(&mut self, random: &mut Random) {
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            for _ in 0..UPLOADS_AT_ONCE {
                if self.streams[&id].is_open() {
                    self.upload(id, random);
                }
            }
        }
    }

    fn grant(&mut self, random: &mut Random) {
        let bytes = *random.pick(&[1, 10, 1000, 20_000, 100_000]);
        if random.chance(500) {
            return self.open_window(0, bytes);
        }
        if let Some(id) = self.any_stream(random, |stream| !stream.ended) {
            self.open_window(id, bytes);
        }
    }

    fn open_window(&mut self, id: u32, bytes: u32) {
        let window = match self.streams.get_mut(&id) {
            Some(stream) => &mut stream.window,
            None => &mut self.window,
        };
        let granted = i64::from(bytes);
        // Settings on their way may enlarge the window.
        if *window + granted < MAX_WINDOW / 2 {
            *window += granted;
            self.frame(WINDOW_UPDATE, 0, id, &bytes.to_be_bytes());
        }
    }

    /// Opens all small windows.
    pub(super) fn open_windows(&mut self) {
        let open = |(id, stream): (&u32, &Stream)| {
            (!stream.is_settled() && stream.window < WIDE).then_some(*id)
        };
        let ids: Vec<u32> = self.streams.iter().filter_map(open).collect();
        let connection = (self.window < WIDE).then_some(0);
        for id in ids.into_iter().chain(connection) {
            self.open_window(id, 2 * WIDE as u32);
        }
    }

    fn cancel(&mut self, id: u32, random: &mut Random) {
        let code = random.below(14) as u32;
        self.frame(RST_STREAM, 0, id, &code.to_be_bytes());
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.cancelled = true;
            stream.upload = None;
        }
    }

    fn latest_settings(&self) -> Settings {
        self.pending_settings
            .back()
            .map_or(self.settings, |pending_settings| pending_settings.settings)
    }

    pub(super) fn send_settings(&mut self, random: &mut Random) {
        let mut settings = self.latest_settings();
        let mut payload = Vec::new();
        let mut put = |id: u16, value: u32| {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        };
        if random.chance(500) {
            settings.window = *random.pick(&[0, 1, 100, DEFAULT_WINDOW, 1 << 20]);
            put(4, settings.window);
        }
        if random.chance(300) {
            settings.table_bytes = *random.pick(&[0, 64, 4096, 65_536]);
            put(1, settings.table_bytes as u32);
        }
        if random.chance(300) {
            settings.frame_bytes = *random.pick(&[16_384, 20_000, 1 << 20]);
            put(5, settings.frame_bytes as u32);
        }
        if random.chance(300) {
            put(*random.pick(&[2, 6, 0x4a4a]), 0);
        }
        self.frame(SETTINGS, 0, 0, &payload);
        let last = self.next - 1;
        self.pending_settings
            .push_back(PendingSettings { settings, last });
    }

    fn ping(&mut self, random: &mut Random) {
        let payload = random.next_u64().to_be_bytes();
        self.pings.push_back(payload);
        self.frame(PING, 0, 0, &payload);
    }

    fn prioritise(&mut self, random: &mut Random) {
        let id = 1 + 2 * random.below(u64::from(self.next)) as u32;
        if random.chance(500) {
            return self.frame(PRIORITY, 0, id, &[0x80, 0, 0, 0, 7]);
        }
        let urgency = random.below(8);
        let text = format!("u={urgency}{}", if random.chance(500) { ",i" } else { "" });
        let payload = [&id.to_be_bytes()[..], text.as_bytes()].concat();
        self.frame(PRIORITY_UPDATE, 0, 0, &payload);
    }

    /// Acknowledges SETTINGS or PING.
    pub(super) fn acknowledge(&mut self, kind: u8, payload: &[u8]) {
        if self.sin.is_none() {
            self.frame(kind, ACK, 0, payload);
        }
    }

    /// Grants a window above the limit.
    fn break_stream(&mut self, random: &mut Random) {
        let Some(id) = self.any_stream(random, |stream| stream.window > 0) else {
            return;
        };
        self.frame(WINDOW_UPDATE, 0, id, &(MAX_WINDOW as u32).to_be_bytes());
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.sin = Some(FLOW_CONTROL_ERROR);
            stream.upload = None;
        }
    }

    /// Sends a frame that ends the connection.
    fn break_connection(&mut self, random: &mut Random) {
        let (kind, stream, payload, code) = match random.below(11) {
            0 => (DATA, 0, &b"x"[..], PROTOCOL_ERROR),
            1 => (HEADERS, 2, &[0x82][..], PROTOCOL_ERROR),
            2 => (PING, 0, &[0; 7][..], FRAME_SIZE_ERROR),
            3 => (SETTINGS, 0, &[0, 2, 0, 0, 0, 2][..], PROTOCOL_ERROR),
            4 => (SETTINGS, 0, &[0, 4, 0x80, 0, 0, 0][..], FLOW_CONTROL_ERROR),
            5 => (WINDOW_UPDATE, 0, &[0; 4][..], PROTOCOL_ERROR),
            6 => (
                WINDOW_UPDATE,
                0,
                &[0x7f, 255, 255, 255][..],
                FLOW_CONTROL_ERROR,
            ),
            7 => (HEADERS, self.next, &[0x80][..], COMPRESSION_ERROR),
            8 => (CONTINUATION, 1, &[][..], PROTOCOL_ERROR),
            9 => (0x77, 0, &[0; 16_385][..], FRAME_SIZE_ERROR),
            _ => (PUSH_PROMISE, 1, &[0; 4][..], PROTOCOL_ERROR),
        };
        if kind == WINDOW_UPDATE && payload[0] != 0 && self.window <= 0 {
            return;
        }
        let flags = if kind == HEADERS { END_HEADERS } else { 0 };
        self.frame(kind, flags, stream, payload);
        self.sin = Some(code);
        self.overflows = kind == WINDOW_UPDATE && payload[0] != 0;
    }
}

/// Maximum number of body frames sent at once.
const UPLOADS_AT_ONCE: usize = 20;
/// A window that limits nothing here.
const WIDE: i64 = 1 << 20;
