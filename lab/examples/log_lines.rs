//! Prints lines of an access log: `log_lines LINES ADDRESSES [SEED] [FORMAT]`.
//!
//! Addresses are those of IPv4 in an order by chance, as are times and user agents. FORMAT is `min_rtt` (the default), `rtt`,
//! `combined` or `json`. The same numbers print the same lines.

use std::io::{self, BufWriter, Write};

use fastrand::Rng;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let (Some(lines), Some(addresses)) = (number(0), number(1).filter(|number| *number > 0)) else {
        eprintln!("log_lines LINES ADDRESSES [SEED] [FORMAT]");
        std::process::exit(1);
    };
    let mut random = Rng::with_seed(number(2).unwrap_or(1));
    let format = words.get(3).map_or("min_rtt", String::as_str);
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    for n in 0..lines {
        let line = line(n, random.u64(0..addresses), format, &mut random);
        match out.write_all(line.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    out.flush()
}

/// Line number `n`, of a client with a number.
fn line(n: u64, client: u64, format: &str, random: &mut Rng) -> String {
    // An odd factor: numbers below 2^32 have addresses of their own.
    let [a, b, c, d] = (client as u32).wrapping_mul(0x9E37_79B1).to_be_bytes();
    let (page, agent) = (random.u32(0..1000), AGENTS[random.usize(0..AGENTS.len())]);
    let (second, minute, hour) = (n / 1000 % 60, n / 60_000 % 60, n / 3_600_000 % 24);
    let status = [200, 200, 200, 304, 404][random.usize(0..5)];
    let (bytes, requests) = (random.u32(200..90_000), 1 + client % 3 * random.u64(0..4));
    // The same client has about the same time.
    let rtt = 5000 + (client * 7919) % 200_000 + random.u64(0..1000);
    let time = format!("29/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000");
    if format == "json" {
        return format!(
            "{{\"time\":\"{time}\",\"remote_addr\":\"{a}.{b}.{c}.{d}\",\"request\":\"GET /page-{page}.html HTTP/1.1\",\"status\":{status},\"user_agent\":\"{agent}\",\"tcpinfo_min_rtt\":{rtt},\"connection_requests\":{requests}}}\n"
        );
    }
    let suffix = match format {
        "combined" => String::new(),
        "rtt" => format!(" rtt={rtt} requests={requests}"),
        _ => format!(" min_rtt={rtt} requests={requests}"),
    };
    format!(
        "{a}.{b}.{c}.{d} - - [{time}] \"GET /page-{page}.html HTTP/1.1\" {status} {bytes} \"https://www.example.org/\" \"{agent}\"{suffix}\n"
    )
}

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
    "curl/8.16.0",
];
