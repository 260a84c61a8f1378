//! Lifecycle times of a page: paints, the document's end, the load event.

use super::events::LifecycleEvent;
use crate::page::PageTimings;

/// Lifecycle times of the page in the main frame, seconds of the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct LifecycleTimes {
    /// Id of the document with these times: a script may navigate to another one.
    loader: String,
    pub(super) dom_content_loaded: Option<f64>,
    pub(super) load: Option<f64>,
    pub(super) first_paint: Option<f64>,
    first_contentful_paint: Option<f64>,
    pub(super) largest_contentful_paint: Option<f64>,
}

impl LifecycleTimes {
    /// Records a lifecycle event of the main frame; returns whether it is the load event.
    pub(super) fn lifecycle_event(&mut self, event: LifecycleEvent) -> bool {
        if event.name == "init" && event.loader_id != self.loader {
            *self = Self {
                loader: event.loader_id,
                ..Self::default()
            };
            return false;
        }
        let moment = match event.name.as_str() {
            "DOMContentLoaded" => &mut self.dom_content_loaded,
            "load" => &mut self.load,
            "firstPaint" => &mut self.first_paint,
            "firstContentfulPaint" => &mut self.first_contentful_paint,
            _ => return false,
        };
        // Events of an earlier document may be late.
        if event.loader_id == self.loader && moment.is_none() {
            *moment = Some(event.timestamp);
            return event.name == "load";
        }
        false
    }

    /// The moments from `origin`, ms.
    pub(super) fn since(&self, origin: f64, first_byte: Option<f64>) -> PageTimings {
        let ms = |at: Option<f64>| at.map(|at| (at - origin) * 1000.0).filter(|ms| *ms >= 0.0);
        PageTimings {
            first_byte_ms: ms(first_byte),
            first_paint_ms: ms(self.first_paint),
            first_contentful_paint_ms: ms(self.first_contentful_paint),
            largest_contentful_paint_ms: ms(self.largest_contentful_paint),
            dom_content_loaded_ms: ms(self.dom_content_loaded),
            load_ms: ms(self.load),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(loader: &str, name: &str, timestamp: f64) -> LifecycleEvent {
        LifecycleEvent {
            frame_id: "F".to_owned(),
            loader_id: loader.to_owned(),
            name: name.to_owned(),
            timestamp,
        }
    }

    #[test]
    fn moments_are_those_of_the_last_document() {
        let mut moments = LifecycleTimes::default();
        assert!(
            !moments.lifecycle_event(event("A", "load", 9.0)),
            "of no document"
        );
        moments.lifecycle_event(event("A", "init", 10.0));
        moments.lifecycle_event(event("A", "firstPaint", 10.1));
        assert!(moments.lifecycle_event(event("A", "load", 10.2)));
        assert!(!moments.lifecycle_event(event("A", "load", 10.3)), "once");
        moments.lifecycle_event(event("B", "init", 11.0));
        moments.lifecycle_event(event("A", "firstContentfulPaint", 11.1));
        assert!(moments.lifecycle_event(event("B", "load", 11.5)));
        moments.lifecycle_event(event("B", "DOMContentLoaded", 11.25));
        let timings = moments.since(10.0, Some(10.5));
        let expected = PageTimings {
            first_byte_ms: Some(500.0),
            dom_content_loaded_ms: Some(1250.0),
            load_ms: Some(1500.0),
            ..PageTimings::default()
        };
        assert_eq!(timings, expected);
    }
}
