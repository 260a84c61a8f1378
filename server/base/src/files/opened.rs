//! The opened file: a descriptor or the bytes of a small file, and the values of the header fields that describe it.
//!
//! The values and the bytes share one allocation, and the state of the file is stored beside the pointer to it. So a request
//! for one of many files has few CPU cache misses. Absent: opening files and comparing them with the disk, which the driver
//! does.

use std::any::Any;
use std::cell::OnceCell;
use std::io::Write;
use std::rc::Rc;

use engines::http::{FileHandle, SharedBytes, http_date};

use super::Meta;

/// An open regular file, or a directory known by its metadata.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The descriptor; `None` for a directory, and if [`Opened::content`] has all bytes.
    pub file: Option<FileHandle>,
    /// The result of `stat`.
    pub meta: Meta,
    /// The file's times are old enough to show any later change of its bytes. Data derived from the bytes may be cached while
    /// this value is returned for the path.
    pub settled: bool,
    /// Whether `texts` has the bytes of the file.
    has_content: bool,
    /// Length of the ETag in bytes.
    etag_len: u8,
    /// The ETag, the date, and the bytes of a small file, concatenated.
    texts: Rc<[u8]>,
    /// Data that a user of the file has derived from its bytes.
    derived: OnceCell<Rc<dyn Any>>,
}

impl Opened {
    /// Describes an opened file without its bytes in memory.
    #[must_use]
    pub fn new(file: Option<FileHandle>, meta: Meta) -> Self {
        let mut texts = Vec::with_capacity(TEXTS_BYTES);
        let etag_len = write_texts(&meta, &mut texts);
        Self {
            file,
            meta,
            settled: false,
            has_content: false,
            etag_len,
            texts: texts.into(),
            derived: OnceCell::new(),
        }
    }

    /// Describes a file with bytes that `read` appends to `memory`. `memory` is cleared first; afterwards it has the bytes
    /// after the header values. Returns `None` if `read` does. The file counts as settled.
    #[must_use]
    pub fn with_content(
        meta: Meta,
        memory: &mut Vec<u8>,
        read: impl FnOnce(&mut Vec<u8>) -> Option<()>,
    ) -> Option<Self> {
        memory.clear();
        let etag_len = write_texts(&meta, memory);
        read(memory)?;
        Some(Self {
            file: None,
            meta,
            settled: true,
            has_content: true,
            etag_len,
            texts: Rc::from(memory.as_slice()),
            derived: OnceCell::new(),
        })
    }

    /// The values of header fields, followed by the bytes of the file if they are in memory.
    #[must_use]
    pub fn texts(&self) -> &[u8] {
        &self.texts
    }

    /// `"mtime-size"` in hexadecimal with the quotes.
    #[inline]
    #[must_use]
    pub fn etag(&self) -> SharedBytes {
        SharedBytes::part(&self.texts, 0, usize::from(self.etag_len))
    }

    /// The modification time as an HTTP date.
    #[inline]
    #[must_use]
    pub fn last_modified(&self) -> &[u8] {
        &self.texts[usize::from(self.etag_len)..][..DATE_BYTES]
    }

    /// All bytes of a small file, if they are known to equal the file on disk.
    #[inline]
    #[must_use]
    pub fn content(&self) -> Option<SharedBytes> {
        let begin = usize::from(self.etag_len) + DATE_BYTES;
        self.has_content
            .then(|| SharedBytes::part(&self.texts, begin, self.texts.len()))
    }

    /// Returns data derived from the bytes, if there is some of this type.
    #[must_use]
    pub fn derived<T: Any>(&self) -> Option<&T> {
        self.derived.get()?.downcast_ref()
    }

    /// Keeps data derived from the bytes, for as long as this value is returned for the path. Data is kept for settled files
    /// alone, and the first data stays.
    pub fn set_derived<T: Any>(&self, data: T) {
        if self.settled {
            let _ = self.derived.set(Rc::new(data));
        }
    }
}

/// Appends ETag and date to `out`, and returns the length of the ETag in bytes.
fn write_texts(meta: &Meta, out: &mut Vec<u8>) -> u8 {
    let begin = out.len();
    // Writing to memory cannot fail.
    let _ = write!(out, "\"{:x}-{:x}\"", meta.mtime_s, meta.size);
    let etag_len = out.len() - begin;
    out.extend_from_slice(&http_date(meta.mtime_s));
    etag_len as u8
}

/// Length of an HTTP date in bytes.
const DATE_BYTES: usize = 29;

/// The most that ETag and date take, in bytes: two numbers of 64 bits have 32 digits.
pub const TEXTS_BYTES: usize = 35 + DATE_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(mtime_s: i64, size: u64) -> Meta {
        Meta {
            size,
            mtime_s,
            ..Meta::default()
        }
    }

    fn texts(opened: &Opened) -> (Vec<u8>, Vec<u8>, Option<Vec<u8>>) {
        let content = opened.content().map(|bytes| bytes.to_vec());
        (
            opened.etag().to_vec(),
            opened.last_modified().to_vec(),
            content,
        )
    }

    #[test]
    fn values_and_bytes_lie_apart_in_one_allocation() {
        let mut memory = b"of before".to_vec();
        for (mtime_s, size, etag) in [
            (0, 0, "\"0-0\"".to_owned()),
            (784_111_777, 3, "\"2ebc98a1-3\"".to_owned()),
            (-1, u64::MAX, format!("\"{:x}-{:x}\"", -1i64, u64::MAX)),
        ] {
            let (date, meta) = (http_date(mtime_s).to_vec(), meta(mtime_s, size));
            let opened = Opened::new(None, meta);
            let etag = etag.into_bytes();
            assert_eq!(texts(&opened), (etag.clone(), date.clone(), None));
            assert!(!opened.settled && opened.texts.len() <= TEXTS_BYTES);
            for bytes in [b"".as_slice(), b"abc"] {
                let kept = Opened::with_content(meta, &mut memory, |out| {
                    out.extend_from_slice(bytes);
                    Some(())
                });
                let kept = kept.expect("it was read");
                let expected = (etag.clone(), date.clone(), Some(bytes.to_vec()));
                assert!(kept.settled && texts(&kept) == expected);
            }
        }
        assert!(Opened::with_content(meta(0, 1), &mut memory, |_| None).is_none());
    }

    #[test]
    fn derived_data_is_kept_for_settled_files() {
        let mut opened = Opened::new(None, meta(0, 1));
        opened.set_derived(1_u8);
        assert_eq!(opened.derived::<u8>(), None);
        opened.settled = true;
        opened.set_derived(1_u8);
        opened.set_derived(2_u8);
        assert_eq!(opened.derived::<u8>(), Some(&1));
        assert_eq!(opened.derived::<u16>(), None);
    }
}
