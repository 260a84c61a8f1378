//! The client role and the server role against each other.

use super::*;

/// A client and a server, and what moves between them.
struct Both {
    client: Client,
    server: Peer,
}

impl Both {
    fn new(level: u8, server_level: u8) -> Self {
        Self {
            client: Client::new(level),
            server: Peer::silent(Settings {
                headers_level: server_level,
                ..Settings::default()
            }),
        }
    }

    fn request(&mut self, method: &str, path: &str, ended: bool) -> u32 {
        let fields = with_path(method, path);
        let fields = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        self.client.request(fields, 3, ended)
    }

    /// Moves bytes until both are silent; requests are answered with what they sent, backwards.
    fn run(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let up = self.client.transmit();
            self.server.receive(&up);
            self.serve();
            self.server.pump();
            let down = wire::transmitted(&mut self.server.conn);
            self.client.receive(&down);
            while let Some(answer) = self.client.answer() {
                lines.push(line(&answer));
            }
            if up.is_empty() && down.is_empty() {
                return lines;
            }
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.server.conn.event() {
            match event {
                Event::Head { stream, head } => {
                    if head.body == BodyLength::None {
                        let body = [b'y'; 300_000];
                        self.server.answer(stream, &[&body, b"end"]);
                    }
                }
                Event::Data { stream, bytes } => {
                    self.server.conn.consumed(stream, bytes.len() as u64);
                }
                Event::BodyEnd(stream) => _ = self.server.answer(stream, &[b"thanks"]),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn line(answer: &Answer) -> String {
    match answer {
        Answer::Head { stream, fields } => {
            let status = fields.named(b":status").next().unwrap_or_default();
            format!("{stream} {}", wire::text(status))
        }
        Answer::Data { stream, bytes } => format!("{stream} +{}", bytes.len()),
        other => format!("{other:?}"),
    }
}

fn received(lines: &[String], stream: u32) -> usize {
    let start = format!("{stream} +");
    let lens = lines.iter().filter_map(|line| line.strip_prefix(&start));
    lens.map(|len| len.parse::<usize>().expect("a number"))
        .sum()
}

#[test]
fn bodies_move_both_ways_beyond_all_windows() {
    for (level, server_level) in [(0, 0), (9, 1), (1, 9)] {
        let mut both = Both::new(level, server_level);
        let get = both.request("GET", "/", true);
        let post = both.request("POST", "/", false);
        both.client.send(post, &[b'x'; 500_000], false);
        both.client.send(post, b"last", true);
        let lines = both.run();
        assert_eq!(received(&lines, get), 300_003);
        assert_eq!(received(&lines, post), 6);
        for end in ["1 200", "3 200", "End(1)", "End(3)"] {
            assert!(lines.iter().any(|line| line == end), "{end}");
        }
    }
}

#[test]
fn hundred_streams_are_answered() {
    let mut both = Both::new(6, 6);
    for n in 0..100 {
        both.request("GET", &format!("/{n}"), true);
    }
    let lines = both.run();
    for stream in (1..200).step_by(2) {
        assert_eq!(received(&lines, stream), 300_003, "stream {stream}");
    }
}

#[test]
fn resets_pings_and_the_end_are_told() {
    let mut both = Both::new(0, 0);
    both.client.ping(7);
    let id = both.request("POST", "/", false);
    assert_eq!(both.run(), ["Pong(7)"]);
    both.server.conn.reset(id, INTERNAL_ERROR);
    let other = both.request("POST", "/", false);
    both.client.cancel(other);
    both.server.conn.end();
    let lines = both.run();
    assert_eq!(
        lines,
        [
            "Reset { stream: 1, code: 6 }",
            "GoAway { last: 1, code: 0 }"
        ]
    );
}

#[test]
fn pushed_streams_are_refused_and_nonsense_ends_it() {
    let mut client = Client::new(0);
    let block = Peer::new().block_of(&with_path("GET", "/"));
    client.receive(&syn_frame(2, 0, &block, true));
    let told = wire::frame_lines(&client.transmit(), &mut Inflater::default());
    assert_eq!(told, ["2 RST REFUSED_STREAM"]);
    client.receive(b"HTTP/1.1 400 Bad Request");
    assert_eq!(client.answer(), None, "a long frame may still come");
    client.receive(&[0x80, 9, 0, 0, 0, 0, 0, 0]);
    let mut client = Client::new(0);
    client.receive(&[0x80, 9, 0, 0, 0, 0, 0, 0]);
    assert_eq!(client.answer(), Some(Answer::Failed));
}
