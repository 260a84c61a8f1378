//! The filmstrip of a visit: pictures of the page with their times.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{Markup, html};

use crate::page::Frame;

use super::figures::ms;

/// The pictures of a view in order, as a list; empty without pictures.
pub(super) fn filmstrip(frames: &[Frame], of: &str) -> Markup {
    let (shown, left_out) = chosen(frames);
    html! {
        @if !shown.is_empty() {
            h3 { "Filmstrip" }
            ol .film role="list" tabindex="0" aria-label={ "Filmstrip, " (of) } {
                @for (frame, is_same) in &shown {
                    li {
                        figure {
                            img src={ "data:image/jpeg;base64," (BASE64_STANDARD.encode(&frame.jpeg)) }
                                alt={ "The page at " (ms(frame.at_ms)) @if *is_same { ", as before" } };
                            figcaption { (ms(frame.at_ms)) }
                        }
                    }
                }
            }
            @if left_out > 0 {
                p .key { "Left out: " (left_out) " pictures that exceed the limit of this page or are not JPEG." }
            }
        }
    }
}

/// The frames that are shown, each with whether it equals the one before, and how many are left out.
fn chosen(frames: &[Frame]) -> (Vec<(&Frame, bool)>, usize) {
    let mut room = FRAME_BYTES_MAX;
    let mut shown: Vec<(&Frame, bool)> = Vec::new();
    // Of many, every n-th: the whole time is shown, not its beginning.
    let every = frames.len().div_ceil(FRAMES_MAX).max(1);
    for frame in frames.iter().step_by(every) {
        let is_jpeg = frame.jpeg.starts_with(&JPEG_START);
        if !is_jpeg || frame.jpeg.len() > room {
            continue;
        }
        room -= frame.jpeg.len();
        let is_same = shown
            .last()
            .is_some_and(|(last, _)| last.jpeg == frame.jpeg);
        shown.push((frame, is_same));
    }
    let left_out = frames.len() - shown.len();
    (shown, left_out)
}

/// Pictures of a page, and the bytes of all of them.
const FRAMES_MAX: usize = 40;
const FRAME_BYTES_MAX: usize = 8 << 20;
/// Begin of a JPEG (ITU-T T.81 B.1.1.3: start of image, then another marker).
const JPEG_START: [u8; 3] = [0xff, 0xd8, 0xff];

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(at_ms: f64, length: usize) -> Frame {
        let mut jpeg = JPEG_START.to_vec();
        jpeg.resize(length, 0);
        Frame { at_ms, jpeg }
    }

    #[test]
    fn frames_have_limits() {
        let all: Vec<Frame> = (0..FRAMES_MAX).map(|n| frame(n as f64, 10)).collect();
        assert_eq!(chosen(&all).0.len(), FRAMES_MAX);
        let more: Vec<Frame> = (0..=FRAMES_MAX).map(|n| frame(n as f64, 10)).collect();
        let (shown, left_out) = chosen(&more);
        assert_eq!(shown.len() + left_out, FRAMES_MAX + 1);
        assert!(
            shown.len() <= FRAMES_MAX && shown.last().is_some_and(|(last, _)| last.at_ms >= 39.0)
        );
        let large = [frame(0.0, FRAME_BYTES_MAX), frame(1.0, 3)];
        assert_eq!(chosen(&large).0.len(), 1);
        let too_large = [frame(0.0, FRAME_BYTES_MAX + 1), frame(1.0, 3)];
        assert_eq!(chosen(&too_large).0[0].0.at_ms, 1.0);
    }

    #[test]
    fn a_frame_is_a_picture_with_its_time() {
        let page = filmstrip(&[frame(1_200.0, 3), frame(1_300.0, 3)], "cold").into_string();
        assert!(
            page.contains("alt=\"The page at 1200 ms\"")
                && page.contains("alt=\"The page at 1300 ms, as before\""),
            "{page}"
        );
        assert!(page.contains("data:image/jpeg;base64,/9j/\""), "{page}");
        let none = Frame {
            at_ms: 0.0,
            jpeg: b"<svg/>".to_vec(),
        };
        assert!(!filmstrip(&[none], "cold").into_string().contains("<img"));
    }
}
