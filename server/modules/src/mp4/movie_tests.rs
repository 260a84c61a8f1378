//! Movies are built, cut, and verified with an independent reader that checks every sample.

#[path = "movie_tests/fixture.rs"]
mod fixture;
#[path = "movie_tests/player.rs"]
mod player;

use super::super::boxes::{begin, end};
use super::super::error::Edge;
use super::*;
use fixture::{Fixture, Memory, file, moov, trak};
use player::{wanted, watch};

const LIMITS: Limits = Limits {
    first_read: 512 << 10,
    moov: 10 << 20,
};

fn section(start_ms: u64, length_ms: u64) -> Section {
    Section {
        start_ms,
        length_ms,
        key_frame: false,
    }
}

fn cut_with(bytes: &[u8], section: &Section) -> Result<Vec<u8>, Mp4Error> {
    let mut source = Memory(bytes.to_vec(), Vec::new());
    match cut(&mut source, bytes.len() as u64, LIMITS, section)? {
        Cut::Whole => Ok(bytes.to_vec()),
        Cut::Part { mut head, data } => {
            head.extend_from_slice(&bytes[data.start as usize..data.end as usize]);
            Ok(head)
        }
    }
}

fn variants() -> Vec<Fixture> {
    let film = Fixture::film();
    let sound = Fixture::sound();
    vec![
        film.clone(),
        sound.clone(),
        Fixture {
            wide: true,
            version: 1,
            ..film.clone()
        },
        Fixture {
            same: false,
            wide: false,
            ..sound
        },
        // Many different times and chunks.
        Fixture {
            times: vec![(3, 10), (0, 5), (7, 30), (1, 0), (9, 20)],
            runs: vec![(1, 1, 1), (2, 4, 1), (3, 4, 2), (5, 2, 1)],
            ..film.clone()
        },
        Fixture {
            runs: vec![(1, 20, 1)],
            ..film.clone()
        },
        Fixture {
            runs: vec![(1, 1, 1)],
            later: None,
            sync: None,
            ..film
        },
    ]
}

#[test]
fn every_part_has_the_samples_of_its_time() {
    let mut parts = 0;
    for made in variants() {
        for first in [false, true] {
            let tracks = [made.clone(), Fixture::sound()];
            let whole = file(&tracks, first);
            let (all, lasts) = watch(&whole);
            assert_eq!(all[0].len(), made.sizes.len());
            for start_ms in (0..3900).step_by(130) {
                for length_ms in [0, 130, 1000, 2190, 9000] {
                    let case = format!("{:?} {start_ms} {length_ms}", made.runs);
                    let part = cut_with(&whole, &section(start_ms, length_ms));
                    let part = part.unwrap_or_else(|fault| panic!("{case}: {fault:?}"));
                    let (seen, new_lasts) = watch(&part);
                    let (mut left, mut n) = (lasts.saturating_sub(start_ms), 0);
                    if length_ms > 0 {
                        left = left.min(length_ms);
                    }
                    assert_eq!(new_lasts, left, "{case}");
                    for (track, all) in tracks.iter().zip(&all) {
                        if track.lasts() * 1000 / u64::from(track.scale) <= start_ms {
                            continue;
                        }
                        let wanted = wanted(all, track.scale, start_ms, length_ms);
                        assert!(
                            seen[n] == wanted,
                            "{case}: track {n} {:?} {wanted:?}",
                            seen[n]
                        );
                        n += 1;
                    }
                    assert_eq!(seen.len(), n);
                    parts += 1;
                }
            }
        }
    }
    assert_eq!(parts, 7 * 2 * 30 * 5);
}

#[test]
fn a_part_of_a_part_is_a_part() {
    let whole = file(&[Fixture::film(), Fixture::sound()], false);
    let once = cut_with(&whole, &section(2000, 1000)).expect("it has such a part");
    let twice = cut_with(
        &cut_with(&whole, &section(1000, 0)).expect("it has"),
        &section(1000, 1000),
    );
    assert_eq!(watch(&once), watch(&twice.expect("it has such a part")));
}

