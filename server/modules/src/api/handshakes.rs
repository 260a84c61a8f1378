//! Members about TLS handshakes: of the process, of a zone of servers, of an upstream server.
//!
//! Source: nginx documentation, `ngx_http_api_module`, "SSL".

use server_base::handshakes::{CertificateFault, HandshakeCounts};

use super::json::Json;

/// The owner of counts, which decides the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The process: handshakes with clients. Names of clients are not compared, so `hostname_mismatch` is 0.
    Process,
    /// A zone of servers: handshakes with clients.
    Zone,
    /// An upstream server.
    Upstream,
}

/// Returns the object about handshakes.
pub(super) fn object(counts: &HandshakeCounts, owner: Owner, version: u64) -> Json {
    let mut object = Json::object([
        ("handshakes", counts.succeeded.into()),
        ("handshakes_failed", counts.failed.into()),
        ("session_reuses", counts.resumed.into()),
    ]);
    if version < DETAILS_SINCE {
        return object;
    }
    object.push("no_common_protocol", counts.no_common_protocol);
    if owner != Owner::Upstream {
        object.push("no_common_cipher", counts.no_common_cipher);
    }
    object.push("handshake_timeout", counts.timed_out);
    object.push("peer_rejected_cert", counts.rejected_certificate);
    let mut failures = Json::EMPTY;
    for (name, fault, owners) in FAULTS {
        if owners.contains(&owner) {
            failures.push(name, counts.refused_certificates(*fault));
        }
    }
    object.push("verify_failures", failures);
    object
}

/// Members for refused certificates, with the owners that have them.
#[rustfmt::skip] // One line a member.
const FAULTS: &[(&str, CertificateFault, &[Owner])] = &[
    ("no_cert", CertificateFault::Missing, &[Owner::Process, Owner::Zone]),
    ("expired_cert", CertificateFault::Expired, &[Owner::Process, Owner::Zone, Owner::Upstream]),
    ("revoked_cert", CertificateFault::Revoked, &[Owner::Process, Owner::Zone, Owner::Upstream]),
    ("hostname_mismatch", CertificateFault::WrongName, &[Owner::Process, Owner::Upstream]),
    ("other", CertificateFault::Other, &[Owner::Process, Owner::Zone, Owner::Upstream]),
];

/// First version with the members about TLS of zones and upstream servers, and with the reasons of failures.
pub(super) const DETAILS_SINCE: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_depend_on_the_owner_and_on_the_version() {
        let counts = HandshakeCounts {
            succeeded: 1,
            resumed: 2,
            failed: 3,
            no_common_protocol: 4,
            no_common_cipher: 5,
            timed_out: 6,
            rejected_certificate: 7,
            certificates: [8, 9, 10, 11, 12],
        };
        let first = "{\"handshakes\":1,\"handshakes_failed\":3,\"session_reuses\":2";
        let clients = ",\"no_common_protocol\":4,\"no_common_cipher\":5,\"handshake_timeout\":6,\
             \"peer_rejected_cert\":7,\"verify_failures\":{\"no_cert\":8,\"expired_cert\":9,\"revoked_cert\":10,";
        let upstream = ",\"no_common_protocol\":4,\"handshake_timeout\":6,\"peer_rejected_cert\":7,\"verify_failures\":\
             {\"expired_cert\":9,\"revoked_cert\":10,\"hostname_mismatch\":11,\"other\":12}}";
        for (owner, version, rest) in [
            (Owner::Process, 7, "}".to_owned()),
            (
                Owner::Process,
                8,
                format!("{clients}\"hostname_mismatch\":11,\"other\":12}}}}"),
            ),
            (Owner::Zone, 8, format!("{clients}\"other\":12}}}}")),
            (Owner::Upstream, 9, upstream.to_owned()),
        ] {
            let text = object(&counts, owner, version).text();
            assert_eq!(text, format!("{first}{rest}"));
        }
    }
}
