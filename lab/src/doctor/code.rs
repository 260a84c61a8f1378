//! Codes of findings: stable names, documented in docs/doctor.md, with the title and the fixes of each finding.
//!
//! A row of the table has all texts of a code. A code has several titles if several faults, or several sources of facts, lead to
//! it: a capture proves something else than a HAR file. Titles before one `=>` share its fixes.

use std::fmt::Display;

use serde::{Serialize, Serializer};

/// The title of a finding and its fixes, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) code: Code,
    pub(crate) title: String,
    pub(crate) fixes: Vec<String>,
}

macro_rules! lines {
    ({ $($line:tt)* }) => { vec![$(lines!(@ $line)),*] };
    (@ ($shared:ident)) => { $shared.to_owned() };
    (@ ($shared:ident $figure:ident)) => { $shared(&$figure) };
    (@ $line:literal) => { format_args!($line).to_string() };
}

macro_rules! codes {
    ($($code:ident $texts:ident $name:literal $about:literal {
        $($($text:ident($($figure:ident),*) $title:literal)* => $fixes:tt)*
    })*) => {
        /// The subject of a finding; codes are added, and none is taken away or given another meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $about] $code,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $name,)* }
            }

            /// Its meaning, in one sentence.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$code => $about,)* }
            }
        }

        $(pub(crate) mod $texts {
            use super::*;

            $($(pub(crate) fn $text($($figure: impl Display),*) -> Text {
                Text {
                    code: Code::$code,
                    title: format_args!($title).to_string(),
                    fixes: lines!($fixes),
                }
            })*)*
        })*
    };
}

