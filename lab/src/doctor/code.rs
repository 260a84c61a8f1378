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
    "The server holds the end of a response until the client acknowledges its beginning." {
        server(least, most, worst_ms, hold_ms)
        "Responses of {least} to {most} bytes wait for an acknowledgement: up to {worst_ms:.0} ms late if the client delays it by {hold_ms} ms"
        => {
            "nginx: tcp_nodelay on; in http, server and location (the default: search for tcp_nodelay off)"
            "firstbyte: nothing to set, tcp_nodelay is on"
            "other servers: set TCP_NODELAY on accepted sockets, and end a body with the write of its last bytes"
        }
        capture(times, connections, lost_ms, worst_ms)
        "{times} on {connections}, the server held data until a late acknowledgement or a timer: median {lost_ms} ms, at most {worst_ms} ms"
        => {
            "nginx: tcp_nodelay on; in http, server and location; applications: TCP_NODELAY, or one write per response"
            "firstbyte: nothing to set, all connections have TCP_NODELAY"
            "again: tcpdump -w again.pcap with the same requests, then firstbyte doctor --pcap again.pcap"
        }
        page(responses, worst_ms) "{responses} paused for up to {worst_ms} ms, as if for a late acknowledgement; only a capture can prove it"
        => { "tcp_nodelay on;" "tcpdump -w page.pcap, then firstbyte doctor --pcap page.pcap" (PAGE_AGAIN) }
    }
    HeldFirstByte held_first_byte "held-first-byte" "The server does not send flushed data of an application at once." {
        by_buffers(url, lost_ms) "Data that {url} flushes early arrives with the end of the page: up to {lost_ms:.0} ms late"
        => {
            "nginx: proxy_buffering off; or fastcgi_buffering off; in the location, or X-Accel-Buffering: no from the application"
            "nginx: gzip off; in the location, if gzip still holds flushed data"
            "firstbyte: the same directives, and the application must flush its own buffers"
        }
        by_acknowledgements(url, lost_ms)
        "Data that {url} flushes early waits until earlier data is acknowledged: up to {lost_ms:.0} ms late"
        => { "nginx: tcp_nodelay on; over SPDY also nginx 1.7.8 or later" "firstbyte: nothing to set, tcp_nodelay is on" }
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
    ChainOverWindow chain_over_window "chain-over-window" "The server's certificates exceed the initial window and cost a round trip." {
        server(client, bytes, over, window, server, name)
        "The server's first flight ({client}) has {bytes} bytes, {over} above the initial window of {window}"
        => { "openssl s_client -connect {server} -servername {name} -showcerts </dev/null" }
        file(certificates, own, flight, over, window)
        "{certificates} certificates of {own} bytes make the server's first flight about {flight} bytes, {over} above the initial window of {window}"
        => {}
        capture(bytes, first, over, of, trips)
        "The server's first flight has {bytes} bytes, but only {first} are sent at once: {over} of {of} handshakes lose up to {trips}"
        => {
            "ssl_certificate: omit the root, and use a chain with fewer or ECDSA certificates"
            (COMPRESS_OURS)
            (SITE_AGAIN)
        }
    }
    NoCertificateCompression no_certificate_compression "no-certificate-compression"
    "Compressed certificates would save bytes of the first flight (RFC 8879)." {
        server(left, offered) "Certificates are sent uncompressed: brotli would reduce the first flight from {offered} to {left} bytes"
        => { (COMPRESS_NGINX) (COMPRESS_OURS) "then firstbyte doctor reports fewer first_flight_bytes for tls1.3_compressed than for tls1.3" }
    }
    HandshakeRoundTrips handshake_round_trips "handshake-round-trips" "A TLS handshake takes more round trips than necessary." {
        retried(version)
        "The server answers a {version} ClientHello with HelloRetryRequest: the handshake takes one more round trip"
        => {
            "nginx and firstbyte: ssl_ecdh_curve auto; or a list with X25519, for which clients send a key share at once"
            "nginx with OpenSSL 3.5 and later: ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1;"
        }
        counted(version, trips, interval, needs) "A {version} handshake takes {trips:.1} round trips ({interval}) instead of {needs:.0}"
        => {
            "upgrade servers and balancers that send their flight in parts, such as nginx before 1.5.6 with certificates above 4 KB"
            "if the server runs on this machine: firstbyte via 50ms -- firstbyte doctor URL counts the round trips over an emulated link"
        }
        old_version() "TLS 1.3 is not supported: a handshake takes two round trips instead of one"
        => { "nginx and firstbyte: ssl_protocols TLSv1.2 TLSv1.3;" }
        capture(slow, of, older, retries)
        "{slow} of {of} handshakes take one more round trip than TLS 1.3 needs: {older} got an older version although the client offered 1.3, {retries} got a HelloRetryRequest"
        => { "ssl_protocols TLSv1.2 TLSv1.3;" "ssl_ecdh_curve: include the groups of clients' key shares, such as X25519" (SITE_AGAIN) }
        page(handshakes, worst_ms) "{handshakes} took about two round trips or more, up to {worst_ms} ms beyond one"
        => {
            "ssl_protocols TLSv1.2 TLSv1.3; and a certificate chain within ten segments; firstbyte doctor URL shows which of the two is needed"
            (PAGE_AGAIN)
        }
    }
    NoResumption no_resumption "no-resumption" "Returning clients make a full TLS handshake." {
        never(version, tried, server, name) "No {version} session is resumed: all {tried} connections made a full handshake"
        seldom_refused(version, resumed, tried, server, name)
        "{resumed} of {tried} {version} sessions were resumed: the server refused some"
        often_refused(version, resumed, tried, server, name)
        "{resumed} of {tried} {version} sessions were resumed, as with processes or machines that do not share keys"
        => {
            "nginx: ssl_session_cache shared:SSL:10m; ssl_session_tickets on;"
            "firstbyte: ssl_session_cache shared:SSL:10m; ssl_session_tickets on;"
            "several machines behind one name: the same ssl_session_ticket_key file on each"
            "openssl s_client -connect {server} -servername {name} -reconnect -tls1_2 </dev/null | grep Reused"
        }
    }
    NoEarlyData no_early_data "no-early-data" "A returning client cannot send its request with the handshake (RFC 8446 section 2.3)." {
        server() "A returning client cannot send its request with the handshake (0-RTT)"
        => {
            "nginx and firstbyte: ssl_early_data on; proxy_set_header Early-Data $ssl_early_data;"
            "only if applications answer 425 to requests that must not be replayed (RFC 8470)"
        }
    }
    NoHttp2 no_http2 "no-http2" "Clients that offer HTTP/2 do not get it." {
        no_alpn(server, name) "Clients that offer HTTP/2 do not get it: the server does not use ALPN"
        other_chosen(other, server, name) "Clients that offer HTTP/2 do not get it: the server chose {other}"
        => {
            "nginx (1.25.1 and later) and firstbyte: http2 on;"
            "nginx before: listen 443 ssl http2;"
            "a balancer that terminates TLS must offer h2 itself"
            "openssl s_client -connect {server} -servername {name} -alpn h2,http/1.1 </dev/null | grep ALPN"
        }
        without_tls() "Browsers use HTTP/1.1 without TLS: one request at a time per connection"
        => { "nginx and firstbyte: listen 443 ssl; http2 on; and a redirect from http" }
        page(servers, least, worst_ms)
        "{servers} answered {least} or more requests each over HTTP/1; requests were queued for up to {worst_ms} ms"
        => { "http2 on; with listen ... ssl" (PAGE_AGAIN) }
    }
    NoKeepalive no_keepalive "no-keepalive" "The server closes connections after a response." {
        server(protocol, responses, how, url) "The server closes {protocol} connections after {responses}, {how}"
        => {
            "nginx and firstbyte: keepalive_timeout 75s; keepalive_requests 1000; (the defaults)"
            "applications that send Connection: close, and balancers, have their own settings"
            "curl -sv -o /dev/null {url} -o /dev/null {url} 2>&1 | grep -i re-us"
        }
        page(requests, worst_ms) "{requests} opened a connection because the server had closed the last one, up to {worst_ms} ms each"
        => { "keepalive_timeout 75s; keepalive_requests 1000;" (PAGE_AGAIN) }
    }
    NoCompression no_compression "no-compression" "Text is sent uncompressed to clients that accept compression." {
        server(sent, mime_type, best, bytes, gzip, others, url)
        "{sent} bytes of {mime_type} are sent uncompressed; {best} reduces them to {bytes}"
        => { "nginx: {gzip} gzip_comp_level 6;" "firstbyte: {others} {gzip}" (size_by_curl url) }
        page(texts, least) "{texts} of {least} bytes or more arrived uncompressed"
        => {
            "gzip on; gzip_types text/css application/javascript application/json image/svg+xml;"
            "firstbyte: brotli on; zstd on; with the same types"
            (PAGE_AGAIN)
        }
    }
    PoorCompression poor_compression "poor-compression" "Another coding or level would make text noticeably smaller." {
        server(sent, mime_type, own, best, bytes, url) "{sent} bytes of {mime_type} with {own}; {best} reduces them to {bytes}"
        => {
            "nginx: gzip_comp_level 6; or precompressed files with gzip_static on;"
            "firstbyte: brotli on; brotli_comp_level 5; zstd on; zstd_comp_level 6; or brotli_static on; with files of firstbyte freeze"
            (size_by_curl url)
        }
    }
    PoorCaching poor_caching "poor-caching" "Static files are requested again although clients could keep them." {
        any(files, faults) "Of {files} static files, some are cached less than possible: {faults}"
        => {}
    }
    RedirectChain redirect_chain "redirect-chain" "Several redirects lead to the page." {
        reached(redirects, place, url) "{redirects} lead to the page; one is enough"
        too_many(redirects, why, place, url) "{redirects} do not lead to a page: {why}"
        => { "nginx and firstbyte: redirect to the final URL at once: return 301 {place};" (redirects_by_curl url) }
        itself(place, clients, url) "A redirect leads to itself: {place}{clients}"
        circle(redirects, why, clients, url) "{redirects} do not lead to a page: {why}{clients}"
        => {
            "one URL of the loop must not redirect; behind a proxy that terminates TLS, test $http_x_forwarded_proto instead of $scheme"
            (redirects_by_curl url)
        }
        unreachable(redirects, place, why, url) "{redirects} to a URL that cannot be reached: {place}: {why}"
        => { "make {place} answer, or redirect to another URL" (redirects_by_curl url) }
        page(redirects, worst_ms) "{redirects} before the page, {worst_ms} ms in total"
        => { "redirect each of the other URLs to the final one: return 301 https://NAME$request_uri;" (PAGE_AGAIN) }
    }
    RedirectToHttpsLate redirect_to_https_late "redirect-to-https-late"
    "Visits over http are redirected again, since Strict-Transport-Security is missing or lacks a max-age of a day or more (RFC 6797)." {
        no_field(url) "Visits over http are redirected to https each time: there is no Strict-Transport-Security"
        no_age(url) "Visits over http are redirected to https each time: Strict-Transport-Security has no max-age"
        short_age(age, url) "Visits over http are redirected to https again after {age} s, the max-age of Strict-Transport-Security"
        => {
            "nginx and firstbyte, in the https server: add_header Strict-Transport-Security \"max-age=31536000\" always;"
            "curl -sI {url} | grep -i strict-transport-security"
        }
    }
    HeaderBloat header_bloat "header-bloat" "Response headers are large." {
        server(bytes, usual, url) "The response header has {bytes} bytes; {usual} are usual"
        => { "curl -s -o /dev/null -w '%{{size_header}}\\n' {url}" }
        page(responses, least) "{responses} with a header of {least} bytes or more"
        => { "shorten values of add_header, Set-Cookie and Content-Security-Policy, and send them only with pages that need them" (PAGE_AGAIN) }
    }
    HeadOfLine head_of_line "head-of-line" "A slow response delays others on its connection." {
        server(later_ms, kind) "A small response takes {later_ms:.0} ms more while a {kind} one is in progress on its connection"
        => {
            "nginx: http2_chunk_size 8k; or spdy_chunk_size 8k; serve slow pages from a separate process"
            "firstbyte: nothing to set, streams take turns by urgency"
        }
    }
    TlsRecordSize tls_record_size "tls-record-size" "The first TLS record of a response is so large that its end arrives a round trip after its beginning." {
        server(bytes)
        "The first record of a response has {bytes} bytes, more than the initial window: no byte of it can be read for a round trip"
        => { "nginx: ssl_buffer_size 4k;" "firstbyte: remove ssl_buffer_size, since records start small and grow" }
        capture(connections, bytes, took_ms)
        "On {connections}, the first data record took a round trip to arrive, up to {bytes} bytes in {took_ms} ms: no byte of a record can be read before its last"
        => {
            "nginx: ssl_buffer_size 4k;"
            "firstbyte: remove ssl_buffer_size, since records start small and grow"
            (SITE_AGAIN)
        }
    }
    WriteSize write_size "write-size" "A response is sent in segments far below the segment size." {
        server(bytes, least, full) "A response of {bytes} bytes takes {least} segments; {full} would hold it"
        => {
            "nginx: larger buffers (output_buffers, proxy_buffer_size, gzip_buffers), sendfile on; tcp_nopush on;"
            "firstbyte: nothing to set, but applications must not flush after each line"
        }
        capture(connections, segment, segments, bytes, needed)
        "On {connections}, data was sent in segments far below {segment} bytes although more followed at once: up to {segments} in a row for {bytes} bytes; {needed} would hold them"
        => {
            "nginx: postpone_output 1460; tcp_nopush on; and larger write buffers in the application"
            "again: firstbyte doctor --pcap of a new capture"
        }
    }
    SlowServer slow_server "slow-server" "The server takes long to generate a response." {
        server(took_ms, interval, timing, url) "The server takes {took_ms:.0} ms ({interval}) for a response, without the round trip{timing}"
        => {
            "nginx: proxy_cache with proxy_cache_background_update on; and proxy_cache_use_stale updating; (for FastCGI, the same directives of fastcgi_cache)"
            "firstbyte: server_timing on; shows the application's share"
            "applications: flush the page's head before the rest is computed, so that browsers load scripts and styles early"
            "firstbyte bench --connections 1 --requests 20 {url}"
        }
        page(requests, least_ms, worst_ms) "{requests} waited {least_ms} ms or longer for the server itself, up to {worst_ms} ms"
        => {
            "nginx: proxy_cache or fastcgi_cache for responses that may be stored"
            "firstbyte: server_timing on; shows the application's share"
            "applications: send Server-Timing, and flush the page's head before the rest is computed"
            (PAGE_AGAIN)
        }
    }
    SlowDns slow_dns "slow-dns" "The name lookup takes long." {
        server(host, first_ms, least_ms) "The lookup of {host} took {first_ms:.0} ms, and {least_ms:.0} ms at best"
        => {
            "a longer TTL, fewer CNAMEs, name servers near visitors; see dig +trace"
            "if every lookup is slow: the first server of /etc/resolv.conf may not answer (options timeout, attempts)"
        }
        page(lookups, least_ms, worst_ms) "{lookups} took {least_ms} ms or longer, up to {worst_ms} ms"
        => { "fewer hosts per page, and a longer TTL in the zone" (PAGE_AGAIN) }
    }
    SlowConnect slow_connect "slow-connect" "Connecting takes longer than the network's round trip." {
        several_again(again, of)
        "{again} of {of} connections took a second or more longer than a round trip: the server did not answer the first SYN"
        one_again() "One connection took a second or more longer than a round trip: a SYN was lost, or not answered"
        all_late(late_ms, interval) "Connecting takes {late_ms:.0} ms ({interval}) longer than a round trip"
        => {
            "nginx and firstbyte: listen ... backlog=4096; and net.core.somaxconn of the same size"
            "nstat -az TcpExtListenOverflows TcpExtListenDrops on the server, twice: growing numbers mean a full backlog"
            "check firewalls and balancers that answer late or limit connections"
        }
        capture(again, of, unanswered, lost_ms, worst_ms)
        "{again} of {of} connections needed more than one SYN, and {unanswered} of them were never answered: median {lost_ms} ms, at most {worst_ms} ms"
        => {
            "a full backlog drops SYNs: net.core.somaxconn, net.ipv4.tcp_max_syn_backlog, and listen ... backlog=; see nstat TcpExtListenDrops"
            "else a firewall or a lossy path drops them: compare captures of both ends"
        }
        page(connections, worst_ms) "{connections} took twice the least time or longer, up to {worst_ms} ms more"
        => { "net.core.somaxconn, net.ipv4.tcp_max_syn_backlog and listen ... backlog=; a delay of one second means a lost SYN" (PAGE_AGAIN) }
    }
    KernelSettings kernel_settings "kernel-settings" "Settings of the kernel or of a network device affect the first byte." {
        noted(settings) "Settings of this machine: {settings}"
        => {}
        tried(setting, body, lost_ms, interval, other, command, caveat)
        "With {setting}, {body} takes {lost_ms:.0} ms ({interval}) longer than with {other}"
        => { "{command}; {caveat}" }
    }
}

/// Fixes that several rows share, or that a finding has only in some cases.
const PAGE_AGAIN: &str =
    "again: firstbyte waterfall URL --har again.har, then firstbyte doctor --har again.har";
const SITE_AGAIN: &str = "again: firstbyte doctor https://NAME/";
pub(super) const COMPRESS_NGINX: &str = "nginx (1.29.1 and later): ssl_certificate_compression on;";
pub(super) const COMPRESS_OURS: &str = "firstbyte: ssl_certificate_compression on;";
pub(super) const SMALLER_CHAIN: &str =
    "smaller certificates: an ECDSA key, fewer names, an authority with a shorter chain";
pub(super) const UPGRADE_SPDY: &str =
    "nginx: upgrade to 1.7.8 or later, which sends the last frame of a SPDY response at once";

/// Fixes of `poor-caching`, by fault.
pub(super) const STORE: &str =
    "remove no-store from static files; nginx and firstbyte: etag on; expires 1h;";
pub(super) const REVALIDATE: &str = "applications: answer If-None-Match and If-Modified-Since with 304, as nginx and firstbyte do for files";
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
