//! The end of a request body, decided once from the framing fields.
//!
//! Request smuggling relies on two readers that disagree about this, so ambiguity is refused, not
//! repaired. Source: RFC 9112 sections 6.1 and 6.3; nginx's answers.

use crate::http::{BodyLength, Fault, Version, parse_length};

/// Framing fields of a head, collected so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Framing {
    length: Length,
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, Default)]
enum Length {
    #[default]
    Absent,
    Bytes(u64),
    Bad,
}

#[derive(Clone, Copy, Debug, Default)]
enum Encoding {
    #[default]
    Absent,
    Chunked,
    Unknown,
}

impl Framing {
    /// Takes a Content-Length field.
    pub(super) fn content_length(&mut self, value: &[u8]) -> Result<(), Fault> {
        if !matches!(self.length, Length::Absent) {
            return Err(Fault::DuplicateContentLength);
        }
        self.length = parse_length(value).map_or(Length::Bad, Length::Bytes);
        Ok(())
    }

    /// Takes a Transfer-Encoding field.
    pub(super) fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Fault> {
        if !matches!(self.encoding, Encoding::Absent) {
            return Err(Fault::DuplicateEncoding);
        }
        let chunked = value.eq_ignore_ascii_case(b"chunked");
        self.encoding = if chunked {
            Encoding::Chunked
        } else {
            Encoding::Unknown
        };
        Ok(())
    }

    /// The body length, once all fields are known.
    pub(super) fn body(self, version: Version) -> Result<BodyLength, Fault> {
        match (self.length, self.encoding) {
            (Length::Bad, _) => Err(Fault::BadContentLength),
            (_, Encoding::Chunked | Encoding::Unknown) if version < Version::Http11 => {
                Err(Fault::EncodingInHttp10)
            }
            (_, Encoding::Unknown) => Err(Fault::UnknownEncoding),
            (Length::Bytes(_), Encoding::Chunked) => Err(Fault::LengthAndEncoding),
            (Length::Absent, Encoding::Chunked) => Ok(BodyLength::Unknown),
            (Length::Bytes(bytes), Encoding::Absent) => Ok(BodyLength::Length(bytes)),
            (Length::Absent, Encoding::Absent) => Ok(BodyLength::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(lengths: &[&str], encodings: &[&str], version: Version) -> Result<BodyLength, Fault> {
        let mut framing = Framing::default();
        for length in lengths {
            framing.content_length(length.as_bytes())?;
        }
        for encoding in encodings {
            framing.transfer_encoding(encoding.as_bytes())?;
        }
        framing.body(version)
    }

    #[test]
    fn a_length_is_digits_and_nothing_else() {
        let of = |length| body(&[length], &[], Version::Http11);
        assert_eq!(of("0"), Ok(BodyLength::Length(0)));
        assert_eq!(of("007"), Ok(BodyLength::Length(7)));
        assert_eq!(
            of("9223372036854775807"),
            Ok(BodyLength::Length(i64::MAX as u64))
        );
        for length in [
            "",
            "+1",
            "-1",
            "0x1",
            "1Z",
            "1_0",
            "1, 1",
            "1 1",
            "1.0",
            "9223372036854775808",
            "18446744073709551616",
        ] {
            assert_eq!(of(length), Err(Fault::BadContentLength), "{length:?}");
        }
    }

    /// RFC 9112 section 6.3 allows equal repeats to be accepted; we do not.
    #[test]
    fn repeated_framing_fields_are_refused() {
        assert_eq!(
            body(&["1", "1"], &[], Version::Http11),
            Err(Fault::DuplicateContentLength)
        );
        assert_eq!(
            body(&["1", "2"], &[], Version::Http11),
            Err(Fault::DuplicateContentLength)
        );
        let twice = body(&[], &["chunked", "chunked"], Version::Http11);
        assert_eq!(twice, Err(Fault::DuplicateEncoding));
        assert_eq!(twice.unwrap_err().status(), 400);
    }

    /// RFC 9112 section 6.1: an unknown coding is answered with 501.
    #[test]
    fn only_chunked_is_a_known_encoding() {
        let of = |encoding| body(&[], &[encoding], Version::Http11);
        assert_eq!(of("chunked"), Ok(BodyLength::Unknown));
        assert_eq!(of("Chunked"), Ok(BodyLength::Unknown));
        for encoding in [
            "identity",
            "chunked, identity",
            "xchunked",
            ",chunked",
            "chunked, chunked",
            "gzip, chunked",
            "\x0bchunked",
            "\u{a0}chunked",
            "",
            "chunked;q=1",
        ] {
            assert_eq!(of(encoding), Err(Fault::UnknownEncoding), "{encoding:?}");
        }
    }

    /// RFC 9112 section 6.3, item 3: both fields at once are an attack.
    #[test]
    fn length_and_encoding_together_are_refused() {
        assert_eq!(
            body(&["5"], &["chunked"], Version::Http11),
            Err(Fault::LengthAndEncoding)
        );
        assert_eq!(
            body(&["5"], &["chunked"], Version::Http10),
            Err(Fault::EncodingInHttp10)
        );
        assert_eq!(
            body(&[], &["chunked"], Version::Http10),
            Err(Fault::EncodingInHttp10)
        );
        assert_eq!(
            body(&["x"], &["chunked"], Version::Http11),
            Err(Fault::BadContentLength)
        );
    }
}