codes! {
    DelayedAckStall delayed_ack_stall "delayed-ack-stall"
    "The server keeps the end of a response until the client acknowledges what came before." {
        server(least, most, worst_ms, hold_ms)
        "Responses of {least} to {most} bytes wait for an acknowledgement: up to {worst_ms:.0} ms later where it is held for {hold_ms} ms"
        => {
            "nginx: tcp_nodelay on; in http, server and location (it is the default: look for an off)"
            "firstbyte: nothing to set, tcp_nodelay is on"
            "other servers: TCP_NODELAY on accepted sockets, and the end of a body in the write of its last bytes"
        }
        capture(times, connections, lost_ms, worst_ms)
        "{times} on {connections} the server kept bytes until a late acknowledgement came, or a timer ran out: {lost_ms} ms each in the middle, at most {worst_ms} ms"
        => {
            "nginx: tcp_nodelay on; wherever it is off (http, server, location); programs behind it: TCP_NODELAY, or one write for a response"
            "firstbyte: nothing to set; connections have TCP_NODELAY from their first byte"
            "again: tcpdump -w again.pcap on the same port with the same requests, then firstbyte doctor --pcap again.pcap"
        }
        page(responses, worst_ms) "{responses} paused as if for a late acknowledgement, up to {worst_ms} ms: a capture proves it"
        => { "tcp_nodelay on;" "tcpdump -w page.pcap, then firstbyte doctor --pcap page.pcap" (PAGE_AGAIN) }
    }
    HeldFirstByte held_first_byte "held-first-byte" "What the application has flushed does not leave the server at once." {
        by_buffers(url, lost_ms) "What {url} flushes early comes with its end: up to {lost_ms:.0} ms later"
        => {
            "nginx: proxy_buffering off; or fastcgi_buffering off; in the location, or X-Accel-Buffering: no from the application"
            "nginx: gzip off; in the location, where the application does not ask gzip to flush"
            "firstbyte: the same directives; the application has to flush its own buffers as well"
        }
        by_acknowledgements(url, lost_ms)
        "What {url} flushes early comes when what was sent before is acknowledged: up to {lost_ms:.0} ms later"
        => { "nginx: tcp_nodelay on;, and 1.7.8 or later over SPDY" "firstbyte: nothing to set, tcp_nodelay is on" }
    }
    SmallSlowerThanLarge small_slower_than_large "small-slower-than-large" "Small responses take longer than large ones." {
        server(small, took_ms, later_ms, large)
        "A body of {small} bytes takes {took_ms:.0} ms, {later_ms:.0} ms more than one of {large} bytes"
        => {
            "if delayed-ack-stall is reported too: its fix"
            "nginx: tcp_nodelay on; no postpone_output and no limit_rate for small files"
            "firstbyte: nothing to set"
        }
    }
    ChainOverWindow chain_over_window "chain-over-window" "The certificates do not fit into the first flight and cost a round trip." {
        server(client, bytes, over, window, server, name)
        "The server's first flight ({client}) has {bytes} bytes, {over} above the initial window of {window}"
        => { "openssl s_client -connect {server} -servername {name} -showcerts </dev/null" }
        file(certificates, own, flight, over, window)
        "{certificates} certificates with {own} bytes make the server's flight about {flight} bytes, {over} above the initial window of {window}"
        => {}
        capture(bytes, first, over, of, trips)
        "the server's handshake has {bytes} bytes, and {first} leave at once: {over} of {of} handshakes wait for {trips} round trips more"
        => {
            "ssl_certificate: leave the root out of the file, and choose a chain with fewer or ECDSA certificates"
            (COMPRESS_OURS)
            (SITE_AGAIN)
        }
    }
    NoCertificateCompression no_certificate_compression "no-certificate-compression"
    "Compressed certificates would save bytes of the first flight (RFC 8879)." {
        server(left, offered) "Certificates are sent uncompressed: brotli would make the first flight {left} bytes of {offered}"
        => { (COMPRESS_NGINX) (COMPRESS_OURS) "firstbyte doctor has first_flight_bytes of tls1.3_compressed below those of tls1.3 then" }
    }
    HandshakeRoundTrips handshake_round_trips "handshake-round-trips" "A handshake takes more round trips than it needs." {
        retried(version)
        "The server answers the first message of {version} by a request to begin anew (HelloRetryRequest): the handshake takes one round trip more"
        => {
            "nginx and firstbyte: ssl_ecdh_curve auto; or a list with X25519 in it, for which clients send a share with their first message"
            "nginx with OpenSSL 3.5 and later: ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1;"
        }
        counted(version, trips, interval, needs) "A handshake of {version} takes {trips:.1} round trips ({interval}), and needs {needs:.0}"
        => {
            "servers and balancers that write their flight in parts, such as nginx before 1.5.6 with more than 4 KB of certificates: bring them up to date"
            "firstbyte via 50ms -- firstbyte doctor URL, where the server is this machine's, has the round trips without the network"
        }
        old_version() "TLS 1.3 is not spoken: a handshake takes two round trips where one is enough"
        => { "nginx and firstbyte: ssl_protocols TLSv1.2 TLSv1.3;" }
        capture(slow, of, older, retries)
        "{slow} of {of} handshakes take a round trip more than TLS 1.3 needs: {older} clients that offered it got an older version, {retries} were asked for another key"
        => { "ssl_protocols TLSv1.2 TLSv1.3;" "ssl_ecdh_curve: name the groups that clients send keys for, X25519 among them" (SITE_AGAIN) }
        page(handshakes, worst_ms) "{handshakes} took about two round trips or more, up to {worst_ms} ms beyond one"
        => {
            "ssl_protocols TLSv1.2 TLSv1.3; and a chain of certificates within ten segments; firstbyte doctor URL finds which"
            (PAGE_AGAIN)
        }
    }
    NoResumption no_resumption "no-resumption" "A returning client has to make a full TLS handshake." {
        never(version, tried, server, name) "No session of {version} is resumed: {tried} of {tried} connections made a full handshake"
        seldom_refused(version, resumed, tried, server, name)
        "Sessions of {version} are resumed {resumed} times of {tried}: the server has refused some"
        often_refused(version, resumed, tried, server, name)
        "Sessions of {version} are resumed {resumed} times of {tried}, as where several processes or machines do not share their keys"
        => {
            "nginx: ssl_session_cache shared:SSL:10m; ssl_session_tickets on;"
            "firstbyte: ssl_session_cache shared:SSL:10m; ssl_session_tickets on;"
            "several machines behind one name: ssl_session_ticket_key with the same file on each"
            "openssl s_client -connect {server} -servername {name} -reconnect -tls1_2 </dev/null | grep Reused"
        }
    }
    NoEarlyData no_early_data "no-early-data" "A returning client cannot send its request with the handshake (RFC 8446 section 2.3)." {
        server() "A returning client cannot send its request with the handshake (0-RTT)"
        => {
            "nginx and firstbyte: ssl_early_data on; proxy_set_header Early-Data $ssl_early_data;"
            "only where applications answer 425 to what must not be replayed (RFC 8470)"
        }
    }
    NoHttp2 no_http2 "no-http2" "Clients that offer HTTP/2 do not get it." {
        no_alpn(server, name) "A client that offers HTTP/2 does not get it: the server takes no part in ALPN"
        other_chosen(other, server, name) "A client that offers HTTP/2 does not get it: the server chose {other}"
        => {
            "nginx (1.25.1 and later) and firstbyte: http2 on;"
            "nginx before: listen 443 ssl http2;"
            "a balancer that ends TLS has to offer h2 itself"
            "openssl s_client -connect {server} -servername {name} -alpn h2,http/1.1 </dev/null | grep ALPN"
        }
        without_tls() "Without TLS browsers speak HTTP/1.1: one request at a time on a connection"
        => { "nginx and firstbyte: listen 443 ssl; http2 on; and a redirect from http" }
        page(servers, least, worst_ms)
        "{servers} with {least} requests or more answered by HTTP/1; requests were queued for up to {worst_ms} ms"
        => { "http2 on; beside listen ... ssl" (PAGE_AGAIN) }
    }
    NoKeepalive no_keepalive "no-keepalive" "The server closes connections after a response." {
        server(protocol, responses, how, url) "The server closes a connection of {protocol} after {responses}, {how}"
        => {
            "nginx and firstbyte: keepalive_timeout 75s; keepalive_requests 1000; (the defaults)"
            "an application that sends Connection: close itself, and balancers in front, have settings of their own"
            "curl -sv -o /dev/null {url} -o /dev/null {url} 2>&1 | grep -i re-us"
        }
        page(requests, worst_ms) "{requests} had to open a connection because the server had closed the last, up to {worst_ms} ms each"
        => { "keepalive_timeout 75s; keepalive_requests 1000;" (PAGE_AGAIN) }
    }
    NoCompression no_compression "no-compression" "Text is sent uncompressed to clients that accept compression." {
        server(sent, mime_type, best, bytes, gzip, others, url)
        "{sent} bytes of {mime_type} are sent uncompressed; {best} makes them {bytes}"
        => { "nginx: {gzip} gzip_comp_level 6;" "firstbyte: {others} {gzip}" (size_by_curl url) }
        page(texts, least) "{texts} of {least} bytes or more came uncompressed"
        => {
            "gzip on; gzip_types text/css application/javascript application/json image/svg+xml;"
            "firstbyte: brotli on; zstd on; with the same types"
            (PAGE_AGAIN)
        }
    }
    PoorCompression poor_compression "poor-compression" "Another coding or level would make text noticeably smaller." {
        server(sent, mime_type, own, best, bytes, url) "{sent} bytes of {mime_type} as {own}; {best} makes them {bytes}"
        => {
            "nginx: gzip_comp_level 6; or files that were compressed before, with gzip_static on;"
            "firstbyte: brotli on; brotli_comp_level 5; zstd on; zstd_comp_level 6; or brotli_static on; with files of firstbyte freeze"
            (size_by_curl url)
        }
    }
    PoorCaching poor_caching "poor-caching" "Static files are requested again although clients could keep them." {
        any(files, faults) "Of {files} static files clients keep some less than they could: {faults}"
        => {}
    }
    RedirectChain redirect_chain "redirect-chain" "Several redirects lead to the page." {
        reached(redirects, place, url) "{redirects} lead to the page, where one is enough"
        too_many(redirects, why, place, url) "{redirects} do not lead to a page: {why}"
        => { "nginx and firstbyte: the first redirect goes to the last place at once: return 301 {place};" (redirects_by_curl url) }
        itself(place, clients, url) "A redirect leads to itself: {place}{clients}"
        circle(redirects, why, clients, url) "{redirects} do not lead to a page: {why}{clients}"
        => {
            "one place of the circle has to answer itself; a server behind a proxy that ends TLS tests $http_x_forwarded_proto, not $scheme"
            (redirects_by_curl url)
        }
        unreachable(redirects, place, why, url) "{redirects} to a place that cannot be reached: {place}: {why}"
        => { "{place} has to answer, or the redirect has to name another place" (redirects_by_curl url) }
        page(redirects, worst_ms) "{redirects} before the page, {worst_ms} ms in all"
        => { "return 301 https://NAME$request_uri; straight to the last address, from each of the others" (PAGE_AGAIN) }
    }
    RedirectToHttpsLate redirect_to_https_late "redirect-to-https-late"
    "Each visit by http is redirected, because the server does not ask for https (RFC 6797)." {
        no_field(url) "Visits by http are redirected to https each time: there is no Strict-Transport-Security"
        no_age(url) "Visits by http are redirected to https each time: Strict-Transport-Security has no max-age"
        short_age(age, url) "Visits by http are redirected to https again after {age} s, the max-age of Strict-Transport-Security"
        => {
            "nginx and firstbyte, in the server of https: add_header Strict-Transport-Security \"max-age=31536000\" always;"
            "curl -sI {url} | grep -i strict-transport-security"
        }
    }
    HeaderBloat header_bloat "header-bloat" "Heads of responses are large." {
        server(bytes, usual, url) "The head of a response has {bytes} bytes; {usual} are usual"
        => { "curl -s -o /dev/null -w '%{{size_header}}\\n' {url}" }
        page(responses, least) "{responses} with a head of {least} bytes or more"
        => { "add_header, Set-Cookie and Content-Security-Policy: shorter, and where they are needed alone" (PAGE_AGAIN) }
    }
    HeadOfLine head_of_line "head-of-line" "A slow response delays others on its connection." {
        server(later_ms, kind) "A small response takes {later_ms:.0} ms more while a {kind} one is in progress on its connection"
        => {
            "nginx: http2_chunk_size 8k; or spdy_chunk_size 8k;, and slow pages from a process of their own"
            "firstbyte: nothing to set, streams take turns by urgency"
        }
    }
    TlsRecordSize tls_record_size "tls-record-size" "TLS records of the first bytes span several round trips." {
        server(bytes)
        "The first record of a response has {bytes} bytes, more than a first window: nothing of it can be read for a round trip"
        => { "nginx: ssl_buffer_size 4k;" "firstbyte: nothing to set, the first records are small whatever ssl_buffer_size is" }
        capture(connections, bytes, took_ms)
        "on {connections} the first records of data took a round trip to arrive, up to {bytes} bytes in {took_ms} ms: nothing of a record can be read before its end"
        => {
            "nginx: ssl_buffer_size 4k;"
            "firstbyte: ssl_buffer_size away from the configuration: records are small at first and grow"
            (SITE_AGAIN)
        }
    }
    WriteSize write_size "write-size" "A response leaves in pieces far below the segment size." {
        server(bytes, least, full) "A response of {bytes} bytes comes in {least} segments where {full} hold it"
        => {
            "nginx: larger buffers (output_buffers, proxy_buffer_size, gzip_buffers), sendfile on; tcp_nopush on;"
            "firstbyte: nothing to set; an application that flushes after each line should not"
        }
        capture(connections, segment, segments, bytes, needed)
        "on {connections} data left in segments far below {segment} bytes with more at once behind them, up to {segments} in a row for {bytes} bytes, where {needed} would do"
        => {
            "nginx: postpone_output 1460; tcp_nopush on; and larger buffers of what the program writes"
            "again: firstbyte doctor --pcap of a new capture"
        }
    }
    SlowServer slow_server "slow-server" "The server takes long to make a response." {
        server(took_ms, interval, timing, url) "The server takes {took_ms:.0} ms for a response ({interval}) beyond the round trip{timing}"
        => {
            "nginx: proxy_cache, fastcgi_cache and so on, with proxy_cache_background_update on and proxy_cache_use_stale updating"
            "firstbyte: server_timing on; says what part of it is the application's"
            "an application that flushes the page's head before it computes the rest: early bytes name scripts and styles"
            "firstbyte bench --connections 1 --requests 20 {url}"
        }
        page(requests, least_ms, worst_ms) "{requests} waited {least_ms} ms or longer for the server alone, up to {worst_ms} ms"
        => {
            "proxy_cache or fastcgi_cache for what may be kept, and Server-Timing from the program to see which part takes long"
            (PAGE_AGAIN)
        }
    }
    SlowDns slow_dns "slow-dns" "Looking the name up takes long." {
        server(host, first_ms, least_ms) "Looking up {host} took {first_ms:.0} ms, and {least_ms:.0} ms at best"
        => {
            "a longer time to live of the name's records, fewer CNAMEs, name servers near visitors; see dig +trace"
            "where each look-up is slow: the first server of /etc/resolv.conf does not answer (options timeout, attempts)"
        }
        page(lookups, least_ms, worst_ms) "{lookups} took {least_ms} ms or longer, up to {worst_ms} ms"
        => { "fewer hosts a page, and addresses that live longer in the zone (TTL)" (PAGE_AGAIN) }
    }
    SlowConnect slow_connect "slow-connect" "Connecting takes longer than the network's round trip." {
        several_again(again, of)
        "{again} of {of} connections took a second or more longer than a round trip: the server did not answer the first SYN"
        one_again() "One connection took a second or more longer than a round trip: a SYN was lost, or not answered"
        all_late(late_ms, interval) "Connecting takes {late_ms:.0} ms ({interval}) longer than a round trip"
        => {
            "nginx and firstbyte: listen ... backlog=4096; and net.core.somaxconn as much"
            "nstat -az TcpExtListenOverflows TcpExtListenDrops on the server, twice: numbers that grow say that the backlog is full"
            "a firewall or balancer that answers late or limits connections"
        }
        capture(again, of, unanswered, lost_ms, worst_ms)
        "{again} of {of} connections were opened at a second attempt or later, {unanswered} not at all: {lost_ms} ms each in the middle, at most {worst_ms} ms"
        => {
            "a full queue of connections drops SYNs: net.core.somaxconn, net.ipv4.tcp_max_syn_backlog, and listen ... backlog=; see nstat TcpExtListenDrops"
            "a filter or a lossy way drops them otherwise: capture at both ends and compare"
        }
        page(connections, worst_ms) "{connections} took twice the least time or longer, up to {worst_ms} ms more"
        => { "net.core.somaxconn, net.ipv4.tcp_max_syn_backlog and listen ... backlog=; a second more is a SYN that was lost" (PAGE_AGAIN) }
    }
    KernelSettings kernel_settings "kernel-settings" "Settings of the kernel or of a network device affect the first byte." {
        noted(settings) "Settings of this machine: {settings}"
        => {}
        tried(setting, body, lost_ms, interval, other, command, caveat)
        "With {setting} {body} takes {lost_ms:.0} ms ({interval}) longer than with {other}"
        => { "{command}; {caveat}" }
    }
}