#[test]
fn a_start_between_key_frames_brings_what_is_needed_and_hides_it() {
    let whole = file(&[Fixture::film()], false);
    let section = Section {
        key_frame: true,
        ..section(1700, 1000)
    };
    let part = cut_with(&whole, &section).expect("it has such a part");
    let (seen, lasts) = watch(&part);
    let (all, _) = watch(&whole);
    // The start is in sample 8, which needs those from 5 on; the end is in sample 13.
    assert_eq!(seen[0].len(), 8);
    assert!(seen[0][0].sync && seen[0][0].bytes == all[0][5].bytes);
    assert_eq!(lasts, 1000);
    let at = part.windows(4).position(|bytes| bytes == b"elst");
    let elst = &part[at.expect("it has an edit list") + 4..];
    assert_eq!(elst[..8], [1, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(elst[8..16], 1000_u64.to_be_bytes());
    assert_eq!(elst[16..24], 60_u64.to_be_bytes());
    // A section that starts at a key frame needs no edit list.
    let at_key = cut_with(
        &whole,
        &Section {
            start_ms: 2000,
            ..section
        },
    )
    .expect("it has such a part");
    assert!(!at_key.windows(4).any(|bytes| bytes == b"elst"));
}

#[test]
fn a_file_with_its_metadata_first_is_sent_as_it_is_from_its_begin() {
    let whole = file(&[Fixture::film()], true);
    let mut source = Memory(whole.clone(), Vec::new());
    let size = whole.len() as u64;
    assert_eq!(
        cut(&mut source, size, LIMITS, &section(0, 0)),
        Ok(Cut::Whole)
    );
    let turned = cut_with(&file(&[Fixture::film()], false), &section(0, 0)).expect("it is sound");
    assert_eq!(watch(&turned), watch(&whole));
    assert_eq!(turned.len(), whole.len() - 20 - 8 - 7 - 8);
}

#[test]
fn little_is_read_and_nothing_twice() {
    let whole = file(&[Fixture::film()], true);
    let mut source = Memory(whole.clone(), Vec::new());
    let size = whole.len() as u64;
    assert!(cut(&mut source, size, LIMITS, &section(1000, 0)).is_ok());
    assert_eq!((source.1.len(), &source.1[0]), (1, &(0..size)));
    let limits = Limits {
        first_read: 30,
        moov: 10 << 20,
    };
    let mut source = Memory(whole, Vec::new());
    assert!(cut(&mut source, size, limits, &section(1000, 0)).is_ok());
    assert_eq!(source.1, [0..30, 16..size]);
}

#[test]
fn metadata_may_be_as_large_as_the_limit() {
    let whole = file(&[Fixture::film()], true);
    let size = whole.len() as u64;
    let mut probe = Vec::new();
    moov(&[Fixture::film()], 0, &mut probe);
    let body = probe.len() as u64 - 8;
    for (first_read, most, taken) in [(0, body, true), (0, body - 1, false), (body, 0, true)] {
        let limits = Limits {
            first_read,
            moov: most,
        };
        let mut source = Memory(whole.clone(), Vec::new());
        let done = cut(&mut source, size, limits, &section(1000, 0));
        assert_eq!(done.is_ok(), taken, "{first_read} {most}");
        if !taken {
            assert_eq!(done, Err(Mp4Error::MoovTooLarge(body)));
        }
    }
}

#[test]
fn what_cannot_be_is_told() {
    let film = Fixture::film;
    let of = |made: Fixture| file(&[made], false);
    let told = |bytes: &[u8], asked: &Section| cut_with(bytes, asked).err();
    assert_eq!(
        told(&of(film()), &section(4001, 0)),
        Some(Mp4Error::PastTheEnd)
    );
    assert_eq!(
        told(&of(film()), &section(4000, 0)),
        Some(Mp4Error::Missing("trak"))
    );
    assert_eq!(
        told(&of(film()), &section(1000, 10)),
        Some(Mp4Error::NoData)
    );
    let sizes = Fixture {
        sizes: vec![5; 4],
        ..film()
    };
    let out = Mp4Error::OutOf(Edge::Start, "stsz samples");
    assert_eq!(told(&of(sizes.clone()), &section(1000, 0)), Some(out));
    let out = Mp4Error::OutOf(Edge::End, "stsz samples");
    assert_eq!(told(&of(sizes), &section(100, 2000)), Some(out));
    let times = Fixture {
        times: vec![(20, 0)],
        ..film()
    };
    assert_eq!(
        told(&of(times), &section(0, 0)),
        Some(Mp4Error::Missing("trak"))
    );
    for (runs, fault) in [
        (vec![], Mp4Error::NoChunkRuns),
        (vec![(0, 3, 1)], Mp4Error::ZeroChunk),
        (vec![(1, 0, 1)], Mp4Error::OutOf(Edge::Start, "stsc chunks")),
        (vec![(1, 1, 1), (3, 1, 1), (2, 9, 1)], Mp4Error::Unordered),
        (vec![(9, 9, 1)], Mp4Error::Unordered),
    ] {
        let mut whole = of(film());
        let broken = Fixture { runs, ..film() };
        let mut new = Vec::new();
        trak(
            &Fixture {
                sizes: vec![1; 20],
                ..broken
            },
            24,
            &mut new,
        );
        // The chunks are still seven.
        let at = whole
            .windows(4)
            .position(|bytes| bytes == b"stsc")
            .expect("it has one");
        let from = new
            .windows(4)
            .position(|bytes| bytes == b"stsc")
            .expect("it has one");
        let end = new
            .windows(4)
            .position(|bytes| bytes == b"stsz")
            .expect("it has one")
            - 4;
        let old_end = whole
            .windows(4)
            .position(|bytes| bytes == b"stsz")
            .expect("it has one")
            - 4;
        let table = new[from - 4..end].to_vec();
        let grown = table.len() as i64 - (old_end - at + 4) as i64;
        whole.splice(at - 4..old_end, table);
        for kind in [b"moov", b"trak", b"mdia", b"minf", b"stbl"] {
            let at = whole
                .windows(4)
                .position(|bytes| bytes == kind)
                .expect("it has one")
                - 4;
            let size = u32::from_be_bytes(*whole[at..].first_chunk().expect("it is whole"));
            let size = (i64::from(size) + grown) as u32;
            whole[at..at + 4].copy_from_slice(&size.to_be_bytes());
        }
        assert_eq!(told(&whole, &section(3000, 0)), Some(fault));
    }
    let sync = Fixture {
        sync: Some(vec![0]),
        ..film()
    };
    let key = Section {
        key_frame: true,
        ..section(1000, 0)
    };
    assert_eq!(told(&of(sync), &key), Some(Mp4Error::ZeroSync));
}

#[test]
fn boxes_that_are_missing_or_there_twice_are_told() {
    let whole = file(&[Fixture::film()], false);
    for kind in [
        "ftyp", "moov", "mdat", "mvhd", "tkhd", "mdia", "mdhd", "hdlr", "minf", "dinf", "stbl",
        "stsd", "stts", "stss", "ctts", "stsc", "stsz",
    ] {
        let at = whole.windows(4).position(|bytes| bytes == kind.as_bytes());
        let at = at.expect("it has one");
        let mut without = whole.clone();
        without[at..at + 4].copy_from_slice(b"what");
        let fault = cut_with(&without, &section(1000, 0)).err();
        let may_miss = ["ftyp", "tkhd", "hdlr", "dinf", "stsd", "stss", "ctts"].contains(&kind);
        assert_eq!(fault.is_none(), may_miss, "{kind} {fault:?}");
        let named = fault.is_none_or(|fault| {
            fault
                .log_text(server_base::errlog::Printable(b"f"))
                .is_some_and(|text| text.contains("no mp4"))
        });
        assert!(named, "{kind} {fault:?}");
    }
    let mut twice = file(&[Fixture::film()], false);
    let extra = begin(*b"ftyp", &mut twice);
    end(extra, &mut twice);
    // Boxes behind both are ignored.
    assert!(cut_with(&twice, &section(1000, 0)).is_ok());
    let mut twice = Vec::new();
    boxes::put(*b"ftyp", b"", &mut twice);
    let whole = [twice, file(&[Fixture::film()], false)].concat();
    assert_eq!(
        cut_with(&whole, &section(1000, 0)).err(),
        Some(Mp4Error::Duplicate("ftyp"))
    );
}

#[test]
fn boxes_beside_each_other_are_limited() {
    let film = file(&[Fixture::film()], true);
    for (count, taken) in [(TOP_BOXES_MAX - 4, true), (TOP_BOXES_MAX, false)] {
        let padded = [b"\0\0\0\x08free".repeat(count), film.clone()].concat();
        let fault = cut_with(&padded, &section(0, 100)).err();
        // Offsets assume a file without padding, so the samples are elsewhere and the cut fails.
        assert_eq!(fault == Some(Mp4Error::TooManyBoxes), !taken, "{fault:?}");
    }
}

#[test]
fn large_data_has_a_long_head() {
    let mut out = Vec::new();
    put_data_head(u64::from(u32::MAX) - 8, &mut out);
    assert_eq!(out, b"\xff\xff\xff\xffmdat");
    out.clear();
    put_data_head(u64::from(u32::MAX) - 7, &mut out);
    assert_eq!(out, b"\0\0\0\x01mdat\0\0\0\x01\0\0\0\x08");
}
