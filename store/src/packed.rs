//! Histograms as bytes.
//!
//! Cells follow each other in the order of their buckets. Each has three numbers: the distance from the bucket
//! after the previous cell, the count, and the excess of the sum over the least possible sum of that many times.
//! Numbers are LEB128: seven bits a byte, the low bits first.

use crate::histogram::{Cell, Histogram, bounds_of, bucket_of};

/// Cells with rising bucket numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed(Vec<(u16, Cell)>);

impl Packed {
    /// Counts times in microseconds, which it sorts.
    pub(crate) fn of(times: &mut [u32]) -> Self {
        times.sort_unstable();
        let mut cells: Vec<(u16, Cell)> = Vec::new();
        for us in times.iter().map(|us| u64::from(*us)) {
            let bucket = bucket_of(us);
            match cells.last_mut() {
                Some((last, cell)) if *last == bucket => {
                    cell.count += 1;
                    cell.sum_us += us;
                }
                _ => cells.push((
                    bucket,
                    Cell {
                        count: 1,
                        sum_us: us,
                    },
                )),
            }
        }
        Self(cells)
    }

    /// Cells of a histogram.
    pub(crate) fn of_histogram(histogram: &Histogram) -> Self {
        Self(histogram.cells().collect())
    }

    /// Adds the cells of bytes. Returns `None` if the bytes are damaged.
    #[must_use]
    pub(crate) fn merged(self, bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(self);
        }
        let mut cells = Vec::with_capacity(self.0.len() + bytes.len() / 3);
        let mut own = self.0.into_iter().peekable();
        each_cell(bytes, |bucket, mut cell| {
            while let Some(before) = own.next_if(|(at, _)| *at < bucket) {
                cells.push(before);
            }
            if let Some((_, more)) = own.next_if(|(at, _)| *at == bucket) {
                cell.count = cell.count.saturating_add(more.count);
                cell.sum_us = cell.sum_us.saturating_add(more.sum_us);
            }
            cells.push((bucket, cell));
        })?;
        cells.extend(own);
        Some(Self(cells))
    }

    /// Replaces the content of `out` by the bytes of the cells.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut next = 0;
        for (bucket, cell) in &self.0 {
            let least = bounds_of(*bucket).0.saturating_mul(cell.count);
            put(out, u64::from(bucket - next));
            put(out, cell.count);
            put(out, cell.sum_us.saturating_sub(least));
            next = bucket + 1;
        }
    }
}

/// Adds the cells of bytes to a histogram. Returns `None` if the bytes are damaged.
pub(crate) fn add_to(histogram: &mut Histogram, bytes: &[u8]) -> Option<()> {
    each_cell(bytes, |bucket, cell| histogram.add_cell(bucket, cell))
}

fn each_cell(mut bytes: &[u8], mut each: impl FnMut(u16, Cell)) -> Option<()> {
    let last = u64::from(bucket_of(u64::MAX));
    let mut next = 0u64;
    while !bytes.is_empty() {
        let bucket = next.checked_add(take(&mut bytes)?)?;
        let count = take(&mut bytes)?;
        let excess = take(&mut bytes)?;
        if bucket > last || count == 0 {
            return None;
        }
        let least = bounds_of(bucket as u16).0.saturating_mul(count);
        let sum_us = least.saturating_add(excess);
        each(bucket as u16, Cell { count, sum_us });
        next = bucket + 1;
    }
    Some(())
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        // The tenth byte has one bit left.
        if shift == 63 && *first > 1 {
            return None;
        }
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(packed: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        packed.write(&mut bytes);
        bytes
    }

    fn histogram_of(times: &[u32]) -> Histogram {
        let mut histogram = Histogram::default();
        times.iter().for_each(|us| histogram.add(u64::from(*us)));
        histogram
    }

    #[test]
    fn cells_come_back_from_bytes() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..200 {
            let times: Vec<u32> = (0..round)
                .map(|_| random.u32(..) >> random.u32(0..32))
                .collect();
            let (one, two) = times.split_at(round / 3);
            let first = bytes_of(&Packed::of(&mut one.to_vec()));
            let both = Packed::of(&mut two.to_vec()).merged(&first);
            let bytes = bytes_of(&both.expect("whole bytes"));
            let mut found = Histogram::default();
            add_to(&mut found, &bytes).expect("whole bytes");
            assert_eq!(found, histogram_of(&times));
        }
    }

    #[test]
    fn largest_numbers_come_back() {
        let cell = Cell {
            count: u64::MAX,
            sum_us: u64::MAX,
        };
        let packed = Packed(vec![(0, cell), (bucket_of(u64::MAX), cell)]);
        let mut found = Histogram::default();
        add_to(&mut found, &bytes_of(&packed)).expect("whole bytes");
        let cells: Vec<_> = found.cells().collect();
        assert_eq!(cells, packed.0);
    }

    #[test]
    fn damaged_bytes_are_found() {
        let mut histogram = Histogram::default();
        let after_last = bucket_of(u64::MAX) + 1;
        let mut far = Vec::new();
        put(&mut far, u64::from(after_last));
        far.extend([1, 0]);
        let long = [0xff; 9].into_iter().chain([2, 1, 0]).collect();
        for bytes in [vec![0x80], vec![1], vec![1, 1], vec![1, 0, 0], far, long] {
            assert_eq!(add_to(&mut histogram, &bytes), None, "{bytes:?}");
            assert_eq!(Packed::default().merged(&bytes), None, "{bytes:?}");
        }
    }
}
