//! Reads every sample of a movie by its tables, as a player does.

use std::collections::BTreeMap;

use super::super::super::boxes::{Children, MVHD};

/// A sample: its start time, whether it is a key frame, its composition offset and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) time: u64,
    pub(crate) lasts: u32,
    pub(crate) sync: bool,
    pub(crate) later: u32,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn numbers(body: &[u8]) -> Vec<u32> {
    let chunks = body.as_chunks::<4>().0.iter();
    chunks.map(|bytes| u32::from_be_bytes(*bytes)).collect()
}

/// All boxes below a box, by their names.
pub(crate) fn inside<'a>(body: &'a [u8], found: &mut BTreeMap<BoxType, &'a [u8]>) {
    for child in Children(body) {
        let (kind, body) = child.expect("what was made is sound");
        if [*b"mdia", *b"minf", *b"stbl", *b"edts"].contains(&kind) {
            inside(body, found);
        }
        assert!(found.insert(kind, body).is_none());
    }
}

pub(crate) type BoxType = [u8; 4];

/// Every sample of a track, found by its tables.
pub(crate) fn play(file: &[u8], trak: &[u8]) -> Vec<Seen> {
    let mut found = BTreeMap::new();
    inside(trak, &mut found);
    let rows = |kind: &[u8; 4]| found.get(kind).map(|body| numbers(&body[8..]));
    let spread = |list: Vec<u32>| -> Vec<u32> {
        let pairs = list.as_chunks::<2>().0.iter();
        pairs
            .flat_map(|[count, value]| vec![*value; *count as usize])
            .collect()
    };
    let lasts = spread(rows(b"stts").expect("it has times"));
    let later = rows(b"ctts").map(spread);
    let sync = rows(b"stss");
    let stsz = numbers(&found[b"stsz"][4..]);
    let sizes = match stsz[0] {
        0 => stsz[2..].to_vec(),
        same => vec![same; stsz[1] as usize],
    };
    let offsets: Vec<u64> = match found.get(b"stco") {
        Some(body) => numbers(&body[8..]).into_iter().map(u64::from).collect(),
        None => numbers(&found[b"co64"][8..])
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[high, low]| u64::from(*high) << 32 | u64::from(*low))
            .collect(),
    };
    let runs = rows(b"stsc").expect("it has chunks");
    let runs = runs.as_chunks::<3>().0;
    assert_eq!(sizes.len(), lasts.len());
    let (mut seen, mut time) = (Vec::new(), 0);
    for (chunk, offset) in offsets.into_iter().enumerate() {
        let run = runs.iter().rev().find(|run| run[0] as usize <= chunk + 1);
        let mut at = offset as usize;
        for _ in 0..run.expect("every chunk has a run")[1] {
            let n = seen.len();
            if n == sizes.len() {
                // The last chunk may have fewer samples than `stsc` specifies for its run.
                break;
            }
            seen.push(Seen {
                time,
                lasts: lasts[n],
                sync: sync.as_ref().is_none_or(|s| s.contains(&(n as u32 + 1))),
                later: later.as_ref().map_or(0, |later| later[n]),
                bytes: file[at..at + sizes[n] as usize].to_vec(),
            });
            at += sizes[n] as usize;
            time += u64::from(lasts[n]);
        }
    }
    assert_eq!(seen.len(), sizes.len());
    seen
}

/// The samples of all tracks, and the duration of the movie.
pub(crate) fn watch(file: &[u8]) -> (Vec<Vec<Seen>>, u64) {
    let kinds: Vec<BoxType> = Children(file)
        .map(|child| child.expect("what was made is sound").0)
        .collect();
    let moov = Children(file)
        .filter_map(Result::ok)
        .find(|(kind, _)| kind == b"moov");
    let (_, moov) = moov.unwrap_or_else(|| panic!("{kinds:?}"));
    let (mut tracks, mut lasts) = (Vec::new(), 0);
    for child in Children(moov) {
        match child.expect("what was made is sound") {
            (kind, body) if &kind == b"trak" => tracks.push(play(file, body)),
            (kind, body) if &kind == b"mvhd" => {
                lasts = MVHD.read(body).expect("it is long enough").duration;
            }
            _ => {}
        }
    }
    (tracks, lasts)
}

/// The expected samples of a cut: from the sample at the start to the sample at the end.
pub(crate) fn wanted(all: &[Seen], scale: u32, start_ms: u64, length_ms: u64) -> Vec<Seen> {
    let units = |ms: u64| ms * u64::from(scale) / 1000;
    let under_way = |time: u64| {
        let found = all
            .iter()
            .position(|s| s.time <= time && time < s.time + u64::from(s.lasts));
        found.unwrap_or(all.len())
    };
    let start = under_way(units(start_ms));
    let begin = all[start].time;
    let end = match length_ms {
        0 => all.len(),
        _ => under_way(begin + units(length_ms)),
    };
    let part = all[start..end].iter().cloned();
    part.map(|seen| Seen {
        time: seen.time - begin,
        ..seen
    })
    .collect()
}
