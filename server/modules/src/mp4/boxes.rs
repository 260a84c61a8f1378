//! The boxes of an MP4 file, which nginx calls atoms: heads, boxes inside of boxes, times in their heads;
//! read and written.
//!
//! Source: ISO/IEC 14496-12, sections 4.2 and 8.

use super::error::Mp4Error;

/// The four letters of a box.
pub(crate) type BoxType = [u8; 4];

/// The head of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: BoxType,
    /// Size of the head, bytes.
    pub(crate) head_bytes: u64,
    /// Size of the body, bytes.
    pub(crate) body_bytes: u64,
}

/// Maximum size of a head, bytes.
pub(crate) const HEAD_BYTES_MAX: u64 = 16;
const SHORT_HEAD_BYTES: u64 = 8;

impl Head {
    /// Reads a head from the first [`HEAD_BYTES_MAX`] bytes of a box, or fewer at the end of the file. `rest_bytes` is
    /// the number of bytes left in the enclosing box or file, from this head on. A box of size 0 extends to that end.
    pub(crate) fn parse(bytes: &[u8], rest_bytes: u64) -> Result<Self, Mp4Error> {
        let short = bytes.first_chunk::<8>().ok_or(Mp4Error::Truncated)?;
        let [a, b, c, d, kind @ ..] = *short;
        let short = u64::from(u32::from_be_bytes([a, b, c, d]));
        let (size, head_bytes) = match short {
            0 => (rest_bytes, SHORT_HEAD_BYTES),
            1 => {
                let long = number64(bytes, 8).ok_or(Mp4Error::Truncated)?;
                (long, HEAD_BYTES_MAX)
            }
            size => (size, SHORT_HEAD_BYTES),
        };
        let body_bytes = size
            .checked_sub(head_bytes)
            .ok_or(Mp4Error::BoxTooSmall(size))?;
        if size > rest_bytes {
            return Err(Mp4Error::BoxTooLarge(size));
        }
        Ok(Self {
            kind,
            head_bytes,
            body_bytes,
        })
    }
}

/// Iterates over the boxes in the body of another box. Stops at a size of zero.
pub(crate) struct Children<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Children<'a> {
    type Item = Result<(BoxType, &'a [u8]), Mp4Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.0);
        if rest.is_empty() || rest.starts_with(&[0; 4]) {
            return None;
        }
        let start = &rest[..rest.len().min(HEAD_BYTES_MAX as usize)];
        let head = match Head::parse(start, rest.len() as u64) {
            Ok(head) => head,
            Err(fault) => return Some(Err(fault)),
        };
        // In range: `Head::parse` checked the size against the length of `rest`.
        let (from, len) = (head.head_bytes as usize, head.body_bytes as usize);
        self.0 = &rest[from + len..];
        Some(Ok((head.kind, &rest[from..from + len])))
    }
}

/// Stores the value of a box that may occur only once.
pub(crate) fn once<T>(slot: &mut Option<T>, value: T, kind: &'static str) -> Result<(), Mp4Error> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Mp4Error::Duplicate(kind)),
    }
}

/// Offsets of the times in the body of a box, by version.
pub(crate) struct Layout {
    kind: &'static str,
    /// For version 0 and for later versions: minimum size, offset of the time scale, offset of the duration.
    versions: [(usize, Option<usize>, usize); 2],
}

pub(crate) const MVHD: Layout = Layout {
    kind: "mvhd",
    versions: [(100, Some(12), 16), (112, Some(20), 24)],
};
pub(crate) const MDHD: Layout = Layout {
    kind: "mdhd",
    versions: [(24, Some(12), 16), (36, Some(20), 24)],
};
pub(crate) const TKHD: Layout = Layout {
    kind: "tkhd",
    versions: [(84, None, 20), (96, None, 28)],
};

/// Time scale and duration of a box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Units per second; 0 if the box has no time scale.
    pub(crate) scale: u32,
    pub(crate) duration: u64,
    duration_at: usize,
    wide: bool,
}

impl Layout {
    pub(crate) fn read(&self, body: &[u8]) -> Result<Times, Mp4Error> {
        let short = Mp4Error::Short(self.kind);
        let wide = *body.first().ok_or(short)? != 0;
        let (least, scale_at, duration_at) = self.versions[usize::from(wide)];
        if body.len() < least {
            return Err(short);
        }
        let scale = scale_at.map_or(Some(0), |at| number32(body, at));
        let duration = match wide {
            true => number64(body, duration_at),
            false => number32(body, duration_at).map(u64::from),
        };
        Ok(Times {
            scale: scale.ok_or(short)?,
            duration: duration.ok_or(short)?,
            duration_at,
            wide,
        })
    }
}

