//! Short form of SPDY frames for the fuzz targets `spdy` and `spdy_client`: one byte each for kind, flags, stream and
//! length, then the payload. So the fuzzer need neither guess lengths nor compress header blocks.

/// A kind of frame with a header block.
pub struct Block {
    pub kind: u8,
    /// Bytes between the stream number and the block.
    pub between: fn(u8) -> Vec<u8>,
    /// Default pairs of each block. A pair of the input with the same name replaces one.
    pub pairs: &'static [(&'static [u8], &'static [u8])],
}

/// Converts frames from short form.
pub fn in_full(mut short: &[u8], blocks: &[Block]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut begun = false;
    while let Some((&[kind, flags, stream, len], rest)) = short.split_first_chunk::<4>() {
        let (payload, rest) = rest.split_at(usize::from(len).min(rest.len()));
        short = rest;
        let stream = u32::from(stream % 16).to_be_bytes();
        let kind = kind % 12;
        let block = blocks.iter().find(|block| block.kind == kind);
        let (between, stored_block);
        let parts: [&[u8]; 3] = match block {
            Some(block) if flags & 0x40 == 0 => {
                let first = !std::mem::replace(&mut begun, true);
                between = (block.between)(flags);
                stored_block = stored(block.pairs, payload, first);
                [&stream, &between, &stored_block]
            }
            Some(block) => {
                between = (block.between)(flags);
                [&stream, &between, payload]
            }
            None if matches!(kind, 3 | 9) && payload.len() == 4 => [&stream, payload, &[]],
            None => [payload, &[], &[]],
        };
        let len = parts.iter().map(|part| part.len() as u32).sum::<u32>();
        if kind == 0 {
            out.extend_from_slice(&stream);
        } else {
            out.extend_from_slice(&[0x80, 3, 0, kind]);
        }
        out.extend_from_slice(&(u32::from(flags) << 24 | len).to_be_bytes());
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }
    out
}

/// Encodes pairs as a stored block: the default pairs, then pairs in short form (one byte per length).
fn stored(pairs: &[(&'static [u8], &'static [u8])], short: &[u8], first: bool) -> Vec<u8> {
    let mut pairs: Vec<(&[u8], &[u8])> = pairs.to_vec();
    let mut rest = short;
    while let Some((&[name, value], after)) = rest.split_first_chunk::<2>() {
        let (name, after) = after.split_at(usize::from(name % 64).min(after.len()));
        let (value, after) = after.split_at(usize::from(value).min(after.len()));
        rest = after;
        match pairs.iter_mut().find(|pair| pair.0 == name) {
            Some(pair) => pair.1 = value,
            None => pairs.push((name, value)),
        }
    }
    let mut text = (pairs.len() as u32).to_be_bytes().to_vec();
    for part in pairs.iter().flat_map(|(name, value)| [name, value]) {
        text.extend_from_slice(&(part.len() as u32).to_be_bytes());
        text.extend_from_slice(part);
    }
    let mut out = if first { vec![0x78, 0x01] } else { Vec::new() };
    let len = text.len() as u16;
    out.push(0);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(&text);
    out
}
