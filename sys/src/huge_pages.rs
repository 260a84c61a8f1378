//! Huge pages under memory with random accesses.
//!
//! Among many thousand pages the processor lacks the translation of most. A lookup costs a hundred nanoseconds, and
//! up to some microseconds in a virtual machine, which translates each step again. One huge page of 2 MiB covers
//! 512 of 4 KiB, so that the translations of much memory fit into the processor.
//!
//! Source: Linux kernel documentation, "Transparent Hugepage Support"; madvise(2), `MADV_COLLAPSE`; mincore(2).

use std::collections::BTreeSet;
use std::ffi::c_void;

/// Blocks of memory, each the size of a huge page.
#[derive(Debug, Default)]
pub struct Blocks(BTreeSet<usize>);

impl Blocks {
    /// Adds the blocks of a value.
    pub fn add<T: ?Sized>(&mut self, value: &T) {
        let first = std::ptr::from_ref(value).cast::<u8>().addr();
        let last = first + size_of_val(value).max(1) - 1;
        self.0.extend(first / BLOCK_BYTES..=last / BLOCK_BYTES);
    }

    /// The number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts huge pages under nearly full blocks, those with at least [`PAGES_LEAST`] pages in use; returns the
    /// number of blocks with a huge page. The kernel copies each block in 0.3 ms, or a few ms if the host of a
    /// virtual machine must find the memory first; readers of the block wait meanwhile. Nothing is done if huge
    /// pages are off in the kernel, or unsupported (before Linux 6.1).
    pub fn collapse(&self) -> usize {
        if !is_allowed() {
            return 0;
        }
        let blocks = self.0.iter().map(|block| block * BLOCK_BYTES);
        blocks.filter(|at| is_filled(*at) && collapse(*at)).count()
    }
}

/// Whether the administrator permits huge pages for programs.
fn is_allowed() -> bool {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|setting| !setting.contains("[never]"))
}

/// Whether most pages of a block are in memory.
fn is_filled(at: usize) -> bool {
    let mut pages = [0_u8; PAGES];
    // SAFETY: the kernel writes one byte for each page. A block has at most as many pages as the array has bytes
    // (fewer if pages are larger). It reads nothing at the address, and returns ENOMEM if nothing is mapped.
    let result = unsafe { libc::mincore(block(at), BLOCK_BYTES, pages.as_mut_ptr()) };
    let filled = pages.iter().filter(|page| **page & 1 != 0).count();
    result == 0 && filled >= PAGES_LEAST
}

/// Puts a huge page under a block.
fn collapse(at: usize) -> bool {
    // SAFETY: this changes the physical memory under the block, not its content. The kernel refuses if nothing is
    // mapped, or if the mapping cannot use huge pages.
    unsafe { libc::madvise(block(at), BLOCK_BYTES, libc::MADV_COLLAPSE) == 0 }
}

/// The address in the form of the kernel's calls; it is not dereferenced.
fn block(at: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(at)
}

/// Bytes of a huge page, for pages of 4 KiB.
pub const BLOCK_BYTES: usize = 2 << 20;
/// Pages of a block.
const PAGES: usize = BLOCK_BYTES / 4096;
/// Least number of pages of a block already in memory: a collapse adds the missing ones.
const PAGES_LEAST: usize = PAGES / 8 * 7;

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that has whole blocks, and the first of them.
    fn with_block(blocks: usize) -> (Vec<u8>, usize) {
        let memory = Vec::<u8>::with_capacity((blocks + 1) * BLOCK_BYTES);
        let offset = memory.as_ptr().addr().wrapping_neg() % BLOCK_BYTES;
        (memory, offset)
    }

    fn kilobytes_on_huge_pages() -> u64 {
        let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("there is a /proc");
        let line = text.lines().find(|line| line.starts_with("AnonHugePages:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|text| text.parse().ok()).expect("a number")
    }

    #[test]
    fn blocks_are_those_that_values_lie_in() {
        let (mut memory, offset) = with_block(3);
        memory.resize(offset + 2 * BLOCK_BYTES + 1, 0);
        let bytes = &memory[offset..];
        let mut blocks = Blocks::default();
        assert!(blocks.is_empty());
        blocks.add(&bytes[..BLOCK_BYTES]);
        blocks.add(&bytes[BLOCK_BYTES - 1]);
        blocks.add(&bytes[1..1]);
        assert_eq!(blocks.len(), 1);
        blocks.add(&bytes[BLOCK_BYTES - 1..=BLOCK_BYTES]);
        assert_eq!(blocks.len(), 2);
        blocks.add(bytes);
        assert_eq!(blocks.len(), 3);
    }

    /// A block with the fewest pages, one with one page less, one without any mapping, and one that shows whether
    /// this kernel makes huge pages.
    #[test]
    fn blocks_that_are_filled_lie_on_huge_pages_and_contain_what_they_did() {
        let (mut memory, offset) = with_block(3);
        let spare = memory.spare_capacity_mut();
        let (one, others) = spare[offset..].split_at_mut(BLOCK_BYTES);
        let (two, probe) = others.split_at_mut(BLOCK_BYTES);
        let probe = &mut probe[..BLOCK_BYTES];
        for (block, pages) in [(one, PAGES_LEAST), (two, PAGES_LEAST - 1), (probe, PAGES)] {
            for page in block.chunks_mut(4096).take(pages) {
                page.fill(std::mem::MaybeUninit::new(7));
            }
        }
        let (one, others) = spare[offset..].split_at(BLOCK_BYTES);
        let (two, probe) = others.split_at(BLOCK_BYTES);
        let before = kilobytes_on_huge_pages();
        let mut blocks = Blocks::default();
        blocks.add(&one[0]);
        blocks.add(&two[0]);
        assert!(!is_filled(0) && !collapse(0), "nothing is there");
        let filled = [
            is_filled(one.as_ptr().addr()),
            is_filled(two.as_ptr().addr()),
        ];
        if before > 0 || filled != [true, false] {
            return firstbyte_tests::skip::skip("this kernel gives huge pages unasked");
        }
        let makes = is_allowed() && collapse(probe.as_ptr().addr());
        if !makes {
            println!("this kernel makes no huge pages");
        }
        // The kernel may be busy with a page for a moment.
        let collapsed = (0..100).map(|_| blocks.collapse()).find(|count| *count > 0);
        assert_eq!(
            collapsed,
            makes.then_some(1),
            "the second has a page too few"
        );
        assert_eq!(kilobytes_on_huge_pages(), 2 * 2048 * u64::from(makes));
        for page in one.chunks(4096).take(PAGES_LEAST) {
            // SAFETY: this page was filled above.
            assert!(page.iter().all(|byte| unsafe { byte.assume_init() } == 7));
        }
    }
}