impl Times {
    /// Writes the box with another duration, limited to the largest value of its field.
    pub(crate) fn put(&self, kind: BoxType, body: &[u8], duration: u64, out: &mut Vec<u8>) {
        let at = begin(kind, out);
        let body_at = out.len();
        out.extend_from_slice(body);
        let place = &mut out[body_at + self.duration_at..];
        if self.wide {
            place[..8].copy_from_slice(&duration.to_be_bytes());
        } else {
            let duration = u32::try_from(duration).unwrap_or(u32::MAX);
            place[..4].copy_from_slice(&duration.to_be_bytes());
        }
        end(at, out);
    }
}

/// A number of 4 bytes.
pub(crate) fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

/// A number of 8 bytes.
pub(crate) fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*bytes))
}

/// Begins a box; returns its position, which [`end`] takes.
pub(crate) fn begin(kind: BoxType, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&kind);
    at
}

/// Ends a box. A size above `u32::MAX` is written as `u32::MAX`: the caller has to check the length.
pub(crate) fn end(at: usize, out: &mut [u8]) {
    let size = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
}

/// Writes a box with an unchanged body.
pub(crate) fn put(kind: BoxType, body: &[u8], out: &mut Vec<u8>) {
    let at = begin(kind, out);
    out.extend_from_slice(body);
    end(at, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn children(bytes: &[u8]) -> Vec<Result<(BoxType, &[u8]), Mp4Error>> {
        Children(bytes).collect()
    }

    #[test]
    fn boxes_follow_each_other() {
        let bytes = b"\0\0\0\x0aabcd12\0\0\0\x01efgh\0\0\0\0\0\0\0\x113";
        let (first, second) = (&b"12"[..], &b"3"[..]);
        let wanted = [Ok((*b"abcd", first)), Ok((*b"efgh", second))];
        assert_eq!(children(bytes), wanted);
        assert_eq!(children(b""), []);
        assert_eq!(children(b"\0\0\0\0ab"), []);
    }

    #[test]
    fn sizes_are_checked_at_the_limit_and_one_past() {
        assert_eq!(children(b"\0\0\0\x08abcd"), [Ok((*b"abcd", &b""[..]))]);
        assert_eq!(children(b"\0\0\0\x09abcd"), [Err(Mp4Error::BoxTooLarge(9))]);
        assert_eq!(children(b"\0\0\0\x07abcd"), [Err(Mp4Error::BoxTooSmall(7))]);
        assert_eq!(children(b"\0\0\0\x08abc"), [Err(Mp4Error::Truncated)]);
        let long = |size: u64| [&b"\0\0\0\x01abcd"[..], &size.to_be_bytes()].concat();
        assert_eq!(children(&long(16)), [Ok((*b"abcd", &b""[..]))]);
        assert_eq!(children(&long(15)), [Err(Mp4Error::BoxTooSmall(15))]);
        let endless = u64::MAX;
        assert_eq!(
            children(&long(endless)),
            [Err(Mp4Error::BoxTooLarge(endless))]
        );
        assert_eq!(children(&long(16)[..15]), [Err(Mp4Error::Truncated)]);
    }

    #[test]
    fn a_box_without_a_size_reaches_to_the_end() {
        let head = Head::parse(b"\0\0\0\0mdat", 1000).expect("it is whole");
        assert_eq!((head.head_bytes, head.body_bytes), (8, 992));
        assert_eq!(
            Head::parse(b"\0\0\0\0mdat", 7),
            Err(Mp4Error::BoxTooSmall(7))
        );
    }

    #[test]
    fn durations_are_replaced_in_both_versions() {
        for (wide, least) in [(false, 24), (true, 36)] {
            let mut body = vec![0; least];
            body[0] = u8::from(wide);
            let times = MDHD.read(&body).expect("it is long enough");
            let mut out = Vec::new();
            times.put(*b"mdhd", &body, 77, &mut out);
            let again = MDHD.read(&out[8..]).expect("it is as long");
            assert_eq!((again.duration, out.len()), (77, 8 + least));
            assert!(MDHD.read(&body[..least - 1]).is_err());
        }
    }
}
