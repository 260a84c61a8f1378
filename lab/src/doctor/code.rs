//! Codes of findings: stable names, documented in docs/doctor.md.

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($variant:ident $name:literal $about:literal)*) => {
        /// The subject of a finding; codes are added, and none is taken away or given another meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $about] $variant,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its meaning, in one sentence.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

codes! {
    DelayedAckStall "delayed-ack-stall" "The server keeps the end of a response until the client acknowledges what came before."
    HeldFirstByte "held-first-byte" "What the application has flushed does not leave the server at once."
    SmallSlowerThanLarge "small-slower-than-large" "Small responses take longer than large ones."
    ChainOverWindow "chain-over-window" "The certificates do not fit into the first flight and cost a round trip."
    NoCertificateCompression "no-certificate-compression" "Compressed certificates would save bytes of the first flight (RFC 8879)."
    HandshakeRoundTrips "handshake-round-trips" "A handshake takes more round trips than it needs."
    NoResumption "no-resumption" "A returning client has to make a full TLS handshake."
    NoEarlyData "no-early-data" "A returning client cannot send its request with the handshake (RFC 8446 section 2.3)."
    NoHttp2 "no-http2" "Clients that offer HTTP/2 do not get it."
    NoKeepalive "no-keepalive" "The server closes connections after a response."
    NoCompression "no-compression" "Text is sent uncompressed to clients that accept compression."
    PoorCompression "poor-compression" "Another coding or level would make text noticeably smaller."
    PoorCaching "poor-caching" "Static files are requested again although clients could keep them."
    RedirectChain "redirect-chain" "Several redirects lead to the page."
    RedirectToHttpsLate "redirect-to-https-late" "Each visit by http is redirected, because the server does not ask for https (RFC 6797)."
    HeaderBloat "header-bloat" "Heads of responses are large."
    HeadOfLine "head-of-line" "A slow response delays others on its connection."
    TlsRecordSize "tls-record-size" "TLS records of the first bytes span several round trips."
    WriteSize "write-size" "A response leaves in pieces far below the segment size."
    SlowServer "slow-server" "The server takes long to make a response."
    SlowDns "slow-dns" "Looking the name up takes long."
    SlowConnect "slow-connect" "Connecting takes longer than the network's round trip."
    KernelSettings "kernel-settings" "Settings of the kernel or of a network device affect the first byte."
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
