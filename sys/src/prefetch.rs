//! Asking the processor for memory ahead of its use.

/// Prefetches the memory of a value, up to [`BYTES_MAX`] bytes from its beginning, without waiting. No effect on
/// processors other than x86-64.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let len = size_of_val(value).min(BYTES_MAX);
    prefetch_at(std::ptr::from_ref(value).cast(), len);
}

/// Prefetches the first `most` bytes, like [`prefetch`].
#[inline]
pub fn prefetch_bytes(bytes: &[u8], most: usize) {
    prefetch_at(bytes.as_ptr(), bytes.len().min(most));
}

#[inline]
fn prefetch_at(begin: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for offset in (0..len).step_by(LINE_BYTES) {
            // SAFETY: the callers' values have `len` bytes at `begin`, and a prefetch of any address has no
            // observable effect.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(begin.add(offset).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (begin, len);
}

/// Most bytes prefetched of a value: the processor itself prefetches the rest of a longer one that is read in
/// order.
pub const BYTES_MAX: usize = 512;

/// Size of a line of the cache, bytes.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Empty values and lengths above the limit are harmless; values stay unchanged.
    #[test]
    fn memory_of_any_length_can_be_asked_for() {
        for len in [
            0,
            1,
            LINE,
            LINE + 1,
            BYTES_MAX - 1,
            BYTES_MAX,
            BYTES_MAX + 1,
        ] {
            let bytes = vec![7_u8; len];
            prefetch(bytes.as_slice());
            prefetch_bytes(&bytes, 0);
            prefetch_bytes(&bytes, len + 1);
            assert!(bytes.iter().all(|byte| *byte == 7));
        }
        prefetch(&());
        prefetch("text");
    }

    const LINE: usize = 64;
}