/// Fixes that several rows share, or that a finding has only in some cases.
const PAGE_AGAIN: &str =
    "again: firstbyte waterfall URL --har again.har, then firstbyte doctor --har again.har";
const SITE_AGAIN: &str = "again: firstbyte doctor https://NAME/";
pub(super) const COMPRESS_NGINX: &str = "nginx (1.29.1 and later): ssl_certificate_compression on;";
pub(super) const COMPRESS_OURS: &str = "firstbyte: ssl_certificate_compression on;";
pub(super) const SMALLER_CHAIN: &str = "a certificate with an ECDSA key, fewer names in it, and an authority with a shorter chain need fewer bytes";
pub(super) const UPGRADE_SPDY: &str =
    "nginx: upgrade to 1.7.8 or later, which sends the last frame of a SPDY response at once";

/// Fixes of `poor-caching`, by fault.
pub(super) const STORE: &str =
    "static files need no no-store; nginx and firstbyte: etag on; and expires 1h;";
pub(super) const REVALIDATE: &str = "applications: answer If-None-Match and If-Modified-Since by 304, as nginx and firstbyte do for files";
pub(super) const KEEP_LONG: &str = "nginx and firstbyte, for names with a hash: add_header Cache-Control \"public, max-age=31536000, immutable\";";
pub(super) const EXPIRE: &str = "nginx and firstbyte: expires 1h;";

fn redirects_by_curl(url: impl Display) -> String {
    format!("curl -sIL -o /dev/null -w '%{{num_redirects}} %{{time_redirect}}\\n' {url}")
}

fn size_by_curl(url: impl Display) -> String {
    format!(
        "curl -s -o /dev/null -H 'Accept-Encoding: {ACCEPTED}' -w '%{{size_download}}\\n' {url}"
    )
}

/// The `Accept-Encoding` of a browser.
pub(super) const ACCEPTED: &str = "gzip, deflate, br, zstd";

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
